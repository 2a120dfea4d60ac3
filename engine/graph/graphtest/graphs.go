package graphtest

import (
	"encoding/binary"
	"flag"
	"fmt"
	"slices"
	"testing"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"

	"pgregory.net/rapid"
)

// Rows is the largest number of rows of a test graph's inputs, and Width is the length of each row.
const Rows, Width = 512, 16

// RowsInput declares a graph input with 1 to Rows rows.
func RowsInput(b *graph.Builder, name string) graph.ValueID {
	return b.Input(name, graph.U32, []int{1, Width}, []int{Rows, Width})
}

// Finish declares the outputs of a graph, builds it, and fails the test on an error.
func Finish(t testing.TB, b *graph.Builder, outputs ...graph.ValueID) *graph.Graph {
	t.Helper()
	for _, v := range outputs {
		b.Output(v)
	}
	g, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// NewLive returns the live state of a graph, and fails the test on an error.
func NewLive(t testing.TB, g *graph.Graph, o graph.LiveOptions) *graph.Live {
	t.Helper()
	l, err := graph.NewLive(g, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Resize sets the live dims of one input and commits the change. After an error l is unchanged.
func Resize(l *graph.Live, v graph.ValueID, dims ...int) error {
	if err := l.SetDims(v, dims...); err != nil {
		l.Discard()
		return err
	}
	if err := l.Propagate(); err != nil {
		return err
	}
	l.Commit()
	return nil
}

// State returns everything that a resize may change, as strings that tests can compare and print.
func State(l *graph.Live) []string {
	var s []string
	for i := range l.Graph().Values {
		s = append(s, fmt.Sprint(l.Graph().Values[i].Name, l.Dims(graph.ValueID(i)), l.Int(graph.ValueID(i))))
	}
	for _, id := range l.Active() {
		launch, k := l.Launch(id)
		s = append(s, fmt.Sprint(id, k.Name, launch.Grid, launch.Params.Bytes(), launch.Bytes, launch.FLOPs))
	}
	return append(s, fmt.Sprint("levels", l.Levels()))
}

// RandomGraph draws a random graph with one or two inputs of dynamic length. The graph may contain residual
// branches, routes, aliases, operators with several dispatches, deferred outputs that another operator
// materializes, and SymInt arithmetic. Every tensor that no operator reads becomes a graph output, so that no
// result is unused. It returns the graph, its inputs and the input SymInt "pos".
func RandomGraph(t *rapid.T, limits gpu.Limits) (*graph.Graph, []graph.ValueID, graph.ValueID) {
	b := graph.NewBuilder(limits)
	if rapid.Bool().Draw(t, "fuse") {
		b.Fuse(SumRule, PairRule)
	}
	if rapid.Bool().Draw(t, "short passes") {
		b.PassBytes(1)
	}
	inputs := []graph.ValueID{RowsInput(b, "x")}
	if rapid.Bool().Draw(t, "second input") {
		inputs = append(inputs, RowsInput(b, "y"))
	}
	pos := b.SymInt("pos", 1, Rows, Rows)
	symInts := []graph.ValueID{pos}
	same := [][]graph.ValueID{} // groups of tensors with the same shape, one group per input at first
	for _, v := range inputs {
		same = append(same, []graph.ValueID{v})
	}
	read := map[graph.ValueID]bool{}
	for _, v := range inputs {
		read[v] = true // an input must not become an output, even if no operator reads it
	}
	pick := func(list []graph.ValueID) graph.ValueID {
		v := rapid.SampledFrom(list).Draw(t, "operand")
		read[v] = true
		return v
	}
	for i := range rapid.IntRange(1, 24).Draw(t, "operators") {
		k := rapid.IntRange(0, len(same)-1).Draw(t, "family")
		name := fmt.Sprint("n", i)
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0, 1:
			same[k] = append(same[k], Unary(b, name, pick(same[k])))
		case 2, 3:
			same[k] = append(same[k], AddOp(b, name, pick(same[k]), pick(same[k])))
		case 4:
			same[k] = append(same[k], Routed(b, name, pick(same[k])))
		case 5:
			symInts = append(symInts, Size(b, name, pick(same[k])))
		case 6:
			if len(symInts) < 6 {
				symInts = append(symInts, Plus(b, name, pick(symInts), pick(symInts)))
			}
			same = append(same, []graph.ValueID{Cut(b, name+"cut", pick(same[k]), pick(symInts))})
		case 7:
			near, far := Fork(b, name, pick(same[k]))
			same[k] = append(same[k], near, far)
		case 8:
			same[k] = append(same[k], Alias(b, name, pick(same[k])))
		case 9:
			left := DeferOp(b, name+"left", pick(same[k]))
			if rapid.Bool().Draw(t, "something between") {
				same[k] = append(same[k], Unary(b, name+"between", pick(same[k])))
			}
			same[k] = append(same[k], MaterializeOp(b, name, pick(same[k]), left, false), left)
			read[left] = true
		}
	}
	last := same[len(same)-1]
	read[last[len(last)-1]] = true
	b.Output(Unary(b, "end", last[len(last)-1]))
	for _, v := range slices.Concat(same...) {
		if !read[v] {
			b.Output(v)
			read[v] = true
		}
	}
	g, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return g, inputs, pos
}

// Draws sets the number of random cases with which package rapid checks each property of this test. This
// number is n, or n/10 under -short.
func Draws(t *testing.T, n int) {
	if testing.Short() {
		n /= 10
	}
	f := flag.Lookup("rapid.checks")
	was := f.Value.String()
	t.Cleanup(func() { f.Value.Set(was) })
	if err := f.Value.Set(fmt.Sprint(n)); err != nil {
		t.Fatal(err)
	}
}

// Evaluate computes all values of a graph of test operators on the host, as a reference for tests. It
// evaluates the operators in graph order, with separate memory for each value. It derives the shapes only
// from the inputs and SymInts, not from the graph's plans.
func Evaluate(
	g *graph.Graph,
	inputs map[graph.ValueID][]uint32,
	symInts map[graph.ValueID]int,
) map[graph.ValueID][]uint32 {
	at := map[graph.ValueID][]uint32{}
	for v, data := range inputs {
		at[v] = data
	}
	ints := map[graph.ValueID]int{}
	for v, n := range symInts {
		ints[v] = n
	}
	each := func(x []uint32, f func(i int, x uint32) uint32) []uint32 {
		y := make([]uint32, len(x))
		for i := range x {
			y[i] = f(i, x[i])
		}
		return y
	}
	g.Operators(func(_ graph.OpID, _ string, op graph.Operator) bool {
		switch o := op.(type) {
		case *UnaryOp:
			at[o.Out] = each(at[o.In], func(_ int, x uint32) uint32 { return x + 1 })
		case *pairOp:
			for _, u := range []*UnaryOp{o.first, o.second} {
				at[u.Out] = each(at[u.In], func(_ int, x uint32) uint32 { return x + 1 })
			}
		case *BinaryOp:
			at[o.Out] = each(at[o.A], func(i int, x uint32) uint32 { return x + at[o.B][i] })
		case *AddOneOp:
			at[o.Out] = each(at[o.A], func(i int, x uint32) uint32 { return x + at[o.B][i] + 1 })
		case *routedOp:
			at[o.Out] = each(at[o.In], func(i int, _ uint32) (sum uint32) {
				for j := range Width {
					sum += at[o.In][i/Width*Width+j]
				}
				return sum
			})
		case *ForkOp:
			at[o.Near] = each(at[o.In], func(_ int, x uint32) uint32 { return x + 1 })
			at[o.Far] = each(at[o.In], func(_ int, x uint32) uint32 { return 2*x + 2 })
		case *CutOp:
			at[o.Out] = at[o.In][:min(len(at[o.In]), ints[o.Rows]*Width)]
		case *aliasOp:
			at[o.Out] = at[o.In]
		case *sizeOp:
			ints[o.Out] = len(at[o.In]) / Width
		case *plusOp:
			ints[o.Out] = ints[o.A] + ints[o.B]
		case *FuncOp: // made by DeferOp or MaterializeOp
			x := at[o.Declares.Inputs[0]]
			one := each(x, func(_ int, x uint32) uint32 { return x + 1 })
			for _, v := range o.Declares.Outputs {
				at[v] = one
			}
			for _, v := range o.Declares.Materializes {
				if len(x) == Width {
					at[v] = one
				}
			}
		default:
			panic(fmt.Sprintf("evaluate does not know %T", o))
		}
		return true
	})
	return at
}

// Words converts the bytes of a buffer to little-endian u32 words.
func Words(data []byte) []uint32 {
	list := make([]uint32, len(data)/4)
	for i := range list {
		list[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	return list
}

// BytesOf converts u32 words to the little-endian bytes of a buffer.
func BytesOf(words []uint32) []byte {
	data := make([]byte, 0, 4*len(words))
	for _, w := range words {
		data = binary.LittleEndian.AppendUint32(data, w)
	}
	return data
}

// Pattern returns n rows of words that all differ. Another seed yields other words.
func Pattern(n int, seed uint32) []uint32 {
	list := make([]uint32, n*Width)
	for i := range list {
		list[i] = (uint32(i) + seed) * 2654435761
	}
	return list
}
