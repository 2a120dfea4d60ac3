package reference

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/x448/float16"

	"gpuscope/engine/graph"
	"gpuscope/ops/internal/shape"
)

// Referencer is an operator that computes its outputs in float64, plainly and in its own words: from the
// values of its arguments, and from the bytes of its constants as its kernels read them, so that prepacking
// is held to account too. It trusts that the operator's plan took the shapes.
type Referencer interface {
	graph.Operator
	Reference(r *Ref)
	// Tolerance says how far an output, or the State that it writes, may be from the reference that has just
	// run.
	Tolerance(r *Ref, v graph.ValueID) Tolerance
}

// Tensor is a tensor in float64, dense and row-major. Integers are whole numbers.
type Tensor struct {
	Dims []int
	Data []float64
}

// Rows is the tensor as a matrix: its last dim, and how many rows of it there are.
func (t Tensor) Rows() (n, width int) { return len(t.Data) / shape.Last(t.Dims), shape.Last(t.Dims) }

// Row is row i of the matrix.
func (t Tensor) Row(i int) []float64 { return t.Data[i*shape.Last(t.Dims) : (i+1)*shape.Last(t.Dims)] }

// RowFor is row i of the matrix, or the last, since one may serve all.
func (t Tensor) RowFor(i int) []float64 {
	n, _ := t.Rows()
	return t.Row(min(i, n-1))
}

// Zeros is a tensor of these dims.
func Zeros(dims ...int) Tensor { return Tensor{dims, make([]float64, shape.Product(dims))} }

// Choice is a part of a tensor, as a matrix of its last dim: the elements in these rows and these columns;
// nil is all of them. Those that are not there are passed over.
type Choice struct{ Rows, Cols []int }

// Interpreter runs a graph by the references of its operators. State is kept from step to step.
type Interpreter struct {
	choices map[graph.ValueID]Choice
	left    map[graph.ValueID]bool
	g       *graph.Graph
	ops     []operator
	tensors []Tensor
	ints    []int64
	host    [][]int64
	bytes   [][]byte // of constants, once loaded
	err     error
}

// Ref is what a reference reads from and writes to. Its first error ends the step.
type Ref struct {
	x    *Interpreter
	name string
}

// NewInterpreter readies a graph; State is zero.
func NewInterpreter(g *graph.Graph) *Interpreter {
	x := &Interpreter{
		g: g, left: map[graph.ValueID]bool{},
		tensors: make([]Tensor, g.NumValues()), ints: make([]int64, g.NumValues()),
		host: make([][]int64, g.NumValues()), bytes: make([][]byte, g.NumValues()),
	}
	g.Operators(func(id graph.OpID, name string, o graph.Operator) bool {
		x.ops = append(x.ops, operator{id, name, o})
		return true
	})
	return x
}

// Beside is another interpreter of the graph, which shares the bytes of constants with x.
func (x *Interpreter) Beside() *Interpreter {
	y := NewInterpreter(x.g)
	y.bytes = x.bytes
	return y
}

// operator is one of the graph, in execution order.
type operator struct {
	id   graph.OpID
	name string
	impl graph.Operator
}

// Step runs the graph on the inputs of a step. Inputs that in does not name keep their values. After each
// operator it calls visit, which may be nil; an error of visit ends the step.
func (x *Interpreter) Step(in *graph.StepInput, visit func(graph.OpID) error) error {
	if err := x.Begin(in); err != nil {
		return err
	}
	for i := range x.ops {
		if err := x.run(&x.ops[i]); err != nil {
			return err
		}
		if visit != nil {
			if err := visit(x.ops[i].id); err != nil {
				return err
			}
		}
	}
	return nil
}

// Begin takes the inputs of a step, for who calls Run for each operator.
func (x *Interpreter) Begin(in *graph.StepInput) error {
	clear(x.left)
	for _, s := range in.SymInts {
		x.ints[s.Value] = s.Int
	}
	for _, t := range in.Inputs {
		data, err := Decode(x.g.Value(t.Value).DType, t.Data, shape.Product(t.Dims))
		if err != nil {
			return fmt.Errorf("input %s: %w", x.g.Value(t.Value).Name, err)
		}
		x.tensors[t.Value], x.host[t.Value] = Tensor{t.Dims, data}, t.Host
	}
	return nil
}

