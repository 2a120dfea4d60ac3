package tui

import (
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"gpuscope/tui/command"
	"gpuscope/tui/widget"
)

// keysOf converts one message into key presses. A message may hold several letters if the user types fast or
// holds a key down. Pasted text becomes a single key, which never triggers a command.
func keysOf(m tea.KeyMsg) []widget.Key {
	switch {
	case m.Paste:
		return []widget.Key{{Text: string(m.Runes)}}
	case m.Type == tea.KeySpace && !m.Alt:
		return []widget.Key{{Name: "space", Text: " "}}
	case m.Type == tea.KeyRunes && !m.Alt:
		keys := make([]widget.Key, 0, len(m.Runes))
		for _, r := range m.Runes {
			name := string(r)
			if r == ' ' {
				name = "space"
			}
			keys = append(keys, widget.Key{Name: name, Text: string(r)})
		}
		return keys
	}
	return []widget.Key{{Name: strings.Replace(m.String(), " ", "space", 1)}}
}

// noStep returns the text shown instead of a step before the first step has run.
func noStep() string { return command.Keyed("No step has run yet. Press {prompt} and type a prompt.") }

// pointerOf converts a mouse message. It returns false for mouse events that the program does not use.
func pointerOf(m tea.MouseMsg) (pointer, bool) {
	p := pointer{x: m.X, y: m.Y}
	switch {
	case m.Button == tea.MouseButtonWheelUp:
		p.wheel = -1
	case m.Button == tea.MouseButtonWheelDown:
		p.wheel = 1
	case m.Button != tea.MouseButtonLeft || m.Action != tea.MouseActionPress:
		return p, false
	}
	return p, true
}
