package gguf

import "fmt"

// Type is the storage type of a tensor's elements. Its number is the type number of ggml.
type Type uint32

// The storage types of ggml. The numbers that are missing here belonged to types that ggml has removed.
const (
	F32     Type = 0
	F16     Type = 1
	Q4_0    Type = 2
	Q4_1    Type = 3
	Q5_0    Type = 6
	Q5_1    Type = 7
	Q8_0    Type = 8
	Q8_1    Type = 9
	Q2_K    Type = 10
	Q3_K    Type = 11
	Q4_K    Type = 12
	Q5_K    Type = 13
	Q6_K    Type = 14
	Q8_K    Type = 15
	IQ2_XXS Type = 16
	IQ2_XS  Type = 17
	IQ3_XXS Type = 18
	IQ1_S   Type = 19
	IQ4_NL  Type = 20
	IQ3_S   Type = 21
	IQ2_S   Type = 22
	IQ4_XS  Type = 23
	I8      Type = 24
	I16     Type = 25
	I32     Type = 26
	I64     Type = 27
	F64     Type = 28
	IQ1_M   Type = 29
	BF16    Type = 30
	TQ1_0   Type = 34
	TQ2_0   Type = 35
	MXFP4   Type = 39
	NVFP4   Type = 40
)

// layout describes the blocks of a storage type. A block holds consecutive elements of one row.
type layout struct {
	name       string
	blockLen   int // elements per block
	blockBytes int // size of a block in bytes
}

// layouts maps every known type to its layout. The block sizes are the sizes of the structs in ggml-common.h.
var layouts = map[Type]layout{
	F32:     {"F32", 1, 4},
	F16:     {"F16", 1, 2},
	BF16:    {"BF16", 1, 2},
	F64:     {"F64", 1, 8},
	I8:      {"I8", 1, 1},
	I16:     {"I16", 1, 2},
	I32:     {"I32", 1, 4},
	I64:     {"I64", 1, 8},
	Q4_0:    {"Q4_0", 32, 2 + 16},
	Q4_1:    {"Q4_1", 32, 2 + 2 + 16},
	Q5_0:    {"Q5_0", 32, 2 + 4 + 16},
	Q5_1:    {"Q5_1", 32, 2 + 2 + 4 + 16},
	Q8_0:    {"Q8_0", 32, 2 + 32},
	Q8_1:    {"Q8_1", 32, 2 + 2 + 32},
	Q2_K:    {"Q2_K", 256, 16 + 64 + 2 + 2},
	Q3_K:    {"Q3_K", 256, 32 + 64 + 12 + 2},
	Q4_K:    {"Q4_K", 256, 2 + 2 + 12 + 128},
	Q5_K:    {"Q5_K", 256, 2 + 2 + 12 + 32 + 128},
	Q6_K:    {"Q6_K", 256, 128 + 64 + 16 + 2},
	Q8_K:    {"Q8_K", 256, 4 + 256 + 32},
	IQ1_S:   {"IQ1_S", 256, 2 + 32 + 16},
	IQ1_M:   {"IQ1_M", 256, 32 + 16 + 8},
	IQ2_XXS: {"IQ2_XXS", 256, 2 + 64},
	IQ2_XS:  {"IQ2_XS", 256, 2 + 64 + 8},
	IQ2_S:   {"IQ2_S", 256, 2 + 64 + 8 + 8},
	IQ3_XXS: {"IQ3_XXS", 256, 2 + 96},
	IQ3_S:   {"IQ3_S", 256, 2 + 64 + 8 + 32 + 4},
	IQ4_NL:  {"IQ4_NL", 32, 2 + 16},
	IQ4_XS:  {"IQ4_XS", 256, 2 + 2 + 4 + 128},
	TQ1_0:   {"TQ1_0", 256, 48 + 4 + 2},
	TQ2_0:   {"TQ2_0", 256, 64 + 2},
	MXFP4:   {"MXFP4", 32, 1 + 16},
	NVFP4:   {"NVFP4", 64, 4 + 32},
}

// String returns ggml's name of the type, such as "Q4_0".
func (t Type) String() string {
	if l, ok := layouts[t]; ok {
		return l.name
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// Known reports whether the block length and the block size of the type are known. A file from a newer
// program may contain tensors of unknown types. Such tensors still have their dims and bytes.
func (t Type) Known() bool { return layouts[t].blockLen > 0 }

// BlockLen returns the number of elements per block. It returns 1 for types without blocks, such as F32, and
// 0 for unknown types.
func (t Type) BlockLen() int { return layouts[t].blockLen }

// BlockBytes returns the size of a block in bytes. It returns 0 for unknown types.
func (t Type) BlockBytes() int { return layouts[t].blockBytes }
