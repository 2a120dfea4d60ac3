package weight

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/x448/float16"

	"gpuscope/engine/graph"
	"gpuscope/ops/internal/shape"
	"gpuscope/ops/reference"
	"gpuscope/shaders"
)

// Format describes how the weights of a matrix are stored, in a model file and on the device. Each format has
// two source files. NAME.go in this package has the sizes of blocks. It also has the code that rearranges
// weights from file order to device order, which changes no bit, and the code that reads rearranged weights
// as float64. shaders/include/format/NAME.wgsl has the code with which kernels read the weights. Formats
// lists all formats.
type Format struct {
	// Name is the suffix of the kinds of operators that use the format: linear_q8_0, embedding_q8_0. It is
	// empty for f32.
	Name string
	// File is ggml's name for the GGUF tensor type with this format. It is empty if GGUF has no such type.
	File string
	Doc  string // one line that says how a weight is computed from the stored numbers
	// Pieces describes the byte arrays in which a file stores a matrix. Most formats have one such array,
	// which consists of blocks.
	Pieces []Block
	// Group is the number of columns that share a scale in a row. It is 0 if the format has no scales.
	Group int

	// check(cols) returns an error if the format cannot store rows with this number of columns. The field is
	// nil if the block sizes in Pieces are the only restriction.
	check func(cols int) error
	// shader is the base name of the format's WGSL file in shaders/include/format.
	shader string
	// constants() returns the template constants that the WGSL file needs. The field is nil if the file needs
	// none.
	constants func() shaders.Constants
	// If AsHalves is true, kernels make an f16 number from the stored bits. The number is the weight, or the
	// weight plus a constant offset. To save time, kernels subtract the offset from a sum of many products,
	// not from each weight. Until then, a weight can be up to twice as large as its true value.
	AsHalves bool
	// MaxGroupsOf8 is the number of 8-column groups that a lane of a GEMV processes at a time, if the number
	// of columns is large enough and a multiple of 8 * MaxGroupsOf8. Otherwise the lane processes one group
	// at a time.
	MaxGroupsOf8 int
	// WorkgroupBytes is the size of a lookup table that a GEMV needs in workgroup memory to convert weights
	// to floats.
	WorkgroupBytes int
	// Arrays returns the constants that hold a matrix on the device. Each array has its own binding.
	Arrays func(rows, cols int) []Array
	// factors is the index of the array that factorsArray describes, or 0 if there is none.
	factors int
	// ReadRow returns a row of weights. It reads them from the bytes of the constants that Arrays describes.
	ReadRow func(arrays [][]byte, row int, into []float64)
}

// Formats lists the formats without options, and one example of each format with options.
var Formats = []Format{
	F32, F16, BF16, Q4_0, Q4GSW(32, Q4Options{}), QCS4W(64, Q4Options{}), Q4_1, Q5_0, Q5_1,
	Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, Q8_0, IQ4_NL, IQ4_XS, MXFP4, NVFP4,
}

// FormatOf returns the format of a GGUF tensor whose type has the given ggml name. It returns false if the
// type is not supported.
func FormatOf(file string) (Format, bool) {
	i := slices.IndexFunc(Formats, func(f Format) bool { return f.File == file && file != "" })
	if i < 0 {
		return Format{}, false
	}
	return Formats[i], true
}

// Block describes a block of a matrix in a file: Cols consecutive columns of a row are stored in Bytes bytes.
type Block struct {
	Cols, Bytes int
	// Floats lists the floating-point numbers in a block. Random bits could make them NaN, so code that makes
	// up weights writes them with Put. All other bits of a block can have any value.
	Floats []Float
}

// Float describes a floating-point number in a block.
type Float struct {
	At, Bytes int                          // offset in the block and size, in bytes
	Put       func(data []byte, v float32) // writes the representable number nearest to v to data
}

// halves(offsets...) describes f16 numbers at these byte offsets in a block.
func halves(places ...int) (list []Float) {
	for _, at := range places {
		list = append(list, Float{at, 2, func(data []byte, v float32) {
			binary.LittleEndian.PutUint16(data, float16.Fromfloat32(v).Bits())
		}})
	}
	return list
}

