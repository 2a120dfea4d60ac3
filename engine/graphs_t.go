package engine

import (
	"encoding/binary"
	"flag"
	"fmt"
	"gpuscope/engine/gpu"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

const rows, width = 512, 16

func rowsInput(b *Builder, name string) ValueID {
	return b.Input(name, U32, []int{1, width}, []int{rows, width})
}

func finish(t testing.TB, b *Builder, outputs ...ValueID) *Graph {
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

func newLive(t testing.TB, g *Graph, o LiveOptions) *Live {
	t.Helper()
	l, err := NewLive(g, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func resize(l *Live, v ValueID, dims ...int) error {
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

// state is all that a resize may change, in a form that compares and prints.
func state(l *Live) []string {
	var s []string
	for i := range l.Graph().values {
		s = append(s, fmt.Sprint(l.Graph().values[i].name, l.Dims(ValueID(i)), l.Int(ValueID(i))))
	}
	for _, id := range l.Active() {
		launch, k := l.Launch(id)
		s = append(s, fmt.Sprint(id, k.Name, launch.Grid, launch.Params.Bytes(), launch.Bytes, launch.FLOPs))
	}
	return append(s, fmt.Sprint("levels", l.Levels()))
}

// randomGraph draws a graph of residual branches, routes, aliases, operators of several dispatches, what one
// leaves and another makes, and SymInt arithmetic over one or two dynamic lengths. What no operator reads is
// an output, so that nothing is computed in vain.
func randomGraph(t *rapid.T, limits gpu.Limits) (*Graph, []ValueID, ValueID) {
	b := NewBuilder(limits)
	if rapid.Bool().Draw(t, "fuse") {
		b.Fuse(sumRule, pairRule)
	}
	if rapid.Bool().Draw(t, "short passes") {
		b.PassBytes(1)
	}
	inputs := []ValueID{rowsInput(b, "x")}
	if rapid.Bool().Draw(t, "second input") {
		inputs = append(inputs, rowsInput(b, "y"))
	}
	pos := b.SymInt("pos", 1, rows, rows)
	symInts := []ValueID{pos}
	same := [][]ValueID{} // by input: tensors of that input's length
	for _, v := range inputs {
		same = append(same, []ValueID{v})
	}
	read := map[ValueID]bool{}
	for _, v := range inputs {
		read[v] = true // or an input, which is no output
	}
	pick := func(list []ValueID) ValueID {
		v := rapid.SampledFrom(list).Draw(t, "operand")
		read[v] = true
		return v
	}
	for i := range rapid.IntRange(1, 24).Draw(t, "operators") {
		k := rapid.IntRange(0, len(same)-1).Draw(t, "family")
		name := fmt.Sprint("n", i)
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0, 1:
			same[k] = append(same[k], unary(b, name, pick(same[k])))
		case 2, 3:
			same[k] = append(same[k], addOp(b, name, pick(same[k]), pick(same[k])))
		case 4:
			same[k] = append(same[k], routed(b, name, pick(same[k])))
		case 5:
			symInts = append(symInts, size(b, name, pick(same[k])))
		case 6:
			if len(symInts) < 6 {
				symInts = append(symInts, plus(b, name, pick(symInts), pick(symInts)))
			}
			same = append(same, []ValueID{cut(b, name+"cut", pick(same[k]), pick(symInts))})
		case 7:
			near, far := fork(b, name, pick(same[k]))
			same[k] = append(same[k], near, far)
		case 8:
			same[k] = append(same[k], alias(b, name, pick(same[k])))
		case 9:
			left := leftOp(b, name+"left", pick(same[k]))
			if rapid.Bool().Draw(t, "something between") {
				same[k] = append(same[k], unary(b, name+"between", pick(same[k])))
			}
			same[k] = append(same[k], makesOp(b, name, pick(same[k]), left, false), left)
			read[left] = true
		}
	}
	last := same[len(same)-1]
	read[last[len(last)-1]] = true
	b.Output(unary(b, "end", last[len(last)-1]))
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

// draws makes rapid try a property n times in this test; a tenth of that with -short.
func draws(t *testing.T, n int) {
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

// evaluate is what a graph of test operators gives, on the host: every value by its own rule, in graph order,
// each in memory of its own. Dims are taken from nowhere but the inputs and SymInts.
func evaluate(g *Graph, inputs map[ValueID][]uint32, symInts map[ValueID]int) map[ValueID][]uint32 {
	at := map[ValueID][]uint32{}
	for v, data := range inputs {
		at[v] = data
	}
	ints := map[ValueID]int{}
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
	g.Operators(func(_ OpID, _ string, op Operator) bool {
		switch o := op.(type) {
		case *unaryOp:
			at[o.out] = each(at[o.in], func(_ int, x uint32) uint32 { return x + 1 })
		case *pairOp:
			for _, u := range []*unaryOp{o.first, o.second} {
				at[u.out] = each(at[u.in], func(_ int, x uint32) uint32 { return x + 1 })
			}
		case *binaryOp:
			at[o.out] = each(at[o.a], func(i int, x uint32) uint32 { return x + at[o.b][i] })
		case *addOneOp:
			at[o.out] = each(at[o.a], func(i int, x uint32) uint32 { return x + at[o.b][i] + 1 })
		case *routedOp:
			at[o.out] = each(at[o.in], func(i int, _ uint32) (sum uint32) {
				for j := range width {
					sum += at[o.in][i/width*width+j]
				}
				return sum
			})
		case *forkOp:
			at[o.near] = each(at[o.in], func(_ int, x uint32) uint32 { return x + 1 })
			at[o.far] = each(at[o.in], func(_ int, x uint32) uint32 { return 2*x + 2 })
		case *cutOp:
			at[o.out] = at[o.in][:min(len(at[o.in]), ints[o.rows]*width)]
		case *aliasOp:
			at[o.out] = at[o.in]
		case *sizeOp:
			ints[o.out] = len(at[o.in]) / width
		case *plusOp:
			ints[o.out] = ints[o.a] + ints[o.b]
		case *funcOp: // leaves, or makes what is left
			x := at[o.spec.Inputs[0]]
			one := each(x, func(_ int, x uint32) uint32 { return x + 1 })
			for _, v := range o.spec.Outputs {
				at[v] = one
			}
			for _, v := range o.spec.Makes {
				if len(x) == width {
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

// words is bytes as a kernel sees them.
func words(data []byte) []uint32 {
	list := make([]uint32, len(data)/4)
	for i := range list {
		list[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	return list
}

// bytesOf is words as a buffer holds them.
func bytesOf(words []uint32) []byte {
	data := make([]byte, 0, 4*len(words))
	for _, w := range words {
		data = binary.LittleEndian.AppendUint32(data, w)
	}
	return data
}

// pattern is n rows of words that differ.
func pattern(n int, seed uint32) []uint32 {
	list := make([]uint32, n*width)
	for i := range list {
		list[i] = (uint32(i) + seed) * 2654435761
	}
	return list
}
