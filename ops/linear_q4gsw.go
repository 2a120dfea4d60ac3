package ops

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/x448/float16"

	"gpuscope/engine"
)

// LinearQ4GSW adds linear_q4gsw: y = x * w' + bias with 4-bit weights w[n, k] = (q[n, k] - 8) * scale[n, k /
// group].
//
//	x     [..., K]
//	w     [N, K], K and the group multiples of 8
//	bias  [N], constant, or engine.None
//	y     dims of x with N for K
//
// On the device a row of weights is K/8 words, column k of a word's eight at bits 4k. The scales of 4 rows (8
// where they are halves) lie together, [N/4, K/group, 4], so that a lane loads those of its rows at once; N
// is rounded up to a multiple of 16 there. Weights over the device's limit on a binding are split by rows, a
// dispatch for each part.
//
// One row of x takes a GEMV: a lane holds its columns of x while it goes through 16 rows of w. Up to 4, and
// up to 16, rows take kernels of the same kind that load the weights once for 4 and 8 rows of x. More rows
// take tiles of 64 x 64 results, or of 128 x 128 where there are enough to fill a GPU. Source of the format:
// ExecuTorch's et_vk.linear_q4gsw.
func LinearQ4GSW(b *engine.Builder, name string, x engine.ValueID, w Q4Matrix,
	bias engine.ValueID,
) engine.ValueID {
	return linearQ4(b, "linear_q4gsw", name, x, w, bias)
}

// LinearQCS4W adds linear_qcs4w: linear_q4gsw with one scale to a row, without bias. Upstream's files have
// the even columns in the high nibbles (Q4Matrix.HighNibbles); they are turned around as they are loaded.
//
//	x  [..., K]
//	w  [N, K] in groups of K
//	y  dims of x with N for K
func LinearQCS4W(b *engine.Builder, name string, x engine.ValueID, w Q4Matrix) engine.ValueID {
	if w.Group != w.Cols {
		b.Errorf("%s: %s has groups of %d, want one scale to a row of %d", name, w.Name, w.Group, w.Cols)
	}
	return linearQ4(b, "linear_qcs4w", name, x, w, engine.None)
}

func linearQ4(b *engine.Builder, kind, name string, x engine.ValueID, w Q4Matrix,
	bias engine.ValueID,
) engine.ValueID {
	if !ready(b, x) {
		return engine.None
	}
	if err := w.check(); err != nil {
		b.Errorf("%s: %w", name, err)
		return engine.None
	}
	o := &linear{
		kind: kind, x: x, bias: bias, k: w.Cols, n: w.Rows,
		q4: &q4Format{group: w.Group, halfScales: w.HalfScales},
	}
	limits := b.Limits()
	o.parts = o.q4.constants(b, &w, int64(min(limits.MaxStorageBinding, limits.MaxBufferSize)))
	return o.add(b, name)
}

// q4Format is the layout of 4-bit weights on the device.
type q4Format struct {
	group      int
	halfScales bool
}

// q4ScaleRows is what the rows of scales are rounded up to: as many as a GEMV takes at most.
const q4ScaleRows = 16

// scaleRows is how many rows' scales lie together, in 16 bytes.
func (f *q4Format) scaleRows() int {
	if f.halfScales {
		return 8
	}
	return 4
}

// constants declares the weights, in parts of at most limit bytes.
func (f *q4Format) constants(b *engine.Builder, w *Q4Matrix, limit int64) []linearPart {
	rows := w.Rows
	if most := limit / int64(max(w.Cols/2, 4*w.Cols/w.Group)); int64(rows) > most {
		rows = int(max(most/128, 1)) * 128 // whole tiles
	}
	var parts []linearPart
	count := divUp(w.Rows, rows)
	for i := range count {
		first := i * rows
		n := min(rows, w.Rows-first)
		suffix := ""
		if count > 1 {
			suffix = fmt.Sprintf(".rows%d", first)
		}
		nibbles := b.Constant(w.Name+suffix, engine.Q4, []int{n, w.Cols}, func() ([]byte, error) {
			data, err := lowFirst(w)
			if err != nil {
				return nil, err
			}
			return data[first*w.Cols/2 : (first+n)*w.Cols/2], nil
		})
		dtype, bytes := engine.F32, int64(4)
		if f.halfScales {
			dtype, bytes = engine.F16, 2
		}
		per := f.scaleRows()
		dims := []int{divUp(n, q4ScaleRows) * q4ScaleRows / per, w.Cols / w.Group, per}
		scales := b.Constant(w.Name+".scales"+suffix, dtype, dims, func() ([]byte, error) {
			list, err := w.scales()
			if err != nil {
				return nil, err
			}
			groups := w.Cols / w.Group
			return f.packScales(w.Name, list[first*groups:(first+n)*groups], groups)
		})
		parts = append(parts,
			linearPart{
				first: first, rows: n, weights: []engine.ValueID{nibbles, scales},
				bytes: int64(n) * (int64(w.Cols)/2 + bytes*int64(w.Cols/w.Group)),
			})
	}
	return parts
}

// packScales brings the scales of whole rows to the device's layout.
func (f *q4Format) packScales(name string, list []float32, groups int) ([]byte, error) {
	per, n := f.scaleRows(), len(list)/groups
	size := 16 / per
	data := make([]byte, divUp(n, q4ScaleRows)*q4ScaleRows*groups*size)
	for row := range n {
		for g := range groups {
			v := list[row*groups+g]
			at := data[((row/per*groups+g)*per+row%per)*size:]
			if !f.halfScales {
				binary.LittleEndian.PutUint32(at, math.Float32bits(v))
				continue
			}
			half := float16.Fromfloat32(v)
			if half.Float32() != v {
				return nil,
					fmt.Errorf("%s: scale %v of row %d is no half, though the matrix says that all are", name,
						v, row)
			}
			binary.LittleEndian.PutUint16(at, half.Bits())
		}
	}
	return data, nil
}

// rowReader gives rows of k weights as floats, from the device's layout.
func (f *q4Format) rowReader(nibbles []byte, scales Tensor, k int) func(j int, row []float64) {
	per, groups := f.scaleRows(), k/f.group
	return func(j int, row []float64) {
		for c := range row {
			q := nibbles[(j*k+c)/2] >> (c % 2 * 4) & 15
			row[c] = (float64(q) - 8) * scales.Data[(j/per*groups+c/f.group)*per+j%per]
		}
	}
}

func partLabel(i, parts int) string {
	if parts == 1 {
		return ""
	}
	return fmt.Sprintf("part%d", i)
}
