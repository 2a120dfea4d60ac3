// Package comparison shows the difference of two runs: as a table, as sentences, as Markdown for a pull
// request, and as JSON for programs.
package comparison

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/diff"
	"gpuscope/trace/analyze/join"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
	"gpuscope/trace/tree"
)

// Verdict says in one word how two times differ.
func Verdict(t *diff.Times) string {
	switch {
	case !t.Both():
		return ""
	case !t.Known:
		return "too few times"
	case !t.Significant:
		return "not significant"
	case t.DeltaNS > 0:
		return "slower"
	}
	return "faster"
}

// line is a row of the table.
type line struct {
	tree.Row
	name, status, change string
	times                *diff.Times
	dispatches           string
	oneSided             bool // added or gone
}

// Of returns the table of a comparison. Without `all`, dispatches and groups that are the same on both sides
// are left out.
func Of(d *diff.Diff, all bool) *table.Table {
	var lines []line
	add := func(parent int, l line) int {
		l.Parent = parent
		if parent >= 0 {
			l.Depth = lines[parent].Depth + 1
			l.Key = lines[parent].Key + "/" + l.Key
		}
		lines = append(lines, l)
		return len(lines) - 1
	}
	head := func(name, text string) int {
		return add(-1, line{Row: tree.Row{Key: name, Group: true, Open: true}, name: text})
	}
	// hidden reports whether a row is left out. If dispatches were joined in order, nothing is known about
	// those that both sides have.
	hidden := func(s diff.Status) bool {
		return !all && (s == diff.Same || s == diff.Incomparable && d.Joined == join.ByOrder)
	}
	at := head("steps", "whole steps")
	phase := d.Now.Selection.Name
	if phase != d.Base.Selection.Name || d.Total(phase, diff.Wall) == nil {
		phase = ""
	}
	for i := range d.Totals {
		t := &d.Totals[i]
		if t.Scope == diff.Selected && phase != "" { // the totals of the phase show the same times
			continue
		}
		add(at, line{
			Row: tree.Row{Key: t.Scope + "." + string(t.Measure)}, name: TotalName(t),
			status: cmp.Or(t.Why, Verdict(&t.Times)), times: &t.Times,
		})
	}
	if d.Isolated.Both() {
		add(at, line{
			Row: tree.Row{Key: "isolated"}, name: "sum of isolated times", status: Verdict(&d.Isolated),
			times: &d.Isolated,
		})
	}
	for _, by := range []diff.By{diff.ByKernel, diff.ByOp, diff.ByKind, diff.ByClass, diff.ByLayer} {
		at := -1
		for _, g := range d.GroupsBy(by) {
			if hidden(g.Status) {
				continue
			}
			if at < 0 {
				at = head(string(by), groupings[by])
			}
			key := g.Name
			if g.Status == diff.Gone { // the other side may have another kernel of the same name
				key += " (A)"
			}
			add(at, line{
				Row: tree.Row{Key: key}, name: g.Name, status: status(g.Status, &g.Times), times: &g.Times,
				dispatches: fromTo(fmt.Sprint(g.Base), fmt.Sprint(g.Now)),
				oneSided:   g.Status == diff.Added || g.Status == diff.Gone,
			})
		}
	}
	at = -1
	for i := range d.Rows {
		r := &d.Rows[i]
		if hidden(r.Status) {
			continue
		}
		if at < 0 {
			at = head("dispatches", "dispatches")
		}
		add(at, line{
			Row: tree.Row{Key: fmt.Sprintf("%d %s", i, r.Name)}, name: r.Name,
			status: status(r.Status, &r.Times), change: Change(r), times: &r.Times,
			oneSided: r.Status == diff.Added || r.Status == diff.Gone,
		})
	}
	rows := make([]tree.Row, len(lines))
	for i := range lines {
		rows[i] = lines[i].Row
	}
	t := table.New("diff", columns(d, lines), rows)
	t.From = d
	for _, s := range Sentences(d) {
		t.Title = append(t.Title, table.Title(table.Segment{Text: s}))
	}
	if n := d.Count(func(r *diff.Row) bool { return hidden(r.Status) }); n > 0 {
		which := " without a difference not shown"
		if d.Joined == join.ByOrder {
			which = " joined in order not shown, because they may do other work"
		}
		t.Notes = append(t.Notes, table.Plural(n, "dispatch")+which)
	}
	return t
}

