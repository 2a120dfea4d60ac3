package engine

import (
	"slices"

	"gpuscope/engine/gpu"
	"gpuscope/trace"
)

// Barriers that stay. A barrier goes with the dispatches that made it necessary. Where a link of a chain is
// left out of a step, what stood before it would so overlap with what stands behind it, which neither a
// faster link gives nor another that takes its work over: the rows of a chain would cost more than the whole
// step. So what a step does level by level stays apart: where a level has no barrier before it any more, an
// empty dispatch begins it that may write what the dispatch before it wrote. It runs beside what the level
// begins with, so it adds no level.

// stay is an empty dispatch before another, in place of a barrier that would go.
type stay struct {
	before trace.DispatchID
	empty  metered
}

// stayer finds the barriers that go with sets of dispatches.
type stayer struct {
	meter
	live     *Live
	buffers  []gpu.Buffer
	kernel   *Kernel
	pipe     gpu.Pipeline
	groups   map[int]gpu.BindGroup // by index of buffers
	barriers gpu.Barriers
}

func (x *Executor) newStayer(empty *Kernel) (*stayer, error) {
	s := &stayer{
		meter: meter{dev: x.dev}, live: x.live, buffers: x.buffers,
		kernel: empty, groups: map[int]gpu.BindGroup{},
	}
	var err error
	s.pipe, err = s.compile(empty)
	return s, err
}

// without lists the barriers that one submit of a run needs to stay as it is without the dispatches left.
func (s *stayer) without(left []bool, run []trace.DispatchID) (list []stay, err error) {
	b := &s.barriers
	b.Begin()
	pass, level, first := -1, -1, trace.DispatchID(-1) // of the dispatch at hand; the first of its level
	wrote, before, apart := -1, -1, true               // buffers: of it, and of the one before its level
	end := func() error {
		if apart {
			return nil
		}
		empty, err := s.writes(before)
		list = append(list, stay{first, empty})
		return err
	}
	for _, id := range run {
		if left[id] {
			continue
		}
		if here := s.live.pass(id); here != pass {
			b.EndPass()
			b.BeginPass()
			pass = here
		}
		if here := s.level(id); here != level {
			if err := end(); err != nil {
				return nil, err
			}
			level, first, before, apart = here, id, wrote, wrote < 0
		}
		d, levels := &s.live.g.dispatches[id], b.Levels()
		use := s.live.g.ops[d.op].use(d.slot, s.live.plans[d.op].route)
		for i, bind := range use.Bind {
			buffer, access := s.live.memory(bind.Value), use.Kernel.Storage[i].Access
			if b.Touch(buffer, access); access == gpu.ReadWrite {
				wrote = buffer
			}
		}
		b.Dispatch()
		apart = apart || b.Levels() > levels
	}
	return list, end()
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
func (s *stayer) writes(buffer int) (metered, error) {
	group, ok := s.groups[buffer]
	if !ok {
		var err error
		if group, err = s.group(s.kernel, s.pipe, s.buffers[buffer]); err != nil {
			return metered{}, err
		}
		s.groups[buffer] = group
	}
	return metered{s.pipe, group}, nil
}
