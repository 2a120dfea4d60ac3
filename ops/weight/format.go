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

// Format is how the weights of a matrix are stored, in a file and on the device: a file here, NAME.go,
// with the geometry, how the bits move from the one place to the other (none is changed) and how they are
// read back, and a file shaders/include/format/NAME.wgsl with what kernels do to read them. Formats lists
// them all.
type Format struct {
	// Name ends the kinds of the operators that take it: linear_q8_0, embedding_q8_0. It is empty for f32.
	Name string
	// File is the type of a GGUF tensor that is stored so, as ggml names it; empty where there is none.
	File string
	Doc  string // the weights, in a line
	// Pieces are what a file has of a matrix: for most formats one, of blocks.
	Pieces []Block
	// Group is how many columns of a row share a scale; 0 where there is none.
	Group int

	check func(cols int) error // what is wrong with a row; nil where the pieces say all
	// shader names the file in shaders/include/format, and constants gives those that it asks for; nil where
	// it asks for none.
	shader    string
	constants func() shaders.Constants
	// AsHalves says that kernels multiply what is stored as halves, and take off once for many weights what
	// that has too much: until then a weight counts up to twice its size.
	AsHalves bool
	// MaxGroupsOf8 is how many times 8 columns a lane of a GEMV takes at a time at most, where the columns
	// are a multiple of that.
	MaxGroupsOf8 int
	// WorkgroupBytes is how many bytes of workgroup memory a GEMV takes to turn weights into floats.
	WorkgroupBytes int
	// Arrays are what holds a matrix on the device, one binding each.
	Arrays func(rows, cols int) []Array
	// ReadRow reads a row of the arrays.
	ReadRow func(arrays [][]byte, row int, into []float64)
}

// Formats are those that take no options, and an example of each that takes some.
var Formats = []Format{
	F32, F16, BF16, Q4_0, Q4GSW(32, Q4Options{}), QCS4W(64, Q4Options{}), Q4_1, Q5_0, Q5_1,
	Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, Q8_0, IQ4_NL, IQ4_XS,
}

// FormatOf is the format of a GGUF tensor of some type; false where there is none yet.
func FormatOf(file string) (Format, bool) {
	i := slices.IndexFunc(Formats, func(f Format) bool { return f.File == file && file != "" })
	if i < 0 {
		return Format{}, false
	}
	return Formats[i], true
}

// Block is how a piece of a matrix lies in a file: runs of Cols columns of a row are Bytes together.
type Block struct {
	Cols, Bytes int
	// Floats are where in a block numbers with an exponent lie: of all others any bits will do.
	Floats []Float
}

// Float is the place of a floating-point number in a block.
type Float struct {
	At, Bytes int
	Put       func(data []byte, v float32) // the nearest to v
}

// halves are places of halves, floats those of floats.
func halves(places ...int) (list []Float) {
	for _, at := range places {
		list = append(list, Float{at, 2, func(data []byte, v float32) {
			binary.LittleEndian.PutUint16(data, float16.Fromfloat32(v).Bits())
		}})
	}
	return list
}

func floats(places ...int) (list []Float) {
	for _, at := range places {
		list = append(list, Float{at, 4, func(data []byte, v float32) {
			binary.LittleEndian.PutUint32(data, math.Float32bits(v))
		}})
	}
	return list
}

// Array is a constant on the device that holds rows of a matrix, or a part of what they are.
type Array struct {
	name  string // of the kernels' binding
	DType graph.DType
	Dims  []int
	pack  pack
}

// bytes is how long the array is.
func (a *Array) bytes() int64 { return a.DType.Bytes(shape.Product(a.Dims)) }

// Matrix is constant weights of Rows outputs by Cols inputs, as a file gives them.
type Matrix struct {
	Name       string
	Rows, Cols int
	Format     Format
	// Data gives the pieces of the format, each with the rows one after another.
	Data func() ([][]byte, error)

	Dense *graph.ValueID // is the matrix, already in the graph
	over  *[2]Matrix     // one above the other are the matrix, of whole parts
	Err   error          // why there is no such matrix
}

// Dense is an f32 tensor of a graph as a matrix.
func Dense(b *graph.Builder, v graph.ValueID) Matrix {
	m := Matrix{Name: b.Name(v), Format: F32, Dense: &v}
	if b.Err() != nil || v == graph.None {
		return m
	}
	dims := b.MaxDims(v)
	switch {
	case b.DType(v) != graph.F32:
		m.Err = fmt.Errorf("matrix %s is %s, want f32", m.Name, b.DType(v))
	case len(dims) != 2 || dims[0] != b.MinDims(v)[0] || dims[1] != b.MinDims(v)[1]:
		m.Err = fmt.Errorf("matrix %s is %v, want [rows, columns] that do not change", m.Name, dims)
	default:
		m.Rows, m.Cols = dims[0], dims[1]
	}
	return m
}

