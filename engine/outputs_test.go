package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/fake"
	"gpuscope/engine/graph"
	"gpuscope/engine/graph/graphtest"
)

func TestAnyRemainingTensorCanBeAnOutput(t *testing.T) {
	dev := fake.New(fake.Options{})
	dev.OnDispatch = compute
	b := graph.NewBuilder(dev.Info().Limits)
	load := func(n uint32) func() ([]byte, error) {
		return func() ([]byte, error) { return graphtest.BytesOf([]uint32{n, n, n, n}), nil }
	}
	x := b.Input("x", graph.U32, []int{4}, []int{4})
	b.Constant("behind", graph.U32, []int{4}, load(1)) // so that c is not at the start of its buffer
	c, from := b.Constant(
		"c",
		graph.U32,
		[]int{4},
		load(7),
	), b.StateFrom(
		"from",
		graph.U32,
		[]int{4},
		load(9),
	)
	zeros := b.State("zeros", graph.U32, []int{4})
	graphtest.StoreOp(b, x, zeros)
	y := graphtest.Unary(b, "y", x)
	z := graphtest.Unary(b, "z", y)
	outputs := []graph.ValueID{y, x, c, y, from, z, zeros}
	ex, err := Load(dev, graphtest.Finish(t, b, outputs...), graph.LiveOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ex.Release()
	in := &graph.StepInput{
		Inputs: []graph.InputData{
			{Value: x, Dims: []int{4}, Data: graphtest.BytesOf([]uint32{1, 2, 3, 4})},
		}, Read: outputs,
	}
	read := func(want map[graph.ValueID][]uint32) {
		t.Helper()
		for _, v := range outputs {
			got := make([]byte, 16)
			if _, err := ex.Output(v, got); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want[v], graphtest.Words(got)); d != "" {
				t.Errorf("output %s (-want +got):\n%s", ex.Graph().Values[v].Name, d)
			}
		}
	}
	want := map[graph.ValueID][]uint32{
		x: {1, 2, 3, 4}, y: {2, 3, 4, 5}, z: {3, 4, 5, 6}, c: {7, 7, 7, 7}, from: {9, 9, 9, 9},
		zeros: {1, 2, 3, 4},
	}
	if err := ex.Step(context.Background(), in, TimingOff); err != nil {
		t.Fatal(err)
	}
	read(want)
	if err := ex.WriteValue(from, graphtest.BytesOf([]uint32{5, 5, 5, 5})); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 16)
	if err := ex.ReadValue(from, got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]uint32{5, 5, 5, 5}, graphtest.Words(got)); d != "" {
		t.Errorf("what was written (-want +got):\n%s", d)
	}
}

