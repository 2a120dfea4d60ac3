package tui

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/model/session"
	"gpuscope/trace"
	"gpuscope/trace/table"
)

// rects are where everything is now.
func (a *App) rects() map[region]rect {
	return layout(a.w, a.h, arrangement{
		detail: is[detailer](a.view()), zoom: a.zooms[a.current], notice: len(a.footLines()),
		split: a.split[a.current],
	})
}

// frame composes the screen, line by line.
func (a *App) frame() string {
	if s := tooSmall(a.w, a.h); s != "" {
		lines := wrapText(s, max(1, a.w))
		return strings.Join(lines[:min(len(lines), max(1, a.h))], "\n")
	}
	m := a.rects()
	f := canvas{lines: make([]strings.Builder, a.h), used: make([]int, a.h)}
	f.draw(m[regionHeader], []string{a.header(a.w)})
	f.draw(m[regionTabs], []string{a.tabs(a.w)})
	f.draw(m[regionAbout], []string{a.about(a.w)})
	body := m[regionList]
	switch {
	case a.over != nil:
		r := rect{0, 4, a.w, a.h - 5 - m[regionNotice].h} // an error stays in sight
		lines := a.over.text.paint(a.theme, r.w-1, r.h)
		right := joined(" · ", a.over.text.foundText(), a.over.text.where()) + " "
		f.draw(rect{0, 3, a.w, 1}, []string{a.theme.put(strong, spread(" "+a.over.title, right, a.w))})
		f.draw(r, lines)
	case a.empty() != "":
		f.draw(rect{0, 3, a.w, a.h - 4 - m[regionNotice].h}, a.welcome(a.w, a.h-4))
	default:
		v := a.view()
		var lines []string
		if l, ok := v.(lister); ok {
			l.pane().screen = a.w
		}
		if body.h > 0 {
			lines = v.render(a.theme, a.glyphs, body.w, body.h, !a.inDetail)
		}
		f.draw(m[regionTitle], []string{a.title(v, m[regionTitle].w)})
		f.draw(body, lines)
		divider, side := m[regionDivider]
		if side {
			f.draw(divider, slices.Repeat([]string{a.border()}, divider.h))
		}
		if r, ok := m[regionDetail]; ok {
			lines := a.detail.render(r.w-2, r.h)
			if err := a.detailTask.err; err != nil { // what is there is of something else
				lines = complain(a.theme, r.w-2, "This could not be made: "+err.Error())[1:]
			}
			f.draw(m[regionDetailTitle], []string{a.detailLine(r.w, side)})
			f.draw(r, indent(lines))
		}
	}
	if r, ok := m[regionNotice]; ok {
		f.draw(r, a.footLines())
	}
	if a.dialog != nil {
		f.put(a.dialogLines())
	} else {
		f.draw(m[regionHint], []string{a.hints(a.w)})
		lines := a.noteLines(a.w)
		f.put(rect{0, a.h - len(lines), a.w, len(lines)}, lines)
	}
	return f.String()
}

// dialogLines are the dialog under a rule, and where they stand.
func (a *App) dialogLines() (rect, []string) {
	all, least := a.dialog.lines(a.w)
	h := min(max(a.h/2, least), all, a.h-3) // header and tabs stay
	lines := append([]string{a.theme.put(dim, strings.Repeat(markRule, a.w))}, a.dialog.render(a, a.w, h)...)
	return rect{0, a.h - len(lines), a.w, len(lines)}, lines
}

// canvas is a frame being put together: lines, filled from the left.
type canvas struct {
	lines []strings.Builder
	used  []int // cells
}

// draw puts lines into a rectangle; what stands left of it on its lines must have been drawn before.
func (c *canvas) draw(r rect, lines []string) {
	for i, l := range lines[:min(len(lines), max(0, r.h))] {
		y := r.y + i
		if y < 0 || y >= len(c.lines) {
			continue
		}
		if gap := r.x - c.used[y]; gap > 0 {
			c.lines[y].WriteString(blank(gap))
			c.used[y] += gap
		}
		// Text of others was cleaned where it got in. Whatever was forgotten ends here.
		if l = printable.Styled(l); width(l) > r.w {
			l = cut(l, r.w)
		}
		c.lines[y].WriteString(l)
		c.used[y] += width(l)
	}
}

// put draws over whole lines.
func (c *canvas) put(r rect, lines []string) {
	for y := max(0, r.y); y < min(len(c.lines), r.y+r.h); y++ {
		c.lines[y].Reset()
		c.used[y] = 0
	}
	c.draw(r, lines)
}

