package trace

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
)

// DefaultBudget is the budget of a Recorder for steps and plans, in bytes, unless another one is given.
const DefaultBudget = 256 << 20

// Recorder collects the records of a run in memory, up to a budget in bytes. When the budget is exceeded,
// it drops the oldest steps, and the plans that only these steps use. The trace remains valid. A snapshot
// never changes: records that come later are only in later snapshots. Any goroutine may call the methods.
//
// Records refer to plans by the ids with which the plans were recorded: 0, 1, 2, ... (see Interner). In
// each snapshot, plans have new ids without gaps. The id of a plan can therefore differ between snapshots
// after plans were dropped.
type Recorder struct {
	mu     sync.Mutex
	t      Trace
	budget int64
	// limit is the number of used bytes at which drop runs. It is the budget, or more if the data that drop
	// must not remove is larger than the budget.
	limit int64
	used  int64
	steps int               // number of recorded steps
	first PlanID            // index in `places` of the plan with id 0 in the current run
	known map[string]PlanID // index in t.Plans by plan content; set by Continue, nil after the next step
	// places holds the index in t.Plans of each recorded plan, or -1 if the plan was dropped. A plan recorded
	// with the id i is places[first+i].
	places []PlanID
	plans  []held // for each element of t.Plans
}

// held is what the Recorder remembers about a plan of the trace.
type held struct {
	id      PlanID // index of the plan in Recorder.places
	lastUse int    // Recorder.steps when the plan was last recorded or used
}

// NewRecorder returns a Recorder for a trace. `head` is the trace without plans and steps. A budget of 0
// means DefaultBudget.
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

// Write adds a record, as StreamWriter.Write does. The caller must not change what the record points to after
// this, because the Recorder keeps it. If the record refers to something that is missing, Write returns an
// error and changes nothing.
func (r *Recorder) Write(rec Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case rec.Plan != nil:
		return r.addPlan(*rec.Plan)
	case rec.Step != nil:
		return r.addStep(*rec.Step)
	case rec.Samples != nil, rec.Costs != nil, rec.Gaps != nil:
		r.t.Steps = slices.Clone(r.t.Steps) // the old list is shared with snapshots
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
		return fmt.Errorf("record plan: plan id is %d; the next id must be %d", p.ID, next)
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
		return fmt.Errorf("record step %d: step indices must rise; the last one is %d", s.Index,
			r.t.Steps[n-1].Index)
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
		return fmt.Errorf("record step %d: plan %d is unknown: it was never recorded, or none of "+
			"the last %d steps used it", s.Index, *missing, PlanMemory)
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

// doubled returns a list with room for one more element. If the list is full, its capacity is doubled. The
// built-in append would make a long list only a quarter longer. In a long run, it would thus copy each
// element about four times.
func doubled[T any](list []T) []T {
	if len(list) < cap(list) {
		return list
	}
	return append(make([]T, 0, max(16, 2*len(list))), list...)
}

// Continue announces that the next records come from another run of the same graph. That run numbers its
// plans from 0 again. Its steps follow the steps of the earlier runs. A plan that the new run records
// before its first step is not stored again if the trace already has an equal plan.
func (r *Recorder) Continue() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.first = PlanID(len(r.places))
	r.known = map[string]PlanID{}
	for i := range r.t.Plans {
		r.known[r.t.Plans[i].content()] = PlanID(i)
	}
}

// content returns an encoding of the plan without its id.
func (p Plan) content() string {
	p.ID = 0
	b, err := json.Marshal(&p)
	if err != nil {
		panic(err) // no error: a plan holds only numbers, strings and lists
	}
	return string(b)
}

// Snapshot returns the trace recorded so far.
func (r *Recorder) Snapshot() *Trace {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.t
	t.Plans, t.Steps = slices.Clip(t.Plans), slices.Clip(t.Steps)
	t.Trials, t.Events = slices.Clip(t.Trials), slices.Clip(t.Events)
	t.Graph.Kernels = slices.Clip(t.Graph.Kernels)
	return &t
}

// drop removes the oldest steps, and the plans that only these steps use, until half of the budget is free.
// It frees so much because it must run rarely: it copies all steps that stay, to change their plan ids. It
// never removes the last step, nor plans that an Interner may still reuse. It makes new lists because
// snapshots share the old ones.
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
	steps[0].Dims, steps[0].Levels, steps[0].Waits = Inherited(r.t.Steps[:first+1])
	r.t.Steps, r.used = steps, used
	r.t.DroppedSteps += first
}

// keep is called for a step that is not dropped. It adds the memory of the step to *used, and calls `need`
// for each plan of the step.
func (r *Recorder) keep(step int, need func(PlanID), used *int64) {
	*used += r.t.Steps[step].size()
	r.t.Steps[step].eachPlan(need)
}

// keepPlans drops the plans that are not needed. It returns the new index of each needed plan.
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

// Inherited returns the dims, levels and waits that apply after the last of the given steps. When a
// recorder drops all of these steps except the last one, it stores the results in that step.
func Inherited(steps []Step) (dims []LiveDims, levels []DispatchID, waits []Wait) {
	latest := map[ValueID]int{} // index in dims
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