// floats(offsets...) describes f32 numbers at these byte offsets in a block.
func floats(places ...int) (list []Float) {
	for _, at := range places {
		list = append(list, Float{at, 4, func(data []byte, v float32) {
			binary.LittleEndian.PutUint32(data, math.Float32bits(v))
		}})
	}
	return list
}

// Array describes one of the constants that hold a matrix on the device, for example the constant with the
// scales.
type Array struct {
	name  string // name of the binding in kernels
	DType graph.DType
	Dims  []int
	pack  pack
}

func (a *Array) bytes() int64 { return a.DType.Bytes(shape.Product(a.Dims)) }

// Matrix is a constant weight matrix in the format of a model file. It has a row for each output and a
// column for each input.
type Matrix struct {
	Name       string
	Rows, Cols int
	Format     Format
	// Data returns the byte arrays that Format.Pieces describes. Each array has the rows of the matrix one
	// after another.
	Data func() ([][]byte, error)
	// Factor returns a number by which the weights of a row are multiplied. Four rows that are stored
	// together have the same factor. Factor is nil if the matrix has no factors. Only NVFP4 has them.
	Factor func(row int) (float32, error)

	Dense *graph.ValueID // the matrix as an f32 tensor of the graph, or nil
	over  *[2]Matrix     // the two joined matrices, if Above or Interleave returned this matrix; else nil
	each  int            // if interleaved: number of rows taken at a time from each of these
	whole *alternate     // how Alternate selected these rows from another matrix; nil if it did not
	Err   error          // reason why the matrix cannot be used, or nil
}

// Dense returns an f32 tensor of a graph as a Matrix. If this is not possible, Err of the result says why.
func Dense(b *graph.Builder, v graph.ValueID) Matrix {
	m := Matrix{Name: b.Name(v), Format: F32, Dense: &v}
	if b.Err() != nil || v == graph.None {
		return m
	}
	dims := b.MaxDims(v)
	switch {
	case b.DType(v) != graph.F32:
		m.Err = fmt.Errorf("matrix %s has element type %s, want f32", m.Name, b.DType(v))
	case len(dims) != 2 || dims[0] != b.MinDims(v)[0] || dims[1] != b.MinDims(v)[1]:
		m.Err = fmt.Errorf("matrix %s has dims %v, want [rows, columns] of fixed size", m.Name, dims)
	default:
		m.Rows, m.Cols = dims[0], dims[1]
	}
	return m
}

// Part returns n rows of the matrix, starting at row `first`, as a separate Matrix. If the matrix does not
// have these rows, the field Err of the result is set.
func (m Matrix) Part(first, n int) Matrix {
	part := m
	part.Name, part.Rows = fmt.Sprintf("%s.rows%d", m.Name, first), n
	part.Data = func() ([][]byte, error) { return m.rows(first, n) }
	if m.Factor != nil {
		part.Factor = func(row int) (float32, error) { return m.Factor(first + row) }
	}
	if first < 0 || n < 1 || first+n > m.Rows || m.Dense != nil {
		part.Err = fmt.Errorf("%s: cannot use rows %d to %d as a matrix: the whole matrix is %d x %d",
			m.Name, first, first+n-1,
			m.Rows, m.Cols)
	}
	return part
}

// Above joins two matrices: the result has the rows of m, followed by the rows of n. Above returns false if
// the matrices differ in format or in number of columns. It also returns false if the number of rows of one
// of them is not a multiple of PartRows.
func (m Matrix) Above(n Matrix) (Matrix, bool) {
	f, g := &m.Format, &n.Format
	same := f.Name == g.Name && f.File == g.File && f.Group == g.Group && m.Cols == n.Cols
	whole := m.Rows%PartRows == 0 && n.Rows%PartRows == 0
	if !same || !whole || m.Dense != nil || n.Dense != nil {
		return Matrix{}, false
	}
	both := Matrix{
		Name: m.Name + "+" + n.Name, Rows: m.Rows + n.Rows, Cols: m.Cols, Format: m.Format,
		over: &[2]Matrix{m, n},
	}
	return both, true
}

