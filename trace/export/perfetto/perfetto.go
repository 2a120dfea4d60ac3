// Package perfetto writes a trace in the native format of Perfetto: protobuf messages. In this format, unlike
// in Chrome JSON, dispatches are GPU events. Perfetto therefore lists them in its GPU Compute tab, and draws
// all of them even if they overlap.
//
// The messages and the numbers of their fields are those of the .proto files in protos/perfetto/trace of the
// repository google/perfetto: trace_packet.proto, gpu/gpu_render_stage_event.proto,
// gpu/gpu_track_event.proto, interned_data/interned_data.proto, track_event/track_event.proto and
// track_event/track_descriptor.proto.
package perfetto

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/timeline"
	"gpuscope/trace/export/facts"
)

// Format is the native format of Perfetto.
var Format = trace.Export{
	Name: "perfetto", Doc: "native trace for Perfetto and its GPU Compute tab",
	Suffix: ".pftrace", Write: write,
}

// Numbers of fields.
const (
	tracePacket = 1 // of Trace

	packetTimestamp  = 8 // of TracePacket
	packetSequence   = 10
	packetTrackEvent = 11
	packetInterned   = 12
	packetFlags      = 13
	packetGPUEvent   = 53
	packetTrack      = 60

	internedNames    = 2 // of InternedData
	internedContexts = 23
	internedSpecs    = 24
	internedKernels  = 1000
	internedArgNames = 1001

	gpuEventID      = 1 // of GpuRenderStageEvent
	gpuDuration     = 2
	gpuContext      = 5
	gpuSubmission   = 10
	gpuID           = 11
	gpuQueue        = 13
	gpuStage        = 14
	gpuKernel       = 19
	gpuName         = 20
	gpuLaunch       = 21
	launchGrid      = 1 // of ComputeKernelLaunch
	launchWorkgroup = 2
	launchArg       = 3
	argName         = 1 // of ExtraComputeArg; an id
	argInt          = 3
	argString       = 6

	eventAnnotation  = 4 // of TrackEvent
	eventType        = 9
	eventTrack       = 11
	eventCategory    = 22
	eventName        = 23
	eventCounter     = 30
	eventCorrelation = 3000
	annotationName   = 10 // of DebugAnnotation
	annotationInt    = 4
	annotationString = 6
	submittedEvents  = 1 // of GpuCorrelation
	waitedEvents     = 2

	trackUUID     = 1 // of TrackDescriptor
	trackName     = 2
	trackProcess  = 3
	trackThread   = 4
	trackParent   = 5
	trackCounter  = 8
	trackOrdering = 11
	trackRank     = 12
)

// Values of enums.
const (
	stateCleared, stateNeeded                      = 1, 2 // TracePacket.SequenceFlags
	sliceBegin, sliceEnd, instantType, counterType = 1, 2, 3, 4
	categoryOther, categoryCompute                 = 0, 2 // RenderStageCategory
	apiUndefined, apiVulkan                        = 0, 2
	unitCount, unitBytes                           = 2, 3
	explicitOrder                                  = 3
)

// Ids in the file.
const (
	sequence = 1
	hostPID  = 1
	hostTID  = 1
	context  = 1

	queueSpec = 1 // interned specifications
	spansSpec = 2
	stageSpec = 3
	stepStage = 4

	processTrack = 1 // uuids of tracks
	threadTrack  = 2
	firstCounter = 10
)

// counterTracks lists the counters of a step.
var counterTracks = [...]struct {
	name string
	unit uint64
}{
	{"device memory, live", unitBytes},
	{"device memory, allocated", unitBytes},
	{"workgroups needed", unitCount},
	{"workgroups launched", unitCount},
	{"position", unitCount},
}

// writer writes packets.
type writer struct {
	out   *bufio.Writer
	t     *trace.Trace
	line  *timeline.Timeline
	names map[string]uint64 // ids of kernels and other names of GPU events
	args  map[string]uint64 // ids of names of launch arguments

	head, packet, body, params, inner message // reused
	launches                          []message
	last                              [len(counterTracks)]int64
	counted                           [len(counterTracks)]bool
	events                            uint64   // number of GPU events so far
	ids                               []uint64 // ids of the GPU events of the current step
}

