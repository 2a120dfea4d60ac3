package inspect

// stepBase is the wall time of a base, by which steps are compared: of each timing level by itself, for
// timing makes a step longer.
type stepBase struct {
	base   *Base
	walls  map[string]Spread
	canary float64 // 0 where none ran
}

func newStepBase(b *Base) *stepBase {
	all := map[string][]int64{}
	for _, step := range b.Scope.Steps {
		s := &b.Index.Trace.Steps[step]
		if ns, ok := s.CPU.TotalNS.NS(); ok {
			all[s.Timing] = append(all[s.Timing], ns)
		}
	}
	of := &stepBase{base: b, walls: map[string]Spread{}, canary: b.Index.canary(b.Scope)}
	for level, walls := range all {
		of.walls[level] = spreadOf(walls)
	}
	return of
}
