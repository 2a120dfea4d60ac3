package trace

import "slices"

// PlanMemory is the maximum number of steps for which an Interner remembers the id of a plan that is not in
// use. A Recorder keeps a plan for PlanMemory steps even if no kept step refers to the plan.
const PlanMemory = 1024

// Interner assigns the ids 0, 1, 2, ... to plans in the order in which they are first passed to ID. A plan
// that was passed recently gets its earlier id. The Interner forgets plans after PlanMemory steps, so that a
// run of any length needs constant memory. The zero Interner is ready for use.
type Interner struct {
	next PlanID
	// ids by plan content. Every PlanMemory/2 steps, recent becomes old and a new recent begins.
	recent, old map[string]PlanID
	steps       int
}

// ID returns the id of a plan that a dispatch begins to use. The argument content encodes the whole plan
// except for its id, so different plans must have different content. If fresh is true, the id is new, and the
// caller must record the plan under this id before the step that uses the plan.
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

// eachPlan calls f for every plan id that the step refers to.
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

// renumber returns a copy of the step in which to(id) replaces each plan id. The original step is not
// changed. If no id changes, renumber returns the step itself.
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
