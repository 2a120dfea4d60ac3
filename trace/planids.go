package trace

import "slices"

// PlanMemory is for how many steps an Interner gives a plan its old id back, and for how many a Recorder
// keeps a plan that no step it has names.
const PlanMemory = 1024

// Interner gives plans their ids, 0, 1, 2, ... as they come into force: a plan that was in force not long ago
// gets the id that it had. It forgets plans after PlanMemory steps, so that a run of any length takes
// constant memory. The zero Interner is ready for use.
type Interner struct {
	next        PlanID
	recent, old map[string]PlanID // by content; each is filled for half of PlanMemory
	steps       int
}

// ID is the id of a plan that comes into force. content is all of the plan but the id, in any form that gives
// two plans the same bytes only if they are the same. fresh reports that the id is new: the plan is to be
// recorded with it, before the step that it is in force for.
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

// Step counts a step.
func (in *Interner) Step() {
	if in.steps++; in.steps%(PlanMemory/2) == 0 {
		in.old, in.recent = in.recent, nil
	}
}

// eachPlan calls f for every plan that a step names.
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

// renumber is a step with other plan ids; nothing of the step itself is changed. Where no id changes it is
// the step.
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
