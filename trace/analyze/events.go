package analyze

import "gpuscope/trace"

// Event is something notable that happened at a step. Events are recorded in the trace, or computed from
// its steps.
type Event struct {
	Step     int // index into Trace.Steps
	Dispatch *trace.DispatchID
	Kind     string // a kind of event that traces record, or one of the constants below
	Text     string
}

// These are the kinds of events that are computed from the steps.
const (
	ShapeEvent   = "shape"   // the phase or the number of tokens differs from the previous step
	GridEvent    = "grid"    // a grid changed, but not the phase or the number of tokens
	RouteEvent   = "route"   // a route changed, but not the phase or the number of tokens
	OutlierEvent = "outlier" // a step took much longer than other steps of its kind
	ColdEvent    = "cold"
)

// stepKind is the property that steps must share so that their times can be compared.
type stepKind struct {
	phase  trace.Phase
	timing trace.Timing
	tokens int
}

// KindOf returns the kind of a step. Times of steps of the same kind may be compared.
func KindOf(s *trace.Step) stepKind { return stepKind{s.Phase, s.Timing, len(s.Tokens)} }

// Typical is the median wall time in ns of the steps of one kind, and the median absolute deviation.
type Typical struct{ Median, MAD float64 }

// TypicalTimes returns the Typical time of the warm steps of each kind. Kinds with fewer than Enough steps
// are left out.
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
