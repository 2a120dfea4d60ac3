package engine

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/fake"
	"gpuscope/engine/graph"
	"gpuscope/engine/graph/graphtest"
)

// Every dispatch of a step can be captured. Its kernel computes After from Before, and the step stays as it
// was.
func TestCaptureHoldsWhatADispatchReadsAndWrites(t *testing.T) {
	r := newRig(t, fake.Options{})
	r.mustStep(t, 7, 5)
	for _, id := range slices.Clone(r.x.live.Active()) {
		c, err := r.x.Capture(context.Background(), id, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		again := fake.Dispatch{Pipeline: c.Name}
		var total int64
		for _, b := range c.Bindings {
			data := bytes.Clone(b.Before)
			if data == nil {
				data = unwritten(len(b.After))
			}
			if n := b.DType.Bytes(graph.Numel(b.Dims)); int64(len(data)) != n {
				t.Errorf("dispatch %d: %d bytes of %s, its dims need %d", id, len(data), b.Name, n)
			}
			total += int64(len(b.Before) + len(b.After))
			again.Bound = append(again.Bound, fake.Bound{Bytes: data})
		}
		again.Bound = append(again.Bound, fake.Bound{Bytes: c.Params})
		compute(again)
		wrote := false
		for i, b := range c.Bindings {
			if written := b.Access == gpu.ReadWrite; written != (b.After != nil) {
				t.Errorf("dispatch %d: %s has content after the dispatch: %v", id, b.Name, b.After != nil)
			} else if written {
				wrote = true
				if d := cmp.Diff(graphtest.Words(b.After), graphtest.Words(again.Bound[i].Bytes)); d != "" {
					t.Errorf("dispatch %d (%s): %s", id, c.Name, d)
				}
			}
		}
		if launch, _ := r.x.live.Launch(id); !wrote || c.Grid[0] != launch.Grid.X || c.Bytes != launch.Bytes {
			t.Errorf("dispatch %d: grid %v, %d bytes, writes %v", id, c.Grid, c.Bytes, wrote)
		}
		output := make([]byte, 4*5*graphtest.Width)
		if err := r.x.ReadValue(r.of, output); err != nil ||
			cmp.Diff(r.want(7, 5), graphtest.Words(output)) != "" {
			t.Errorf("after capturing dispatch %d the output of the step is wrong, %v", id, err)
		}
		submits := r.dev.Count(fake.Submit)
		_, err = r.x.Capture(context.Background(), id, total-1)
		if large, ok := errors.AsType[*CaptureTooLargeError](err); !ok || large.Bytes != total ||
			r.dev.Count(fake.Submit) != submits {
			t.Errorf("with a limit of %d bytes: %v", total-1, err)
		}
	}
	r.mustStep(t, 3, 3)
	if _, err := r.x.Capture(context.Background(), 1<<20, 1<<20); err == nil {
		t.Error("a dispatch that does not exist is captured")
	}
}

func TestCancelledCaptureLeavesTheStepUnchanged(t *testing.T) {
	r := newRig(t, fake.Options{})
	r.mustStep(t, 7, 5)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := r.x.Capture(ctx, r.x.live.Active()[1], 1<<20)
	output := make([]byte, 4*5*graphtest.Width)
	if !errors.Is(err, context.Canceled) || r.x.ReadValue(r.of, output) != nil ||
		cmp.Diff(r.want(7, 5), graphtest.Words(output)) != "" {
		t.Errorf("%v, output %v", err, graphtest.Words(output))
	}
}

// A capture of a dispatch that writes State has the whole State before and after it, and leaves it unchanged.
func TestCaptureOfStateHasTheWholeState(t *testing.T) {
	dev := fake.New(fake.Options{})
	defer dev.Release()
	dev.OnDispatch = compute
	b := graph.NewBuilder(dev.Info().Limits)
	in, state := b.Input("x", graph.U32, []int{1}, []int{4}), b.State("state", graph.U32, []int{4})
	graphtest.StoreOp(b, in, state)
	x, err := Load(dev, graphtest.Finish(t, b, graphtest.Unary(b, "y", in)), graph.LiveOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Release()
	for _, words := range [][]uint32{{1, 2, 3, 4}, {8, 9}} {
		data := graph.InputData{Value: in, Dims: []int{len(words)}, Data: graphtest.BytesOf(words)}
		step := &graph.StepInput{Inputs: []graph.InputData{data}}
		if err := x.Step(context.Background(), step, TimingOff); err != nil {
			t.Fatal(err)
		}
	}
	// The host restores the State before a replay.
	if err := x.WriteValue(state, graphtest.BytesOf([]uint32{5, 6, 3, 4})); err != nil {
		t.Fatal(err)
	}
	c, err := x.Capture(context.Background(), x.Serves("copy")[0], 1<<10)
	if err != nil {
		t.Fatal(err)
	}
	held := make([]byte, 16)
	if err := x.ReadValue(state, held); err != nil {
		t.Fatal(err)
	}
	got := [][]uint32{
		graphtest.Words(c.Bindings[1].Before), graphtest.Words(c.Bindings[1].After), graphtest.Words(held),
	}
	if d := cmp.Diff([][]uint32{{5, 6, 3, 4}, {8, 9, 3, 4}, {8, 9, 3, 4}}, got); d != "" {
		t.Error(d)
	}
}
