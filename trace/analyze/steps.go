package analyze

import "gpuscope/trace"

// CompileTime returns how long the compilation of pipelines took in a step. If the step compiled no pipeline,
// the result is not measured.
func CompileTime(s *trace.Step) trace.Time {
	var all trace.Time
	for _, c := range s.CPU.Compiled {
		if ns, ok := c.NS.NS(); ok {
			all = plus(all, ns)
		}
	}
	return all
}

// Replaced reports whether a step was undone, because a later step ran at the same position or at an earlier
// one. Later steps with an Index above `newest` do not count.
func (x *Index) Replaced(step, newest int) bool {
	steps := x.Trace.Steps
	for i := step + 1; i < len(steps) && steps[i].Index <= newest; i++ {
		if steps[i].Position <= steps[step].Position {
			return true
		}
	}
	return false
}
