package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"gpuscope/model/session"
	"gpuscope/trace"
	"gpuscope/trace/inspect"
)

// profiling is what a run measures after its text is made.
type profiling struct {
	kind     *choice
	together []string // names of rows that are left out together, of which each element is a list
	asked    bool     // that something is measured was asked for
}

// profileFor is how long a run measures at most.
const profileFor = 3 * time.Second

// How a run repeats what it measures: a prompt's last piece and the last step, for about so long.
const (
	warmRounds  = 5
	warmFor     = time.Second
	aloneRounds = 20
	aloneFor    = 500 * time.Millisecond
)

func declareProfiling(flags *pflag.FlagSet) *profiling {
	o := &profiling{}
	o.kind = choiceFlag(flags, "profile", "measure the last step afterwards, for 3 s at most, by `KIND`",
		"both", "cost", "alone", "off")
	flags.StringArrayVar(&o.together, "cost", nil,
		"measure too what the rows `NAME,..` cost together; * stands for any letters (may be repeated)")
	return o
}

func (o *profiling) check() error {
	for _, names := range o.together {
		if slices.Contains(strings.Split(names, ","), "") {
			return usagef("--cost %q: want names of rows with commas between them", names)
		}
	}
	if len(o.together) > 0 && !o.costs() {
		return usagef("--cost: --profile %s measures no costs", o.kind.value)
	}
	return o.kind.check()
}

func (o *profiling) costs() bool { return o.kind.value == "both" || o.kind.value == "cost" }
func (o *profiling) alone() bool { return o.kind.value == "both" || o.kind.value == "alone" }

// measure runs the step that a run ended with again: each dispatch alone, and without each part. The last
// piece of the prompt is run again, warm. What there is no time for is left out; where the device cannot time
// anything nothing is measured.
func (o *profiling) measure(ctx context.Context, s session.Session, t *trace.Trace) (measured bool,
	err error,
) {
	last := len(t.Steps) - 1
	var parts []session.Part
	if o.costs() {
		if parts, err = o.parts(ctx, t, last); err != nil {
			return false, err
		}
	}
	within, cancel := context.WithTimeout(ctx, profileFor)
	defer cancel()
	var commands []session.Command
	if d := &t.Device; d.Ceilings == nil && !d.Software() { // a device is measured once
		commands = append(commands, session.Command{Kind: session.Ceilings})
	}
	if i := lastPrefill(t); i >= 0 && i != last {
		if n := repeats(&t.Steps[i], warmRounds, warmFor); n > 0 {
			commands = append(commands, session.Command{Kind: session.Cost, Step: &t.Steps[i].Index, N: n})
		}
	}
	if o.alone() {
		n := max(1, repeats(&t.Steps[last], aloneRounds, aloneFor))
		commands = append(commands, session.Command{Kind: session.Repeat, N: n})
	}
	if o.costs() {
		commands = append(commands, session.Command{Kind: session.Cost, Parts: parts})
	}
	for _, c := range commands {
		_, err := s.Do(within, c)
		switch {
		case ctx.Err() != nil:
			return measured, ctx.Err()
		case errors.Is(err, session.ErrUsage): // this device has no timestamps
			return measured, nil
		case err != nil && within.Err() == nil:
			return measured, err
		}
		measured = true
	}
	return measured, nil
}

// repeats is how often a step can be run again in a time, from what it took.
func repeats(s *trace.Step, most int, in time.Duration) int {
	ns, ok := s.CPU.TotalNS.NS()
	if !ok || ns <= 0 {
		return most
	}
	return min(most, int(in.Nanoseconds()/ns))
}

// lastPrefill is the last step that took a prompt in, -1 where there is none.
func lastPrefill(t *trace.Trace) int {
	for i := len(t.Steps) - 1; i >= 0; i-- {
		if t.Steps[i].Phase == "prefill" {
			return i
		}
	}
	return -1
}

// parts are what was named to be left out together, and the rows and kernels of a step that are something
// else; coarse ones first: they are what a slow device has time for.
func (o *profiling) parts(ctx context.Context, t *trace.Trace, step int) ([]session.Part, error) {
	x := inspect.NewIndex(t)
	rows, err := x.CostParts(ctx, step)
	if err != nil {
		return nil, err
	}
	var parts []session.Part
	for _, names := range o.together {
		p, err := x.Named(ctx, step, strings.Split(names, ","))
		if err != nil {
			return nil, fmt.Errorf("--cost: %w", err)
		}
		parts = append(parts, session.Part(p))
	}
	for _, p := range rows {
		same := func(q session.Part) bool { return slices.Equal(q.Dispatches, p.Dispatches) }
		if !slices.ContainsFunc(parts, same) {
			parts = append(parts, session.Part(p))
		}
	}
	slices.SortStableFunc(parts, func(a, b session.Part) int { return len(b.Dispatches) - len(a.Dispatches) })
	return parts, nil
}
