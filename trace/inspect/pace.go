package inspect

import (
	"slices"
	"strings"

	"gpuscope/trace"
)

// timedBy are the timing levels of a scope's steps, in words.
func (x *Index) timedBy(scope Scope) string {
	var levels []string
	for _, step := range scope.Steps {
		if l := x.Trace.Steps[step].Timing; !slices.Contains(levels, l) {
			levels = append(levels, l)
		}
	}
	return strings.Join(levels, " or ")
}

// untimed says whether no more than a step as a whole was timed.
func untimed(s *trace.Step) bool { return !inDetail(s.Timing) }

// inDetail says whether a level times more than steps as a whole.
func inDetail(level string) bool { return level != "off" && level != "step" }

// prompt is what is known of a prompt as it was taken in: of all its pieces, in steps one behind the other.
type prompt struct {
	tokens, next int        // and the position behind it
	ran, warm    trace.Time // as it ran, and warm: as it was run again, or as it ran where that was not cold
	cold         bool
	// ranTimed and warmTimed say that more than steps as a whole was timed.
	ranTimed, warmTimed bool
}

// and is the prompt with one piece more.
func (p *prompt) and(s *trace.Step) {
	warm, again := s.CPU.TotalNS, warmAgain(s)
	switch {
	case measured(again):
		warm = again
	case s.Cold:
		warm = trace.Time{}
	}
	p.tokens, p.next = p.tokens+len(s.Tokens), s.Position+len(s.Tokens)
	p.ran, p.warm = together(p.ran, s.CPU.TotalNS), together(p.warm, warm)
	p.cold = p.cold || s.Cold
	p.ranTimed = p.ranTimed || !untimed(s)
	p.warmTimed = p.warmTimed || !untimed(s) && !measured(again)
}

// together is the sum of two times, not measured where one of them was not.
func together(t, u trace.Time) trace.Time {
	ns, ok := u.NS()
	if !ok || !measured(t) {
		return trace.Time{}
	}
	return plus(t, ns)
}

// prompts are those that the trace has, in the order in which they were taken in.
func (x *Index) prompts() []prompt {
	var all []prompt
	for i := range x.Trace.Steps {
		s := &x.Trace.Steps[i]
		if s.Phase != "prefill" {
			continue
		}
		n := len(all)
		if n == 0 || x.Trace.Steps[i-1].Phase != "prefill" || all[n-1].next != s.Position {
			all = append(all, prompt{ran: trace.Measured(0), warm: trace.Measured(0)})
			n++
		}
		all[n-1].and(s)
	}
	return all
}

// progress is how many tokens a step made progress by.
func progress(s *trace.Step) int {
	switch {
	case s.Phase == "decode":
		return 1
	case s.Phase == "prefill":
		return len(s.Tokens)
	}
	return 0
}
