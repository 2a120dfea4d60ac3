package trace

import (
	"fmt"
	"sort"
)

// Forecast is what dispatches are given at live shapes that need not have run. It is exact: the plans of
// every point of a few lines through the graph's live points, told as stretches in which numbers follow one
// rule.
type Forecast struct {
	Lines []Line `json:"lines,omitempty"`
}

// Axes are what can move along a line of a Forecast.
var Axes = []string{AlongPosition, AlongTokens}

// The axes: the position of a step, and how many tokens go into it.
const (
	AlongPosition = "position"
	AlongTokens   = "tokens"
)

// Line is a line of live points, From to To of what moves along it, while the other is At.
type Line struct {
	Along   string   `json:"along"` // position, tokens
	At      int      `json:"at"`    // of the other: tokens, position
	From    int      `json:"from"`
	To      int      `json:"to"`
	Courses []Course `json:"courses,omitempty"`
	// Dispatches has for each dispatch of the graph the index of its course. Dispatches of equal layers
	// share one.
	Dispatches []int `json:"dispatches,omitempty"`
}

// Course is what a dispatch is given along a line.
type Course struct {
	Stretches []Stretch `json:"stretches"` // by From; the first begins where the line does
}

// Stretch is a part of a line, up to the next one, in which a dispatch keeps its kernel, route and reason,
// and each number of its plan follows one Rule.
type Stretch struct {
	From         int      `json:"from"`
	Kernel       string   `json:"kernel,omitempty"` // absent: the dispatch does not run here
	Route        string   `json:"route,omitempty"`
	Reason       string   `json:"reason,omitempty"`
	Workgroups   [3]Rule  `json:"workgroups"`
	NeededGrid   *[3]Rule `json:"needed_workgroups,omitempty"` // absent: it is Workgroups
	NeededGroups Rule     `json:"needed_groups"`
	IdleLanes    Rule     `json:"idle_lanes,omitzero"`
	Bytes        Rule     `json:"bytes"` // modelled
	FLOPs        Rule     `json:"flops"` // modelled
}

// Rule is a number that moves evenly: v, s, b stand for v + s*k + b*k*(k-1)/2, k places from where it begins.
type Rule [3]int64

// At is the number k places on.
func (r Rule) At(k int64) int64 { return r[0] + r[1]*k + r[2]*(k*(k-1)/2) }

// Constant reports that the number does not move.
func (r Rule) Constant() bool { return r[1] == 0 && r[2] == 0 }

// Course is that of a dispatch.
func (l *Line) Course(id DispatchID) *Course { return &l.Courses[l.Dispatches[id]] }

// At is the stretch that holds a point of the line.
func (c *Course) At(at int) int {
	return max(0, sort.Search(len(c.Stretches), func(i int) bool { return c.Stretches[i].From > at })-1)
}

// Plan is what the dispatch is given at a point of the stretch; false where it does not run there. The plan
// has neither params nor the arithmetic of its grid, and its id is -1.
func (s *Stretch) Plan(id DispatchID, at int) (Plan, bool) {
	k := int64(at - s.From)
	grid := func(r *[3]Rule) [3]int { return [3]int{int(r[0].At(k)), int(r[1].At(k)), int(r[2].At(k))} }
	p := Plan{
		ID: -1, Dispatch: id, Kernel: s.Kernel, Route: s.Route, Reason: s.Reason,
		Workgroups: grid(&s.Workgroups), NeededGrid: grid(&s.Workgroups),
		NeededGroups: s.NeededGroups.At(k), IdleLanes: s.IdleLanes.At(k), Bytes: s.Bytes.At(k),
		FLOPs: s.FLOPs.At(k),
	}
	if s.NeededGrid != nil {
		p.NeededGrid = grid(s.NeededGrid)
	}
	return p, s.Kernel != ""
}

// Plan is what a dispatch is given at a point of the line; false where it does not run there.
func (l *Line) Plan(id DispatchID, at int) (Plan, bool) {
	c := l.Course(id)
	return c.Stretches[c.At(at)].Plan(id, at)
}

// Bounds on the numbers of a forecast, so that what is computed from them does not overflow.
const (
	maxForecastGrid   = 1 << 20
	maxForecastNumber = 1 << 60
)

