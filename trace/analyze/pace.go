package analyze

import (
	"slices"
	"strings"

	"gpuscope/trace"
)

// TimedBy returns the timing levels of a selection's steps, joined with "or".
func (x *Index) TimedBy(selection Selection) string {
	var levels []string
	for _, step := range selection.Steps {
		if l := string(x.Trace.Steps[step].Timing); !slices.Contains(levels, l) {
			levels = append(levels, l)
		}
	}
	return strings.Join(levels, " or ")
}

// TimedWhole reports whether neither blocks nor dispatches of the step were timed.
func TimedWhole(s *trace.Step) bool { return !s.Timing.InDetail() }

// Progress returns the number of tokens by which a step made the text longer.
func Progress(s *trace.Step) int {
	switch {
	case s.Phase == trace.Decode:
		return 1
	case s.Phase == trace.Prefill:
		return len(s.Tokens)
	}
	return 0
}
