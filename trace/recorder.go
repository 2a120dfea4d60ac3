package trace

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
)

// DefaultBudget is how many bytes of steps and plans a Recorder keeps.
const DefaultBudget = 256 << 20

// Recorder collects the records of a run within a budget of bytes: where it is reached the oldest steps go,
// with the plans that no other step names, and the trace stays right without them.
//
// Its methods may be called from any goroutine. What Snapshot returns never changes: what is recorded later
// is in a later snapshot.
//
// Records name plans by the ids that they were recorded with, 0, 1, 2, ... (see Interner). The trace of a
// snapshot numbers the plans that it has, so there ids move when plans are dropped.
type Recorder struct {
	mu     sync.Mutex
	t      Trace
	budget int64
	limit  int64 // of used, before steps are dropped: budget, or more where what must stay is more
	used   int64
	steps  int               // recorded so far
	first  PlanID            // of the ids of records: places[first] is that of plan 0
	known  map[string]PlanID // places of plans by what they say, until another run's first step
	places []PlanID          // by the id of a record: the place in t.Plans, -1 where it was dropped
	plans  []held            // by place in t.Plans
}

// held is what a Recorder knows of a plan in its trace.
type held struct {
	id      PlanID // of records
	lastUse int    // number of the step that named it last, or before which it was recorded
}

// NewRecorder starts from the head of a trace, which says all but plans and steps. A budget of 0 is
// DefaultBudget.
func NewRecorder(head *Trace, budget int64) *Recorder {
	if budget <= 0 {
		budget = DefaultBudget
	}
	r := &Recorder{t: *head, budget: budget, limit: budget}
	r.t.Schema, r.t.Plans, r.t.Steps, r.t.DroppedSteps = Schema, nil, nil, 0
	r.t.Trials, r.t.Events = slices.Clone(head.Trials), slices.Clone(head.Events)
	r.t.Graph.Kernels = slices.Clone(head.Graph.Kernels)
	return r
}

// Write records a record, as StreamWriter.Write writes it. The recorder keeps what the record points to: it
// must not be changed any more. A record that names what is not there is refused, and nothing is recorded.
func (r *Recorder) Write(rec Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case rec.Plan != nil:
		return r.addPlan(*rec.Plan)
	case rec.Step != nil:
		return r.addStep(*rec.Step)
	case rec.Samples != nil, rec.Costs != nil, rec.Gaps != nil:
		r.t.Steps = slices.Clone(r.t.Steps) // snapshots hold the old list
	}
	if err := r.t.apply(&rec, nil); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	if rec.Samples != nil {
		for _, samples := range rec.Samples.Samples {
			r.used += 8 * int64(len(samples))
		}
	}
	if rec.Costs != nil {
		r.used += costsSize(rec.Costs.Costs)
	}
	if rec.Gaps != nil {
		for i := range rec.Gaps.Gaps {
			r.used += rec.Gaps.Gaps[i].Gap.size()
		}
	}
	return nil
}

func (r *Recorder) addPlan(p Plan) error {
	next := PlanID(len(r.places)) - r.first
	if p.ID != next {
		return fmt.Errorf("record plan %d: the next plan is %d", p.ID, next)
	}
	if r.known != nil {
		if place, ok := r.known[p.content()]; ok {
			r.plans[place] = held{r.first + p.ID, r.steps}
			r.places = append(r.places, place)
			return nil
		}
	}
	r.plans = append(doubled(r.plans), held{r.first + p.ID, r.steps})
	p.ID = PlanID(len(r.t.Plans))
	r.places = append(r.places, p.ID)
	r.t.Plans = append(doubled(r.t.Plans), p)
	r.used += p.size()
	return nil
}

func (r *Recorder) addStep(s Step) error {
	if n := len(r.t.Steps); n > 0 && s.Index <= r.t.Steps[n-1].Index {
		return fmt.Errorf("record step %d: step %d was recorded already", s.Index, r.t.Steps[n-1].Index)
	}
	var missing *PlanID
	moved, places := false, r.places[r.first:]
	s.eachPlan(func(id PlanID) {
		if id < 0 || int(id) >= len(places) || places[id] < 0 {
			missing = new(id)
			return
		}
		r.plans[places[id]].lastUse = r.steps
		moved = moved || places[id] != id
	})
	if missing != nil {
		return fmt.Errorf("record step %d: no plan %d (not recorded, or not used in the last "+
			"%d steps)", s.Index, *missing, PlanMemory)
	}
	if moved {
		s = s.renumber(func(id PlanID) PlanID { return places[id] })
	}
	r.steps++
	r.known = nil
	r.t.Steps = append(doubled(r.t.Steps), s)
	if r.used += s.size(); r.used > r.limit {
		r.drop()
	}
	return nil
}

