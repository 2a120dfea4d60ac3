package engine

import (
	"context"
	"encoding/binary"
	"math"
	"slices"

	"gpuscope/trace"
)

// NonFinite is a number that is none: where it came up first.
type NonFinite struct {
	Dispatch trace.DispatchID // that gave it
	Value    ValueID
	Index    int // in the live dims, of the element that lies first in memory, which Builder.Lies may move
	Number   float64
}

// FirstNonFinite finds the first output of an operator, in order of submission, that holds a NaN or an
// infinity, by running the last step again as Replay does. found is false where there is none. What an
// operator keeps for itself (scratch) is not looked at: parts of it may never be written.
func (x *Executor) FirstNonFinite(ctx context.Context) (first NonFinite, found bool, err error) {
	if !x.Stands() {
		return first, false, ErrNoStep
	}
	looks := slices.DeleteFunc(x.OutputLooks(), func(l Look) bool {
		dtype := x.g.values[l.Value].dtype
		return dtype != F32 && dtype != F16
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
			v := &x.g.values[l.Value]
			if i, number, ok := firstNonFinite(v.dtype, l.Into); ok {
				if v.column != nil {
					i = v.column(i)
				}
				return NonFinite{l.After, l.Value, i, number}, true, nil
			}
		}
		looks = looks[n:]
	}
	return first, false, nil
}

// firstNonFinite looks for an exponent of ones.
func firstNonFinite(t DType, data []byte) (index int, number float64, found bool) {
	if t == F16 {
		for i := 0; i+1 < len(data); i += 2 {
			if h := binary.LittleEndian.Uint16(data[i:]); h&0x7c00 == 0x7c00 {
				return i / 2, nonFinite(h&0x3ff != 0, h&0x8000 != 0), true
			}
		}
		return 0, 0, false
	}
	for i := 0; i+3 < len(data); i += 4 {
		if w := binary.LittleEndian.Uint32(data[i:]); w&0x7f800000 == 0x7f800000 {
			return i / 4, nonFinite(w&0x7fffff != 0, w&0x80000000 != 0), true
		}
	}
	return 0, 0, false
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
