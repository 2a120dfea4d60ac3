package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/table"
	"gpuscope/tui/widget"
)

// word is a token with what it is to the shown step.
type word struct {
	text    string
	prompt  bool
	current bool
}

// around is how many tokens before the current one are shown at least, where there are so many.
const around = 4096

// WordsAround are the tokens of the run around the step of a snapshot. A long text begins at one token for
// thousands of steps, so that its lines stay where they are while the run goes on.
func WordsAround(s Snapshot) []word {
	var out []word
	step := &s.Trace.Steps[s.Step]
	at := step.Position + len(step.Tokens) // position of the token that came out
	if s.Live {
		prompt, given := s.Text.Prompt, s.Text.Given
		from, to := 0, min(len(prompt)+len(given), max(0, at)+around)
		if at > 2*around {
			from = min(at/around*around-around, to)
		}
		for i := from; i < to; i++ {
			if i < len(prompt) {
				out = append(out, word{text: prompt[i].Text, prompt: true})
				continue
			}
			tok := given[i-len(prompt)]
			current := i == at && step.Token != nil && *step.Token == tok.ID
			out = append(out, word{text: tok.Text, current: current})
		}
		return out
	}
	// A trace has the texts of what was generated only: the way to the shown step, position by position.
	texts := map[int]string{}
	for i := range s.Trace.Steps[:s.Step+1] {
		if s := &s.Trace.Steps[i]; s.Token != nil {
			texts[s.Position+len(s.Tokens)] = s.Text
		}
	}
	places := slices.Sorted(maps.Keys(texts))
	to, _ := slices.BinarySearch(places, at+1)
	places = places[:to]
	next := 0 // the first position that nothing was said of
	if n := len(places); n > 2*around {
		places = places[n/around*around-around:]
		next = places[0]
	}
	for _, pos := range places {
		if pos < 0 {
			continue
		}
		if n := pos - next; n > 0 {
			out = append(out, word{
				text:   fmt.Sprintf("(%s of prompt)", widget.Plural(n, "token")),
				prompt: true,
			})
		}
		out = append(out, word{text: texts[pos], current: pos == at})
		next = pos + 1
	}
	return out
}

// Text draws the tokens in at most h lines of w cells, those around the current one.
func (f *StepFacts) Text(t *widget.Theme, w, h int) []string {
	var lines []string
	var b strings.Builder
	used, found := 0, 0
	flush := func() {
		lines = append(lines, " "+b.String())
		b.Reset()
		used = 0
	}
	for _, x := range f.Words {
		s := printable.Clean(x.text)
		if x.current {
			if s == "" {
				s = "…" // a part of a character that is not whole yet, or a token that has no text
			}
			s = "[" + s + "]"
		}
		if used > 0 && used+widget.Width(s) > w-2 {
			flush()
		}
		s = widget.Cut(s, w-2)
		switch {
		case x.current:
			b.WriteString(t.Put(widget.Selected, s))
			found = len(lines)
		case x.prompt:
			b.WriteString(t.Put(widget.Dim, s))
		default:
			b.WriteString(s)
		}
		used += widget.Width(s)
		if strings.HasSuffix(x.text, "\n") {
			flush()
		}
	}
	if used > 0 {
		flush()
	}
	if len(lines) == 0 {
		lines = []string{t.Put(widget.Dim, " no text")}
	}
	from := widget.Clamp(found-h+1, 0, max(0, len(lines)-h))
	return lines[from:min(len(lines), from+h)]
}

// Candidates are the tokens that the model thought of, as many as w cells hold.
func (f *StepFacts) Candidates(w int) string {
	s := f.Sum.Step
	if len(s.Top) == 0 {
		switch {
		case f.Sum.Planned:
			return "no token: the step was planned, not run"
		case s.Token == nil:
			return "no token: more of the prompt follows"
		}
		return fmt.Sprintf("token %q (id %d)", s.Text, *s.Token)
	}
	var parts []string
	used := 0
	told := func(c trace.Candidate) bool { return s.Token != nil && c.ID == *s.Token }
	if s.Token != nil && !slices.ContainsFunc(s.Top, told) {
		parts = append(parts, fmt.Sprintf("%s %q", widget.MarkOK, s.Text)) // sampled from outside of these
		used = widget.Width(parts[0]) + 3
	}
	for _, c := range s.Top {
		name := fmt.Sprintf("#%d", c.ID)
		if c.Text != "" {
			name = fmt.Sprintf("%q", c.Text)
		}
		if c.P > 0 {
			name += fmt.Sprintf(" %.1f%%", 100*c.P)
		} else {
			name += fmt.Sprintf(" logit %.2f", c.Logit)
		}
		if told(c) {
			name = widget.MarkOK + " " + name
		}
		if used += widget.Width(name) + 3; used > w+3 && len(parts) > 0 {
			break
		}
		parts = append(parts, name)
	}
	return strings.Join(parts, " · ")
}

