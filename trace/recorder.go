package trace

import (
	"fmt"
	"slices"
	"sync"
	"unsafe"
)

// DefaultBudget is how many bytes of steps and plans a Recorder keeps.
const DefaultBudget = 256 << 20

// Recorder collects the steps of a run within a budget of bytes: where it is reached the oldest steps go, with the plans that no other step
// names, and the trace stays right without them.
//
// Its methods may be called from any goroutine. What Snapshot returns never changes: what is recorded later is in a later snapshot.
//
// A plan has two ids. AddPlan counts up from 0 and its ids stay: they are good for AddStep, for a stream and for whoever follows the run step by step. The
// trace of a snapshot numbers the plans that it has, so there ids move when plans are dropped.
type Recorder struct {
	mu     sync.Mutex
	t      Trace
	budget int64
	used   int64
	known  map[Plan]PlanID // the id that AddPlan gave, by content (ID 0), of the plans in t
	given  []PlanID        // the same, by place in t.Plans
	places []PlanID        // by the id that AddPlan gave: the place in t.Plans, -1 where it was dropped
}

// NewRecorder starts from the head of a trace, which says all but plans and steps. A budget of 0 is DefaultBudget.
func NewRecorder(head *Trace, budget int64) *Recorder {
	if budget <= 0 {
		budget = DefaultBudget
	}
	r := &Recorder{t: *head, budget: budget, known: map[Plan]PlanID{}}
	r.t.Schema, r.t.Plans, r.t.Steps, r.t.DroppedSteps = Schema, nil, nil, 0
	r.t.Events = slices.Clone(head.Events)
	return r
}

// AddPlan records a plan as it comes into force and returns its id, whatever p.ID is. added is false where the same plan is there already. An id is
// good until the steps that use it are dropped; so call AddPlan whenever a plan comes into force, however often it was before.
func (r *Recorder) AddPlan(p Plan) (id PlanID, added bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.ID = 0
	if id, ok := r.known[p]; ok {
		return id, false
	}
	id = PlanID(len(r.places))
	r.known[p] = id
	r.places = append(r.places, PlanID(len(r.t.Plans)))
	r.given = append(r.given, id)
	p.ID = PlanID(len(r.t.Plans))
	r.t.Plans = append(r.t.Plans, p)
	r.used += p.size()
	return id, true
}

// AddStep records a step, whose plans have the ids that AddPlan gave. The recorder keeps its slices: they must not be changed any more.
func (r *Recorder) AddStep(s Step) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.t.Steps); n > 0 && s.Index <= r.t.Steps[n-1].Index {
		return fmt.Errorf("record step %d: step %d is there already", s.Index, r.t.Steps[n-1].Index)
	}
	var missing error
	s = s.renumber(func(id PlanID) PlanID {
		if id < 0 || int(id) >= len(r.places) || r.places[id] < 0 {
			missing = fmt.Errorf("record step %d: there is no plan %d; add a plan when it comes into force", s.Index, id)
			return id
		}
		return r.places[id]
	})
	if missing != nil {
		return missing
	}
	r.t.Steps = append(r.t.Steps, s)
	if r.used += s.size(); r.used > r.budget {
		r.drop()
	}
	return nil
}

// AddSamples records the times of a step that was repeated in place.
func (r *Recorder) AddSamples(s Samples) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.t.Steps = slices.Clone(r.t.Steps) // snapshots hold the old list
	if err := r.t.addSamples(s); err != nil {
		return fmt.Errorf("record repeats: %w", err)
	}
	for _, samples := range s.Samples {
		r.used += 8 * int64(len(samples))
	}
	return nil
}

// AddEvent records something that happened.
func (r *Recorder) AddEvent(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.t.Events = append(r.t.Events, e)
}

// SetObserver records what timing costs.
func (r *Recorder) SetObserver(o Observer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.t.Observer = &o
}

// SetCeilings records what the device was measured to do.
func (r *Recorder) SetCeilings(c Ceilings) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.t.Device.Ceilings = &c
}

// SetClock records the relation of the GPU's clock to the host's.
func (r *Recorder) SetClock(c Clock) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.t.Clock = c
}

// Snapshot is the trace as it is now.
func (r *Recorder) Snapshot() *Trace {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.t
	t.Plans, t.Steps, t.Events = slices.Clip(t.Plans), slices.Clip(t.Steps), slices.Clip(t.Events)
	return &t
}

