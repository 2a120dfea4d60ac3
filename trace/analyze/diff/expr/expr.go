// Package expr evaluates conditions about the difference of two runs, such as "decode.p50>+5%". The flag
// --fail-if of gpuscope trace diff takes such conditions, and docs/guide/diff.md describes them for users.
//
//	c, err := expr.Parse("kernel:gemv>+10%")
//	r, err := c.Eval(d)
//	if r.Failed() { ... }
package expr

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/diff"
	"gpuscope/trace/analyze/join"
)

// kind is the kind of value that a metric has.
type kind int

const (
	ofTime  kind = iota // a time in ns; conditions compare it or its change
	ofRate              // tokens per second; conditions compare it or its change
	ofCount             // a number of rows
)

// Unit is the unit of the value in a condition.
type Unit string

// The units. A time without a unit is an error.
const (
	Percent Unit = "%"
	NS      Unit = "ns"
	Plain   Unit = "" // rows, or tokens per second
)

// Condition is a parsed condition. The zero Condition is not valid.
type Condition struct {
	Text   string  // the condition as the user wrote it
	Metric string  // "decode.p50", "kernel:gemv"
	Op     string  // > >= < <=
	Value  float64 // a fraction if Unit is Percent
	Unit   Unit
	// Change reports that the condition is about the difference of the two sides. Otherwise it is about the
	// second side alone.
	Change bool

	kind    kind
	scope   string       // if the metric is a total: its scope
	measure diff.Measure // if the metric is a total: wall or gpu
	by      diff.By      // if the metric is a group: its grouping
	name    string       // if the metric is a group: its name
	count   func(*diff.Row) bool
}

// Part names a part of a condition.
type Part string

// The parts of a condition.
const (
	MetricPart Part = "metric"
	OpPart     Part = "comparison"
	ValuePart  Part = "value"
)

// SyntaxError is the error for a condition that cannot be parsed.
type SyntaxError struct {
	Text string // the condition
	Part Part   // the part that is wrong
	Want string // what is expected in place of this part
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("condition %q: wrong %s: want %s", short(e.Text), e.Part, e.Want)
}

// MissingError is the error for a condition about something that the compared runs do not have.
type MissingError struct {
	Condition Condition
	Why       string
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("condition %q cannot be evaluated: %s", short(e.Condition.Text), e.Why)
}

func short(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:59]) + "…"
	}
	return s
}

// Metrics describes the metrics in one line, for help texts and errors.
const Metrics = "[PHASE.]p50, [PHASE.]gpu.p50, [PHASE.]tokens_per_s, isolated, kernel:NAME, op:NAME, " +
	"kind:NAME, class:NAME, layer:NAME, rows.added, rows.gone, rows.changed, rows.slower, rows.faster, grid.changed, route.changed, " +
	"source.changed or params.changed"

// counts has the metrics that count rows.
var counts = map[string]func(*diff.Row) bool{
	"rows.added":     func(r *diff.Row) bool { return r.Status == diff.Added },
	"rows.gone":      func(r *diff.Row) bool { return r.Status == diff.Gone },
	"rows.changed":   func(r *diff.Row) bool { return r.Status == diff.Changed },
	"rows.slower":    func(r *diff.Row) bool { return r.Times.Significant && r.Times.DeltaNS > 0 },
	"rows.faster":    func(r *diff.Row) bool { return r.Times.Significant && r.Times.DeltaNS < 0 },
	"grid.changed":   func(r *diff.Row) bool { return r.Plan.Grid },
	"route.changed":  func(r *diff.Row) bool { return r.Plan.Route },
	"source.changed": func(r *diff.Row) bool { return r.Plan.Text },
	"params.changed": func(r *diff.Row) bool { return r.Plan.Params },
}

// maxText is the largest length of a condition in bytes.
const maxText = 1000

// Parse parses a condition. The error is a *SyntaxError.
func Parse(text string) (Condition, error) {
	c := Condition{Text: text}
	wrong := func(part Part, want string) (Condition, error) {
		return Condition{}, &SyntaxError{text, part, want}
	}
	if len(text) > maxText {
		return wrong(MetricPart, fmt.Sprintf("a condition of at most %d bytes", maxText))
	}
	at := strings.LastIndexAny(text, "<>")
	if at < 0 {
		return wrong(OpPart, "METRIC>VALUE or METRIC<VALUE, such as decode.p50>+5%")
	}
	c.Metric, c.Op = strings.TrimSpace(text[:at]), text[at:at+1]
	value := text[at+1:]
	if strings.HasPrefix(value, "=") {
		c.Op, value = c.Op+"=", value[1:]
	}
	if !c.parseMetric() {
		return wrong(MetricPart, Metrics)
	}
	if want := c.parseValue(strings.TrimSpace(value)); want != "" {
		return wrong(ValuePart, want)
	}
	return c, nil
}

