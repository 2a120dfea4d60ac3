package analyze

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"

	"gpuscope/trace"
)

// ParamValue is a field of a params block with its value, and the value that it had before.
type ParamValue struct {
	trace.Param
	Value   string // "–" where the block ends before it
	Was     string // "" where there is nothing to compare with
	Changed bool
}

// Params decodes a plan's params block by the fields of its kernel, beside those of another plan (nil: none).
// Fields are compared where both plans run the same kernel.
func (x *Index) Params(p, other *trace.Plan) []ParamValue {
	k := x.Graph.Kernels[p.Kernel]
	if k == nil {
		return nil
	}
	block, _ := hex.DecodeString(p.Params) // Check has seen it
	var was []byte
	if other != nil && trace.OwnKernel(other.Kernel) == trace.OwnKernel(p.Kernel) {
		was, _ = hex.DecodeString(other.Params)
	}
	list := make([]ParamValue, len(k.Params))
	for i, f := range k.Params {
		list[i] = ParamValue{Param: f, Value: decode(&f, block)}
		if was != nil {
			list[i].Was = decode(&f, was)
			list[i].Changed = list[i].Was != list[i].Value
		}
	}
	return list
}

// decode reads the field from a little-endian block.
func decode(f *trace.Param, block []byte) string {
	if f.Offset < 0 || f.Offset+4 > len(block) {
		return "–"
	}
	v := binary.LittleEndian.Uint32(block[f.Offset:])
	switch f.Type {
	case "i32":
		return strconv.Itoa(int(int32(v)))
	case "f32":
		return strconv.FormatFloat(float64(math.Float32frombits(v)), 'g', -1, 32)
	}
	return strconv.FormatUint(uint64(v), 10)
}
