package timeline

import (
	"iter"
	"math"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
)

// AxisEnd is the last instant of the axis, in ns. Trace viewers compute with times in double precision, which
// is exact to the ns up to here (about 104 days). A slice that would start later starts here.
const AxisEnd = 1<<53 - 1

// Kind says what a slice shows.
type Kind uint8

// The kinds of slices. StepSlice and PhaseSlice are times of the host. The others are times of the GPU.
const (
	StepSlice     Kind = iota // a step, from its start until its output is known
	PhaseSlice                // a phase of the host in a step, such as encode
	SpanSlice                 // a step on the GPU, from its first dispatch to its last
	BlockSlice                // dispatches that were timed together
	DispatchSlice             // a dispatch
)

// Slice is a measured time and its place on the axis. NS is always the time that was measured. The drawn
// length is up to 2 ns shorter if another slice starts where this one ends, because trace viewers need a gap
// between slices. If measured times contradict each other, the drawn length can be much shorter.
type Slice struct {
	Kind     Kind
	Name     string // phase of the step, phase of the host, name of the block, or kernel
	From, To int64  // what to draw; if they are equal, there is no room for a slice, only for a mark
	NS       int64  // measured duration in ns
	Lane     int    // 0; higher for a block or a dispatch that starts while the lower lanes are in use
	At       int    // index of a dispatch in Step.Dispatches, or of a block in Step.Blocks; otherwise 0
}

// Drawn reports whether the slice has a length on the axis. A dispatch that took 0 ns has none.
func (s *Slice) Drawn() bool { return s.To > s.From }

// Step holds the slices of a step. Times that were not measured have no slice.
//
// A viewer needs the following tracks to draw a step without overlaps: one for Host, one for the span in GPU,
// and one for each lane of the blocks or dispatches in GPU. Slices are nested only on the track of Host:
// phases are inside their step.
type Step struct {
	*trace.Step
	At       int   // index of the step in Trace.Steps
	From, To int64 // the first and the last instant of the step, on the host or on the GPU
	// Start is the start of the step on the host. Next is the start of the next step on the host, or AxisEnd
	// if this is the last step.
	Start, Next int64
	// Placed reports that the start of the step on the host was measured. If Placed is false, the start was
	// computed from the start on the GPU, or it is assumed to be at the end of the previous step.
	Placed bool
	// GPUPlaced reports that the start of the step on the GPU was measured. If it is false, the GPU starts
	// after the submit.
	GPUPlaced bool
	// ShiftNS is by how much the GPU's slices were moved, in ns. If the GPU seems to start before the submit,
	// this is an error of the clocks, and the slices are moved to the submit.
	ShiftNS int64
	// Host holds a slice for the whole step, if its wall time was measured, and then its phases in order.
	Host []Slice
	// GPU holds a slice for the span of the step, if it was measured, and then the blocks or dispatches,
	// sorted by From.
	GPU []Slice
}

// Launch is what a dispatch slice refers to. Kernel is nil if the trace does not describe the kernel.
type Launch struct {
	Plan     *trace.Plan
	Dispatch *trace.Dispatch
	Op       *trace.Op
	Kernel   *trace.Kernel
}

// Timeline is the time axis of a trace.
type Timeline struct {
	// Placed reports that the start of every step was measured, all by the same clock. If it is false, some
	// steps follow the previous one without a gap.
	Placed bool
	// Shifted is the number of steps whose GPU slices were moved (see Step.ShiftNS).
	Shifted int
	// End is the last instant of all steps.
	End int64

	x      *analyze.Index
	places []place
}

// place is where a step is on the axis.
type place struct {
	host, hostEnd     int64
	gpu, gpuEnd       int64 // the first and the last instant on the GPU, if onGPU is true
	after             int64 // where GPU times without a measured start begin
	shift             int64 // what to add to measured instants of the GPU
	moved             int64 // the part of shift that is Step.ShiftNS
	gpuLimit          int64 // the first instant of a later step on the GPU
	placed, gpuPlaced bool
	onGPU             bool
}