// Part is n rows of the matrix, from first on, as a matrix of its own.
func (m Matrix) Part(first, n int) Matrix {
	part := m
	part.Name, part.Rows = fmt.Sprintf("%s.rows%d", m.Name, first), n
	part.Data = func() ([][]byte, error) { return m.rows(first, n) }
	if first < 0 || n < 1 || first+n > m.Rows || m.Dense != nil {
		part.Err = fmt.Errorf("%s: no rows %d to %d of %d x %d weights", m.Name, first, first+n-1, m.Rows,
			m.Cols)
	}
	return part
}

// Above is a matrix with the rows of another below its own; false where they are not of one format and width,
// or their rows not a multiple of partRows.
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

// AddConstants adds what the format's file in shaders/include/format asks for to the constants of a kernel.
func (f *Format) AddConstants(b *graph.Builder, c shaders.Constants) shaders.Constants {
	c["Format"], c["Flushes"] = f.shader, b.Limits().FlushesHalves
	if f.constants != nil {
		maps.Copy(c, f.constants())
	}
	return c
}

// KindName is the name of an operator with weights of the format.
func (f *Format) KindName(of string) string {
	if f.Name == "" {
		return of
	}
	return of + "_" + f.Name
}

// RowBytes is how many bytes of a piece a row takes.
func (p *Block) RowBytes(cols int) int { return cols / p.Cols * p.Bytes }

// InGroupsOf8 says whether rows are multiples of 8 columns, which is how kernels go through them.
func (m *Matrix) InGroupsOf8() bool { return m.Cols%8 == 0 }

