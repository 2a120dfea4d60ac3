package inspect

import (
	"fmt"

	"gpuscope/trace"
	"gpuscope/trace/table"
)

// Pace is a line on how fast the run is that a step belongs to: its decode steps, its prefill warm and cold,
// and how far the step has come. Times are of steps as they run untimed; where there are none it says so.
func (x *Index) Pace(step int) table.Line {
	var parts []table.Part
	if decode := x.Phase("decode"); len(decode.Steps) > 0 && !decode.AllCold {
		n := table.Plural(len(decode.Steps), "decode step")
		if decode.Cold > 0 {
			n = table.Plural(len(decode.Steps), "warm decode step")
		}
		u := x.UntimedOf(decode)
		again := u.From != "" // the rest of them ran with every dispatch timed
		if x.Trace.Device.None() {
			parts = append(parts, table.Part{Rank: 0, Text: n + " planned", Short: n})
		} else if ns, ok := u.Wall.NS(); ok && ns > 0 {
			took := millis(u.Wall)
			if !again && u.N > 1 {
				took = "median " + took
			}
			if !again && u.N < len(decode.Steps) {
				n = table.Integer(u.N) + " of " + n
			}
			short := n + ", " + took
			text := short + x.rangeOf(decode)
			if again {
				short += " (" + u.From + ")"
				text = n + ", untimed " + took + " (" + u.From + ")"
			}
			parts = append(parts, table.Part{Rank: 0, Text: text, Short: short},
				table.Say(1, "%.0f tok/s %s", u.tokensPerS(1), u.mode()))
		} else {
			parts = append(parts, table.Part{
				Rank: 0, Short: n,
				Text: n + ", run only with every " + x.timedBy(decode) + " timed: tok/s not known",
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

// rangeOf is the least and the largest time of the steps of a scope that ran untimed, of several.
func (x *Index) rangeOf(scope Scope) string {
	var walls []int64
	for _, step := range x.ranUntimed(scope) {
		ns, _ := x.Trace.Steps[step].CPU.TotalNS.NS()
		walls = append(walls, ns)
	}
	if spread := spreadOf(walls); spread.N > 1 {
		return fmt.Sprintf(" (%s–%s)", table.MillisBare(whole(spread.Min), true),
			table.MillisBare(whole(spread.Max), true))
	}
	return ""
}

// prefillParts say how long the prompts took that were taken in last: warm, and cold where one was.
func (x *Index) prefillParts() []table.Part {
	var warm, cold *prompt
	all := x.prompts()
	for i := range all {
		p := &all[i]
		if measured(p.warm) {
			warm = p
		}
		if p.cold && measured(p.ran) {
			cold = p
		}
	}
	said := func(word string, timed bool) string {
		if timed {
			word += ", as timed"
		}
		return word
	}
	text := func(p *prompt, took trace.Time, word string) string {
		return fmt.Sprintf("prefill %s in %s %s", table.Integer(p.tokens), millis(took), word)
	}
	switch {
	case warm != nil:
		parts := []table.Part{{Rank: 2, Text: text(warm, warm.warm, said("warm", warm.warmTimed))}}
		if cold != nil && cold.tokens == warm.tokens {
			parts = append(parts, table.Part{Rank: 3, With: true, Text: fmt.Sprintf("(%s %s)",
				table.MillisBare(cold.ran.NS()), said("cold", cold.ranTimed))})
		}
		return parts
	case cold != nil:
		return []table.Part{{Rank: 2, Text: text(cold, cold.ran, said("cold", cold.ranTimed))}}
	}
	return nil
}
