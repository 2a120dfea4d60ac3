package tui

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/trace"
	"gpuscope/trace/inspect"
	"gpuscope/trace/table"
)

// stepPage is view 1: what was generated, what a step cost and where its wall time went.
type stepPage struct {
	s     snapshot
	shown int // version
	step  int
	steps tablePane
}

func newStepPage() *stepPage {
	return &stepPage{steps: tablePane{
		plainColumns: true,
		giveUp: []string{
			"timing", "cold", "submits", "polls", "gc_ms", "compiled", "bind_groups",
			"passes", "levels", "dispatches", "idle_ms", "gaps_ms",
		},
	}}
}

func (p *stepPage) name() string { return "Step" }

func (p *stepPage) load(s snapshot) {
	if s.version == p.shown && s.step == p.step && p.steps.table != nil {
		return
	}
	p.s, p.shown, p.step = s, s.version, s.step
	if s.trace == nil {
		return
	}
	p.steps.load(s.index.Steps(inspect.Scope{}))
	p.steps.goTo(s.step)
}

func (p *stepPage) title(int) []table.Part {
	if p.s.trace == nil || p.s.step < 0 {
		return []table.Part{{Rank: 0, Text: "Step"}}
	}
	var prefill, decode int
	for i := range p.s.trace.Steps {
		switch p.s.trace.Steps[i].Phase {
		case "prefill":
			prefill++
		case "decode":
			decode++
		}
	}
	steps := plural(len(p.s.trace.Steps), "step")
	if n := p.s.trace.DroppedSteps; n > 0 { // out of the recorder's budget
		steps += fmt.Sprintf(" (%s older dropped)", count(n))
	}
	parts := []table.Part{table.Say(0, "%s: %d prefill ▒, %d decode █", steps, prefill, decode)}
	if p.s.base >= 0 {
		parts = append(parts, table.Say(2, "base s%d", p.s.trace.Steps[p.s.base].Index))
	}
	sum := p.s.summary
	if sum.TokensPerS > 0 {
		parts = append(parts,
			table.Say(1, "%.1f tok/s stepped, timing %s", sum.TokensPerS, sum.Step.Timing))
	}
	return parts
}

func (p *stepPage) move(motion) {} // left and right choose the step (App.move)

func (p *stepPage) pane() *tablePane { return &p.steps }

func (p *stepPage) render(t *theme, g glyphs, w, h int, _ bool) []string {
	if p.s.trace == nil || p.s.step < 0 {
		return []string{"", t.put(dim, "  No step was run yet. Press i and type a prompt.")}
	}
	sum := p.s.summary
	chart := clamp(h/5, 2, 8)
	var facts []string // what stands under the text
	facts = append(facts, cut(" "+p.candidates(w-2), w))
	if h >= 14 {
		facts = append(facts, "")
	}
	facts = append(facts, p.tracks(t, sum, w, h >= 14)...)
	counts := wrapText(p.counts(sum), w-2)
	facts = append(facts, indent(counts[:min(len(counts), max(1, h/8))])...)
	verdict := sum.Verdict
	if verdict == "" {
		verdict = "no verdict: the step's GPU time was not measured"
	}
	facts = append(facts, t.put(strong, cut(" "+markClosed+" "+verdict, w)))

	lines := p.strip(t, g, w, chart)
	rest := h - len(lines) - len(facts)
	text := clamp(rest, 1, max(2, h/5))
	lines = append(lines, p.text(t, w, text)...)
	lines = append(lines, facts...)
	if rest := h - len(lines); rest >= 5 {
		lines = append(lines, "")
		lines = append(lines, p.steps.render(t, w, rest-1, true, "")...)
	}
	return lines
}

// axis is how many cells stand left of the strip.
const axis = 10

