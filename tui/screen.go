package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
	"gpuscope/tui/command"
	"gpuscope/tui/lab"
	"gpuscope/tui/view"
	"gpuscope/tui/widget"
)

// rects returns the current rectangle of each region.
func (a *App) rects() map[region]widget.Rect {
	return layout(a.w, a.h, arrangement{
		detail: a.view().Detailed(), zoom: a.zooms[a.current], notice: len(a.footLines()),
		split: a.split[a.current],
	})
}

// frame draws the whole screen and returns it as text.
func (a *App) frame() string {
	if s := tooSmall(a.w, a.h); s != "" {
		lines := widget.WrapText(s, max(1, a.w))
		return strings.Join(lines[:min(len(lines), max(1, a.h))], "\n")
	}
	m := a.rects()
	f := widget.NewCanvas(a.h, a.glyphs)
	f.Draw(m[regionHeader], []string{a.header(a.w)})
	f.Draw(m[regionTabs], []string{a.tabs(a.w)})
	f.Draw(m[regionAbout], []string{a.about(a.w)})
	if a.empty() != "" {
		r := widget.Area(0, 3, a.w, a.h-4-m[regionNotice].H)
		f.Draw(r, a.welcome(r.W, r.H))
	} else {
		v, body := a.view(), m[regionList]
		var lines []string
		if rows := v.Pane(); rows != nil {
			rows.Screen = a.w
		}
		if body.H > 0 {
			lines = v.Render(a.theme, a.glyphs, body.W, body.H, !a.inDetail)
		}
		f.Draw(m[regionTitle], []string{a.title(v, m[regionTitle].W)})
		f.Draw(body, lines)
		divider, side := m[regionDivider]
		if side {
			f.Draw(divider, slices.Repeat([]string{a.border()}, divider.H))
		}
		if r, ok := m[regionDetail]; ok {
			lines := a.detail.Render(r.W-2, r.H)
			if err := a.detailTask.Err; err != nil { // do not show the lines of another row
				lines = view.Complain(a.theme, r.W-2, "Could not compute this view: "+err.Error())[1:]
			}
			f.Draw(m[regionDetailTitle], []string{a.detailLine(r.W, side)})
			f.Draw(r, widget.Indent(lines))
		}
	}
	if a.over != nil {
		r := a.overArea()
		f.Cover(a.theme, widget.Area(0, 1, a.w, a.h-2-m[regionNotice].H), r, widget.Box{
			Title: a.over.Title, Lines: a.over.text.Paint(a.theme, r.W-2, r.H-2),
			Right: widget.Joined(" · ", a.over.text.FoundText(), a.over.text.Where()),
		})
	}
	if r, ok := m[regionNotice]; ok {
		f.Draw(r, a.footLines())
	}
	switch {
	case a.dialog != nil:
		r := a.dialogArea()
		f.Cover(a.theme, widget.Area(0, 1, a.w, a.h-1), r, widget.Box{
			Title: a.dialog.Name(), Lines: a.dialog.Render(a.theme, r.W-2, r.H-2),
			Foot: strings.TrimSpace(a.theme.Hinted(a.dialog.Hints(), r.W-4)),
		})
	case a.chord != nil:
		lines := a.chord.Lines(a.theme, a.w, a.h/3)
		f.Put(widget.Area(0, a.h-len(lines), a.w, len(lines)), lines)
	default:
		f.Draw(m[regionHint], []string{a.hints(a.w)})
		lines, end := a.noteLines(a.w), a.h
		if a.over != nil { // keep the hint line visible: few users know the keys of an overlay
			end -= 1 + m[regionNotice].H
		}
		f.Put(widget.Area(0, end-len(lines), a.w, len(lines)), lines)
	}
	return f.String()
}

// overArea returns the rectangle of the text over the view, with its frame. A long text leaves room for a
// shown error.
func (a *App) overArea() widget.Rect {
	w := a.over.frame
	h := min(len(a.over.text.Lines)+2, a.h-4-a.rects()[regionNotice].H)
	return widget.Area((a.w-w)/2, 3, w, h)
}

