package inspect

import (
	"fmt"
	"slices"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/table"
)

// Pace is a line on how fast the run is that a step belongs to: its decode steps, its prefill warm and cold,
// and how far the step has come. Times are of steps as they run untimed; where there are none it says so.
func (x *Index) Pace(step int) table.Line {
	var parts []table.Part
	if decode := x.Phase("decode"); len(decode.Steps) > 0 && !decode.AllCold {
		n := table.Plural(len(decode.Steps), "decode step")
		u := x.UntimedOf(decode)
		if ns, ok := u.Wall.NS(); ok && ns > 0 {
			text := n + ", " + millis(u.Wall) + x.rangeOf(decode)
			if u.From != "" { // the rest of them ran with every dispatch timed
				text = n + ", untimed " + millis(u.Wall) + " (" + u.From + ")"
			}
			parts = append(parts, table.Part{Rank: 0, Text: text, Short: n + ", " + millis(u.Wall)},
				table.Say(1, "%.0f tok/s stepped", u.tokensPerS(1)))
		} else {
			parts = append(parts, table.Part{
				Rank: 0, Short: n,
				Text: n + ", tok/s not known: they ran only with every " + x.timedBy(decode) + " timed",
			})
		}
	}
	parts = append(parts, x.prefillParts()...)
	s := &x.Trace.Steps[step]
	at := fmt.Sprintf("position %s", table.Integer(s.Position+len(s.Tokens)))
	if of := x.Trace.Model.Dims["context"]; of > 0 {
		at += " of " + table.Integer(of)
	}
	return table.Line{Separator: " · ", Parts: append(parts, table.Part{Rank: 2, Text: at})}
}

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

// rangeOf is the least and the largest time of the steps of a scope that ran untimed, of several.
func (x *Index) rangeOf(scope Scope) string {
	var walls []int64
	for _, step := range scope.Steps {
		if ns, ok := x.Trace.Steps[step].CPU.TotalNS.NS(); ok && untimed(&x.Trace.Steps[step]) {
			walls = append(walls, ns)
		}
	}
	if spread := spreadOf(walls); spread.N > 1 {
		return fmt.Sprintf(" (%s–%s)", table.MillisBare(int64(spread.Min), true),
			table.MillisBare(int64(spread.Max), true))
	}
	return ""
}

// untimed says whether no more than a step as a whole was timed.
func untimed(s *trace.Step) bool { return s.Timing == "off" || s.Timing == "step" }

// prefillParts say how long the prompts took that were taken in last: warm, and cold where one was.
func (x *Index) prefillParts() []table.Part {
	var warm, cold *trace.Step
	for i := range x.Trace.Steps {
		switch s := &x.Trace.Steps[i]; {
		case s.Phase != "prefill" || !measured(s.CPU.TotalNS):
		case s.Cold:
			cold = s
		default:
			warm = s
		}
	}
	text := func(s *trace.Step, word string) string {
		if !untimed(s) {
			word += ", as timed"
		}
		return fmt.Sprintf("prefill %s in %s %s", table.Integer(len(s.Tokens)), millis(s.CPU.TotalNS), word)
	}
	switch {
	case warm != nil && cold != nil && len(warm.Tokens) == len(cold.Tokens):
		return []table.Part{
			{Rank: 2, Text: text(warm, "warm")},
			{Rank: 3, With: true, Text: fmt.Sprintf("(%s cold)", table.MillisBare(cold.CPU.TotalNS.NS()))},
		}
	case warm != nil:
		return []table.Part{{Rank: 2, Text: text(warm, "warm")}}
	case cold != nil:
		return []table.Part{{Rank: 2, Text: text(cold, "cold")}}
	}
	return nil
}
