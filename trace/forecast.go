package trace

import (
	"fmt"
	"sort"
)

// Forecast predicts the plans of all dispatches, even at shapes that no step of the trace had. A shape is a
// position and a number of tokens. A Forecast covers a few lines of shapes, and is exact at every point of
// these lines.
type Forecast struct {
	Lines []Line `json:"lines,omitempty"`
}

// Axes lists what can vary along a line of a Forecast.
var Axes = []string{AlongPosition, AlongTokens}

// The axes are the position of a step and the number of its input tokens.
const (
	AlongPosition = "position"
	AlongTokens   = "tokens"
)

// Line is a series of shapes in which only one coordinate varies. Along names this coordinate, which goes
// from From to To. The other coordinate is always At.
type Line struct {
	Along   string   `json:"along"` // position or tokens
	At      int      `json:"at"`    // fixed number of tokens if Along is position, else fixed position
	From    int      `json:"from"`
	To      int      `json:"to"`
	Courses []Course `json:"courses,omitempty"`
	// Dispatches holds, for each dispatch of the graph, an index in Courses. In layers that are equal, the
	// dispatches with the same role share one course.
	Dispatches []int `json:"dispatches,omitempty"`
}

// Course holds the plans of a dispatch at all points of a line. It divides the line into stretches.
type Course struct {
	Stretches []Stretch `json:"stretches"` // in order of From; the first stretch begins where the line begins
}

// Stretch is a range of points of a line, from From to the point before the next stretch. In this range, the
// kernel, the route and the reason of a dispatch do not change, and one Rule computes each number of its
// plan.
type Stretch struct {
	From         int      `json:"from"`
	Kernel       string   `json:"kernel,omitempty"` // "" if the dispatch does not run in this range
	Route        string   `json:"route,omitempty"`
	Reason       string   `json:"reason,omitempty"`
	Workgroups   [3]Rule  `json:"workgroups"`
	NeededGrid   *[3]Rule `json:"needed_workgroups,omitempty"` // nil if the same as Workgroups
	NeededGroups Rule     `json:"needed_groups"`
	IdleLanes    Rule     `json:"idle_lanes,omitzero"`
	Bytes        Rule     `json:"bytes"` // modelled
	FLOPs        Rule     `json:"flops"` // modelled
}

// Rule is a quadratic formula that gives a number at each point of a stretch. For r = {v, s, b}, the number
// at the point From + k is v + s*k + b*k*(k-1)/2.
type Rule [3]int64

// At returns the number at the point From + k of the stretch.
func (r Rule) At(k int64) int64 { return r[0] + r[1]*k + r[2]*(k*(k-1)/2) }

// Constant reports whether the number is the same at all points of the stretch.
func (r Rule) Constant() bool { return r[1] == 0 && r[2] == 0 }

// Course returns the course of a dispatch, given by its id.
func (l *Line) Course(id DispatchID) *Course { return &l.Courses[l.Dispatches[id]] }

// At returns the index of the stretch to which a point of the line belongs.
func (c *Course) At(at int) int {
	return max(0, sort.Search(len(c.Stretches), func(i int) bool { return c.Stretches[i].From > at })-1)
}

// Plan returns the plan of a dispatch at a point of the stretch. The bool is false if the dispatch does not
// run there. The plan is incomplete: Params and Grid are empty, and ID is -1.
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

// Plan returns the plan of a dispatch at a point of the line. The bool is false if the dispatch does not run
// there.
func (l *Line) Plan(id DispatchID, at int) (Plan, bool) {
	c := l.Course(id)
	return c.Stretches[c.At(at)].Plan(id, at)
}

// These limits keep the numbers of a forecast small enough that no computation with them overflows.
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
				c.refuse(fmt.Sprintf("\"at\", \"from\" and \"to\" must be between 0 and %d, but one of them is %d",
					maxPosition, n), "forecast.lines[%d]", i)
			}
		}
		if l.From > l.To {
			c.refuse(fmt.Sprintf("\"to\" (%d) is smaller than \"from\" (%d)", l.To, l.From),
				"forecast.lines[%d]", i)
		}
		if len(l.Dispatches) != len(c.t.Graph.Dispatches) {
			c.refuse(fmt.Sprintf("the list has %d elements, but the graph has %d dispatches",
				len(l.Dispatches), len(c.t.Graph.Dispatches)), "forecast.lines[%d].dispatches", i)
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
		c.refuse(fmt.Sprintf("the first element of \"stretches\" must have the \"from\" of the line, which is %d",
			l.From), "forecast.lines[%d].courses[%d]", line, course)
		return
	}
	for i := range stretches {
		s := &stretches[i]
		end := l.To
		if i+1 < len(stretches) {
			end = stretches[i+1].From - 1
		}
		if s.From > end {
			c.refuse(fmt.Sprintf("\"from\" is %d, but the next element of \"stretches\" or the end of the line "+
				"requires at most %d", s.From, end),
				"forecast.lines[%d].courses[%d].stretches[%d]", line, course, i)
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
			c.refuse("a rule gives a number below 0, a grid above 2^20 or another number above 2^60",
				"forecast.lines[%d].courses[%d].stretches[%d]", line, course, i)
		}
	}
}

// within reports whether the first and the last of the numbers that the rule yields for 0 to `places` are not
// negative, and none of the numbers exceeds `bound`. It compares `bound` with an estimate that no number can
// exceed. It does not check whether a number between the first and the last is negative.
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

// Trial is the measured time of one operator on one route at one shape. The operator's dispatches were
// repeated in place, so the device's caches may have held their inputs.
type Trial struct {
	Op       OpID   `json:"op"`
	Tokens   int    `json:"tokens"`
	Position int    `json:"position"`
	Route    string `json:"route"`             // "" if the operator has only one route
	Planned  bool   `json:"planned,omitempty"` // the plan has this route at this shape
	NS       int64  `json:"ns"`                // median of N runs; Q1NS and Q3NS are the quartiles
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
				c.refuse(fmt.Sprintf("%d is not between 0 and %d", n, maxPosition), "trials[%d]", i)
			}
		}
		if r.Q1NS < 0 || r.Q1NS > r.NS || r.NS > r.Q3NS || r.N < 1 {
			c.refuse(fmt.Sprintf("n is %d, want at least 1; q1_ns, ns and q3_ns are %d, %d and %d, want 0 or more "+
				"in ascending order", r.N, r.Q1NS, r.NS, r.Q3NS), "trials[%d]", i)
		}
	}
}