// drop makes room for a quarter of the budget, by the oldest steps and the plans that only they name. The last step always stays. New lists take the place
// of the old, which snapshots may hold.
func (r *Recorder) drop() {
	needed := make([]bool, len(r.t.Plans))
	first, used := len(r.t.Steps), int64(0)
	for first > 0 {
		s := &r.t.Steps[first-1]
		size := s.size()
		s.eachPlan(func(id PlanID) {
			if !needed[id] {
				needed[id] = true
				size += r.t.Plans[id].size()
			}
		})
		if first < len(r.t.Steps) && used+size > r.budget*3/4 {
			break
		}
		first, used = first-1, used+size
	}
	if first == 0 {
		r.used = used
		return
	}
	clear(needed) // those of the step that went over are marked too
	for i := range r.t.Steps[first:] {
		r.t.Steps[first+i].eachPlan(func(id PlanID) { needed[id] = true })
	}
	moved := r.keepPlans(needed)
	steps := make([]Step, 0, len(r.t.Steps)-first)
	for i := first; i < len(r.t.Steps); i++ {
		steps = append(steps, r.t.Steps[i].renumber(func(id PlanID) PlanID { return moved[id] }))
	}
	steps[0].Dims, steps[0].Levels = inherited(r.t.Steps[:first+1])
	r.t.Steps, r.used = steps, used
	r.t.DroppedSteps += first
}

// keepPlans drops the plans that are not needed and returns the new place of each of the others.
func (r *Recorder) keepPlans(needed []bool) (moved []PlanID) {
	var plans []Plan
	var given []PlanID
	moved = make([]PlanID, len(needed))
	clear(r.known)
	for i, p := range r.t.Plans {
		id := r.given[i]
		if !needed[i] {
			moved[i], r.places[id] = -1, -1
			continue
		}
		p.ID = 0
		r.known[p] = id
		p.ID = PlanID(len(plans))
		moved[i], r.places[id] = p.ID, p.ID
		plans, given = append(plans, p), append(given, id)
	}
	r.t.Plans, r.given = plans, given
	return moved
}

// inherited is what the last of several steps must say of dims and levels when it stands without the others: all that they changed.
func inherited(steps []Step) (dims []LiveDims, levels []DispatchID) {
	latest := map[ValueID]int{} // place in dims
	for i := range steps {
		for _, d := range steps[i].Dims {
			if k, ok := latest[d.Value]; ok {
				dims[k] = d
				continue
			}
			latest[d.Value] = len(dims)
			dims = append(dims, d)
		}
		if len(steps[i].Levels) > 0 {
			levels = steps[i].Levels
		}
	}
	return dims, levels
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

// renumber is a step with other plan ids; nothing of the step itself is changed. Where no id changes it is the step.
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

// size is about how many bytes of memory a plan holds, with its place in the recorder's map.
func (p *Plan) size() int64 {
	return 2*int64(unsafe.Sizeof(*p)) + int64(len(p.Params)+len(p.Reason))
}

// size is about how many bytes of memory a step holds.
func (s *Step) size() int64 {
	n := int64(unsafe.Sizeof(*s)) + listSize(s.Tokens) + listSize(s.Dims) + listSize(s.Levels) + listSize(s.Top) + listSize(s.Dispatches) +
		int64(len(s.Text)) + 64*int64(len(s.SymInts)+len(s.Sampling)) + listSize(s.CPU.Compiled)
	for i := range s.Dispatches {
		d := &s.Dispatches[i]
		n += listSize(d.Samples)
		if d.Raw != nil {
			n += int64(unsafe.Sizeof(*d.Raw)) + int64(len(d.Raw[0])+len(d.Raw[1]))
		}
		if d.Gap != nil {
			n += int64(unsafe.Sizeof(*d.Gap))
		}
	}
	for i := range s.Dims {
		n += listSize(s.Dims[i].Dims)
	}
	for i := range s.Resize.Passes {
		p := &s.Resize.Passes[i]
		n += int64(unsafe.Sizeof(*p)) + listSize(p.Dirty) + listSize(p.Hooks)
		for j := range p.Hooks {
			h := &p.Hooks[j]
			n += listSize(h.Triggers) + listSize(h.Changed) + listSize(h.Plans) + 8*int64(len(h.Plans))
			for _, c := range h.Changed {
				n += listSize(c.From) + listSize(c.To)
			}
		}
	}
	return n
}

func listSize[T any](list []T) int64 {
	var e T
	return int64(cap(list)) * int64(unsafe.Sizeof(e))
}
