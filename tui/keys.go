package tui

import (
	"regexp"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"gpuscope/tui/widget"
)

// keysOf turns one message into keys. A terminal that is typed at fast, or held, delivers several letters in
// one read: each is its own key. Pasted text is text only and never presses anything.
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

// keyed puts keys into a sentence: "{prompt}" is the key of the action of that name. No sentence names a key
// itself, so that none is wrong when a key is another.
func keyed(s string) string {
	return braced.ReplaceAllStringFunc(s, func(name string) string { return keyOf(name[1 : len(name)-1]) })
}

var braced = regexp.MustCompile(`\{[^{}]+\}`)

// noStep is what stands where a step would be, before the first.
func noStep() string { return keyed("No step was run yet. Press {prompt} and type a prompt.") }

// pointerOf is what the mouse did, false for what means nothing here.
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
