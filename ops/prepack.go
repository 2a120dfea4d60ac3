package ops

import "encoding/binary"

// packed says where blocks of size bytes have numbers of so many bits, 8/bits of them to a byte: n bytes from
// at on, in runs. The bytes of a run have the columns 0, 1, ... in their lowest bits, and as many columns
// more in each of the bits above. Runs are multiples of 8 bytes.
type packed struct{ size, at, n, bits, run int }

// inOrder brings the numbers of blocks into the order of the columns, from the lowest bits of a byte up.
func (p packed) inOrder(blocks []byte) []byte {
	// Eight bytes at a time: what they have at one place is pushed together, two, four and eight numbers.
	lanes := [4]uint64{0x0101010101010101, 0x0001000100010001, 0x0000000100000001, 1}
	var masks [4]uint64
	for i := range masks {
		masks[i] = lanes[i] * (1<<(p.bits<<i) - 1)
	}
	data := make([]byte, 0, len(blocks)/p.size*p.n+8)
	for ; len(blocks) > 0; blocks = blocks[p.size:] {
		for run := p.at; run < p.at+p.n; run += p.run {
			for shift := 0; shift < 8; shift += p.bits {
				for at := run; at < run+p.run; at += 8 {
					v := binary.LittleEndian.Uint64(blocks[at:]) >> shift & masks[0]
					v = (v | v>>(8-p.bits)) & masks[1]
					v = (v | v>>(16-2*p.bits)) & masks[2]
					v = (v | v>>(32-4*p.bits)) & masks[3]
					data = binary.LittleEndian.AppendUint64(data, v)[:len(data)+p.bits]
				}
			}
		}
	}
	return data
}

// number is number i of those of so many bits that inOrder gives.
func number(data []byte, bits, i int) byte { return data[i*bits/8] >> (i * bits % 8) & (1<<bits - 1) }

// taken are n bytes at a place of each block of size bytes, filled up to whole words.
func taken(blocks []byte, size, at, n int) []byte {
	data := make([]byte, 0, divUp(len(blocks)/size*n, 4)*4)
	for ; len(blocks) > 0; blocks = blocks[size:] {
		data = append(data, blocks[at:at+n]...)
	}
	return data[:cap(data)]
}
