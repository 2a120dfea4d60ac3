package pte

import "slices"

// Method is a function of a program, such as "forward".
type Method struct {
	Name            string
	Values          []Value
	Inputs, Outputs []int // indices into Values; Inputs is in argument order, Outputs in result order
	Chains          []Chain
	Operators       []Operator // the portable operators that KernelCall instructions call
	Delegates       []*Delegate
	// Arenas holds the size in bytes of each memory arena that the exporter planned. Tensor.Arena is an index
	// into Arenas. The first arena is unused.
	Arenas []int64
	// InputTree and OutputTree describe how the arguments and the results are nested in PyTorch. Each is a
	// pytree specification.
	InputTree, OutputTree string
}

// Constant reports whether the method has no instructions. The outputs of such a method are constants, which
// can be read from Values.
func (m *Method) Constant() bool {
	return !slices.ContainsFunc(m.Chains, func(c Chain) bool { return len(c.Instructions) > 0 })
}

// Value is a value of a method. It is one of
//
//	nil         None
//	int64       an integer, or a symbolic size, whose value changes while the method runs
//	bool
//	float64
//	string
//	*Tensor
//	IntList
//	[]float64
//	[]bool
//	TensorList
type Value any

// IntList is a list of integers. Each element is the index of an int64 in Method.Values.
type IntList []int

// TensorList is a list of tensors. Each element is the index of a tensor in Method.Values, or -1 for None.
type TensorList []int

// Tensor is a tensor of a method.
type Tensor struct {
	Type     Type
	Sizes    []int // shape; if the shape can change, the maximum shape
	DimOrder []int
	Offset   int // distance in elements from the start of the tensor's memory
	Dynamism Dynamism
	Memory   Memory
	Strided  bool // whether strides describe the memory layout
	// Data holds the bytes of a tensor in Constant memory, or the initial bytes of a tensor in Mutable
	// memory.
	Data Data
	// Arena and ArenaOffset locate a tensor in Planned or Mutable memory. Arena is an index into
	// Method.Arenas.
	Arena       int
	ArenaOffset uint64 // in bytes
	// Name is the name of the tensor in the model, or "" if the file does not state it. For External memory,
	// Name is the key of the named data.
	Name string
	// Device is the type of the device that holds the tensor. It is 0 for the CPU.
	Device, DeviceIndex int
}

// Dynamism states whether the shape of a tensor can change from run to run.
type Dynamism int8

// The values of Dynamism. The shape of a Static tensor is fixed.
const (
	Static Dynamism = iota
	Bounded
	Unbounded
)

// Memory states where the bytes of a tensor are stored.
type Memory int8

// The values of Memory.
const (
	FromCaller Memory = iota // the caller of the method provides the memory
	Constant                 // in the program file
	Planned                  // in an arena, with contents that are undefined at the start
	Mutable                  // in an arena; the file contains the first contents
	External                 // in a data file, where the name is the key
)

var memoryNames = [...]string{"caller", "constant", "planned", "mutable", "external"}

// String returns the name of the memory kind, as used in tables and JSON.
func (m Memory) String() string { return memoryNames[m] }

// Chain is a list of instructions.
type Chain struct {
	Inputs, Outputs []int // indices into Method.Values; usually empty
	Instructions    []Instruction
}

// Instruction is one step of a chain.
type Instruction struct {
	Op Op
	// Target is an index. It selects the operator or delegate to call, or the instruction to jump to.
	Target int
	// Args holds indices into Method.Values. The meaning depends on Op:
	//
	//   - KernelCall: the arguments in the order of the operator's schema, the outputs last
	//   - DelegateCall: the inputs of the delegate's graph, then its outputs
	//   - MoveCall: the source and the destination
	//   - JumpFalseCall: the condition
	//   - FreeCall: the value to free
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

// String returns the name of the instruction kind in ExecuTorch.
func (o Op) String() string { return opNames[o] }

// Operator is a portable operator, which ExecuTorch runs on the CPU.
type Operator struct{ Name, Overload string }

// String returns the name and the overload joined by a dot, such as "aten::add.out".
func (o Operator) String() string {
	if o.Overload == "" {
		return o.Name
	}
	return o.Name + "." + o.Overload
}

// Delegate is a part of a method that was compiled for a backend.
type Delegate struct {
	Backend string
	Data    Data // the compiled part in the format of the backend
	Inline  bool // Data is stored in the FlatBuffer, not in a segment
	Options []Option
}

// Option is a compile option of a delegate.
type Option struct {
	Key string
	// Value may point into the memory-mapped file. It must not be modified, and must not be used after
	// File.Close.
	Value []byte
}

// Suite holds the test cases of a method.
type Suite struct {
	Method string
	Cases  []Case
}

// Case is a test case of a method: the inputs and the expected outputs. Each input and output is an int64, a
// bool, a float64 or a *TestTensor.
type Case struct{ Inputs, Outputs []any }

// TestTensor is a tensor with its elements. If DimOrder is the identity, the elements are in row-major order.
type TestTensor struct {
	Type     Type
	Sizes    []int
	DimOrder []int
	Data     Data
}
