package engine

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gpuscope/engine/gpu/fake"
	"gpuscope/engine/graph"
	"gpuscope/engine/graph/graphtest"
	"gpuscope/trace"
)

// editOf returns an edited version of a test kernel. compute does its work on the fake device.
func (r *rig) editOf(t testing.TB, of string, name string, compute func(fake.Dispatch)) *Edit {
	t.Helper()
	by := *r.x.Graph().Kernel(of)
	by.Name, by.Source = name, by.Source+"// "+name+"\n"
	e, err := r.x.NewEdit(of, &by)
	if err != nil {
		t.Fatal(err)
	}
	own := r.dev.OnDispatch
	r.dev.OnDispatch = func(d fake.Dispatch) {
		if d.Pipeline == name {
			compute(d)
		} else {
			own(d)
		}
	}
	return e
}

// as returns a function that computes what a kernel computes, for use in an edit.
func as(kernel string) func(fake.Dispatch) {
	return func(d fake.Dispatch) {
		d.Pipeline = kernel
		compute(d)
	}
}

// by returns the kernels of a step's dispatches.
func by(plans []trace.Plan, s *trace.Step) (list []string) {
	for _, d := range s.Dispatches {
		list = append(list, plans[d.Plan].Kernel)
	}
	return list
}

func TestRecordsNameTheEditedKernelThatRan(t *testing.T) {
	r := newRig(t, fake.Options{})
	rec := NewRecorder(r.x)
	var all []trace.Plan
	var was []string
	step := func() (trace.Step, []string) {
		t.Helper()
		r.mustStep(t, 7, 5)
		plans, s := rec.Step()
		all = append(all, plans...)
		return s, by(all, &s)
	}
	_, was = step()
	_, _ = step()
	ran := 0
	e := r.editOf(t, "unary", "unary+1", func(d fake.Dispatch) {
		ran++
		as("unary")(d)
	})
	r.x.Use(e)
	if r.x.InPlace("unary") != e || r.x.InPlace("many") != nil {
		t.Error("InPlace does not return the edit in use")
	}
	s, now := step()
	if all := len(r.x.Serves("unary")); !s.Cold || ran != all {
		t.Errorf("cold %v, the edit ran %d times of %d", s.Cold, ran, all)
	}
	want := strings.Split(strings.ReplaceAll(strings.Join(was, ","), "unary", "unary+1"), ",")
	if d := cmp.Diff(want, now); d != "" {
		t.Error(d)
	}
	if s, _ := step(); s.Cold {
		t.Error("a second step is cold")
	}
	r.x.UseOwn("unary")
	n := len(all)
	if _, now := step(); cmp.Diff(was, now) != "" || len(all) != n {
		t.Errorf("after undoing the edit %v, with %d new plans", now, len(all)-n)
	}
	k := e.Describe(r.x.Graph())
	if k.Name != "unary+1" || k.Of != "unary" || !strings.HasSuffix(k.Source, "// unary+1\n") {
		t.Errorf("described as %+v", k)
	}
}

func TestIncompatibleKernelEditIsRefused(t *testing.T) {
	r := newRig(t, fake.Options{})
	by := *r.x.Graph().Kernel("unary")
	by.Name, by.WorkgroupSize = "unary+1", [3]uint32{32, 1, 1}
	for of, want := range map[string]string{"unary": "unary+1 [32 1 1] unary [64 1 1]", "tanh": `"tanh"`} {
		if _, err := r.x.NewEdit(of, &by); !graphtest.Mentions(err, want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	by.WorkgroupSize = [3]uint32{64, 1, 1}
	r.dev.FailNth(fake.NewPipeline, 1, errors.New("wgsl:3:1 no"))
	if _, err := r.x.NewEdit("unary", &by); err == nil || !strings.Contains(err.Error(), "wgsl:3:1 no") {
		t.Errorf("got %v", err)
	}
}

// An edit's gain is how much less time its dispatches take: once each in isolation, and in the step as often
// as they run. Its output is compared with the kernel's. The trial changes nothing in the step.
func TestEditAlternatesWithItsKernelOnStepInputs(t *testing.T) {
	for name, timed := range map[string]bool{"timed": true, "no timestamps": false} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, fake.Options{NoTimestamps: !timed})
			r.dev.Duration = func(kernel string, _, _, _ uint32) int64 {
				return map[string]int64{"unary": 500, "unary+1": 380}[kernel] + 100
			}
			e := r.editOf(t, "unary", "unary+1", func(d fake.Dispatch) { // computes all but the first word
				first := bytes.Clone(d.Bound[1].Bytes[:4])
				as("unary")(d)
				copy(d.Bound[1].Bytes, first)
			})
			r.mustStep(t, 7, 5)
			plans, step := NewRecorder(r.x).Step()
			serves := r.x.Serves("unary")
			id := serves[len(serves)-1]
			got, err := r.x.TryEdit(context.Background(), e, id, CostOptions{Rounds: 3})
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Outputs) != 1 || got.Dispatches != len(serves) {
				t.Fatalf("%d outputs, %d dispatches", len(got.Outputs), got.Dispatches)
			}
			own, edit := graphtest.Words(got.Outputs[0].Own), graphtest.Words(got.Outputs[0].New)
			if len(own) != 5*graphtest.Width || own[0] == Unwritten || edit[0] != Unwritten ||
				cmp.Diff(own[1:], edit[1:]) != "" {
				t.Errorf("the kernel gives %v, the edit %v", own, edit)
			}
			var alone, whole []int64
			if timed {
				n := int64(120 * len(serves))
				alone, whole = []int64{120, 120, 120}, []int64{n, n, n}
			}
			if d := cmp.Diff([][]int64{alone, whole}, [][]int64{
				got.Alone.Gains(),
				got.Step.Gains(),
			}); timed &&
				d != "" {
				t.Error(d)
			} else if !timed && len(got.Alone.Own)+len(got.Step.Own) > 0 {
				t.Error("got times without timestamps")
			}
			if d := cmp.Diff(r.want(7, 5), r.output(t)); d != "" {
				t.Error(d)
			}
			if r.x.InPlace("unary") != nil || by(plans, &step)[0] != "unary" {
				t.Error("the edit is still in use")
			}
			r.mustStep(t, 3, 3)
			if _, err := r.x.TryEdit(context.Background(), e, 1<<20, CostOptions{}); err == nil {
				t.Error("a dispatch that does not exist is accepted")
			}
		})
	}
}

