package trace

import "slices"

// PlanMemory is the largest number of steps for which an Interner remembers the id of an unused plan. A
// PlanTable remembers unused plans for the same number of steps.
const PlanMemory = 1024

// Interner gives ids to plans. The ids are 0, 1, 2, ... in the order in which plans are first passed to ID. A
// plan that was used recently has the same id as before. The Interner forgets plans that have not been used
// for PlanMemory steps, so its memory does not grow with the length of the run. The zero Interner is ready to
// use.
type Interner struct {
	next PlanID
	// These maps hold the ids of plans. The key is the content of a plan. After every PlanMemory/2 steps,
	// recent becomes old, and a new recent begins.
	recent, old map[string]PlanID
	steps       int
}

// ID returns the id of a plan that a dispatch begins to use. `content` is an encoding of the plan without its
// id; plans that differ must have different content. If `fresh` is true, the id is new. The caller must then
// record the plan with this id before the step that uses it.
func (in *Interner) ID(content []byte) (id PlanID, fresh bool) {
	if id, ok := in.recent[string(content)]; ok {
		return id, false
	}
	if in.recent == nil {
		in.recent = map[string]PlanID{}
	}
	id, ok := in.old[string(content)]
	if !ok {
		id = in.next
		in.next++
	}
	in.recent[string(content)] = id
	return id, !ok
}

// Step tells the Interner that a step has ended.
func (in *Interner) Step() {
	if in.steps++; in.steps%(PlanMemory/2) == 0 {
		in.old, in.recent = in.recent, nil
	}
}

// eachPlan calls f with every plan id in the step.
func (s *Step) eachPlan(f func(PlanID)) {
	for i := range s.Dispatches {
		f(s.Dispatches[i].Plan)
	}
	for i := range s.Resize.Passes {
		for j := range s.Resize.Passes[i].Hooks {
			for _, c := range s.Resize.Passes[i].Hooks[j].Plans {
				if c.From != nil {
					f(*c.From)
				}
				if c.To != nil {
					f(*c.To)
				}
			}
		}
	}
}

// renumber returns a copy of the step in which each plan id is replaced by to(id). It does not change the
// original. If all ids stay the same, it returns the step without copying its lists.
func (s Step) renumber(to func(PlanID) PlanID) Step {
	same := true
	s.eachPlan(func(id PlanID) { same = same && to(id) == id })
	if same {
		return s
	}
	s.Dispatches = slices.Clone(s.Dispatches)
	for i := range s.Dispatches {
		s.Dispatches[i].Plan = to(s.Dispatches[i].Plan)
	}
	moved := func(id *PlanID) *PlanID {
		if id == nil {
			return nil
		}
		n := to(*id)
		return &n
	}
	s.Resize.Passes = slices.Clone(s.Resize.Passes)
	for i := range s.Resize.Passes {
		p := &s.Resize.Passes[i]
		p.Hooks = slices.Clone(p.Hooks)
		for j := range p.Hooks {
			h := &p.Hooks[j]
			h.Plans = slices.Clone(h.Plans)
			for k := range h.Plans {
				h.Plans[k] = PlanChange{From: moved(h.Plans[k].From), To: moved(h.Plans[k].To)}
			}
		}
	}
	return s
}
