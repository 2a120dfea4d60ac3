package graph

import (
	"fmt"

	"gpuscope/trace"
)

// DType is the type of a tensor's elements.
type DType uint8

// The element types. Types of less than 32 bits are packed into 32-bit words. A word holds eight Q4 values
// of 4 bits, four I8 values or two F16 values.
const (
	F32 DType = iota
	I32
	U32
	F16
	Q4
	I8
)

var dtypes = [...]struct {
	name string
	bits int
}{
	F32: {"f32", 32}, I32: {"i32", 32}, U32: {"u32", 32}, F16: {"f16", 16}, Q4: {"q4", 4}, I8: {"i8", 8},
}

// String returns the name that traces use for the type.
func (d DType) String() string { return dtypes[d].name }

// Bytes returns the size of n elements in bytes, rounded up to whole 32-bit words. n must not exceed
// maxElements.
func (d DType) Bytes(n int) int64 { return (int64(n)*int64(dtypes[d].bits) + 31) / 32 * 4 }

// Role describes where the content of a value comes from and who may overwrite it.
type Role uint8

// The roles of values.
const (
	Intermediate Role = iota
	Input
	Output
	Constant
	State
	Scratch
	Fused // removed by fusion, so it has no memory
)

// String returns the name that traces use for the role.
func (r Role) String() string {
	return [...]string{"intermediate", "input", "output", "constant", "state", "scratch", "fused"}[r]
}

// ValueKind distinguishes tensors from SymInts.
type ValueKind uint8

const (
	Tensor ValueKind = iota
	SymInt
)

func (k ValueKind) String() string { return [...]string{"tensor", "symint"}[k] }

// Value is a tensor or a SymInt of a graph.
type Value struct {
	Name             string
	Kind             ValueKind
	DType            DType
	Role             Role
	minDims, MaxDims []int // range of the dims of a tensor; nil until its producer is added
	Lo, Hi, first    int64 // range and initial value of a SymInt
	Bytes            int64 // size in bytes at MaxDims
	Alias            ValueID
	Producer         OpID // operator that outputs the value, or -1
	materializer     OpID // operator that computes the value if it is deferred, or -1
	Consumers        []OpID
	Load             func() ([]byte, error) // bytes of a constant or initial State; nil means zeros
	HostRead         bool                   // a plan reads the integers of this input (Planner.HostInts)
	firstHost        []int64                // integers of this input before the first step; nil means zeros
	matrix           *trace.Matrix          // weight matrix that the constant holds, or nil
	Column           func(at int) int       // see ValueInfo.Column
}

// OpError is the error of an operator that does not support the shapes of its arguments.
type OpError struct {
	Op, Kind string
	Args     []string // arguments with their live shapes, for the message
	Err      error
}

func (e *OpError) Error() string {
	return fmt.Sprintf("%s (%s) %v: %v", e.Op, e.Kind, e.Args, e.Err)
}

func (e *OpError) Unwrap() error { return e.Err }