// Run runs an operator on what its arguments are now. Those of a graph run in its order.
func (x *Interpreter) Run(id graph.OpID) error {
	i := slices.IndexFunc(x.ops, func(o operator) bool { return o.id == id })
	if i < 0 {
		return fmt.Errorf("reference of operator %d: the graph has %d", id, len(x.ops))
	}
	return x.run(&x.ops[i])
}

func (x *Interpreter) run(o *operator) error {
	x.err = nil
	r := &Ref{x, o.name}
	if impl, ok := o.impl.(Referencer); ok {
		impl.Reference(r)
	} else {
		r.Errorf("it has none")
	}
	return x.err
}

// Tolerance is how far an output of an operator that has just run, or State that it wrote, may be from what
// it is here.
func (x *Interpreter) Tolerance(id graph.OpID, v graph.ValueID) Tolerance {
	for i := range x.ops {
		if impl, ok := x.ops[i].impl.(Referencer); ok && x.ops[i].id == id {
			return impl.Tolerance(&Ref{x, x.ops[i].name}, v)
		}
	}
	return Tolerance{}
}

// Drop gives back what a value takes: a tensor that nobody wants any more, or the bytes of a constant, which
// are loaded again when they are wanted.
func (x *Interpreter) Drop(v graph.ValueID) { x.tensors[v], x.bytes[v] = Tensor{}, nil }

// Tensor is the value of a tensor after a step.
func (x *Interpreter) Tensor(v graph.ValueID) Tensor { return x.tensors[v] }

// SetTensor overrides a tensor, so that what follows is computed from it: State at the start, or what a GPU
// gave instead of the reference.
func (x *Interpreter) SetTensor(v graph.ValueID, t Tensor) { x.tensors[v] = t }

// Leave says that a step has left a tensor, up to the next one: what has another to make it of does so, and
// what gives it need not.
func (x *Interpreter) Leave(v graph.ValueID) { x.left[v] = true }

// Choose says that of an output of an operator only these elements are wanted, from now on: to check samples
// of a large model costs what the samples cost. The references of matrix products, attention, norms and of
// all that works row by row compute no more than they must; others compute everything. What is not computed
// is NaN, so before an operator reads the tensor SetTensor has to give all of it.
func (x *Interpreter) Choose(v graph.ValueID, c Choice) {
	if x.choices == nil {
		x.choices = map[graph.ValueID]Choice{}
	}
	x.choices[v] = c
}

// Errorf ends the step.
func (r *Ref) Errorf(format string, args ...any) {
	if r.x.err == nil {
		r.x.err = fmt.Errorf("reference of %s: %w", r.name, fmt.Errorf(format, args...))
	}
}

// Tensor is the value of an argument. That of State is the state itself, to be written in place; no other may
// be changed.
func (r *Ref) Tensor(v graph.ValueID) Tensor {
	if t := r.x.tensors[v]; t.Data != nil {
		return t
	}
	info := r.x.g.Value(v)
	t := Zeros(info.MaxDims...)
	switch {
	case info.Role == graph.State && info.Load == nil:
	case info.Role == graph.State || info.Role == graph.Constant:
		data, err := Decode(info.DType, r.Bytes(v), len(t.Data))
		if err != nil {
			r.Errorf("%s: %w", info.Name, err)
			return t
		}
		t.Data = data
	default:
		r.Errorf("%s has no value yet", info.Name)
	}
	r.x.tensors[v] = t
	return t
}

// Deferred says whether the step has left a tensor.
func (r *Ref) Deferred(v graph.ValueID) bool { return r.x.left[v] }

// Has says whether an argument that an operator gives has a value, and is not left.
func (r *Ref) Has(v graph.ValueID) bool { return r.x.tensors[v].Data != nil && !r.Deferred(v) }

// Int is the value of a SymInt argument.
func (r *Ref) Int(v graph.ValueID) int { return int(r.x.ints[v]) }

// HostInts are the host's integers of a graph input.
func (r *Ref) HostInts(v graph.ValueID) []int64 { return r.x.host[v] }

