package report

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/table"
)

// talk lists the kinds of recorded events that Events omits. These events are messages, and users do not want
// to jump to them.
var talk = []string{"log", "note", "cut", ""}

// A step is an outlier if its time is at least outlierTimes times the median of similar steps, and more than
// outlierMADs median absolute deviations (MAD) above this median.
const outlierTimes, outlierMADs = 1.5, 5

// Events returns the events of a run in order of the steps. Its run time is proportional to the length of
// the trace.
func Events(ctx context.Context, x *analyze.Index) ([]analyze.Event, error) {
	t := x.Trace
	var out []analyze.Event
	for i := range t.Events {
		e := &t.Events[i]
		if slices.Contains(talk, e.Kind) {
			continue
		}
		at, ok := slices.BinarySearchFunc(t.Steps, e.Step,
			func(s trace.Step, n int) int { return s.Index - n })
		if ok {
			out = append(out, analyze.Event{Step: at, Dispatch: e.Dispatch, Kind: e.Kind, Text: e.Text})
		}
	}
	usual, regridded := x.TypicalTimes(), x.RegriddedSteps
	for i := range t.Steps {
		if i%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		s := &t.Steps[i]
		if s.Cold {
			// Of several cold steps in a row, report only the first and those that compiled a kernel.
			if i == 0 || !t.Steps[i-1].Cold || len(s.CPU.Compiled) > 0 {
				out = append(out, analyze.Event{Step: i, Kind: analyze.ColdEvent, Text: coldText(s)})
			}
		} else if e, ok := outlier(usual[analyze.KindOf(s)], s); ok {
			e.Step = i
			out = append(out, e)
		}
		regrids := len(regridded) > 0 && regridded[0] == i
		if regrids {
			regridded = regridded[1:]
		}
		switch {
		case i == 0 || t.Engine != "": // the profile of another engine does not have the tokens
		case len(t.Steps[i-1].Tokens) == len(s.Tokens) && t.Steps[i-1].Phase == s.Phase:
			if regrids {
				out = append(out, unasked(x, i)...)
			}
		default:
			out = append(out, analyze.Event{Step: i, Kind: analyze.ShapeEvent, Text: reshaped(x, i)})
		}
	}
	slices.SortStableFunc(out, func(a, b analyze.Event) int { return a.Step - b.Step })
	return out, nil
}

func coldText(s *trace.Step) string {
	if n := len(s.CPU.Compiled); n > 0 {
		return "cold: " + table.Plural(n, "kernel") + " compiled"
	}
	if c := s.Canary; c > 0 && c < 1-trace.ClockMoved {
		return fmt.Sprintf("cold: GPU clock at %.2f of its warm speed", c)
	}
	return "cold: first step after idle time, or first use of a route"
}

func outlier(w analyze.Typical, s *trace.Step) (analyze.Event, bool) {
	ns, ok := s.CPU.TotalNS.NS()
	over := float64(ns) - w.Median
	if !ok || w.Median == 0 || float64(ns) < outlierTimes*w.Median || over <= outlierMADs*w.MAD {
		return analyze.Event{}, false
	}
	text := fmt.Sprintf("took %.1f times the median of similar steps: %s instead of %s", float64(ns)/w.Median,
		table.Millis(ns, true), table.Millis(analyze.Whole(w.Median), true))
	return analyze.Event{Kind: analyze.OutlierEvent, Text: text}, true
}

// reshaped describes a step with a different phase or token count than the previous step, and counts the
// changed plans. An example is "decode of 1 token, after prefill of 7 tokens: 61 grids and 42 routes
// changed".
func reshaped(x *analyze.Index, step int) string {
	shape := func(s *trace.Step) string {
		return string(s.Phase) + " of " + table.Plural(len(s.Tokens), "token")
	}
	s := &x.Trace.Steps[step]
	grids, routes := 0, 0
	for _, c := range analyze.NetPlans(x.Trace, s) {
		if c.Diff.Grid {
			grids++
		}
		if c.Diff.Route {
			routes++
		}
	}
	return fmt.Sprintf("%s, after %s: %s and %s changed", shape(s), shape(&x.Trace.Steps[step-1]),
		table.Plural(grids, "grid"), table.Plural(routes, "route"))
}

// If a step has the same phase and number of tokens as the previous step, unasked returns events for the
// changes of grids and routes in the step. There is one event for each kind of change. The event refers to
// the first changed dispatch, and its text describes the changes of all dispatches.
func unasked(x *analyze.Index, step int) []analyze.Event {
	events := map[string]*analyze.Event{}
	said := map[string][]string{}
	times := map[string]int{}
	analyze.EachPlanChange(&x.Trace.Steps[step], func(_ *trace.Hook, c trace.PlanChange) {
		from, to := analyze.PlanOf(x.Trace, c.From), analyze.PlanOf(x.Trace, c.To)
		kind, text := analyze.GridEvent, ""
		switch d := trace.DiffPlans(from, to); {
		case d.New:
			kind, text = analyze.RouteEvent, "runs"
		case d.Gone:
			kind, text = analyze.RouteEvent, "does not run"
		case d.Route:
			kind, text = analyze.RouteEvent, fmt.Sprintf("%s → %s", from.Kernel, to.Kernel)
			if from.Kernel == to.Kernel {
				text = fmt.Sprintf("%s → %s", from.Route, to.Route)
			}
		case d.Grid:
			text = fmt.Sprintf("%s → %s", table.Grid(from.Workgroups), table.Grid(to.Workgroups))
		default:
			return
		}
		id := analyze.Changed(x.Trace, c)
		d := &x.Trace.Graph.Dispatches[id]
		if events[kind] == nil {
			events[kind] = &analyze.Event{Step: step, Dispatch: &id, Kind: kind}
		}
		text = analyze.Label(&x.Trace.Graph.Ops[d.Op], d) + " " + text
		if times[text]++; times[text] == 1 {
			said[kind] = append(said[kind], text)
		}
	})
	var out []analyze.Event
	for _, kind := range []string{analyze.GridEvent, analyze.RouteEvent} {
		e := events[kind]
		if e == nil {
			continue
		}
		for i, s := range said[kind] {
			if times[s] > 1 {
				said[kind][i] = fmt.Sprintf("%s (%d times)", s, times[s])
			}
		}
		e.Text = strings.Join(said[kind], ", ") + moved(x, step)
		out = append(out, *e)
	}
	return out
}

