package engine

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
	"sync"

	"gpuscope/trace"
)

// Recorder turns what an executor did into the records of a trace: new plans and a step for each snapshot.
// Each step is told relative to the one recorded before it, whatever steps came between that nobody recorded.
// It takes constant memory.
//
// Snapshots are taken on the goroutine of the steps. What the records before have said belongs to the
// goroutine that makes them, which may be another.
type Recorder struct {
	x *Executor

	// As of the last snapshot.
	before    int // steps that another recorder has told
	taken     int
	resizes   int // of the executor
	listed    int // of the executor's levels and waits
	edits     int // of the executor: how often others took a kernel's place
	liveBytes int64

	mu   sync.Mutex
	free []*Snapshot

	// As of the last record.
	inForce []trace.PlanID     // by dispatch, -1: not in use
	ran     []trace.DispatchID // those in use
	blocks  []string           // by dispatch: name of the block it stands in
	grids   []*trace.Grid      // by dispatch: of the last new plan
	now     liveShapes         // as of the last change; before the first step the largest
	told    liveShapes         // as of the last step; before the first those in force
	ints    []int64
	inputs  inputState
	levels  []trace.DispatchID
	waits   []trace.Wait
	ids     trace.Interner
	fresh   []trace.Plan // not handed out yet
	content []byte       // of the plan being named
	isNew   []bool       // by value: the step may have changed its dims
	edited  map[*Kernel]*Edit
	shadow  *Live // nil until a step is to be told from another one than it came from
}

// NewRecorder starts recording an executor, at the plans now in force.
func NewRecorder(x *Executor) *Recorder {
	nv := len(x.g.values)
	r := &Recorder{
		x: x, inForce: make([]trace.PlanID, len(x.g.dispatches)), resizes: x.resizes,
		grids: make([]*trace.Grid, len(x.g.dispatches)), blocks: x.g.blockNames(),
		now: newLiveShapes(nv), told: newLiveShapes(nv), ints: slices.Clone(x.live.now.ints),
		isNew: make([]bool, nv),
		edits: x.edits.changes, edited: x.edits.inForce,
	}
	for v := range x.g.values {
		r.now.set(ValueID(v), x.g.values[v].maxDims, false)
		r.told.set(ValueID(v), x.live.now.dims[v], x.g.absent(&x.live.now, ValueID(v)))
	}
	r.inputs.take(x.live)
	var params []byte
	for i := range r.inForce {
		d := &x.g.dispatches[i]
		var l launchRecord
		l, params = x.live.plans[d.op].record(d.slot, params[:0])
		r.force(trace.DispatchID(i), &l, params)
	}
	return r
}

// force makes a launch the one in force of its dispatch.
func (r *Recorder) force(d trace.DispatchID, l *launchRecord, params []byte) {
	if !l.active {
		r.inForce[d] = -1
		return
	}
	r.content = l.content(r.content[:0], d, params)
	e := r.edited[r.x.g.kernelOf(d, l.route)]
	if e != nil {
		r.content = append(r.content, e.Name()...)
	}
	id, fresh := r.ids.ID(r.content)
	if fresh {
		p := r.x.g.tracePlan(d, l, params)
		if e != nil {
			p.Kernel = e.Name()
		}
		p.ID = id
		p.Grid = l.grid.describe(r.grids[d])
		r.grids[d] = p.Grid
		r.fresh = append(r.fresh, p)
	}
	r.inForce[d] = id
}

