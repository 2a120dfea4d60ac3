package widget

import (
	"strings"
	"unicode"

	"gpuscope/internal/cells"
	"gpuscope/internal/printable"
)

// InputLine is a single-line text input. While the input is open, it receives every printable key. Its cursor
// is a character, so that terminals without colors show the cursor.
type InputLine struct {
	before, after string // text on either side of the cursor
	suggested     bool   // the text is a suggestion: typing replaces the text, moving the cursor keeps it
}

func (l *InputLine) Text() string { return l.before + l.after }

func (l *InputLine) Set(s string) { *l = InputLine{before: s} }

// Suggest sets a suggested text. Enter accepts the suggestion, and typing a letter replaces the suggestion.
func (l *InputLine) Suggest(s string) { *l = InputLine{before: s, suggested: true} }

// Handle processes a key and reports whether the input line uses this key.
func (l *InputLine) Handle(k Key) bool {
	if l.suggested {
		l.suggested = false
		if k.Text != "" || k.Name == "ctrl+w" {
			l.Set("")
		}
	}
	switch k.Name {
	case "backspace", "ctrl+h": // the backspace key sends one of these, depending on the terminal
		l.before = l.before[:len(l.before)-lastLen(l.before)]
	case "delete", "ctrl+d":
		l.after = l.after[firstLen(l.after):]
	case "left":
		n := len(l.before) - lastLen(l.before)
		l.before, l.after = l.before[:n], l.before[n:]+l.after
	case "right":
		n := firstLen(l.after)
		l.before, l.after = l.before+l.after[:n], l.after[n:]
	case "home":
		l.before, l.after = "", l.before+l.after
	case "end", "ctrl+e":
		l.before, l.after = l.before+l.after, ""
	case "ctrl+u":
		l.before = ""
	case "ctrl+k":
		l.after = ""
	case "ctrl+w":
		s := strings.TrimRight(l.before, " ")
		l.before = s[:strings.LastIndexByte(s, ' ')+1]
	default:
		if k.Text == "" {
			return false
		}
		l.before += strings.Map(func(r rune) rune {
			if r == '\n' || r == nonJoiner || r == joiner || unicode.IsPrint(r) {
				return r
			}
			if unicode.IsSpace(r) {
				return ' '
			}
			return -1
		}, strings.ReplaceAll(strings.ReplaceAll(k.Text, "\r\n", "\n"), "\r", "\n"))
	}
	return true
}

// nonJoiner and joiner are invisible characters that control how letters and emoji join. Typed text keeps
// these characters, because they change the tokens.
const nonJoiner, joiner rune = 0x200c, 0x200d

// firstLen and lastLen return the number of bytes of the first and the last visible character (grapheme
// cluster).
func firstLen(s string) int {
	if s == "" {
		return 0
	}
	return len(cells.Cluster(s))
}

func lastLen(s string) int {
	n := 0
	for len(s) > 0 {
		n = firstLen(s)
		s = s[n:]
	}
	return n
}

// Render draws the line in w cells, with the cursor as a bar, and scrolls so that the cursor is visible.
func (l *InputLine) Render(w int) string {
	before, after := printable.Clean(l.before), printable.Clean(l.after)
	if room := w - 1 - min(Width(after), w/4); Width(before) > room {
		before = "…" + tail(before, room-1)
	}
	return Fit(before+"▏"+after, w)
}

// Key is a key press: the name that actions use ("s", "S", "ctrl+c", "space", "pgdown", "enter") and the
// text that the key inserts in an input line.
type Key struct {
	Name string
	Text string // printable text, "" if the key inserts nothing
}

// Urgent reports whether the key acts at once, even while the user is typing in an input line.
func (k Key) Urgent() bool { return k.Name == "ctrl+c" || k.Name == "ctrl+z" }

// Sign returns the display form of a key name. Arrow keys are shown as arrows.
func Sign(key string) string {
	if s, ok := map[string]string{"up": "↑", "down": "↓", "left": "←", "right": "→"}[key]; ok {
		return s
	}
	return key
}
