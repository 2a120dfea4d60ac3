package importer

import (
	"cmp"
	"fmt"
	"slices"

	"gpuscope/trace"
)

// slot is a dispatch of an operator: an index into Graph.Ops, and the place of the dispatch among those of
// the operator.
type slot struct {
	op    int
	place int
	label string
}

// launch is a dispatch of a step of a profile.
type launch struct {
	slot
	kernel string
	grid   [3]int
	time   trace.Time
}

// recorder adds the steps of a profile to a trace. A format calls add for each step and then finish.
type recorder struct {
	t     *trace.Trace
	slots []slot
	ids   map[slot]trace.DispatchID // indices into slots; finish sorts them
	plans map[plan]trace.PlanID
	rows  int
}

type plan struct {
	id     trace.DispatchID
	kernel string
	grid   [3]int
}

func newRecorder(t *trace.Trace) *recorder {
	return &recorder{t: t, ids: map[slot]trace.DispatchID{}, plans: map[plan]trace.PlanID{}}
}

// add adds a step. No operator may have two launches in the same place.
func (r *recorder) add(phase trace.Phase, launches []launch) error {
	if r.rows += len(launches); r.rows > maxRows {
		return fmt.Errorf("%w: it has more than %d rows. Import fewer steps", ErrTooLarge, maxRows)
	}
	s := trace.Step{
		Index: len(r.t.Steps), Phase: phase, Timing: trace.TimingDispatch,
		Dispatches: make([]trace.StepDispatch, len(launches)),
	}
	busy := int64(0)
	for i := range launches {
		l := &launches[i]
		ns, _ := l.time.NS()
		busy += ns
		s.Dispatches[i] = trace.StepDispatch{Plan: r.plan(l), GPUNS: l.time}
	}
	s.GPU = &trace.GPU{BusyNS: trace.Measured(busy)}
	r.t.Steps = append(r.t.Steps, s)
	return nil
}

// plan returns the plan of a launch, and adds it to the trace if it is new.
func (r *recorder) plan(l *launch) trace.PlanID {
	id, ok := r.ids[l.slot]
	if !ok {
		id = trace.DispatchID(len(r.slots))
		r.slots, r.ids[l.slot] = append(r.slots, l.slot), id
	}
	key := plan{id, l.kernel, l.grid}
	p, ok := r.plans[key]
	if !ok {
		p = trace.PlanID(len(r.t.Plans))
		r.plans[key] = p
		r.t.Plans = append(r.t.Plans, trace.Plan{
			ID: p, Dispatch: id, Kernel: l.kernel, Workgroups: l.grid, NeededGrid: l.grid,
			NeededGroups: int64(l.grid[0]) * int64(l.grid[1]) * int64(l.grid[2]),
		})
	}
	return p
}

// finish adds the dispatches to the graph, in the order of their operators.
func (r *recorder) finish() {
	order := slices.Clone(r.slots)
	slices.SortFunc(order, func(a, b slot) int { return cmp.Or(a.op-b.op, a.place-b.place) })
	g, to := &r.t.Graph, make([]trace.DispatchID, len(order))
	for id, s := range order {
		to[r.ids[s]] = trace.DispatchID(id)
		g.Dispatches = append(g.Dispatches, trace.Dispatch{
			ID: trace.DispatchID(id), Op: trace.OpID(s.op), Label: s.label,
		})
	}
	for i := range r.t.Plans {
		p := &r.t.Plans[i]
		p.Dispatch = to[p.Dispatch]
		d := &g.Dispatches[p.Dispatch]
		if !slices.Contains(d.Kernels, p.Kernel) {
			d.Kernels = append(d.Kernels, p.Kernel)
		}
		for k, n := range p.Workgroups {
			d.MaxWorkgroups[k] = max(d.MaxWorkgroups[k], n)
		}
	}
}
