package graph

import (
	"fmt"

	"gpuscope/engine/gpu"
	"gpuscope/trace"
)

// The interface of operators: what an operator declares, and its plan.

// ValueID identifies a value of a graph.
type ValueID = trace.ValueID

// None is no value. A Builder returns it after an error.
const None ValueID = -1

// Operator is an operator of a graph: a pure function from live shapes to output shapes and dispatches. It
// holds the ids of its arguments and its attributes, nothing that changes. Package ops has the operators;
// Builder.Add adds one to a graph.
type Operator interface {
	// Spec declares the operator's kind, arguments and kernels. Builder.Add calls it once.
	Spec() Spec
	// Corners lists the legal live shapes at which each route, grid and scratch tensor is largest, and one at
	// which the outputs are smallest. An argument that a corner does not set is at its maximum. The builder
	// plans every corner: those plans say what to compile and how much to allocate, and no later plan may
	// exceed them.
	Corners(r *Ranges) []Corner
	// Plan computes output dims and dispatches from what it reads through p (dims of tensor arguments, values
	// of SymInt arguments, host integers, device limits) and nothing else. It is pure, allocates nothing, and
	// returns an error for shapes that the operator does not support; the caller adds the operator's name. It
	// is called for every corner at build, and later whenever a trigger changed.
	Plan(p *Planner) error
}

// Spec is what an operator declares.
type Spec struct {
	Kind string // ExecuTorch's name without namespace and overload: "linear_q4gsw"
	// Inputs are tensors and SymInts that are only read. They are the operator's triggers, except constants.
	Inputs  []ValueID
	State   []ValueID // read or written in place, never a trigger: KV caches
	Outputs []ValueID // tensors or SymInts that the operator computes
	Scratch []ValueID // tensors that exist only while the operator runs
	// Materializes are outputs of earlier operators that this one computes at shapes where their producer
	// defers them: later readers find them in memory at any shape. Its kernels must bind and write them.
	Materializes []ValueID
	// Routes names the alternative implementations that Plan chooses from by live shape; empty if there is
	// only one.
	Routes []string
	Slots  []Slot
	Attrs  map[string]any // for people: "eps", "group_size"
	// Alias says that Outputs[0] may share memory with Inputs[0]. If that is granted the operator's slots are
	// never dispatched; see Planner.Aliased.
	Alias bool
}

// Slot is a dispatch slot: one piece of work, whichever kernel does it. Different work has its own slot.
type Slot struct {
	Label string // "" if the operator has one slot, else "qk", "softmax"
	// Uses has the kernel of each route, by index in Spec.Routes. A route that does not use the slot has the
	// zero Use. A single Use serves all routes.
	Uses []Use
}

// Use is a kernel and the values bound to it.
type Use struct {
	Kernel *Kernel
	// Bind are the values of the kernel's storage bindings, in binding order and with the names of the WGSL
	// variables. The params uniform is the binding after them.
	Bind []Binding
}

// Binding is a value for a storage binding, by the binding's name.
type Binding struct {
	Name  string
	Value ValueID
}

// Bind is the Binding of a value to a name.
func Bind(name string, v ValueID) Binding { return Binding{name, v} }

// Kernel is a specialised compute shader. Bindings 0.. are the storage bindings listed in Storage; the params
// block, if Params is not empty, is the last binding.
type Kernel struct {
	// Name says what it does: "linear_q4gsw_gemv". If kernels of a graph share a name the graph numbers them:
	// "linear_q4gsw_gemv.2".
	Name      string
	Constants string // template constants, for people
	Source    string // WGSL with entry point main
	// Filled and Taken are the parts of Source that differ from its template, as in trace.Kernel.
	Filled, Taken [][2]int
	WorkgroupSize [3]uint32
	Storage       []Storage
	Params        []trace.Param // MaxParams at most
	// WorkgroupBytes is the size of its workgroup memory; 0: none or unknown.
	WorkgroupBytes int
}

// Storage is a storage binding of a kernel, as its WGSL declares it.
type Storage struct {
	Name string
	// Elem is the scalar type of its elements: "f32", "u32", "i32"; "" if unknown.
	Elem   string
	Access gpu.Access
	// Read: the kernel also reads this read_write binding.
	Read bool
}

// reads reports whether the kernel reads the binding.
func (s *Storage) reads() bool { return s.Access == gpu.Read || s.Read }

// Corner is a set of live arguments of an operator. An argument that it does not set is at its maximum.
type Corner []At

// At sets one argument of a corner.
type At struct {
	Value    ValueID
	Dims     []int   // of a tensor
	Int      int64   // of a SymInt
	Host     []int64 // host integers of a graph input, for operators that read them
	Deferred bool    // the tensor is not computed: its producer defers it
}

// Ranges gives an operator the smallest and largest shapes of its arguments.
type Ranges struct{ b *Builder }

// Min is the smallest live dims of a tensor, dim by dim. They must not be changed.
func (r *Ranges) Min(v ValueID) []int { return r.b.values[v].minDims }

// Max is the largest live dims of a tensor. They must not be changed.
func (r *Ranges) Max(v ValueID) []int { return r.b.values[v].MaxDims }

// Int is the range of a SymInt.
func (r *Ranges) Int(v ValueID) (lo, hi int64) { return r.b.values[v].Lo, r.b.values[v].Hi }

// Ends are the two corners that most operators need: every tensor argument at its maximum, and every one at
// its minimum.
func (r *Ranges) Ends(args ...ValueID) []Corner {
	smallest := Corner{}
	for _, v := range args {
		smallest = append(smallest, r.AtMin(v))
	}
	return []Corner{{}, smallest}
}

// AtMin sets an argument to its minimum.
func (r *Ranges) AtMin(v ValueID) At {
	return At{Value: v, Dims: r.b.values[v].minDims, Int: r.b.values[v].Lo}
}

// Reason says why a route was chosen. It is an enum of the operator's package that prints itself.
type Reason fmt.Stringer
