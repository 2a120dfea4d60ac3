package analyze

import (
	"slices"

	"gpuscope/trace"
)

// NotStored says why a value is never in memory; "" of one that has some.
func NotStored(v *trace.Value) string {
	switch {
	case v.Role == trace.RoleFused:
		return "fused away"
	case v.Role == trace.RoleScratch && slices.Contains(v.MaxDims, 0):
		return "no route in use needs it"
	}
	return ""
}

// TypeOf is the type of what a value has: of the weights of a matrix their format, whatever words they are
// in.
func TypeOf(v *trace.Value) string {
	if v.Matrix != nil {
		return v.Matrix.Format
	}
	return v.DType
}

// LiveRows is how many rows of a cache, as they stand one after the other along its last dim, are of the text
// when a step is done; the rest is what was there before. It is false of what is no cache: a state of one
// batch, its positions, its heads and their numbers.
func (x *Index) LiveRows(step int, id trace.ValueID) (rows int, ok bool) {
	v := &x.Trace.Graph.Values[id]
	if d := v.MaxDims; step >= 0 && v.Role == trace.RoleState && len(d) == 4 && d[0] == 1 {
		s := &x.Trace.Steps[step]
		return min(s.Position+len(s.Tokens), d[1]) * d[2], true
	}
	return 0, false
}
