package engine

import (
	"gpuscope/engine/gpu"
	"gpuscope/trace"
)

// DispatchNS returns the GPU times of the last step's dispatches, in ns and in order of submission. It
// returns false if the step was not timed at dispatch level or the clock period is unknown.
func (x *Executor) DispatchNS() ([]int64, bool) {
	s := x.last
	if !s.ran || s.timing != TimingDispatch || !x.clock.Scale.Known() {
		return nil, false
	}
	list := make([]int64, len(s.ticks)/2)
	for i := range list {
		begin, end := s.ticks[2*i], s.ticks[2*i+1]
		ns, ok := x.clock.Scale.Duration(begin, end).NS()
		if !ok {
			return nil, false
		}
		list[i] = ns
	}
	return list, true
}

// SpanNS returns how long the GPU worked on the last step, in ns, from the first GPU timestamp of the step to
// the last. It also returns the time in ns from the start of the step to its first GPU timestamp. This time
// can be 0 if the step was sent to the GPU while the previous step still ran. `ok` is false if the step was
// not timed, its timestamps have not been read yet, or the clock period is unknown.
func (x *Executor) SpanNS() (span, before int64, ok bool) {
	s := x.last
	if !s.ran || len(s.ticks) == 0 || !x.clock.Scale.Known() {
		return 0, 0, false
	}
	first := s.ticks[0]
	span, ok = x.span(&s.stepLog).NS()
	at, _ := x.clock.Scale.Instant(first).NS()
	// The GPU cannot have started before the submit, so an earlier time is an error of the clock conversion.
	at = max(at, x.clock.SinceStart(s.begun))
	return span, max(0, at-x.clock.SinceStart(s.start)), ok
}

// Clock returns the known properties of the GPU's clock.
func (x *Executor) Clock() trace.Clock {
	if x.clock == nil {
		return trace.Clock{}
	}
	c := x.clock.Describe()
	c.CanaryNS = x.canary.ReferenceNS()
	return c
}

// Device returns the description of the device for a trace.
func (x *Executor) Device() trace.Device { return DescribeDevice(x.info()) }

// DescribeDevice returns the description of an adapter or device for a trace.
func DescribeDevice(i gpu.AdapterInfo) trace.Device {
	l := i.Limits
	d := trace.Device{
		Name: i.Name, Backend: i.Backend, Driver: i.Driver, AdapterType: trace.AdapterType(i.Type.String()),
		Limits: map[string]uint64{
			"max_buffer_size": l.MaxBufferSize, "max_storage_buffer_binding_size": l.MaxStorageBinding,
			"max_compute_workgroup_storage_size":    uint64(l.MaxWorkgroupStorage),
			"max_compute_invocations_per_workgroup": uint64(l.MaxInvocations),
			"max_compute_workgroups_per_dimension":  uint64(l.MaxWorkgroups),
			"min_uniform_buffer_offset_alignment":   uint64(l.UniformAlignment),
			"max_storage_buffers_per_shader_stage":  uint64(l.MaxStorageBuffers),
		},
	}
	if l.FlushesHalves {
		d.Limits["flushes_halves"] = 1
	}
	return d
}