// doubled makes room for as many again where a list is full: Go would for a quarter, and copy each element of
// a long run four times.
func doubled[T any](list []T) []T {
	if len(list) < cap(list) {
		return list
	}
	return append(make([]T, 0, max(16, 2*len(list))), list...)
}

// Continue reports that the records to come are of another run of the same graph: they name plans from 0
// again. Their steps follow those that there are, and the plans that are in force before the first of them
// are those that are here already.
func (r *Recorder) Continue() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.first = PlanID(len(r.places))
	r.known = map[string]PlanID{}
	for i := range r.t.Plans {
		r.known[r.t.Plans[i].content()] = PlanID(i)
	}
}

// content is all that a plan says, without its id.
func (p Plan) content() string {
	p.ID = 0
	b, err := json.Marshal(&p)
	if err != nil {
		panic(err) // it has numbers, texts and lists of them
	}
	return string(b)
}

// Snapshot is the trace as it is now.
func (r *Recorder) Snapshot() *Trace {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.t
	t.Plans, t.Steps = slices.Clip(t.Plans), slices.Clip(t.Steps)
	t.Trials, t.Events = slices.Clip(t.Trials), slices.Clip(t.Events)
	t.Graph.Kernels = slices.Clip(t.Graph.Kernels)
	return &t
}

// drop makes room for half the budget, by the oldest steps and the plans that only they name. It is to be
// seldom: the steps that stay are all copied, for their plans get other ids. The last step always stays, and
// so do plans that an Interner may name again. New lists take the place of the old, which snapshots may hold.
func (r *Recorder) drop() {
	needed := make([]bool, len(r.t.Plans))
	used := int64(0)
	need := func(id PlanID) {
		if !needed[id] {
			needed[id] = true
			used += r.t.Plans[id].size()
		}
	}
	for place, h := range r.plans {
		if h.lastUse >= r.steps-PlanMemory {
			need(PlanID(place))
		}
	}
	first := len(r.t.Steps) - 1
	for r.keep(first, need, &used); first > 0; first-- {
		if used+r.t.Steps[first-1].size() > r.budget/2 {
			break
		}
		r.keep(first-1, need, &used)
	}
	r.limit = max(r.budget, used*4/3)
	if first == 0 {
		r.used = used
		return
	}
	moved := r.keepPlans(needed)
	steps := make([]Step, 0, len(r.t.Steps)-first)
	for i := first; i < len(r.t.Steps); i++ {
		steps = append(steps, r.t.Steps[i].renumber(func(id PlanID) PlanID { return moved[id] }))
	}
	steps[0].Dims, steps[0].Levels, steps[0].Waits = inherited(r.t.Steps[:first+1])
	r.t.Steps, r.used = steps, used
	r.t.DroppedSteps += first
}

// keep counts a step and its plans among what stays.
func (r *Recorder) keep(step int, need func(PlanID), used *int64) {
	*used += r.t.Steps[step].size()
	r.t.Steps[step].eachPlan(need)
}

// keepPlans drops the plans that are not needed and returns the new place of each of the others.
func (r *Recorder) keepPlans(needed []bool) (moved []PlanID) {
	var plans []Plan
	var kept []held
	moved = make([]PlanID, len(needed))
	for place, p := range r.t.Plans {
		h := r.plans[place]
		if !needed[place] {
			moved[place], r.places[h.id] = -1, -1
			continue
		}
		p.ID = PlanID(len(plans))
		moved[place], r.places[h.id] = p.ID, p.ID
		plans, kept = append(plans, p), append(kept, h)
	}
	r.t.Plans, r.plans = plans, kept
	return moved
}

// inherited is what the last of several steps must say of dims and levels when it stands without the others:
// all that they changed.
func inherited(steps []Step) (dims []LiveDims, levels []DispatchID, waits []Wait) {
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
			levels, waits = steps[i].Levels, steps[i].Waits
		}
	}
	return dims, levels, waits
}
