package widget

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"gpuscope/internal/cells"
)

// GlyphNames lists the values of Options.Glyphs.
var GlyphNames = []string{"block", "braille", "ascii"}

// The markers of the screen. Each marker is one cell wide.
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

// Glyphs draws charts with the characters of a glyph set. The set "ascii" also converts all lines to ASCII.
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

// toASCII replaces each non-ASCII character of the screens with one ASCII character. Characters that need
// several ASCII characters are in the list `spelled` instead. A test checks that no character is missing,
// and that characters with different meanings have different replacements.
var toASCII = strings.NewReplacer(
	"↑", "^", "↓", "V", "▌", "*", "›", ")", "•", "o", "◆", "@", "▾", "v", "▸", ">", "✓", "y", "✗", "X",
	"×", "x", "‹", "(", "⏎", "\\", "⇥", "\\", "←", "<", "→", ">", "·", ".", "–", "-", "—", "-", "µ", "u", "Σ", "S", "Δ", "D",
	"²", "2", "∅", "0", "�", "?", "“", `"`, "”", `"`, "‘", "'", "’", "'", "─", "-", "━", "-", "│", "|",
	"┃", "|", "┌", "/", "┐", ".", "└", "`", "┘", "'", "├", "[", "┤", "]", "┬", ".", "█", "#", "▓", ";",
	"▒", ";", "░", ".", "▀", "'", "▁", ".", "▂", ".", "▃", ":", "▄", ":", "▅", "H", "▆", "H", "▇", "#", "▲", "A",
	"▏", "|", "▎", ":", "▍", ":", "▋", "#", "▊", "#", "▉", "#", "⌈", "[", "⌉", "]", "∞", "I",
)

// spelled lists the characters that are replaced with several ASCII characters.
var spelled = map[string]string{
	"…": "..", "⋯": "..", "→": "->", "±": "+/-", "≈": "~=", "≥": ">=", "≤": "<=",
}

// Finish converts a line of w cells to the chosen glyph set.
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

// spell replaces each character of the list `spelled` with several ASCII characters. For each extra
// character it removes a space, so that other columns stay in place. An ellipsis next to a name is the
// exception: its second dot replaces a letter of the name.
func spell(s string) string {
	var line []string // characters and the escape sequences of their colors
	for state := byte(0); s != ""; {
		letter, _, n, next := ansi.DecodeSequence(s, state, nil)
		line, s, state = append(line, letter), s[n:], next
	}
	for i, sign := range line {
		letters, ok := spelled[sign]
		if !ok || sign == "→" && i > 0 && line[i-1] == MarkRule { // an arrow that ends a drawn line
			continue
		}
		if name := beside(line, i); letters == ".." && name >= 0 {
			line[i], line[name] = ".", "."
			continue
		}
		if i > 0 && line[i-1] == "–" { // the dash and the arrow are drawn as one longer arrow
			letters = " " + letters
		}
		line[i] = letters
		for range len(letters) - 1 {
			makeRoom(line, i)
		}
	}
	return strings.Join(line, "")
}

// beside returns the index of a letter or digit next to the character at index `sign`, or -1 if there is
// none.
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

// makeRoom removes one space from a gap between columns, to make room for a longer spelling of the
// character at index `sign`. It uses the gap after the character or, in a right-aligned column, the gap
// before. A line without gaps becomes longer.
func makeRoom(line []string, sign int) {
	before, far := gap(line, sign, -1)
	after, farther := gap(line, sign, 1)
	if before >= 0 && !far && (after < 0 || farther) {
		line[before] = ""
	} else if after >= 0 {
		line[after] = ""
	}
}

// gap returns the index of a space in the nearest gap of at least two spaces, or -1 if there is none. It
// searches from the character at index `sign`: to the right if `by` is 1, and to the left if `by` is -1.
// `far` reports that the gap is not next to the word that contains this character: other words are in
// between.
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

// ColumnChart draws one column per value and returns the h rows, top row first. The height of a column is the
// value relative to the largest value; every positive value has a visible column. `second` reports whether a
// column belongs to the second series, which is drawn with another character.
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

// Shades returns the characters of a heat map for its levels, lowest first.
func (g Glyphs) Shades() []string {
	switch g.set {
	case "ascii":
		return []string{".", ":", "+", "#", "@"}
	case "braille":
		return []string{"⠂", "⠒", "⠶", "⠿", "⣿"}
	}
	return []string{"·", "░", "▒", "▓", "█"}
}
