package analyze

import (
	"slices"
	"strings"

	"gpuscope/trace"
)

// TimedBy are the timing levels of a selection's steps, in words.
func (x *Index) TimedBy(selection Selection) string {
	var levels []string
	for _, step := range selection.Steps {
		if l := string(x.Trace.Steps[step].Timing); !slices.Contains(levels, l) {
			levels = append(levels, l)
		}
	}
	return strings.Join(levels, " or ")
}

// TimedWhole reports whether no more than a step as a whole was timed.
func TimedWhole(s *trace.Step) bool { return !s.Timing.InDetail() }

// Prompt is what is known of a prompt as it was taken in: of all its pieces, in consecutive steps.
type Prompt struct {
	Tokens, next int        // and the position after it
	Ran, Warm    trace.Time // as it ran, and warm: as it was run again, or as it ran where that was not cold
	Cold         bool
	// RanTimed and warmTimed say that more than steps as a whole was timed.
	RanTimed, WarmTimed bool
}

// and is the prompt with one piece more.
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

// together is the sum of two times, not measured where one of them was not.
func together(t, u trace.Time) trace.Time {
	ns, ok := u.NS()
	if !ok || !Measured(t) {
		return trace.Time{}
	}
	return plus(t, ns)
}

// Prompts are those that the trace has, in the order in which they were taken in.
func (x *Index) Prompts() []Prompt {
	var all []Prompt
	for i := range x.Trace.Steps {
		s := &x.Trace.Steps[i]
		if s.Phase != trace.Prefill {
			continue
		}
		n := len(all)
		if n == 0 || x.Trace.Steps[i-1].Phase != trace.Prefill || all[n-1].next != s.Position {
			all = append(all, Prompt{Ran: trace.Measured(0), Warm: trace.Measured(0)})
			n++
		}
		all[n-1].and(s)
	}
	return all
}

// Progress is how many tokens a step made progress by.
func Progress(s *trace.Step) int {
	switch {
	case s.Phase == trace.Decode:
		return 1
	case s.Phase == trace.Prefill:
		return len(s.Tokens)
	}
	return 0
}
