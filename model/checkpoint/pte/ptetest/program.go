package ptetest

import "encoding/binary"

// Program is an ExecuTorch program.
type Program struct {
	Methods   []Table // by Method
	Named     []Named
	Segments  [][]byte // after those of Named
	Inline    [][]byte // delegates
	Buffers   [][]byte // constants in the FlatBuffer; the first is unused
	Constants *Packed
	Mutable   []Packed
	// Plain is a FlatBuffer without the extended header, and without segments. Short is a header without the
	// bytes of segments.
	Plain, Short bool
}

// Named is a blob with a key. Layout is of a tensor in a data file; nil for none.
type Named struct {
	Key    string
	Data   []byte
	Layout Table
}

// Packed is a segment of several tensors.
type Packed struct {
	Segment int // number
	Offsets []uint64
}

func (p *Packed) table() Table { return Table{0: uint32(p.Segment), 1: p.Offsets} }

const (
	alignment    = 16
	headerLength = 32
)

// segments lays blobs out one after the other.
func segments(blobs [][]byte) (rows []Table, data []byte) {
	for _, b := range blobs {
		for len(data)%alignment != 0 {
			data = append(data, 0)
		}
		rows = append(rows, Table{0: uint64(len(data)), 1: uint64(len(b))})
		data = append(data, b...)
	}
	return rows, data
}

func named(all []Named) (rows []Table, blobs [][]byte) {
	for i, n := range all {
		row := Table{0: n.Key, 1: uint32(i)}
		if n.Layout != nil {
			row[2] = n.Layout
		}
		rows, blobs = append(rows, row), append(blobs, n.Data)
	}
	return rows, blobs
}

// Bytes is the program's file.
func (p *Program) Bytes() []byte {
	keys, blobs := named(p.Named)
	rows, data := segments(append(blobs, p.Segments...))
	root := Table{0: uint32(0), 1: p.Methods, 4: rows, 7: keys}
	root[2], root[3] = oneField(p.Buffers), oneField(p.Inline)
	if p.Constants != nil {
		root[5] = p.Constants.table()
	}
	var mutable []Table
	for i := range p.Mutable {
		mutable = append(mutable, p.Mutable[i].table())
	}
	root[6] = mutable
	flat := Flat("ET12", root)
	if p.Plain {
		return flat
	}
	length := headerLength
	if p.Short {
		length -= 8
	}
	header := append([]byte("eh00"), make([]byte, length-4)...)
	flat = insert(flat, header)
	size := len(flat)
	flat = pad(flat)
	le := binary.LittleEndian
	le.PutUint32(flat[12:], uint32(length))
	le.PutUint64(flat[16:], uint64(size))
	if len(rows) > 0 {
		le.PutUint64(flat[24:], uint64(len(flat)))
	}
	if !p.Short {
		le.PutUint64(flat[32:], uint64(len(data)))
	}
	return append(flat, data...)
}

func oneField(blobs [][]byte) []Table {
	var rows []Table
	for _, b := range blobs {
		rows = append(rows, Table{0: b})
	}
	return rows
}

// insert puts a header after the identifier of a FlatBuffer, padded so that the rest stays aligned.
func insert(flat, header []byte) []byte {
	for len(header)%16 != 0 {
		header = append(header, 0)
	}
	le := binary.LittleEndian
	out := append([]byte{}, flat[:8]...)
	out = append(append(out, header...), flat[8:]...)
	le.PutUint32(out, le.Uint32(flat)+uint32(len(header)))
	return out
}

func pad(data []byte) []byte {
	for len(data)%alignment != 0 {
		data = append(data, 0)
	}
	return data
}

// DataFile is a .ptd file.
func DataFile(all ...Named) []byte {
	keys, blobs := named(all)
	rows, data := segments(blobs)
	flat := Flat("FT01", Table{0: uint32(0), 1: rows, 2: keys})
	const length = 40
	original := len(flat)
	flat = pad(insert(flat, append([]byte("FH01"), make([]byte, length-4)...)))
	const offset = 48
	le := binary.LittleEndian
	le.PutUint32(flat[12:], length)
	le.PutUint64(flat[16:], offset)
	le.PutUint64(flat[24:], uint64(original))
	le.PutUint64(flat[32:], uint64(len(flat)))
	le.PutUint64(flat[40:], uint64(len(data)))
	return append(flat, data...)
}

