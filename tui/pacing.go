package tui

import (
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"gpuscope/internal/cells"
	"gpuscope/tui/widget"
)

// frameTime is the least time between two frames that nobody asked for: figures that change more often nobody
// reads. As long lie between two batches of events.
const frameTime = time.Second / 10

// writes is how often in a second Bubble Tea looks for a frame to write. It copies and compares one each
// time, whether there is another or not.
const writes = 30

// answering is for how long after a person did something every change is drawn at once: it may be the answer.
const answering = time.Second

// paced is the App as Bubble Tea runs it, which draws after every message. What a running model brings comes
// in many messages, of its events and of the jobs that these start: paced draws what has come together.
type paced struct {
	*App
	frame   string
	drawn   time.Time // when frame was
	asked   time.Time // when a person last did something
	due     bool      // the next View draws
	held    bool      // frame is not what there is, and a paceMsg will say when to draw
	waiting bool      // for one
}

// paceMsg says that it is time for what was held.
type paceMsg struct{}

// Update takes one message in.
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

// View draws the frame, or shows the last where it is too early for another.
func (p *paced) View() string {
	if p.due || p.frame == "" {
		p.frame, p.drawn, p.due = cells.Place(p.App.View()), widget.Now(), false
	}
	return p.frame
}