// Constants are stored one after another, each at an offset where a binding may start, in as few buffers as
// the device's limit allows. Kernels, reads and writes access only the constant that they name.
func TestConstantsLieInFewBuffers(t *testing.T) {
	const most = 2048
	limits := gpu.DefaultLimits()
	limits.MaxBufferSize = most
	dev := fake.New(fake.Options{Info: gpu.AdapterInfo{Limits: limits}})
	dev.OnDispatch = compute
	b := graph.NewBuilder(dev.Info().Limits)
	var constants, sums []graph.ValueID
	x := b.Input("x", graph.U32, []int{4}, []int{4})
	content := func(i, n int) []uint32 { return slices.Repeat([]uint32{uint32(10 * i)}, n) }
	for i, n := range []int{4, 64, 65, 200, most/4 - 64, 64, 4, most / 4, 4} {
		c := b.Constant(fmt.Sprint("c", i), graph.U32, []int{n},
			func() ([]byte, error) { return graphtest.BytesOf(content(i, n)), nil })
		constants = append(constants, c)
		if n == 4 {
			sums = append(sums, graphtest.AddOp(b, fmt.Sprint("sum", i), x, c))
		}
	}
	ex, err := Load(dev, graphtest.Finish(t, b, sums...), graph.LiveOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ex.Release()
	var sizes []uint64
	for _, c := range dev.Log {
		if c.Kind == fake.NewBuffer && strings.HasPrefix(c.Label, "constants") {
			sizes = append(sizes, c.Size)
		}
	}
	if want := []uint64{1824, most, 16, most, 16}; !slices.Equal(sizes, want) {
		t.Errorf("buffers of %d bytes, want %d", sizes, want)
	}
	in := &graph.StepInput{
		Inputs: []graph.InputData{
			{Value: x, Dims: []int{4}, Data: graphtest.BytesOf([]uint32{1, 2, 3, 4})},
		}, Read: sums,
	}
	if err := ex.WriteValue(constants[0], graphtest.BytesOf(content(7, 4))); err != nil {
		t.Fatal(err)
	}
	if err := ex.Step(context.Background(), in, TimingOff); err != nil {
		t.Fatal(err)
	}
	for i, of := range []uint32{70, 60, 80} {
		got := make([]byte, 16)
		if _, err := ex.Output(sums[i], got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]uint32{of + 1, of + 2, of + 3, of + 4}, graphtest.Words(got)); d != "" {
			t.Errorf("sum %d (-want +got):\n%s", i, d)
		}
	}
	for i, c := range constants[1:] {
		n := ex.Graph().Values[c].MaxDims[0]
		got := make([]byte, 4*n-4)
		if err := ex.ReadPart(c, 4, got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(content(i+1, n)[1:], graphtest.Words(got)); d != "" {
			t.Errorf("c%d (-want +got):\n%s", i+1, d)
		}
	}
}

// Outputs of one dispatch that only the host reads are copied to the host in one copy. If a kernel reads one
// of them, or some were not requested, separate copies are made where necessary.
func TestOutputsOfOneDispatchComeByOneCopy(t *testing.T) {
	for name, c := range map[string]struct {
		read   bool // a kernel reads y
		wanted []int
		copies int
	}{
		"all":                {false, []int{0, 1, 2}, 1},
		"all but the middle": {false, []int{0, 2}, 1},
		"the last":           {false, []int{2}, 1},
		"backwards":          {false, []int{2, 1, 0}, 3},
		"the same one twice": {false, []int{1, 1}, 1},
		"one is read":        {true, []int{0, 1, 2}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			dev := fake.New(fake.Options{})
			dev.OnDispatch = func(d fake.Dispatch) {
				for i, bound := range d.Bound[1 : len(d.Bound)-1] {
					if d.Pipeline == "three" {
						copy(bound.Bytes, graphtest.BytesOf([]uint32{uint32(i), uint32(10 * i)}))
					}
				}
			}
			b := graph.NewBuilder(dev.Info().Limits)
			x := b.Input("x", graph.U32, []int{1}, []int{100})
			var outputs []graph.ValueID
			for i := range 3 {
				outputs = append(outputs, b.Tensor(fmt.Sprint("y", i), graph.U32))
			}
			all := append([]graph.ValueID{x}, outputs...)
			b.Add("three", &graphtest.FuncOp{
				Declares: graph.Spec{
					Kind: "three", Inputs: []graph.ValueID{x}, Outputs: outputs,
					Slots: []graph.Slot{
						{
							Uses: []graph.Use{
								graphtest.On(graphtest.TestKernel("three", "rwww", 1, ""), all...),
							},
						},
					},
				},
				Bounds: func(r *graph.Ranges) []graph.Corner { return r.Ends(x) },
				Plans: func(p *graph.Planner) error {
					for _, y := range outputs {
						p.SetDims(y, p.Dims(x)...)
					}
					p.Dispatch(0, graphtest.Threads(p, p.Numel(x), 64)).Params.U32("p0", p.Numel(x))
					return nil
				},
			})
			asked := slices.Clone(outputs)
			if c.read {
				asked = append(asked, graphtest.Unary(b, "z", outputs[0]))
			}
			ex, err := Load(dev, graphtest.Finish(t, b, asked...), graph.LiveOptions{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer ex.Release()
			in := &graph.StepInput{
				Inputs: []graph.InputData{{Value: x, Dims: []int{2}, Data: make([]byte, 8)}},
			}
			for _, i := range c.wanted {
				in.Read = append(in.Read, outputs[i])
			}
			dev.ResetCounts()
			if err := ex.Step(context.Background(), in, TimingOff); err != nil {
				t.Fatal(err)
			}
			if n := dev.Count(fake.CopyOut); n != c.copies {
				t.Errorf("%d copies, want %d", n, c.copies)
			}
			for _, i := range c.wanted {
				got := make([]byte, 400)
				n, err := ex.Output(outputs[i], got)
				if err != nil || n != 8 {
					t.Fatal(n, err)
				}
				if d := cmp.Diff([]uint32{uint32(i), uint32(10 * i)}, graphtest.Words(got[:n])); d != "" {
					t.Errorf("output %d (-want +got):\n%s", i, d)
				}
			}
		})
	}
}

func TestOnlyTensorsAfterAStepCanBeOutputs(t *testing.T) {
	for want, output := range map[string]func(b *graph.Builder) graph.ValueID{
		"output n: input symint": func(b *graph.Builder) graph.ValueID {
			return b.SymInt("n", 0, 9, 0)
		},
		"output s: scratch tensor": func(b *graph.Builder) graph.ValueID {
			return b.Scratch("s", graph.U32)
		},
		"output t: operator": func(b *graph.Builder) graph.ValueID {
			return b.Tensor("t", graph.U32)
		},
		"y (unary): t before": func(b *graph.Builder) graph.ValueID {
			return graphtest.Unary(b, "y", b.Tensor("t", graph.U32))
		},
		"y (plus): n before": func(b *graph.Builder) graph.ValueID {
			graphtest.Plus(b, "y", b.SymInt("m", 0, 9, 0), b.SymIntOut("n"))
			return graph.None
		},
	} {
		b := graph.NewBuilder(gpu.DefaultLimits())
		b.Output(output(b))
		if err := b.Err(); !graphtest.Mentions(err, want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
