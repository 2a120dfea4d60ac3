package graph

import (
	"encoding/binary"
	"encoding/hex"
	"slices"

	"gpuscope/engine/graph/internal/liveshapes"
	"gpuscope/trace"
)

// Shapes is a copy of the changes of a resize. The next resize can begin as soon as the copy is made. A
// Tracer later converts the copy to trace records, on any goroutine.
type Shapes struct {
	First bool // the tracer has no earlier record
	// Missed is true if other resizes happened after the last record and were not recorded. In that case, the
	// log does not start at the shapes of the last record.
	Missed bool
	// Edited maps each kernel that was replaced by an edit to the name of its replacement. It is nil if no
	// kernel is replaced.
	Edited map[*Kernel]string

	log    ResizeLog
	inputs inputState
	// levels and waits are set only if relisted is true. Otherwise they are the same as at the last Take.
	levels   []trace.DispatchID
	waits    []trace.Wait
	relisted bool
	// plans holds the plans of all dispatches if a kernel was replaced since the last record. Otherwise it is
	// empty. The resize log does not contain plans that differ only in the kernel.
	plans  []loggedPlan
	params []byte
}

// Take copies the changes of the last resize of l. `listed` is a variable of the caller that holds the value
// of l.listed at the last Take. Take copies levels and waits only if l.listed has changed since then, and
// updates the variable.
func (s *Shapes) Take(l *Live, listed *int) {
	s.log.copyFrom(&l.log)
	s.inputs.take(l)
	l.listDispatches()
	if s.relisted = *listed != l.listed; s.relisted {
		*listed = l.listed
		s.levels = append(s.levels[:0], l.levels...)
		s.waits = append(s.waits[:0], l.waits...)
	}
	s.plans, s.params = s.plans[:0], s.params[:0]
}

// TakePlans copies the current plans of all dispatches. It is called when kernels were replaced.
func (s *Shapes) TakePlans(l *Live) {
	for i := range l.G.Dispatches {
		d := &l.G.Dispatches[i]
		to := loggedPlan{dispatch: trace.DispatchID(i)}
		to.to, s.params = l.Plans[d.Op].record(d.Slot, s.params)
		s.plans = append(s.plans, to)
	}
}

// HasPlans reports whether TakePlans was called.
func (s *Shapes) HasPlans() bool { return len(s.plans) > 0 }

// Tracer converts Shapes to trace records of new plans and resizes. Each record holds the differences from
// the previous record, even if resizes in between were not recorded. The memory of a Tracer does not grow
// with the number of records. Only one goroutine at a time may use a Tracer.
type Tracer struct {
	g       *Graph
	options LiveOptions

	// The fields below describe the state at the last record.
	inForce  []trace.PlanID     // by dispatch: the current plan, or -1 if the dispatch is not in use
	ran      []trace.DispatchID // dispatches in use
	grids    []*trace.Grid      // by dispatch: grid of the latest new plan
	now      liveshapes.Shapes  // shapes after the last logged change; initially the largest shapes
	recorded liveshapes.Shapes  // shapes of the last recorded step; initially those at NewTracer
	ints     []int64            // value of each SymInt, by value id
	inputs   inputState
	levels   []trace.DispatchID
	waits    []trace.Wait
	ids      trace.Interner
	fresh    []trace.Plan // new plans that Record has not returned yet
	content  []byte       // content (see launchRecord.content) of the plan that is looked up
	isNew    []bool       // by value: whether its dims may differ from the last record
	edited   map[*Kernel]string
	shadow   *Live // live state that replan uses; nil until replan is called
}

// NewTracer returns a tracer that starts at the current plans of l. `edited` is like Shapes.Edited.
func NewTracer(l *Live, edited map[*Kernel]string) *Tracer {
	g := l.G
	nv := len(g.Values)
	r := &Tracer{
		g: g, options: LiveOptions{Order: l.order, Static: l.static, MaxPasses: l.maxPasses},
		inForce: make([]trace.PlanID, len(g.Dispatches)), grids: make([]*trace.Grid, len(g.Dispatches)),
		now: liveshapes.New(nv), recorded: liveshapes.New(nv), ints: slices.Clone(l.now.ints),
		isNew: make([]bool, nv), edited: edited,
	}
	for v := range g.Values {
		r.now.Set(v, g.Values[v].MaxDims, false)
		r.recorded.Set(v, l.now.dims[v], g.absent(&l.now, ValueID(v)))
	}
	r.inputs.take(l)
	var params []byte
	for i := range r.inForce {
		d := &g.Dispatches[i]
		var launch launchRecord
		launch, params = l.Plans[d.Op].record(d.Slot, params[:0])
		r.force(trace.DispatchID(i), &launch, params)
	}
	return r
}

