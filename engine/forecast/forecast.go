// Package forecast predicts the dispatches of a graph for a range of positions or token counts, without
// running the graph.
package forecast

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"gpuscope/engine/graph"
	"gpuscope/trace"
)

// An operator's plan is a pure function of live shapes. So the plan of a dispatch at any shape can be
// computed without running the dispatch. Line plans the graph at every point of a range, such as every
// position. It stores the result as stretches: parts of the range in which each number of the plan follows
// one formula. For example, a grid that grows by one workgroup per token is a single stretch, however long
// the range is.

// Line plans a graph at each point of the range [from, to] and returns the plans of every dispatch along the
// range. The caller's function `set` applies the live shapes of a point to a Live. Line leaves the fields
// Along and At of the result to the caller. Line uses a Live of its own, so a running graph is not affected.
// If the deadline of ctx passes, the returned line ends at the last planned point.
func Line(g *graph.Graph, ctx context.Context, o graph.LiveOptions, from, to int,
	set func(l *graph.Live, at int) error,
) (trace.Line, error) {
	line := trace.Line{From: from, To: to}
	o.Order = graph.Topological // Topological and Fixpoint yield the same plans, and Topological is faster
	l, err := graph.NewLive(g, o)
	if err != nil {
		return line, err
	}
	tracks := make([]track, len(g.Dispatches))
	take := func(o graph.OpID, at int) {
		for slot, id := range g.Ops[o].Dispatches {
			if id >= 0 {
				tracks[id].repeat(at - from)
				tracks[id].take(g, id, &l.Plans[o], slot, at)
			}
		}
	}
	var planned []graph.OpID
	for at := from; at <= to; at++ {
		if err := ctx.Err(); errors.Is(err, context.DeadlineExceeded) && at > from {
			line.To = at - 1
			break
		} else if err != nil {
			return line, err
		}
		if err := set(l, at); err != nil {
			l.Discard()
			return line, err
		}
		if err := l.Propagate(); err != nil {
			return line, err
		}
		planned = planned[:0]
		l.EachPlanned(func(o *graph.Op, _ *graph.Plan) { planned = append(planned, o.ID) })
		l.Commit()
		if at == from {
			for o := range g.Ops {
				take(graph.OpID(o), at)
			}
			continue
		}
		for _, o := range planned {
			take(o, at)
		}
	}
	courses := map[string]int{}
	for i := range tracks {
		tracks[i].repeat(line.To - from + 1)
		tracks[i].close()
		key, err := json.Marshal(tracks[i].stretches)
		if err != nil {
			return line, fmt.Errorf("forecast of dispatch %d: %w", i, err)
		}
		n, ok := courses[string(key)]
		if !ok {
			n = len(line.Courses)
			courses[string(key)] = n
			line.Courses = append(line.Courses, trace.Course{Stretches: tracks[i].stretches})
		}
		line.Dispatches = append(line.Dispatches, n)
	}
	return line, nil
}

// Indices into the numbers of a plan. A stretch has one rule (formula) for each of these numbers.
const (
	onGrid   = 0
	onNeeded = 3
	onGroups = 6 + iota - 2
	onIdle
	onBytes
	onFLOPs
	onAll
)

// track collects the stretches of one dispatch: the finished stretches, and the stretch that the next point
// may still extend (the open one).
type track struct {
	stretches []trace.Stretch
	open      trace.Stretch // From, Kernel, Route and Reason are set, but no rules yet
	reason    graph.Reason
	route     int
	n         int // number of points in the open stretch
	places    int // number of points in all stretches
	rules     [onAll]trace.Rule
	last      [onAll]int64 // the plan's numbers at the last point
}

// take adds the plan of a dispatch slot at the next point of the range. It extends the open stretch or begins
// a new one.
func (t *track) take(g *graph.Graph, id trace.DispatchID, p *graph.Plan, slot, at int) {
	var numbers [onAll]int64
	kernel := ""
	if l := &p.Launches[slot]; l.Active {
		kernel = g.KernelNames[g.Ops[g.Dispatches[id].Op].Use(slot, p.Route).Kernel]
		for i, n := range [...]uint32{l.Grid.X, l.Grid.Y, l.Grid.Z, l.Needed[0], l.Needed[1], l.Needed[2]} {
			numbers[i] = int64(n)
		}
		numbers[onGroups], numbers[onIdle] = l.Grid.Groups, l.Grid.Idle
		numbers[onBytes], numbers[onFLOPs] = l.Bytes, l.FLOPs
	}
	same := t.n > 0 && t.open.Kernel == kernel && (kernel == "" || t.route == p.Route && t.reason == p.Reason)
	if !same || !t.goesOn(&numbers) {
		t.close()
		t.open = trace.Stretch{From: at, Kernel: kernel}
		t.route, t.reason, t.n = p.Route, p.Reason, 0
		if kernel != "" {
			t.open.Route = g.Ops[g.Dispatches[id].Op].RouteName(p.Route)
			if p.Reason != nil {
				t.open.Reason = p.Reason.String()
			}
		}
		for i, v := range numbers {
			t.rules[i] = trace.Rule{v}
		}
	}
	t.last = numbers
	t.n++
	t.places++
}

// goesOn reports whether the open stretch can continue with the given numbers: each rule must produce its
// number at the next point. The first three points define a rule: the second point sets its first difference,
// and the third point sets its second difference.
func (t *track) goesOn(numbers *[onAll]int64) bool {
	rules := t.rules
	for i, v := range numbers {
		switch t.n {
		case 1:
			rules[i][1] = v - t.last[i]
		case 2:
			rules[i][2] = v - rules[i].At(2)
		}
		if rules[i].At(int64(t.n)) != v {
			return false
		}
	}
	t.rules = rules
	return true
}

// repeat extends the track to `places` points. The added points get the numbers of the last point: the
// operator was not re-planned at them, because its plan stayed the same.
func (t *track) repeat(places int) {
	for t.places < places {
		if t.steady() {
			t.n += places - t.places
			t.places = places
			return
		}
		numbers := t.last
		if !t.goesOn(&numbers) {
			at := t.open.From + t.n
			t.close()
			t.open.From, t.n = at, 0
			for i, v := range numbers {
				t.rules[i] = trace.Rule{v}
			}
		}
		t.n++
		t.places++
	}
}

// steady reports whether every number of the open stretch is constant. It is false while the stretch has too
// few points to define its rules.
func (t *track) steady() bool {
	for _, r := range t.rules {
		if !r.Constant() {
			return false
		}
	}
	return t.n > 2
}

// close appends the open stretch to the finished stretches.
func (t *track) close() {
	if t.n == 0 {
		return
	}
	s := t.open
	s.Workgroups = [3]trace.Rule(t.rules[onGrid:])
	if needed := [3]trace.Rule(t.rules[onNeeded:]); needed != s.Workgroups {
		s.NeededGrid = &needed
	}
	s.NeededGroups, s.IdleLanes = t.rules[onGroups], t.rules[onIdle]
	s.Bytes, s.FLOPs = t.rules[onBytes], t.rules[onFLOPs]
	t.stretches = append(t.stretches, s)
}
