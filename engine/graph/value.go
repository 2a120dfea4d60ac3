package graph

import (
	"fmt"

	"gpuscope/trace"
)

// DType is the type of a tensor's elements.
type DType uint8

// The element types. Types under 32 bits are packed into 32-bit words: eight Q4 (4 bits), four I8 or two F16.
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

// String is the name used in traces.
func (d DType) String() string { return dtypes[d].name }

// Bytes is the size of n elements in bytes, rounded up to whole 32-bit words. n must not exceed maxElements.
func (d DType) Bytes(n int) int64 { return (int64(n)*int64(dtypes[d].bits) + 31) / 32 * 4 }

// Role says where a value comes from and who may overwrite it.
type Role uint8

// The roles of values.
const (
	Intermediate Role = iota
	Input
	Output
	Constant
	State
	Scratch
	Fused // removed by fusion: has no memory
)

// String is the name used in traces.
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
	minDims, MaxDims []int // of a tensor; nil until its operator's corners are planned
	Lo, Hi, first    int64 // of a SymInt
	Bytes            int64 // at MaxDims
	Alias            ValueID
	Producer         OpID // operator that outputs it, -1: none
	materializer     OpID // computes it where its producer defers it; -1: none
	Consumers        []OpID
	Load             func() ([]byte, error) // bytes of a constant, or initial State; nil: zeros
	HostRead         bool                   // an operator reads its host integers
	firstHost        []int64                // host integers before the first step; nil: zeros
	matrix           *trace.Matrix          // the weight matrix that a constant holds; nil: none
	Column           func(at int) int       // of permuted rows: the column stored at a place; nil: at
}

// OpError is the error of an operator that does not support a shape.
type OpError struct {
	Op, Kind string
	Args     []string // arguments with their live shapes
	Err      error
}

func (e *OpError) Error() string {
	return fmt.Sprintf("%s (%s) %v: %v", e.Op, e.Kind, e.Args, e.Err)
}

func (e *OpError) Unwrap() error { return e.Err }
