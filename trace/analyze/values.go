package analyze

import (
	"slices"

	"gpuscope/trace"
)

// NotStored returns the reason why a value never has memory, and "" if it may have memory.
func NotStored(v *trace.Value) string {
	switch {
	case v.Role == trace.RoleFused:
		return "fused away"
	case v.Role == trace.RoleScratch && slices.Contains(v.MaxDims, 0):
		return "no route that is used needs this value"
	}
	return ""
}

// TypeOf returns the data type of a value. For the weights of a matrix, TypeOf returns their quantization
// format, not the type of the words that hold them.
func TypeOf(v *trace.Value) string {
	if v.Matrix != nil {
		return v.Matrix.Format
	}
	return v.DType
}

// LiveRows returns how many rows of a KV cache hold tokens of the current text when a step is done. The other
// rows hold old data. A cache is a state of shape [1, positions, heads, numbers per head], and a row extends
// along the last dim. LiveRows returns false for any other value.
func (x *Index) LiveRows(step int, id trace.ValueID) (rows int, ok bool) {
	v := &x.Trace.Graph.Values[id]
	if d := v.MaxDims; step >= 0 && v.Role == trace.RoleState && len(d) == 4 && d[0] == 1 {
		s := &x.Trace.Steps[step]
		return min(s.Position+len(s.Tokens), d[1]) * d[2], true
	}
	return 0, false
}
