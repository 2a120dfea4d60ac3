package engine

import (
	"sync"

	"gpuscope/engine/graph"
	"gpuscope/trace"
)

// Recorder turns the steps of an executor into trace records. Each snapshot results in one trace.Step, and
// in a trace.Plan for each plan that is new. The record of a step contains the differences from the
// previously recorded step, even if unrecorded steps ran in between. The memory of a Recorder does not grow
// with the number of steps.
//
// Take snapshots on the goroutine that runs the steps. Record may run on another goroutine, but only one
// goroutine at a time may call Record.
type Recorder struct {
	x *Executor

	// The fields up to liveBytes hold the values from the last snapshot.
	before    int // number of steps that an earlier recorder recorded (see Continue)
	taken     int
	resizes   int // Executor.resizes at the last snapshot
	listed    int // Live.listed at the last snapshot
	edits     int // edits.changes of the executor at the last snapshot
	liveBytes int64

	mu   sync.Mutex
	free []*Snapshot

	shapes *graph.Tracer
	blocks []string // name of the block of each dispatch
}

// NewRecorder returns a recorder of an executor. Recording starts from the plans now in use.
func NewRecorder(x *Executor) *Recorder {
	return &Recorder{
		x: x, resizes: x.resizes, edits: x.edits.changes, blocks: x.g.BlockNames(),
		shapes: graph.NewTracer(x.live, x.edits.names),
	}
}

// Record returns the trace record of the step and the plans that first appear in it. The snapshot must not be
// used after Record.
func (s *Snapshot) Record() ([]trace.Plan, trace.Step) {
	r := s.r
	step := trace.Step{
		Index: s.index, Timing: s.step.timing.Level(), Cold: s.step.cold, Pipelined: s.step.pipelined,
	}
	plans := r.shapes.Record(&s.shapes, &step)
	s.times(&step)
	step.CPU = s.step.cpu()
	if s.step.timing != TimingOff {
		c := r.x.clock
		step.CPU.StartNS = trace.Measured(c.SinceStart(s.step.start))
		step.CPU.SubmittedNS = trace.Measured(c.SinceStart(s.step.begun))
		step.CPU.DoneNS = trace.Measured(c.SinceStart(s.step.ended))
	}
	if s.shapes.First {
		step.CPU.Compiled = r.x.compiled
		step.CPU.BindGroups += r.x.boundN
	}
	step.Memory = trace.Memory{LiveBytes: s.liveBytes, AllocatedBytes: r.x.allocated}
	r.recycle(s)
	return plans, step
}

// CPU returns the time that the host spent in the last step, and the number of its GPU calls.
func (x *Executor) CPU() trace.CPU { return x.last.cpu() }

func (s *stepLog) cpu() trace.CPU {
	if !s.ran { // without a device, only the resize is timed
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

// times fills in the GPU times that were measured at the step's timing level.
func (s *Snapshot) times(step *trace.Step) {
	ticks, c := s.step.ticks, &s.scale
	if len(ticks) < 2 {
		return
	}
	first, last := ticks[0], ticks[len(ticks)-1]
	step.GPU = &trace.GPU{StartNS: c.Instant(first), SpanNS: c.Duration(first, last)}
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
		start, took := c.Instant(begin), c.Duration(begin, end)
		if d := &step.Dispatches[at]; step.Blocks != nil {
			step.Blocks[i] = trace.Block{
				Name: s.r.blocks[s.r.shapes.Ran(at)], Dispatches: n, StartNS: start, GPUNS: took, Raw: raw,
			}
		} else {
			d.StartNS, d.GPUNS, d.Raw = start, took, raw
		}
		ns, _ := took.NS()
		busy += ns
		at += n
	}
	if c.Known() {
		step.GPU.BusyNS = trace.Measured(busy)
	}
}
