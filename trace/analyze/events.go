package analyze

import (
	"gpuscope/trace"
)

// Event is something that happened at a step and that a person may want to look at: what the trace recorded,
// and what follows from its steps.
type Event struct {
	Step     int // index into Trace.Steps
	Dispatch *trace.DispatchID
	Kind     string // of the trace, or one of those that follow from its steps
	Text     string
}

// Kinds of events that follow from the steps.
const (
	ShapeEvent   = "shape"   // the phase or the number of tokens is another than in the step before
	GridEvent    = "grid"    // workgroups changed, though neither is so
	RouteEvent   = "route"   // so did the way that an operator takes
	OutlierEvent = "outlier" // a step took much longer than its like
	ColdEvent    = "cold"
)

// stepKind is what steps have in common whose times are compared.
type stepKind struct {
	phase  trace.Phase
	timing trace.Timing
	tokens int
}

// KindOf returns what a step has in common with those its time is compared with.
func KindOf(s *trace.Step) stepKind { return stepKind{s.Phase, s.Timing, len(s.Tokens)} }

// Typical is the usual wall time of a kind of steps, in ns, with its median absolute deviation.
type Typical struct{ Median, MAD float64 }

// TypicalTimes is what steps that are not cold take, by what they have in common; of kinds of which there are
// too few to tell nothing.
func (x *Index) TypicalTimes() map[stepKind]Typical {
	walls := map[stepKind][]float64{}
	for i := range x.Trace.Steps {
		s := &x.Trace.Steps[i]
		if ns, ok := s.CPU.TotalNS.NS(); ok && !s.Cold {
			walls[KindOf(s)] = append(walls[KindOf(s)], float64(ns))
		}
	}
	out := make(map[stepKind]Typical, len(walls))
	for k, ns := range walls {
		if len(ns) < Enough {
			continue
		}
		median := StatsOf(ns).Median
		for i := range ns {
			ns[i] = max(ns[i]-median, median-ns[i])
		}
		out[k] = Typical{median, StatsOf(ns).Median}
	}
	return out
}
