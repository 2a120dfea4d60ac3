package step

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
	"gpuscope/tui/view"
	"gpuscope/tui/widget"
)

// word is a token of the text and its role relative to the shown step.
type word struct {
	text    string
	prompt  bool
	current bool
}

// around is the minimum number of tokens shown before the current one, if the text has that many.
const around = 4096

// WordsAround returns the tokens of the text around the shown step. In a long text, the first returned token
// stays the same for thousands of steps, so that the lines do not move during a run.
func WordsAround(s view.Snapshot) []word {
	var out []word
	step := &s.Trace.Steps[s.Step]
	at := step.Position + len(step.Tokens) // position of the generated token
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
	// A trace holds only the generated text: collect the tokens of the steps up to this step, by position.
	texts := map[int]string{}
	for i := range s.Trace.Steps[:s.Step+1] {
		if s := &s.Trace.Steps[i]; s.Token != nil {
			texts[s.Position+len(s.Tokens)] = s.Text
		}
	}
	places := slices.Sorted(maps.Keys(texts))
	to, _ := slices.BinarySearch(places, at+1)
	places = places[:to]
	next := 0 // the first position without known text
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

// Text draws the lines around the current token: at most h lines of w cells.
func (f *Facts) Text(t *widget.Theme, w, h int) []string {
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
				s = "…" // an incomplete UTF-8 character, or a token without text
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
	if len(lines) == 0 && !f.imported() {
		lines = []string{t.Put(widget.Dim, " no text")}
	}
	from := widget.Clamp(found-h+1, 0, max(0, len(lines)-h))
	return lines[from:min(len(lines), from+h)]
}

// imported reports whether the steps come from the profile of another engine.
func (f *Facts) imported() bool { return f.s.Trace != nil && f.s.Trace.Engine != "" }

// outputs returns the number of outputs of the graph.
func outputs(t *trace.Trace) int {
	n := 0
	for i := range t.Graph.Values {
		if t.Graph.Values[i].Role == trace.RoleOutput {
			n++
		}
	}
	return n
}

// Candidates returns the model's most likely tokens, as many as fit into w cells.
func (f *Facts) Candidates(w int) string {
	s := f.Sum.Step
	if len(s.Top) == 0 {
		switch {
		case f.Sum.Planned:
			return "no token: the step was planned, not run"
		case f.imported():
			return "the profile contains no tokens"
		case s.Phase == trace.Execute:
			return "executed: " + widget.Plural(outputs(f.s.Trace), "output")
		case s.Token == nil:
			return "no token yet: the next step continues the prompt"
		}
		token := fmt.Sprintf("token %q (id %d)", s.Text, *s.Token)
		if f.s.Trace != nil && f.s.Trace.Graph.OnlyToken() {
			token += " · no candidates: the program computes only the token, no logits"
		}
		return token
	}
	var parts []string
	used := 0
	told := func(c trace.Candidate) bool { return s.Token != nil && c.ID == *s.Token }
	if s.Token != nil && !slices.ContainsFunc(s.Top, told) {
		parts = append(parts, fmt.Sprintf("%s %q", widget.MarkOK, s.Text)) // the token is not among s.Top
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

// samplingNames lists the sampling parameters in the order in which the sampler applies them.
var samplingNames = []string{
	"repeat_penalty", "repeat_last_n", "top_k", "top_p", "min_p", "temperature", "seed",
}

// Drawn returns the parameters with which the token was sampled, or nil if the step took the token with the
// highest logit without sampling.
func (f *Facts) Drawn() []string {
	var parts []string
	for _, name := range samplingNames {
		if value, ok := f.Sum.Step.Sampling[name]; ok {
			parts = append(parts, fmt.Sprintf("%s %v", strings.ReplaceAll(name, "_", " "), value))
		}
	}
	if len(parts) > 0 {
		parts[0] = "sampled with " + parts[0]
	}
	return parts
}

// Packed arranges parts into at most `most` lines of w cells. It never cuts a part, because half a part could
// be misread. If parts are left out, the last line ends with an ellipsis.
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

// Clauses returns as many clauses of a sentence as fit into w cells. If no clause fits, it cuts the first.
func Clauses(s string, w int) string { return cmp.Or(table.Clauses(s, w), widget.Cut(s, w)) }

// counted returns how many dispatches, passes, writes and so on a step had, most useful first.
func counted(sum *analyze.StepSummary) []string {
	c := &sum.Step.CPU
	dispatches := widget.Plural(sum.Dispatches, "dispatch")
	if sum.Levels > 0 {
		dispatches += fmt.Sprintf(" in %s", widget.Plural(sum.Levels, "level"))
	}
	// The host's work is unknown for a planned step and for a step of another engine.
	if sum.Planned || sum.Index.Trace.Engine != "" {
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

// memories returns how much device memory the values of a step use, or nil if that is unknown.
func memories(step *trace.Step, allocated string) []string {
	m := step.Memory
	if m.AllocatedBytes <= 0 {
		return nil
	}
	return []string{table.Memory(m.AllocatedBytes) + allocated, table.Memory(m.LiveBytes) + " live"}
}