// Record sets those fields of `step` that depend on the shapes, and returns the plans that the trace does not
// contain yet. The record of a step has hundreds of short lists, so Record allocates them together.
func (r *Tracer) Record(s *Shapes, step *trace.Step) []trace.Plan {
	if s.Missed {
		if err := r.replan(s); err != nil {
			// An operator has planned these shapes before, so an error here means that its plan is not a pure
			// function. The --check option finds such operators.
			s.log.begin(s.log.Order)
		}
	}
	step.Resize = r.resize(&s.log)
	r.edited = s.Edited
	at := 0
	for i := range s.plans { // not in the resize log, because a kernel was replaced
		to := &s.plans[i]
		r.force(to.dispatch, &to.to, s.params[at:to.to.paramsEnd])
		at = to.to.paramsEnd
	}
	step.Dims = r.changedDims(&s.log, &s.inputs, s.First)
	r.inputs.copyFrom(&s.inputs)
	step.SymInts = r.symInts()
	if s.relisted && (s.First || !slices.Equal(s.levels, r.levels) || !slices.Equal(s.waits, r.waits)) {
		step.Levels, step.Waits = slices.Clone(s.levels), slices.Clone(s.waits)
		r.levels, r.waits = step.Levels, step.Waits
	}
	step.Dispatches = r.dispatches()
	plans := append([]trace.Plan(nil), r.fresh...)
	clear(r.fresh)
	r.fresh = r.fresh[:0]
	r.ids.Step()
	return plans
}

// Ran returns a dispatch of the last recorded step. `at` is its index in the list of dispatches that ran.
func (r *Tracer) Ran(at int) trace.DispatchID { return r.ran[at] }

// InForce returns the plan that each dispatch had at the last record. The plan is -1 if the dispatch was not
// in use.
func (r *Tracer) InForce() []trace.PlanID { return r.inForce }

// PlanID returns the id of the plan that a dispatch currently has in l. `known` is true if the trace already
// contains this plan.
func (r *Tracer) PlanID(l *Live, id trace.DispatchID) (plan trace.PlanID, known bool) {
	d := &l.G.Dispatches[id]
	launch, params := l.Plans[d.Op].record(d.Slot, nil)
	plan, fresh := r.ids.ID(launch.content(nil, id, params))
	return plan, !fresh
}

// force records that a launch is now the current plan of a dispatch. If this plan is new in the trace, force
// adds it to r.fresh.
func (r *Tracer) force(d trace.DispatchID, l *launchRecord, params []byte) {
	if !l.active {
		r.inForce[d] = -1
		return
	}
	r.content = l.content(r.content[:0], d, params)
	edited := r.edited[r.g.KernelOf(d, l.route)]
	r.content = append(r.content, edited...)
	id, fresh := r.ids.ID(r.content)
	if fresh {
		p := r.g.tracePlan(d, l, params)
		if edited != "" {
			p.Kernel = edited
		}
		p.ID = id
		p.Grid = l.grid.Describe(r.grids[d])
		r.grids[d] = p.Grid
		r.fresh = append(r.fresh, p)
	}
	r.inForce[d] = id
}

