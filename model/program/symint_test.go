package program_test

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"gpuscope/engine/gpu/gputest"
	"gpuscope/internal/npy"
	"gpuscope/internal/wordingtest"
	p "gpuscope/model/checkpoint/pte/ptetest"
	"gpuscope/model/program"
)

// window is a graph that returns three elements of its input x, f32 [8], from a start that it computes from
// its input p, i32 [2, up to 4].
type window struct{ p.Graph }

// The values of a window.
const (
	windowX int32 = iota
	windowP
	windowOut
)

func (w *window) value(v p.Table) int32 {
	w.Values = append(w.Values, v)
	return int32(len(w.Values) - 1)
}

func (w *window) int(n int64) int32 { return w.value(p.GraphInt(n)) }

func (w *window) list(n ...int64) int32 { return w.value(p.Table{0: p.One(6, p.Table{0: n})}) }

func (w *window) op(name string, args ...int32) int32 {
	w.Operators = append(w.Operators, p.Operator(uint32(len(w.Operators)), name, args...))
	return args[len(args)-1]
}

// tensor adds an i32 tensor that an operator computes.
func (w *window) tensor(dims ...uint32) int32 { return w.value(p.GraphTensor(inI32, -1, -1, dims...)) }

// constant adds an i32 constant.
func (w *window) constant(v ...int32) int32 {
	at := uint64(len(w.Data))
	w.Data, _ = binary.Append(w.Data, binary.LittleEndian, v)
	w.Constants = append(w.Constants, p.Inline(at, uint64(4*len(v))))
	return w.value(p.GraphTensor(inI32, int32(len(w.Constants)-1), -1, uint32(len(v))))
}

func (w *window) symInt(x, dim, index int32) int32 {
	return w.op("et_vk.select_as_symint.default", x, dim, index, w.value(p.GraphSymInt()))
}

func newWindow(start func(w *window) int32) *window {
	w := &window{}
	w.value(p.GraphTensor(inF32, -1, -1, 8))
	w.value(p.GraphTensor(inI32, -1, -1, 2, 4))
	w.value(p.GraphTensor(inF32, -1, -1, 3))
	from := start(w)
	end := w.op("add", from, w.int(3), w.value(p.GraphSymInt()))
	w.op("aten.slice_copy.Tensor", windowX, w.int(0), from, end, w.int(1), windowOut)
	w.Inputs, w.Outputs = []uint32{uint32(windowX), uint32(windowP)}, []uint32{uint32(windowOut)}
	return w
}

var windowValues = []p.Table{p.Tensor(f32, 8), bounded(i64, 2, 4), p.Tensor(f32, 3)}

// windowStarts has a graph for each way in which a SymInt comes from the input 1, 2, 3, ... of two rows.
var windowStarts = map[string]struct {
	make func(w *window) int32
	want [2]float32 // start for rows of four and of two elements
	ops  []string   // kinds of the operators of the engine
}{
	"index vector": {func(w *window) int32 {
		return w.symInt(windowP, w.list(0, 1), w.list(1, -2))
	}, [2]float32{2, 3}, []string{"select_as_symint", "sym_add", "slice"}},
	"row of an input": {func(w *window) int32 {
		row := w.op("aten.select_copy.int", windowP, w.int(0), w.int(1), w.tensor(4))
		return w.symInt(row, w.int(0), w.int(-2))
	}, [2]float32{2, 3}, []string{"select_as_symint", "sym_add", "slice"}},
	"range, view and sum": {func(w *window) int32 {
		part := w.op("aten.slice_copy.Tensor", windowP, w.int(1), w.int(1), w.int(1<<62), w.int(1),
			w.tensor(2, 3))
		one := w.op("aten.select_copy.int", part, w.int(0), w.int(0), w.tensor(3))
		one = w.op("aten.slice_copy.Tensor", one, w.int(0), w.int(0), w.int(1), w.int(1), w.tensor(1))
		one = w.op("aten.view_copy.default", one, w.list(1, 1), w.tensor(1, 1))
		sum := w.op("aten.add.Tensor", one, w.constant(2), w.int(1), w.tensor(1, 1))
		two := w.op("et_vk.prepack.default", w.constant(1), w.tensor(1))
		sum = w.op("aten.sub.Tensor", sum, two, w.int(2), w.tensor(1, 1))
		return w.symInt(sum, w.int(1), w.int(0))
	}, [2]float32{1, 1}, []string{"select_as_symint", "sym_add", "slice"}},
	"sum": {func(w *window) int32 {
		sum := w.op("aten.add.Tensor", w.constant(1), windowP, w.int(1), w.tensor(2, 4))
		return w.symInt(sum, w.int(1), w.int(0))
	}, [2]float32{1, 1}, []string{"select_as_symint", "sym_add", "sym_add", "slice"}},
	"constant": {func(w *window) int32 {
		return w.symInt(w.op("et_vk.prepack.default", w.constant(7, 5, 1), w.tensor(3)), w.int(-1), w.int(1))
	}, [2]float32{5, 5}, []string{"slice"}},
}