// Interleave joins two matrices of the same size: the result has the first `each` rows of m, then the first
// `each` rows of n, then the next `each` rows of m, and so on. If m and n are stacks of matrices that have
// `each` rows, the result has the first matrix of m, the first of n, the second of m, and so on. Interleave
// returns false if the matrices differ in format or size. It also returns false if `each` is not a multiple
// of 4 that divides the number of rows.
func (m Matrix) Interleave(n Matrix, each int) (Matrix, bool) {
	f, g := &m.Format, &n.Format
	same := f.Name == g.Name && f.File == g.File && f.Group == g.Group && m.Cols == n.Cols && m.Rows == n.Rows
	if !same || each < 4 || each%4 != 0 || m.Rows%each != 0 || m.Dense != nil || n.Dense != nil {
		return Matrix{}, false
	}
	if a, b := m.whole, n.whole; a != nil && b != nil && a.of.Name == b.of.Name && a.each == each &&
		b.each == each && a.which == 0 && b.which == 1 {
		return a.of, true
	}
	return Matrix{
		Name: m.Name + "+" + n.Name, Rows: 2 * m.Rows, Cols: m.Cols, Format: m.Format, over: &[2]Matrix{m, n},
		each: each,
	}, true
}

// alternate says which rows of a matrix Alternate has chosen.
type alternate struct {
	of          Matrix
	each, which int
}

// Alternate divides the rows of a matrix into groups of `each` rows, and returns every second group. `which`
// is 0 for the first, third, ... group, and 1 for the second, fourth, ... group. Alternate undoes Interleave.
func (m Matrix) Alternate(each, which int) Matrix {
	part := m
	part.Name, part.Rows = fmt.Sprintf("%s.half%d", m.Name, which), m.Rows/2
	part.whole = &alternate{m, each, which}
	if m.Factor != nil {
		part.Factor = func(row int) (float32, error) { return m.Factor((2*(row/each)+which)*each + row%each) }
	}
	part.Data = func() ([][]byte, error) {
		pieces, err := m.rows(0, m.Rows)
		if err != nil {
			return nil, err
		}
		list := make([][]byte, len(pieces))
		for i, p := range m.Format.Pieces {
			group := each * p.RowBytes(m.Cols)
			list[i] = make([]byte, 0, len(pieces[i])/2)
			for at := which * group; at < len(pieces[i]); at += 2 * group {
				list[i] = append(list[i], pieces[i][at:at+group]...)
			}
		}
		return list, nil
	}
	if part.Err == nil && (each < 1 || m.Rows%(2*each) != 0 || m.Dense != nil) {
		part.Err = fmt.Errorf("%s: cannot divide %d rows into pairs of groups with %d rows each",
			m.Name, m.Rows, each)
	}
	return part
}

// AddConstants adds the template constants of the format's WGSL file to c, and returns c.
func (f *Format) AddConstants(b *graph.Builder, c shaders.Constants) shaders.Constants {
	c["Format"], c["Flushes"] = f.shader, b.Limits().FlushesHalves
	if f.constants != nil {
		maps.Copy(c, f.constants())
	}
	return c
}

// KindName returns the name of the kind of operator that uses weights in this format. For example, it returns
// "linear_q8_0" for "linear".
func (f *Format) KindName(of string) string {
	if f.Name == "" {
		return of
	}
	return of + "_" + f.Name
}

// RowBytes returns the size in bytes of a row with `cols` columns, in a byte array that consists of such
// blocks.
func (p *Block) RowBytes(cols int) int { return cols / p.Cols * p.Bytes }

// InGroupsOf8 reports whether the number of columns is a multiple of 8. Most kernels read columns in groups
// of 8.
func (m *Matrix) InGroupsOf8() bool { return m.Cols%8 == 0 }

