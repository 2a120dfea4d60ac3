// Package advice says in sentences what to fix first in a run, and how much faster the model would then be.
// Package analyze/headline computes the numbers.
package advice

import (
	"fmt"
	"strings"

	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/costs"
	"gpuscope/trace/analyze/headline"
	"gpuscope/trace/table"
)

// Advice holds the sentences of a headline.
type Advice struct {
	// First says what to fix first: "Fix first: mlp.gate+up, 26 % of the GPU time of a step."
	First string
	// Gain says how much faster this makes the model: "Twice as fast there: 46 to ~53 tokens/s." It is "" if
	// this is not known.
	Gain string
	// Basis says how the numbers were obtained, and what would make unknown numbers known. Each element is
	// one fact, in one or a few sentences.
	Basis []string
}

// Of returns the sentences of a headline.
func Of(h *headline.Headline) Advice {
	a := Advice{Basis: basis(h)}
	switch {
	case h.First == nil:
		a.First = "What to fix first is not known: " + unknown(h) + "."
	case h.Idle != nil:
		a.First = fmt.Sprintf("Fix the GPU's idle time first: %s ± %s of a step of %s. Then fix %s.",
			millis(h.Idle.NS), millis(h.Idle.ErrorNS), table.Millis(h.Pace.Wall.NS()), share(h))
		a.Gain = gain("Without idle time", h, h.Idle.Rate)
	default:
		a.First = "Fix first: " + share(h) + "."
	}
	if h.Idle == nil && h.First != nil {
		a.Gain = gains(h)
	}
	return a
}

// unknown says why no row is named.
func unknown(h *headline.Headline) string {
	switch {
	case h.Why == headline.NotSignificant && h.Group != nil:
		return "only groups exceed the noise"
	case h.Why == headline.NotSignificant:
		return "no cost exceeds the noise"
	case h.Why == headline.NoSaving:
		return "no saving exceeds the noise"
	}
	return "no dispatch was timed"
}

// gains says how much faster the model would be if the row to fix first were twice as fast, and if it reached
// the ceilings of the device. If the ceilings allow less than twice the speed, it says so, because a reader
// would otherwise take the rate of twice the speed as possible.
func gains(h *headline.Headline) string {
	if !h.First.TwiceBeyondCeilings() {
		return joined(twice(h), atLimit(h))
	}
	now, limit, twice := table.Digits(h.Rate), table.Digits(h.First.AtLimit), table.Digits(h.First.Twice)
	switch {
	case h.Rate <= 0:
		return ""
	case limit == twice: // the difference is too small to state
		return atLimit(h)
	case limit == now:
		now = "no more than " + now
	default:
		now += " to ~" + limit
	}
	return fmt.Sprintf("The device's ceilings allow %s %s; twice as fast there (~%s) is beyond them.", now,
		h.Pace.Unit(), twice)
}

// twice says how much faster the model would be if the row to fix first were twice as fast.
func twice(h *headline.Headline) string { return gain("Twice as fast there", h, h.First.Twice) }

// atLimit says how much faster the model would be if the row to fix first reached the ceilings of the device.
func atLimit(h *headline.Headline) string {
	return gain("At the device's ceilings there", h, h.First.AtLimit)
}

// Lines returns the headline in several lengths, the longest first. Each element is one line with what to fix
// first, and how much faster this makes the model. The shorter lines state one speed: that of a row that is
// twice as fast or, if this is faster than the device's ceilings allow, that of a row at the ceilings.
func Lines(h *headline.Headline) []string {
	a := Of(h)
	if h.First == nil {
		return []string{a.First}
	}
	all := joined(a.First, a.Gain)
	if h.Idle != nil {
		short := fmt.Sprintf("Fix the GPU's idle time first: %s. Then %s, %.0f %%.", millis(h.Idle.NS),
			h.First.Name, 100*h.First.Share)
		return []string{all, a.First, short}
	}
	row := "Fix first: " + h.First.Name
	if h.Basis == headline.Isolated {
		row = "Fix first, by isolated times: " + h.First.Name
	}
	first := fmt.Sprintf("%s, %.0f %%.", row, 100*h.First.Share)
	likely, short, rate := twice(h), "2×:", h.First.Twice
	if h.First.TwiceBeyondCeilings() {
		likely, short, rate = atLimit(h), "At the ceilings", h.First.AtLimit
	}
	list := []string{all, joined(a.First, likely), joined(first, likely)}
	if likely != "" {
		brief := fmt.Sprintf("%s %s → ~%s %s", short, table.Digits(h.Rate), table.Digits(rate), h.Pace.Unit())
		// The table below shows the share too, so the share is left out before the speed.
		list = append(list, first+" "+brief, row+". "+brief)
	}
	return append(list, first)
}

