package curves

import (
	"cmp"
	"context"
	"math"
	"slices"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
)

// Curves holds measured times and planned work along an axis. The axis is the position of decode steps, or
// the number of tokens of prompts that begin at position 0. A place is a point of the axis: a position or a
// number of tokens.
type Curves struct {
	Index    *analyze.Index
	Along    string
	Line     *trace.Line // nil if the trace has no forecast
	From, To int         // first and last place of the axis
	// Rows[0] is the row of the whole step. Each of the following rows is for one dispatch of a layer. If the
	// axis is the position, they are sorted by slope, largest first.
	Rows []CurveRow
	// Level is the timing level at which the times of the whole step were measured. Of says what these times
	// are, for example "GPU span".
	Level trace.Timing
	Of    string
	Cold  int // number of cold steps that are excluded
	// First and Last are the first and the last place at which a step was measured. If no step was measured,
	// First is larger than Last.
	First, Last int
	// Baseline is the baseline with which times are compared, or nil. ClockMoved reports that times are not
	// compared because the GPU clock differed. OtherGraph reports that only the whole step is compared,
	// because the graphs differ, so that dispatches of one name may do different work.
	Baseline               *analyze.Baseline
	ClockMoved, OtherGraph bool
}

// CurveRow is the whole step, or one dispatch of a layer. For a dispatch of a layer, the row adds up the
// times that this dispatch takes in all layers.
type CurveRow struct {
	Name       string
	Kernel     string // kernel of the first dispatch at the row's first place; "" for the whole step
	Dispatches []trace.DispatchID
	Points     []CurvePoint // measured times, sorted by place
	Fit        *Fit         // fitted line; nil if there are too few points
	Shifts     []Shift      // changes of level; for a dispatch, only one that is part of the fitted line
	// Share is the slope of the row as a percentage of the slope of the whole step. If Modelled is set, Share
	// is the row's percentage of the growth of the bytes.
	Share float64
	// Drift is set instead of Share if the row does the same work at every place. The position cannot be the
	// cause of its slope then.
	Drift    float64
	Modelled bool     // Share is based on planned bytes, not on times
	Changes  []Change // changes of the first dispatch's grid or route along the line
	Routes   []RouteSpan
	// Trials holds isolated timings of the row's operators: for each shape and route the latest one. Trials
	// is empty unless the axis is the number of tokens.
	Trials   []trace.Trial
	Baseline *CurveBaseline // time at the baseline; nil if not known
	// State is the memory in which the row keeps data between steps. It is nil if there is none, or if the
	// graph has no recurrent state.
	State   *State
	courses map[int]int // number of dispatches for each index in Line.Courses
}

// CurvePoint is the measured time of a step at a place on the axis.
type CurvePoint struct {
	At, Step int
	NS       float64
}

// RouteSpan is a range of places at which a dispatch takes one route.
type RouteSpan struct {
	From, To int
	// Route is the name of the kernel if the dispatch has no routes, and "" if the dispatch does not run.
	Route  string
	Reason string
}

// Quantity is what a chart shows on its vertical axis.
type Quantity int

// The quantities. All quantities except Time are computed exactly from plans or from the sizes of values.
const (
	Time   Quantity = iota // in ns
	Grid                   // number of workgroups
	Bytes                  // modelled bytes
	Idle                   // percentage of launched lanes without work
	Stored                 // bytes of KV caches in use, compared with the recurrent state
)

// Quantities returns all quantities that the curves have. They have Stored only if the graph has recurrent
// state.
func (c *Curves) Quantities() []Quantity {
	list := []Quantity{Time, Grid, Bytes, Idle}
	if c.Rows[0].State != nil {
		list = append(list, Stored)
	}
	return list
}

// String returns the name of the quantity.
func (q Quantity) String() string { return [...]string{"time", "grid", "bytes", "waste", "state"}[q] }

