package command

import "slices"

// hint says what the user can press next. It is shown until one of its commands was used.
type hint struct {
	commands []string
	needs    string // command that must be available
	text     string // {name} stands for the key of a command
}

// hints lists the hints, the most useful first.
var hints = []hint{
	{[]string{"token", "run"}, "prompt", "Next: {token} generates a token, {run} generates on, {prompt} takes another prompt."},
	{
		[]string{"Dispatches"},
		"Dispatches",
		"Next: {Dispatches} shows every dispatch, its grid, time and cost.",
	},
	{[]string{"how do I"}, "how do I", "Next: {how do I} lists questions and presses the keys for you."},
}

// NextHint returns the first hint that is possible now and whose commands were not used yet, or "" if there
// is none.
func NextHint(available, used func(name string) bool) string {
	for _, h := range hints {
		if !slices.ContainsFunc(h.commands, used) && available(h.needs) {
			return Keyed(h.text)
		}
	}
	return ""
}
