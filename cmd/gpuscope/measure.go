package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"gpuscope/cmd/gpuscope/cli"
	"gpuscope/engine"
	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/table"
)

// profiling holds the flags that say what a run measures after its text is generated.
type profiling struct {
	kind     *cli.Choice
	together []string // groups of rows to skip together; each element is a list of names
	asked    bool     // the user requested a measurement explicitly
	late     bool     // the time limit ended before all measurements were made
}

// profileFor is the time limit of all measurements together. It does not include the costs requested with
// --cost, which are measured first.
const profileFor = 3 * time.Second

// These constants limit how often and for how long a run repeats the last step and the prompt's last chunk.
// The costs of the last step are the most informative, so the last step gets most of profileFor. The final
// promptFrom of profileFor is reserved for the chunk. If one run of the chunk takes longer than warmFor, the
// chunk is not measured, and the last step gets all of profileFor.
const (
	warmRounds  = 5
	warmFor     = time.Second
	promptFor   = 300 * time.Millisecond
	promptFrom  = 700 * time.Millisecond
	aloneRounds = 20
	aloneFor    = 500 * time.Millisecond
)

func declareProfiling(flags *pflag.FlagSet) *profiling {
	o := &profiling{}
	o.kind = cli.ChoiceFlag(flags, "profile", "after the run, repeat the last step and the prompt for at most 3 s, to measure "+
		"costs, isolated times (alone) or both; `KIND`",
		"both", "cost", "alone", "off")
	flags.StringArrayVar(&o.together, "cost", nil,
		"before all other measurements, measure the cost of the rows `NAME,..` together, in at least five rounds; in a name, "+
			"* matches any characters (may be repeated)")
	return o
}

func (o *profiling) check() error {
	for _, names := range o.together {
		if slices.Contains(strings.Split(names, ","), "") {
			return cli.Usagef("--cost %q: want names of rows separated by commas", names)
		}
	}
	if len(o.together) > 0 && !o.costs() {
		return cli.Usagef("--cost: --profile %s measures no costs; use --profile cost or both", o.kind.Value)
	}
	return o.kind.Check()
}

// nameable checks the names given with --cost before any step runs. It returns an error for a name that can
// match no row of any step of the model.
func (o *profiling) nameable(ctx context.Context, out *output) error {
	if len(o.together) == 0 {
		return nil
	}
	t, err := out.await(ctx, func(*trace.Trace) bool { return true })
	if err != nil {
		return err
	}
	x := analyze.NewIndex(t)
	for _, names := range o.together {
		if err := x.Nameable(names); err != nil {
			return cli.Usagef("--cost: %v", err)
		}
	}
	return nil
}

func (o *profiling) costs() bool { return o.kind.Value == "both" || o.kind.Value == "cost" }
func (o *profiling) alone() bool { return o.kind.Value == "both" || o.kind.Value == "alone" }

// measure runs the last step and the last chunk of the prompt again. First it measures the costs requested
// with --cost, without a time limit. Then it measures isolated times of the dispatches and the cost of each
// part, as far as the time limit allows. If the device has no timestamps, it measures nothing.
func (o *profiling) measure(ctx context.Context, s session.Session, t *trace.Trace) (measured bool,
	err error,
) {
	commands, err := o.commands(ctx, t)
	if err != nil {
		return false, err
	}
	begin := time.Now()
	for _, c := range commands {
		within, cancel := context.WithDeadline(ctx, begin.Add(c.until))
		_, err := s.Do(within, c.Command)
		late := within.Err() != nil
		o.late = o.late || late
		cancel()
		if c.until == itsEnd { // costs without a time limit do not shorten the other measurements
			begin = time.Now()
		}
		switch {
		case ctx.Err() != nil:
			return measured, ctx.Err()
		case errors.Is(err, session.ErrUsage): // this device has no timestamps
			return measured, nil
		case err != nil && !late:
			return measured, err
		}
		measured = true
	}
	return measured, nil
}

// uncosted explains that no costs were measured because of the time limit, and says what the user can do. If
// costs were measured, or are missing for another reason, it returns "".
func (o *profiling) uncosted(t *trace.Trace) string {
	has := func(s trace.Step) bool { return len(s.Costs) > 0 }
	if !o.late || !o.costs() || slices.ContainsFunc(t.Steps, has) {
		return ""
	}
	last := &t.Steps[len(t.Steps)-1]
	instead := "press c in the full-screen program to measure without a time limit"
	if len(last.Tokens) > 1 {
		instead = "use -n 2, so that the last step has one token and is shorter"
	}
	return fmt.Sprintf("the step took %s and must run at least five times to measure a cost, but measuring ends "+
		"after %.0f s; %s", table.Millis(last.CPU.TotalNS.NS()), profileFor.Seconds(), instead)
}

// fewRounds returns what the user can do if no cost of the last step has enough rounds, else "".
func fewRounds(t *trace.Trace) string {
	costs := t.Steps[len(t.Steps)-1].Costs
	enough := func(c trace.Cost) bool { return c.N >= trace.FewestWithin }
	if len(costs) == 0 || slices.ContainsFunc(costs, enough) {
		return ""
	}
	return fmt.Sprintf("measuring ended after %.0f s, before any cost had enough rounds: use --cost NAME to run at least %d rounds, or press c in the full-screen program to add rounds",
		profileFor.Seconds(), trace.FewestWithin)
}

// bounded is a command and its deadline. The clock for all deadlines starts with the first command that has a
// deadline.
type bounded struct {
	session.Command
	until time.Duration
}

// itsEnd is the value of bounded.until for a command without a deadline.
const itsEnd = time.Duration(math.MaxInt64)