func (c *canvas) String() string {
	var b strings.Builder
	for i := range c.lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(c.lines[i].String())
	}
	return b.String()
}

func indent(lines []string) []string {
	for i, l := range lines {
		if l != "" {
			lines[i] = " " + l
		}
	}
	return lines
}

// header says what runs on what, which step is shown, and how things stand. The program's own name is there
// where nothing is lost for it.
func (a *App) header(w int) string {
	const name = "gpuscope"
	state := a.stateWord()
	room := w - width(state) - 3
	text := ""
	if t := a.mirror.Trace; t != nil {
		model := filepath.Base(printable.Clean(t.Model.Name))
		line := table.Title(slices.Concat([]table.Part{{Rank: 2, Text: model, Short: cutMiddle(model, 20)}},
			deviceParts(&t.Device), a.stepParts())...)
		text = printable.Clean(line.Fit(room))
	}
	left := " " + fit(text, room+1)
	if n := width(name) + 2; width(text)+n <= room {
		left = " " + a.theme.put(strong, name) + "  " + fit(text, room+1-n)
	}
	return left + a.theme.put(a.statePaint(), state)
}

// deviceParts say what the device is.
func deviceParts(d *trace.Device) []table.Part {
	if d.Software() {
		name, _, _ := strings.Cut(d.Name, " (")
		short := fmt.Sprintf("software device (%s)", name)
		return []table.Part{{Rank: 0, Text: short + ": compare ratios only", Short: short}}
	}
	return []table.Part{{Rank: 3, Text: d.Name + " " + d.Backend, Short: d.Name}}
}

// stepParts say which step is shown. Who looks back must see it, on any screen.
func (a *App) stepParts() []table.Part {
	s := a.step()
	if s == nil {
		if len(a.mirror.Trace.Steps) > 0 {
			return []table.Part{{Rank: 0, Text: "no step shown"}}
		}
		return []table.Part{{Rank: 0, Text: "no step yet"}}
	}
	long, short := fmt.Sprintf("step %d", s.Index), fmt.Sprintf("s%d", s.Index)
	where := fmt.Sprintf(" %s pos %d", s.Phase, s.Position)
	switch newest := a.newestStep(); {
	case newest < 0:
		long, short = long+where+", the text is empty", short+", the text is empty"
	case newest < s.Index:
		end := fmt.Sprintf("text ends at s%d", newest)
		long, short = long+where+", set back: "+end, short+" set back, "+end
	case a.index.Replaced(a.shown, newest):
		long += fmt.Sprintf(" (newest %d)%s, not in the text any more", newest, where)
		short += fmt.Sprintf(" not in the text, newest s%d", newest)
	case newest > s.Index:
		long += fmt.Sprintf(" (newest %d)%s", newest, where)
		short += fmt.Sprintf(" (newest s%d)%s", newest, where)
	default:
		long, short = long+where, short+where
	}
	parts := []table.Part{{Rank: 0, Text: long, Short: short}}
	if s.Cold {
		parts = append(parts, table.Part{Rank: 1, Text: "cold"})
	}
	if s.Token != nil {
		parts = append(parts, table.Say(4, "token %q", s.Text))
	}
	return parts
}

// newestStep is the number of the step that the session stands at, of a trace the last.
func (a *App) newestStep() int {
	if a.session != nil {
		return a.mirror.State.Step
	}
	return a.index.Trace.Steps[len(a.index.Trace.Steps)-1].Index
}

// stateWord is how things stand, in one word.
func (a *App) stateWord() string {
	switch {
	case a.mirror.Trace == nil || a.restarting():
		return "[LOADING" + a.progress() + "]"
	case a.isTrace:
		return "[TRACE]"
	case a.lost:
		return "[ENGINE GONE]"
	case a.job != nil && a.job.cancelled:
		return "[STOPPING]"
	case a.job != nil:
		return a.busyWord()
	case a.standing() != "":
		return a.standing()
	case a.mirror.State.Ended:
		return "[ENDED]"
	}
	return "[PAUSED]"
}

func (a *App) statePaint() paint {
	switch {
	case a.lost:
		return bad
	case a.job != nil:
		return good
	}
	return accent
}

func (a *App) progress() string {
	p := a.mirror.Progress
	switch {
	case p.Phase == "":
		return ""
	case p.Total == 0:
		return " " + p.Phase
	}
	return fmt.Sprintf(" %s %d/%d", p.Phase, p.Done, p.Total)
}

