package importer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"gpuscope/internal/printable"
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
	grid   [3]int // zero if the profile does not have it
	time   trace.Time
	joined trace.Joined
}

// recorder adds the steps of a profile to a trace. A format calls add for each step and then finish.
type recorder struct {
	t     *trace.Trace
	slots []slot
	ids   map[slot]trace.DispatchID // indices into slots; finish sorts the slots
	joins []trace.Joined            // by index into slots
	plans map[plan]trace.PlanID
	rows  int
	cost  int64 // estimate of the memory in bytes that trace.Read needs for the trace

	names map[string]string // each name of the profile, stored once
	bytes int               // size of all names
	own   map[ownName]int   // operators that only the profile has, as indices into Graph.Ops

	places map[slotName]int // place of each dispatch among those of its operator
	next   map[int]int      // next place of each operator
}

// ownName identifies an operator that only the profile has.
type ownName struct{ name, kind string }

const (
	nsPerYear = 365 * 24 * 3600 * 1_000_000_000
	maxBusy   = 30 * nsPerYear // maximum GPU time of a step in ns
)

type plan struct {
	id     trace.DispatchID
	kernel string
	grid   [3]int
}

func newRecorder(t *trace.Trace) *recorder {
	t.Graph.Ops = slices.Clip(t.Graph.Ops) // so that adding operators does not change the caller's list
	return &recorder{
		t: t, ids: map[slot]trace.DispatchID{}, plans: map[plan]trace.PlanID{}, names: map[string]string{},
		own: map[ownName]int{}, places: map[slotName]int{}, next: map[int]int{},
	}
}

// name returns a name of the profile, shortened if it is long. Equal names share their memory.
func (r *recorder) name(text string) (string, error) {
	if len(text) > maxKernel {
		text = printable.Short(text, maxKernel)
	}
	if known, ok := r.names[text]; ok {
		return known, nil
	}
	if r.bytes += len(text); r.bytes > maxNames {
		return "", fmt.Errorf("%w: its names have more than %d bytes in all. Import fewer steps", ErrTooLarge,
			maxNames)
	}
	text = strings.Clone(text)
	r.names[text] = text
	return text, nil
}

// operator returns the index of an operator that only the profile has. It adds the operator to the graph if
// it is new.
func (r *recorder) operator(o trace.Op) (int, error) {
	key := ownName{o.Name, o.Kind}
	i, ok := r.own[key]
	if !ok {
		if err := r.spend(opCost + 2*int64(len(o.Name)+len(o.Kind)+len(o.Block)+len(o.Class))); err != nil {
			return 0, err
		}
		i = len(r.t.Graph.Ops)
		o.ID = trace.OpID(i)
		r.t.Graph.Ops, r.own[key] = append(r.t.Graph.Ops, o), i
	}
	return i, nil
}

// These are the numbers of bytes that trace.Read counts for the parts of an imported trace, without names.
// For the parts of the graph, it estimates the memory from the length of their JSON.
const (
	opCost     = 600
	slotCost   = 1000
	kernelCost = 64 // a kernel in the list of a dispatch
	planCost   = 2 * int64(unsafe.Sizeof(trace.Plan{}))
	stepCost   = 2*int64(unsafe.Sizeof(trace.Step{})) + 128
	rowCost    = int64(unsafe.Sizeof(trace.StepDispatch{}))
)

// spend adds n bytes to the cost of the trace. It returns an error if trace.Read would refuse the trace.
func (r *recorder) spend(n int64) error {
	if r.cost += n; r.cost > maxMemory {
		return fmt.Errorf("%w: with step %d, the trace needs more memory than the limit of %d MiB. "+
			"Import fewer steps", ErrTooLarge, len(r.t.Steps), maxMemory>>20)
	}
	return nil
}

// room returns an error if n more rows exceed the limit.
func (r *recorder) room(n int) error {
	if n > maxRows-r.rows {
		return fmt.Errorf("%w: it has more than %d rows. Import fewer steps", ErrTooLarge, maxRows)
	}
	return nil
}

// stepRows collects the launches of a step.
type stepRows struct {
	launches []launch
	counts   map[slotName]int // number of launches in this step
}

// slotName is a name for a dispatch of an operator. A step may have several launches of one name.
type slotName struct {
	op    int
	label string
}

// put adds a launch to a step. In all steps, launches of an operator with the same label have the same place.
// If a step has several launches of an operator with the same label, put appends a number to the label of all
// but the first.
func (r *recorder) put(s *stepRows, op int, label string, l launch) error {
	if s.counts == nil {
		s.counts = map[slotName]int{}
	}
	name := slotName{op, label}
	if s.counts[name]++; s.counts[name] > 1 {
		name.label = fmt.Sprintf("%s%d", label, s.counts[name])
	}
	place, ok := r.places[name]
	if !ok {
		if err := r.spend(slotCost + 2*int64(len(name.label))); err != nil {
			return err
		}
		place = r.next[op]
		r.next[op]++
		r.places[name] = place
	}
	l.slot = slot{op, place, name.label}
	s.launches = append(s.launches, l)
	return nil
}

