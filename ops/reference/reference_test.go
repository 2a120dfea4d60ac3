package reference

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
)

// firstOp has a reference that reads a constant first in functions that run in parallel.
type firstOp struct {
	t           *testing.T
	weight, out graph.ValueID
}

func (o *firstOp) Spec() graph.Spec {
	return graph.Spec{Kind: "first", Inputs: []graph.ValueID{o.weight}, Outputs: []graph.ValueID{o.out}}
}

func (o *firstOp) Corners(*graph.Ranges) []graph.Corner { return []graph.Corner{{}} }

func (o *firstOp) Plan(p *graph.Planner) error {
	p.SetInt(o.out, 1)
	return nil
}

func (o *firstOp) Reference(r *Ref) {
	InParallel(make([]int, 64), func([]int) {
		time.Sleep(time.Millisecond) // so that one goroutine does not take all pieces
		if got := r.Tensor(o.weight).Data; !slices.Equal(got, []float64{1, 2}) {
			o.t.Errorf("elements %v, want 1 and 2", got)
		}
		r.Bytes(o.weight)
	})
	r.SetInt(o.out, 1)
}

func (o *firstOp) Tolerance(*Ref, graph.ValueID) Tolerance { return Tolerance{} }

// A constant is loaded once, also if several goroutines read it at the same time.
func TestConstantsAreReadInParallel(t *testing.T) {
	var loads atomic.Int64
	b := graph.NewBuilder(gpu.DefaultLimits())
	weight := b.Constant("weight", graph.F32, []int{2}, func() ([]byte, error) {
		loads.Add(1)
		return []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0x40}, nil
	})
	out := b.SymIntOut("out")
	b.Add("first", &firstOp{t, weight, out})
	g, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if err := NewInterpreter(g).Step(&graph.StepInput{}, nil); err != nil {
		t.Fatal(err)
	}
	if n := loads.Load(); n != 1 {
		t.Errorf("the constant was loaded %d times", n)
	}
}