// CheckSize returns an error if the format cannot store a matrix of this size.
func (m *Matrix) CheckSize() error {
	f := &m.Format
	switch {
	case m.Err != nil:
		return m.Err
	case m.Rows < 1 || m.Cols < 1:
		return fmt.Errorf("%s: matrix size is %d x %d, want positive numbers", m.Name, m.Rows, m.Cols)
	case f.Arrays == nil:
		return fmt.Errorf("%s: the weights have no format", m.Name)
	case f.Group > 0 && (m.Cols%8 != 0 || f.Group%8 != 0):
		return fmt.Errorf("%s: matrix has %d columns, in groups of %d; want multiples of 8 for both",
			m.Name, m.Cols,
			f.Group)
	case f.Group > 0 && m.Cols%f.Group != 0:
		return fmt.Errorf("%s: the number of columns (%d) is not a multiple of the group size (%d)",
			m.Name, m.Cols, f.Group)
	}
	for _, p := range f.Pieces {
		if m.Cols%p.Cols != 0 {
			return fmt.Errorf("%s: the number of columns (%d) is not a multiple of the block size (%d)",
				m.Name, m.Cols,
				p.Cols)
		}
	}
	if f.check != nil {
		if err := f.check(m.Cols); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	return nil
}

// rows(first, n) returns one byte array for each element of Format.Pieces. Each array has n rows, starting
// at row `first`.
func (m *Matrix) rows(first, n int) ([][]byte, error) {
	if m.over != nil {
		return m.rowsOfBoth(first, n)
	}
	pieces, err := m.Data()
	if err != nil {
		return nil, err
	}
	if len(pieces) != len(m.Format.Pieces) {
		return nil, fmt.Errorf("%s: got %d byte arrays, but its format needs %d", m.Name, len(pieces),
			len(m.Format.Pieces))
	}
	list := make([][]byte, len(pieces))
	for i, data := range pieces {
		size := m.Format.Pieces[i].RowBytes(m.Cols)
		if len(data) != m.Rows*size {
			return nil, fmt.Errorf("%s: got %d bytes for %d x %d weights, want %d", m.Name, len(data), m.Rows,
				m.Cols, m.Rows*size)
		}
		list[i] = data[first*size : (first+n)*size]
	}
	return list, nil
}

// rowsOfBoth does the same as rows, for a matrix that Above or Interleave has returned.
func (m *Matrix) rowsOfBoth(first, n int) ([][]byte, error) {
	top, bottom := &m.over[0], &m.over[1]
	switch {
	case m.each > 0:
		return m.rowsInTurn(first, n)
	case first+n <= top.Rows:
		return top.rows(first, n)
	case first >= top.Rows:
		return bottom.rows(first-top.Rows, n)
	}
	upper, err := top.rows(first, top.Rows-first)
	if err != nil {
		return nil, err
	}
	lower, err := bottom.rows(0, first+n-top.Rows)
	if err != nil {
		return nil, err
	}
	list := make([][]byte, len(upper))
	for i := range list {
		list[i] = slices.Concat(upper[i], lower[i])
	}
	return list, nil
}

// rowsInTurn does the same as rows, for a matrix that Interleave has returned.
func (m *Matrix) rowsInTurn(first, n int) ([][]byte, error) {
	var sources [2][][]byte
	for i := range sources {
		var err error
		if sources[i], err = m.over[i].rows(0, m.over[i].Rows); err != nil {
			return nil, err
		}
	}
	list := make([][]byte, len(m.Format.Pieces))
	for i, p := range m.Format.Pieces {
		size := p.RowBytes(m.Cols)
		list[i] = make([]byte, 0, n*size)
		for row := first; row < first+n; {
			block, at := row/m.each, row%m.each
			count := min(m.each-at, first+n-row)
			list[i] = append(list[i], sources[block%2][i][(block/2*m.each+at)*size:][:count*size]...)
			row += count
		}
	}
	return list, nil
}

// Part is a range of rows of a matrix. Each part has its own bindings and its own dispatch. A matrix has more
// than one part only if it exceeds the device's limit on the size of a binding.
type Part struct {
	First, Rows int
	Arrays      []graph.ValueID
	Bytes       int64 // size of the weights, in bytes
}

// PartRows is the unit of the size of a part. Except for the last part of a matrix, the number of rows of a
// part is a multiple of PartRows. Tiles of results therefore never cross the border of a part.
const PartRows = 128

// Declare adds the matrix to a graph as constants, and returns its parts. Operators that use the same matrix
// share the constants.
func (m *Matrix) Declare(b *graph.Builder) []Part { return m.DeclareIn(b, PartRows) }

// DeclareIn does the same as Declare, with parts whose number of rows is a multiple of `unit`.
func (m *Matrix) DeclareIn(b *graph.Builder, unit int) []Part {
	var rowBytes int64
	for _, p := range m.Format.Pieces {
		rowBytes += int64(p.RowBytes(m.Cols))
	}
	if m.Dense != nil {
		return []Part{{Rows: m.Rows, Arrays: []graph.ValueID{*m.Dense}, Bytes: int64(m.Rows) * rowBytes}}
	}
	rows := m.Rows
	limit := int64(min(b.Limits().MaxStorageBinding, b.Limits().MaxBufferSize))
	for _, a := range m.Format.Arrays(unit, m.Cols) {
		if most := int64(unit) * limit / a.bytes(); int64(m.Rows) > most {
			rows = min(rows, int(max(most/int64(unit), 1))*unit)
		}
	}
	var parts []Part
	count := shape.DivUp(m.Rows, rows)
	for i := range count {
		p := Part{First: i * rows, Rows: min(rows, m.Rows-i*rows)}
		p.Bytes = int64(p.Rows) * rowBytes
		suffix := ""
		if count > 1 {
			suffix = fmt.Sprintf(".rows%d", p.First)
		}
		for k, a := range m.Format.Arrays(p.Rows, m.Cols) {
			name := m.Name
			if k > 0 {
				name += "." + a.name
			}
			p.Arrays = append(p.Arrays, b.Constant(name+suffix, a.DType, a.Dims, func() ([]byte, error) {
				return m.PackArray(k, p.First, p.Rows)
			}))
		}
		if m.Format.Name != "" { // ids of the constants: first the weights, then arrays such as the scales
			b.Packs(p.Arrays[0], m.Format.Name, p.Rows, m.Cols)
		}
		parts = append(parts, p)
	}
	return parts
}

// Bindings binds the arrays of a part under the binding names of the kernels.
func (m *Matrix) Bindings(p *Part) []graph.Binding {
	var list []graph.Binding
	for i, a := range m.Format.Arrays(p.Rows, m.Cols) {
		list = append(list, graph.Binding{Name: a.name, Value: p.Arrays[i]})
	}
	return list
}

// Reader returns a function that reads one row of a part. It reads the same constants, in the same layout, as
// the kernels.
func (m *Matrix) Reader(r *reference.Ref, p *Part) func(row int, into []float64) {
	if m.Dense != nil {
		w := r.Tensor(*m.Dense)
		return func(row int, into []float64) { copy(into, w.Row(row)) }
	}
	var arrays [][]byte
	for _, v := range p.Arrays {
		arrays = append(arrays, r.Bytes(v))
	}
	return func(row int, into []float64) { m.Format.ReadRow(arrays, row, into) }
}

// PartLabel returns the label of the dispatch for part i of a matrix. If the matrix has only one part, the
// label is empty.
func PartLabel(i, parts int) string {
	if parts == 1 {
		return ""
	}
	return fmt.Sprintf("part%d", i)
}

// factor returns the number by which the weights of a row are multiplied.
func (m *Matrix) factor(row int) (float32, error) {
	switch {
	case m.over != nil && m.each > 0:
		block, at := row/m.each, row%m.each
		return m.over[block%2].factor(block/2*m.each + at)
	case m.over != nil && row >= m.over[0].Rows:
		return m.over[1].factor(row - m.over[0].Rows)
	case m.over != nil:
		return m.over[0].factor(row)
	case m.Factor == nil:
		return 1, nil
	}
	return m.Factor(row)
}

// weightsArray describes the array of weights on the device. If `pack` is nil, the array has the order of the
// file. Otherwise the function `pack` rearranges the weights.
func weightsArray(t graph.DType, rows, cols int, pack pack) Array {
	return Array{"weights", t, []int{rows, cols}, pack}
}

// fourRows describes an array that has one number, such as a scale, for each group of columns in each row. A
// number has `size` bytes. The numbers of 4 rows for the same group are stored together, so that a lane of a
// GEMV can load them at once. The function `at` returns the bytes of number i, counted in row-major order,
// low byte first.
func fourRows(name string, t graph.DType, rows, groups, size int,
	at func(pieces [][]byte, i int) []byte,
) Array {
	dims := []int{fours(rows), groups, 4}
	return Array{name, t, dims, func(pieces [][]byte, into []byte) {
		for row := range rows {
			for g := range groups {
				copy(into[fourthOf(row, g, groups)*size:][:size], at(pieces, row*groups+g))
			}
		}
	}}
}

// fours(rows) returns the number of groups of 4 rows. It first rounds the number of rows up to a multiple of
// 16: a workgroup of a GEMV processes at most 16 rows.
func fours(rows int) int { return shape.DivUp(rows, 16) * 4 }

// fourthOf returns the index of a number in an array that fourRows describes. The number belongs to group g
// of a row.
func fourthOf(row, g, groups int) int { return (row/4*groups+g)*4 + row%4 }

// rowScales describes an array with one scale for each group of columns of a row, in the layout of
// shaders/include/row_scales.wgsl.
type rowScales struct {
	group int  // columns that share a scale
	half  bool // scales are f16, not f32
}

// halfOf32 describes scales in f16, with one scale for each 32 columns. Most of ggml's formats with blocks of
// 32 columns use such scales.
var halfOf32 = rowScales{group: 32, half: true}

func (s rowScales) Array(name string, rows, cols int, at func(pieces [][]byte, i int) []byte) Array {
	if s.half {
		return fourRows(name, graph.F16, rows, cols/s.group, 2, at)
	}
	return fourRows(name, graph.F32, rows, cols/s.group, 4, at)
}

// read(...) returns the scale of the weight with the given row and column.
func (s rowScales) read(data []byte, row, col, cols int) float64 {
	at := fourthOf(row, col/s.group, cols/s.group)
	if s.half {
		return float64(half(data[2*at:]))
	}
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(data[4*at:])))
}

