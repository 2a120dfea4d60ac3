package report

import (
	"fmt"
	"slices"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/table"
)

// Live returns the live shape of the outputs of a dispatch, and the position if the shape depends on it:
// "1×32 @58".
func Live(x *analyze.Index, l *analyze.Launch) string {
	step := l.Step
	g := &x.Trace.Graph
	_, outs := x.Touches(l.Plan)
	for _, v := range l.Op.Outputs { // prefer the operator's outputs to scratch, because users know them
		if slices.Contains(outs, v) {
			outs = []trace.ValueID{v}
			break
		}
	}
	var shapes []string
	for _, v := range outs {
		if g.Values[v].Role == trace.RoleState {
			v = x.Appended(l.Op, v)
		}
		shapes = append(shapes, Shape(x, v, x.Dims(step, v)))
	}
	out := strings.Join(shapes, ", ")
	for _, v := range l.Op.Inputs {
		if g.Values[v].Kind == "symint" {
			if n, ok := x.SymInt(step, v); ok {
				out += fmt.Sprintf(" @%d", n)
			}
			break
		}
	}
	return out
}

// MicrosCell returns the cell of a median time, in µs (see microseconds).
func MicrosCell(x *analyze.Index, s analyze.Stats) table.Cell {
	return microseconds(s, x.Trace.Clock.QuantumNS)
}

// microseconds formats a time in ns as µs without digits below the clock's resolution. It shows "‹" for a
// time under twice the resolution, and "–" for a time that was not measured.
func microseconds(s analyze.Stats, quantumNS float64) table.Cell {
	if !s.Measured() {
		return table.Cell{Text: table.Unmeasured}
	}
	if quantumNS > 0 && s.Median < 2*quantumNS {
		return table.Cell{Text: "‹", Number: s.Median / 1e3, Has: true}
	}
	return table.Microseconds(s.Median/1e3, table.DecimalsOfUS(quantumNS))
}

// Median formats the median time of the members of a row in µs: of its dispatches or, in a heading, of its
// layers.
func (t *DispatchTable) Median(r *analyze.DispatchRow) string {
	return MicrosCell(t.Index, r.Time).Text
}

// microsRange formats the minimum and the maximum in µs.
func microsRange(s analyze.Stats, decimals int) string {
	return table.Micros(s.Min/1e3, decimals) + "–" + table.Micros(s.Max/1e3, decimals)
}
