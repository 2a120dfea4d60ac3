package engine

import (
	"context"
	"encoding/binary"
	"math"
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/trace"
)

// NonFinite is the first NaN or infinity in a step.
type NonFinite struct {
	Dispatch trace.DispatchID // dispatch that wrote the NaN or infinity
	Value    graph.ValueID
	Index    int // index of the element in the live dims, even if memory has another element order
	Number   float64
}

// FirstNonFinite runs the last step again, as Replay does. It searches the outputs of the operators, in order
// of submission, for the first NaN or infinity. `found` is false if all outputs are finite. The scratch
// memory of operators is not searched, because an operator may leave parts of it unwritten.
func (x *Executor) FirstNonFinite(ctx context.Context) (first NonFinite, found bool, err error) {
	if !x.Stands() {
		return first, false, ErrNoStep
	}
	looks := slices.DeleteFunc(x.OutputLooks(), func(l Look) bool {
		dtype := x.g.Values[l.Value].DType
		return dtype != graph.F32 && dtype != graph.F16
	})
	for len(looks) > 0 {
		n, size := 0, int64(0)
		for ; n < len(looks) && (n == 0 || size+x.LiveSize(looks[n].Value) <= replayBytes); n++ {
			looks[n].Into = make([]byte, x.LiveSize(looks[n].Value))
			size += int64(len(looks[n].Into))
		}
		if err := x.Replay(ctx, looks[:n]...); err != nil {
			return first, false, err
		}
		for _, l := range looks[:n] {
			v := &x.g.Values[l.Value]
			if i, number, ok := firstNonFinite(v.DType, l.Into, v.Column); ok {
				return NonFinite{l.After, l.Value, i, number}, true, nil
			}
		}
		looks = looks[n:]
	}
	return first, false, nil
}

// firstNonFinite searches for floats whose exponent bits are all ones. `index` counts elements in the order
// of the dims. `column` converts an element's index in memory to this index. If `column` is nil, the two
// indices are equal.
func firstNonFinite(
	t graph.DType,
	data []byte,
	column func(at int) int,
) (index int, number float64, found bool) {
	size, exponent, fraction, sign := 4, uint32(0x7f800000), uint32(0x7fffff), uint32(1)<<31
	if t == graph.F16 {
		size, exponent, fraction, sign = 2, 0x7c00, 0x3ff, 0x8000
	}
	for i := 0; (i+1)*size <= len(data); i++ {
		w := uint32(binary.LittleEndian.Uint16(data[i*size:]))
		if size == 4 {
			w = binary.LittleEndian.Uint32(data[i*size:])
		}
		if w&exponent != exponent {
			continue
		}
		at := i
		if column != nil {
			at = column(i)
		}
		if !found || at < index {
			index, number, found = at, nonFinite(w&fraction != 0, w&sign != 0), true
		}
		if column == nil {
			break
		}
	}
	return index, number, found
}

func nonFinite(nan, negative bool) float64 {
	switch {
	case nan:
		return math.NaN()
	case negative:
		return math.Inf(-1)
	}
	return math.Inf(1)
}