// constants() returns the template constants that row_scales.wgsl needs.
func (s rowScales) constants() shaders.Constants {
	return shaders.Constants{"HalfScales": s.half, "GroupEights": s.group / 8}
}

// byteScales describes an array with a one-byte scale for each group of columns of a row, in the layout of
// shaders/include/byte_scales.wgsl.
type byteScales struct {
	group   int  // columns that share a scale
	size    int  // size of a block in the file, in bytes
	n       int  // number of scales at the start of a block
	factors bool // whether a matrix can have a factor; see factorsArray
}

func (s byteScales) Array(rows, cols int) Array {
	return fourRows("scales", graph.I8, rows, cols/s.group, 1, func(p [][]byte, i int) []byte {
		return p[0][i/s.n*s.size+i%s.n:][:1]
	})
}

// read(...) returns the byte for the weight with the given row and column.
func (s byteScales) read(data []byte, row, col, cols int) byte {
	return data[fourthOf(row, col/s.group, cols/s.group)]
}

// constants() returns the template constant that byte_scales.wgsl needs.
func (s byteScales) constants() shaders.Constants {
	return shaders.Constants{"GroupEights": s.group / 8, "Factors": s.factors}
}

// factorsArray describes an array that has one factor for every four rows, even if all rows of a matrix have
// the same factor. All matrices can then use the same kernels, and the two halves of a joined matrix can have
// different factors.
func factorsArray(rows int) Array {
	return Array{"factors", graph.F32, []int{fours(rows)}, nil}
}