// parseMetric sets the fields of the metric. It returns false for an unknown metric.
func (c *Condition) parseMetric() bool {
	if by, name, ok := strings.Cut(c.Metric, ":"); ok {
		for _, known := range []diff.By{diff.ByKernel, diff.ByOp, diff.ByKind, diff.ByClass, diff.ByLayer} {
			if string(known) == by {
				c.by, c.name = known, strings.TrimSpace(name)
				return c.name != ""
			}
		}
		return false
	}
	if c.Metric == "isolated" {
		return true
	}
	if of, ok := counts[c.Metric]; ok {
		c.kind, c.count = ofCount, of
		return true
	}
	scope, rest := diff.Selected, c.Metric
	for _, name := range append([]string{diff.Selected}, phases()...) {
		if c.Metric == name {
			scope, rest = name, "p50"
		} else if after, ok := strings.CutPrefix(c.Metric, name+"."); ok {
			scope, rest = name, after
		}
	}
	c.scope = scope
	switch rest {
	case "p50", "wall.p50":
		c.measure = diff.Wall
	case "gpu.p50":
		c.measure = diff.Span
	case "tokens_per_s":
		c.kind, c.measure = ofRate, diff.Wall
	default:
		return false
	}
	return true
}

func phases() []string {
	var names []string
	for _, p := range trace.Phases {
		names = append(names, string(p))
	}
	return names
}

// units has the units of times, in ns. A unit comes before the units that are its suffixes: "ms" before "s".
var units = []struct {
	name string
	ns   float64
}{{"ns", 1}, {"us", 1e3}, {"µs", 1e3}, {"μs", 1e3}, {"ms", 1e6}, {"s", 1e9}}

// parseValue sets the value and the unit. It returns a description of what it expected, or "" if the value is
// valid.
func (c *Condition) parseValue(s string) (want string) {
	signed := strings.HasPrefix(s, "+") || strings.HasPrefix(s, "-")
	number, scale := s, 1.0
	if rest, ok := strings.CutSuffix(s, "%"); ok && c.kind != ofCount {
		number, scale, c.Unit = rest, 0.01, Percent
	} else if c.kind == ofTime {
		found := false
		for _, u := range units {
			if rest, ok := strings.CutSuffix(s, u.name); ok {
				number, scale, c.Unit, found = rest, u.ns, NS, true
				break
			}
		}
		if !found {
			return "a number with a unit: %, ns, us, ms or s, such as +5%"
		}
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v*scale, 0) || strings.ContainsAny(number, "xXpP_") {
		switch c.kind {
		case ofCount:
			return "a number of rows, such as 0"
		case ofRate:
			return "a number of tokens per second or a percentage, such as -5%"
		}
		return "a number with a unit, such as +5% or +20us"
	}
	c.Value = v * scale
	c.Change = c.Unit == Percent || signed && c.kind != ofCount
	if c.kind == ofCount && signed {
		return "a number of rows without a sign, such as 0"
	}
	return ""
}

// Result is the result of a condition.
type Result struct {
	Condition Condition
	Value     float64 // in the unit of the condition
	Holds     bool    // the value satisfies the comparison
	// Counts is false if the condition is about a change that is not significant. Such a condition cannot
	// fail.
	Counts bool
	Times  *diff.Times // the compared times; nil for a count
	// NotJudged is the reason why it is unknown whether the change is significant, and Remedy says how to
	// record runs that make it known. Both are "" if it is known, or if the condition is not about a change.
	NotJudged, Remedy string
}

// Failed reports whether both Holds and Counts are set.
func (r *Result) Failed() bool { return r.Holds && r.Counts }

