package engine

import (
	"sync"

	"gpuscope/engine/graph"
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

	shapes *graph.Tracer
	blocks []string // by dispatch: name of its block
}

// NewRecorder starts recording an executor, at the plans now in force.
func NewRecorder(x *Executor) *Recorder {
	return &Recorder{
		x: x, resizes: x.resizes, edits: x.edits.changes, blocks: x.g.BlockNames(),
		shapes: graph.NewTracer(x.live, x.edits.names),
	}
}

// Record is the step as a trace has it, and the plans that are new with it. The snapshot must not be used
// afterwards.
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

// times fills in what was measured, at the level at which it was.
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