// Bytes are the bytes of a constant, in its kernels' layout.
func (r *Ref) Bytes(v graph.ValueID) []byte {
	if r.x.bytes[v] != nil {
		return r.x.bytes[v]
	}
	info := r.x.g.Value(v)
	want := int(info.DType.Bytes(shape.Product(info.MaxDims)))
	if info.Load == nil {
		r.Errorf("%s is no constant", info.Name)
		return make([]byte, want)
	}
	data, err := info.Load()
	if err == nil && len(data) != want {
		err = fmt.Errorf("%d bytes, want %d", len(data), want)
	}
	if err != nil {
		r.Errorf("load %s: %w", info.Name, err)
		return make([]byte, want)
	}
	r.x.bytes[v] = data
	return data
}

// Result is a tensor for an output's value, to be filled in where rows and cols say: 0, or NaN where only a
// part of it is wanted.
func (r *Ref) Result(v graph.ValueID, dims ...int) Tensor {
	t := Zeros(dims...)
	if c := r.x.choices[v]; c.Rows != nil || c.Cols != nil {
		for i := range t.Data {
			t.Data[i] = math.NaN()
		}
	}
	return t
}

// Rows are those of an output of n rows that are wanted.
func (r *Ref) Rows(v graph.ValueID, n int) iter.Seq[int] { return wanted(r.x.choices[v].Rows, n) }

// Cols are the columns of an output of n columns that are wanted.
func (r *Ref) Cols(v graph.ValueID, n int) iter.Seq[int] { return wanted(r.x.choices[v].Cols, n) }

// InParallel runs f for pieces of a list, on all processors: each call has a piece of its own.
func InParallel(list []int, f func(piece []int)) {
	pieces := min(len(list), 4*runtime.GOMAXPROCS(0)) // more than processors, since some are busy
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(pieces, runtime.GOMAXPROCS(0)) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < pieces; i = int(next.Add(1)) - 1 {
				f(list[i*len(list)/pieces : (i+1)*len(list)/pieces])
			}
		})
	}
	all.Wait()
}

// Dot is the sum of the products of two lists of a length, in four parts: a processor adds them side by side.
func Dot(x, w []float64) float64 {
	var a, b, c, d float64
	w = w[:len(x)]
	i := 0
	for ; i+4 <= len(x); i += 4 {
		a += x[i] * w[i]
		b += x[i+1] * w[i+1]
		c += x[i+2] * w[i+2]
		d += x[i+3] * w[i+3]
	}
	for ; i < len(x); i++ {
		a += x[i] * w[i]
	}
	return a + b + (c + d)
}

// wanted are the members of a list that are below n; all below n where there is no list.
func wanted(list []int, n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		if list == nil {
			for i := range n {
				if !yield(i) {
					return
				}
			}
		}
		for _, i := range list {
			if i >= 0 && i < n && !yield(i) {
				return
			}
		}
	}
}

// Set gives an output its value.
func (r *Ref) Set(v graph.ValueID, t Tensor) { r.x.tensors[v] = t }

// SetInt gives an output SymInt its value.
func (r *Ref) SetInt(v graph.ValueID, n int64) { r.x.ints[v] = n }

// Decode reads n elements of a type.
func Decode(t graph.DType, data []byte, n int) ([]float64, error) {
	if want := t.Bytes(n); int64(len(data)) < want {
		return nil, fmt.Errorf("%d bytes of %s for %d elements, want %d", len(data), t, n, want)
	}
	out := make([]float64, n)
	for i := range out {
		switch t {
		case graph.F32:
			out[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:])))
		case graph.I32:
			out[i] = float64(int32(binary.LittleEndian.Uint32(data[4*i:])))
		case graph.U32:
			out[i] = float64(binary.LittleEndian.Uint32(data[4*i:]))
		case graph.F16:
			out[i] = float64(float16.Frombits(binary.LittleEndian.Uint16(data[2*i:])).Float32())
		case graph.Q4:
			out[i] = float64(data[i/2] >> (i % 2 * 4) & 15)
		case graph.I8:
			out[i] = float64(int8(data[i]))
		}
	}
	return out, nil
}