// dialogArea returns the rectangle of the dialog, with its frame.
func (a *App) dialogArea() widget.Rect {
	w := widget.FrameWidth(a.w, widget.Readable)
	all, least := a.dialog.Lines(w - 2)
	h := min(max(a.h/2, least+2), all+2, a.h-1) // keep the header visible
	return widget.Area((a.w-w)/2, a.h-h, w, h)
}

// scopeParts returns the segments that describe the selected steps, how they were timed, and whether the
// clock was stable.
func (a *App) scopeParts() []table.Segment {
	s := a.step()
	if s == nil {
		return nil
	}
	timing, n := "timing "+string(s.Timing), "" // n is the number of repeats of a single step
	takes := a.view().Takes()
	if _, one := a.speaks().scope.One(); takes == report.OneStep || takes == report.AnySteps && one {
		n = samples(s)
	}
	words, short := a.scopeWords()
	scope := table.Segment{Rank: 0, Text: "showing " + words, Short: short}
	switch {
	case takes == report.WholeRun:
		scope = table.Segment{Rank: 1, Text: "showing the whole run", Short: "whole run"}
	case a.speaks().of == thisStep:
		scope = table.Segment{Rank: 1, Text: scope.Text, Short: words}
	}
	parts := []table.Segment{scope, {Rank: 2, Text: widget.Joined(" ", timing, n), Short: cmp.Or(n, timing)}}
	if q := a.index.Trace.Clock.QuantumNS; q > 0 {
		parts = append(parts, table.Say(5, "timer resolution %g ns", q))
	}
	if clock := a.index.ClockAt(a.at()); clock != "" {
		parts = append(parts, table.Segment{Rank: 3, Text: clock})
	}
	return parts
}

// samples returns how many times each dispatch of a step was timed, or "" if the dispatches were not
// timed.
func samples(s *trace.Step) string {
	if s.Timing != trace.TimingDispatch || len(s.Dispatches) == 0 {
		return ""
	}
	if n := len(s.Dispatches[0].Samples); n > 1 {
		return fmt.Sprintf("n=%d", n)
	}
	return "1 sample"
}

// about returns the summary line above the table. If the user chose a baseline and no step is running, the
// line says what changed from the baseline. Otherwise it is the view's own line or, if the view has none,
// the summary of the selected steps. Until the summary is ready, about returns an ellipsis.
func (a *App) about(w int) string {
	if a.empty() != "" {
		return ""
	}
	if outcome := a.outcome.Value.Draw(a.theme, w); outcome != "" {
		return outcome
	}
	s, takes := a.snapshot(), a.view().Takes()
	line, own := a.view().About(s)
	if own {
	} else if of := &a.took.Given; of.takes == takes && of.of == s.Named(takes) {
		line = a.took.Value
	}
	if s.Step >= 0 && len(line.Segments) == 0 {
		line = table.Title(table.Say(0, "…"))
	}
	text := printable.Clean(line.Fit(w - 2))
	groups := []string{text}
	if line.Separator != "" {
		groups = strings.Split(text, line.Separator)
	}
	for i, group := range groups {
		switch {
		case strings.HasPrefix(group, report.TimingAdds): // yellow is what the profiler added
			groups[i] = a.theme.Put(widget.Warn, group)
		case i == 0 && len(groups) > 1:
			groups[i] = a.theme.Put(widget.Strong, group)
		}
	}
	return " " + strings.Join(groups, line.Separator)
}

// title returns the line above the list.
func (a *App) title(v view.View, w int) string {
	s := a.snapshot()
	parts := append([]table.Segment{s.Stands(v)}, v.Title(w)...)
	if way := a.crumbs(); way != "" {
		parts = append([]table.Segment{{Rank: 1, Text: way}}, parts...)
	}
	if a.zooms[a.current] != zoomNone {
		parts = append([]table.Segment{{Rank: 0, Text: "zoomed"}}, parts...)
	}
	marked := func(p table.Segment) bool { return strings.HasPrefix(p.Text, analyze.StaticMark) }
	if a.index != nil && a.index.Static() && !slices.ContainsFunc(parts, marked) {
		parts = append([]table.Segment{{Rank: 0, Text: analyze.StaticMark}}, parts...)
	}
	if a.jobs.Late() {
		parts = append([]table.Segment{{Rank: 0, Text: "computing …"}}, parts...)
	}
	return a.theme.Put(widget.Strong, " "+table.Title(parts...).Fit(w-2))
}

