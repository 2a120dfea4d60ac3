package ptetest

import "encoding/binary"

// Program describes the contents of an ExecuTorch program.
type Program struct {
	Methods   []Table // made by the function Method
	Named     []Named
	Segments  [][]byte // stored after the segments of Named
	Inline    [][]byte // delegates stored in the FlatBuffer
	Buffers   [][]byte // constants stored in the FlatBuffer; the first is unused
	Constants *Packed  // segment of the constants; nil if the program has none
	Mutable   []Packed // segments with the initial contents of mutable buffers
	Plain     bool     // write the FlatBuffer without the extended header and without segments
	Short     bool     // write an extended header without the field for the size of the segments
}

// Named is a blob with a key.
type Named struct {
	Key    string
	Data   []byte
	Layout Table // type and shape of a tensor in a data file; nil for other blobs
}

// Packed is a segment that contains several tensors.
type Packed struct {
	Segment int      // number of the segment
	Offsets []uint64 // offset of each tensor in the segment
}

func (p *Packed) table() Table { return Table{0: uint32(p.Segment), 1: p.Offsets} }

const (
	alignment    = 16
	headerLength = 32
)

// segments concatenates `blobs` with padding. It returns the rows of the segment table and the concatenated
// bytes.
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

// Bytes returns the contents of the program file.
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

// insert inserts a header after the file identifier of a FlatBuffer. It pads the header so that the rest of
// the FlatBuffer stays aligned.
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

// DataFile returns the contents of a .ptd file.
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

// Bundle returns the contents of a .bpte file with a program and test suites.
func Bundle(program []byte, suites ...Table) []byte {
	return Flat("BP08", Table{0: uint32(0), 1: suites, 2: program})
}

// Suite returns the table of a method's test cases.
func Suite(method string, cases ...Table) Table { return Table{0: method, 1: cases} }

// Case returns the table of a test case.
func Case(inputs, outputs []Table) Table { return Table{0: inputs, 1: outputs} }

// Test returns the table of a test input or output that is a tensor.
func Test(dtype int8, sizes []int32, data []byte) Table {
	return Table{0: Union{1, Table{0: dtype, 1: sizes, 2: data}}}
}

// Method returns the table of a method, which the schema calls ExecutionPlan.
func Method(name string, values []Table, inputs, outputs []int32) Table {
	return Table{0: name, 2: values, 3: inputs, 4: outputs, 8: []int64{0, 1 << 20}}
}

// Value returns the table of a method's value: nil, an int64, a bool, a float64, a string, or a Table made by
// Tensor.
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
	panic("ptetest: Value: unsupported Go type")
}

// Tensor returns the table of a tensor whose memory the caller of the method provides. Tests may set more
// slots.
func Tensor(dtype int8, sizes ...int32) Table {
	order := make([]byte, len(sizes))
	for i := range order {
		order[i] = byte(i)
	}
	return Table{0: dtype, 2: sizes, 3: order}
}

// Delegate returns the table of a delegate whose data is in a segment.
func Delegate(backend string, segment int, options ...Table) Table {
	return Table{0: backend, 1: Table{0: int8(1), 1: uint32(segment)}, 2: options}
}

// Option returns the table of a compile option of a delegate.
func Option(key string, value ...byte) Table { return Table{0: key, 1: value} }

// Chain returns the table of a chain of instructions.
func Chain(instructions ...Table) Table { return Table{2: instructions} }

// Instruction returns the table of an instruction. The kinds are KernelCall 1, DelegateCall 2, MoveCall 3,
// JumpFalseCall 4 and FreeCall 5.
func Instruction(kind uint8, args Table) Table { return Table{0: Union{kind, args}} }

// Graph describes the graph of a Vulkan delegate.
type Graph struct {
	Values          []Table
	Operators       []Table
	Inputs, Outputs []uint32
	Constants       []Table
	Data            []byte // bytes of the constants that are stored in the delegate
}

// Bytes returns the bytes of the delegate.
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

// Operator returns the table of an operator of a graph.
func Operator(id uint32, name string, args ...int32) Table { return Table{0: id, 1: name, 2: args} }

// GraphTensor returns the table of a tensor of a graph. `constant` is -1 if the tensor is not a constant.
// `object` is -1 if the tensor has no memory object.
func GraphTensor(dtype int8, constant, object int32, dims ...uint32) Table {
	return Table{0: Union{5, Table{0: dtype, 1: dims, 2: constant, 3: object}}}
}

// GraphInt returns the table of an integer value of a graph.
func GraphInt(n int64) Table { return Table{0: Union{2, Table{0: n}}} }

// GraphList returns the table of a list of values of a graph.
func GraphList(ids ...int32) Table { return Table{0: Union{9, Table{0: ids}}} }

// GraphSymInt returns the table of a SymInt of a graph.
func GraphSymInt() Table { return Table{0: Union{11, Table{0: int32(0)}}} }

// ByKey returns the table of a constant of a graph. The file stores its n bytes as named data with the key.
func ByKey(key string, n uint64) Table { return Table{0: ^uint64(0), 1: n, 2: key} }

// Inline returns the table of a constant of a graph. The n bytes of the constant are stored in the delegate,
// at offset `at` of Graph.Data.
func Inline(at, n uint64) Table { return Table{0: at, 1: n, 2: ""} }
