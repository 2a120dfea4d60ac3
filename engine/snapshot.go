package engine

import (
	"gpuscope/engine/graph"
	"gpuscope/engine/measure"
	"gpuscope/trace"
)

// Snapshot is a copy of the results of a step. The next step may overwrite the results, but not the copy.
// Taking a snapshot is cheap and happens on the goroutine that runs the steps. Record turns the snapshot into
// a trace record on any goroutine.
type Snapshot struct {
	r         *Recorder
	index     int
	committed int // number of resizes since the previous snapshot
	shapes    graph.Shapes
	step      stepLog
	scale     measure.TimeScale
	liveBytes int64
}

// Snapshot copies the results of the executor's last step, which must have ended without an error. Call
// Record on every snapshot, in the order in which the snapshots were taken.
func (r *Recorder) Snapshot() *Snapshot {
	s := r.Shapes()
	s.Times()
	return s
}

// Shapes returns a snapshot of the newest step in flight, with its shapes but without its times. After Shapes
// returns, the next step can be prepared. Before another snapshot is taken, the caller must complete this one
// with Times or discard it with Drop.
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

// Times adds the times of the executor's last step, which must be the step of the snapshot. GPU timestamps
// that have not arrived yet are added later, when they arrive. Record must not be called before
// Executor.Settled returns true.
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

// Drop discards the snapshot that was taken last, because its step failed.
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

// Next returns the index that the next recorded step will have.
func (r *Recorder) Next() int { return r.before + r.taken }

// Continue makes this recorder continue the trace of another recorder. The last record of that trace is the
// executor's last step, which has the index n - 1. The next step gets the index n, and its record holds the
// differences from step n - 1. Continue returns the plans now in use.
func (r *Recorder) Continue(n int) []trace.Plan {
	plans, _ := r.Snapshot().Record()
	r.before = n - r.taken
	return plans
}

// Index returns the index of the step that Record returns.
func (s *Snapshot) Index() int { return s.index }

// empty returns an unused snapshot: a recycled one if there is one, or else a new one.
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