// beside limits how many steps are compared on each side of a change.
const beside = 16

// moved describes how much the step time changed at a step, such as ", step time +0.4 %". If it detects no
// change, it states a bound on the change. On each side of the change, it compares steps of the same kind
// that took the same routes. It does not look beyond a point where the user stepped back, edited the text or
// reset it. It returns "" if there are too few such steps.
func moved(x *analyze.Index, step int) string {
	steps := x.Trace.Steps
	// continues reports whether step i continues the text of the step before it. If the user stepped back,
	// edited the text or reset it in between, the position is not larger.
	continues := func(i int) bool {
		return x.Trace.Engine != "" || steps[i].Phase == trace.Execute ||
			steps[i].Position > steps[i-1].Position
	}
	rerouted := func(i, from int) bool {
		return analyze.KindOf(&steps[i]) == analyze.KindOf(&steps[from]) &&
			x.Routed(analyze.Selection{Steps: []int{i, from}}).Rerouted > 0
	}
	if !continues(step) {
		return ""
	}
	times := func(from, by int) []float64 {
		var ns []float64
		for i := from; i >= 0 && i < len(steps) && i-from < beside && from-i < beside; i += by {
			s := &steps[i]
			if i != from && (!continues(max(i, i-by)) || rerouted(i, from)) {
				break
			}
			time := s.CPU.TotalNS
			if analyze.Measured(analyze.GPUOf(s).SpanNS) {
				time = analyze.GPUOf(s).SpanNS
			}
			if t, ok := time.NS(); ok && !s.Cold && analyze.KindOf(s) == analyze.KindOf(&steps[step]) {
				ns = append(ns, float64(t))
			}
		}
		return ns
	}
	// level returns the median and its standard error, estimated from the deviations. A change of up to
	// three standard errors may be chance.
	level := func(ns []float64) (median, error float64) {
		median = analyze.StatsOf(ns).Median
		for i := range ns {
			ns[i] = math.Abs(ns[i] - median)
		}
		return median, 1.253 * 1.4826 * analyze.StatsOf(ns).Median / math.Sqrt(float64(len(ns)))
	}
	before, now := times(step-1, -1), times(step, 1)
	if len(before) < analyze.Enough || len(now) < analyze.Enough {
		return ""
	}
	then, off := level(before)
	to, by := level(now)
	chance := 3 * math.Hypot(off, by)
	switch {
	case then <= 0:
		return ""
	case math.Abs(to-then) <= chance:
		return fmt.Sprintf(", step time unchanged within %.1f %%", 100*chance/then)
	}
	return fmt.Sprintf(", step time %+.1f %%", 100*(to/then-1))
}

func init() {
	Register(Table{
		Name: "events", Takes: WholeRun,
		Doc: "events of the run: changes of the phase or the number of tokens, other changes of grids and routes, " +
			"outliers, cold steps, and recorded events",
		Of: func(ctx context.Context, x *analyze.Index, o analyze.Options) (*table.Table, error) {
			events, err := Events(ctx, x)
			if err != nil {
				return nil, err
			}
			if o.Selection.Steps != nil {
				events = slices.DeleteFunc(events, func(e analyze.Event) bool {
					_, in := slices.BinarySearch(o.Selection.Steps, e.Step)
					return !in
				})
			}
			return eventTable(x, events), nil
		},
	})
}

func eventTable(x *analyze.Index, events []analyze.Event) *table.Table {
	of := table.ColumnsOf(events)
	return table.New("events", []table.Column{
		of.Int(80, "step", "step", "step", "index of the step",
			func(e *analyze.Event) int64 { return int64(x.Trace.Steps[e.Step].Index) }),
		of.Int(80, "position", "pos", "position", "first position of the step",
			func(e *analyze.Event) int64 { return int64(x.Trace.Steps[e.Step].Position) }),
		of.Text(80, "kind", "kind",
			"kind of event: shape (the phase or the number of tokens changed), grid, route, outlier, cold, or a recorded kind",
			func(e *analyze.Event) string { return e.Kind }).AsTree(),
		of.Cell(80, table.Exact, "dispatch", "#", "id",
			"id of the dispatch; for an event of several dispatches, the id of the first",
			func(e *analyze.Event) table.Cell {
				if e.Dispatch == nil {
					return table.Cell{}
				}
				return table.Count(int(*e.Dispatch))
			}),
		of.Text(80, "text", "what", "what happened", func(e *analyze.Event) string { return e.Text }),
	}, table.Flat(len(events), func(row int) string { return fmt.Sprintf("e%d", row) }))
}
