package trace

import (
	"encoding/json"
	"fmt"
	"slices"
)

// PlanTable finds the plans that belong in the trace of a part of a run: those that the recorded steps use.
// Each plan gets a new id, because the ids in a trace have no gaps.
//
// A step may use a plan that was recorded long before the step, or only for steps that are not in the trace.
// So the table remembers plans outside the trace. It forgets those that were not used for PlanMemory steps,
// because an Interner does not refer to them any more. The zero PlanTable is ready to use.
type PlanTable struct {
	// places holds, for each plan that was passed to Add, its id in the trace, or -1 if it is not in the
	// trace. The plan with the id i of the current run is places[first+i].
	places []PlanID
	first  PlanID
	uses   []planUse             // for each plan in the trace
	others map[PlanID]unusedPlan // plans outside the trace, by index in places
	equal  map[string]PlanID     // set by Continue: id in the trace by plan content; nil after the next step
	fresh  []PlanID              // memory that Use reuses
	steps  int                   // number of steps that were passed to Use and Skip
}

// planUse is what a PlanTable knows about a plan in the trace.
type planUse struct {
	place   PlanID // index in PlanTable.places
	lastUse int    // PlanTable.steps when the plan was last added or used
}

type unusedPlan struct {
	plan    *Plan
	lastUse int // PlanTable.steps when the plan was last added or used
}

// Add takes a plan that later steps may use. Its id must be the next one: 0, 1, 2, ... (see Interner). The
// caller must not change the plan after this, because the table keeps it.
func (t *PlanTable) Add(p *Plan) error {
	if next := PlanID(len(t.places)) - t.first; p.ID != next {
		return fmt.Errorf("record plan: plan id is %d; the next id must be %d", p.ID, next)
	}
	place := PlanID(len(t.places))
	if t.equal != nil {
		if id, ok := t.equal[p.content()]; ok {
			t.uses[id] = planUse{place, t.steps}
			t.places = append(t.places, id)
			return nil
		}
	}
	if t.others == nil {
		t.others = map[PlanID]unusedPlan{}
	}
	t.places = append(t.places, -1)
	t.others[place] = unusedPlan{p, t.steps}
	return nil
}

// Use takes a step that belongs in the trace. It returns a copy of the step with the plan ids of the trace,
// and calls add for each plan that the step adds to the trace. If the step refers to an unknown plan, Use
// returns an error and changes nothing.
func (t *PlanTable) Use(s Step, add func(Plan)) (Step, error) {
	places := t.places[t.first:]
	var err error
	fresh, same := t.fresh[:0], true
	s.eachPlan(func(id PlanID) {
		switch {
		case id < 0 || int(id) >= len(places):
			err = t.unknown(&s, id)
		case places[id] >= 0:
			same = same && places[id] == id
		default:
			if _, ok := t.others[t.first+id]; !ok {
				err = t.unknown(&s, id)
			}
			fresh = append(fresh, id)
		}
	})
	t.fresh = fresh
	if err != nil {
		return s, err
	}
	slices.Sort(fresh)
	for _, id := range slices.Compact(fresh) {
		place := t.first + id
		p := *t.others[place].plan
		delete(t.others, place)
		p.ID = PlanID(len(t.uses))
		places[id] = p.ID
		same = same && p.ID == id
		t.uses = append(doubled(t.uses), planUse{place: place})
		add(p)
	}
	s.eachPlan(func(id PlanID) { t.uses[places[id]].lastUse = t.steps })
	if !same {
		s = s.renumber(func(id PlanID) PlanID { return places[id] })
	}
	t.ended()
	return s, nil
}

func (t *PlanTable) unknown(s *Step, id PlanID) error {
	return fmt.Errorf("record step %d: plan %d is unknown: it was never recorded, or none of the last %d steps "+
		"used it", s.Index, id, PlanMemory)
}

// Skip takes a step that does not belong in the trace. Its plans are remembered, because later steps may use
// them too.
func (t *PlanTable) Skip(s *Step) {
	s.eachPlan(func(id PlanID) {
		if id < 0 || int(id) >= len(t.places)-int(t.first) {
			return
		}
		place := t.first + id
		if at := t.places[place]; at >= 0 {
			t.uses[at].lastUse = t.steps
		} else if p, ok := t.others[place]; ok {
			t.others[place] = unusedPlan{p.plan, t.steps}
		}
	})
	t.ended()
}

// ended counts a step. Now and then it forgets the plans that an Interner has forgotten too.
func (t *PlanTable) ended() {
	t.equal = nil
	if t.steps++; t.steps%(PlanMemory/4) != 0 {
		return
	}
	for place, p := range t.others {
		if p.lastUse < t.steps-PlanMemory {
			delete(t.others, place)
		}
	}
}

// Continue announces that the next plans and steps come from another run of the same graph, which numbers
// its plans from 0 again. `plans` holds the plans in the trace. If the new run adds an equal plan before its
// first step, its steps use the plan in the trace.
func (t *PlanTable) Continue(plans []Plan) {
	t.first = PlanID(len(t.places))
	t.others = nil
	t.equal = make(map[string]PlanID, len(plans))
	for i := range plans {
		t.equal[plans[i].content()] = PlanID(i)
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

// drop removes plans from the trace. It receives the plans in the trace, and which of them stay. It returns
// those that stay, and the new id of each plan, or -1. The table remembers the others, if a step may use them
// again.
func (t *PlanTable) drop(plans []Plan, stay []bool) (kept []Plan, moved []PlanID) {
	var uses []planUse
	moved = make([]PlanID, len(plans))
	for id := range plans {
		u := t.uses[id]
		moved[id] = -1
		if stay[id] {
			p := plans[id]
			moved[id] = PlanID(len(kept))
			p.ID = moved[id]
			kept, uses = append(kept, p), append(uses, u)
		} else if u.place >= t.first && u.lastUse >= t.steps-PlanMemory {
			if t.others == nil {
				t.others = map[PlanID]unusedPlan{}
			}
			p := plans[id] // a copy, because all of `plans` would stay in memory with it
			t.others[u.place] = unusedPlan{&p, u.lastUse}
		}
		t.places[u.place] = moved[id]
	}
	t.uses = uses
	return kept, moved
}