var groupings = map[diff.By]string{
	diff.ByKernel: "kernels", diff.ByOp: "operators of a layer", diff.ByKind: "kinds of operators",
	diff.ByClass: "classes of work", diff.ByLayer: "layers",
}

// status returns the text of the column "result": the status of an added or removed dispatch, and otherwise
// the verdict about the time. If the plan changed but the time did not, the text is "changed, " and the
// verdict.
func status(s diff.Status, t *diff.Times) string {
	verdict := Verdict(t)
	switch {
	case s == diff.Added || s == diff.Gone || verdict == "":
		return string(s)
	case s == diff.Changed && !t.Significant:
		return "changed, " + verdict
	}
	return verdict
}

// TotalName returns the name of a total: "decode step, GPU time". If blocks or dispatches were timed in the
// steps, which made them longer, it is "timed decode step, GPU time".
func TotalName(t *diff.Total) string {
	name := t.Scope + " step"
	if t.Scope == diff.Selected {
		name = "selected step"
	}
	if t.Timed {
		name = "timed " + name
	}
	if t.Measure == diff.Span {
		name += ", GPU time"
	} else {
		name += ", wall time"
	}
	if t.Repeats {
		name += ", repeats"
	}
	return name
}

// Change says how the plans of a dispatch differ: "grid 48 → 96, route gemv → batch8".
func Change(r *diff.Row) string {
	switch base, now := len(r.Base), len(r.Now); {
	case base == 0, now == 0:
		return ""
	case now == 1 && base > 1:
		return fmt.Sprintf("fused from %s", table.Plural(base, "dispatch"))
	case base == 1 && now > 1:
		return fmt.Sprintf("split into %s", table.Plural(now, "dispatch"))
	case now > 1:
		return fmt.Sprintf("%d → %s", base, table.Plural(now, "dispatch"))
	}
	var parts []string
	from, to := r.Base[0].Plan, r.Now[0].Plan
	if r.Plan.Grid {
		parts = append(parts, "grid "+fromTo(table.Grid(from.Workgroups), table.Grid(to.Workgroups)))
	}
	if r.Plan.Route {
		if from.Route != to.Route {
			parts = append(parts, "route "+fromTo(cmp.Or(from.Route, "–"), cmp.Or(to.Route, "–")))
		}
		if from.Kernel != to.Kernel {
			parts = append(parts, "kernel "+fromTo(from.Kernel, to.Kernel))
		}
	}
	if r.Plan.Text {
		parts = append(parts, "source of "+trace.OwnKernel(to.Kernel))
	}
	if r.Plan.Params {
		parts = append(parts, "params")
	}
	return strings.Join(parts, ", ")
}

func fromTo(a, b string) string {
	if a == b {
		return a
	}
	return a + " → " + b
}