// Bundle is a .bpte file around a program.
func Bundle(program []byte, suites ...Table) []byte {
	return Flat("BP08", Table{0: uint32(0), 1: suites, 2: program})
}

// Suite are the test cases of a method.
func Suite(method string, cases ...Table) Table { return Table{0: method, 1: cases} }

// Case is a test case.
func Case(inputs, outputs []Table) Table { return Table{0: inputs, 1: outputs} }

// Test is a test input or output: a tensor of bytes.
func Test(dtype int8, sizes []int32, data []byte) Table {
	return Table{0: Union{1, Table{0: dtype, 1: sizes, 2: data}}}
}

// Method is a plan.
func Method(name string, values []Table, inputs, outputs []int32) Table {
	return Table{0: name, 2: values, 3: inputs, 4: outputs, 8: []int64{0, 1 << 20}}
}

// Value is a value of a method: int64, bool, float64, string or nil.
func Value(v any) Table {
	switch v := v.(type) {
	case nil:
		return Table{0: Union{1, Table{}}}
	case int64:
		return Table{0: Union{2, Table{0: v}}}
	case bool:
		return Table{0: Union{3, Table{0: v}}}
	case float64:
		return Table{0: Union{4, Table{0: v}}}
	case Table:
		return Table{0: Union{5, v}}
	case string:
		return Table{0: Union{6, Table{0: v}}}
	}
	panic("ptetest: not a value")
}

// Tensor is a tensor that the caller of a method gives. More slots may be set.
func Tensor(dtype int8, sizes ...int32) Table {
	order := make([]byte, len(sizes))
	for i := range order {
		order[i] = byte(i)
	}
	return Table{0: dtype, 2: sizes, 3: order}
}

// Delegate is a delegate whose data is a segment.
func Delegate(backend string, segment int, options ...Table) Table {
	return Table{0: backend, 1: Table{0: int8(1), 1: uint32(segment)}, 2: options}
}

// Option is a compile option of a delegate.
func Option(key string, value ...byte) Table { return Table{0: key, 1: value} }

// Chain is a chain of instructions.
func Chain(instructions ...Table) Table { return Table{2: instructions} }

// Instruction is one of KernelCall 1, DelegateCall 2, MoveCall 3, JumpFalseCall 4 and FreeCall 5.
func Instruction(kind uint8, args Table) Table { return Table{0: Union{kind, args}} }

// Graph is the graph of a Vulkan delegate.
type Graph struct {
	Values          []Table
	Operators       []Table
	Inputs, Outputs []uint32
	Constants       []Table
	Data            []byte // inline constants
}

// Bytes is the delegate.
func (g *Graph) Bytes() []byte {
	flat := Flat("VK00", Table{
		0: "0", 1: g.Operators, 2: g.Values, 3: g.Inputs, 4: g.Outputs, 5: g.Constants,
	})
	const header = 32
	at := (header + len(flat) + alignment - 1) / alignment * alignment
	out := make([]byte, at)
	copy(out[4:], "VH00")
	le := binary.LittleEndian
	le.PutUint16(out[8:], 30)
	le.PutUint32(out[10:], header)
	le.PutUint32(out[14:], uint32(len(flat)))
	le.PutUint32(out[18:], uint32(at))
	le.PutUint64(out[22:], uint64(len(g.Data)))
	copy(out[header:], flat)
	return append(out, g.Data...)
}

// Operator is an operator of a graph.
func Operator(id uint32, name string, args ...int32) Table { return Table{0: id, 1: name, 2: args} }

// GraphTensor is a value of a graph. constant and object are -1 for none.
func GraphTensor(dtype int8, constant, object int32, dims ...uint32) Table {
	return Table{0: Union{5, Table{0: dtype, 1: dims, 2: constant, 3: object}}}
}

// GraphInt is a value of a graph.
func GraphInt(n int64) Table { return Table{0: Union{2, Table{0: n}}} }

// GraphList is a list of values of a graph.
func GraphList(ids ...int32) Table { return Table{0: Union{9, Table{0: ids}}} }

// GraphSymInt is a value of a graph.
func GraphSymInt() Table { return Table{0: Union{11, Table{0: int32(0)}}} }

// ByKey is a constant of a graph that is named data.
func ByKey(key string, n uint64) Table { return Table{0: ^uint64(0), 1: n, 2: key} }

// Inline is a constant of a graph that is in the delegate.
func Inline(at, n uint64) Table { return Table{0: at, 1: n, 2: ""} }