func write(out io.Writer, t *trace.Trace) error {
	w := &writer{
		out: bufio.NewWriterSize(out, 1<<16), t: t, line: timeline.New(analyze.NewIndex(t)),
		names: map[string]uint64{}, args: map[string]uint64{}, launches: make([]message, len(t.Plans)),
	}
	w.start()
	notes := map[int][]*trace.Event{}
	for i := range t.Events {
		notes[t.Events[i].Step] = append(notes[t.Events[i].Step], &t.Events[i])
	}
	w.about()
	for s := range w.line.Steps(0) {
		w.gpu(s)
		w.host(s)
		w.counters(s)
		for _, e := range notes[s.Index] {
			w.begin(instantType, threadTrack, e.Kind, "event")
			w.annotateString("text", e.Text)
			w.endEvent(s.Start)
		}
	}
	for k := range counterTracks {
		if w.counted[k] {
			w.count(k, w.line.End)
		}
	}
	return w.out.Flush() // which returns the first error of all writes
}

// send writes a packet: its time, and a message as one of its fields. A negative time is left out.
func (w *writer) send(ns int64, flags uint64, field int, body message) {
	w.packet = w.packet[:0]
	if ns >= 0 {
		w.packet.uint(packetTimestamp, uint64(ns))
	}
	w.packet.uint(packetSequence, sequence)
	w.packet.uint(packetFlags, flags)
	w.packet.message(field, body)
	w.head = w.head[:0]
	w.head.tag(tracePacket, bytesType)
	w.head.varint(uint64(len(w.packet)))
	w.out.Write(w.head)
	w.out.Write(w.packet)
}

// start writes the interned names, which must precede their use, and the tracks.
func (w *writer) start() {
	var m message
	intern := func(field int, id uint64, name string, more func(*message)) {
		var e message
		e.uint(1, id)
		e.string(2, valid(name))
		if more != nil {
			more(&e)
		}
		m.message(field, e)
	}
	name := func(s string, kernel bool) {
		if w.names[s] != 0 {
			return
		}
		id := uint64(len(w.names) + 1)
		w.names[s] = id
		intern(internedNames, id, s, nil)
		if kernel {
			intern(internedKernels, id, s, nil)
		}
	}
	for i := range w.t.Plans {
		name(w.t.Plans[i].Kernel, true)
	}
	for _, phase := range trace.Phases {
		name(string(phase), false)
	}
	for i := range w.t.Steps {
		for j := range w.t.Steps[i].Blocks {
			name(w.t.Steps[i].Blocks[j].Name, false)
		}
	}
	for i, arg := range argNames {
		w.args[arg] = uint64(i + 1)
		intern(internedArgNames, uint64(i+1), arg, nil)
	}
	for _, spec := range []struct {
		id       uint64
		name     string
		category uint64
	}{
		{queueSpec, "queue 0", categoryCompute},
		{spansSpec, "steps", categoryOther},
		{stageSpec, "dispatch", categoryCompute},
		{stepStage, "step", categoryOther},
	} {
		intern(internedSpecs, spec.id, spec.name, func(e *message) { e.uint(4, spec.category) })
	}
	var c message
	c.uint(1, context)
	c.uint(2, hostPID)
	api := uint64(apiUndefined)
	if strings.EqualFold(w.t.Device.Backend, "vulkan") {
		api = apiVulkan
	}
	c.uint(3, api)
	m.message(internedContexts, c)
	w.send(-1, stateCleared, packetInterned, m)
	w.tracks()
}

// tracks describes the tracks of the host.
func (w *writer) tracks() {
	host := "gpuscope"
	if w.t.Engine != "" {
		host = w.t.Engine
	}
	var d, p message
	p.uint(1, hostPID)
	p.string(6, valid(host))
	d.uint(trackUUID, processTrack)
	d.message(trackProcess, p)
	d.uint(trackOrdering, explicitOrder)
	w.send(-1, stateNeeded, packetTrack, d)

	d, p = nil, nil
	p.uint(1, hostPID)
	p.uint(2, hostTID)
	p.string(5, "engine")
	d.uint(trackUUID, threadTrack)
	d.uint(trackParent, processTrack)
	d.message(trackThread, p)
	w.send(-1, stateNeeded, packetTrack, d)
	for k, c := range counterTracks {
		d, p = nil, nil
		p.uint(3, c.unit)
		d.uint(trackUUID, uint64(firstCounter+k))
		d.string(trackName, c.name)
		d.uint(trackParent, processTrack)
		d.message(trackCounter, p)
		d.uint(trackRank, uint64(k+1))
		w.send(-1, stateNeeded, packetTrack, d)
	}
}

