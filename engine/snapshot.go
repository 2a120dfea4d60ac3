package engine

import "gpuscope/trace"

// Snapshot is what a step left behind, copied so that the next step can begin. Taking one is cheap and is
// done on the goroutine of the steps; Record makes of it what a trace has, on any goroutine.
type Snapshot struct {
	r     *Recorder
	index int
	first bool // of its recorder
	// missed: steps that nobody recorded have moved shapes since the snapshot before, and log starts from
	// theirs.
	missed    bool
	committed int // resizes since the snapshot before
	log       ResizeLog
	inputs    inputState
	// Levels and waits as they are, where they may be others than at the snapshot before.
	levels    []trace.DispatchID
	waits     []trace.Wait
	relisted  bool
	edited    editedPlans
	step      stepLog
	scale     timeScale
	liveBytes int64
}

// inputState is what the inputs of a graph are: all that its live shapes follow from. Lists run over the
// graph's inputs one behind the other.
type inputState struct {
	dims []int
	ints []int64
	host []int64
}

// take makes it the state of the graph as it is in force.
func (s *inputState) take(l *Live) {
	s.dims, s.ints, s.host = s.dims[:0], s.ints[:0], s.host[:0]
	for _, v := range l.g.inputs {
		switch val := &l.g.values[v]; {
		case val.kind == symInt:
			s.ints = append(s.ints, l.now.ints[v])
		default:
			s.dims = append(s.dims, l.now.dims[v]...)
			s.host = append(s.host, l.now.host[v]...)
		}
	}
}

func (s *inputState) copyFrom(t *inputState) {
	s.dims, s.ints = append(s.dims[:0], t.dims...), append(s.ints[:0], t.ints...)
	s.host = append(s.host[:0], t.host...)
}

// give sets the inputs of a graph to the state.
func (s *inputState) give(l *Live) error {
	dims, ints, host := s.dims, s.ints, s.host
	for _, v := range l.g.inputs {
		val := &l.g.values[v]
		if val.kind == symInt {
			if err := l.SetInt(v, ints[0]); err != nil {
				return err
			}
			ints = ints[1:]
			continue
		}
		rank := len(val.maxDims)
		if err := l.SetDims(v, dims[:rank]...); err != nil {
			return err
		}
		if val.hostRead {
			n := numel(dims[:rank])
			if err := l.SetHost(v, host[:n]); err != nil {
				return err
			}
			host = host[n:]
		}
		dims = dims[rank:]
	}
	return nil
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
	s.first = r.taken == 0
	s.index = r.before + r.taken
	r.taken++
	committed := x.resizes - r.resizes
	s.committed, s.missed = committed, committed > min(len(x.live.log.passes), 1)
	r.resizes = x.resizes
	s.log.copyFrom(&x.live.log)
	s.inputs.take(x.live)
	x.live.listDispatches()
	if s.relisted = r.listed != x.live.listed; s.relisted {
		r.listed = x.live.listed
		s.levels = append(s.levels[:0], x.live.levels...)
		s.waits = append(s.waits[:0], x.live.waits...)
	}
	s.edited.take(x, &r.edits)
	if committed > 0 || s.first {
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
		s.scale = x.clock.scale
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
	if len(s.edited.plans) > 0 {
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

// replan makes the log of a snapshot the one that its resize would have had, had it followed the snapshot
// before: on live shapes of the recorder's own, which go the same way. Its times are not the step's, so that
// log has none.
func (r *Recorder) replan(s *Snapshot) error {
	if r.shadow == nil {
		var err error
		options := LiveOptions{Static: r.x.live.static, MaxPasses: r.x.live.maxPasses}
		if r.shadow, err = NewLive(r.x.g, options); err != nil {
			return err
		}
	}
	l := r.shadow
	l.order = Topological
	if err := l.moveTo(&r.inputs); err != nil {
		return err
	}
	l.order = r.x.live.order
	err := l.moveTo(&s.inputs)
	if err != nil && l.order == Fixpoint { // which may not converge from everywhere
		l.order = Topological
		err = l.moveTo(&s.inputs)
	}
	if err == nil {
		s.log.copyFrom(&l.log)
		s.log.untimed = true
	}
	return err
}

// moveTo resizes a graph to a state of its inputs.
func (l *Live) moveTo(s *inputState) error {
	if err := s.give(l); err != nil {
		l.Discard()
		return err
	}
	err := l.Propagate()
	if err == nil {
		l.Commit()
	}
	return err
}
