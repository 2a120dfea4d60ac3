package analyze

import "gpuscope/trace"

// StepBaseline holds the wall times of a baseline, for comparison with the wall times of steps. Each timing
// level has its own statistics, because timing makes a step longer.
type StepBaseline struct {
	Baseline *Baseline
	Walls    map[trace.Timing]Stats
	Canary   float64 // median speed of the canary kernel; 0 if it did not run
}

// NewStepBaseline computes the wall times of a baseline by timing level.
func NewStepBaseline(b *Baseline) *StepBaseline {
	all := map[trace.Timing][]int64{}
	for _, step := range b.Selection.Steps {
		s := &b.Index.Trace.Steps[step]
		if ns, ok := s.CPU.TotalNS.NS(); ok {
			all[s.Timing] = append(all[s.Timing], ns)
		}
	}
	of := &StepBaseline{Baseline: b, Walls: map[trace.Timing]Stats{}, Canary: b.Index.canary(b.Selection)}
	for level, walls := range all {
		of.Walls[level] = StatsOf(walls)
	}
	return of
}
