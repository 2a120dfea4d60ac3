package report

import (
	"fmt"
	"slices"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/table"
)

// StepCount describes the number of selected steps, and the number of all steps if some are excluded: "2
// warm steps of 5", "33 of 96 steps: same routes as s487".
func StepCount(s analyze.Selection) string {
	n := len(s.Steps)
	switch {
	case s.Apart > 0:
		return fmt.Sprintf("%s of %s: %s", table.Integer(n), table.Plural(s.All(), "step"), tokensText(s))
	case s.Rerouted > 0:
		kind := ""
		if s.AllCold {
			kind = "cold, "
		} else if s.Cold > 0 {
			kind = "warm, "
		}
		return fmt.Sprintf("%s of %s: %ssame routes as %s", table.Integer(n),
			table.Plural(s.All(), "step"), kind, s.Like)
	case s.AllCold:
		return table.Plural(n, "cold step")
	case s.Cold > 0:
		return fmt.Sprintf("%s of %s", table.Plural(n, "warm step"), table.Integer(n+s.Cold))
	}
	return table.Plural(n, "step")
}

// tokensText says why analyze.SameTokens excluded steps, and which of the others analyze.Index.Routed kept.
func tokensText(s analyze.Selection) string {
	text := "those that read " + table.Plural(s.Tokens, "token")
	if s.Rerouted > 0 {
		text += ", same routes as " + s.Like
	}
	return text
}

// OtherTokens warns of a baseline whose steps read another number of tokens than the selected steps: the
// times are then of different work. Both selections are those of analyze.SameTokens.
func OtherTokens(x *analyze.Index, s analyze.Selection, b *analyze.Baseline) string {
	read := func(x *analyze.Index, s analyze.Selection) int {
		return analyze.TokensRead(&x.Trace.Steps[s.Last()])
	}
	is, was := read(x, s), read(b.Index, b.Selection)
	if is == was || is == 0 || was == 0 { // some formats do not state the number
		return ""
	}
	return fmt.Sprintf("other work: steps of %s, the baseline's of %s", table.Plural(is, "token"),
		table.Integer(was))
}

// SelectionText describes which steps are selected: "all 126 warm decode steps", "s30–s60: 31 steps".
func SelectionText(s analyze.Selection) string {
	_, one := s.One()
	kind := ""
	if slices.Contains(trace.Phases, trace.Phase(s.Name)) {
		kind = s.Name + " "
	} else if s.Name != "all" {
		if one && s.Cold == 0 {
			return s.Name
		}
		return s.Name + ": " + StepCount(s)
	}
	switch {
	case s.Apart > 0:
		return fmt.Sprintf("%s of %s %ssteps: %s", table.Integer(len(s.Steps)), table.Integer(s.All()), kind,
			tokensText(s))
	case s.Rerouted > 0:
		return fmt.Sprintf("%s of %s %ssteps: same routes as %s", table.Integer(len(s.Steps)),
			table.Integer(s.All()), kind, s.Like)
	case one && s.Which != "":
		return fmt.Sprintf("the one warm %sstep, %s", kind, strings.TrimPrefix(s.Called(), s.Name+" "))
	case one:
		return fmt.Sprintf("the one %sstep", kind)
	case s.AllCold:
		return fmt.Sprintf("all %s cold %ssteps", table.Integer(len(s.Steps)), kind)
	}
	return fmt.Sprintf("all %s warm %ssteps", table.Integer(len(s.Steps)), kind)
}

// BaselineName returns the name of a baseline, with the number of its steps if some were excluded because of
// their routes or their numbers of tokens: "decode", "decode n=77 of 199".
func BaselineName(s analyze.Selection) string {
	if s.Rerouted+s.Apart > 0 {
		return s.Counted()
	}
	return s.Called()
}

// SelectionPart returns the title segment for a selection that may have several steps.
func SelectionPart(s analyze.Selection) table.Segment {
	if _, one := s.One(); one {
		return table.Segment{Rank: 0, Text: s.Called() + ": " + StepCount(s), Short: s.Short()}
	}
	return table.Segment{
		Rank: 0, Text: fmt.Sprintf("%s: medians of %s", s.Name, StepCount(s)),
		Short: s.Counted(),
	}
}