// OfInterest returns the range of the axis that is shown first. For planned quantities this is the whole
// axis, because they are exact everywhere. For times it is the range of measured steps plus some margin.
// The range extends to the next change of the row's grid or route if the distance to it is at most the
// length of the measured range.
func (c *Curves) OfInterest(r *CurveRow, q Quantity) (from, to int) {
	if q != Time || c.Along != trace.AlongPosition || c.First > c.Last {
		return c.From, c.To
	}
	length := c.Last - c.First
	room := max(8, length/8)
	from, to = c.First-room, c.Last+room
	for _, change := range c.ChangesOf(r) {
		if change.At > c.Last && change.At <= c.Last+length {
			to = max(to, change.At+room)
			break
		}
	}
	return max(from, c.From), min(to, c.To)
}

// Exact returns an exact quantity of a row at a place. For Stored, this is the number of bytes of KV caches
// that are in use after the step, and false means that the row has no KV cache. For all other quantities,
// false means that there are no plans for the place, or that no dispatch of the row runs.
func (c *Curves) Exact(r *CurveRow, q Quantity, at int) (float64, bool) {
	if q == Stored {
		if r.State == nil || !r.State.HasCache() {
			return 0, false
		}
		return float64(r.State.Cache(c.Text(at))), true
	}
	if c.Line == nil || at < c.Line.From || at > c.Line.To || q == Time {
		return 0, false
	}
	var launched, idle, sum float64
	runs := false
	for course, n := range r.courses {
		stretches := &c.Line.Courses[course]
		p, does := stretches.Stretches[stretches.At(at)].Plan(0, at)
		if !does {
			continue
		}
		runs = true
		groups := float64(analyze.Product(p.Workgroups))
		switch q {
		case Grid:
			sum += float64(n) * groups
		case Bytes:
			sum += float64(n) * float64(p.Bytes)
		case Idle:
			lanes := 1.0
			if k := c.Index.Graph.Kernels[p.Kernel]; k != nil {
				lanes = float64(analyze.Product(k.WorkgroupSize))
			}
			launched += float64(n) * groups * lanes
			idle += float64(n) * ((groups-float64(p.NeededGroups))*lanes + float64(p.IdleLanes))
		}
	}
	if q == Idle && launched > 0 {
		sum = 100 * idle / launched
	}
	return sum, runs
}

// Of computes the curves along an axis, compared with a baseline. `baseline` may be nil.
func Of(ctx context.Context, x *analyze.Index, along string, baseline *analyze.Baseline) (*Curves, error) {
	c := &Curves{Index: x, Along: along, First: math.MaxInt, Last: -1}
	if f := x.Trace.Forecast; f != nil {
		for i := range f.Lines {
			if l := &f.Lines[i]; l.Along == along && l.At == c.other() && c.Line == nil {
				c.Line, c.From, c.To = l, l.From, l.To
			}
		}
	}
	c.addRows()
	if err := c.measure(ctx); err != nil {
		return nil, err
	}
	for i := range c.Rows {
		r := &c.Rows[i]
		slices.SortStableFunc(r.Points, func(a, b CurvePoint) int { return a.At - b.At })
		xs, ys := r.places()
		if along == trace.AlongPosition {
			r.Fit = FitLine(xs, ys)
		}
		switch {
		case r.Fit == nil:
		case i == 0:
			r.Shifts = Shifts(xs, ys)
		case r.Fit.Level != nil:
			r.Shifts = []Shift{*r.Fit.Level}
		}
		if c.Line != nil && i > 0 {
			r.Changes, r.Routes = ChangesOn(c.Line, r.Dispatches[0]), routesOn(c.Line, r.Dispatches[0])
		}
	}
	c.addTrials()
	c.addState()
	c.share()
	if baseline != nil && along == trace.AlongPosition {
		if err := c.compare(ctx, baseline); err != nil {
			return nil, err
		}
	}
	return c, ctx.Err()
}

// other returns the coordinate that is fixed along this axis: 1 token for decode steps, position 0 for
// prompts.
func (c *Curves) other() int {
	if c.Along == trace.AlongPosition {
		return 1
	}
	return 0
}

