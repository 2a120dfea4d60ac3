package analyze

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"

	"gpuscope/trace"
)

// ParamValue is a field of a params block. It has the value of the field in one plan, and the value in the
// plan with which this plan is compared.
type ParamValue struct {
	trace.Param
	Value   string // "–" if the block ends before this field
	Was     string // "" if there is no other plan
	Changed bool
}

// Params decodes the params block of a plan. The list of fields comes from the plan's kernel. If `other` is a
// plan of the same kernel, Params compares its fields with those of p. `other` may be nil.
func (x *Index) Params(p, other *trace.Plan) []ParamValue {
	k := x.Graph.Kernels[p.Kernel]
	if k == nil {
		return nil
	}
	block, _ := hex.DecodeString(p.Params) // no error: trace.Check has checked the hex digits
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
