package trace

import (
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
// Records refer to plans by the ids with which the plans were recorded: 0, 1, 2, ... (see Interner). A
// snapshot has only the plans that its steps use, with new ids without gaps. The id of a plan can therefore
// differ between snapshots after steps were dropped. Plans outside the snapshots are not part of the budget:
// those that were used in the last PlanMemory steps are remembered, because later steps may use them again.
type Recorder struct {
	mu     sync.Mutex
	t      Trace
	plans  PlanTable
	budget int64
	// limit is the number of used bytes at which drop runs. It is the budget, or more if the data that drop
	// must not remove is larger than the budget.
	limit int64
	used  int64
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
		return r.plans.Add(rec.Plan)
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

func (r *Recorder) addStep(s Step) error {
	if n := len(r.t.Steps); n > 0 && s.Index <= r.t.Steps[n-1].Index {
		return fmt.Errorf("record step %d: step indices must rise; the last one is %d", s.Index,
			r.t.Steps[n-1].Index)
	}
	s, err := r.plans.Use(s, func(p Plan) {
		r.t.Plans = append(doubled(r.t.Plans), p)
		r.used += p.size()
	})
	if err != nil {
		return err
	}
	r.t.Steps = append(doubled(r.t.Steps), s)
	if r.used += s.size(); r.used > r.limit {
		r.drop()
	}
	return nil
}

// Skip announces a step that is not recorded. Later steps may use its plans.
func (r *Recorder) Skip(s *Step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.plans.Skip(s)
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
	r.plans.Continue(r.t.Plans)
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
// never removes the last step. It makes new lists because snapshots share the old ones.
func (r *Recorder) drop() {
	stay := make([]bool, len(r.t.Plans))
	used := int64(0)
	keep := func(step int) {
		used += r.t.Steps[step].size()
		r.t.Steps[step].eachPlan(func(id PlanID) {
			if !stay[id] {
				stay[id] = true
				used += r.t.Plans[id].size()
			}
		})
	}
	first := len(r.t.Steps) - 1
	for keep(first); first > 0 && used+r.t.Steps[first-1].size() <= r.budget/2; first-- {
		keep(first - 1)
	}
	r.limit = max(r.budget, used*4/3)
	if first == 0 {
		r.used = used
		return
	}
	plans, moved := r.plans.drop(r.t.Plans, stay)
	steps := make([]Step, 0, len(r.t.Steps)-first)
	for i := first; i < len(r.t.Steps); i++ {
		steps = append(steps, r.t.Steps[i].renumber(func(id PlanID) PlanID { return moved[id] }))
	}
	steps[0].Dims, steps[0].Levels, steps[0].Waits = Inherited(r.t.Steps[:first+1])
	r.t.Plans, r.t.Steps, r.used = plans, steps, used
	r.t.DroppedSteps += first
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
