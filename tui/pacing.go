package tui

import (
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"gpuscope/internal/cells"
	"gpuscope/tui/widget"
)

// frameTime is the minimum time between two batches of events, and also between two frames. The frames
// after a user action come sooner. Nobody can read numbers that change more often.
const frameTime = time.Second / 10

// writes is how many times a second Bubble Tea checks for a frame to write. Each check copies and compares
// a frame, even if the frame has not changed.
const writes = 30

// answering is the period after a user action in which every change is drawn at once, because the change may
// be the response to the action.
const answering = time.Second

// paced wraps App to limit the frame rate. Bubble Tea draws after every message, and a running model causes
// many messages. For messages that arrive within frameTime, paced draws only one frame.
type paced struct {
	*App
	frame   string
	drawn   time.Time // time at which frame was drawn
	asked   time.Time // time of the last user action
	due     bool      // the next View must draw
	held    bool      // the frame is out of date; a paceMsg will make the next View draw
	waiting bool      // a paceMsg is scheduled
}

// paceMsg makes the next View draw the changes that were not drawn yet.
type paceMsg struct{}

// Update handles one message and decides whether the next View draws.
func (p *paced) Update(m tea.Msg) (_ tea.Model, cmd tea.Cmd) {
	at := widget.Now()
	early := false
	switch m.(type) {
	case paceMsg:
		p.due, p.held, p.waiting = p.held, false, false
		return p, nil
	case tea.KeyMsg, tea.MouseMsg:
		p.asked = at
	case eventsMsg, widget.ReadyMsg, widget.LateMsg, logMsg:
		early = at.Sub(p.drawn) < frameTime && at.Sub(p.asked) >= answering
	}
	p.due, p.held = !early, early
	if _, cmd = p.App.Update(m); early && !p.waiting {
		p.waiting = true
		wake := tea.Tick(frameTime-at.Sub(p.drawn), func(time.Time) tea.Msg { return paceMsg{} })
		cmd = tea.Batch(cmd, wake)
	}
	return p, cmd
}

// View draws the frame, or returns the previous one if it is too early for another.
func (p *paced) View() string {
	if p.due || p.frame == "" {
		p.frame, p.drawn, p.due = cells.Place(p.App.View()), widget.Now(), false
	}
	return p.frame
}