func TestSymIntsComeFromElementsOfInputs(t *testing.T) {
	dev := gputest.Open(t)
	for name, c := range windowStarts {
		f := parse(t, &newWindow(c.make).Graph, windowValues)
		m, err := build(f)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var kinds []string
		for _, op := range m.Graph.Describe().Ops {
			kinds = append(kinds, op.Kind)
		}
		if !slices.Equal(kinds, c.ops) {
			t.Errorf("%s: operators %v, want %v", name, kinds, c.ops)
		}
		run := load(t, dev, f)
		for i, n := range []int{4, 2} {
			start := &npy.Array{Type: npy.Int64, Dims: []int{2, n}}
			for k := range 2 * n { // 0, 1, 2, 3, 0, 1, 2, 3 or 0, 1, 3, 4
				v := uint64(k % 4)
				if n == 2 && k > 1 {
					v++
				}
				start.Data = binary.LittleEndian.AppendUint64(start.Data, v)
			}
			out, err := run.Run(t.Context(), []*npy.Array{array(0, 1, 2, 3, 4, 5, 6, 7), start})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			s := c.want[i]
			if got := floats(out[0]); !slices.Equal(got, []float32{s, s + 1, s + 2}) {
				t.Errorf("%s, %d elements: %v, want them from %v", name, n, got, s)
			}
		}
	}
}

func TestSymIntsFromComputedElementsAreRefused(t *testing.T) {
	golden := wordingtest.New(t)
	var op *program.OperatorError
	for name, start := range map[string]func(w *window) int32{
		"computed": func(w *window) int32 {
			y := w.op("aten.flip.default", windowP, w.list(1), w.tensor(2, 4))
			return w.symInt(y, w.int(0), w.int(0))
		},
		"too few indices": func(w *window) int32 { return w.symInt(windowP, w.list(0, 1), w.list(1)) },
		"no such dim":     func(w *window) int32 { return w.symInt(windowP, w.int(2), w.int(0)) },
		"past a constant": func(w *window) int32 { return w.symInt(w.constant(1, 2), w.int(0), w.int(2)) },
	} {
		_, err := build(parse(t, &newWindow(start).Graph, windowValues))
		if !errors.As(err, &op) {
			t.Errorf("%s: %v, want an OperatorError", name, err)
		}
		golden.Error(name, err)
	}
	run := load(t, gputest.Open(t), parse(t, &newWindow(windowStarts["sum"].make).Graph, windowValues))
	far := &npy.Array{Type: npy.Int64, Dims: []int{2, 1}, Data: make([]byte, 16)}
	far.Data[0] = 7
	_, err := run.Run(t.Context(), []*npy.Array{array(0, 1, 2, 3, 4, 5, 6, 7), far})
	if !errors.Is(err, program.ErrInput) {
		t.Errorf("a start past the end: %v, want ErrInput", err)
	}
}