// border returns one cell of the line between list and detail. The line is thick if the detail has the focus.
func (a *App) border() string {
	if a.inDetail {
		return a.theme.Put(widget.Accent, widget.MarkHeavyBar)
	}
	return a.theme.Put(widget.Dim, widget.MarkBar)
}

// detailLine returns the title line of the detail. If the detail is below the list, a horizontal rule fills
// the rest of the line. A mark shows that the detail has the focus.
func (a *App) detailLine(w int, side bool) string {
	name, more, fill, p := printable.Clean(a.detailTitle), a.detail.Where(), " ", widget.Strong
	if name != "" {
		name += " "
	}
	if !side {
		fill, p = widget.MarkRule, widget.Dim
	}
	if a.inDetail {
		p = widget.Accent
		name = widget.MarkClosed + " " + name + command.Keyed("{pane} returns ")
	} else if more != "" {
		more = command.Keyed("{pane}, then ") + widget.Sign(command.KeyOf("down")) + " " + more
	}
	if more != "" {
		more = " " + more + " " + fill
	}
	name = widget.CutMiddle(fill+name, w-widget.Width(more)-1)
	if !side && widget.Width(name) > 1 {
		name = fill + " " + strings.TrimPrefix(name, fill)
	}
	rule := strings.Repeat(fill, max(0, w-widget.Width(name)-widget.Width(more)))
	return a.theme.Put(p, strings.TrimRight(name+rule+more, " "))
}

// footLines returns the lines below the view: the shown error, the results that the user has not read and, if
// the user turned them on, the screen's own timings.
func (a *App) footLines() []string {
	lines := append(a.noticeLines(), a.resultLines()...)
	if a.meter.Shown {
		lines = append(lines, a.meterLines()...)
	}
	return lines
}

// noticeLines returns the shown error or, if there is none, the error in the filter.
func (a *App) noticeLines() []string {
	if a.failure == "" {
		return a.filterError()
	}
	dismiss, more := command.Keyed(" ({back out} hides this)"), command.Keyed(" … full text in the log ({Log}); {back out} hides this")
	if a.over != nil { // keys have other meanings in an overlay
		dismiss, more = "", " … full text in the log"
	}
	lines := widget.Shortened(widget.WrapText(widget.MarkFail+" "+a.failure+dismiss, a.w-2), max(3, a.h/5),
		a.w-2, more)
	for i := range lines {
		lines[i] = a.theme.Put(widget.Bad, " "+lines[i])
	}
	return lines
}

// resultLines returns the results that the user has not read. They never cover the view or the hint line.
func (a *App) resultLines() []string {
	var lines []string
	for i := range a.results {
		r := &a.results[i]
		most := max(2, a.h/5) / len(a.results)
		more := command.Keyed(" … (in the log, {Log})")
		for _, l := range widget.Shortened(widget.WrapText(r.text, a.w-2), max(1, most), a.w-2, more) {
			lines = append(lines, a.theme.Put(r.paint, " "+l))
		}
	}
	return lines
}

// filterError returns the error of the typed filter in full, even on a small screen.
func (a *App) filterError() []string {
	rows := a.view().Pane()
	if rows == nil || a.empty() != "" || rows.Err == nil {
		return nil
	}
	lines := widget.WrapText(widget.MarkFail+" "+rows.Err.Error(), a.w-2)
	lines = lines[:min(len(lines), max(3, a.h/3))] // the error may list many columns
	for i := range lines {
		lines[i] = a.theme.Put(widget.Bad, " "+lines[i])
	}
	return lines
}