// putOwn adds a launch of an operator that only the profile has.
func (r *recorder) putOwn(s *stepRows, o trace.Op, l launch) error {
	i, err := r.operator(o)
	if err != nil {
		return err
	}
	l.joined = trace.JoinedNot
	return r.put(s, i, "", l)
}

// ofTokens returns the phase of a step that reads n tokens. If n is 0, the step is not a step of a language
// model.
func ofTokens(n int) trace.Phase {
	switch {
	case n == 1:
		return trace.Decode
	case n > 1:
		return trace.Prefill
	}
	return trace.Execute
}

// addTokens adds a step that reads this number of tokens. The number is 0 if the profile does not state it.
func (r *recorder) addTokens(tokens int, rows *stepRows) error {
	if err := r.add(ofTokens(tokens), rows.launches); err != nil {
		return err
	}
	if tokens > 0 {
		r.t.Steps[len(r.t.Steps)-1].SymInts = map[string]int64{"seq": int64(tokens)}
	}
	*rows = stepRows{}
	return nil
}

// add adds a step. No operator may have two launches in the same place.
func (r *recorder) add(phase trace.Phase, launches []launch) error {
	if err := r.room(len(launches)); err != nil {
		return err
	}
	if err := r.spend(stepCost + rowCost*int64(len(launches))); err != nil {
		return err
	}
	r.rows += len(launches)
	s := trace.Step{
		Index: len(r.t.Steps), Phase: phase, Timing: trace.TimingDispatch,
		Dispatches: make([]trace.StepDispatch, len(launches)),
	}
	busy, timed := int64(0), false
	for i := range launches {
		l := &launches[i]
		ns, ok := l.time.NS()
		if busy, timed = busy+ns, timed || ok; busy > maxBusy {
			return fmt.Errorf("%w: the times of step %d add up to more than %d years", ErrTooLarge, s.Index,
				maxBusy/nsPerYear)
		}
		p, err := r.plan(l)
		if err != nil {
			return err
		}
		s.Dispatches[i] = trace.StepDispatch{Plan: p, GPUNS: l.time}
	}
	if timed {
		s.GPU = &trace.GPU{BusyNS: trace.Measured(busy)}
	} else {
		s.Timing = trace.TimingOff
	}
	r.t.Steps = append(r.t.Steps, s)
	return nil
}

// plan returns the plan of a launch, and adds it to the trace if it is new.
func (r *recorder) plan(l *launch) (trace.PlanID, error) {
	id, ok := r.ids[l.slot]
	if !ok {
		id = trace.DispatchID(len(r.slots))
		r.slots, r.ids[l.slot] = append(r.slots, l.slot), id
		r.joins = append(r.joins, l.joined)
	}
	key := plan{id, l.kernel, l.grid}
	p, ok := r.plans[key]
	if !ok {
		if err := r.spend(planCost + kernelCost + 3*int64(len(l.kernel))); err != nil {
			return 0, err
		}
		p = trace.PlanID(len(r.t.Plans))
		r.plans[key] = p
		r.t.Plans = append(r.t.Plans, trace.Plan{
			ID: p, Dispatch: id, Kernel: l.kernel, Workgroups: l.grid, NeededGrid: l.grid,
			NeededGroups: int64(l.grid[0]) * int64(l.grid[1]) * int64(l.grid[2]),
		})
	}
	return p, nil
}

// finish adds the dispatches to the graph, in the order of their operators.
func (r *recorder) finish() {
	order := slices.Clone(r.slots)
	slices.SortFunc(order, func(a, b slot) int { return cmp.Or(a.op-b.op, a.place-b.place) })
	g, to := &r.t.Graph, make([]trace.DispatchID, len(order))
	for id, s := range order {
		to[r.ids[s]] = trace.DispatchID(id)
		g.Dispatches = append(g.Dispatches, trace.Dispatch{
			ID: trace.DispatchID(id), Op: trace.OpID(s.op), Label: s.label, Joined: r.joins[r.ids[s]],
		})
	}
	nameSlots(g.Dispatches)
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

// nameSlots removes the label of every dispatch that is the only one of its operator.
func nameSlots(list []trace.Dispatch) {
	for i := range list {
		before := i > 0 && list[i-1].Op == list[i].Op
		if !before && (i+1 == len(list) || list[i+1].Op != list[i].Op) {
			list[i].Label = ""
		}
	}
}
