package widget

import (
	"strings"
	"unicode"

	"gpuscope/internal/cells"
	"gpuscope/internal/printable"
)

// InputLine is a line of text being typed. While one is open it takes every printable key. It is ours because
// the ready-made one shows its cursor in reverse video only, which is gone where there is no colour.
type InputLine struct {
	before, after string // text on either side of the cursor
	suggested     bool   // what is typed takes the place of the text; who moves in it keeps it
}

func (l *InputLine) Text() string { return l.before + l.after }

func (l *InputLine) Set(s string) { *l = InputLine{before: s} }

// Suggest sets a text that enter takes and a letter replaces.
func (l *InputLine) Suggest(s string) { *l = InputLine{before: s, suggested: true} }

// Handle takes one key and says whether it was one for the line.
func (l *InputLine) Handle(k Key) bool {
	if l.suggested {
		l.suggested = false
		if k.Text != "" || k.Name == "ctrl+w" {
			l.Set("")
		}
	}
	switch k.Name {
	case "backspace", "ctrl+h": // some terminals send one, some the other
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

// nonJoiner and joiner say how letters and emoji join: text has them in other tokens than without.
const nonJoiner, joiner rune = 0x200c, 0x200d

// firstLen and lastLen are the bytes of the first and last character a person sees.
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

// Render draws the line in w cells with the cursor as a bar, scrolled so that the cursor is in sight.
func (l *InputLine) Render(w int) string {
	before, after := printable.Clean(l.before), printable.Clean(l.after)
	if room := w - 1 - min(Width(after), w/4); Width(before) > room {
		before = "…" + tail(before, room-1)
	}
	return Fit(before+"▏"+after, w)
}

// Key is a key as the actions name it ("s", "S", "ctrl+c", "space", "pgdown", "enter") with the text it
// stands for in an input line.
type Key struct {
	Name string
	Text string // printable text, "" for keys that have none
}

// Urgent says that a key waits for nothing, and means the same whatever is being typed.
func (k Key) Urgent() bool { return k.Name == "ctrl+c" || k.Name == "ctrl+z" }

// Sign is how a hint shows a key: arrows as arrows.
func Sign(key string) string {
	if s, ok := map[string]string{"up": "↑", "down": "↓", "left": "←", "right": "→"}[key]; ok {
		return s
	}
	return key
}