// noteLines returns the wrapped lines of the note. A note fades, so it may cover the hint line and the lines
// above the hint line, but never an error or the text being typed.
func (a *App) noteLines(w int) []string {
	if a.note == "" || a.question != nil || len(a.doing) > 0 {
		return nil
	}
	most := a.h / 4
	if a.failure != "" {
		most = 1
	}
	more := command.Keyed(" … (in the log, {Log})")
	lines := widget.Shortened(widget.WrapText(a.note, w-2), most, w-2, more)
	for i, l := range lines {
		lines[i] = a.theme.Put(widget.Accent, " "+l)
	}
	return lines
}

// hints returns the hint line: the available commands, or the open question.
func (a *App) hints(w int) string {
	if q := a.question; q != nil {
		label := " " + q.label + ": "
		if q.line.Text() == "" && q.hint != "" {
			hint := widget.Cut(q.hint, w-widget.Width(label)-3)
			return a.theme.Put(widget.Accent, label) + q.line.Render(2) + a.theme.Put(widget.Dim, hint)
		}
		return a.theme.Put(widget.Accent, label) + q.line.Render(w-widget.Width(label)-1)
	}
	if len(a.doing) > 0 {
		return a.theme.Put(widget.Accent, " "+widget.Cut(printable.Clean(strings.Join(a.doing, ", "))+" …",
			w-2))
	}
	if a.over != nil {
		scroll := widget.Sign(command.KeyOf("up")) + widget.Sign(command.KeyOf("down")) + widget.Sign(command.KeyOf("left")) + widget.Sign(command.KeyOf("right")) + " " +
			command.KeyOf("page up") + " " + command.KeyOf("page down")
		said := [][2]string{{command.KeyOf("close"), "close"}}
		if a.over.Earlier != nil || a.over.Later != nil {
			said = append(said, [2]string{command.KeyOf("earlier") + " " + command.KeyOf("later"), "other changes"})
		}
		if a.over.Folded != nil {
			said = append(said, [2]string{command.KeyOf("unfold"), "the chain"})
		}
		if a.lab.Shown() && a.lab.CannotUse() == "" {
			said = append(said, [2]string{command.KeyOf("use text"), a.lab.UsedNext()})
		}
		if a.lab.Shown() && a.row() != &lab.Row && a.lab.NoVariants() == "" {
			said = append(said, [2]string{command.KeyOf("variants"), "variants"})
		}
		said = append(said, [2]string{command.KeyOf("find"), "find"}, [2]string{scroll, "scroll"},
			[2]string{command.KeyOf("copy"), "copy"})
		return strings.TrimRight(a.theme.Hinted(said, w), " ")
	}
	right := ""
	if rows := a.view().Pane(); rows != nil && w >= widget.SideWidth && a.empty() == "" {
		right = rows.Stands()
		if s := a.snapshot(); s.Stands(a.view()).Text != "" {
			right = fmt.Sprintf("s%d: %s", a.shownIndex(), right)
		}
	}
	list := command.Here(a.place(), true)
	// The last two commands, the palette and the help, are always shown.
	var said, kept [][2]string
	used := widget.Width(right) + 1
	for _, act := range list[len(list)-2:] {
		kept = append(kept, a.hinted(act))
		used += hintWidth(a.hinted(act))
	}
	for _, act := range list[:len(list)-2] {
		if a.why(act) != "" {
			continue
		}
		if used += hintWidth(a.hinted(act)); used > w {
			break
		}
		said = append(said, a.hinted(act))
	}
	said = append(said, kept...)
	left := strings.TrimRight(a.theme.Hinted(said, w+1), " ")
	if right == "" {
		return left
	}
	return left + widget.Blank(w-1-widget.Width(left)-widget.Width(right)) + a.theme.Put(widget.Dim, right)
}

func (a *App) toggleMeter() { a.meter.Shown = !a.meter.Shown }

// meterLines returns how long the program takes to handle messages and to draw frames.
func (a *App) meterLines() []string {
	running := widget.Plural(a.jobs.Busy, "job")
	if a.job != nil {
		running += " and " + string(a.job.command.Kind)
	}
	return a.meter.Lines(a.theme, running, command.Keyed("{timings} hides this"), a.w)
}