// New returns the time axis of a trace. It reads each recorded dispatch once and creates no slices.
func New(x *analyze.Index) *Timeline {
	t := &Timeline{x: x, places: make([]place, len(x.Trace.Steps)), Placed: true}
	base := int64(0) // what to add to measured instants of the host
	cursor, hostCursor, last := int64(0), int64(-math.MaxInt64), int64(-math.MaxInt64)
	origin := int64(math.MaxInt64)
	for i := range t.places {
		s, p := &x.Trace.Steps[i], &t.places[i]
		begin, known := beginOf(s)
		p.placed = analyze.Measured(s.CPU.StartNS)
		switch {
		case !known:
			p.host = cursor
		case analyze.Add(begin, base) < last:
			// The clock was restarted together with the engine. The step follows the previous one.
			base, p.host = analyze.Add(cursor, -begin), cursor
			t.Placed = false
		case p.placed:
			p.host = analyze.Add(begin, base)
		default:
			p.host = max(hostCursor, analyze.Add(begin, base))
		}
		last = p.host
		p.hostEnd = analyze.Add(p.host, hostNS(&s.CPU))
		t.placeGPU(s, p, base)
		hostCursor, cursor = p.hostEnd, p.hostEnd
		origin = min(origin, p.host)
		if p.onGPU {
			origin, cursor = min(origin, p.gpu), max(cursor, p.gpuEnd)
		}
		t.Placed = t.Placed && p.placed
		if p.moved > 0 {
			t.Shifted++
		}
	}
	limit := int64(AxisEnd)
	for i := len(t.places) - 1; i >= 0; i-- {
		p := &t.places[i]
		p.shift, p.gpuLimit = analyze.Add(p.shift, -origin), limit
		for _, at := range []*int64{&p.host, &p.hostEnd, &p.gpu, &p.gpuEnd, &p.after} {
			*at = onAxis(analyze.Add(*at, -origin))
		}
		t.End = max(t.End, p.hostEnd)
		if p.onGPU {
			limit, t.End = p.gpu, max(t.End, p.gpuEnd)
		}
	}
	return t
}

func onAxis(at int64) int64 { return min(max(at, 0), AxisEnd) }

// beginOf returns the instant at which a step begins on the host. If it was not measured, it is computed from
// the start of the GPU, which is assumed to start directly after the submit.
func beginOf(s *trace.Step) (at int64, known bool) {
	if at, known = s.CPU.StartNS.NS(); known {
		return at, true
	}
	if at, known = gpuBegin(s); known {
		return analyze.Add(at, -Submitted(&s.CPU)), true
	}
	return 0, false
}

// hostNS returns how long the host worked on a step.
func hostNS(c *trace.CPU) int64 {
	total, ok := c.TotalNS.NS()
	if ok {
		return max(0, total)
	}
	for p := range Phases(c) {
		total = analyze.Add(p.At, p.NS)
	}
	return total
}

// Phase is a phase of the host in a step. At is its start in ns from the start of the step.
type Phase struct {
	Name   string
	At, NS int64
}

// Phases returns the phases of the host in a step that were measured. They are assumed to follow each other
// in this order. A wait is one phase, even if submits interrupted it.
func Phases(c *trace.CPU) iter.Seq[Phase] {
	return func(yield func(Phase) bool) {
		at := int64(0)
		for _, part := range [...]struct {
			name string
			time trace.Time
		}{
			{"resize", c.ResizeNS},
			{"upload", c.UploadNS},
			{"encode", c.EncodeNS},
			{Submit, c.SubmitNS},
			{Wait, c.WaitNS},
			{"sample", c.SampleNS},
		} {
			ns, ok := part.time.NS()
			if !ok || ns <= 0 {
				continue
			}
			if !yield(Phase{part.name, at, ns}) {
				return
			}
			at = analyze.Add(at, ns)
		}
	}
}

// Names of phases.
const (
	Submit = "submit" // the host submits commands to the GPU
	Wait   = "wait"   // the host waits for the results
)

// Submitted returns the time from the start of a step until its submit has ended, in ns: the sum of the
// phases up to the submit.
func Submitted(c *trace.CPU) int64 {
	c = &trace.CPU{ResizeNS: c.ResizeNS, UploadNS: c.UploadNS, EncodeNS: c.EncodeNS, SubmitNS: c.SubmitNS}
	return hostNS(c)
}

// Trace returns the trace of the axis.
func (t *Timeline) Trace() *trace.Trace { return t.x.Trace }

// Workgroups returns the sums over the dispatches of a step: the workgroups that its shapes need, and the
// launched ones.
func (t *Timeline) Workgroups(s *Step) (needed, launched int64) {
	for i := range s.Dispatches {
		p := &t.x.Trace.Plans[s.Dispatches[i].Plan]
		needed = analyze.Add(needed, p.NeededGroups)
		launched = analyze.Add(launched, analyze.Product(p.Workgroups))
	}
	return needed, launched
}

// Launch returns what a dispatch slice of a step refers to.
func (t *Timeline) Launch(s *Step, slice *Slice) Launch {
	tr := t.x.Trace
	p := &tr.Plans[s.Dispatches[slice.At].Plan]
	d := &tr.Graph.Dispatches[p.Dispatch]
	return Launch{Plan: p, Dispatch: d, Op: &tr.Graph.Ops[d.Op], Kernel: t.x.Kernel(p.Kernel)}
}
