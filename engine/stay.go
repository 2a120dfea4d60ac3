package engine

import (
	"slices"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/engine/measure"
	"gpuscope/trace"
)

// Skipping a dispatch also removes the barriers that the dispatch made necessary. If one link of a chain of
// dispatches is skipped, the dispatches before and after the link can overlap. Neither a faster kernel for
// the link nor fusing the link into another dispatch would allow this overlap. If skipping allowed it, the
// measured costs of the dispatches of a chain would add up to more than the time of the whole step.
//
// Therefore, levels must not overlap even if dispatches are skipped. If a level has lost the barrier before
// it, a placeholder is inserted at the start of the level. A placeholder is an empty dispatch that binds,
// as writable, the buffer that the previous dispatch wrote. This restores the barrier. The placeholder runs
// in parallel with the first dispatches of the level, so it adds no level.

// stay is a placeholder dispatch that restores a barrier. The placeholder runs right before the first
// dispatch of its level. The field `before` names this dispatch.
type stay struct {
	before trace.DispatchID
	empty  measure.Metered
}

// stayer finds the barriers that disappear when sets of dispatches are skipped.
type stayer struct {
	measure.Meter
	live     *graph.Live
	buffers  []gpu.Buffer
	kernel   *graph.Kernel
	pipe     gpu.Pipeline
	groups   map[int]gpu.BindGroup // indexed like buffers
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

// stepLevel is one level of the step, without the dispatches that are skipped.
type stepLevel struct {
	first  trace.DispatchID
	before int  // buffer that the previous dispatch wrote; -1 at the start of a submit
	apart  bool // even without a placeholder, a barrier separates this level from the previous one
}

// without returns the placeholder dispatches that one submit needs while the dispatches marked in `left`
// are skipped. The placeholders keep the levels of the submit separate. `run` holds all dispatches of the
// submit, including the skipped ones.
func (s *stayer) without(left []bool, run []trace.DispatchID) (list []stay, err error) {
	b := &s.barriers
	b.Begin()
	pass, level, wrote := -1, -1, -1 // of the current dispatch: pass, level and the last buffer written
	opens := 0                       // index of the current pass's first level
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
			buffer, access := s.live.Buffer(bind.Value), use.Kernel.Storage[i].Access
			if b.Touch(buffer, access); access == gpu.ReadWrite {
				wrote = buffer
			}
		}
		if b.Levels() > n { // the GPU library inserts this barrier before the pass
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

// level returns the number of the level that a dispatch belongs to, where 1 is the first level of the step.
func (s *stayer) level(id trace.DispatchID) int {
	n, begins := slices.BinarySearch(s.live.Levels(), id)
	if begins {
		n++
	}
	return n
}

// writes returns a placeholder dispatch that binds the given buffer as writable.
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