// commands returns the measurements to make after the text is generated: first the costs requested with
// --cost, and then all other measurements, the most informative first.
func (o *profiling) commands(ctx context.Context, t *trace.Trace) ([]bounded, error) {
	var commands []bounded
	add := func(until time.Duration, c session.Command) { commands = append(commands, bounded{c, until}) }
	x, last := analyze.NewIndex(t), len(t.Steps)-1
	asked, parts, err := o.parts(ctx, x, last)
	if err != nil {
		return nil, err
	}
	if len(asked) > 0 {
		// For each part, a round needs at most three runs of the step: a run without the part, a run of the
		// whole step, and a run of the whole step that is submitted in pieces, like the original step.
		n := repeats(&t.Steps[last], engine.CostRounds, profileFor/time.Duration(3*len(asked)))
		add(itsEnd, session.Command{Kind: session.Cost, Parts: asked, N: max(n, trace.FewestWithin)})
	}
	if d := &t.Device; d.Ceilings == nil && !d.Software() { // a device is measured only once
		add(profileFor, session.Command{Kind: session.Ceilings})
	}
	prompt, until := lastPrefill(t), profileFor
	if prompt == last || prompt >= 0 && repeats(&t.Steps[prompt], warmRounds, warmFor) == 0 {
		prompt = -1
	}
	if prompt >= 0 {
		until -= promptFrom
	}
	if o.alone() {
		n := max(1, repeats(&t.Steps[last], aloneRounds, aloneFor))
		add(until, session.Command{Kind: session.Repeat, N: n})
	}
	if o.costs() {
		add(until, session.Command{Kind: session.Cost, Parts: parts})
	}
	if prompt < 0 {
		return commands, nil
	}
	p := &t.Steps[prompt]
	if o.alone() {
		n := max(1, repeats(p, warmRounds, promptFor))
		add(profileFor, session.Command{Kind: session.Repeat, Step: &p.Index, N: n})
	}
	if !o.costs() { // measure only the whole chunk
		n := repeats(p, warmRounds, warmFor)
		add(profileFor, session.Command{Kind: session.Cost, Step: &p.Index, N: n})
		return commands, nil
	}
	if parts, err = promptParts(ctx, x, prompt); err == nil {
		add(profileFor, session.Command{Kind: session.Cost, Step: &p.Index, Parts: parts})
	}
	return commands, err
}

// repeats returns how many times a step can be repeated within a duration, but at most `most` times.
func repeats(s *trace.Step, most int, in time.Duration) int {
	ns, ok := s.CPU.TotalNS.NS()
	if !ok || ns <= 0 {
		return most
	}
	return min(most, int(in.Nanoseconds()/ns))
}

// lastPrefill returns the index of the last prefill step, or -1.
func lastPrefill(t *trace.Trace) int {
	for i := len(t.Steps) - 1; i >= 0; i-- {
		if t.Steps[i].Phase == trace.Prefill {
			return i
		}
	}
	return -1
}

// parts returns two lists of parts of a step: the groups of rows requested with --cost, and all other parts
// (rows, kernels and operator kinds). In the second list, the parts with the most dispatches come first,
// because a slow device may only have time for a few parts.
func (o *profiling) parts(ctx context.Context, x *analyze.Index, step int) (asked, others []trace.Part,
	err error,
) {
	rows, err := x.CostParts(ctx, step)
	if err != nil {
		return nil, nil, err
	}
	has := func(parts []trace.Part, p trace.Part) bool {
		same := func(q trace.Part) bool { return slices.Equal(q.Dispatches, p.Dispatches) }
		return slices.ContainsFunc(parts, same)
	}
	for _, names := range o.together {
		p, err := x.Named(ctx, step, names)
		if err != nil {
			return nil, nil, fmt.Errorf("--cost: %w", err)
		}
		if !has(asked, p) {
			asked = append(asked, p)
		}
	}
	for _, p := range rows {
		if !has(asked, p) {
			others = append(others, p)
		}
	}
	coarser := func(a, b trace.Part) int { return len(b.Dispatches) - len(a.Dispatches) }
	slices.SortStableFunc(others, coarser)
	return asked, others, nil
}

// promptParts returns the parts of a prefill step, the most useful ones first. A prefill step takes so long
// that there may only be time for a few parts. The parts that contain no other part come first, followed by
// the parts that do. Both groups are sorted by work, with the most work first.
func promptParts(ctx context.Context, x *analyze.Index, step int) ([]trace.Part, error) {
	rows, err := x.CostParts(ctx, step)
	if err != nil {
		return nil, err
	}
	work := map[trace.DispatchID]int64{}
	for _, d := range x.Trace.Steps[step].Dispatches {
		p := &x.Trace.Plans[d.Plan]
		work[p.Dispatch] = p.FLOPs + p.Bytes
	}
	type ranked struct {
		trace.Part
		holds bool
		work  int64
	}
	parts := make([]ranked, len(rows))
	for i, row := range rows {
		parts[i].Part = row
		of := map[trace.DispatchID]bool{}
		for _, id := range row.Dispatches {
			of[id] = true
			parts[i].work += work[id]
		}
		parts[i].holds = slices.ContainsFunc(rows, func(r trace.Part) bool {
			return len(r.Dispatches) < len(of) &&
				!slices.ContainsFunc(r.Dispatches, func(id trace.DispatchID) bool { return !of[id] })
		})
	}
	slices.SortStableFunc(parts, func(a, b ranked) int {
		switch {
		case a.holds == b.holds:
			return cmp.Compare(b.work, a.work)
		case a.holds:
			return 1
		}
		return -1
	})
	list := make([]trace.Part, len(parts))
	for i := range parts {
		list[i] = parts[i].Part
	}
	return list, nil
}
