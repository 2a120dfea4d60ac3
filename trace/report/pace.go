package report

import (
	"fmt"
	"slices"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/rates"
	"gpuscope/trace/table"
)

// Pace returns a line about the speed of the run that contains the selected steps: its warm decode steps or
// executions, its warm and cold prefill, and the position of the last selected step. The line shows the wall
// times of the steps whose dispatches were not timed, or reports that there is no such step. If several
// decode steps or several executions are selected, it is about these instead of those of the run. All these
// steps used the same routes: `selected` is narrowed by Index.Routed.
func Pace(x *analyze.Index, selected analyze.Selection) table.Line {
	if x.Trace.Engine != "" {
		return importedPace(x)
	}
	var parts []table.Segment
	if decode := paced(x, trace.Decode, selected); len(decode.Steps) > 0 && !decode.AllCold {
		n := table.Plural(len(decode.Steps), "decode step")
		if decode.Cold > 0 {
			n = table.Plural(len(decode.Steps), "warm decode step")
		}
		n += routesOf(decode, selected)
		u := x.UntimedOf(decode)
		again := u.From != "" // no decode step ran untimed, so u comes from a repeated step
		if x.Trace.Device.None() {
			parts = append(parts, table.Segment{Rank: 0, Text: n + " planned", Short: n})
		} else if ns, ok := u.Wall.NS(); ok && ns > 0 {
			took := Millis(u.Wall)
			if !again && u.N > 1 {
				took = "median " + took
			}
			if !again && u.N < len(decode.Steps) {
				n = table.Integer(u.N) + " of " + n
			}
			short := n + ", " + took
			text := short + rangeOf(x, decode)
			if again {
				short += " (" + u.From + ")"
				text = n + ", untimed " + took + " (" + u.From + ")"
			}
			parts = append(parts, table.Segment{Rank: 0, Text: text, Short: short},
				table.Say(1, "%s tok/s %s", TokensPerS(u.TokensPerS(1)), u.Mode()))
		} else {
			parts = append(parts, table.Segment{
				Rank: 0, Short: n,
				Text: n + ", all with every " + x.TimedBy(decode) + " timed; press c to measure the untimed tok/s",
			})
		}
	}
	if executions := paced(x, trace.Execute, selected); len(executions.Steps) > 0 {
		part := executionPart(x, executions, routesOf(executions, selected))
		return table.Line{Separator: " · ", Segments: []table.Segment{part}}
	}
	parts = append(parts, prefillParts(x)...)
	s := &x.Trace.Steps[selected.Last()]
	at := fmt.Sprintf("position %s", table.Integer(s.Position+len(s.Tokens)))
	if of := x.Trace.Model.Dims["context"]; of > 0 {
		at += " of " + table.Integer(of)
	}
	return table.Line{Separator: " · ", Segments: append(parts, table.Segment{Rank: 2, Text: at})}
}

// paced returns the steps of a phase whose speed Pace shows: the selected steps if they were chosen from
// several and all belong to the phase, else the warm steps of the phase that Index.Routed keeps. What to fix
// first is of the same steps.
func paced(x *analyze.Index, phase trace.Phase, selected analyze.Selection) analyze.Selection {
	other := func(step int) bool { return x.Trace.Steps[step].Phase != phase }
	if !selected.Chosen() || slices.ContainsFunc(selected.Steps, other) {
		return x.Routed(x.Phase(phase))
	}
	return selected
}

// routesOf names the routes of the steps whose speed Pace shows, if others of their phase were left out. It
// returns "" for selected steps, which the title names.
func routesOf(s, selected analyze.Selection) string {
	if s.Rerouted == 0 || selected.Chosen() {
		return ""
	}
	return " with the routes of " + s.Like
}

// executionPart returns the segment with the number of executions and, if some ran untimed on a warm device,
// their median time. `routes` says which executions these are, or is "".
func executionPart(x *analyze.Index, executions analyze.Selection, routes string) table.Segment {
	n := table.Plural(len(executions.Steps), "execution") + routes
	u := x.UntimedOf(executions)
	switch ns, ok := u.Wall.NS(); {
	case x.Trace.Device.None():
		return table.Segment{Rank: 0, Text: n + " planned"}
	case !ok || ns <= 0:
		return table.Segment{Rank: 0, Text: n + ", all with every " + x.TimedBy(executions) +
			" timed; press c to measure the untimed time", Short: n}
	case u.From != "":
		return table.Segment{Rank: 0, Text: n + ", untimed " + Millis(u.Wall) + " (" + u.From + ")"}
	case u.N > 1:
		n += ", median " + Millis(u.Wall)
		return table.Segment{Rank: 0, Text: n + rangeOf(x, executions), Short: n}
	}
	return table.Segment{Rank: 0, Text: n + ", " + Millis(u.Wall)}
}

// TokensPerS formats a rate. A low rate has a decimal, so that it is not shown as 0.
func TokensPerS(rate float64) string {
	if rate < 10 {
		return fmt.Sprintf("%.1f", rate)
	}
	return fmt.Sprintf("%.0f", rate)
}

// rangeOf returns the shortest and the longest time of the selected steps that ran untimed. It returns ""
// for fewer than two steps.
func rangeOf(x *analyze.Index, selection analyze.Selection) string {
	var walls []int64
	for _, step := range x.RanUntimed(selection) {
		ns, _ := x.Trace.Steps[step].CPU.TotalNS.NS()
		walls = append(walls, ns)
	}
	if spread := analyze.StatsOf(walls); spread.N > 1 {
		return fmt.Sprintf(" (%s–%s)", table.MillisBare(analyze.Whole(spread.Min), true),
			table.MillisBare(analyze.Whole(spread.Max), true))
	}
	return ""
}

// prefillParts returns the title segments with prefill times. They show the last warm prompt, and the last
// cold prompt if it has the same length. If no prompt ran warm, they show only the last cold prompt.
func prefillParts(x *analyze.Index) []table.Segment {
	var warm, cold *rates.Prompt
	all := rates.Prompts(x)
	for i := range all {
		p := &all[i]
		if analyze.Measured(p.Warm) {
			warm = p
		}
		if p.Cold && analyze.Measured(p.Ran) {
			cold = p
		}
	}
	said := func(word string, timed bool) string {
		if timed {
			word += ", timing on"
		}
		return word
	}
	part := func(p *rates.Prompt, took trace.Time, word string) table.Segment {
		said := fmt.Sprintf("%s %s", Millis(took), word)
		return table.Segment{
			Rank: 2, Text: fmt.Sprintf("prefill of %s: %s", table.Plural(p.Tokens, "token"), said),
			Short: fmt.Sprintf("prefill %s: %s", table.Integer(p.Tokens), said),
		}
	}
	switch {
	case warm != nil:
		parts := []table.Segment{part(warm, warm.Warm, said("warm", warm.WarmTimed))}
		if cold != nil && cold.Tokens == warm.Tokens {
			parts = append(parts, table.Segment{Rank: 3, With: true, Text: fmt.Sprintf("(%s %s)",
				table.MillisBare(cold.Ran.NS()), said("cold", cold.RanTimed))})
		}
		return parts
	case cold != nil:
		return []table.Segment{part(cold, cold.Ran, said("cold", cold.RanTimed))}
	}
	return nil
}