// samplingNames are what a trace says of how a token was drawn, in the order of their filters.
var samplingNames = []string{
	"repeat_penalty", "repeat_last_n", "top_k", "top_p", "min_p", "temperature", "seed",
}

// Drawn says how the token was picked where it is not simply the highest logit.
func (f *StepFacts) Drawn() []string {
	var parts []string
	for _, name := range samplingNames {
		if value, ok := f.Sum.Step.Sampling[name]; ok {
			parts = append(parts, fmt.Sprintf("%s %v", strings.ReplaceAll(name, "_", " "), value))
		}
	}
	if len(parts) > 0 {
		parts[0] = "drawn by " + parts[0]
	}
	return parts
}

// Packed sets parts into at most so many lines. A part is whole or left out: half of one would be read as a
// fact of its own. The end says that some are left out.
func Packed(parts []string, w, most int) []string {
	const more = " …"
	var lines []string
	for i, part := range parts {
		last, room := len(lines)-1, w
		if len(lines) == most && i < len(parts)-1 {
			room -= table.Width(more)
		}
		if last >= 0 && table.Width(lines[last]+" · "+part) <= room {
			lines[last] += " · " + part
		} else if len(lines) < most && table.Width(part) <= w {
			lines = append(lines, part)
		} else {
			if last >= 0 && table.Width(lines[last]+more) <= w {
				lines[last] += more
			}
			break
		}
	}
	return lines
}

// Clauses is as much of a sentence as w cells hold, by whole clauses where one has room.
func Clauses(s string, w int) string { return cmp.Or(table.Clauses(s, w), widget.Cut(s, w)) }

// counted is what a step did, counted and not timed, the most telling first.
func counted(sum *analyze.StepSummary) []string {
	c := &sum.Step.CPU
	dispatches := widget.Plural(sum.Dispatches, "dispatch")
	if sum.Levels > 0 {
		dispatches += fmt.Sprintf(" in %s", widget.Plural(sum.Levels, "level"))
	}
	if sum.Planned { // what the host does to run it was not counted: it did not run
		return append([]string{dispatches}, memories(sum.Step, " to allocate")...)
	}
	parts := []string{
		dispatches, widget.Plural(c.Passes, "pass"), widget.Plural(c.Submits, "submit"),
		fmt.Sprintf("%s of %s B", widget.Plural(c.Writes, "write"), widget.Count(c.WriteBytes)),
		widget.Plural(c.BindGroups, "bind group") + " made",
		widget.Plural(c.Polls, "poll"), "GC " + table.Millis(c.GCNS.NS()),
	}
	compiled := fmt.Sprintf("%d compiled", len(c.Compiled))
	if len(c.Compiled) > 0 {
		compiled = fmt.Sprintf("%d compiled in %s", len(c.Compiled), table.Millis(sum.Compiled.NS()))
		if len(c.Compiled) <= 2 {
			var names []string
			for _, k := range c.Compiled {
				names = append(names, printable.Clean(k.Kernel))
			}
			compiled += " (" + strings.Join(names, ", ") + ")"
		}
	}
	parts = append(parts[:5], append([]string{compiled}, parts[5:]...)...)
	return append(parts, memories(sum.Step, " allocated")...)
}

// memories are what a step's values have on the device, where that is known.
func memories(step *trace.Step, allocated string) []string {
	m := step.Memory
	if m.AllocatedBytes <= 0 {
		return nil
	}
	return []string{table.Memory(m.AllocatedBytes) + allocated, table.Memory(m.LiveBytes) + " live"}
}