// millis formats a time in ms, or in µs if it is shorter than 10 µs.
func millis(ns int64) string {
	if ns < 10_000 && ns > -10_000 {
		return fmt.Sprintf("%.1f µs", float64(ns)/1e3)
	}
	return table.Millis(ns, true)
}

// share names the row to fix first and its share of the step.
func share(h *headline.Headline) string {
	of := "of the GPU time of a step"
	if h.Basis == headline.Isolated {
		of = "of the isolated times of a step"
	}
	return fmt.Sprintf("%s, %.0f %% %s", h.First.Name, 100*h.First.Share, of)
}

// gain compares the measured rate with a modelled one. It returns "" if one of them is not known, or if
// both are the same when rounded to three digits.
func gain(what string, h *headline.Headline, rate float64) string {
	now, then := table.Digits(h.Rate), table.Digits(rate)
	if h.Rate <= 0 || rate <= 0 || now == then {
		return ""
	}
	return fmt.Sprintf("%s: %s to ~%s %s.", what, now, then, h.Pace.Unit())
}

func joined(sentences ...string) string { return strings.TrimSpace(strings.Join(sentences, " ")) }

// Paragraph returns Basis as one text.
func (a *Advice) Paragraph() string { return joined(a.Basis...) }

// Measure says how to measure costs. MeasureMore says how to reduce the errors of measured costs.
const (
	Measure     = "Press c on the screen, or record with gpuscope run --profile cost."
	MeasureMore = "Press c on the screen to measure more rounds."
)

// basis says how the numbers of a headline were obtained.
func basis(h *headline.Headline) (facts []string) {
	say := func(format string, args ...any) { facts = append(facts, fmt.Sprintf(format, args...)) }
	switch h.Why {
	case headline.NoReason:
		said := fmt.Sprintf("Cost %s ± %s µs, measured at s%d in %s", analyze.Short(h.First.NS),
			analyze.Short(h.First.ErrorNS), h.CostStep, table.Plural(h.Rounds, "round"))
		if h.First.SaveKnown {
			said += fmt.Sprintf("; ~%s µs of it are above the time that the device's ceilings allow",
				analyze.Short(h.First.SaveNS))
		}
		say("%s.", said)
		return append(facts, pace(h))
	case headline.NoCosts:
		say("No costs were measured.")
	case headline.OtherWork:
		say("Costs were measured only on other routes or shapes.")
	case headline.FewRounds:
		say("The errors of the costs are not known yet: %s.", analyze.OfRounds(h.Rounds))
	case headline.NotSignificant:
		if h.Group == nil {
			say("No cost exceeds the noise after %s.", table.Plural(h.Rounds, "round"))
			break
		}
		say("No single row's cost exceeds the noise after %s, but groups do. The largest is %s.",
			table.Plural(h.Rounds, "round"), group(h.Group))
	case headline.NoSaving:
		say("No row could save more than the noise after %s.", table.Plural(h.Rounds, "round"))
	case headline.FewRows:
		say("Costs were measured for less than half of the step.")
	}
	if h.Basis == headline.Isolated {
		say("These are isolated times, which leave out that dispatches overlap: %s µs of %s µs.",
			analyze.Short(h.First.NS), analyze.Short(h.WholeNS))
	}
	how := Measure
	switch h.Why {
	case headline.FewRounds, headline.NotSignificant, headline.NoSaving:
		how = MeasureMore
	}
	return append(facts, how, pace(h))
}

// group names a group of the table cost-groups, with its cost and its share of the step.
func group(g *costs.Row) string {
	name := g.Name
	switch g.Kind {
	case costs.Kernel, costs.Operators: // the name alone could be that of a row
		name = string(g.Kind) + " " + name
	}
	said := fmt.Sprintf("%s: %s ± %s µs", name, analyze.Short(float64(g.Cost.NS)),
		analyze.Short(g.Cost.ErrorNS))
	if g.Cost.Share > 0 {
		said += fmt.Sprintf(", %.0f %% of the GPU time of a step", 100*g.Cost.Share)
	}
	return said
}

// pace says which steps the measured rate is from.
func pace(h *headline.Headline) string {
	if h.Rate <= 0 {
		return "The speed of untimed steps is not known."
	}
	of := "one untimed step"
	if h.Pace.N > 1 {
		of = fmt.Sprintf("the median of %d untimed steps", h.Pace.N)
	}
	if h.Pace.From != "" {
		of = "the median of untimed repeats (" + h.Pace.From + ")"
	}
	return fmt.Sprintf("%s %s is measured: %s, %s. Rates with ~ are modelled.", table.Digits(h.Rate),
		h.Pace.Unit(), of, h.Pace.Mode())
}
