package slopes

import (
	"fmt"
	"math"
	"strings"

	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/curves"
	"gpuscope/trace/table"
)

// QuantityText formats a value of the quantity with its unit.
func QuantityText(q curves.Quantity, v float64) string {
	switch q {
	case curves.Time:
		if math.Abs(v) >= 1e6 {
			return table.Millis(analyze.Whole(v), true)
		}
		return fmt.Sprintf("%.1f µs", v/1e3)
	case curves.Grid:
		return table.Integer(int64(v)) + " wg"
	case curves.Bytes, curves.Stored:
		return table.Bytes(int64(v))
	}
	return fmt.Sprintf("%.1f %%", v)
}

// AxisText returns a formatter for the labels of an axis from lo to hi. All labels have the same unit. They
// have enough digits to distinguish two values that differ by half of the range.
func AxisText(q curves.Quantity, lo, hi float64) func(float64) string {
	if q != curves.Time || lo < hi/4 {
		return func(v float64) string {
			if v == 0 {
				return "0" // zero needs no unit
			}
			return QuantityText(q, v)
		}
	}
	unit, name := 1e3, "µs"
	if hi >= 1e6 {
		unit, name = 1e6, "ms"
	}
	digits := 1 - int(math.Floor(math.Log10((hi-lo)/2/unit)))
	return func(v float64) string { return fmt.Sprintf("%.*f %s", min(max(0, digits), 6), v/unit, name) }
}

// routesFrom formats routes, each with the first position or token count at which it is used: "gemv 1 ·
// batch4 2 · tile64 17".
func routesFrom(spans []curves.RouteSpan) string {
	names := make([]string, len(spans))
	for i, s := range spans {
		names[i] = fmt.Sprintf("%s %d", s.Name(), s.From)
	}
	return strings.Join(names, " · ")
}

// routesOver formats routes, each with the positions or token counts at which it is used: "gemv 1 · batch4
// 2–4".
func routesOver(spans []curves.RouteSpan) string {
	names := make([]string, len(spans))
	for i, s := range spans {
		names[i] = fmt.Sprintf("%s %d–%d", s.Name(), s.From, s.To)
		if s.From == s.To {
			names[i] = fmt.Sprintf("%s %d", s.Name(), s.From)
		}
	}
	return strings.Join(names, " · ")
}
