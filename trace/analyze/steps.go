package analyze

import (
	"gpuscope/trace"
)

// CompileTime is what a step's pipelines took to compile, not measured where it compiled none.
func CompileTime(s *trace.Step) trace.Time {
	var all trace.Time
	for _, c := range s.CPU.Compiled {
		if ns, ok := c.NS.NS(); ok {
			all = plus(all, ns)
		}
	}
	return all
}

// Replaced reports whether the text has gone on without a step: a later one, of those up to the number
// newest, stands where it does or before.
func (x *Index) Replaced(step, newest int) bool {
	steps := x.Trace.Steps
	for i := step + 1; i < len(steps) && steps[i].Index <= newest; i++ {
		if steps[i].Position <= steps[step].Position {
			return true
		}
	}
	return false
}