// step is the step that is shown, nil before the first.
func (a *App) step() *trace.Step {
	if a.shown < 0 {
		return nil
	}
	return &a.index.Trace.Steps[a.shown]
}

// tabsNamed says whether all tabs have the names of their views: they leave room for the scope and how it was
// timed. Else the current one has.
func (a *App) tabsNamed() bool {
	used := 2
	for i := range views {
		used += width(views[i].label()) + 1
	}
	return used+width("scope this step · 1 sample") <= a.w
}

// tabLabel is how a view stands in the line of tabs.
func (a *App) tabLabel(view int) string {
	if row := &views[view]; view == a.current || a.tabsNamed() {
		return row.label()
	}
	return keyOf(views[view].name)
}

// tabText is how a tab stands in its line: a cell before it, and brackets around the current one.
func (a *App) tabText(view int) string {
	switch label := a.tabLabel(view); {
	case view != a.current:
		return " " + label
	case view == 0:
		return "[" + label + "]"
	default:
		return " [" + label + "]"
	}
}

// tabs names the views, and says what they speak of and how it was timed.
func (a *App) tabs(w int) string {
	var b strings.Builder
	used := 0
	for i := range views {
		p, text := plain, a.tabText(i)
		if used += width(text); i == a.current {
			p = accent
		}
		b.WriteString(a.theme.put(p, text))
	}
	right := table.Title(a.scopeParts()...).Fit(w - used - 3)
	return b.String() + blank(w-used-width(right)-1) + a.theme.put(dim, right)
}

// tabAt is the view whose tab is at a cell.
func (a *App) tabAt(x int) (int, bool) {
	at := 0
	for i := range views {
		if at += width(a.tabText(i)); x < at {
			return i, true
		}
	}
	return 0, false
}

// scopeParts say which steps the views speak of, how they were timed, and whether the clock stood still.
func (a *App) scopeParts() []table.Part {
	s := a.step()
	if s == nil {
		return nil
	}
	timing := "timing " + s.Timing
	n := samples(s)
	speaks := a.snapshot().scope
	scope := table.Part{Rank: 0, Text: "scope " + speaks.Words(), Short: speaks.Name}
	if step, one := speaks.One(); one && step == a.shown {
		scope = table.Part{Rank: 1, Text: "scope this step"}
	}
	parts := []table.Part{scope, {Rank: 2, Text: joined(" ", timing, n), Short: cmp.Or(n, timing)}}
	if q := a.index.Trace.Clock.QuantumNS; q > 0 {
		parts = append(parts, table.Say(5, "quantum %g ns", q))
	}
	if s.Canary > 0 {
		parts = append(parts, table.Say(3, "clk %.2f", s.Canary))
	}
	return parts
}

// samples says how many times each dispatch of a step was timed, "" where none was.
func samples(s *trace.Step) string {
	if s.Timing != "dispatch" || len(s.Dispatches) == 0 {
		return ""
	}
	if n := len(s.Dispatches[0].Samples); n > 1 {
		return fmt.Sprintf("n=%d", n)
	}
	return "1 sample"
}

// joined puts the parts that are there together.
func joined(sep string, parts ...string) string {
	var there []string
	for _, p := range parts {
		if p != "" {
			there = append(there, p)
		}
	}
	return strings.Join(there, sep)
}

// about is the line of what holds of the step: the view's own, or what the step cost.
func (a *App) about(w int) string {
	if a.empty() != "" {
		return ""
	}
	if v, ok := a.view().(abouter); ok {
		return " " + printable.Clean(v.about().Fit(w-2))
	}
	if a.shown < 0 || a.summary.value == nil {
		return ""
	}
	return " " + a.summary.value.Title().Fit(w-2)
}

// title is the line over the list.
func (a *App) title(v view, w int) string {
	parts := v.title(w)
	if way := a.crumbs(); way != "" {
		parts = append([]table.Part{{Rank: 1, Text: way}}, parts...)
	}
	if a.zooms[a.current] != zoomNone {
		parts = append([]table.Part{{Rank: 0, Text: "zoomed"}}, parts...)
	}
	if a.jobs.late() {
		parts = append([]table.Part{{Rank: 0, Text: "computing …"}}, parts...)
	}
	return a.theme.put(strong, " "+table.Title(parts...).Fit(w-2))
}

// border is a cell of the line between list and detail: heavy where the keys move in the detail.
func (a *App) border() string {
	if a.inDetail {
		return a.theme.put(accent, markHeavyBar)
	}
	return a.theme.put(dim, markBar)
}