// Eval evaluates a condition. The error is a *MissingError if the runs do not have what the condition is
// about.
func (c Condition) Eval(d *diff.Diff) (Result, error) {
	r := Result{Condition: c, Counts: true}
	missing := func(format string, args ...any) (Result, error) {
		return Result{}, &MissingError{c, fmt.Sprintf(format, args...)}
	}
	only := "" // the only run that has the group
	switch {
	case c.kind == ofCount && !d.SameEngine && strings.HasSuffix(c.Metric, ".changed") && c.Metric != "rows.changed":
		return missing("plans are not compared, because the engines differ")
	case c.Metric == "source.changed" && d.Joined != join.ByID:
		return missing("sources are only compared if the graphs are the same")
	case c.kind == ofCount:
		r.Value = float64(d.Count(c.count))
		r.Holds = c.compare(r.Value)
		return r, nil
	case c.by != "":
		g := c.group(d)
		fused := c.fused(d)
		switch {
		case g == nil && fused != "":
			return missing("%s is a part of op:%s. Use that", short(c.name), fused)
		case g == nil:
			return missing("neither run has the %s %q", c.by, short(c.name))
		case len(c.groups(d)) > 1 && c.Change:
			return missing("the kernels of this name are different: their sources differ")
		case len(c.groups(d)) > 1 && g.Now == 0:
			g = c.groups(d)[1] // the limit is on B
		}
		r.Times = &g.Times
		switch {
		case g.Status == diff.Added && g.Times.Now.Measured:
			only = "B"
		case g.Status == diff.Gone && g.Times.Base.Measured:
			only = "A"
		}
	case c.Metric == "isolated":
		r.Times = &d.Isolated
	default:
		t := d.Total(c.scope, c.measure)
		switch {
		case t == nil:
			return missing("one of the runs has no such time")
		case t.Why != "":
			return missing("%s", t.Why)
		}
		r.Times = &t.Times
		if c.kind == ofRate {
			base, now, ok := t.TokensPerS()
			if !ok {
				return missing("the number of tokens per step is not known")
			}
			return c.result(d, r, base, now), nil
		}
	}
	if only != "" {
		if c.Unit != Percent || only == "A" { // otherwise there is no change in percent
			r = c.result(d, r, r.Times.Base.NS, r.Times.Now.NS)
		}
		if c.Change {
			r.Counts = false
			r.NotJudged = "only " + only + " has such dispatches"
			r.Remedy = "use the total, a layer, or a time without + or -"
		}
		return r, nil
	}
	if !r.Times.Now.Measured || c.Change && !r.Times.Base.Measured {
		return missing("the metric was not measured on both sides")
	}
	if c.Change && r.Times.OtherWork {
		return missing("the runs may do different work in these dispatches. Use isolated or a layer")
	}
	if c.Unit == Percent && r.Times.Base.NS <= 0 {
		return missing("the time at the baseline is 0")
	}
	return c.result(d, r, r.Times.Base.NS, r.Times.Now.NS), nil
}

// result completes a result from the values of both sides.
func (c *Condition) result(d *diff.Diff, r Result, base, now float64) Result {
	switch {
	case c.Unit == Percent:
		r.Value = now/base - 1
	case c.Change:
		r.Value = now - base
	default:
		r.Value = now
	}
	r.Holds = c.compare(r.Value)
	r.Counts = !c.Change || r.Times.Significant
	if a, b := &r.Times.Base, &r.Times.Now; c.Change && !r.Times.Known {
		r.NotJudged, r.Remedy = "a time is 0", "record the runs again"
		if a.NS > 0 && b.NS > 0 {
			r.NotJudged = fmt.Sprintf("too few times: %d in A, %d in B", a.N, b.N)
			r.Remedy = c.remedy(d)
		}
	}
	return r
}

// remedy says how to record runs with more times of the metric.
func (c *Condition) remedy(d *diff.Diff) string {
	more, repeated := "-n N, which adds steps", "the last step"
	if selected := d.Now.Index.Trace.Steps[d.Now.Selection.Last()].Phase; c.scope == string(trace.Prefill) ||
		(c.scope == "" || c.scope == diff.Selected) && selected == trace.Prefill {
		more, repeated = "--max-chunk N, which divides the prompt into several steps", "the prompt"
	}
	if c.scope == "" { // times of dispatches
		more = "--timing dispatch and " + more
	}
	return fmt.Sprintf("record both runs with %s, or with --profile both, which repeats %s (at least %d repeats are needed)",
		more, repeated, trace.FewestWithin)
}

func (c *Condition) group(d *diff.Diff) *diff.Group {
	if list := c.groups(d); list != nil {
		return list[0]
	}
	return nil
}

// groups returns the groups with the name of the condition: one or, of a kernel that each side has with
// another source, two.
func (c *Condition) groups(d *diff.Diff) (list []*diff.Group) {
	for _, g := range d.GroupsBy(c.by) {
		if g.Name == c.name || c.by == diff.ByLayer && g.Name == "layer "+c.name {
			list = append(list, g)
		}
	}
	return list
}

// fused returns the fused operator that the operator of the condition belongs to, or "".
func (c *Condition) fused(d *diff.Diff) string {
	is := func(l *analyze.Launch) bool { return l.Op.Place() == c.name }
	for i := range d.Rows {
		if r := &d.Rows[i]; c.by == diff.ByOp && slices.ContainsFunc(slices.Concat(r.Base, r.Now), is) {
			return r.Place
		}
	}
	return ""
}

func (c *Condition) compare(v float64) bool {
	switch c.Op {
	case ">":
		return v > c.Value
	case ">=":
		return v >= c.Value
	case "<":
		return v < c.Value
	}
	return v <= c.Value
}
