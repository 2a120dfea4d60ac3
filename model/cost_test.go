package model

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"gpuscope/engine"
	"gpuscope/engine/gpu/fake"
	"gpuscope/engine/graph"
	"gpuscope/internal/wordingtest"
	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/analyze/ranking"
)

// costOf returns a command that measures the cost of each dispatch of the current step, and of all dispatches
// together.
func (r *rig) costOf(rounds int) session.Command {
	c := session.Command{Kind: session.Cost, N: rounds}
	all := trace.Part{Name: "all"}
	for _, d := range r.step().Dispatches {
		id := r.mirror.Trace.Plans[d.Plan].Dispatch
		c.Parts = append(c.Parts, trace.Part{Name: "one", Dispatches: []trace.DispatchID{id}})
		all.Dispatches = append(all.Dispatches, id)
	}
	c.Parts = append(c.Parts, all)
	return c
}

// step returns the current step of the trace.
func (r *rig) step() *trace.Step {
	steps := r.mirror.Trace.Steps
	i := slices.IndexFunc(steps, func(s trace.Step) bool { return s.Index == r.mirror.State.Step })
	return &steps[i]
}

func TestCostsAreThoseOfTheCurrentStep(t *testing.T) {
	r := newRig(t, Options{Timing: engine.TimingStep})
	r.dev.Duration = func(kernel string, x, y, z uint32) int64 { return int64(x * y * z * 10) }
	r.do(promptOf(5))
	r.do(session.Command{Kind: session.Run, N: 3})
	r.do(session.Command{Kind: session.Previous})
	r.do(r.costOf(3))
	r.wantStand(`step 2, position 7, "fgh"`)
	progress := r.events[1].Progress
	if progress == nil || progress.Phase != "measure costs" {
		t.Errorf("no progress is reported: %+v", r.events[1])
	}
	for i, s := range r.mirror.Trace.Steps {
		if i != 2 {
			if len(s.Costs) > 0 {
				t.Errorf("step %d has costs", i)
			}
			continue
		}
		if n := len(s.Dispatches); len(s.Costs) != n+1 || s.Whole == nil {
			t.Fatalf("%d costs of %d dispatches, whole %v", len(s.Costs), n, s.Whole)
		}
		sum := int64(0)
		for k, d := range s.Dispatches {
			p, c := &r.mirror.Trace.Plans[d.Plan], s.Costs[k]
			want := int64(10 * p.Workgroups[0] * p.Workgroups[1] * p.Workgroups[2])
			sum += want
			if c.Dispatches[0] != p.Dispatch || c.NS != want || c.Q1NS != want || c.Q3NS != want || c.N != 3 {
				t.Errorf("cost of dispatch %d is %+v, want %d", p.Dispatch, c, want)
			}
		}
		if all := s.Costs[len(s.Dispatches)]; all.NS != sum || s.Whole.NS != sum || all.Name != "all" {
			t.Errorf("all: %+v of %+v, want %d", all, s.Whole, sum)
		}
	}
	events := r.mirror.Trace.Events
	if e := events[len(events)-1]; e.Kind != "cost" || e.Step != 2 {
		t.Errorf("events %v", events)
	}
	r.do(session.Command{Kind: session.Next})
	r.wantStand(`step 4, position 8, "fghi"`)
}

// Measuring the costs of a step again adds rounds to the measured parts. Measuring another step starts from
// zero rounds.
func TestRepeatedCostMeasurementsAddRounds(t *testing.T) {
	r := newRig(t, Options{Timing: engine.TimingStep})
	r.do(promptOf(5))
	r.do(session.Command{Kind: session.Next})
	c := r.costOf(2)
	one := c
	one.Parts = c.Parts[:1]
	for times, want := range [][2]int{{2, 2}, {4, 2}, {6, 4}} { // rounds of the first part, of the others
		do := c
		if times == 1 {
			do = one
		}
		r.do(do)
		for i, cost := range r.step().Costs {
			if n := want[min(i, 1)]; cost.N != n {
				t.Errorf("after %d commands, part %d has %d rounds, want %d", times+1, i, cost.N, n)
			}
		}
	}
	r.do(session.Command{Kind: session.Next})
	r.do(r.costOf(2))
	if cost := r.step().Costs[0]; cost.N != 2 {
		t.Errorf("another step has %d rounds, want 2", cost.N)
	}
}

func TestCostsOfAnOlderStepAreMeasuredThere(t *testing.T) {
	r := newRig(t, Options{})
	r.do(promptOf(5))
	r.do(session.Command{Kind: session.Run, N: 3})
	first := 0
	r.do(session.Command{Kind: session.Cost, N: 4, Step: &first})
	r.wantStand(`step 3, position 8, "fghi"`)
	for i, s := range r.mirror.Trace.Steps {
		ns := int64(1000 * len(s.Dispatches))
		if (s.Whole != nil) != (i == 0) || i == 0 && (s.Whole.N != 5 || s.Whole.NS != ns) {
			t.Errorf("step %d of %d dispatches: whole %+v", i, len(s.Dispatches), s.Whole)
		}
	}
	for _, e := range r.mirror.Trace.Events {
		if e.Kind == "cost" {
			t.Errorf("event %q, although no part was measured", e.Text)
		}
	}
	r.do(session.Command{Kind: session.Next})
	r.wantStand(`step 4, position 9, "fghij"`)
}

