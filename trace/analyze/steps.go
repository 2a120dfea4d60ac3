package analyze

import "gpuscope/trace"

// CompileTime returns how long the pipelines of a step took to compile. The time is not measured if the
// step compiled no pipeline.
func CompileTime(s *trace.Step) trace.Time {
	var all trace.Time
	for _, c := range s.CPU.Compiled {
		if ns, ok := c.NS.NS(); ok {
			all = plus(all, ns)
		}
	}
	return all
}

// Replaced reports whether a step was undone by a later step at the same or an earlier position. Replaced
// ignores later steps with an index above newest.
func (x *Index) Replaced(step, newest int) bool {
	steps := x.Trace.Steps
	for i := step + 1; i < len(steps) && steps[i].Index <= newest; i++ {
		if steps[i].Position <= steps[step].Position {
			return true
		}
	}
	return false
}