// CheckSize says what is wrong with the matrix's size.
func (m *Matrix) CheckSize() error {
	f := &m.Format
	switch {
	case m.Err != nil:
		return m.Err
	case m.Rows < 1 || m.Cols < 1:
		return fmt.Errorf("%s: %d x %d weights, both must be positive", m.Name, m.Rows, m.Cols)
	case f.Arrays == nil:
		return fmt.Errorf("%s: weights without a format", m.Name)
	case f.Group > 0 && (m.Cols%8 != 0 || f.Group%8 != 0):
		return fmt.Errorf("%s: %d columns in groups of %d, both must be multiples of 8", m.Name, m.Cols,
			f.Group)
	case f.Group > 0 && m.Cols%f.Group != 0:
		return fmt.Errorf("%s: %d columns do not divide into groups of %d", m.Name, m.Cols, f.Group)
	}
	for _, p := range f.Pieces {
		if m.Cols%p.Cols != 0 {
			return fmt.Errorf("%s: %d columns do not divide into blocks of %d", m.Name, m.Cols, p.Cols)
		}
	}
	if f.check != nil {
		if err := f.check(m.Cols); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	return nil
}

// rows are the bytes of some rows of each piece of the matrix.
func (m *Matrix) rows(first, n int) ([][]byte, error) {
	if m.over != nil {
		return m.rowsOfBoth(first, n)
	}
	pieces, err := m.Data()
	if err != nil {
		return nil, err
	}
	if len(pieces) != len(m.Format.Pieces) {
		return nil, fmt.Errorf("%s: %d pieces of data, its format has %d", m.Name, len(pieces),
			len(m.Format.Pieces))
	}
	list := make([][]byte, len(pieces))
	for i, data := range pieces {
		size := m.Format.Pieces[i].RowBytes(m.Cols)
		if len(data) != m.Rows*size {
			return nil, fmt.Errorf("%s: %d bytes for %d x %d weights, want %d", m.Name, len(data), m.Rows,
				m.Cols, m.Rows*size)
		}
		list[i] = data[first*size : (first+n)*size]
	}
	return list, nil
}

// rowsOfBoth are rows of the two that are the matrix.
func (m *Matrix) rowsOfBoth(first, n int) ([][]byte, error) {
	top, bottom := &m.over[0], &m.over[1]
	switch {
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

// Part is a range of the rows of a matrix that is bound, and dispatched, by itself. There is more than one
// only where the device's limit on a binding asks for it.
type Part struct {
	First, Rows int
	Arrays      []graph.ValueID
	Bytes       int64 // of the weights
}

// PartRows is what the rows of a part are a multiple of, where there are several: whole tiles.
const PartRows = 128

// Declare puts the matrix into a graph as constants. Operators that name the same matrix share them.
func (m *Matrix) Declare(b *graph.Builder) []Part {
	var rowBytes int64
	for _, p := range m.Format.Pieces {
		rowBytes += int64(p.RowBytes(m.Cols))
	}
	if m.Dense != nil {
		return []Part{{Rows: m.Rows, Arrays: []graph.ValueID{*m.Dense}, Bytes: int64(m.Rows) * rowBytes}}
	}
	rows := m.Rows
	limit := int64(min(b.Limits().MaxStorageBinding, b.Limits().MaxBufferSize))
	for _, a := range m.Format.Arrays(PartRows, m.Cols) {
		if most := PartRows * limit / a.bytes(); int64(m.Rows) > most {
			rows = min(rows, int(max(most/PartRows, 1))*PartRows)
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
		if m.Format.Name != "" { // the first has the weights, and those after it their scales and the like
			b.Packs(p.Arrays[0], m.Format.Name, p.Rows, m.Cols)
		}
		parts = append(parts, p)
	}
	return parts
}

// Bindings are the arrays of a part under the names of the kernels' bindings.
func (m *Matrix) Bindings(p *Part) []graph.Binding {
	var list []graph.Binding
	for i, a := range m.Format.Arrays(p.Rows, m.Cols) {
		list = append(list, graph.Binding{Name: a.name, Value: p.Arrays[i]})
	}
	return list
}

// Reader reads the rows of a part as the kernels' layout has them.
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

// PartLabel is the label of a part's dispatch.
func PartLabel(i, parts int) string {
	if parts == 1 {
		return ""
	}
	return fmt.Sprintf("part%d", i)
}

// weightsArray is an array that holds rows as a file's blocks have them, or in an order that pack brings them
// to.
func weightsArray(t graph.DType, rows, cols int, pack pack) Array {
	return Array{"weights", t, []int{rows, cols}, pack}
}

// fourRows is an array with a number of so many bytes for each group of a row, of which those of 4 rows lie
// together, for a lane of a GEMV to load at once; at gives the bytes of number i, row by row, low byte first.
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

// fours is how many times 4 rows there are, of the multiple of 16 that rows are rounded up to: as many as a
// GEMV takes at most.
func fours(rows int) int { return shape.DivUp(rows, 16) * 4 }

// fourthOf says which number that of a row's group is.
func fourthOf(row, g, groups int) int { return (row/4*groups+g)*4 + row%4 }

// rowScales is how shaders/include/row_scales.wgsl has a number for each group of columns of a row.
type rowScales struct {
	group int
	half  bool
}

// halfOf32 is a half for 32 columns, as most of ggml's small blocks have them.
var halfOf32 = rowScales{group: 32, half: true}

func (s rowScales) Array(name string, rows, cols int, at func(pieces [][]byte, i int) []byte) Array {
	if s.half {
		return fourRows(name, graph.F16, rows, cols/s.group, 2, at)
	}
	return fourRows(name, graph.F32, rows, cols/s.group, 4, at)
}

// read is the number of a row's column.
func (s rowScales) read(data []byte, row, col, cols int) float64 {
	at := fourthOf(row, col/s.group, cols/s.group)
	if s.half {
		return float64(half(data[2*at:]))
	}
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(data[4*at:])))
}

// constants are what row_scales.wgsl asks for.
func (s rowScales) constants() shaders.Constants {
	return shaders.Constants{"HalfScales": s.half, "GroupEights": s.group / 8}
}

// supers is how shaders/include/supers.wgsl has what the scales of a block of 256 columns count in: its size,
// and where in it the halves lie, that of the scales and, if there is one, that of the zeros.
type supers struct {
	size int
	at   []int
}

func (s supers) Array(rows, cols int) Array {
	n := len(s.at)
	return fourRows("supers", graph.F16, rows, cols/256*n, 2, func(p [][]byte, i int) []byte {
		return p[0][i/n*s.size+s.at[i%n]:][:2]
	})
}

// read is the half of a row's column, that of the scales or which of them.
func (s supers) read(data []byte, row, col, cols, which int) float64 {
	n := len(s.at)
	return float64(half(data[2*fourthOf(row, col/256*n+which, cols/256*n):]))
}

// sixteens are a byte for each 16 columns, which blocks of so many bytes have from a place on, as
// shaders/include/sixteens.wgsl has them.
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

// sixes is how shaders/include/sixes.wgsl has numbers of 6 bits: how many a block of 256 columns has, its
// size, and number i of it.
type sixes struct {
	n, size int
	number  func(block []byte, i int) byte
}

func (s sixes) Array(rows, cols int) Array {
	per := cols / 256 * s.n
	return Array{"scales", graph.U32, []int{fours(rows), per / 4, 3}, func(p [][]byte, into []byte) {
		blocks := p[0]
		for row := range rows {
			for first := 0; first < per; first += s.n {
				for i := range s.n {
					q := s.number(blocks, i)
					at, four, high, two := sixAt(row, first+i, per)
					into[at] |= q & 15 << four
					into[high] |= q >> 4 << two
				}
				blocks = blocks[s.size:]
			}
		}
	}}
}

// read is number i of a row.
func (s sixes) read(data []byte, row, i, cols int) byte {
	at, four, high, two := sixAt(row, i, cols/256*s.n)
	return data[at]>>four&15 | data[high]>>two&3<<4
}

// sixAt says in which byte, and at which bit of it, the low four of number i of a row are, and where the high
// two, where a row has so many numbers.
func sixAt(row, i, per int) (low, four, high, two int) {
	words, odd, r := (row/4*per+i/4*4)*3, i/2%2, row%4
	return words + 4*odd + r, i % 2 * 4, words + 8 + r/2*2 + odd, r%2*4 + i%2*2
}

// half is the number whose bits a half's two bytes are.
func half(data []byte) float32 { return float16.Frombits(binary.LittleEndian.Uint16(data)).Float32() }
