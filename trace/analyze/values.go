package analyze

import (
	"slices"

	"gpuscope/trace"
)

// NotStored returns the reason why a value never has memory, or "" if it can have memory.
func NotStored(v *trace.Value) string {
	switch {
	case v.Role == trace.RoleFused:
		return "fused away"
	case v.Role == trace.RoleScratch && slices.Contains(v.MaxDims, 0):
		return "the routes in use do not need this value"
	}
	return ""
}

// TypeOf returns the data type of a value. If the value holds the weights of a matrix, this is their
// quantization format and not the type of the stored words.
func TypeOf(v *trace.Value) string {
	if v.Matrix != nil {
		return v.Matrix.Format
	}
	return v.DType
}

// LiveRows returns how many rows of a KV cache hold data of the current text after a step. The other rows
// hold old data. A KV cache is a state with the dims [1, positions, heads, numbers per head], and a row is
// one head at one position. For any other value, `ok` is false.
func (x *Index) LiveRows(step int, id trace.ValueID) (rows int, ok bool) {
	v := &x.Trace.Graph.Values[id]
	if d := v.MaxDims; step >= 0 && v.Role == trace.RoleState && len(d) == 4 && d[0] == 1 {
		s := &x.Trace.Steps[step]
		return min(s.Position+len(s.Tokens), d[1]) * d[2], true
	}
	return 0, false
}
