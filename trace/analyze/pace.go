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

// Prompt holds the times of one prompt. Several consecutive steps may have read it.
type Prompt struct {
	Tokens, next int // number of tokens of the prompt; position after the last of them
	// Ran is the wall time of the recorded run. Warm is the wall time on a warm device: that of the repeats,
	// or that of the recorded run if this run was not cold.
	Ran, Warm trace.Time
	Cold      bool
	// RanTimed and WarmTimed report that Ran or Warm includes the overhead of timing blocks or dispatches.
	RanTimed, WarmTimed bool
}

// The method and adds a step to the prompt. The step must have read the tokens of the prompt that come
// directly after those of the steps added before.
func (p *Prompt) and(s *trace.Step) {
	warm, again := s.CPU.TotalNS, WarmAgain(s)
	switch {
	case Measured(again):
		warm = again
	case s.Cold:
		warm = trace.Time{}
	}
	p.Tokens, p.next = p.Tokens+len(s.Tokens), s.Position+len(s.Tokens)
	p.Ran, p.Warm = together(p.Ran, s.CPU.TotalNS), together(p.Warm, warm)
	p.Cold = p.Cold || s.Cold
	p.RanTimed = p.RanTimed || !TimedWhole(s)
	p.WarmTimed = p.WarmTimed || !TimedWhole(s) && !Measured(again)
}

// together returns the sum of two times. If a time is not measured, the sum is not measured either.
func together(t, u trace.Time) trace.Time {
	ns, ok := u.NS()
	if !ok || !Measured(t) {
		return trace.Time{}
	}
	return plus(t, ns)
}

// Prompts returns the prompts of the trace, in the order in which they were read.
func (x *Index) Prompts() []Prompt {
	var all []Prompt
	for i := range x.Trace.Steps {
		s := &x.Trace.Steps[i]
		if s.Phase != trace.Prefill {
			continue
		}
		n := len(all)
		if n == 0 || x.Trace.Engine != "" || x.Trace.Steps[i-1].Phase != trace.Prefill ||
			all[n-1].next != s.Position {
			all = append(all, Prompt{Ran: trace.Measured(0), Warm: trace.Measured(0)})
			n++
		}
		all[n-1].and(s)
	}
	return all
}

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