// supers describes the super-block scales of a format, in the layout of shaders/include/supers.wgsl. A
// super-block has 256 columns. One f16 number multiplies its integer scales. If the format has integer zero
// points, another f16 number multiplies these.
type supers struct {
	size int   // size of a super-block in the file, in bytes
	at   []int // byte offsets of the f16 numbers in a super-block: for scales, then for zero points
}

func (s supers) Array(rows, cols int) Array {
	n := len(s.at)
	return fourRows("supers", graph.F16, rows, cols/256*n, 2, func(p [][]byte, i int) []byte {
		return p[0][i/n*s.size+s.at[i%n]:][:2]
	})
}

// read(...) returns the super-block scale for a weight. If `which` is 0, this is the f16 number that
// multiplies the weight's integer scale. If `which` is 1, it is the f16 number that multiplies the weight's
// integer zero point.
func (s supers) read(data []byte, row, col, cols, which int) float64 {
	n := len(s.at)
	return float64(half(data[2*fourthOf(row, col/256*n+which, cols/256*n):]))
}

// sixteens describes an array with a one-byte scale for each 16 columns, in the layout of
// shaders/include/sixteens.wgsl. `size` is the size of a block in the file, and `at` is the offset of the
// scales in a block. Both are in bytes.
type sixteens struct{ size, at int }

