package weight

import (
	"encoding/binary"
	"math"
	"runtime"
	"slices"
	"sync"

	"gpuscope/ops/internal/shape"
)

// A pack is a function that rearranges some rows of a matrix: from the pieces of a file into the layout of
// an array on the device. It does not change the bits of any number. All bytes of `into` must be zero before
// the call. An array without a pack is a copy of the only piece of the file.
type pack func(pieces [][]byte, into []byte)

// packed describes how the blocks of a file store numbers that have only a few bits each. A block has `size`
// bytes. The numbers are in n of these bytes, starting at offset `at`. Each byte has 8/bits numbers. The n
// bytes form groups of `run` bytes, and `run` is a multiple of 8. The lowest bits of the bytes of a group
// hold the columns 0, 1, ..., run-1. The next higher bits hold the next `run` columns, and so on. The method
// inOrder puts the numbers into the order of the columns.
type packed struct{ size, at, n, bits, run int }

// inOrder is a pack that puts the numbers into the order of the columns. It fills each byte of `into` from
// the lowest bits up.
func (p packed) inOrder(pieces [][]byte, into []byte) {
	// Each step reads eight bytes and keeps the number at one bit position of each byte. It then moves these
	// eight numbers next to each other: first to pairs, then to groups of four, then to one group of eight.
	lanes := [4]uint64{0x0101010101010101, 0x0001000100010001, 0x0000000100000001, 1}
	var masks [4]uint64
	for i := range masks {
		masks[i] = lanes[i] * (1<<(p.bits<<i) - 1)
	}
	for blocks := pieces[0]; len(blocks) > 0; blocks = blocks[p.size:] {
		for run := p.at; run < p.at+p.n; run += p.run {
			for shift := 0; shift < 8; shift += p.bits {
				for at := run; at < run+p.run; at += 8 {
					v := binary.LittleEndian.Uint64(blocks[at:]) >> shift & masks[0]
					v = (v | v>>(8-p.bits)) & masks[1]
					v = (v | v>>(16-2*p.bits)) & masks[2]
					v = (v | v>>(32-4*p.bits)) & masks[3]
					switch p.bits {
					case 4:
						binary.LittleEndian.PutUint32(into, uint32(v))
					case 2:
						binary.LittleEndian.PutUint16(into, uint16(v))
					default:
						into[0] = byte(v)
					}
					into = into[p.bits:]
				}
			}
		}
	}
}

// number(data, bits, i) returns the number with index i in data, which inOrder wrote. Each number has the
// given number of bits.
func number(data []byte, bits, i int) byte { return data[i*bits/8] >> (i * bits % 8) & (1<<bits - 1) }

// places describes a layout of the numbers in a 32-bit word that differs from the order of the columns.
type places struct {
	bits int                  // bits of a number
	at   func(i, bit int) int // returns the position of a bit of number i
	// bytes() returns four tables, which convert a word from the order of the columns to the new layout.
	// Table k maps the value of byte k to a word. In that word, the bits of byte k are at their new places,
	// and all other bits are 0. The converted word is the OR of the words from the four tables.
	bytes func() *[4][256]uint32
}

// placesOf returns a layout in which the bits of each number are neighbours. The function `of` returns the
// bit position at which number i starts.
func placesOf(bits int, of func(i int) int) places {
	return placesOfBits(bits, func(i, bit int) int { return of(i) + bit })
}

func placesOfBits(bits int, place func(i, bit int) int) places {
	return places{bits, place, sync.OnceValue(func() *[4][256]uint32 {
		var words [4][256]uint32
		for i := range 32 / bits {
			for b := range 256 {
				at := i * bits
				for bit := range bits {
					words[at/8][b] |= uint32(b) >> (at%8 + bit) & 1 << place(i, bit)
				}
			}
		}
		return &words
	})}
}

// pack(...) returns a pack that runs inOrder, and then changes each word to the layout p.
func (p places) pack(inOrder pack) pack {
	return func(pieces [][]byte, into []byte) {
		inOrder(pieces, into)
		words := p.bytes()
		for w := into; len(w) >= 4; w = w[4:] {
			binary.LittleEndian.PutUint32(w, words[0][w[0]]|words[1][w[1]]|words[2][w[2]]|words[3][w[3]])
		}
	}
}

// number(data, i) returns the number with index i, counted in the order of the columns. data consists of
// words with the layout p.
func (p places) number(data []byte, i int) (q byte) {
	per := 32 / p.bits
	word := binary.LittleEndian.Uint32(data[i/per*4:])
	for bit := range p.bits {
		q |= byte(word>>p.at(i%per, bit)&1) << bit
	}
	return q
}

// taken(size, at, n) returns a pack that copies n bytes from each block, starting at offset `at`. A block
// has `size` bytes.
func taken(size, at, n int) pack {
	return func(pieces [][]byte, into []byte) {
		for blocks := pieces[0]; len(blocks) > 0; blocks = blocks[size:] {
			into = into[copy(into, blocks[at:at+n]):]
		}
	}
}

// PackArray returns the bytes of the array with index k, in the layout of the device, for a range of rows.
// `first` is the index of the first row, and `rows` is the number of rows. All processors share the work.
func (m *Matrix) PackArray(k, first, rows int) ([]byte, error) {
	if m.over != nil && m.each == 0 && first == 0 && rows == m.Rows {
		upper, err := m.over[0].PackArray(k, 0, m.over[0].Rows)
		if err != nil {
			return nil, err
		}
		lower, err := m.over[1].PackArray(k, 0, m.over[1].Rows)
		return slices.Concat(upper, lower), err
	}
	if k > 0 && k == m.Format.factors {
		return m.packFactors(first, rows)
	}
	pieces, err := m.rows(first, rows)
	if err != nil {
		return nil, err
	}
	whole := m.Format.Arrays(rows, m.Cols)[k]
	if whole.pack == nil {
		return pieces[0], nil
	}
	data := make([]byte, whole.bytes())
	var wait sync.WaitGroup
	// Each goroutine packs a range of rows. The index of its first row is a multiple of PartRows, so the
	// bytes of these rows are contiguous in the array.
	step := shape.DivUp(shape.DivUp(rows, runtime.GOMAXPROCS(0)), PartRows) * PartRows
	for at, rest := 0, data; at < rows; at += step {
		n := min(step, rows-at)
		a := m.Format.Arrays(n, m.Cols)[k]
		into := rest[:a.bytes()]
		rest = rest[len(into):]
		some := slices.Clone(pieces)
		for i, p := range m.Format.Pieces {
			some[i] = pieces[i][at*p.RowBytes(m.Cols):][:n*p.RowBytes(m.Cols)]
		}
		wait.Go(func() { a.pack(some, into) })
	}
	wait.Wait()
	return data, nil
}

// packFactors returns the bytes of the array that factorsArray describes, for a range of rows.
func (m *Matrix) packFactors(first, rows int) ([]byte, error) {
	data := make([]byte, 0, 4*fours(rows))
	for i := range fours(rows) {
		factor, err := m.factor(first + min(4*i, rows-1))
		if err != nil {
			return nil, err
		}
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(factor))
	}
	return data, nil
}
