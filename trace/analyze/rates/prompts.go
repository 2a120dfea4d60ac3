package rates

import (
	"gpuscope/trace"
	"gpuscope/trace/analyze"
)

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
	warm, again := s.CPU.TotalNS, analyze.WarmAgain(s)
	switch {
	case analyze.Measured(again):
		warm = again
	case s.Cold:
		warm = trace.Time{}
	}
	p.Tokens, p.next = p.Tokens+len(s.Tokens), s.Position+len(s.Tokens)
	p.Ran, p.Warm = together(p.Ran, s.CPU.TotalNS), together(p.Warm, warm)
	p.Cold = p.Cold || s.Cold
	p.RanTimed = p.RanTimed || !analyze.TimedWhole(s)
	p.WarmTimed = p.WarmTimed || !analyze.TimedWhole(s) && !analyze.Measured(again)
}

// together returns the sum of two times. If a time is not measured, the sum is not measured either.
func together(t, u trace.Time) trace.Time {
	a, ok1 := t.NS()
	b, ok2 := u.NS()
	if !ok1 || !ok2 {
		return trace.Time{}
	}
	return trace.Measured(analyze.Add(a, b))
}

// Prompts returns the prompts of the trace, in the order in which they were read.
func Prompts(x *analyze.Index) []Prompt {
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