// detailLine names what the detail is of, where it is below the list in a rule; a mark says that the keys
// move in it.
func (a *App) detailLine(w int, side bool) string {
	name, more, fill, p := printable.Clean(a.detailTitle), a.detail.where(), " ", strong
	if name != "" {
		name += " "
	}
	if !side {
		fill, p = markRule, dim
	}
	if a.inDetail {
		p = accent
		name = markClosed + " " + name + keyed("{pane} goes back ")
	} else if more != "" {
		more = keyed("{pane}, then ") + sign(keyOf("down")) + " " + more
	}
	if more != "" {
		more = " " + more + " " + fill
	}
	name = cutMiddle(fill+name, w-width(more)-1)
	if !side && width(name) > 1 {
		name = fill + " " + strings.TrimPrefix(name, fill)
	}
	rule := strings.Repeat(fill, max(0, w-width(name)-width(more)))
	return a.theme.put(p, strings.TrimRight(name+rule+more, " "))
}

// footLines stand under the view: the error that waits to be dismissed and, where somebody asked for it, what
// the screen itself takes.
func (a *App) footLines() []string {
	lines := a.noticeLines()
	if a.meter.shown {
		lines = append(lines, a.meter.lines(a, a.w)...)
	}
	return lines
}

// noticeLines are the error that waits to be dismissed, or what is wrong with the filter.
func (a *App) noticeLines() []string {
	if a.failure == "" {
		return a.filterError()
	}
	lines := wrapText(markFail+" "+a.failure+keyed(" ({back out} dismisses)"), a.w-2)
	if most := max(3, a.h/5); len(lines) > most {
		more := keyed(" … the whole is in the log ({Log}; {back out} dismisses)")
		last := cut(strings.TrimSuffix(lines[most-1], "…"), a.w-2-width(more))
		lines = append(lines[:most-1], last+more)
	}
	for i := range lines {
		lines[i] = a.theme.put(bad, " "+lines[i])
	}
	return lines
}

// filterError says what is wrong with what was typed as a filter, whole, on any screen.
func (a *App) filterError() []string {
	l, ok := a.view().(lister)
	if !ok || a.empty() != "" || l.pane().err == nil {
		return nil
	}
	lines := wrapText(markFail+" "+l.pane().err.Error(), a.w-2)
	lines = lines[:min(len(lines), max(3, a.h/3))] // a table may have many columns to name
	for i := range lines {
		lines[i] = a.theme.put(bad, " "+lines[i])
	}
	return lines
}

// noteLines are a note, in as many lines as it takes: it fades, and lies over the hints and what is above
// them. An error, or what is typed, is not covered.
func (a *App) noteLines(w int) []string {
	if a.note == "" || a.question != nil || a.chord != nil || len(a.doing) > 0 {
		return nil
	}
	lines := wrapText(a.note, w-2)
	if a.failure != "" {
		lines = []string{cut(printable.Clean(a.note), w-2)}
	}
	for i, l := range lines[:min(len(lines), a.h/4)] {
		lines[i] = a.theme.put(accent, " "+l)
	}
	return lines[:min(len(lines), a.h/4)]
}

// hints are what can be done here, or the question that is asked.
func (a *App) hints(w int) string {
	if q := a.question; q != nil {
		label := " " + q.label + ": "
		return a.theme.put(accent, label) + q.line.render(w-width(label)-1)
	}
	if a.chord != nil {
		return a.chord.render(a.theme, w)
	}
	if len(a.doing) > 0 {
		return a.theme.put(accent, " "+cut(printable.Clean(strings.Join(a.doing, ", "))+" …", w-2))
	}
	var b strings.Builder
	if a.over != nil {
		scroll := sign(keyOf("up")) + sign(keyOf("down")) + sign(keyOf("left")) + sign(keyOf("right")) + " " +
			keyOf("page up") + " " + keyOf("page down")
		said := [][2]string{{keyOf("close"), "close"}}
		if a.over.earlier != nil || a.over.later != nil {
			said = append(said, [2]string{keyOf("earlier") + " " + keyOf("later"), "changes of this grid"})
		}
		if a.over.folded != nil {
			said = append(said, [2]string{keyOf("unfold"), "the chain"})
		}
		said = append(said, [2]string{keyOf("find"), "find"}, [2]string{scroll, "scroll"},
			[2]string{keyOf("copy"), "copy"})
		for _, s := range said {
			if used := width(b.String()) + width(s[0]) + width(s[1]) + 3; used < w {
				b.WriteString(" " + a.theme.put(accent, s[0]) + " " + s[1] + " ")
			}
		}
		return strings.TrimRight(b.String(), " ")
	}
	list := here(a.place(), true)
	// help and quit, the last two, are always there
	used, kept := 1, list[len(list)-2:]
	for _, act := range kept {
		used += width(act.key()) + width(act.name) + 3
	}
	b.WriteByte(' ')
	for _, act := range list[:len(list)-2] {
		n := width(act.key()) + width(act.name) + 3
		if act.why(a) != "" {
			continue
		}
		if used+n > w {
			break
		}
		used += n
		b.WriteString(a.theme.put(accent, act.key()) + " " + act.name + "  ")
	}
	for _, act := range kept {
		b.WriteString(a.theme.put(accent, act.key()) + " " + act.name + "  ")
	}
	return strings.TrimRight(b.String(), " ")
}

