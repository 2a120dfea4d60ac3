package pte

import "slices"

// Method is a function of a program, such as forward.
type Method struct {
	Name            string
	Values          []Value
	Inputs, Outputs []int // values, in the order of the arguments and of the results
	Chains          []Chain
	Operators       []Operator // portable ones, which KernelCalls name
	Delegates       []*Delegate
	// Arenas are the bytes of the memory that the exporter planned, by Tensor.Arena; the first is unused.
	Arenas []int64
	// InputTree and OutputTree say how PyTorch nests the arguments and results: pytree specifications.
	InputTree, OutputTree string
}

// Constant says whether the method computes nothing: its outputs are values to read.
func (m *Method) Constant() bool {
	return !slices.ContainsFunc(m.Chains, func(c Chain) bool { return len(c.Instructions) > 0 })
}

// Value is a value of a method. It is one of
//
//	nil         None
//	int64       a symbolic size too, whose value changes as the method runs
//	bool
//	float64
//	string
//	*Tensor
//	IntList
//	[]float64
//	[]bool
//	TensorList
type Value any

// IntList is a list of integers, as the values of the method that hold them.
type IntList []int

// TensorList is a list of tensors, as values of the method; -1 is None.
type TensorList []int

// Tensor is a tensor of a method.
type Tensor struct {
	Type     Type
	Sizes    []int // where it is dynamic, the largest
	DimOrder []int
	Offset   int // in elements, from the start of its memory
	Dynamism Dynamism
	Memory   Memory
	Strided  bool // false is another layout than strides
	// Data are the bytes of a constant, or what Mutable memory begins with.
	Data Data
	// Arena and ArenaOffset are where the exporter planned Planned and Mutable memory.
	Arena       int
	ArenaOffset uint64
	// Name is the tensor's name in the model, where the file has it; External memory has it as its key.
	Name string
	// Device is 0 for the CPU.
	Device, DeviceIndex int
}

// Dynamism says whether the shape of a tensor can change from run to run.
type Dynamism int8

// The kinds of dynamism.
const (
	Static Dynamism = iota
	Bounded
	Unbounded
)

// Memory says where a tensor's bytes come from.
type Memory int8

// The kinds of memory.
const (
	FromCaller Memory = iota // who calls the method gives it
	Constant                 // in the file
	Planned                  // in an arena
	Mutable                  // in an arena, and begins with bytes of the file
	External                 // in a data file, by name
)

var memoryNames = [...]string{"caller", "constant", "planned", "mutable", "external"}

// String is the kind's name in tables and JSON.
func (m Memory) String() string { return memoryNames[m] }

// Chain is a list of instructions.
type Chain struct {
	Inputs, Outputs []int // as the file has them: usually none
	Instructions    []Instruction
}

// Instruction is one step of a chain.
type Instruction struct {
	Op Op
	// Target is the index of the operator, of the delegate, or of the instruction to jump to.
	Target int
	// Args are values: of a KernelCall in the order of its schema, the outputs last; of a DelegateCall the
	// inputs of its graph, then the outputs; of a MoveCall from and to; of others the one they have.
	Args []int
}

// Op is a kind of instruction.
type Op uint8

// The kinds of instructions.
const (
	KernelCall Op = iota + 1
	DelegateCall
	MoveCall
	JumpFalseCall
	FreeCall
)

var opNames = [...]string{"", "KernelCall", "DelegateCall", "MoveCall", "JumpFalseCall", "FreeCall"}

// String is the kind's name in ExecuTorch.
func (o Op) String() string { return opNames[o] }

// Operator is a portable operator, which ExecuTorch runs on the CPU.
type Operator struct{ Name, Overload string }

// String is name and overload with a dot between: "aten::add.out".
func (o Operator) String() string {
	if o.Overload == "" {
		return o.Name
	}
	return o.Name + "." + o.Overload
}

// Delegate is a part of a method that was compiled for a backend.
type Delegate struct {
	Backend string
	Data    Data // in the backend's own format
	Inline  bool // the data is in the FlatBuffer, not in a segment
	Options []Option
}

// Option is a compile option of a delegate.
type Option struct {
	Key   string
	Value []byte // may lie in the file's mapping: as Data.Bytes
}

// Suite are the test cases of a method.
type Suite struct {
	Method string
	Cases  []Case
}

// Case is one run of a method: its inputs and what it should give. Each is an int64, a bool, a float64 or a
// *TestTensor.
type Case struct{ Inputs, Outputs []any }

// TestTensor is a tensor with its elements, row-major where DimOrder is the identity.
type TestTensor struct {
	Type     Type
	Sizes    []int
	DimOrder []int
	Data     Data
}
