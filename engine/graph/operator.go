package graph

import (
	"fmt"

	"gpuscope/engine/gpu"
	"gpuscope/trace"
)

// What an operator is to the engine: what it declares of itself, and its plan.

// ValueID names a value of a graph.
type ValueID = trace.ValueID

// None is no value: what a Builder returns after an error.
const None ValueID = -1

// Operator is the planning function of one operator of a graph: from live shapes to dispatches. It holds the
// ids of its arguments and its attributes, nothing that changes. Package ops has the operators; Builder.Add
// puts one into a graph.
type Operator interface {
	// Spec says what the operator is, what it touches and which kernels it has. Called once, by Builder.Add.
	Spec() Spec
	// Corners lists legal live points at which each route, grid and scratch is at its largest, and the point
	// at which its outputs are at their smallest. What a corner does not mention is at its maximum. The
	// engine makes the plan of every corner at build: those plans say what to compile and how much to
	// allocate, and no later plan may exceed them.
	Corners(r *Ranges) []Corner
	// Plan maps what it reads through p (dims of tensor arguments, values of SymInt arguments, host integers,
	// device limits; nothing else) to output dims and dispatches. It is pure, allocates nothing, and returns
	// an error for shapes the operator does not take: the engine adds the operator's name. At build it is
	// called for every corner, later whenever a trigger changed.
	Plan(p *Planner) error
}

// Spec is what an operator declares of itself.
type Spec struct {
	Kind string // upstream's name without namespace and overload: "linear_q4gsw"
	// tensors and SymInts that are only read. They are the operator's triggers, constants excepted
	Inputs  []ValueID
	State   []ValueID // read or written in place, never a trigger: KV caches
	Outputs []ValueID // tensors or SymInts that the operator gives
	Scratch []ValueID // tensors that live only while the operator runs
	// Makes are tensors that operators before it give, and that this one makes where they are left: at any
	// shape what follows it finds them in their memory. It binds them to kernels that write them.
	Materializes []ValueID
	// Routes names the ways of doing the work between which Plan chooses by live shape; empty where there is
	// one.
	Routes []string
	Slots  []Slot
	Attrs  map[string]any // for people: "eps", "group_size"
	// Alias says that Outputs[0] may be the same bytes as Inputs[0]. Where the engine grants it the
	// operator's slots are never dispatched; Planner.Aliased tells.
	Alias bool
}

// Slot is a dispatch slot: one piece of work, whatever kernel does it. Work of another kind has its own slot.
type Slot struct {
	Label string // "" where the operator has one slot, else "qk", "softmax"
	// Uses has the kernel of each route, by index of Spec.Routes; a route that leaves the slot unused has the
	// zero Use. One Use serves all routes.
	Uses []Use
}

// Use is a kernel with what it is bound to.
type Use struct {
	Kernel *Kernel
	// Bind are the values of the kernel's storage bindings, in binding order and under the names that these
	// have in the WGSL. The params uniform is the binding after them.
	Bind []Binding
}

// Binding is a value under the name of the storage binding that it is for.
type Binding struct {
	Name  string
	Value ValueID
}

// Bind is the value for a storage binding of that name.
func Bind(name string, v ValueID) Binding { return Binding{name, v} }

// Kernel is a specialised compute shader. Bindings 0.. are storage, as Storage says; the params block, if
// Params is not empty, is the last binding.
type Kernel struct {
	// Name says what it does: "linear_q4gsw_gemv". A graph tells kernels of one name apart by a number:
	// "linear_q4gsw_gemv.2".
	Name      string
	Constants string // that it was specialised with, for people
	Source    string // WGSL with entry point main
	// Filled and Taken are where Source is not its template as that was written, as trace.Kernel has them.
	Filled, Taken [][2]int
	WorkgroupSize [3]uint32
	Storage       []Storage
	Params        []trace.Param // MaxParams at most
	// WorkgroupBytes is the workgroup memory it takes; 0 is none, or unknown.
	WorkgroupBytes int
}

// Storage is a storage binding of a kernel, as its WGSL declares it.
type Storage struct {
	Name string
	// Elem is the scalar that its elements are made of: "f32", "u32", "i32"; "" where it is not known.
	Elem   string
	Access gpu.Access
	// Read says of a read_write binding that the kernel reads it, too.
	Read bool
}

// reads says whether the kernel reads the binding.
func (s *Storage) reads() bool { return s.Access == gpu.Read || s.Read }

// Corner is a live point of an operator's arguments: what it names is set so, what it does not name is at its
// maximum.
type Corner []At

// At sets one argument of a corner.
type At struct {
	Value    ValueID
	Dims     []int   // of a tensor
	Int      int64   // of a SymInt
	Host     []int64 // host integers of a graph input, for operators that read them
	Deferred bool    // a tensor is left to its readers
}

// Ranges tells an operator how small and large its arguments can be.
type Ranges struct{ b *Builder }

// Min and Max are the smallest and largest live dims of a tensor, dim by dim. They must not be changed.
func (r *Ranges) Min(v ValueID) []int { return r.b.values[v].minDims }

// Max are the largest live dims.
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

// AtMin puts an argument at its minimum.
func (r *Ranges) AtMin(v ValueID) At {
	return At{Value: v, Dims: r.b.values[v].minDims, Int: r.b.values[v].Lo}
}

// Reason says why a route was chosen. It is an enum of the operator's package that prints itself.
type Reason fmt.Stringer