// strip draws a column for each step, as high as its wall time. The scale is that of decode steps that were
// not cold, at most three times their median: a prefill, or one step that was held up, would leave nothing of
// the others. What is higher is cut off and says so.
func (p *stepPage) strip(t *theme, g glyphs, w, h int) []string {
	steps := p.s.trace.Steps
	wall := func(i int) float64 {
		ns, _ := steps[i].CPU.TotalNS.NS()
		return float64(ns)
	}
	scale, all := 0.0, 0.0
	var decodes []float64
	for i := range steps {
		if all = max(all, wall(i)); steps[i].Phase != "prefill" && !steps[i].Cold {
			decodes = append(decodes, wall(i))
		}
	}
	if slices.Sort(decodes); len(decodes) > 0 {
		scale = min(decodes[len(decodes)-1], 3*decodes[len(decodes)/2])
	}
	if scale == 0 {
		scale = all
	}
	cells := w - axis - 2
	first := clamp(p.s.step-cells/2, 0, max(0, len(steps)-cells))
	last := min(len(steps), first+cells)
	values := make([]float64, last-first)
	var marks, tops strings.Builder
	cutOff := false
	for i := first; i < last; i++ {
		if scale > 0 {
			values[i-first] = min(1, wall(i)/scale)
		}
		mark := " "
		switch {
		case i == p.s.step:
			mark = "▲"
		case i == p.s.base:
			mark = "b"
		case steps[i].Cold:
			mark = "c"
		}
		marks.WriteString(mark)
		if wall(i) > scale {
			cutOff = true
			tops.WriteString("↑")
		} else {
			tops.WriteString(" ")
		}
	}
	rows := g.columnChart(values, h, func(i int) bool { return steps[first+i].Phase == "prefill" })
	lines := make([]string, 0, h+1)
	for r, row := range rows {
		label := ""
		switch {
		case r == 0:
			label = table.Millis(int64(scale), true)
		case r == h-1:
			label = "0"
		}
		if r == 0 && cutOff {
			row = over(row, tops.String())
		}
		lines = append(lines, t.put(dim, fitLeft(label, axis-1)+" "+markBar)+t.put(graphA, row))
	}
	legend := "▲ shown"
	if strings.Contains(marks.String(), "b") {
		legend += "  b base"
	}
	if strings.Contains(marks.String(), "c") {
		legend += "  c cold"
	}
	if cutOff {
		legend += "  ↑ higher"
	}
	line := fit("", axis) + " " + marks.String()
	if room := w - width(line) - 3; room >= width(legend) {
		line += "   " + legend
	}
	return append(lines, t.put(dim, line))
}

// over lays the signs of top over a row of equal width.
func over(row, top string) string {
	under, signs := []rune(row), []rune(top)
	for i := range signs {
		if signs[i] != ' ' && i < len(under) {
			under[i] = signs[i]
		}
	}
	return string(under)
}

// word is a token with what it is to the shown step.
type word struct {
	text    string
	prompt  bool
	current bool
}

// words are the tokens of the run around the shown step.
func (p *stepPage) words() []word {
	var out []word
	s := &p.s.trace.Steps[p.s.step]
	at := s.Position + len(s.Tokens) // position of the token that came out
	for _, tok := range p.s.text.Prompt {
		out = append(out, word{text: tok.Text, prompt: true})
	}
	if p.s.live {
		n := len(out)
		for i, tok := range p.s.text.Given {
			out = append(out,
				word{text: tok.Text, current: n+i == at && s.Token != nil && *s.Token == tok.ID})
		}
		return out
	}
	// A trace has the texts of what was generated only: the way to the shown step, position by position.
	texts := map[int]string{}
	for i := range p.s.trace.Steps[:p.s.step+1] {
		if s := &p.s.trace.Steps[i]; s.Token != nil {
			texts[s.Position+len(s.Tokens)] = s.Text
		}
	}
	next := 0 // the first position that nothing was said of
	for _, pos := range slices.Sorted(maps.Keys(texts)) {
		if pos < 0 || pos > at {
			continue
		}
		if n := pos - next; n > 0 {
			out = append(out, word{text: fmt.Sprintf("(%s of prompt)", plural(n, "token")), prompt: true})
		}
		out = append(out, word{text: texts[pos], current: pos == at})
		next = pos + 1
	}
	return out
}

// text draws the tokens in at most h lines of w cells, those around the current one.
func (p *stepPage) text(t *theme, w, h int) []string {
	var lines []string
	var b strings.Builder
	used, found := 0, 0
	flush := func() {
		lines = append(lines, " "+b.String())
		b.Reset()
		used = 0
	}
	for _, x := range p.words() {
		s := printable.Clean(x.text)
		if x.current {
			s = "[" + s + "]"
		}
		if used > 0 && used+width(s) > w-2 {
			flush()
		}
		s = cut(s, w-2)
		switch {
		case x.current:
			b.WriteString(t.put(selected, s))
			found = len(lines)
		case x.prompt:
			b.WriteString(t.put(dim, s))
		default:
			b.WriteString(s)
		}
		used += width(s)
		if strings.HasSuffix(x.text, "\n") {
			flush()
		}
	}
	if used > 0 {
		flush()
	}
	if len(lines) == 0 {
		lines = []string{t.put(dim, " no text")}
	}
	from := clamp(found-h+1, 0, max(0, len(lines)-h))
	return lines[from:min(len(lines), from+h)]
}

