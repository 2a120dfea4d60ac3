// Package rowtext describes those rows of the table of dispatches that stand for several dispatches or steps.
package rowtext

import (
	"fmt"
	"slices"
	"strings"

	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
	"gpuscope/tui/command"
	"gpuscope/tui/widget"
)

// Several returns the lines that sum up a row of several dispatches or several steps.
func Several(t *report.DispatchTable, r int) []string {
	row := &t.Grouped[r]
	cell := func(name string) string { return t.Cell(r, t.Column(name)).Text }
	steps := ""
	if OfSteps(t, row) {
		n, of := t.TimedSteps(), len(t.Selection.Steps)
		switch steps = widget.Plural(of, "step"); n {
		case of:
			steps = ", medians of " + steps
		case 0:
			steps = ", " + steps
		default:
			steps = fmt.Sprintf(", %s, %d of them timed", steps, n)
		}
	}
	lines := []string{fmt.Sprintf("%s: %s%s", row.Label, widget.Plural(row.Count(), "dispatch"), steps)}
	if row.Gone() {
		lines[0] += " that did not run"
		return lines
	}
	add := func(label string, parts ...string) {
		said := slices.DeleteFunc(parts, func(s string) bool { return s == "" })
		if len(said) > 0 {
			lines = append(lines, analyze.Labelled(label, strings.Join(said, " · ")))
		}
	}
	with := func(before, s, after string) string {
		if s == "" || s == table.Unmeasured {
			return ""
		}
		return before + s + after
	}
	median := "" // of the layers, or of the dispatches of equal layers
	if n := len(row.Units); n > 1 {
		median = with(fmt.Sprintf("median of %d ", n), t.Median(row), " µs")
	}
	timed := func(i int) bool { return t.Launches[i].Time.Measured() }
	switch {
	case t.Index.Trace.Device.None():
		add("time", "not measured")
	case !row.Summed && !slices.ContainsFunc(slices.Concat(row.Units...), timed):
		add("time", "not timed")
	case !row.Summed:
		add("time", "not all dispatches were timed")
	case row.Count() == 1: // the times below belong to a single dispatch
		add("time", with("", cell("us"), " µs isolated"), with("", cell("layers"), ""),
			with("~", cell("lost_us"), " µs excess"))
		return lines
	default:
		add("time", with("Σ ", cell("sum_us"), " µs isolated"), median,
			with("", cell("layers"), ""), with("~", cell("lost_us"), " µs excess"))
	}
	said, more := t.Stability(row)
	if more {
		said += command.Keyed(": press {repeat} for more")
	}
	add(t.Each(), cell("spark"), said)
	return lines
}

// OfSteps reports whether a row covers several steps. It returns false for a row that ran only in the
// baseline.
func OfSteps(t *report.DispatchTable, row *analyze.DispatchRow) bool {
	_, one := t.Selection.One()
	return !one && !row.Gone()
}

// FirstOfAll returns the heading of the detail lines about a row's first dispatch. The heading names the
// dispatch if the row has several dispatches, and the step if the table covers several steps. It is "" for a
// single dispatch in a single step.
func FirstOfAll(t *report.DispatchTable, row *analyze.DispatchRow) string {
	l, steps := t.Launch(row), OfSteps(t, row)
	if row.Gone() || row.Count() == 1 && !steps {
		return ""
	}
	said := t.Index.Name(l.ID)
	if row.Count() > 1 {
		said = "the first, " + said
	}
	if steps {
		said += fmt.Sprintf(" in s%d", t.Index.Trace.Steps[l.Step].Index)
	}
	return said + ":"
}
