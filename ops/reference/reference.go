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

// Referencer is an operator with a reference implementation.
type Referencer interface {
	graph.Operator
	// Reference(r) computes the outputs in float64 from the values of the arguments. It reads constants in
	// the same layout as the kernels, so that it also finds mistakes in the packing of weights. It does not
	// check shapes, because planning has already checked them.
	Reference(r *Ref)
	// Tolerance(r, v) returns how far a kernel's result for v can be from the result of the last call of
	// Reference. v is an output of the operator, or State that the operator writes.
	Tolerance(r *Ref, v graph.ValueID) Tolerance
}

// Tensor is a dense, row-major tensor in float64. The elements of an integer tensor are whole numbers.
type Tensor struct {
	Dims []int
	Data []float64
}

// Rows returns the number of rows of the tensor and their width. A row runs along the last dim.
func (t Tensor) Rows() (n, width int) { return len(t.Data) / shape.Last(t.Dims), shape.Last(t.Dims) }

// Row returns row i of the tensor. A row runs along the last dim.
func (t Tensor) Row(i int) []float64 { return t.Data[i*shape.Last(t.Dims) : (i+1)*shape.Last(t.Dims)] }

// RowFor returns row i of the tensor, or the last row if i is too large. A tensor with a single row therefore
// returns that row for every i.
func (t Tensor) RowFor(i int) []float64 {
	n, _ := t.Rows()
	return t.Row(min(i, n-1))
}

// Zeros returns a tensor of zeros with the given dims.
func Zeros(dims ...int) Tensor { return Tensor{dims, make([]float64, shape.Product(dims))} }

// Choice selects the elements of a tensor that are in one of the listed rows and in one of the listed
// columns. A row runs along the last dim. A nil list means all rows, or all columns. Indices outside the
// tensor are ignored.
type Choice struct{ Rows, Cols []int }

// Interpreter runs a graph on the CPU with the reference implementations of its operators. It keeps State
// between steps.
type Interpreter struct {
	choices map[graph.ValueID]Choice
	left    map[graph.ValueID]bool
	g       *graph.Graph
	ops     []operator
	tensors []Tensor
	ints    []int64
	host    [][]int64
	bytes   [][]byte // for each constant, its bytes if they are loaded
	err     error
	mu      sync.Mutex // guards tensors, bytes and err while a reference runs in parallel
}

// Ref gives the reference implementation of one operator access to the values of the graph. The first error
// that it records ends the step. Functions that run in InParallel may call Tensor, Bytes and Errorf.
type Ref struct {
	x    *Interpreter
	name string
}

// NewInterpreter returns an interpreter for a graph. All State starts at zero.
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

// Beside returns a second interpreter for the same graph. Both interpreters share the loaded constants.
func (x *Interpreter) Beside() *Interpreter {
	y := NewInterpreter(x.g)
	y.bytes = x.bytes
	return y
}

type operator struct {
	id   graph.OpID
	name string
	impl graph.Operator
}

// Step runs all operators of the graph for one step. If an input of the graph is missing in the step's
// inputs, it keeps its value. Step calls `visit` after each operator, unless `visit` is nil. An error from
// `visit` ends the step.
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

// Begin sets the inputs of a step. The caller then calls Run for each operator.
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

// Run runs one operator with the current values of its arguments. Callers must run the operators in the order
// of the graph.
func (x *Interpreter) Run(id graph.OpID) error {
	i := slices.IndexFunc(x.ops, func(o operator) bool { return o.id == id })
	if i < 0 {
		return fmt.Errorf("reference: the graph has no operator with id %d; it has %d operators",
			id, len(x.ops))
	}
	return x.run(&x.ops[i])
}

func (x *Interpreter) run(o *operator) error {
	x.err = nil
	r := &Ref{x, o.name}
	if impl, ok := o.impl.(Referencer); ok {
		impl.Reference(r)
	} else {
		r.Errorf("the operator has no reference implementation")
	}
	return x.err
}

// Tolerance returns how far a kernel's result for v can be from the reference value. v is an output of the
// operator `id`, or State that this operator wrote. The operator must be the last one that ran.
func (x *Interpreter) Tolerance(id graph.OpID, v graph.ValueID) Tolerance {
	for i := range x.ops {
		if impl, ok := x.ops[i].impl.(Referencer); ok && x.ops[i].id == id {
			return impl.Tolerance(&Ref{x, x.ops[i].name}, v)
		}
	}
	return Tolerance{}
}

// Drop frees the memory of a value. The bytes of a constant are loaded again when an operator reads them.
func (x *Interpreter) Drop(v graph.ValueID) { x.tensors[v], x.bytes[v] = Tensor{}, nil }

// Tensor returns the value of a tensor after a step.
func (x *Interpreter) Tensor(v graph.ValueID) Tensor { return x.tensors[v] }

// SetTensor overrides the value of a tensor, so that later operators compute from the new value. Callers use
// it to set State before the first step, and to replace a reference value by the result of a GPU.
func (x *Interpreter) SetTensor(v graph.ValueID, t Tensor) { x.tensors[v] = t }

// Leave marks v as deferred for the rest of the step: the GPU did not write v, because fusion removed it.
// Readers of v then compute from the values that replace v.
func (x *Interpreter) Leave(v graph.ValueID) { x.left[v] = true }

