package tui

import (
	"context"
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
	steps listPage
	task  task[summaryBase, *stepFacts]
}

// summaryBase is what the page is of: a step and what it is compared with, in a version of the data.
type summaryBase struct {
	summaryKey
	base int
}

// stepFacts are what takes the longer the more steps there are. A job gathers them; they do not change.
type stepFacts struct {
	s               snapshot
	sum             *inspect.StepSummary
	prefill, decode int
	scale           float64 // ns at the top of the strip
	words           []word  // of the text around the step
}

func newStepPage(*App) view {
	p := &stepPage{steps: listOf("steps")}
	p.steps.rows.plainColumns = true
	p.steps.rows.giveUp = []string{
		"timing", "cold", "submits", "polls", "gc_ms", "compiled", "bind_groups",
		"passes", "levels", "dispatches", "idle_ms", "gaps_ms",
	}
	return p
}

func (p *stepPage) load(j *jobs, s snapshot, _ int) {
	if s.step < 0 || s.trace == nil {
		p.task.clear(j)
		p.steps.rows.unload(j)
		return
	}
	p.task.want(j, summaryBase{summaryKey{s.version, s.step}, s.base},
		func(ctx context.Context) (*stepFacts, error) { return gather(ctx, s) }, nil)
	p.steps.rows.load(j, s.index, s, func(ctx context.Context) (*table.Table, error) {
		return p.steps.from.Of(ctx, s.index, inspect.Options{})
	})
	p.steps.rows.goTo(s.step)
}

// gather looks at all steps.
func gather(ctx context.Context, s snapshot) (*stepFacts, error) {
	f := &stepFacts{s: s, sum: s.index.Summary(s.step)}
	var decodes []float64
	all := 0.0
	for i := range s.trace.Steps {
		step := &s.trace.Steps[i]
		switch step.Phase {
		case "prefill":
			f.prefill++
		case "decode":
			f.decode++
		}
		if all = max(all, wallNS(step)); step.Phase != "prefill" && !step.Cold {
			decodes = append(decodes, wallNS(step))
		}
	}
	// The scale is that of decode steps that were not cold, at most three times their median: a prefill, or
	// one step that was held up, would leave nothing of the others.
	if slices.Sort(decodes); len(decodes) > 0 {
		f.scale = min(decodes[len(decodes)-1], 3*decodes[len(decodes)/2])
	}
	if f.scale == 0 {
		f.scale = all
	}
	f.words = wordsAround(s)
	return f, ctx.Err()
}

// wallNS is the wall time of a step, 0 where it was not measured.
func wallNS(s *trace.Step) float64 {
	ns, _ := s.CPU.TotalNS.NS()
	return float64(ns)
}

func (p *stepPage) title(int) []table.Part {
	f := p.task.value
	if f == nil {
		return []table.Part{{Rank: 0, Text: "Step"}}
	}
	t := f.s.trace
	steps := plural(len(t.Steps), "step")
	if n := t.DroppedSteps; n > 0 { // out of the recorder's budget
		steps += fmt.Sprintf(" (%s older dropped)", count(n))
	}
	parts := []table.Part{table.Say(0, "%s: %d prefill ▒, %d decode █", steps, f.prefill, f.decode)}
	if f.s.base >= 0 {
		parts = append(parts, table.Say(2, "base s%d", t.Steps[f.s.base].Index))
	}
	if f.sum.TokensPerS > 0 {
		parts = append(parts, table.Say(1, "%.1f tok/s stepped", f.sum.TokensPerS))
	}
	return parts
}

// steps that a motion goes.
var steps = map[motion]int{
	left: -1, up: -1, right: 1, down: 1, halfUp: -5, halfDown: 5, pageUp: -10, pageDown: 10, top: -1 << 30,
	bottom: 1 << 30,
}

func (p *stepPage) stepsBy(m motion) int { return steps[m] }

func (p *stepPage) copied() string { return p.steps.rows.rowText() }