// However a trial ends, the next step is correct.
func TestInterruptedTrialLeavesTheStepUnchanged(t *testing.T) {
	for at := range 12 {
		r := newRig(t, fake.Options{})
		r.dev.Duration = scripted
		e := r.editOf(t, "unary", "unary+1", func(fake.Dispatch) {})
		r.mustStep(t, 7, 5)
		ctx, cancel := context.WithCancel(context.Background())
		told := 0
		progress := func(string, int, int) error {
			if told++; told > at {
				cancel()
			}
			return nil
		}
		id := r.x.Serves("unary")[0]
		got, err := r.x.TryEdit(ctx, e, id, CostOptions{Rounds: 3, Progress: progress})
		if cut := told > at; cut != errors.Is(err, context.Canceled) {
			t.Errorf("cancelled at %d: %v", at, err)
		}
		if len(got.Alone.Gains()) > 3 || len(got.Step.Gains()) > 3 {
			t.Errorf("%+v", got)
		}
		output := make([]byte, 4*5*graphtest.Width)
		if err := r.x.ReadValue(r.of, output); err != nil ||
			cmp.Diff(r.want(7, 5), graphtest.Words(output)) != "" {
			t.Errorf("cancelled at %d: the step's output is %v, %v", at, graphtest.Words(output), err)
		}
		r.mustStep(t, 7, 5)
	}
}

// If an edit writes to State where its kernel does not, the trial undoes this, and the edit does not run in
// the step. If it writes to the same places, it runs in the step, whatever values it writes.
func TestATrialLeavesStateAsItWas(t *testing.T) {
	for name, c := range map[string]struct {
		at    int
		reads bool // the edit also reads the State
	}{
		"same place": {0, false}, "another place": {3, false},
		"same place, read": {0, true}, "another place, read": {3, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := &rig{dev: fake.New(fake.Options{})}
			defer r.dev.Release()
			r.dev.OnDispatch = compute
			b := graph.NewBuilder(r.dev.Info().Limits)
			x, state := b.Input("x", graph.U32, []int{1}, []int{4}), b.State("state", graph.U32, []int{4})
			graphtest.StoreOp(b, x, state)
			var err error
			if r.x, err = Load(r.dev, graphtest.Finish(t, b, graphtest.Unary(b, "y", x)),
				graph.LiveOptions{}, nil); err != nil {
				t.Fatal(err)
			}
			defer r.x.Release()
			step := func(words ...uint32) {
				t.Helper()
				in := graph.InputData{Value: x, Dims: []int{len(words)}, Data: graphtest.BytesOf(words)}
				err := r.x.Step(
					context.Background(),
					&graph.StepInput{Inputs: []graph.InputData{in}},
					TimingOff,
				)
				if err != nil {
					t.Fatal(err)
				}
			}
			step(1, 2, 3, 4)
			step(8, 9)
			e := r.editOf(t, "copy", "copy+1", func(d fake.Dispatch) {
				copy(d.Bound[1].Bytes[4*c.at:], graphtest.BytesOf([]uint32{77}))
			})
			e.by.Storage = slices.Clone(e.by.Storage)
			e.by.Storage[1].Read = c.reads
			got, err := r.x.TryEdit(context.Background(), e, r.x.Serves("copy")[0], CostOptions{Rounds: 2})
			if err != nil {
				t.Fatal(err)
			}
			if elsewhere := c.at > 0; got.Stray != elsewhere || (len(got.Step.New) == 0) != elsewhere {
				t.Errorf("stray %v, times in the step %v", got.Stray, got.Step)
			}
			held := make([]byte, 16)
			if err := r.x.ReadValue(state, held); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff([]uint32{8, 9, 3, 4}, graphtest.Words(held)); d != "" {
				t.Error(d)
			}
		})
	}
}
