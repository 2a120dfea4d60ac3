package engine

import (
	"encoding/hex"
	"slices"
	"strconv"

	"gpuscope/engine/gpu"
	"gpuscope/trace"
)

// Recorder turns what an executor did into the records of a trace: new plans and a step for each call of
// Step. It takes constant memory.
type Recorder struct {
	x       *Executor
	inForce []trace.PlanID // by dispatch, -1: not in use or not recorded
	ids     trace.Interner
	fresh   []trace.Plan // not handed out yet
	steps   int
	levels  []trace.DispatchID
	waits   []trace.Wait
	resizes int // of the executor, up to the last step recorded
}

// NewRecorder starts recording an executor, at the plans now in force.
func NewRecorder(x *Executor) *Recorder {
	r := &Recorder{x: x, inForce: make([]trace.PlanID, len(x.g.dispatches))}
	for i := range r.inForce {
		r.inForce[i] = -1
	}
	r.refresh()
	return r
}

// refresh takes the plans in force as they are.
func (r *Recorder) refresh() {
	for i := range r.inForce {
		id := trace.DispatchID(i)
		d := &r.x.g.dispatches[i]
		p := &r.x.live.plans[d.op]
		r.planID(id, &loggedLaunch{p.launches[d.slot], p.route, p.reason})
	}
	r.resizes = r.x.resizes
}

// planID makes a launch the one in force of its dispatch.
func (r *Recorder) planID(d trace.DispatchID, l *loggedLaunch) *trace.PlanID {
	if !l.active {
		r.inForce[d] = -1
		return nil
	}
	p := r.x.g.tracePlan(d, l)
	id, fresh := r.ids.ID(p)
	if fresh {
		p.ID = id
		r.fresh = append(r.fresh, p)
	}
	r.inForce[d] = id
	return &id
}

// was is the plan in force of a dispatch before a launch takes its place. It may be in force for so long that
// the interner has forgotten it.
func (r *Recorder) was(d trace.DispatchID, l *loggedLaunch) *trace.PlanID {
	if !l.active {
		return nil
	}
	id := r.inForce[d]
	return &id
}

// tracePlan is a launch as a trace has it, with the id 0.
func (g *Graph) tracePlan(id trace.DispatchID, l *loggedLaunch) trace.Plan {
	d := &g.dispatches[id]
	o := &g.ops[d.op]
	p := trace.Plan{
		Dispatch: id, Route: o.routeName(l.route), Kernel: g.names[o.use(d.slot, l.route).Kernel],
		Workgroups:   l.Grid.counts(),
		NeededGrid:   [3]int{int(l.needed[0]), int(l.needed[1]), int(l.needed[2])},
		NeededGroups: l.Grid.Groups, IdleLanes: l.Grid.Idle, Params: hex.EncodeToString(l.Params.Bytes()),
		Bytes: l.Bytes, FLOPs: l.FLOPs,
	}
	if l.reason != nil {
		p.Reason = l.reason.String()
	}
	return p
}

// Step is the record of the executor's last step, and the plans that are new with it. The caller adds what it
// alone knows: phase, position, tokens.
func (r *Recorder) Step() ([]trace.Plan, trace.Step) {
	x := r.x
	s := &x.last
	// A resize whose step failed was never recorded: then plans and dims are taken as they are, not as what
	// changed.
	missed := x.resizes-r.resizes > min(len(x.live.log.passes), 1)
	before := r.was
	if missed {
		r.refresh()
		before = r.planID
	}
	r.resizes = x.resizes
	step := trace.Step{Index: r.steps, Timing: s.timing.String(), Cold: s.cold}
	step.Resize = x.live.log.trace(before, r.planID)
	step.Dims = r.changedDims(missed || r.steps == 0)
	r.steps++
	r.ids.Step()
	for _, si := range x.g.values {
		if si.kind == symInt {
			step.SymInts = map[string]int64{}
			break
		}
	}
	for i := range x.g.values {
		if v := &x.g.values[i]; v.kind == symInt {
			step.SymInts[v.name] = x.live.now.ints[i]
		}
	}
	active := x.live.Active()
	levels, waits := x.live.Levels(), x.live.Waits()
	if r.levels == nil || !slices.Equal(levels, r.levels) || !slices.Equal(waits, r.waits) {
		r.levels, r.waits = slices.Clone(levels), slices.Clone(waits)
		step.Levels, step.Waits = r.levels, r.waits
	}
	step.Dispatches = make([]trace.StepDispatch, len(active))
	for i, id := range active {
		step.Dispatches[i].Plan = r.inForce[id]
	}
	r.times(&step)
	step.CPU = trace.CPU{
		ResizeNS: trace.Measured(s.resize), UploadNS: trace.Measured(s.upload),
		EncodeNS: trace.Measured(s.encode), SubmitNS: trace.Measured(s.submit),
		WaitNS: trace.Measured(s.wait), TotalNS: trace.Measured(s.total),
		Passes: s.passes, Submits: s.submits, Writes: s.writes, WriteBytes: s.writeBytes, Polls: s.polls,
	}
	if step.Index == 0 {
		step.CPU.Compiled, step.CPU.BindGroups = x.compiled, x.boundN
	}
	step.Memory = trace.Memory{LiveBytes: x.live.LiveBytes(), AllocatedBytes: x.AllocatedBytes()}
	plans := r.fresh
	r.fresh = nil
	r.ids.Step()
	return plans, step
}

