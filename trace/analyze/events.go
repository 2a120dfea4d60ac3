package analyze

import "gpuscope/trace"

// Event is something notable that happened at a step. Events are recorded in the trace, or computed from
// its steps.
type Event struct {
	Step     int // index into Trace.Steps
	Dispatch *trace.DispatchID
	Kind     string // a kind recorded in the trace, or one of the constants below
	Text     string
}

// Kinds of events that are computed from the steps.
const (
	ShapeEvent   = "shape"   // the phase or the number of tokens differs from the previous step
	GridEvent    = "grid"    // workgroups changed, but not the phase or the number of tokens
	RouteEvent   = "route"   // a route changed, but not the phase or the number of tokens
	OutlierEvent = "outlier" // a step took much longer than comparable steps
	ColdEvent    = "cold"
)

// stepKind is the key of steps whose times may be compared.
type stepKind struct {
	phase  trace.Phase
	timing trace.Timing
	tokens int
}

// KindOf returns the kind of a step. Times of steps of the same kind may be compared.
func KindOf(s *trace.Step) stepKind { return stepKind{s.Phase, s.Timing, len(s.Tokens)} }

// Typical is the usual wall time of steps of one kind, in ns, with the median absolute deviation.
type Typical struct{ Median, MAD float64 }

// TypicalTimes returns the usual wall time of warm steps, by kind. Kinds with fewer than Enough steps are
// omitted.
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
