package engine

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gpuscope/engine/gpu/fake"
	"gpuscope/engine/graph"
	"gpuscope/engine/graph/graphtest"
	"gpuscope/trace"
)

// compute computes the test kernels on the fake device's bytes.
func compute(d fake.Dispatch) {
	var params [2]int
	for i, w := range graphtest.Words(d.Bound[len(d.Bound)-1].Bytes)[:2] {
		params[i] = int(w)
	}
	n, width := params[0], params[1]
	in, out := graphtest.Words(d.Bound[0].Bytes), d.Bound[len(d.Bound)-2].Bytes
	put := func(i int, v uint32) { binary.LittleEndian.PutUint32(out[4*i:], v) }
	sum := func(row int) (s uint32) {
		for _, v := range in[row*width:][:width] {
			s += v
		}
		return s
	}
	switch d.Pipeline {
	case "copy":
		for i := range n {
			put(i, in[i])
		}
	case "unary":
		for i := range n {
			put(i, in[i]+1)
		}
	case "binary":
		other := graphtest.Words(d.Bound[1].Bytes)
		for i := range n {
			put(i, in[i]+other[i])
		}
	case "addone":
		other := graphtest.Words(d.Bound[1].Bytes)
		for i := range n {
			put(i, in[i]+other[i]+1)
		}
	case "one":
		for j := range width {
			put(j, sum(0))
		}
	case "many":
		for r := range n {
			put(r, sum(r))
		}
	case "spread":
		for i := range n * width {
			put(i, in[i/width])
		}
	}
}

// rig is a graph on a fake device.
type rig struct {
	dev       *fake.Device
	x         *Executor
	in, n, of graph.ValueID // input tensor, SymInt, output
}

func newRig(t testing.TB, o fake.Options) *rig {
	t.Helper()
	r := &rig{dev: fake.New(o)}
	r.dev.OnDispatch = compute
	b := graph.NewBuilder(r.dev.Info().Limits)
	r.in = graphtest.RowsInput(b, "x")
	r.n = b.SymInt("n", 1, graphtest.Rows, graphtest.Rows)
	y := graphtest.Residual(b, "a", r.in, 2)
	y = graphtest.Routed(b, "r", y)
	r.of = graphtest.Residual(b, "b", graphtest.Cut(b, "cut", y, r.n), 2)
	g := graphtest.Finish(t, b, r.of)
	x, err := Load(r.dev, g, graph.LiveOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.x = x
	t.Cleanup(func() {
		x.Release()
		r.dev.Release()
		if errs := r.dev.Misuse(); len(errs) > 0 {
			t.Error("the device was misused:", errs)
		}
	})
	return r
}

func (r *rig) input(n, cut int) *graph.StepInput {
	return &graph.StepInput{
		Inputs: []graph.InputData{
			{Value: r.in, Dims: []int{n, graphtest.Width}, Data: graphtest.BytesOf(graphtest.Pattern(n, 0))},
		},
		SymInts: []graph.SymIntValue{{Value: r.n, Int: int64(cut)}},
		Read:    []graph.ValueID{r.of},
	}
}

// want returns the expected output.
func (r *rig) want(n, cut int) []uint32 {
	return graphtest.Evaluate(r.x.g, map[graph.ValueID][]uint32{r.in: graphtest.Pattern(n, 0)},
		map[graph.ValueID]int{r.n: cut})[r.of]
}

func (r *rig) output(t testing.TB) []uint32 {
	t.Helper()
	dst := make([]byte, 4*graphtest.Rows*graphtest.Width)
	n, err := r.x.Output(r.of, dst)
	if err != nil {
		t.Fatal(err)
	}
	return graphtest.Words(dst[:n])
}

func (r *rig) mustStep(t testing.TB, n, cut int) {
	t.Helper()
	if err := r.x.Step(context.Background(), r.input(n, cut), TimingDispatch); err != nil {
		t.Fatalf("step of %d rows cut to %d: %v", n, cut, err)
	}
	if d := cmp.Diff(r.want(n, cut), r.output(t)); d != "" {
		t.Fatalf("step of %d rows cut to %d:\n%s", n, cut, d)
	}
}

// Step returns the record of the executor's last step and the new plans.
func (r *Recorder) Step() ([]trace.Plan, trace.Step) { return r.Snapshot().Record() }