// addRows adds a row for each dispatch of a layer. Dispatches of different layers that have the same name
// within their layer are in the same row.
func (c *Curves) addRows() {
	g := &c.Index.Trace.Graph
	c.Rows = []CurveRow{{Name: "whole step", courses: map[int]int{}}}
	at := map[string]int{}
	for i := range g.Dispatches {
		d := &g.Dispatches[i]
		name := d.Named(g.Ops[d.Op].Place())
		k, ok := at[name]
		if !ok {
			k = len(c.Rows)
			at[name] = k
			c.Rows = append(c.Rows, CurveRow{Name: name, courses: map[int]int{}})
		}
		r := &c.Rows[k]
		r.Dispatches = append(r.Dispatches, d.ID)
		if c.Line != nil {
			course := c.Line.Dispatches[i]
			r.courses[course]++
			c.Rows[0].courses[course]++
			if p := PlanOn(c.Line, d.ID, c.Line.From); p != nil && r.Kernel == "" {
				r.Kernel = p.Kernel
			}
		}
		if r.Kernel == "" && len(d.Kernels) > 0 {
			r.Kernel = d.Kernels[0]
		}
	}
	if c.Line == nil {
		return
	}
	// Remove the rows whose dispatches never run along the line.
	c.Rows = slices.DeleteFunc(c.Rows, func(r CurveRow) bool {
		for course := range r.courses {
			for _, s := range c.Line.Courses[course].Stretches {
				if s.Kernel != "" {
					return false
				}
			}
		}
		return r.Dispatches != nil
	})
}

// place returns the place of a step on the axis. The bool is false if the axis does not include the
// step.
func (c *Curves) place(s *trace.Step) (int, bool) {
	if c.Along == trace.AlongPosition {
		return s.Position, len(s.Tokens) == 1
	}
	return len(s.Tokens), s.Position == 0 && len(s.Tokens) > 0
}

// stepTimes lists the times that can represent a whole step, in order of preference. GPU times come first,
// sorted by how little their timing level disturbs the step. The wall time of untimed steps comes last.
var stepTimes = []struct {
	level trace.Timing
	of    string
	ns    func(*analyze.Index, *trace.Step) trace.Time
}{
	{trace.TimingStep, "GPU span", spanNS},
	{trace.TimingBlock, "GPU span", spanNS},
	{trace.TimingDispatch, "sum of isolated times", func(x *analyze.Index, s *trace.Step) trace.Time {
		busy, _ := x.BusyOf(s)
		return busy
	}},
	{trace.TimingOff, "wall time", func(_ *analyze.Index, s *trace.Step) trace.Time { return s.CPU.TotalNS }},
}

func spanNS(_ *analyze.Index, s *trace.Step) trace.Time { return analyze.GPUOf(s).SpanNS }