func (c *checker) forecast() {
	f := c.t.Forecast
	if f == nil {
		return
	}
	for i := range f.Lines {
		l := &f.Lines[i]
		word(c, l.Along, Axes, "forecast.lines[%d].along", i)
		for _, n := range []int{l.At, l.From, l.To} {
			if n < 0 || n > maxPosition {
				c.refuse("a place that is not 0 to 2147483647", "forecast.lines[%d]", i)
			}
		}
		if l.From > l.To {
			c.refuse("it ends before it begins", "forecast.lines[%d]", i)
		}
		if len(l.Dispatches) != len(c.t.Graph.Dispatches) {
			c.refuse("want a course for each dispatch of the graph", "forecast.lines[%d].dispatches", i)
		}
		for j, course := range l.Dispatches {
			c.id(course, len(l.Courses), "forecast.lines[%d].dispatches[%d]", i, j)
		}
		for j := range l.Courses {
			c.course(l, l.Courses[j].Stretches, i, j)
		}
		if c.err != nil {
			return
		}
	}
}

func (c *checker) course(l *Line, stretches []Stretch, line, course int) {
	if len(stretches) == 0 || stretches[0].From != l.From {
		c.refuse("it does not begin where the line does", "forecast.lines[%d].courses[%d]", line, course)
		return
	}
	for i := range stretches {
		s := &stretches[i]
		end := l.To
		if i+1 < len(stretches) {
			end = stretches[i+1].From - 1
		}
		if s.From > end {
			c.refuse("its stretches do not rise, or pass the line's end", "forecast.lines[%d].courses[%d]",
				line, course)
			return
		}
		c.text("forecast", s.Kernel, s.Route, s.Reason)
		sane := true
		for _, grid := range []*[3]Rule{&s.Workgroups, s.NeededGrid} {
			for k := 0; grid != nil && k < len(grid); k++ {
				sane = sane && grid[k].within(end-s.From, maxForecastGrid)
			}
		}
		for _, r := range []Rule{s.NeededGroups, s.IdleLanes, s.Bytes, s.FLOPs} {
			sane = sane && r.within(end-s.From, maxForecastNumber)
		}
		if !sane {
			c.refuse("a number is below 0 or too large", "forecast.lines[%d].courses[%d].stretches[%d]", line,
				course, i)
		}
	}
}

// within reports that a number stays from 0 to a bound for so many places: at both ends, and in whatever it
// may pass on the way.
func (r Rule) within(places int, bound float64) bool {
	n := float64(places)
	size := abs(r[0]) + abs(r[1])*n + abs(r[2])*n*n
	return size <= bound && r.At(0) >= 0 && r.At(int64(places)) >= 0
}

func abs(n int64) float64 {
	if n < 0 {
		return -float64(n)
	}
	return float64(n)
}

// Trial is an operator timed on its own: its dispatches at a live shape, on one of its routes, again and
// again in place. What it reads may so come from the device's caches.
type Trial struct {
	Op       OpID   `json:"op"`
	Tokens   int    `json:"tokens"`
	Position int    `json:"position"`
	Route    string `json:"route"`             // "" where the operator has no choice
	Planned  bool   `json:"planned,omitempty"` // its plan takes that route there
	NS       int64  `json:"ns"`                // median of N runs, with their quartiles
	Q1NS     int64  `json:"q1_ns"`
	Q3NS     int64  `json:"q3_ns"`
	N        int    `json:"n"`
}

func (c *checker) trials() {
	for i := range c.t.Trials {
		r := &c.t.Trials[i]
		c.id(int(r.Op), len(c.t.Graph.Ops), "trials[%d].op", i)
		c.text("trials", r.Route)
		for _, n := range []int{r.Tokens, r.Position} {
			if n < 0 || n > maxPosition {
				c.refuse(fmt.Sprintf("%d is not 0 to %d", n, maxPosition), "trials[%d]", i)
			}
		}
		if r.Q1NS < 0 || r.Q1NS > r.NS || r.NS > r.Q3NS || r.N < 1 {
			c.refuse("its quartiles do not rise, or it has no run", "trials[%d]", i)
		}
	}
}