// candidates are the tokens that the model thought of, as many as w cells hold.
func (p *stepPage) candidates(w int) string {
	s := &p.s.trace.Steps[p.s.step]
	if len(s.Top) == 0 {
		if s.Token == nil {
			return "no token: more of the prompt follows"
		}
		return fmt.Sprintf("token %q (id %d)", s.Text, *s.Token)
	}
	var parts []string
	used := 0
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
		if s.Token != nil && *s.Token == c.ID {
			name = markOK + " " + name
		}
		if used += width(name) + 3; used > w+3 && len(parts) > 0 {
			break
		}
		parts = append(parts, name)
	}
	return strings.Join(parts, " · ")
}

// share is a part of the wall time.
type share struct {
	name string
	time trace.Time
	text string // with "~" where modelled
}

// tracks draws where the wall time went, on the CPU and on the GPU, on one scale. Only the lengths are
// measured: the order of the GPU's parts is not.
func (p *stepPage) tracks(t *theme, sum *inspect.StepSummary, w int, figures bool) []string {
	c := &sum.Step.CPU
	cpu := []share{
		{"resize", c.ResizeNS, ""},
		{"upload", c.UploadNS, ""},
		{"encode", c.EncodeNS, ""},
		{"submit", c.SubmitNS, ""},
		{"wait", c.WaitNS, ""},
		{"sample", c.SampleNS, ""},
	}
	gpu := []share{
		{"work", sum.Work, "~"},
		{"timing", sum.Timing, "~"},
		{"gaps", sum.Gaps, ""},
		{"idle", sum.Idle, ""},
	}
	if _, ok := sum.Timing.NS(); !ok {
		gpu = append([]share{{"busy", sum.Busy, ""}}, gpu[2:]...)
	}
	var lines []string
	for _, track := range []struct {
		name  string
		parts []share
		paint paint
	}{{"CPU", cpu, graphB}, {"GPU", gpu, graphA}} {
		lines = append(lines, " "+track.name+" "+t.put(track.paint, bar(track.parts, sum.Wall, w-6)))
		if figures {
			var said []string
			for _, s := range track.parts {
				said = append(said, s.name+" "+s.text+table.MillisBare(s.time.NS()))
			}
			if !slices.ContainsFunc(track.parts, func(s share) bool { _, ok := s.time.NS(); return ok }) {
				continue // the bar has said that nothing was measured
			}
			figures := first(w-6, strings.Join(said, " · ")+" ms", strings.Join(said, "  ")+" ms",
				strings.Join(said, " "))
			lines = append(lines, t.put(dim, "     "+figures))
		}
	}
	return lines
}

// bar draws parts of a whole in w cells, each with its name where that fits. A part that was measured has at
// least its edge.
func bar(parts []share, whole trace.Time, w int) string {
	total, ok := whole.NS()
	if !ok || total <= 0 {
		return table.Unmeasured + " not measured"
	}
	var b strings.Builder
	used, sum := 0, int64(0)
	for _, s := range parts {
		ns, ok := s.time.NS()
		if !ok || ns <= 0 {
			continue
		}
		sum += ns
		end := min(w, int(float64(sum)/float64(total)*float64(w)+0.5))
		n := end - used
		if n <= 0 {
			continue
		}
		label := s.name
		if n < len(label)+1 {
			label = ""
		}
		b.WriteString(markBar + label + strings.Repeat(markRule, n-1-len(label)))
		used = end
	}
	if used == 0 {
		return table.Unmeasured + " not measured"
	}
	return b.String() + markBar
}

// counts are what a step did, counted and not timed.
func (p *stepPage) counts(sum *inspect.StepSummary) string {
	c := &sum.Step.CPU
	dispatches := plural(sum.Dispatches, "dispatch")
	if sum.Levels > 0 {
		dispatches += fmt.Sprintf(" in %s", plural(sum.Levels, "level"))
	}
	parts := []string{
		dispatches, plural(c.Passes, "pass"), plural(c.Submits, "submit"),
		fmt.Sprintf("%s of %s B", plural(c.Writes, "write"), count(c.WriteBytes)),
		plural(c.BindGroups, "bind group") + " made",
		plural(c.Polls, "poll"), "GC " + table.Millis(c.GCNS.NS()),
	}
	compiled := fmt.Sprintf("%d compiled", len(c.Compiled))
	if len(c.Compiled) > 0 {
		compiled = fmt.Sprintf("%d compiled in %s", len(c.Compiled), table.Millis(sum.Compiled.NS()))
		if len(c.Compiled) <= 2 {
			var names []string
			for _, k := range c.Compiled {
				names = append(names, k.Kernel)
			}
			compiled += " (" + strings.Join(names, ", ") + ")"
		}
	}
	parts = append(parts[:5], append([]string{compiled}, parts[5:]...)...)
	if m := sum.Step.Memory; m.AllocatedBytes > 0 {
		parts = append(parts,
			table.Memory(m.AllocatedBytes)+" allocated, "+table.Memory(m.LiveBytes)+" live")
	}
	return strings.Join(parts, " · ")
}
