package tui

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/trace"
	"gpuscope/trace/table"
	"gpuscope/tui/command"
	"gpuscope/tui/view/all"
	"gpuscope/tui/widget"
)

// header returns the first line of the screen: the model, the device, the shown step and the state of the
// session. A narrow screen does not show the name of the program.
func (a *App) header(w int) string {
	const name = "gpuscope"
	state := a.stateWord()
	room := w - widget.Width(state) - 3
	text := ""
	if t := a.mirror.Trace; t != nil {
		model := "unnamed model"
		if name := printable.Clean(t.Model.Name); name != "" {
			model = filepath.Base(name)
		}
		line := table.Title(slices.Concat([]table.Segment{{
			Rank: 2, Text: model,
			Short: widget.CutMiddle(model, 20),
		}},
			command.DeviceParts(&t.Device), a.stepParts())...)
		text = printable.Clean(line.Fit(room))
	}
	left := " " + widget.Fit(text, room+1)
	if n := widget.Width(name) + 2; widget.Width(text)+n <= room {
		left = " " + a.theme.Put(widget.Strong, name) + "  " + widget.Fit(text, room+1-n)
	}
	return left + a.theme.Put(a.statePaint(), state)
}

// stepParts returns the segments that describe the shown step. The step number has rank 0, so a narrow screen
// keeps the number.
func (m *model) stepParts() []table.Segment {
	s := m.step()
	if s == nil {
		if len(m.index.Trace.Steps) > 0 {
			return []table.Segment{{Rank: 0, Text: "no step shown"}}
		}
		return []table.Segment{{Rank: 0, Text: "no step yet"}}
	}
	long, short := fmt.Sprintf("step %d", s.Index), fmt.Sprintf("s%d", s.Index)
	where := " " + string(s.Phase)
	if m.mirror.Trace.Engine == "" && s.Phase != trace.Execute { // other steps have no position
		where += fmt.Sprintf(" pos %d", s.Position)
	}
	switch newest := m.newestStep(); {
	case newest < 0:
		long, short = long+where+", text cleared", short+", text cleared"
	case newest < s.Index:
		end := fmt.Sprintf("text ends at s%d", newest)
		long, short = long+where+", stepped back: "+end, short+" stepped back, "+end
	case m.index.Replaced(m.at(), newest):
		long += fmt.Sprintf(" (newest %d)%s, no longer in the text", newest, where)
		short += fmt.Sprintf(" not in the text (newest s%d)", newest)
	case newest > s.Index:
		long += fmt.Sprintf(" (newest %d)%s", newest, where)
		short += fmt.Sprintf(" (newest s%d)%s", newest, where)
	default:
		long, short = long+where, short+where
	}
	parts := []table.Segment{{Rank: 0, Text: long, Short: short}}
	if s.Cold {
		parts = append(parts, table.Segment{Rank: 1, Text: "cold"})
	}
	if s.Token != nil {
		parts = append(parts, table.Say(4, "token %q", s.Text))
	}
	return parts
}

// newestStep returns the number of the session's current step, or of the last step of a recorded trace.
func (m *model) newestStep() int {
	if m.session != nil {
		return m.mirror.State.Step
	}
	return m.index.Trace.Steps[len(m.index.Trace.Steps)-1].Index
}

// stateWord returns a one-word label for the state of the session.
func (m *model) stateWord() string {
	switch {
	case m.lost:
		return "[ENGINE CRASHED]"
	case m.mirror.Trace == nil || m.restarting():
		return "[LOADING" + m.progress() + "]"
	case m.isTrace:
		return "[TRACE]"
	case m.job != nil && m.job.cancelled:
		return "[STOPPING]"
	case m.job != nil:
		return m.busyWord()
	case m.standing() != "":
		return m.standing()
	case m.mirror.State.Ended:
		return "[ENDED]"
	}
	return "[PAUSED]"
}

func (m *model) statePaint() widget.Paint {
	switch {
	case m.lost:
		return widget.Bad
	case m.job != nil:
		return widget.Good
	}
	return widget.Accent
}

func (m *model) progress() string {
	p := m.mirror.Progress
	switch {
	case p.Phase == "":
		return ""
	case p.Total == 0:
		return " " + p.Phase
	}
	return fmt.Sprintf(" %s %s", p.Phase, p.Amount())
}

// step returns the shown step, or nil before the first step.
func (m *model) step() *trace.Step {
	at := m.at()
	if at < 0 {
		return nil
	}
	return &m.index.Trace.Steps[at]
}

// tabsNamed reports whether the screen is wide enough for the names of all views in the tabs.
func (a *App) tabsNamed() bool {
	used := 2
	for i := range all.Views {
		used += widget.Width(all.Views[i].Label()) + 1
	}
	return used+widget.Width("this step · 1 sample") <= a.w
}

// tabLabel returns the label of a tab: the name of the view, or only its key if space is short.
func (a *App) tabLabel(at int) string {
	if row := &all.Views[at]; at == a.current || a.tabsNamed() {
		return row.Label()
	}
	return command.KeyOf(all.Views[at].Name)
}

// tabText returns the text of a tab. Brackets enclose the current tab, and a space precedes every other tab.
func (a *App) tabText(at int) string {
	switch label := a.tabLabel(at); {
	case at != a.current:
		return " " + label
	case at == 0:
		return "[" + label + "]"
	default:
		return " [" + label + "]"
	}
}

// tabs returns the second line of the screen: the views on the left, the selected steps and their timing
// level on the right.
func (a *App) tabs(w int) string {
	var b strings.Builder
	used := 0
	for i := range all.Views {
		p, text := widget.Plain, a.tabText(i)
		if used += widget.Width(text); i == a.current {
			p = widget.Accent
		}
		b.WriteString(a.theme.Put(p, text))
	}
	right := table.Title(a.scopeParts()...).Fit(w - used - 3)
	return b.String() + widget.Blank(w-used-widget.Width(right)-1) + a.theme.Put(widget.Dim, right)
}

// tabAt returns the index of the view whose tab is drawn at column x.
func (a *App) tabAt(x int) (int, bool) {
	at := 0
	for i := range all.Views {
		if at += widget.Width(a.tabText(i)); x < at {
			return i, true
		}
	}
	return 0, false
}

// measuring returns the progress of a measuring command as a percentage, and the remaining time.
func (m *model) measuring() string {
	if p := m.mirror.Progress; p.Total > 0 {
		return " " + p.Percent()
	}
	return ""
}