func columns(d *diff.Diff, lines []line) []table.Column {
	decimals := table.DecimalsOfUS(max(d.Base.Index.Trace.Clock.QuantumNS, d.Now.Index.Trace.Clock.QuantumNS))
	all := table.ColumnsOf(lines)
	of := all.Where(func(l *line) bool { return l.times != nil })
	us := func(time func(*diff.Times) *diff.Time) func(*line) table.Cell {
		return func(l *line) table.Cell {
			t := time(l.times)
			if !t.Measured {
				return table.Cell{}
			}
			return table.Microseconds(t.NS/1e3, table.MicrosDecimals(t.NS/1e3, decimals))
		}
	}
	base := func(t *diff.Times) *diff.Time { return &t.Base }
	now := func(t *diff.Times) *diff.Time { return &t.Now }
	count := func(time func(*diff.Times) *diff.Time) func(*line) table.Cell {
		return func(l *line) table.Cell {
			if t := time(l.times); t.Measured {
				return table.Count(t.N)
			}
			return table.Cell{}
		}
	}
	delta := of.Cell(80, table.Measured, "delta_us", "Δµs", "us", "B µs minus A µs; = before a number means that "+
		"the difference is not significant, ? means that there are too few samples to know",
		func(l *line) table.Cell {
			t, mark := l.times, ""
			switch {
			case !t.Base.Measured && !t.Now.Measured || !t.Both() && !l.oneSided:
				return table.Cell{}
			case !t.Both():
			case !t.Known:
				mark = analyze.MarkUnknown
			case !t.Significant:
				mark = analyze.MarkNone
			}
			digits := table.MicrosDecimals(max(t.Base.NS, t.Now.NS)/1e3, decimals)
			return report.MarkedDifference(t.DeltaNS, digits, mark)
		})
	return []table.Column{
		all.Text(80, "name", "what", "a whole step, a group of dispatches, or a dispatch",
			func(l *line) string { return l.name }).AsTree(),
		all.Text(80, "status", "result", "added, gone, changed (only the plan), slower, faster, not "+
			"significant, or incomparable (the two sides may not do the same work)",
			func(l *line) string { return l.status }),
		of.Cell(80, table.Measured, "a_us", "A µs", "us", "time in the baseline; of a group, the sum",
			us(base)),
		of.Cell(80, table.Measured, "b_us", "B µs", "us", "time in the second run; of a group, the sum",
			us(now)),
		delta, table.Marks(delta),
		of.Cell(80, table.Measured, "delta_percent", "Δ%", "%", "difference relative to A",
			func(l *line) table.Cell {
				f, ok := l.times.Relative()
				if !ok {
					return table.Cell{}
				}
				return table.Cell{Text: Percent(f), Number: 100 * f, Has: true}
			}),
		of.Cell(110, table.Measured, "noise_us", "noise µs", "us",
			"largest difference that is not significant",
			func(l *line) table.Cell {
				if !l.times.Known {
					return table.Cell{}
				}
				return table.Number(l.times.NoiseNS/1e3, table.MicrosDecimals(l.times.NoiseNS/1e3, decimals))
			}),
		all.Text(110, "change", "plan", "how the plan differs: grid, route, kernel, source of the kernel, params",
			func(l *line) string { return l.change }),
		all.Text(140, "dispatches", "disp", "number of dispatches of a group, in A and in B",
			func(l *line) string { return l.dispatches }),
		of.Cell(140, table.Exact, "a_n", "A n", "times", "number of samples; A µs is their median",
			count(base)),
		of.Cell(140, table.Exact, "b_n", "B n", "times", "number of samples; B µs is their median",
			count(now)),
	}
}

// Percent formats a relative difference: "+5.2 %".
func Percent(f float64) string {
	if math.Abs(f) < 0.0995 {
		return fmt.Sprintf("%+.1f %%", 100*f)
	}
	return fmt.Sprintf("%+.0f %%", 100*f)
}

// Sentences returns what a reader should know first: the sides, the verdict, what changed in the plans, and
// what limits the comparison.
func Sentences(d *diff.Diff) []string {
	list := []string{
		fmt.Sprintf("A: %s", sideName(&d.Base)),
		fmt.Sprintf("B: %s, %s", sideName(&d.Now), joined[d.Joined]),
		Outcome(d)[0],
		Headline(d), planSentence(d),
	}
	b := &analyze.Baseline{Index: d.Base.Index, Selection: d.Base.Selection}
	if other := report.OtherTokens(d.Now.Index, d.Now.Selection, b); other != "" {
		list = append(list, "A and B are of "+other)
	}
	if other := report.OtherTrace(d.Now.Index, d.Base.Index).Text; other != "" {
		list = append(list, "A is of "+other)
	}
	if c := d.Noise.Clock; math.Abs(c) >= 0.005 {
		how := "slower"
		if c < 0 {
			how = "faster"
		}
		list = append(list, fmt.Sprintf("The GPU clock was %.1f %% %s in B. Changes that the clock explains are "+
			"not significant", 100*math.Abs(math.Expm1(-c)), how))
	}
	if d.Base.Index.Trace.Device.Software() || d.Now.Index.Trace.Device.Software() {
		list = append(list, "A software device: only large differences of time are significant")
	}
	if !d.Isolated.Both() {
		list = append(list, "Dispatches were not timed on both sides: to compare their times, record with "+
			"--timing dispatch or --profile both")
	}
	return list
}