// about writes the facts about the run as a mark at the start of the axis.
func (w *writer) about() {
	w.begin(instantType, threadTrack, "about this trace", "metadata")
	for _, f := range facts.Of(w.t, w.line) {
		switch v := f.Value.(type) {
		case string:
			w.annotateString(f.Key, v)
		case int64:
			w.annotateInt(f.Key, v)
		default:
			w.annotateString(f.Key, fmt.Sprint(v))
		}
	}
	w.endEvent(0)
}

// valid replaces bytes that are not UTF-8, because a protobuf string must be UTF-8.
func valid(s string) string { return strings.ToValidUTF8(s, "�") }

// argNames lists the names of the arguments of a GPU event.
var argNames = []string{
	"step", "phase", "seq", "dispatch", "plan", "op", "op_kind", "layer", "route", "workgroups",
	"workgroups_needed", "bytes_modelled", "flops_modelled", "thread_count", "dispatches",
}

func (w *writer) intArg(m *message, name string, v int64) {
	w.inner = w.inner[:0]
	w.inner.uint(argName, w.args[name])
	w.inner.int(argInt, v)
	m.message(launchArg, w.inner)
}

func (w *writer) stringArg(m *message, name, v string) {
	w.inner = w.inner[:0]
	w.inner.uint(argName, w.args[name])
	w.inner.string(argString, valid(v))
	m.message(launchArg, w.inner)
}

// launch returns the parameters and arguments that are the same for all dispatches of a plan.
func (w *writer) launch(s *timeline.Step, slice *timeline.Slice) message {
	id := s.Dispatches[slice.At].Plan
	if w.launches[id] != nil {
		return w.launches[id]
	}
	l := w.line.Launch(s, slice)
	p := l.Plan
	var m message
	m.message(launchGrid, dims(p.Workgroups))
	if l.Kernel != nil {
		m.message(launchWorkgroup, dims(l.Kernel.WorkgroupSize))
		lanes, groups := analyze.Product(l.Kernel.WorkgroupSize), analyze.Product(p.Workgroups)
		if lanes > 0 && groups <= math.MaxInt64/lanes {
			w.intArg(&m, "thread_count", lanes*groups)
		}
	}
	w.intArg(&m, "dispatch", int64(l.Dispatch.ID))
	w.intArg(&m, "plan", int64(p.ID))
	w.stringArg(&m, "op", l.Dispatch.Named(l.Op.Name))
	w.stringArg(&m, "op_kind", l.Op.Kind)
	if l.Op.Layer != nil {
		w.intArg(&m, "layer", int64(*l.Op.Layer))
	}
	if p.Route != "" {
		w.stringArg(&m, "route", p.Route)
	}
	w.intArg(&m, "workgroups", analyze.Product(p.Workgroups))
	w.intArg(&m, "workgroups_needed", p.NeededGroups)
	w.intArg(&m, "bytes_modelled", p.Bytes)
	w.intArg(&m, "flops_modelled", p.FLOPs)
	w.launches[id] = m
	return m
}

// dims returns a Dim3. Its fields have 32 bits.
func dims(v [3]int) (m message) {
	for i, n := range v {
		m.uint(i+1, uint64(min(max(n, 0), math.MaxUint32)))
	}
	return m
}

// gpu writes the GPU events of a step, with the measured durations. It keeps the ids of the blocks or
// dispatches.
func (w *writer) gpu(s *timeline.Step) {
	w.ids = w.ids[:0]
	for i := range s.GPU {
		slice := &s.GPU[i]
		w.events++
		w.body = w.body[:0]
		b := &w.body
		b.uint(gpuEventID, w.events)
		b.uint(gpuDuration, uint64(max(0, slice.NS)))
		b.uint(gpuContext, context)
		b.uint(gpuSubmission, uint64(uint32(s.At+1)))
		b.uint(gpuID, 0)
		b.uint(gpuName, w.names[slice.Name])
		w.params = w.params[:0]
		launch := &w.params
		queue, stage := uint64(queueSpec), uint64(stageSpec)
		switch slice.Kind {
		case timeline.DispatchSlice:
			*launch = append(*launch, w.launch(s, slice)...)
			b.uint(gpuKernel, w.names[slice.Name])
		case timeline.BlockSlice:
			w.intArg(launch, "dispatches", int64(s.Blocks[slice.At].Dispatches))
		default:
			queue, stage = spansSpec, stepStage
		}
		if slice.Kind != timeline.SpanSlice {
			w.intArg(launch, "seq", int64(slice.At))
			w.ids = append(w.ids, w.events)
		}
		b.uint(gpuQueue, queue)
		b.uint(gpuStage, stage)
		w.intArg(launch, "step", int64(s.Index))
		w.stringArg(launch, "phase", string(s.Phase))
		b.message(gpuLaunch, *launch)
		w.send(slice.From, stateNeeded, packetGPUEvent, w.body)
	}
}