// changedDims are the live dims that the step's resize changed, or all.
func (r *Recorder) changedDims(all bool) []trace.LiveDims {
	var list []trace.LiveDims
	x := r.x
	if all {
		for i := range x.g.values {
			if v := &x.g.values[i]; v.kind == tensor && v.role != Constant && v.role != Scratch {
				list = append(list,
					trace.LiveDims{Value: ValueID(i), Dims: append([]int{}, x.live.now.dims[i]...)})
			}
		}
		return list
	}
	seen := map[ValueID]bool{}
	add := func(v ValueID) {
		if !seen[v] && x.g.values[v].kind == tensor {
			seen[v] = true
			list = append(list, trace.LiveDims{Value: v, Dims: append([]int{}, x.live.now.dims[v]...)})
		}
	}
	for _, v := range x.live.log.dirty {
		add(v)
	}
	for _, c := range x.live.log.changes {
		add(c.value)
	}
	return list
}

// times fills in what was measured, at the level at which it was.
func (r *Recorder) times(step *trace.Step) {
	s, c := &r.x.last, r.x.clock
	if len(s.ticks) < 2 {
		return
	}
	first, last := s.ticks[0], s.ticks[len(s.ticks)-1]
	gpuTimes := &trace.GPU{StartNS: c.instant(first), SpanNS: c.duration(first, last)}
	step.GPU = gpuTimes
	if s.timing != TimingDispatch {
		return
	}
	var busy int64
	for i := range step.Dispatches {
		begin, end := s.ticks[2*i], s.ticks[2*i+1]
		d := &step.Dispatches[i]
		d.Raw = &[2]string{strconv.FormatUint(begin, 10), strconv.FormatUint(end, 10)}
		if end >= begin {
			c.see(end - begin)
		}
		d.StartNS, d.GPUNS = c.instant(begin), c.duration(begin, end)
		ns, _ := d.GPUNS.NS()
		busy += ns
	}
	if c.calibrated() {
		gpuTimes.BusyNS = trace.Measured(busy)
	}
}

// DispatchNS are the GPU times of the last step's dispatches, in ns and in order of submission; false where
// the step was not timed at dispatch level, or the clock has no known period.
func (x *Executor) DispatchNS() ([]int64, bool) {
	s := &x.last
	if !s.ran || s.timing != TimingDispatch || !x.clock.calibrated() {
		return nil, false
	}
	list := make([]int64, len(s.ticks)/2)
	for i := range list {
		begin, end := s.ticks[2*i], s.ticks[2*i+1]
		ns, ok := x.clock.duration(begin, end).NS()
		if !ok {
			return nil, false
		}
		x.clock.see(end - begin)
		list[i] = ns
	}
	return list, true
}

// AllocatedBytes is all the device memory the executor holds.
func (x *Executor) AllocatedBytes() int64 {
	n := int64(len(x.arena.shadow))
	for _, b := range x.buffers {
		if b != nil {
			n += int64(b.Size())
		}
	}
	return n
}

// Clock is what is known of the GPU's clock.
func (x *Executor) Clock() trace.Clock {
	if x.clock == nil {
		return trace.Clock{}
	}
	return x.clock.trace()
}

// Device is the device as a trace has it.
func (x *Executor) Device() trace.Device { return DescribeDevice(x.dev.Info()) }

// DescribeDevice is an adapter or device as a trace has it.
func DescribeDevice(i gpu.AdapterInfo) trace.Device {
	l := i.Limits
	return trace.Device{
		Name: i.Name, Backend: i.Backend, Driver: i.Driver, AdapterType: i.Type.String(),
		Limits: map[string]uint64{
			"max_buffer_size": l.MaxBufferSize, "max_storage_buffer_binding_size": l.MaxStorageBinding,
			"max_compute_workgroup_storage_size":    uint64(l.MaxWorkgroupStorage),
			"max_compute_invocations_per_workgroup": uint64(l.MaxInvocations),
			"max_compute_workgroups_per_dimension":  uint64(l.MaxWorkgroups),
			"min_uniform_buffer_offset_alignment":   uint64(l.UniformAlignment),
			"max_storage_buffers_per_shader_stage":  uint64(l.MaxStorageBuffers),
		},
	}
}
