package weight

import (
	"encoding/binary"
	"runtime"
	"slices"
	"sync"

	"gpuscope/ops/internal/shape"
)

// pack brings the bits of rows from a file's pieces into the order of an array on the device, all of whose
// bytes are zero before. It changes no bit. A nil pack is a file's one piece as it is.
type pack func(pieces [][]byte, into []byte)

// packed is a pack of numbers of so many bits into the order of the columns, from the lowest bits of a byte
// up. Blocks of size bytes have 8/bits of them to a byte: n bytes from at on, in runs. The bytes of a run
// have the columns 0, 1, ... in their lowest bits, and as many columns more in each of the bits above. Runs
// are multiples of 8 bytes.
type packed struct{ size, at, n, bits, run int }

func (p packed) inOrder(pieces [][]byte, into []byte) {
	// Eight bytes at a time: what they have at one place is pushed together, two, four and eight numbers.
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

// number is number i of those of so many bits that inOrder gives.
func number(data []byte, bits, i int) byte { return data[i*bits/8] >> (i * bits % 8) & (1<<bits - 1) }

// places is where the numbers of a word of 32 bits lie that are not in the order of the columns: at which bit
// number i of so many bits does.
type places struct {
	bits  int
	of    func(i int) int
	bytes func() *[4][256]uint32 // what a byte of numbers in the order of the columns becomes
}

func placesOf(bits int, of func(i int) int) places {
	return places{bits, of, sync.OnceValue(func() *[4][256]uint32 {
		var words [4][256]uint32
		for i := range 32 / bits {
			for b := range 256 {
				at := i * bits
				q := uint32(b) >> (at % 8) & (1<<bits - 1)
				words[at/8][b] |= q << of(i)
			}
		}
		return &words
	})}
}

// pack is the order of the columns brought into that of the places.
func (p places) pack(inOrder pack) pack {
	return func(pieces [][]byte, into []byte) {
		inOrder(pieces, into)
		words := p.bytes()
		for w := into; len(w) >= 4; w = w[4:] {
			binary.LittleEndian.PutUint32(w, words[0][w[0]]|words[1][w[1]]|words[2][w[2]]|words[3][w[3]])
		}
	}
}

// number is number i of an array.
func (p places) number(data []byte, i int) byte {
	per := 32 / p.bits
	return byte(binary.LittleEndian.Uint32(data[i/per*4:]) >> p.of(i%per) & (1<<p.bits - 1))
}

// taken is a pack of n bytes at a place of each block of size bytes.
func taken(size, at, n int) pack {
	return func(pieces [][]byte, into []byte) {
		for blocks := pieces[0]; len(blocks) > 0; blocks = blocks[size:] {
			into = into[copy(into, blocks[at:at+n]):]
		}
	}
}

// PackArray is array k of some rows as the device has it. Packing is spread over the processors.
func (m *Matrix) PackArray(k, first, rows int) ([]byte, error) {
	if m.over != nil && first == 0 && rows == m.Rows {
		upper, err := m.over[0].PackArray(k, 0, m.over[0].Rows)
		if err != nil {
			return nil, err
		}
		lower, err := m.over[1].PackArray(k, 0, m.over[1].Rows)
		return slices.Concat(upper, lower), err
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
	// Of partRows rows, or several times as many, an array is a run of bytes.
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
