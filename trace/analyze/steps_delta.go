package analyze

import "gpuscope/trace"

// StepBase is the wall time of a base, by which steps are compared: of each timing level by itself, for
// timing makes a step longer.
type StepBase struct {
	Base   *Base
	Walls  map[trace.Timing]Spread
	Canary float64 // 0 where none ran
}

func NewStepBase(b *Base) *StepBase {
	all := map[trace.Timing][]int64{}
	for _, step := range b.Scope.Steps {
		s := &b.Index.Trace.Steps[step]
		if ns, ok := s.CPU.TotalNS.NS(); ok {
			all[s.Timing] = append(all[s.Timing], ns)
		}
	}
	of := &StepBase{Base: b, Walls: map[trace.Timing]Spread{}, Canary: b.Index.canary(b.Scope)}
	for level, walls := range all {
		of.Walls[level] = SpreadOf(walls)
	}
	return of
}