// measure collects the times of the steps. The times of the whole step all come from one timing level.
func (c *Curves) measure(ctx context.Context) error {
	steps := c.Index.Trace.Steps
	counts := make([]int, len(stepTimes))
	row := make([]int, len(c.Index.Trace.Graph.Dispatches)) // index of each dispatch's row; 0 if none
	for i := range c.Rows {
		for _, id := range c.Rows[i].Dispatches {
			row[id] = i
		}
	}
	warm := func(s *trace.Step) bool { return !s.Cold }
	usable := func(s *trace.Step) (int, bool) {
		at, ok := c.place(s)
		return at, ok && warm(s)
	}
	n := 0
	for i := range steps {
		if _, ok := c.place(&steps[i]); ok {
			n++
			if steps[i].Cold {
				c.Cold++
			}
		}
	}
	if n == c.Cold { // all steps are cold, so cold steps are used
		c.Cold, warm = 0, func(*trace.Step) bool { return true }
	}
	for i := range steps {
		for k, t := range stepTimes {
			if _, ok := usable(&steps[i]); ok && steps[i].Timing == t.level &&
				analyze.Measured(t.ns(c.Index, &steps[i])) {
				counts[k]++
			}
		}
	}
	best := slices.Index(counts, slices.Max(counts))
	for k, n := range counts { // the first level with enough points disturbs steps least
		if n >= 4*minLinePoints {
			best = k
			break
		}
	}
	c.Level, c.Of = stepTimes[best].level, stepTimes[best].of
	for i := range steps {
		s := &steps[i]
		at, ok := usable(s)
		if !ok {
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c.First, c.Last = min(c.First, at), max(c.Last, at)
		if c.Line == nil || at < c.From || at > c.To {
			c.widen(at)
		}
		if ns, ok := stepTimes[best].ns(c.Index, s).NS(); ok && s.Timing == c.Level {
			c.Rows[0].Points = append(c.Rows[0].Points, CurvePoint{at, i, float64(ns)})
		}
		c.measureRows(i, at, row)
	}
	return nil
}

func (c *Curves) widen(at int) {
	if c.Line == nil && c.From == 0 && c.To == 0 {
		c.From, c.To = at, at
	}
	c.From, c.To = min(c.From, at), max(c.To, at)
}

// measureRows adds the times of the dispatches of a step to their rows. It adds nothing unless every dispatch
// of the step was timed.
func (c *Curves) measureRows(step, at int, row []int) {
	s := &c.Index.Trace.Steps[step]
	if s.Timing != trace.TimingDispatch {
		return
	}
	sums := make([]float64, len(c.Rows))
	timed := make([]bool, len(c.Rows))
	for i := range s.Dispatches {
		d := &s.Dispatches[i]
		k := row[c.Index.Trace.Plans[d.Plan].Dispatch]
		if ns, measured := analyze.MedianOf(d); measured {
			sums[k] += ns
			timed[k] = true
		}
	}
	for k := 1; k < len(c.Rows); k++ {
		if timed[k] {
			c.Rows[k].Points = append(c.Rows[k].Points, CurvePoint{at, step, sums[k]})
		}
	}
}

// Slope returns the fitted line of the whole step, and nil if its slope is not significant.
func (c *Curves) Slope() *Fit {
	if f := c.Rows[0].Fit; f != nil && f.Significant() {
		return f
	}
	return nil
}

// Owners returns the rows that contribute most to the slope. These are the row with the largest slope and the
// next rows, as long as their slopes do not differ significantly from the largest.
func (c *Curves) Owners() []CurveRow {
	rows := c.Rows[1:]
	n := 0
	for n < len(rows) && rows[n].Share > 0 && rows[0].slopesLike(&rows[n]) {
		n++
	}
	return rows[:n]
}

// slopesLike reports whether two slopes do not differ significantly: by at most three standard errors of the
// difference. Modelled slopes have no error, so they must be equal.
func (r *CurveRow) slopesLike(s *CurveRow) bool {
	if r.Modelled || r.Fit == nil || s.Fit == nil {
		return r.Share == s.Share
	}
	return math.Abs(r.Fit.B-s.Fit.B) <= 3*math.Hypot(r.Fit.SE, s.Fit.SE)
}

// steady reports whether the work of a row does not depend on the place: the planned work is the same at the
// first and the last measured place.
func (c *Curves) steady(r *CurveRow) bool {
	if c.Line == nil || c.First < c.Line.From || c.Last > c.Line.To {
		return false
	}
	for course := range r.courses {
		l := &c.Line.Courses[course]
		first, runs := l.Stretches[l.At(c.First)].Plan(0, c.First)
		last, still := l.Stretches[l.At(c.Last)].Plan(0, c.Last)
		if runs != still || !first.SameWork(&last) {
			return false
		}
	}
	return true
}

// share divides the slope of the whole step among the rows. If dispatches were timed, a row's share is its
// slope divided by the slope of the whole step. If the slopes of all rows add up to more than that, the
// share is the slope divided by their sum. If dispatches were not timed, a row's share is its fraction of
// the bytes by which the planned bytes grow along the line; more bytes do not explain a negative slope, so
// the shares are then 0. The result is stored in Share, or in Drift if the row is steady.
func (c *Curves) share() {
	whole, way := c.Slope(), 1.0
	if whole != nil && whole.B < 0 {
		way = -1
	}
	byTime := false
	slope := make([]float64, len(c.Rows))
	for i := 1; i < len(c.Rows); i++ {
		if f := c.Rows[i].Fit; f != nil {
			byTime = true
			if f.Significant() {
				slope[i] = way * f.B
			}
		}
	}
	var all float64
	if whole != nil {
		sum := 0.0
		for _, b := range slope {
			sum += max(0, b)
		}
		all = max(math.Abs(whole.B), sum)
	}
	if !byTime && c.Line != nil && c.To > c.From {
		all = 0
		for i := 1; i < len(c.Rows); i++ {
			first, _ := c.Exact(&c.Rows[i], Bytes, c.Line.From)
			last, _ := c.Exact(&c.Rows[i], Bytes, c.Line.To)
			slope[i] = last - first
			if whole != nil && way > 0 {
				all += max(0, slope[i])
				c.Rows[i].Modelled = true
			}
		}
	}
	order := make(map[string]float64, len(c.Rows))
	for i := range c.Rows {
		r, part := &c.Rows[i], 0.0
		if all > 0 && whole != nil {
			part = 100 * max(0, slope[i]) / all
		}
		if byTime && part > 0 && c.steady(r) {
			r.Drift = part
			continue
		}
		r.Share, order[r.Name] = part, slope[i]
	}
	if c.Along == trace.AlongPosition {
		slices.SortStableFunc(c.Rows[1:], func(a, b CurveRow) int {
			return cmp.Or(cmp.Compare(order[b.Name], order[a.Name]), cmp.Compare(b.Drift, a.Drift))
		})
		return
	}
	named := func(r *CurveRow) (n int) {
		for _, s := range r.Routes {
			if s.Route != "" {
				n++
			}
		}
		return n
	}
	// Rows whose dispatch changes its route along the line come first, then rows with one route, then rows
	// whose first dispatch never runs.
	slices.SortStableFunc(c.Rows[1:], func(a, b CurveRow) int {
		return min(2, named(&b)) - min(2, named(&a))
	})
}

// routesOn returns the routes of a dispatch along a line.
func routesOn(l *trace.Line, id trace.DispatchID) []RouteSpan {
	var spans []RouteSpan
	for _, s := range l.Course(id).Stretches {
		name := s.Route
		if name == "" {
			name = s.Kernel
		}
		if n := len(spans) - 1; n >= 0 && spans[n].Route == name {
			continue
		}
		spans = append(spans, RouteSpan{From: s.From, Route: name, Reason: s.Reason})
	}
	for i := range spans {
		spans[i].To = l.To
		if i+1 < len(spans) {
			spans[i].To = spans[i+1].From - 1
		}
	}
	return spans
}

// Name returns the route, or "not run" if the dispatch does not run.
func (s RouteSpan) Name() string {
	if s.Route == "" {
		return "not run"
	}
	return s.Route
}

// addTrials adds to each row the isolated timings of the operators of the row.
func (c *Curves) addTrials() {
	g := &c.Index.Trace.Graph
	for i := range c.Index.Trace.Trials {
		t := c.Index.Trace.Trials[i]
		if c.Along != trace.AlongTokens || t.Position != 0 || t.Tokens < c.From || t.Tokens > c.To {
			continue
		}
		for k := range c.Rows {
			r := &c.Rows[k]
			if !slices.ContainsFunc(r.Dispatches, func(id trace.DispatchID) bool {
				return g.Dispatches[id].Op == t.Op
			}) {
				continue
			}
			same := func(u trace.Trial) bool { return u.Tokens == t.Tokens && u.Route == t.Route }
			r.Trials = append(slices.DeleteFunc(r.Trials, same), t)
		}
	}
	for k := range c.Rows {
		slices.SortStableFunc(c.Rows[k].Trials, func(a, b trace.Trial) int { return a.Tokens - b.Tokens })
	}
}

// Drift returns the percentage of the slope of the whole step that is not caused by the position. This is the
// sum of CurveRow.Drift over all rows.
func (c *Curves) Drift() float64 {
	all := 0.0
	for i := range c.Rows {
		all += c.Rows[i].Drift
	}
	return all
}
