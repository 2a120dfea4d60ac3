package widget

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"gpuscope/internal/cells"
)

// GlyphNames are the values of Options.Glyphs.
var GlyphNames = []string{"block", "braille", "ascii"}

// The marks of the screen. Each is one cell wide.
const (
	MarkSelected = "▌"
	markMarked   = "•"
	markOpen     = "▾"
	MarkClosed   = "▸"
	MarkOK       = "✓"
	MarkWarn     = "!"
	MarkFail     = "✗"
	MarkRule     = "─"
	MarkBar      = "│"
	MarkHeavyBar = "┃"
)

// Glyphs draws charts in the set the person chose, and turns lines into ASCII where they chose that.
type Glyphs struct{ set string }

func NewGlyphs(set string) (Glyphs, error) {
	switch set {
	case "":
		set = "block"
	case "block", "braille", "ascii":
	default:
		return Glyphs{}, fmt.Errorf("glyphs %q: choose one of %s", set, strings.Join(GlyphNames, ", "))
	}
	return Glyphs{set}, nil
}

// toASCII has a stand-in of the same width for every sign that the screens use and ASCII does not have, but
// for those that are spelled. A test holds them complete, and signs that say something apart.
var toASCII = strings.NewReplacer(
	"↑", "^", "↓", "V", "▌", "*", "›", ")", "•", "o", "◆", "@", "▾", "v", "▸", ">", "✓", "y", "✗", "X",
	"×", "x", "‹", "(", "⏎", "\\", "⇥", "\\", "←", "<", "→", ">", "·", ".", "–", "-", "—", "-", "µ", "u", "Σ", "S", "Δ", "D",
	"²", "2", "∅", "0", "�", "?", "“", `"`, "”", `"`, "‘", "'", "’", "'", "─", "-", "━", "-", "│", "|",
	"┃", "|", "┌", "/", "┐", ".", "└", "`", "┘", "'", "├", "[", "┤", "]", "┬", ".", "█", "#", "▓", ";",
	"▒", ";", "░", ".", "▁", ".", "▂", ".", "▃", ":", "▄", ":", "▅", "H", "▆", "H", "▇", "#", "▲", "A",
	"▏", "|", "▎", ":", "▍", ":", "▋", "#", "▊", "#", "▉", "#", "⌈", "[", "⌉", "]", "∞", "I",
)

// spelled are the signs that ASCII writes with more letters than one.
var spelled = map[string]string{
	"…": "..", "⋯": "..", "→": "->", "±": "+/-", "≈": "~=", "≥": ">=", "≤": "<=",
}

// Finish turns a line that is to stand in w cells into the chosen set.
func (g Glyphs) Finish(s string, w int) string {
	if g.set != "ascii" {
		return s
	}
	s = toASCII.Replace(spell(s))
	if Width(s) > w {
		s = cells.Cut(s, w, spelled["…"])
	}
	return s
}

// spell writes signs of a line with more letters. What is beside them in other columns stays where it is: the
// room is that of blanks, and of a letter of a name that is cut anyway.
func spell(s string) string {
	var line []string // letters, and what colours them
	for state := byte(0); s != ""; {
		letter, _, n, next := ansi.DecodeSequence(s, state, nil)
		line, s, state = append(line, letter), s[n:], next
	}
	for i, sign := range line {
		letters, ok := spelled[sign]
		if !ok || sign == "→" && i > 0 && line[i-1] == MarkRule { // the end of a line that is drawn
			continue
		}
		if name := beside(line, i); letters == ".." && name >= 0 {
			line[i], line[name] = ".", "."
			continue
		}
		if i > 0 && line[i-1] == "–" { // no longer arrow
			letters = " " + letters
		}
		line[i] = letters
		for range len(letters) - 1 {
			makeRoom(line, i)
		}
	}
	return strings.Join(line, "")
}

// beside is the letter of a name before a sign, or after it, -1 where none does.
func beside(line []string, sign int) int {
	for _, at := range []int{sign - 1, sign + 1} {
		if at < 0 || at >= len(line) {
			continue
		}
		if r, _ := utf8.DecodeRuneInString(line[at]); unicode.IsLetter(r) || unicode.IsDigit(r) {
			return at
		}
	}
	return -1
}

// makeRoom takes a blank away where several stand between columns: after the sign, or before what stands to
// the right in its own. What has no columns becomes longer.
func makeRoom(line []string, sign int) {
	before, far := gap(line, sign, -1)
	after, farther := gap(line, sign, 1)
	if before >= 0 && !far && (after < 0 || farther) {
		line[before] = ""
	} else if after >= 0 {
		line[after] = ""
	}
}

// gap is a blank of the nearest two that stand beside each other with something on either side, -1 for none;
// far says that it is not beside the sign's own word.
func gap(line []string, sign, by int) (at int, far bool) {
	blanks, found := 0, -1
	for i := sign + by; i >= 0 && i < len(line); i += by {
		switch c := line[i]; {
		case c == " ":
			if blanks++; blanks == 2 {
				found = i
			}
		case c == "" || c[0] == 0x1b:
		case found >= 0:
			return found, far
		case blanks > 0:
			blanks, far = 0, true
		}
	}
	return -1, far
}

// ColumnChart draws one column per value, in h rows from the top. Values are shares of the tallest; one at or
// under zero stays empty, and a small one shows at least something. second tells which columns belong to the
// second series, which has its own fill.
func (g Glyphs) ColumnChart(values []float64, h int, second func(i int) bool) []string {
	steps := []string{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}
	fill, other := "█", "▒"
	if g.set == "braille" {
		steps = []string{" ", "⣀", "⣀", "⣤", "⣤", "⣶", "⣶", "⣿", "⣿"}
		fill, other = "⣿", "⢕"
	}
	rows := make([]string, h)
	for r := range rows {
		var b strings.Builder
		under := float64(h - 1 - r)
		for i, v := range values {
			eighths := int((v*float64(h) - under) * 8)
			if r == h-1 && v > 0 {
				eighths = max(eighths, 1)
			}
			switch {
			case eighths <= 0:
				b.WriteByte(' ')
			case second(i):
				b.WriteString(other)
			case eighths >= 8:
				b.WriteString(fill)
			default:
				b.WriteString(steps[eighths])
			}
		}
		rows[r] = b.String()
	}
	return rows
}
