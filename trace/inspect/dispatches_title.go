package inspect

import (
	"fmt"
	"strings"
)

func (t *DispatchTable) title() []string {
	s := &t.Index.Trace.Steps[t.Step]
	line := fmt.Sprintf("%d dispatches", len(t.Launches))
	if n := t.levels(); n > 0 {
		line += fmt.Sprintf(" in %d levels", n)
	}
	parts := []string{line, "fold " + t.Fold.String()}
	switch n := t.repeats(); {
	case s.Timing != "dispatch":
		parts = append(parts, fmt.Sprintf("timing %s: dispatches have no times", s.Timing))
	case n == 1:
		parts = append(parts, "1 sample")
	case n > 1:
		parts = append(parts, fmt.Sprintf("n=%d repeats in place", n))
	}
	if n := t.levels(); s.Timing == "dispatch" && n > 0 && n < len(t.Launches) {
		parts = append(parts, fmt.Sprintf("%d overlapped when untimed", len(t.Launches)-n))
	}
	if s.Cold {
		parts = append(parts, "cold")
	}
	if t.Index.Trace.Device.Software() {
		parts = append(parts, "software device: compare ratios only")
	}
	var over int64
	tails := 0
	for i := range t.Launches {
		over += t.Launches[i].Waste.Shape + t.Launches[i].Waste.Fold
		if t.Launches[i].Waste.Tail > 0 {
			tails++
		}
	}
	parts = append(parts, fmt.Sprintf("over-dispatch %d, tail in %d", over, tails))
	if t.Base != nil {
		parts = append(parts, t.baseTitle())
	}
	return []string{t.Index.Summary(t.Step).Line(), strings.Join(parts, " · ")}
}

// baseTitle counts what differs from the base.
func (t *DispatchTable) baseTitle() string {
	var grid, route, params, added int
	for i := range t.Launches {
		d := t.Launches[i].Delta
		for _, c := range []struct {
			on bool
			n  *int
		}{{d.Grid, &grid}, {d.Route, &route}, {d.Params, &params}, {d.New, &added}} {
			if c.on {
				*c.n++
			}
		}
	}
	out := fmt.Sprintf("Δ base s%d: %d grid, %d route, %d params",
		t.Base.Index.Trace.Steps[t.Base.Step].Index, grid, route, params)
	if added > 0 || len(t.Gone) > 0 {
		out += fmt.Sprintf(", %d new, %d gone", added, len(t.Gone))
	}
	if t.ByOrder {
		out += " (no dispatch in common, compared by order)"
	}
	if t.ClockMoved {
		out += ", clock moved: no times"
	}
	return out
}

// repeats is the number of samples that every dispatch has at least; 0 where one was not measured.
func (t *DispatchTable) repeats() int {
	n := 0
	for i := range t.Launches {
		if k := t.Launches[i].Time.N; i == 0 || k < n {
			n = k
		}
	}
	return n
}

func (t *DispatchTable) levels() int {
	if len(t.Launches) == 0 {
		return 0
	}
	return t.Launches[len(t.Launches)-1].Level + 1
}

func (t *DispatchTable) notes() []string {
	var notes []string
	floors := 0
	for i := range t.Launches {
		if t.Launches[i].Limit.Kind == FloorLimit {
			floors++
		}
	}
	if c := t.Index.Trace.Device.Ceilings; floors > 0 {
		ns, _ := c.TimedPassNS.NS()
		notes = append(notes,
			fmt.Sprintf("≈floor: %d of %d within %g× of the %.1f µs an empty timed pass takes", floors,
				len(t.Launches), floorFactor, float64(ns)/1e3))
	}
	for i := range t.Rows {
		r := &t.Rows[i]
		if r.Outlier >= 0 {
			l := &t.Launches[r.Units[r.Outlier][0]]
			notes = append(notes,
				fmt.Sprintf("outlier: %s takes %.1f µs, the median of %d is %.1f µs", t.Index.Name(l.ID),
					l.Time.Median/1e3, len(r.Units), r.Time.Median/1e3))
		}
	}
	return notes
}