// Choose restricts the reference of an output to the elements in c, for all later steps. Checking a few
// samples in a large model then takes less time. The references of matrix products, attention, norms and
// operators that work row by row skip the elements outside c. The references of other operators still compute
// all elements. Skipped elements are NaN, so a caller must set the complete tensor with SetTensor before
// another operator reads it.
func (x *Interpreter) Choose(v graph.ValueID, c Choice) {
	if x.choices == nil {
		x.choices = map[graph.ValueID]Choice{}
	}
	x.choices[v] = c
}

// Errorf records an error, which ends the step.
func (r *Ref) Errorf(format string, args ...any) {
	r.x.mu.Lock()
	defer r.x.mu.Unlock()
	r.fail(format, args...)
}

// fail is Errorf for callers that hold the lock.
func (r *Ref) fail(format string, args ...any) {
	if r.x.err == nil {
		r.x.err = fmt.Errorf("reference of %s: %w", r.name, fmt.Errorf(format, args...))
	}
}

// Tensor returns the value of an argument. If v is State, the reference may change the returned tensor in
// place. All other returned tensors must not be changed.
func (r *Ref) Tensor(v graph.ValueID) Tensor {
	r.x.mu.Lock()
	defer r.x.mu.Unlock()
	if t := r.x.tensors[v]; t.Data != nil {
		return t
	}
	info := r.x.g.Value(v)
	t := Zeros(info.MaxDims...)
	switch {
	case info.Role == graph.State && info.Load == nil:
	case info.Role == graph.State || info.Role == graph.Constant:
		data, err := Decode(info.DType, r.load(v), len(t.Data))
		if err != nil {
			r.fail("%s: %w", info.Name, err)
			return t
		}
		t.Data = data
	default:
		r.fail("%s has not been computed yet", info.Name)
	}
	r.x.tensors[v] = t
	return t
}

// Deferred reports whether v is deferred in this step, which means that fusion removed it.
func (r *Ref) Deferred(v graph.ValueID) bool { return r.x.left[v] }

// Has(v) reports whether v has a value and is not deferred.
func (r *Ref) Has(v graph.ValueID) bool { return r.x.tensors[v].Data != nil && !r.Deferred(v) }

// Int returns the value of a SymInt argument.
func (r *Ref) Int(v graph.ValueID) int { return int(r.x.ints[v]) }

// HostInts returns the integers that the host passed for a graph input.
func (r *Ref) HostInts(v graph.ValueID) []int64 { return r.x.host[v] }

// Bytes returns the bytes of a constant, in the layout that kernels read.
func (r *Ref) Bytes(v graph.ValueID) []byte {
	r.x.mu.Lock()
	defer r.x.mu.Unlock()
	return r.load(v)
}

// load is Bytes for callers that hold the lock.
func (r *Ref) load(v graph.ValueID) []byte {
	if r.x.bytes[v] != nil {
		return r.x.bytes[v]
	}
	info := r.x.g.Value(v)
	want := int(info.DType.Bytes(shape.Product(info.MaxDims)))
	if info.Load == nil {
		r.fail("%s is not a constant", info.Name)
		return make([]byte, want)
	}
	data, err := info.Load()
	if err == nil && len(data) != want {
		err = fmt.Errorf("got %d bytes, want %d", len(data), want)
	}
	if err != nil {
		r.fail("load %s: %w", info.Name, err)
		return make([]byte, want)
	}
	r.x.bytes[v] = data
	return data
}

// Result returns a new tensor for an output. The reference fills in the elements in the rows and columns
// that the methods Rows and Cols return. The tensor starts with zeros, or with NaN if Choose has restricted
// the output.
func (r *Ref) Result(v graph.ValueID, dims ...int) Tensor {
	t := Zeros(dims...)
	if c := r.x.choices[v]; c.Rows != nil || c.Cols != nil {
		for i := range t.Data {
			t.Data[i] = math.NaN()
		}
	}
	return t
}

// Rows returns the indices of the rows that the reference must compute, for an output v with n rows: all
// rows, or those that Choose has selected.
func (r *Ref) Rows(v graph.ValueID, n int) iter.Seq[int] { return wanted(r.x.choices[v].Rows, n) }

// Cols returns the indices of the columns that the reference must compute, for an output v with n columns:
// all columns, or those that Choose has selected.
func (r *Ref) Cols(v graph.ValueID, n int) iter.Seq[int] { return wanted(r.x.choices[v].Cols, n) }

// InParallel divides a list into pieces and runs f once for each piece, on all processors.
func InParallel(list []int, f func(piece []int)) {
	pieces := min(len(list), 4*runtime.GOMAXPROCS(0)) // more than processors, as some can be busy
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

// Dot returns the dot product of two vectors of the same length. It keeps four partial sums, because a
// processor can add to several sums in parallel.
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

// wanted(list, n) returns the numbers of the list that are in the range from 0 to n-1. For a nil list it
// returns all numbers of this range.
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

// Set sets the value of an output.
func (r *Ref) Set(v graph.ValueID, t Tensor) { r.x.tensors[v] = t }

// SetInt sets the value of an output SymInt.
func (r *Ref) SetInt(v graph.ValueID, n int64) { r.x.ints[v] = n }

// Decode converts the first n elements of data, which have the type t, to float64.
func Decode(t graph.DType, data []byte, n int) ([]float64, error) {
	if want := t.Bytes(n); int64(len(data)) < want {
		return nil, fmt.Errorf("got %d bytes of %s data for %d elements, want %d", len(data), t, n, want)
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