func TestCancelledCostCommandKeepsItsResults(t *testing.T) {
	r := newRig(t, Options{})
	r.do(promptOf(5))
	c := r.costOf(1000)
	ctx, cancel := context.WithCancel(context.Background())
	submits := 0
	r.dev.Fault = func(call fake.Call) error {
		if call.Kind == fake.Submit {
			if submits++; submits == 2*len(c.Parts)+20 {
				cancel()
			}
		}
		return nil
	}
	if err := r.try(ctx, c); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	costs := r.step().Costs
	rounds := map[int]int{} // number of costs, by number of rounds
	for i := range costs {
		rounds[costs[i].N]++
	}
	if len(costs) != len(c.Parts) || rounds[1] == 0 || rounds[1] == len(costs) {
		t.Errorf("%d costs of %d; costs by number of rounds: %v", len(costs), len(c.Parts), rounds)
	}
	r.do(session.Command{Kind: session.Next})
	r.wantStand(`step 1, position 6, "fg"`)
}

func TestUnmeasurableCostsAreRefused(t *testing.T) {
	golden := wordingtest.New(t)
	r := newRig(t, Options{})
	r.do(promptOf(5))
	part := func(ids ...trace.DispatchID) []trace.Part {
		return []trace.Part{{Name: "x", Dispatches: ids}}
	}
	for name, c := range map[string]session.Command{
		"a part without dispatches": {Parts: part()},
		"a dispatch past the last":  {Parts: part(9999)},
		"a negative dispatch":       {Parts: part(-1)},
		"too many rounds":           {Parts: part(0), N: 1001},
		"too many parts":            {Parts: make([]trace.Part, 3000)},
	} {
		c.Kind = session.Cost
		err := r.try(context.Background(), c)
		if !errors.Is(err, session.ErrUsage) {
			t.Errorf("%s: %v", name, err)
		}
		golden.Error(name, err)
	}
}

// The times of the fake device have no noise, so the order of the rows is significant as soon as there are
// enough rounds. A second command measures more of them.
func TestCostsEndWhenTheirOrderIsSignificant(t *testing.T) {
	r := newRig(t, Options{Timing: engine.TimingStep})
	r.dev.Duration = func(kernel string, x, y, z uint32) int64 { return int64(x * y * z * 10) }
	r.do(promptOf(5))
	c := r.costOf(0)
	for i := range c.Parts[:len(c.Parts)-1] {
		c.Parts[i].Rival = true
	}
	last := 0
	for range 2 {
		r.do(c)
		n := r.step().Costs[0].N
		if n < ranking.Fewest || n <= last || n > last+ranking.Fewest+5 {
			t.Errorf("%d rounds after %d", n, last)
		}
		last = n
	}
}

// Cost measurements overwrite memory with garbage. Afterwards the caches, the logits and the following tokens
// must be unchanged.
func TestMeasuringCostsKeepsDeviceCacheAndLogits(t *testing.T) {
	r := onDevice(t, Options{})
	x, net := r.Exec, r.Net
	ctx := context.Background()
	step := func(position int, tokens ...int) {
		t.Helper()
		in := net.Input(position, tokens)
		in.Read = net.Graph.Outputs()
		if err := x.Step(ctx, in, engine.TimingStep); err != nil {
			t.Fatal(err)
		}
	}
	// memory reads every State and every output completely.
	memory := func() (all [][]byte) {
		for _, v := range net.Graph.Describe().Values {
			if v.Role == trace.RoleState || v.Role == trace.RoleOutput {
				b := make([]byte, v.Bytes)
				if err := x.ReadValue(graph.ValueID(v.ID), b); err != nil {
					t.Fatal(err)
				}
				all = append(all, b)
			}
		}
		return all
	}
	same := func(want, got [][]byte) {
		t.Helper()
		if len(want) < 3 {
			t.Fatalf("only %d values were compared", len(want))
		}
		for i := range want {
			if !bytes.Equal(want[i], got[i]) {
				t.Errorf("value %d differs", i)
			}
		}
	}
	for _, at := range []struct {
		position int
		tokens   []int
	}{{0, []int{1, 47, 300, 12, 77, 5, 261}}, {7, []int{260}}} {
		step(at.position, at.tokens...)
		before := memory()
		var sets [][]trace.DispatchID
		for i, id := range x.Live().Active() {
			if i%7 == 0 { // includes cache writes
				sets = append(sets, []trace.DispatchID{id})
			}
		}
		sets = append(sets, x.Live().Active())
		if _, err := x.Costs(ctx, sets, engine.CostOptions{Rounds: 1}); err != nil {
			t.Fatal(err)
		}
		same(before, memory())
	}
	step(8, 30)
	measured := memory()
	step(0, 1, 47, 300, 12, 77, 5, 261)
	step(7, 260)
	step(8, 30)
	same(memory(), measured)
}