func (s sixteens) Array(rows, cols int) Array {
	groups := cols / 16
	return Array{"scales", graph.I8, []int{fours(rows), groups, 4}, func(p [][]byte, into []byte) {
		blocks := p[0]
		for row := range rows {
			for g := 0; g < groups; g += 16 {
				for i, b := range blocks[s.at : s.at+16] {
					into[fourthOf(row, g+i, groups)] = b
				}
				blocks = blocks[s.size:]
			}
		}
	}}
}

func (s sixteens) read(data []byte, row, col, cols int) byte {
	return data[fourthOf(row, col/16, cols/16)]
}

// sixes describes an array of 6-bit scales, in the layout of shaders/include/sixes.wgsl.
type sixes struct {
	n, size int                            // number of scales and size in bytes of a 256-column block
	number  func(block []byte, i int) byte // returns the scale with index i in a block
}

func (s sixes) Array(rows, cols int) Array {
	per := cols / 256 * s.n
	return Array{"scales", graph.U32, []int{fours(rows), per / 4, 3}, func(p [][]byte, into []byte) {
		blocks := p[0]
		for row := range rows {
			for first := 0; first < per; first += s.n {
				for i := range s.n {
					q := s.number(blocks, i)
					low, lowBit, high, highBit := sixAt(row, first+i, per)
					into[low] |= q & 15 << lowBit
					into[high] |= q >> 4 << highBit
				}
				blocks = blocks[s.size:]
			}
		}
	}}
}

// read(...) returns the 6-bit scale with index i in a row.
func (s sixes) read(data []byte, row, i, cols int) byte {
	low, lowBit, high, highBit := sixAt(row, i, cols/256*s.n)
	return data[low]>>lowBit&15 | data[high]>>highBit&3<<4
}

// sixAt returns where the array stores the 6-bit scale with index i in a row. `per` is the number of scales
// in a row. The low 4 bits of the scale start at bit `lowBit` of the byte with index `low`. The high 2 bits
// start at bit `highBit` of the byte with index `high`.
func sixAt(row, i, per int) (low, lowBit, high, highBit int) {
	words, odd, r := (row/4*per+i/4*4)*3, i/2%2, row%4
	return words + 4*odd + r, i % 2 * 4, words + 8 + r/2*2 + odd, r%2*4 + i%2*2
}

// half decodes the f16 number in the first two bytes of data.
func half(data []byte) float32 { return float16.Frombits(binary.LittleEndian.Uint16(data)).Float32() }
