package engine

import (
	"slices"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/engine/measure"
	"gpuscope/trace"
)

// Barriers that stay. A barrier goes with the dispatches that made it necessary. Where a link of a chain is
// left out of a step, what stood before it would so overlap with what follows it, which neither a
// faster link gives nor another that takes its work over: the rows of a chain would cost more than the whole
// step. So what a step does level by level stays apart: where a level has no barrier before it any more, an
// empty dispatch begins it that may write what the dispatch before it wrote. It runs beside what the level
// begins with, so it adds no level.

// stay is an empty dispatch before another, in place of a barrier that would go.
type stay struct {
	before trace.DispatchID
	empty  measure.Metered
}

// stayer finds the barriers that go with sets of dispatches.
type stayer struct {
	measure.Meter
	live     *graph.Live
	buffers  []gpu.Buffer
	kernel   *graph.Kernel
	pipe     gpu.Pipeline
	groups   map[int]gpu.BindGroup // by index of buffers
	barriers gpu.Barriers
}

func (x *Executor) newStayer(empty *graph.Kernel) (*stayer, error) {
	s := &stayer{
		Meter: measure.Meter{Dev: x.dev}, live: x.live, buffers: x.buffers,
		kernel: empty, groups: map[int]gpu.BindGroup{},
	}
	var err error
	s.pipe, err = s.Compile(empty)
	return s, err
}

// stepLevel is one level of the step, as far as it is still run.
type stepLevel struct {
	first  trace.DispatchID
	before int  // buffer that the dispatch before the level writes; -1 at the beginning of a submit
	apart  bool // a barrier still separates it from the level before
}

// without lists the barriers that one submit of a run needs to stay as it is without the dispatches left.
func (s *stayer) without(left []bool, run []trace.DispatchID) (list []stay, err error) {
	b := &s.barriers
	b.Begin()
	pass, level, wrote := -1, -1, -1 // of the dispatch at hand
	opens := 0                       // index of the level with which the current pass begins
	var levels []stepLevel
	for _, id := range run {
		if left[id] {
			continue
		}
		if here := s.level(id); here != level {
			level, levels = here, append(levels, stepLevel{id, wrote, wrote < 0})
		}
		if here := s.live.Pass(id); here != pass {
			b.EndPass()
			b.BeginPass()
			pass, opens = here, len(levels)-1
		}
		d, n := &s.live.G.Dispatches[id], b.Levels()
		use := s.live.G.Ops[d.Op].Use(d.Slot, s.live.Plans[d.Op].Route)
		for i, bind := range use.Bind {
			buffer, access := s.live.Memory(bind.Value), use.Kernel.Storage[i].Access
			if b.Touch(buffer, access); access == gpu.ReadWrite {
				wrote = buffer
			}
		}
		if b.Levels() > n { // the library moves this barrier to the beginning of the pass
			levels[opens].apart = true
			n++
		}
		if b.Dispatch(); b.Levels() > n {
			levels[len(levels)-1].apart = true
		}
	}
	for _, l := range levels {
		if l.apart {
			continue
		}
		empty, err := s.writes(l.before)
		if err != nil {
			return nil, err
		}
		list = append(list, stay{l.first, empty})
	}
	return list, nil
}

// level is how many levels of the step have begun with a dispatch.
func (s *stayer) level(id trace.DispatchID) int {
	n, begins := slices.BinarySearch(s.live.Levels(), id)
	if begins {
		n++
	}
	return n
}

// writes is the empty dispatch that may write a buffer.
func (s *stayer) writes(buffer int) (measure.Metered, error) {
	group, ok := s.groups[buffer]
	if !ok {
		var err error
		if group, err = s.Group(s.kernel, s.pipe, s.buffers[buffer]); err != nil {
			return measure.Metered{}, err
		}
		s.groups[buffer] = group
	}
	return measure.Metered{Pipe: s.pipe, Group: group}, nil
}
