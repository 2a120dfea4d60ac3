package tui

import (
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"gpuscope/tui/widget"
)

// Frames for the results of a running model are combined into 10 per second. The user's actions and their
// results are drawn at once. Everything held back is drawn in the end.
func TestBackgroundFramesAreBatched(t *testing.T) {
	was, at := widget.Now, widget.Now()
	widget.Now = func() time.Time { return at }
	defer func() { widget.Now = was }()
	p := &paced{App: drive(t, 80, 24, llama, nil, Options{}).app}
	says := func(text string, m tea.Msg, drawn bool) tea.Cmd {
		t.Helper()
		p.note = text
		_, cmd := p.Update(m)
		if got := strings.Contains(p.View(), text); got != drawn {
			t.Errorf("%T %q: drawn is %v, want %v", m, text, got, drawn)
		}
		return cmd
	}
	says("note 0", fadeMsg{-1}, true)
	if says("note 1", logMsg{}, false) == nil {
		t.Error("no frame is scheduled for the message held back")
	}
	if says("note 2", logMsg{}, false) != nil {
		t.Error("two frames are scheduled")
	}
	says("note 2", paceMsg{}, true)
	says("note 3", logMsg{}, false)
	at = at.Add(frameTime)
	says("note 4", logMsg{}, true)
	says("note k", tea.KeyMsg{Type: tea.KeyDown}, true)
	says("note a", logMsg{}, true)
	at = at.Add(answering)
	says("note l", logMsg{}, true)
	says("note 5", logMsg{}, false)
	says("note 5", tea.WindowSizeMsg{Width: 80, Height: 24}, true)
}