func (p *stepPage) render(t *theme, g glyphs, w, h int, _ bool) []string {
	f := p.task.value
	if f == nil {
		return []string{"", t.put(dim, "  Computing …")}
	}
	chart := clamp(h/5, 2, 8)
	var facts []string // what stands under the text
	facts = append(facts, cut(" "+f.candidates(w-2), w))
	if h >= 14 {
		facts = append(facts, "")
	}
	facts = append(facts, tracks(t, f.sum, w, h >= 14)...)
	facts = append(facts, indent(packed(counted(f.sum), w-2, max(1, h/8)))...)
	verdict := f.sum.Verdict
	if verdict == "" {
		verdict = "no verdict: the step's GPU time was not measured"
	}
	facts = append(facts, t.put(strong, cut(" "+markClosed+" "+verdict, w)))

	lines := f.strip(t, g, w, chart)
	rest := h - len(lines) - len(facts)
	lines = append(lines, f.text(t, w, clamp(rest, 1, max(2, h/5)))...)
	lines = append(lines, facts...)
	if rest := h - len(lines); rest >= 5 && p.steps.rows.table != nil {
		lines = append(lines, "")
		lines = append(lines, p.steps.rows.render(t, w, rest-1, true, "")...)
	}
	return lines
}

// axis is how many cells stand left of the strip.
const axis = 10

// strip draws a column for each step, as high as its wall time. What is higher than the scale is cut off and
// says so.
func (f *stepFacts) strip(t *theme, g glyphs, w, h int) []string {
	steps, scale := f.s.trace.Steps, f.scale
	wall := func(i int) float64 { return wallNS(&steps[i]) }
	cells := w - axis - 2
	first := clamp(f.s.step-cells/2, 0, max(0, len(steps)-cells))
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
		case i == f.s.step:
			mark = "▲"
		case i == f.s.base:
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

// around is how many tokens before the current one are shown at least, where there are so many.
const around = 4096

// wordsAround are the tokens of the run around the step of a snapshot. A long text begins at one token for
// thousands of steps, so that its lines stay where they are while the run goes on.
func wordsAround(s snapshot) []word {
	var out []word
	step := &s.trace.Steps[s.step]
	at := step.Position + len(step.Tokens) // position of the token that came out
	if s.live {
		prompt, given := s.text.Prompt, s.text.Given
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
	for i := range s.trace.Steps[:s.step+1] {
		if s := &s.trace.Steps[i]; s.Token != nil {
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
			out = append(out, word{text: fmt.Sprintf("(%s of prompt)", plural(n, "token")), prompt: true})
		}
		out = append(out, word{text: texts[pos], current: pos == at})
		next = pos + 1
	}
	return out
}

// text draws the tokens in at most h lines of w cells, those around the current one.
func (f *stepFacts) text(t *theme, w, h int) []string {
	var lines []string
	var b strings.Builder
	used, found := 0, 0
	flush := func() {
		lines = append(lines, " "+b.String())
		b.Reset()
		used = 0
	}
	for _, x := range f.words {
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
func (f *stepFacts) candidates(w int) string {
	s := f.sum.Step
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
func tracks(t *theme, sum *inspect.StepSummary, w int, figures bool) []string {
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
	used, sum := 0, 0.0 // a recording may say so much that no int64 holds the sum
	for _, s := range parts {
		ns, ok := s.time.NS()
		if !ok || ns <= 0 {
			continue
		}
		sum += float64(ns)
		end := int(min(1, sum/float64(total))*float64(w) + 0.5)
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

// packed sets parts into at most so many lines. A part is whole or left out: half of one would be read as a
// fact of its own.
func packed(parts []string, w, most int) []string {
	var lines []string
	for _, part := range parts {
		last := len(lines) - 1
		if last >= 0 && table.Width(lines[last]+" · "+part) <= w {
			lines[last] += " · " + part
		} else if len(lines) < most && table.Width(part) <= w {
			lines = append(lines, part)
		} else {
			break
		}
	}
	return lines
}

// counted is what a step did, counted and not timed, the most telling first.
func counted(sum *inspect.StepSummary) []string {
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
				names = append(names, printable.Clean(k.Kernel))
			}
			compiled += " (" + strings.Join(names, ", ") + ")"
		}
	}
	parts = append(parts[:5], append([]string{compiled}, parts[5:]...)...)
	if m := sum.Step.Memory; m.AllocatedBytes > 0 {
		parts = append(parts, table.Memory(m.AllocatedBytes)+" allocated", table.Memory(m.LiveBytes)+" live")
	}
	return parts
}