var joined = map[join.How]string{
	join.ByID:       "joined by dispatch id",
	join.ByOperator: "joined by operator and kernel, because the graphs differ",
	join.ByOrder:    "joined in order, because the graphs have no operator in common",
}

func sideName(s *diff.Side) string {
	return cmp.Or(s.Name, s.Index.Trace.Model.Name) + ", " + report.SelectionText(s.Selection)
}

// Headline returns the most important result in one sentence.
func Headline(d *diff.Diff) string {
	g := d.First(diff.ByKernel)
	for _, by := range []diff.By{diff.ByOp, diff.ByKind, diff.ByClass, diff.ByLayer} {
		if g == nil {
			g = d.First(by)
		}
	}
	if g == nil {
		for i := range d.Totals {
			if t := &d.Totals[i]; t.Times.Significant {
				return fmt.Sprintf("%s: %s, %s", title(Verdict(&t.Times)), TotalName(t), Difference(&t.Times))
			}
		}
		for i := range d.Rows {
			if r := &d.Rows[i]; r.Times.Significant {
				return fmt.Sprintf("%s: %s, %s", title(Verdict(&r.Times)), r.Name, Difference(&r.Times))
			}
		}
		if t := &d.Isolated; t.Significant {
			return fmt.Sprintf("%s: sum of isolated times, %s", title(Verdict(t)), Difference(t))
		}
		return "No significant difference in time"
	}
	text := fmt.Sprintf("%s: %s %s, %s", title(Verdict(&g.Times)), g.By, g.Name, Difference(&g.Times))
	// A difference from a much faster baseline can be larger than all of its times: it is no share of them.
	if share := math.Abs(g.Times.DeltaNS) / d.Isolated.Base.NS; share <= 1 {
		text += fmt.Sprintf(", %.1f %% of all isolated times", 100*share)
	}
	if in := d.Within(g, diff.ByOp); in != nil && g.By == diff.ByKernel {
		text += fmt.Sprintf("; most of it in %s, %s", in.Name, Difference(&in.Times))
	}
	return text
}

func title(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// Difference returns the difference of two times in a few words: "+35.2 µs (+20 %)".
func Difference(t *diff.Times) string {
	us := t.DeltaNS / 1e3
	text := fmt.Sprintf("%+.1f µs", us)
	if math.Abs(us) >= 10_000 {
		text = fmt.Sprintf("%+.1f ms", us/1e3)
	}
	if f, ok := t.Relative(); ok {
		text += " (" + Percent(f) + ")"
	}
	return text
}

// planSentence counts the differences between the plans.
func planSentence(d *diff.Diff) string {
	if !d.SameEngine {
		return "Grids and routes not compared, because the engines differ"
	}
	var parts []string
	for _, c := range []struct {
		what string
		is   func(*diff.Row) bool
	}{
		{"added", func(r *diff.Row) bool { return r.Status == diff.Added }},
		{"gone", func(r *diff.Row) bool { return r.Status == diff.Gone }},
		{"with another grid", func(r *diff.Row) bool { return r.Plan.Grid }},
		{"with another route", func(r *diff.Row) bool { return r.Plan.Route }},
		{"with another kernel source", func(r *diff.Row) bool { return r.Plan.Text }},
		{"with other params", func(r *diff.Row) bool { return r.Plan.Params }},
	} {
		if n := d.Count(c.is); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, c.what))
		}
	}
	all := table.Plural(len(d.Rows), "dispatch")
	if base, now := d.Dispatches(); d.Joined != join.ByID {
		all = fmt.Sprintf("%s in A and %d in B, compared in %s", table.Plural(base, "dispatch"), now,
			table.Plural(len(d.Rows), "row"))
	}
	if parts == nil {
		return all + ", all with the same plan"
	}
	return all + ": " + strings.Join(parts, ", ")
}
