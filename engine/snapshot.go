package engine

import (
	"gpuscope/engine/graph"
	"gpuscope/engine/measure"
	"gpuscope/trace"
)

// Snapshot is what a step left, copied so that the next step can begin. Taking one is cheap and is
// done on the goroutine of the steps; Record makes of it what a trace has, on any goroutine.
type Snapshot struct {
	r         *Recorder
	index     int
	committed int // resizes since the snapshot before
	shapes    graph.Shapes
	step      stepLog
	scale     measure.TimeScale
	liveBytes int64
}

// Snapshot copies what the executor did in its last step, which ended well. Every snapshot has its Record,
// in the order in which they were taken.
func (r *Recorder) Snapshot() *Snapshot {
	s := r.Shapes()
	s.Times()
	return s
}

// Shapes is a snapshot of a step that is on its way, the one whose shapes are in force, without what it
// takes. The next step can be prepared then. Times completes it, or Drop gives it up, before another is
// taken.
func (r *Recorder) Shapes() *Snapshot {
	x := r.x
	s := r.empty()
	first := r.taken == 0
	s.index = r.before + r.taken
	r.taken++
	committed := x.resizes - r.resizes
	s.committed = committed
	r.resizes = x.resizes
	s.shapes.Take(x.live, &r.listed)
	s.shapes.First, s.shapes.Missed = first, committed > min(x.live.Log().Passes(), 1)
	s.shapes.Edited = x.edits.names
	if r.edits != x.edits.changes {
		r.edits = x.edits.changes
		s.shapes.TakePlans(x.live)
	}
	if committed > 0 || first {
		r.liveBytes = x.live.LiveBytes()
	}
	s.liveBytes = r.liveBytes
	return s
}

// Times adds what the executor's last step took, which is the snapshot's. Where its timestamps are still to
// come they are added when they do: it has no Record before Executor.Settled.
func (s *Snapshot) Times() {
	x := s.r.x
	ticks, runs := append(s.step.ticks[:0], x.last.ticks...), append(s.step.runs[:0], x.last.runs...)
	s.step = x.last.stepLog
	s.step.ticks, s.step.runs, s.step.read = ticks, runs, nil
	if x.clock != nil {
		s.scale = x.clock.Scale
	}
	if l := x.last.line(); l != nil {
		l.snapshot = s
	}
}

// Drop gives up the snapshot that was taken last, of a step that did not end well.
func (s *Snapshot) Drop() {
	r := s.r
	r.taken--
	r.resizes -= s.committed
	r.listed = -1
	if s.shapes.HasPlans() {
		r.edits = -1
	}
	r.recycle(s)
}

// Next is the index that the next step to be recorded has.
func (r *Recorder) Next() int { return r.before + r.taken }

// Continue takes the executor's last step for step n - 1, which another recorder has told: the next one, n,
// is told from there. It returns the plans in force.
func (r *Recorder) Continue(n int) []trace.Plan {
	plans, _ := r.Snapshot().Record()
	r.before = n - r.taken
	return plans
}

// Index is that of the step that Record makes.
func (s *Snapshot) Index() int { return s.index }

// empty is a snapshot whose memory is used again, where there is one.
func (r *Recorder) empty() *Snapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.free); n > 0 {
		s := r.free[n-1]
		r.free = r.free[:n-1]
		return s
	}
	return &Snapshot{r: r}
}

func (r *Recorder) recycle(s *Snapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free = append(r.free, s)
}
