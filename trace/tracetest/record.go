package tracetest

import (
	"fmt"

	"gpuscope/trace"
)

// Record writes a trace to a recorder as a session does: the new plans of a step, then the step. It calls the
// function `each` after every step.
func Record(t interface{ Fatal(...any) }, r *trace.Recorder, from *trace.Trace, each func()) {
	var ids trace.Interner
	for _, s := range from.Steps {
		plan := func(old trace.PlanID) trace.PlanID {
			p := from.Plans[old]
			p.ID = 0
			id, fresh := ids.ID(fmt.Append(nil, p))
			if p.ID = id; fresh {
				if err := r.Write(trace.Record{Plan: &p}); err != nil {
					t.Fatal(err)
				}
			}
			return id
		}
		moved := Renumber(s, plan)
		if err := r.Write(trace.Record{Step: &moved}); err != nil {
			t.Fatal(err)
		}
		ids.Step()
		each()
	}
}
