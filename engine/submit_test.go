package engine

import (
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/fake"
	"gpuscope/engine/graph"
	"gpuscope/engine/graph/graphtest"
	"gpuscope/trace"
)

// pieces returns the pipelines of each submit of the last step, and the number of waits.
func pieces(dev *fake.Device) (submits [][]string, waits int) {
	var piece []string
	for _, c := range dev.Log {
		switch c.Kind {
		case fake.Run:
			piece = append(piece, c.Label)
		case fake.Submit:
			submits, piece = append(submits, piece), nil
		case fake.Wait:
			waits++
		}
	}
	return submits, waits
}

// The host submits the first dispatches of a step before it encodes the rest. All dispatches still run in
// order, each piece ends where a barrier is needed, and no timed block is split.
func TestAStepIsSubmittedWhileItIsEncoded(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g, _ := layered(t, rapid.IntRange(1, 100).Draw(rt, "layers"), 1<<30, branched)
		dev := fake.New(fake.Options{})
		x, err := Load(dev, g, graph.LiveOptions{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer x.Release()
		timing := rapid.SampledFrom([]Timing{TimingOff, TimingStep, TimingBlock, TimingDispatch}).
			Draw(rt, "timing")
		var in graph.StepInput
		for _, v := range g.Inputs() {
			in.Inputs = append(
				in.Inputs,
				graph.InputData{
					Value: v,
					Dims:  []int{graphtest.Rows, graphtest.Width},
					Data:  make([]byte, 4*graphtest.Rows*graphtest.Width),
				},
			)
		}
		dev.Log = nil
		if err := x.Step(context.Background(), &in, timing); err != nil {
			rt.Fatal(err)
		}
		submits, waits := pieces(dev)
		active, s := x.live.Active(), x.last
		if cut := len(active) >= 2*firstPiece; (len(submits) > 1) != cut && timing != TimingBlock {
			rt.Errorf("%d dispatches in %d submits", len(active), len(submits))
		}
		if waits != 1 || s.submits != len(submits) {
			rt.Errorf("%d waits; %d submits, %d recorded", waits, len(submits), s.submits)
		}
		if (s.overlapped > 0) != (len(submits) > 1) || s.overlapped >= s.encode+s.submit {
			rt.Errorf("%d ns of %d and %d overlap", s.overlapped, s.encode, s.submit)
		}
		at := 0
		for i, piece := range submits {
			if i > 0 && !slices.Contains(x.live.Levels(), active[at]) {
				rt.Errorf("piece %d begins within a level", i)
			}
			if i > 0 && timing == TimingBlock && timing.together(g, active[at-1], active[at]) {
				rt.Errorf("piece %d begins within a block", i)
			}
			if i < len(submits)-1 && len(piece) < max(firstPiece, at) {
				rt.Errorf("piece %d, after %d dispatches, has %d", i, at, len(piece))
			}
			for _, label := range piece {
				if want := x.kernelOf(active[at]); label != want {
					rt.Fatalf("dispatch %d is %s, want %s", at, label, want)
				}
				at++
			}
		}
		if at != len(active) {
			rt.Errorf("%d of %d dispatches ran", at, len(active))
		}
	})
}

// kernelOf returns the name of the kernel in use.
func (x *Executor) kernelOf(id trace.DispatchID) string {
	d := &x.g.Dispatches[id]
	return x.g.KernelNames[x.g.Ops[d.Op].Spec.Slots[d.Slot].Uses[x.live.Plans[d.Op].Route].Kernel]
}

// On a software device the results do not depend on how a step is split; the goldens of the models check
// that. If the second piece is canceled or fails, the next step is not affected.
func TestAFailedPieceLeavesTheNextStepWhole(t *testing.T) {
	for _, kind := range []fake.Kind{fake.Begin, fake.BeginPass, fake.Run, fake.EndPass, fake.Submit} {
		g, _ := layered(t, 40, 1<<30, branched)
		dev := fake.New(fake.Options{Info: gpu.AdapterInfo{}})
		x, err := Load(dev, g, graph.LiveOptions{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var in graph.StepInput
		for _, v := range g.Inputs() {
			in.Inputs = append(
				in.Inputs,
				graph.InputData{
					Value: v,
					Dims:  []int{graphtest.Rows, graphtest.Width},
					Data:  make([]byte, 4*graphtest.Rows*graphtest.Width),
				},
			)
		}
		submits := 0
		dev.Fault = func(c fake.Call) error {
			if c.Kind == fake.Submit {
				submits++
			}
			if c.Kind == kind && (submits == 1 && kind != fake.Submit || submits == 2) {
				return gpu.ErrOutOfMemory
			}
			return nil
		}
		if err := x.Step(context.Background(), &in, TimingStep); err == nil {
			t.Errorf("%v: no error", kind)
		}
		if last := dev.Log[len(dev.Log)-1]; last.Kind != fake.Wait {
			t.Errorf("%v: the last call was %v: the first piece still runs", kind, last.Kind)
		}
		dev.Fault = nil
		if err := x.Step(context.Background(), &in, TimingStep); err != nil {
			t.Errorf("%v: the step after: %v", kind, err)
		}
		if n := len(dev.Misuse()); n > 0 {
			t.Errorf("%v: misuse: %v", kind, dev.Misuse())
		}
		x.Release()
	}
}
