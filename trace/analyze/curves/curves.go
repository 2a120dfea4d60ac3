package curves

import (
	"cmp"
	"context"
	"math"
	"slices"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
)

// Curves are what a run measured and what its plans say along an axis: the position of decode steps, or the
// tokens of prompts that begin at position 0.
type Curves struct {
	Index    *analyze.Index
	Along    string
	Line     *trace.Line // nil where the trace has no forecast
	From, To int         // of the axis
	Rows     []CurveRow  // the whole step, then what its dispatches are in a layer, most of the slope first
	// Level and Of say what the times of the whole step are: of which timing level, and what was measured.
	Level trace.Timing
	Of    string
	Cold  int // steps left out
	// First and Last are the first and the last place at which a step was measured; First is over Last where
	// none was.
	First, Last int
	// Baseline is what times are compared with, nil for nothing; ClockMoved that they cannot be.
	Baseline   *analyze.Baseline
	ClockMoved bool
}

// CurveRow is the whole step, or the dispatches that have one place in all layers, summed up.
type CurveRow struct {
	Name       string
	Kernel     string // of the first, where the line begins; "" for the whole step
	Dispatches []trace.DispatchID
	Points     []CurvePoint // measured, by place
	Fit        *Fit         // through them; nil where they are too few
	Shifts     []Shift
	Share      float64  // of the slope of the whole step, in %; of their bytes' slope where Modelled
	Drift      float64  // the same of a row that does the same work at every place: no position slows that
	Modelled   bool     // the share is one of bytes that the plans say
	Changes    []Change // of the first dispatch, along the line
	Routes     []RouteSpan
	Trials     []trace.Trial  // of its operators, of each shape and route the last; along the tokens only
	Baseline   *CurveBaseline // what it took at the baseline; nil where that is not known
	courses    map[int]int    // how many dispatches have each course of the line
}

// CurvePoint is a measured time of a step that stands at a place.
type CurvePoint struct {
	At, Step int
	NS       float64
}

// RouteSpan is a part of a line in which a dispatch takes one route.
type RouteSpan struct {
	From, To int
	Route    string // or the kernel, of what has no routes; "" where it does not run
	Reason   string
}

// Quantity is what of a row is looked at along the axis.
type Quantity int

// The quantities. All but Time are exact from the plans.
const (
	Time  Quantity = iota // ns
	Grid                  // workgroups
	Bytes                 // modelled
	Idle                  // lanes launched without work, in %
	quantities
)

// Quantities are all there are.
func Quantities() []Quantity { return []Quantity{Time, Grid, Bytes, Idle} }

// String is the quantity's name.
func (q Quantity) String() string { return [...]string{"time", "grid", "bytes", "waste"}[q] }

// OfInterest is the part of the axis that is worth looking at first. What the plans say is exact everywhere.
// Times stand where steps were measured: these with some room, up to the next change of the row's grid where
// that is no further away than the steps are.
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

// Exact is a quantity of a row at a place, from the plans; false if there are none, or nothing runs.
func (c *Curves) Exact(r *CurveRow, q Quantity, at int) (float64, bool) {
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

// Of computes the curves along an axis, and what of them there is at a baseline; baseline may be nil.
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
		if i == 0 && r.Fit != nil {
			r.Shifts = Shifts(xs, ys)
		}
		if c.Line != nil && i > 0 {
			r.Changes, r.Routes = ChangesOn(c.Line, r.Dispatches[0]), routesOn(c.Line, r.Dispatches[0])
		}
	}
	c.addTrials()
	c.share()
	if baseline != nil && along == trace.AlongPosition {
		if err := c.compare(ctx, baseline); err != nil {
			return nil, err
		}
	}
	return c, ctx.Err()
}

// other is what the line has of the other axis: decode steps are of one token, prompts begin at position 0.
func (c *Curves) other() int {
	if c.Along == trace.AlongPosition {
		return 1
	}
	return 0
}

