package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gpuscope/engine/gpu/fake"
	"gpuscope/engine/graph"
	"gpuscope/engine/graph/graphtest"
	"gpuscope/trace"
)

func TestFailureAnywhereIsFollowedByARightStep(t *testing.T) {
	fault := errors.New("injected")
	kinds := []fake.Kind{
		fake.Write, fake.Begin, fake.BeginPass, fake.EndPass, fake.Timestamp, fake.Resolve,
		fake.CopyOut, fake.Submit, fake.Wait, fake.ReadTimestamps,
	}
	r := newRig(t, fake.Options{})
	rec := NewRecorder(r.x)
	r.mustStep(t, 7, 7)
	rec.Step()
	for i, kind := range kinds {
		for nth := 1; ; nth++ {
			n := 2 + (i+nth)%5
			r.dev.FailNth(kind, nth, fault)
			err := r.x.Step(context.Background(), r.input(n, n-1), TimingDispatch)
			r.dev.FailNth(kind, math.MaxInt32, nil)
			if err == nil {
				rec.Step()
				break // the step has fewer calls of this kind
			}
			if !errors.Is(err, fault) {
				t.Fatalf("%v %d: %v", kind, nth, err)
			}
			if _, err := r.x.Output(r.of, make([]byte, 4)); !errors.Is(err, ErrNotRead) {
				t.Fatalf("%v %d: Output returned a value of a failed step: %v", kind, nth, err)
			}
			r.x.SetCheck(true)
			r.mustStep(t, n, n-1)
			r.x.SetCheck(false)
			_, s := rec.Step()
			checkPlans(t, r.x, rec, s)
		}
	}
}

// fataler is a test of package testing or of package rapid.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkPlans compares the recorder's current plans with the executor's.
func checkPlans(t fataler, x *Executor, rec *Recorder, s trace.Step) {
	t.Helper()
	for i, id := range x.live.Active() {
		_, k := x.live.Launch(id)
		got, known := rec.shapes.PlanID(x.live, id)
		if !known || got != s.Dispatches[i].Plan {
			t.Fatalf("dispatch %d (%s): the step has plan %d, the current plan is %d", id, k.Name,
				s.Dispatches[i].Plan, got)
		}
	}
}

func TestRefusedOrCancelledStepLeavesTheDeviceAlone(t *testing.T) {
	r := newRig(t, fake.Options{})
	r.mustStep(t, 7, 7)
	before := graphtest.State(r.x.live)
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	short := r.input(7, 7)
	short.Inputs[0].Data = short.Inputs[0].Data[4:]
	tests := map[string]struct {
		ctx  context.Context
		in   *graph.StepInput
		want string
	}{
		"shape": {
			context.Background(),
			&graph.StepInput{
				Inputs: []graph.InputData{{Value: r.in, Dims: []int{graphtest.Rows + 1, graphtest.Width}}},
			}, "x 513 512",
		},
		"bytes":     {context.Background(), short, "x 444 448"},
		"symint":    {context.Background(), r.input(9, 0), "n 0 1 512"},
		"cancelled": {cancelled, r.input(9, 9), "context canceled"},
		"not output": {
			context.Background(),
			&graph.StepInput{Read: []graph.ValueID{r.in}},
			fmt.Sprint("value ", r.in),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r.dev.ResetCounts()
			err := r.x.Step(test.ctx, test.in, TimingOff)
			if !graphtest.Mentions(err, test.want) {
				t.Fatalf("error %v, want %q", err, test.want)
			}
			if len(r.dev.Log) != 0 {
				t.Errorf("the device was called: %v", r.dev.Log)
			}
			if d := cmp.Diff(before, graphtest.State(r.x.live)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestCancelIsHeardBetweenSubmits(t *testing.T) {
	r := newRig(t, fake.Options{})
	r.mustStep(t, 7, 7)
	r.x.rates = rates{1e9, 1e9, 1} // every operator is expected to take long
	ctx, cancel := context.WithCancel(context.Background())
	submits := 0
	r.dev.Fault = func(c fake.Call) error {
		if c.Kind == fake.Submit {
			if submits++; submits == 2 {
				cancel()
			}
		}
		return nil
	}
	if err := r.x.Step(ctx, r.input(9, 9), TimingStep); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	if submits != 2 {
		t.Errorf("%d submits after a cancel at the second", submits)
	}
	r.dev.Fault = nil
	r.mustStep(t, 9, 9)
}

func TestCheckCatchesWhatIsStale(t *testing.T) {
	faults := map[string]struct {
		do   func(r *rig)
		want string
	}{
		"grid": {func(r *rig) {
			o := r.x.g.Dispatches[0].Op
			r.x.live.Plans[o].Launches[0].Grid.X++
		}, "[3 1 1] [2 1 1]"},
		"route of an operator that has no choice": {func(r *rig) {
			r.x.live.Plans[r.x.g.Dispatches[0].Op].Route = 1
		}, "route 1 0"},
		"params byte": {func(r *rig) {
			r.x.arena.shadow[r.x.arena.blocks[0].begin]++
			if err := r.x.dev.Write(r.x.arena.buffer, 0, r.x.arena.shadow); err != nil {
				panic(err)
			}
		}, "71 00 00 00 70 00 00 00"},
		"dims": {
			func(r *rig) { r.x.live.Dims(r.of)[0] = 3 },
			"b.add [3 16] [7 16]",
		},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, fake.Options{})
			r.mustStep(t, 7, 7)
			r.x.SetCheck(true)
			r.mustStep(t, 7, 7)
			fault.do(r)
			err := r.x.Step(context.Background(), r.input(7, 7), TimingOff)
			var stale *graph.StaleError
			if !errors.As(err, &stale) || !graphtest.Mentions(err, fault.want) {
				t.Errorf("error %v, want %q", err, fault.want)
			}
		})
	}
	t.Run("lost upload", func(t *testing.T) {
		r := newRig(t, fake.Options{})
		r.mustStep(t, 7, 7)
		r.x.SetCheck(true)
		if err := graphtest.Resize(r.x.live, r.n, 1); err == nil {
			t.Fatal("a SymInt accepted dims")
		}
		// Commits without uploading the params.
		if err := errors.Join(r.x.live.SetInt(r.n, 5), r.x.live.Propagate()); err != nil {
			t.Fatal(err)
		}
		r.x.live.Commit()
		err := r.x.Step(context.Background(), r.input(7, 5), TimingOff)
		var stale *graph.StaleError
		if !errors.As(err, &stale) || stale.Op != "cut" {
			t.Errorf("error %v, want cut's params to be stale", err)
		}
	})
}
