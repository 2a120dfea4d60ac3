package graph

import (
	"fmt"

	"gpuscope/engine/gpu"
	"gpuscope/trace"
)

// ValueID identifies a value of a graph.
type ValueID = trace.ValueID

// None is the ValueID that means "no value". A Builder returns it after an error.
const None ValueID = -1

// Operator is an operator of a graph. Its plan is a pure function from live shapes to output shapes and
// dispatches. An Operator stores its attributes and the ids of its arguments. It has no state that changes.
// Package ops contains the operators, and Builder.Add adds an operator to a graph.
type Operator interface {
	// Spec declares the operator's kind, arguments and kernels. Builder.Add calls it once.
	Spec() Spec
	// Corners lists the extreme live shapes that the operator supports. For each route, they must include the
	// shapes with the largest grids and the largest scratch tensors. They must also include a shape with the
	// smallest outputs. An argument that a corner does not set is at its maximum there. The builder plans
	// every corner. These plans determine which kernels to compile and how much memory to allocate. At run
	// time, a plan that needs another kernel or more memory fails.
	Corners(r *Ranges) []Corner
	// Plan computes the output dims and dispatches. It may depend only on what it reads from p: dims of
	// tensor arguments, values of SymInt arguments, host integers, and device limits. Plan is a pure function
	// and allocates no memory. It returns an error for shapes that the operator does not support; the caller
	// adds the operator's name to the error. Plan is called for every corner when the graph is built, and
	// again whenever an input changes.
	Plan(p *Planner) error
}

// Spec declares the kind, the arguments and the kernels of an operator.
type Spec struct {
	Kind string // as in ExecuTorch, without namespace and overload, such as "linear_q4gsw"
	// Inputs are the tensors and SymInts that the operator only reads. When an input changes, the operator is
	// re-planned. Constants never change.
	Inputs  []ValueID
	State   []ValueID // tensors updated in place, such as KV caches; they never cause a re-plan
	Outputs []ValueID // tensors or SymInts that the operator computes
	// Recurrent marks State of fixed size (see trace.Value.Recurrent).
	Recurrent bool
	// Readback lists outputs that only the host reads. If they are also outputs of the graph, they share one
	// buffer with the Readback outputs of all other operators, so that one copy reads them all back.
	Readback []ValueID
	Scratch  []ValueID // tensors with temporary data of the operator
	// Materializes lists outputs of earlier operators that their producers defer (do not compute) at some
	// shapes. This operator then computes them instead, so that later readers find them in memory. Its
	// kernels must bind and write the listed outputs.
	Materializes []ValueID
	// Routes holds the names of the operator's implementations, of which Plan chooses one by live shape.
	// Routes is empty if there is only one implementation.
	Routes []string
	Slots  []Slot
	Attrs  map[string]any // attributes to display, such as "eps" or "group_size"
	// Alias means that Outputs[0] may share memory with Inputs[0]. If the graph decides that it does, the
	// operator's slots are never dispatched (see Planner.Aliased).
	Alias bool
}

// Slot is a dispatch slot: a part of the operator's work that takes one dispatch. The kernel may be different
// on each route.
type Slot struct {
	Label string // such as "qk" or "softmax"; "" if the operator has only one slot
	// Uses lists the kernel and its bindings for each route, in the order of Spec.Routes. A route that does
	// not use the slot has the zero Use. If Uses has a single element, this element applies to all routes.
	Uses []Use
}

// Use is a kernel and the values bound to the kernel.
type Use struct {
	Kernel *Kernel
	// Bind lists a value for each storage binding of the kernel, in binding order, with the name of its WGSL
	// variable. The params block is not listed: it is bound after them.
	Bind []Binding
}

// Binding binds a value to the storage binding with the given name.
type Binding struct {
	Name  string
	Value ValueID
}

// Bind returns a Binding that binds a value to the storage binding with the given name.
func Bind(name string, v ValueID) Binding { return Binding{name, v} }

// Kernel is a specialized compute shader. Its first bindings are the storage bindings listed in Storage. The
// params block is the last binding, unless Params is empty.
type Kernel struct {
	// Name describes the kernel, such as "linear_q4gsw_gemv". If several kernels of a graph have the same
	// name, the graph numbers them: "linear_q4gsw_gemv.2".
	Name      string
	Constants string // the template's constants, in readable form
	Source    string // WGSL with entry point main
	// Filled and Taken are ranges of bytes of Source, as in trace.Kernel. Filled has the text that comes from
	// constants. Taken has included files, and branches that were chosen because of constants.
	Filled, Taken [][2]int
	WorkgroupSize [3]uint32
	Storage       []Storage
	Params        []trace.Param // fields of the params block, at most params.Max
	// WorkgroupBytes is the size of the kernel's workgroup memory in bytes; 0 if it has none or the size is
	// unknown.
	WorkgroupBytes int
}

// Storage is a storage binding of a kernel, as the kernel's WGSL declares it.
type Storage struct {
	Name string
	// Elem is the scalar type of the elements: "f32", "u32" or "i32". It is "" if the type is unknown.
	Elem   string
	Access gpu.Access
	// Read is true if the kernel also reads this read_write binding.
	Read bool
}

// reads reports whether the kernel reads the binding.
func (s *Storage) reads() bool { return s.Access == gpu.Read || s.Read }

// Corner is an extreme shape of an operator: the live values of some of its arguments. The other arguments
// are at their maximum.
type Corner []At

// At is the value that a corner sets for one argument.
type At struct {
	Value    ValueID
	Dims     []int   // live dims of a tensor
	Int      int64   // integers of a graph input, for operators whose plans read them
	Host     []int64 // host integers of a graph input, for operators that read them
	Deferred bool    // the tensor is deferred: its producer does not compute it
}

// Ranges provides the smallest and largest shapes of an operator's arguments.
type Ranges struct{ b *Builder }

// Min returns the smallest live value of each dim of a tensor. The caller must not change the dims.
func (r *Ranges) Min(v ValueID) []int { return r.b.values[v].minDims }

// Max returns the largest live dims of a tensor. The caller must not change the dims.
func (r *Ranges) Max(v ValueID) []int { return r.b.values[v].MaxDims }

// Int returns the range of a SymInt.
func (r *Ranges) Int(v ValueID) (lo, hi int64) { return r.b.values[v].Lo, r.b.values[v].Hi }

// Ends returns the two corners that most operators need. In the first corner all arguments have their
// maximum. In the second corner the given arguments have their minimum.
func (r *Ranges) Ends(args ...ValueID) []Corner {
	smallest := Corner{}
	for _, v := range args {
		smallest = append(smallest, r.AtMin(v))
	}
	return []Corner{{}, smallest}
}

// AtMin returns an At that sets an argument of a corner to its minimum.
func (r *Ranges) AtMin(v ValueID) At {
	return At{Value: v, Dims: r.b.values[v].minDims, Int: r.b.values[v].Lo}
}

// Reason explains why a plan chose a route. Each package of operators defines its reasons as an enum with a
// String method.
type Reason fmt.Stringer