// welcome is the screen before the first step: what is being opened, what went wrong, or what is open and how
// to begin.
func (a *App) welcome(w, h int) []string {
	lines := []string{""}
	say := func(p paint, format string, args ...any) {
		for _, l := range wrapText(fmt.Sprintf(format, args...), w-4) {
			lines = append(lines, a.theme.put(p, "  "+l))
		}
	}
	switch t := a.mirror.Trace; {
	case t == nil:
		say(strong, "Opening the model")
		lines = append(lines, "")
		say(plain, "%s", a.progressBar(w-4))
	default:
		for _, s := range about(t) {
			say(plain, "%s", s)
		}
		if c := a.mirror.State.Context; c > 0 {
			say(plain, "context %s tokens, at most %s in a step", count(c), count(a.mirror.State.MaxChunk))
		}
		lines = append(lines, "")
		switch {
		case a.job != nil:
			say(strong, "%s …", cmp.Or(busyWith[a.job.command.Kind], string(a.job.command.Kind)))
		case a.isTrace:
			say(strong, "%s", keyed("The trace has no steps. {Graph} shows what would run."))
		case len(a.mirror.Text.Prompt) > 0:
			say(strong, "%s", keyed("Before the first step. Press {token} to read the prompt again, {prompt} to type another."))
		case len(t.Steps) > 0:
			say(strong, "%s", keyed("No text. Press {prompt} and type a prompt."))
		default:
			say(strong, "%s", noStep())
		}
		if n := len(t.Steps); n > 0 && a.job == nil {
			say(plain, keyed("%s recorded: {step before} shows the first, {export} exports all"), plural(n, "step"))
		}
	}
	if log, _ := a.log.snapshot(); len(log) > 0 && len(lines)+3 < h {
		lines = append(lines, "")
		for _, l := range log[max(0, len(log)-(h-len(lines))):] {
			lines = append(lines, a.theme.put(dim, "  "+cut(printable.Clean(l.Text), w-4)))
		}
	}
	return lines
}

// progressBar says how far opening has come.
func (a *App) progressBar(w int) string {
	p := a.mirror.Progress
	phase := p.Phase
	if phase == "" {
		phase = "starting"
	}
	if p.Total <= 0 {
		return phase + " …"
	}
	cells := min(40, w-34)
	done := clamp(p.Done*cells/p.Total, 0, cells)
	return fmt.Sprintf("%s %s%s %d/%d", fit(phase, 20), strings.Repeat("█", done),
		strings.Repeat("░", cells-done), p.Done, p.Total)
}

// about says what a model is.
func about(t *trace.Trace) []string {
	m, g := &t.Model, &t.Graph
	parameters := ""
	if m.Parameters > 0 {
		parameters = fmt.Sprintf("%.1f M parameters", float64(m.Parameters)/1e6)
	}
	layers := ""
	if m.Layers > 0 {
		layers = plural(m.Layers, "layer")
	}
	return []string{
		joined(" · ", filepath.Base(m.Name), m.Architecture, parameters, m.Quantization, layers),
		joined(" · ", plural(len(g.Ops), "operator"), plural(len(g.Dispatches), "dispatch")+" at most",
			plural(len(g.Kernels), "kernel")),
	}
}

// busyWith names the command that runs.
var busyWith = map[session.CommandKind]string{
	session.Prompt: "reading the prompt", session.Next: "decoding", session.Run: "running",
	session.Previous: "stepping back",
	session.Repeat:   "repeating", session.Reset: "resetting", session.Timing: "setting the timing level",
	session.Edit: "reading the edited text", session.Upto: "running up to the dispatch",
	session.Chunk: "setting the chunk size", session.Resume: "running the text again",
	session.Cost: "measuring costs",
}
