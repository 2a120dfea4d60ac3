package model

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"gpuscope/engine"
	"gpuscope/engine/graph"
	"gpuscope/internal/wordingtest"
	"gpuscope/session"
	"gpuscope/trace"
)

// opNamed returns the id of an operator of the session's graph.
func (r *rig) opNamed(name string) *trace.OpID {
	ops := r.mirror.Trace.Graph.Ops
	i := slices.IndexFunc(ops, func(o trace.Op) bool { return o.Name == name })
	if i < 0 {
		r.t.Fatalf("there is no operator %s", name)
	}
	return &ops[i].ID
}

// Timing an operator measures each route, with durations scripted by grid size. Only the route in the
// forecast is marked as planned. Afterwards the session is unchanged and can continue.
func TestAnOperatorIsTimedOnEachRoute(t *testing.T) {
	r := newRig(t, Options{Timing: engine.TimingDispatch})
	r.dev.Duration = func(kernel string, x, y, z uint32) int64 {
		return int64(x*y*z*100) + int64(len(kernel))
	}
	r.do(promptOf(5))
	r.do(session.Command{Kind: session.Run, N: 2})
	before := slices.Clone(r.step().Dispatches)
	op := r.opNamed("layers.0.attn.q")
	r.do(session.Command{Kind: session.TimeOp, Op: op, Lengths: []int{1, 3}, N: 4})
	r.wantStand(`step 2, position 7, "fgh"`)
	trials := r.mirror.Trace.Trials
	if len(trials) < 4 {
		t.Fatalf("%d trials", len(trials))
	}
	line := &r.mirror.Trace.Forecast.Lines[1]
	var dispatch trace.DispatchID
	for _, d := range r.mirror.Trace.Graph.Dispatches {
		if d.Op == *op {
			dispatch = d.ID
		}
	}
	for _, m := range []int{1, 3} {
		p, _ := line.Plan(dispatch, m)
		planned := 0
		for _, tr := range trials {
			if tr.Tokens != m || !tr.Planned {
				continue
			}
			planned++
			want := 100*int64(p.Workgroups[0]*p.Workgroups[1]*p.Workgroups[2]) + int64(len(p.Kernel))
			if tr.Route != p.Route || tr.NS != want || tr.N != 4 || tr.Q1NS != want {
				t.Errorf("at %d tokens: %+v, want %d ns by route %s", m, tr, want, p.Route)
			}
		}
		if planned != 1 {
			t.Errorf("at %d tokens %d routes are marked as planned", m, planned)
		}
	}
	r.do(session.Command{Kind: session.Repeat, N: 1})
	after := r.step().Dispatches
	for i := range before {
		if before[i].Plan != after[i].Plan {
			t.Fatalf("dispatch %d has a different plan after its operator was timed", i)
		}
	}
	r.do(session.Command{Kind: session.Next})
	r.wantStand(`step 3, position 8, "fghi"`)
}

func TestImpossibleOperatorTimingIsRefused(t *testing.T) {
	golden := wordingtest.New(t)
	r := newRig(t, Options{MaxChunk: 8})
	op, none := r.opNamed("layers.0.attn.q"), trace.OpID(999)
	for name, c := range map[string]session.Command{
		"no such operator":           {Op: &none, Lengths: []int{1}},
		"no length":                  {Op: op},
		"a length over a chunk":      {Op: op, Lengths: []int{9}},
		"too many rounds":            {Op: op, Lengths: []int{1}, N: 2000},
		"lengths of another command": {Kind: session.Next, Lengths: []int{1}},
	} {
		if c.Kind == "" {
			c.Kind = session.TimeOp
		}
		err := r.try(context.Background(), c)
		if !errors.Is(err, session.ErrUsage) {
			t.Errorf("%s: %v", name, err)
		}
		golden.Error(name, err)
	}
	r.do(promptOf(3))
	unlike := []graph.OpID{*op, *r.opNamed("layers.0.attn.norm")}
	_, err := r.s.runner.Exec.TimeRoutes(context.Background(), unlike, 1,
		func(l *graph.Live) error { return r.s.runner.Net.SetShape(l, 1, 0) })
	golden.Error("a product and a norm", err)
	view := slices.IndexFunc(r.mirror.Trace.Graph.Ops, func(o trace.Op) bool { return o.Kind == "view_copy" })
	if view >= 0 {
		id := trace.OpID(view)
		err := r.try(context.Background(), session.Command{Kind: session.TimeOp, Op: &id, Lengths: []int{1}})
		golden.Error("a view", err)
	}
	norm := session.Command{Kind: session.TimeOp, Op: r.opNamed("layers.0.attn.norm"), Lengths: []int{1}}
	golden.Error("a norm that others take in", r.try(context.Background(), norm))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := r.try(ctx, session.Command{Kind: session.TimeOp, Op: op, Lengths: []int{1}}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// Timing an operator, even one that writes the caches, runs it on arbitrary memory contents. Afterwards State
// must be unchanged, and the same step must give the same logits.
func TestTimingAnOperatorLeavesTheDeviceCaches(t *testing.T) {
	r := onDevice(t, Options{Context: 64, MaxChunk: 16})
	x, net := r.Exec, r.Net
	ctx := context.Background()
	step := func(position int, tokens ...int) []byte {
		t.Helper()
		if _, err := r.Step(ctx, position, tokens, true, nil, engine.TimingStep); err != nil {
			t.Fatal(err)
		}
		logits := make([]byte, 4*net.Vocab)
		if err := x.ReadValue(net.Logits, logits); err != nil {
			t.Fatal(err)
		}
		return logits
	}
	state := func() (all [][]byte) {
		for _, v := range net.Graph.Describe().Values {
			if v.Role == trace.RoleState {
				b := make([]byte, v.Bytes)
				if err := x.ReadValue(v.ID, b); err != nil {
					t.Fatal(err)
				}
				all = append(all, b)
			}
		}
		return all
	}
	step(0, 5, 6, 7, 8, 9, 10, 11)
	logits, caches := step(7, 12), state()
	for _, o := range net.Graph.Describe().Ops {
		if o.Name != "layers.1.attn.rope+sdpa" && o.Name != "layers.1.attn.q" {
			continue
		}
		for _, tokens := range []int{1, 9} {
			at := func(l *graph.Live) error { return net.SetShape(l, tokens, 0) }
			times, err := x.TimeRoutes(ctx, []graph.OpID{o.ID}, 2, at)
			if err != nil || len(times) == 0 || times[0].N != 2 || times[0].NS <= 0 {
				t.Errorf("%s at %d tokens: %+v, %v", o.Name, tokens, times, err)
			}
		}
	}
	if after := state(); !slices.EqualFunc(caches, after, bytes.Equal) {
		t.Error("the caches have changed")
	}
	if again := step(7, 12); !bytes.Equal(logits, again) {
		t.Error("the same step gives different logits")
	}
}