// content appends what tells one plan from another.
func (l *launchRecord) content(b []byte, d trace.DispatchID, params []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(d))
	b = append(b, byte(l.route))
	for _, n := range [...]uint32{l.grid.X, l.grid.Y, l.grid.Z, l.needed[0], l.needed[1], l.needed[2]} {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	for _, n := range [...]int64{l.grid.Groups, l.grid.Idle, l.bytes, l.flops} {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	b = append(append(b, l.grid.rule...), 0)
	for i := range l.grid.terms {
		t := &l.grid.terms[i]
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

// tracePlan is a launch as a trace has it, with the id 0.
func (g *Graph) tracePlan(id trace.DispatchID, l *launchRecord, params []byte) trace.Plan {
	o := &g.ops[g.dispatches[id].op]
	p := trace.Plan{
		Dispatch: id, Route: o.routeName(l.route), Kernel: g.names[g.kernelOf(id, l.route)],
		Workgroups:   l.grid.counts(),
		NeededGrid:   [3]int{int(l.needed[0]), int(l.needed[1]), int(l.needed[2])},
		NeededGroups: l.grid.Groups, IdleLanes: l.grid.Idle, Params: hex.EncodeToString(params),
		Bytes: l.bytes, FLOPs: l.flops,
	}
	if l.reason != nil {
		p.Reason = l.reason.String()
	}
	return p
}

// Record is the step as a trace has it, and the plans that are new with it. The snapshot is gone with that.
// What the lists of a step point into is made at one go: a step has hundreds of them.
func (s *Snapshot) Record() ([]trace.Plan, trace.Step) {
	r := s.r
	if s.missed {
		if err := r.replan(s); err != nil {
			// Only of an operator whose plan is not pure, which --check finds: it planned these shapes.
			s.log.begin(s.log.Order)
		}
	}
	step := trace.Step{
		Index: s.index, Timing: s.step.timing.String(), Cold: s.step.cold, Pipelined: s.step.pipelined,
	}
	step.Resize = r.resize(&s.log)
	s.edited.force(r)
	step.Dims = r.changedDims(&s.log, &s.inputs, s.first)
	r.inputs.copyFrom(&s.inputs)
	step.SymInts = r.symInts()
	if s.relisted && (s.first || !slices.Equal(s.levels, r.levels) || !slices.Equal(s.waits, r.waits)) {
		step.Levels, step.Waits = slices.Clone(s.levels), slices.Clone(s.waits)
		r.levels, r.waits = step.Levels, step.Waits
	}
	step.Dispatches = r.dispatches()
	s.times(&step)
	step.CPU = s.step.cpu()
	if s.step.timing != TimingOff {
		c := r.x.clock
		step.CPU.StartNS = trace.Measured(c.sinceStart(s.step.start))
		step.CPU.SubmittedNS = trace.Measured(c.sinceStart(s.step.begun))
		step.CPU.DoneNS = trace.Measured(c.sinceStart(s.step.ended))
	}
	if s.first {
		step.CPU.Compiled = r.x.compiled
		step.CPU.BindGroups += r.x.boundN
	}
	step.Memory = trace.Memory{LiveBytes: s.liveBytes, AllocatedBytes: r.x.allocated}
	plans := append([]trace.Plan(nil), r.fresh...)
	clear(r.fresh)
	r.fresh = r.fresh[:0]
	r.ids.Step()
	r.recycle(s)
	return plans, step
}

// CPU is where the host's time and calls of the last step went.
func (x *Executor) CPU() trace.CPU { return x.last.cpu() }

func (s *stepLog) cpu() trace.CPU {
	if !s.ran { // without a device
		return trace.CPU{ResizeNS: trace.Measured(s.resize)}
	}
	return trace.CPU{
		ResizeNS: trace.Measured(s.resize), UploadNS: trace.Measured(s.upload),
		EncodeNS: trace.Measured(s.encode), SubmitNS: trace.Measured(s.submit),
		OverlappedNS: trace.Measured(s.overlapped), WaitNS: trace.Measured(s.wait),
		TotalNS: trace.Measured(s.total),
		Passes:  s.passes, Submits: s.submits, Writes: s.writes, WriteBytes: s.writeBytes, Polls: s.polls,
		BindGroups: s.bound, GCs: s.gcs, GCNS: trace.Measured(s.gcNS),
	}
}

// dispatches are those in use, in order of submission.
func (r *Recorder) dispatches() []trace.StepDispatch {
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

func (r *Recorder) symInts() map[string]int64 {
	var all map[string]int64
	for i := range r.x.g.values {
		if v := &r.x.g.values[i]; v.kind == symInt {
			if all == nil {
				all = map[string]int64{}
			}
			all[v.name] = r.ints[i]
		}
	}
	return all
}

// resize is a log in the form a trace has, and puts its plans and dims in force.
func (r *Recorder) resize(l *ResizeLog) trace.Resize {
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

// part is the part of a list from *at to end, at which *at is then; nil where it is empty.
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

// changedInts is how many ints the shapes before and after the changes of a log take.
func (r *Recorder) changedInts(l *ResizeLog) int {
	n := len(l.ints)
	for i := range l.changes {
		n += max(1, len(r.now.dims[l.changes[i].value]))
	}
	return n
}

// isLive says whether a value has the shape already that a change gives it: readers of an operator's output
// are woken by it, too, where no step computes it.
func (r *Recorder) isLive(c *loggedChange, to []int) bool {
	if r.x.g.values[c.value].kind == symInt {
		return r.ints[c.value] == int64(to[0])
	}
	return r.now.is(c.value, to, c.absent)
}

// change makes the shape that a change gives a value its live one.
func (r *Recorder) change(c *loggedChange, to []int) {
	if r.x.g.values[c.value].kind == symInt {
		r.ints[c.value] = int64(to[0])
		return
	}
	r.now.set(c.value, to, c.absent)
}

// shape is a value's live shape as a trace has it, at the end of a list; nil where it is not computed.
func (r *Recorder) shape(v ValueID, list *[]int) []int {
	at := len(*list)
	switch {
	case r.x.g.values[v].kind == symInt:
		*list = append(*list, int(r.ints[v]))
	case r.now.absent[v]:
		return nil
	default:
		*list = append(*list, r.now.dims[v]...)
	}
	return slices.Clip((*list)[at:])
}

// changedDims takes in what the inputs are, and lists the live dims that are others than those of the step
// before, or all.
func (r *Recorder) changedDims(l *ResizeLog, inputs *inputState, all bool) []trace.LiveDims {
	g := r.x.g
	n, size := 0, 0
	mark := func(v ValueID) {
		if !r.isNew[v] && g.values[v].kind == tensor {
			r.isNew[v] = true
			n, size = n+1, size+len(r.now.dims[v])
		}
	}
	for _, c := range l.changes {
		mark(c.value)
	}
	if all { // what the first resize has not changed
		for i := range g.values {
			if v := ValueID(i); !r.isNew[v] && g.values[v].role != Constant && g.values[v].role != Fused {
				r.now.set(v, r.told.dims[v], r.told.absent[v])
				mark(v)
			}
		}
	}
	dims, ints := inputs.dims, inputs.ints
	for _, v := range g.inputs {
		if g.values[v].kind == symInt {
			r.ints[v], ints = ints[0], ints[1:]
			continue
		}
		rank := len(r.now.dims[v])
		if r.now.set(v, dims[:rank], false); !r.now.sameAs(&r.told, v) {
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
		if all || !r.now.sameAs(&r.told, v) {
			list = append(list, trace.LiveDims{Value: v, Dims: r.shape(v, &flat)})
			r.told.set(v, r.now.dims[v], r.now.absent[v])
		}
	}
	return part(list, new(int), len(list))
}

// times fills in what was measured, at the level at which it was.
func (s *Snapshot) times(step *trace.Step) {
	ticks, c := s.step.ticks, &s.scale
	if len(ticks) < 2 {
		return
	}
	first, last := ticks[0], ticks[len(ticks)-1]
	step.GPU = &trace.GPU{StartNS: c.instant(first), SpanNS: c.duration(first, last)}
	if s.step.timing < TimingBlock {
		return
	}
	if s.step.timing == TimingBlock {
		step.Blocks = make([]trace.Block, len(s.step.runs))
	}
	var busy int64
	at := 0
	for i, n := range s.step.runs {
		begin, end := ticks[2*i], ticks[2*i+1]
		raw := [2]trace.Tick{trace.Tick(begin), trace.Tick(end)}
		start, took := c.instant(begin), c.duration(begin, end)
		if d := &step.Dispatches[at]; step.Blocks != nil {
			step.Blocks[i] = trace.Block{
				Name: s.r.blocks[s.r.ran[at]], Dispatches: n, StartNS: start, GPUNS: took, Raw: raw,
			}
		} else {
			d.StartNS, d.GPUNS, d.Raw = start, took, raw
		}
		ns, _ := took.NS()
		busy += ns
		at += n
	}
	if c.known() {
		step.GPU.BusyNS = trace.Measured(busy)
	}
}
