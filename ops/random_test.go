package ops

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/gputest"
	"gpuscope/engine/graph"
	"gpuscope/ops/internal/shape"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
	"gpuscope/ops/weight"
)

// Random graphs of the operators in Kinds. The type of an argument alone decides how it is drawn: an earlier
// result, a new constant or State, a number. A draw that an operator refuses is dropped, so the graphs are
// legal, and often unusual.

// rowsAtMostLive is the largest live number of rows of a random graph's inputs.
const rowsAtMostLive = 12

// grown is a random graph, stored as calls to a builder so that it can be rebuilt with more operators.
type grown struct {
	steps []func(b *graph.Builder, pool []graph.ValueID) []graph.ValueID
}

// build makes the graph. It returns all tensors and SymInts, the inputs first, and the number of inputs.
func (r *grown) build(b *graph.Builder) (pool []graph.ValueID, made int) {
	in := func(name string, t graph.DType, dims ...int) graph.ValueID {
		lowest := slices.Clone(dims)
		lowest[slices.Index(dims, rowsAtMostLive)] = 1
		return b.Input(name, t, lowest, dims)
	}
	pool = []graph.ValueID{
		in("x", graph.F32, rowsAtMostLive, 8), in("y", graph.F32, rowsAtMostLive, 8),
		in("wide", graph.F32, rowsAtMostLive, 64), in("h", graph.F32, 1, rowsAtMostLive, 2, 8),
		in("ids", graph.I32, rowsAtMostLive),
		b.SymInt("n", 1, 4, 1),
	}
	made = len(pool)
	for _, s := range r.steps {
		pool = append(pool, s(b, pool)...)
	}
	return pool, made
}

// live returns the live points at which the graph is tested.
func (r *grown) live() []step {
	var list []step
	for i, n := range []int{rowsAtMostLive, 1, 7} {
		list = append(list, step{
			"x": {n, 8}, "y": {n, 8}, "wide": {n, 64}, "h": {1, n, 2, 8}, "ids": {n}, "n": {1 + i},
		})
	}
	return list
}

// legal reports whether the graph can be built, and planned at every live point.
func (r *grown) legal(t failer) bool {
	b := tinyBuilder()
	r.build(b)
	g, err := b.Finish()
	if err != nil {
		return false
	}
	l, err := graph.NewLive(g, graph.LiveOptions{})
	for _, s := range r.live() {
		if err == nil {
			err = bring(l, (&trial{below: map[string]int{"ids": 8}}).input(t, g, s))
		}
	}
	return err == nil
}

// drawnKinds lists the kinds that a random graph can have. A product with the matrices of experts reads what
// a router sorted, and no other tensor.
var drawnKinds = slices.DeleteFunc(slices.Clone(Kinds), func(k kind.Kind) bool {
	return strings.HasPrefix(k.Name, "linear_experts")
})

// drawGrown draws a random graph of several operators.
func drawGrown(t *rapid.T) *grown {
	r := &grown{}
	for range rapid.IntRange(4, 40).Draw(t, "tries") {
		b := tinyBuilder()
		pool, _ := r.build(b)
		k := &drawnKinds[rapid.IntRange(0, len(drawnKinds)-1).Draw(t, "kind")]
		args := map[string]func(b *graph.Builder, pool []graph.ValueID) any{}
		for _, a := range k.Args {
			if a.Default == nil || rapid.Bool().Draw(t, a.Name) {
				args[a.Name] = drawFrom(t, b, pool, fmt.Sprintf("%d.%s", len(r.steps), a.Name), a.Type)
			}
		}
		name := fmt.Sprintf("%d.%s", len(r.steps), k.Name)
		add := func(b *graph.Builder, pool []graph.ValueID) []graph.ValueID {
			given := kind.Args{}
			for _, a := range k.Args {
				if give := args[a.Name]; give != nil {
					given[a.Name] = give(b, pool)
				}
			}
			return New(b, k.Name, name, given)
		}
		if more := (&grown{append(slices.Clone(r.steps), add)}); more.legal(t) {
			r = more
		}
	}
	return r
}