// content appends to b all data in which one plan can differ from another.
func (l *launchRecord) content(b []byte, d trace.DispatchID, params []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(d))
	b = append(b, byte(l.route))
	for _, n := range [...]uint32{l.grid.X, l.grid.Y, l.grid.Z, l.needed[0], l.needed[1], l.needed[2]} {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	e := &l.experts
	for _, n := range [...]int64{
		l.grid.Groups, l.grid.Idle, l.bytes, l.flops, int64(e.Rows), e.Groups, e.Bytes, e.Active,
	} {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	b = append(append(b, l.grid.Rule...), 0)
	for i := range l.grid.Terms {
		t := &l.grid.Terms[i]
		b = append(append(b, t.Name...), 0)
		for _, n := range [...]int64{t.Value, t.Times, t.Per, t.Most} {
			b = binary.LittleEndian.AppendUint64(b, uint64(n))
		}
	}
	b = append(append(b, byte(len(params))), params...)
	if l.reason != nil {
		b = append(b, l.reason.String()...)
	}
	return b
}

// tracePlan returns a launch in trace format, with id 0.
func (g *Graph) tracePlan(id trace.DispatchID, l *launchRecord, params []byte) trace.Plan {
	o := &g.Ops[g.Dispatches[id].Op]
	p := trace.Plan{
		Dispatch: id, Route: o.RouteName(l.route), Kernel: g.KernelNames[g.KernelOf(id, l.route)],
		Workgroups:   l.grid.Counts(),
		NeededGrid:   [3]int{int(l.needed[0]), int(l.needed[1]), int(l.needed[2])},
		NeededGroups: l.grid.Groups, IdleLanes: l.grid.Idle, Params: hex.EncodeToString(params),
		Bytes: l.bytes, FLOPs: l.flops, Experts: l.experts,
	}
	if l.reason != nil {
		p.Reason = l.reason.String()
	}
	return p
}

// dispatches returns the dispatches in use, in order of submission.
func (r *Tracer) dispatches() []trace.StepDispatch {
	r.ran = r.ran[:0]
	for d, id := range r.inForce {
		if id >= 0 {
			r.ran = append(r.ran, trace.DispatchID(d))
		}
	}
	list := make([]trace.StepDispatch, len(r.ran))
	for i, d := range r.ran {
		list[i].Plan = r.inForce[d]
	}
	return list
}

func (r *Tracer) symInts() map[string]int64 {
	var all map[string]int64
	for i := range r.g.Values {
		if v := &r.g.Values[i]; v.Kind == SymInt {
			if all == nil {
				all = map[string]int64{}
			}
			all[v.Name] = r.ints[i]
		}
	}
	return all
}

// resize returns a resize log in trace format. It also updates the tracer's plans and dims with the log.
func (r *Tracer) resize(l *ResizeLog) trace.Resize {
	resize := trace.Resize{Order: l.Order.String(), NS: l.time(l.NS)}
	if len(l.passes) == 0 {
		return resize
	}
	ids := make([]trace.PlanID, 0, 2*len(l.plans))
	name := func(id trace.PlanID) *trace.PlanID {
		if id < 0 {
			return nil
		}
		ids = append(ids, id)
		return &ids[len(ids)-1]
	}
	passes, hooks := make([]trace.Pass, len(l.passes)), make([]trace.Hook, len(l.hooks))
	values := append(append(make([]ValueID, 0, len(l.dirty)+len(l.triggers)), l.dirty...), l.triggers...)
	changes, plans := make([]trace.Change, 0, len(l.changes)), make([]trace.PlanChange, len(l.plans))
	ints := make([]int, 0, r.changedInts(l))
	var dirty, hook, trigger, change, plan, i, param int
	trigger = len(l.dirty)
	for k, p := range l.passes {
		passes[k] = trace.Pass{Index: k, Dirty: part(values, &dirty, p.dirtyEnd)}
		for n := hook; n < p.hookEnd; n++ {
			h, t := &l.hooks[n], &hooks[n]
			*t = trace.Hook{
				Op: h.op, Triggers: part(values, &trigger, len(l.dirty)+h.triggerEnd), NS: l.time(h.ns),
				Noop: h.noop, Glitch: h.glitch, Deferred: h.deferred,
			}
			begin := len(changes)
			for ; change < h.changeEnd; change++ {
				c := &l.changes[change]
				to := part(l.ints, &i, c.end)
				if r.isLive(c, to) {
					continue
				}
				from := r.shape(c.value, &ints)
				r.change(c, to)
				to = r.shape(c.value, &ints)
				changes = append(changes, trace.Change{Value: c.value, From: from, To: to})
			}
			t.Changed = part(changes, &begin, len(changes))
			for c := plan; c < h.planEnd; c++ {
				p := &l.plans[c]
				plans[c].From = name(r.inForce[p.dispatch])
				r.force(p.dispatch, &p.to, l.params[param:p.to.paramsEnd])
				param = p.to.paramsEnd
				plans[c].To = name(r.inForce[p.dispatch])
			}
			t.Plans = part(plans, &plan, h.planEnd)
		}
		passes[k].Hooks = part(hooks, &hook, p.hookEnd)
	}
	resize.Passes = passes
	return resize
}

// part returns list[*at:end] and then sets *at to `end`. If the range is empty, part returns nil.
func part[T any](list []T, at *int, end int) []T {
	from := *at
	if *at = end; from == end {
		return nil
	}
	return list[from:end:end]
}

func (l *ResizeLog) time(ns int64) trace.Time {
	if l.untimed {
		return trace.Time{}
	}
	return trace.Measured(ns)
}

// changedInts returns an upper bound for the number of integers in the old and new shapes of a log.
func (r *Tracer) changedInts(l *ResizeLog) int {
	n := len(l.ints)
	for i := range l.changes {
		n += max(1, len(r.now.Dims[l.changes[i].value]))
	}
	return n
}

// isLive reports whether a value already has the shape of a logged change. Such a change is logged if an
// output becomes deferred or is no longer deferred, because the output's readers are then re-planned.
func (r *Tracer) isLive(c *loggedChange, to []int) bool {
	if r.g.Values[c.value].Kind == SymInt {
		return r.ints[c.value] == int64(to[0])
	}
	return r.now.Is(int(c.value), to, c.absent)
}

// change applies a change to the live shapes.
func (r *Tracer) change(c *loggedChange, to []int) {
	if r.g.Values[c.value].Kind == SymInt {
		r.ints[c.value] = int64(to[0])
		return
	}
	r.now.Set(int(c.value), to, c.absent)
}

// shape returns the live shape of a value in trace format, and nil if the value is not computed. The result
// is stored at the end of `list`.
func (r *Tracer) shape(v ValueID, list *[]int) []int {
	at := len(*list)
	switch {
	case r.g.Values[v].Kind == SymInt:
		*list = append(*list, int(r.ints[v]))
	case r.now.Absent[v]:
		return nil
	default:
		*list = append(*list, r.now.Dims[v]...)
	}
	return slices.Clip((*list)[at:])
}

// changedDims updates the shapes of the inputs. It returns the live dims that differ from those of the last
// recorded step, or all live dims if `all` is true.
func (r *Tracer) changedDims(l *ResizeLog, inputs *inputState, all bool) []trace.LiveDims {
	g := r.g
	n, size := 0, 0
	mark := func(v ValueID) {
		if !r.isNew[v] && g.Values[v].Kind == Tensor {
			r.isNew[v] = true
			n, size = n+1, size+len(r.now.Dims[v])
		}
	}
	for _, c := range l.changes {
		mark(c.value)
	}
	if all { // add the values that the first resize left unchanged
		for i := range g.Values {
			if v := ValueID(i); !r.isNew[v] && g.Values[v].Role != Constant && g.Values[v].Role != Fused {
				r.now.Set(int(v), r.recorded.Dims[v], r.recorded.Absent[v])
				mark(v)
			}
		}
	}
	dims, ints := inputs.dims, inputs.ints
	for _, v := range g.inputs {
		if g.Values[v].Kind == SymInt {
			r.ints[v], ints = ints[0], ints[1:]
			continue
		}
		rank := len(r.now.Dims[v])
		if r.now.Set(int(v), dims[:rank], false); !r.now.SameAs(&r.recorded, int(v)) {
			mark(v)
		}
		dims = dims[rank:]
	}
	if n == 0 {
		return nil
	}
	list, flat := make([]trace.LiveDims, 0, n), make([]int, 0, size)
	for i, isNew := range r.isNew {
		v := ValueID(i)
		if !isNew {
			continue
		}
		r.isNew[v] = false
		if all || !r.now.SameAs(&r.recorded, int(v)) {
			list = append(list, trace.LiveDims{Value: v, Dims: r.shape(v, &flat)})
			r.recorded.Set(int(v), r.now.Dims[v], r.now.Absent[v])
		}
	}
	return part(list, new(int), len(list))
}

// replan replaces the log of s by a log that starts at the last record. It is needed because the log of s
// starts at shapes that were not recorded. To make the new log, replan repeats the resize on the tracer's
// own Live. The new log has no times, because they would not be the times of the step.
func (r *Tracer) replan(s *Shapes) error {
	if r.shadow == nil {
		var err error
		if r.shadow, err = NewLive(r.g, r.options); err != nil {
			return err
		}
	}
	l := r.shadow
	l.order = Topological
	if err := l.moveTo(&r.inputs); err != nil {
		return err
	}
	l.order = r.options.Order
	err := l.moveTo(&s.inputs)
	if err != nil && l.order == Fixpoint { // not every starting state lets a Fixpoint resize converge
		l.order = Topological
		err = l.moveTo(&s.inputs)
	}
	if err == nil {
		s.log.copyFrom(&l.log)
		s.log.untimed = true
	}
	return err
}

// Step returns the current plans, and a step that has the current shapes but has not run, both in trace
// format. The id of a plan is its index in the returned list. The caller sets the other fields of the step.
func (l *Live) Step() ([]trace.Plan, trace.Step) {
	var plans []trace.Plan
	var step trace.Step
	for i, id := range l.Active() {
		d := &l.G.Dispatches[id]
		r, params := l.Plans[d.Op].record(d.Slot, nil)
		p := l.G.tracePlan(id, &r, params)
		p.ID, p.Grid = trace.PlanID(i), r.grid.Describe(nil)
		plans = append(plans, p)
		step.Dispatches = append(step.Dispatches, trace.StepDispatch{Plan: p.ID})
	}
	step.Levels, step.Waits = slices.Clone(l.Levels()), slices.Clone(l.Waits())
	step.SymInts = map[string]int64{}
	for i := range l.G.Values {
		switch v := &l.G.Values[i]; {
		case v.Kind == SymInt:
			step.SymInts[v.Name] = l.now.ints[i]
		case v.Role != Constant && v.Role != Fused:
			dims := slices.Clone(l.now.dims[i])
			step.Dims = append(step.Dims, trace.LiveDims{Value: ValueID(i), Dims: dims})
		}
	}
	return plans, step
}