// begin begins a track event in w.body.
func (w *writer) begin(kind, track uint64, name, category string) {
	w.body = w.body[:0]
	w.body.uint(eventType, kind)
	w.body.uint(eventTrack, track)
	w.body.string(eventName, valid(name))
	w.body.string(eventCategory, category)
}

func (w *writer) endEvent(ns int64) { w.send(ns, stateNeeded, packetTrackEvent, w.body) }

func (w *writer) annotateInt(name string, v int64) {
	w.inner = w.inner[:0]
	w.inner.string(annotationName, name)
	w.inner.int(annotationInt, v)
	w.body.message(eventAnnotation, w.inner)
}

func (w *writer) annotateString(name, v string) {
	w.inner = w.inner[:0]
	w.inner.string(annotationName, name)
	w.inner.string(annotationString, valid(v))
	w.body.message(eventAnnotation, w.inner)
}

// host writes the step and its phases. The events are in the order of their times, ends before beginnings.
func (w *writer) host(s *timeline.Step) {
	var step *timeline.Slice
	for i := range s.Host {
		slice := &s.Host[i]
		kind, category := uint64(sliceBegin), "host"
		if !slice.Drawn() {
			kind = instantType
		}
		if slice.Kind == timeline.StepSlice {
			category = "step"
		}
		w.begin(kind, threadTrack, slice.Name, category)
		w.annotateInt("dur_ns", slice.NS)
		w.annotateInt("step", int64(s.Index))
		if slice.Kind == timeline.StepSlice {
			w.describe(s)
		} else {
			w.correlate(slice.Name)
		}
		w.endEvent(slice.From)
		switch {
		case !slice.Drawn():
		case slice.Kind == timeline.StepSlice:
			step = slice
		default:
			w.end(slice.To)
		}
	}
	if step != nil {
		w.end(step.To)
	}
}

// end ends the innermost open slice of the host.
func (w *writer) end(ns int64) {
	w.body = w.body[:0]
	w.body.uint(eventType, sliceEnd)
	w.body.uint(eventTrack, threadTrack)
	w.endEvent(ns)
}

// describe adds the annotations of a step.
func (w *writer) describe(s *timeline.Step) {
	w.annotateInt("position", int64(s.Position))
	w.annotateInt("tokens", int64(len(s.Tokens)))
	w.annotateString("timing", string(s.Timing))
	if s.Text != "" {
		w.annotateString("text", s.Text)
	}
	for _, flag := range [...]struct {
		name string
		set  bool
	}{
		{"cold", s.Cold},
		{"pipelined", s.Pipelined},
		{"placed", s.Placed},
		{"gpu_placed", s.GPUPlaced},
	} {
		v := int64(0)
		if flag.set {
			v = 1
		}
		w.annotateInt(flag.name, v)
	}
	if s.ShiftNS != 0 {
		w.annotateInt("gpu_shift_ns", s.ShiftNS)
	}
}

// correlate draws arrows from the submit to all dispatches, and from the last dispatch to the wait.
func (w *writer) correlate(phase string) {
	var c message
	switch {
	case len(w.ids) == 0:
		return
	case phase == timeline.Submit:
		for _, id := range w.ids {
			c.uint(submittedEvents, id)
		}
	case phase == timeline.Wait:
		c.uint(waitedEvents, w.ids[len(w.ids)-1])
	default:
		return
	}
	w.body.message(eventCorrelation, c)
}

// counters writes the counters of a step that changed.
func (w *writer) counters(s *timeline.Step) {
	needed, launched := w.line.Workgroups(s)
	for k, v := range [...]int64{
		s.Memory.LiveBytes, s.Memory.AllocatedBytes, needed, launched, int64(s.Position),
	} {
		if w.counted[k] && w.last[k] == v {
			continue
		}
		w.last[k], w.counted[k] = v, true
		w.count(k, s.Start)
	}
}

func (w *writer) count(k int, ns int64) {
	w.body = w.body[:0]
	w.body.uint(eventType, counterType)
	w.body.uint(eventTrack, uint64(firstCounter+k))
	w.body.int(eventCounter, w.last[k])
	w.endEvent(ns)
}