// drawFrom draws how to make an argument of a type from the values that exist so far.
func drawFrom(t *rapid.T, b *graph.Builder, pool []graph.ValueID, name string, typ kind.ArgType,
) func(*graph.Builder, []graph.ValueID) any {
	// of returns the indices in the pool of the values that may be used.
	of := func(may func(info graph.ValueInfo) bool) (list []int) {
		for i, v := range pool {
			if info, ok := b.Value(v); ok && may(info) {
				list = append(list, i)
			}
		}
		return list
	}
	tensors := of(func(info graph.ValueInfo) bool {
		return !info.SymInt && slices.Contains(typ.DTypes, info.DType)
	})
	switch typ.Form {
	case kind.TensorArg:
		if len(tensors) > 0 && rapid.IntRange(0, 4).Draw(t, name+" is new") > 0 {
			i := rapid.SampledFrom(tensors).Draw(t, name)
			return func(_ *graph.Builder, pool []graph.ValueID) any { return pool[i] }
		}
		dims := rapid.SampledFrom([][]int{{8}, {8, 8}, {rowsAtMostLive, 4}, {32, 8}}).Draw(t, name)
		return func(b *graph.Builder, _ []graph.ValueID) any { return constant(b, name, dims...) }
	case kind.TensorsArg:
		if len(tensors) == 0 {
			return func(*graph.Builder, []graph.ValueID) any { return []graph.ValueID{} }
		}
		taken := rapid.SliceOfN(rapid.SampledFrom(tensors), 1, 3).Draw(t, name)
		return func(_ *graph.Builder, pool []graph.ValueID) any {
			var list []graph.ValueID
			for _, i := range taken {
				list = append(list, pool[i])
			}
			return list
		}
	case kind.StateArg:
		dtype := rapid.SampledFrom(typ.DTypes).Draw(t, name)
		return func(b *graph.Builder, _ []graph.ValueID) any {
			return b.State(name, dtype, []int{1, 2 * rowsAtMostLive, 2, 8})
		}
	case kind.SymIntArg:
		ints := of(func(info graph.ValueInfo) bool { return info.SymInt })
		if rapid.Bool().Draw(t, name+" is a SymInt") {
			i := rapid.SampledFrom(ints).Draw(t, name)
			return func(_ *graph.Builder, pool []graph.ValueID) any { return pool[i] }
		}
	case kind.MatrixArg:
		f := weight.Formats[slices.IndexFunc(weight.Formats,
			func(f weight.Format) bool { return f.Name == typ.Format })]
		cols := rapid.SampledFrom([]int{8, 64}).Draw(t, name)
		return func(*graph.Builder, []graph.ValueID) any { return noiseMatrix(name, 16, cols, f) }
	}
	fixed := drawArg(t, b, name, typ, nil)
	return func(*graph.Builder, []graph.ValueID) any { return fixed }
}

// Every operator of a random graph computes on the GPU what its reference computes from the same arguments.
func TestRandomTableGraphsRunOnTheGPU(t *testing.T) {
	dev := gputest.Open(t)
	tried := map[string]int{}
	for seed := range 80 {
		r := rapid.Custom(drawGrown).Example(seed)
		t.Run(fmt.Sprint(seed), func(t *testing.T) { r.hold(t, dev, tried) })
	}
	t.Logf("%d kinds compared: %v", len(tried), tried)
	if len(tried) < len(drawnKinds)/2 { // operators on SymInts are only checked through shapes
		t.Errorf("of %d kinds only %d were compared: %v", len(drawnKinds), len(tried), tried)
	}
}

// hold runs the graph at each live point, with every result as an output. It compares each operator to its
// reference, which gets the arguments that the GPU had.
func (r *grown) hold(t *testing.T, dev gpu.Device, tried map[string]int) {
	if len(r.steps) == 0 {
		return // no drawn operator was legal
	}
	b := graph.NewBuilder(dev.Info().Limits)
	pool, made := r.build(b)
	for _, v := range pool[made:] {
		if info, _ := b.Value(v); !info.SymInt && !slices.Contains(pool[:made], v) {
			b.Output(v)
		}
	}
	g, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	x, err := engine.Load(dev, g, graph.LiveOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Release()
	ref, c := reference.NewInterpreter(g), &trial{below: map[string]int{"ids": 8}, abs: 1e-3, rel: 1e-3}
	operators := map[graph.OpID]graph.Spec{}
	g.Operators(func(id graph.OpID, _ string, o graph.Operator) bool {
		operators[id] = o.Spec()
		return true
	})
	for _, s := range r.live() {
		in := c.input(t, g, s)
		if err := x.Step(context.Background(), in, engine.TimingOff); err != nil {
			t.Fatal(err)
		}
		err := ref.Step(in, func(id graph.OpID) error {
			spec := operators[id]
			// A small error in a large input may become a large error, so these outputs are not compared.
			large := func(f float64) bool { return !(math.Abs(f) < 100) }
			tame := !slices.ContainsFunc(spec.Inputs, func(v graph.ValueID) bool {
				return slices.ContainsFunc(ref.Tensor(v).Data, large)
			})
			for _, v := range spec.Outputs {
				info := g.Value(v)
				if info.SymInt {
					continue
				}
				want := ref.Tensor(v)
				mem := make([]byte, info.DType.Bytes(shape.Product(want.Dims)))
				if err := x.ReadValue(v, mem); err != nil {
					return err
				}
				if tame {
					if err := c.compare(info, x.Live().Dims(v), mem, want); err != nil {
						return fmt.Errorf("%s: %w", spec.Kind, err)
					}
					tried[spec.Kind]++
				}
				data, err := reference.Decode(info.DType, mem, len(want.Data))
				if err != nil {
					return err
				}
				ref.SetTensor(v, reference.Tensor{Dims: want.Dims, Data: data})
			}
			return nil
		})
		if err != nil {
			t.Fatalf("%v: %v", s, err)
		}
	}
}