// addRows groups the dispatches of the graph by what they are in a layer.
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
	c.Rows = slices.DeleteFunc(c.Rows, func(r CurveRow) bool { // what never runs along the line
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

// place is where a step stands on the axis; false where it is not of it.
func (c *Curves) place(s *trace.Step) (int, bool) {
	if c.Along == trace.AlongPosition {
		return s.Position, len(s.Tokens) == 1
	}
	return len(s.Tokens), s.Position == 0 && len(s.Tokens) > 0
}

// stepTimes are what can stand for the time of a whole step, the one that disturbs it least first.
var stepTimes = []struct {
	level trace.Timing
	of    string
	ns    func(*trace.Step) trace.Time
}{
	{trace.TimingStep, "GPU span", func(s *trace.Step) trace.Time { return analyze.GPUOf(s).SpanNS }},
	{trace.TimingBlock, "GPU span", func(s *trace.Step) trace.Time { return analyze.GPUOf(s).SpanNS }},
	{trace.TimingDispatch, "sum of isolated dispatches", func(s *trace.Step) trace.Time {
		return analyze.GPUOf(s).BusyNS
	}},
	{trace.TimingOff, "wall time", func(s *trace.Step) trace.Time { return s.CPU.TotalNS }},
}

// measure takes the times of the steps. Those of the whole step are all of one level.
func (c *Curves) measure(ctx context.Context) error {
	steps := c.Index.Trace.Steps
	counts := make([]int, len(stepTimes))
	row := make([]int, len(c.Index.Trace.Graph.Dispatches)) // of each dispatch, 0: none
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
	if n == c.Cold { // there are no others
		c.Cold, warm = 0, func(*trace.Step) bool { return true }
	}
	for i := range steps {
		for k, t := range stepTimes {
			if _, ok := usable(&steps[i]); ok && steps[i].Timing == t.level &&
				analyze.Measured(t.ns(&steps[i])) {
				counts[k]++
			}
		}
	}
	best := slices.Index(counts, slices.Max(counts))
	for k, n := range counts { // the one that disturbs least of those with points for a line
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
		if ns, ok := stepTimes[best].ns(s).NS(); ok && s.Timing == c.Level {
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

// measureRows takes the dispatches of a step, where each of them was timed.
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

// Slope is that of the whole step, nil where none can be told.
func (c *Curves) Slope() *Fit {
	if f := c.Rows[0].Fit; f != nil && f.Significant() {
		return f
	}
	return nil
}

// Owners are the rows that the slope is due to most: the first, and those after it whose own slopes cannot
// be told from its.
func (c *Curves) Owners() []CurveRow {
	rows := c.Rows[1:]
	n := 0
	for n < len(rows) && rows[n].Share > 0 && rows[0].slopesLike(&rows[n]) {
		n++
	}
	return rows[:n]
}

// slopesLike reports that the slopes of two rows differ by no more than three errors of their difference.
// What the plans say has none.
func (r *CurveRow) slopesLike(s *CurveRow) bool {
	if r.Modelled || r.Fit == nil || s.Fit == nil {
		return r.Share == s.Share
	}
	return math.Abs(r.Fit.B-s.Fit.B) <= 3*math.Hypot(r.Fit.SE, s.Fit.SE)
}

// steady reports that a row's plans are the same at the first and at the last place that was measured, so
// that nothing it does depends on the place.
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

// share says whose the slope of the whole step is, where it has one: by the times of the rows, where they
// were measured along the position, each against the whole step's (all of theirs, where that is more), or
// by the bytes that their plans say they move more of from place to place. What is of steady rows is drift.
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
			slope[i] = way * (last - first)
			all += max(0, slope[i])
			c.Rows[i].Modelled = whole != nil && way > 0 // no step is faster for more bytes
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
	slices.SortStableFunc(c.Rows[1:], func(a, b CurveRow) int { // what has a choice of routes comes first
		return min(2, named(&b)) - min(2, named(&a))
	})
}

// routesOn are the routes of a dispatch along a line.
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

// Name is the route, or that the dispatch does not run.
func (s RouteSpan) Name() string {
	if s.Route == "" {
		return "not run"
	}
	return s.Route
}

// addTrials gives rows what their operators took when they were timed on their own.
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

// Drift is how much of the slope no position explains, in %: that of rows which do the same work everywhere.
func (c *Curves) Drift() float64 {
	all := 0.0
	for i := range c.Rows {
		all += c.Rows[i].Drift
	}
	return all
}
