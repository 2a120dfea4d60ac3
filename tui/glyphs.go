package tui

import (
	"fmt"
	"strings"
)

// GlyphNames are the values of Options.Glyphs.
var GlyphNames = []string{"block", "braille", "ascii"}

// The marks of the screen. Each is one cell wide.
const (
	markSelected = "▌"
	markMarked   = "•"
	markOpen     = "▾"
	markClosed   = "▸"
	markOK       = "✓"
	markWarn     = "!"
	markFail     = "✗"
	markRule     = "─"
	markBar      = "│"
	markHeavyBar = "┃"
)

// glyphs draws charts in the set the person chose, and turns a finished frame into ASCII where they chose
// that.
type glyphs struct{ set string }

func newGlyphs(set string) (glyphs, error) {
	switch set {
	case "":
		set = "block"
	case "block", "braille", "ascii":
	default:
		return glyphs{}, fmt.Errorf("glyphs %q: choose one of %s", set, strings.Join(GlyphNames, ", "))
	}
	return glyphs{set}, nil
}

// toASCII has a stand-in of the same width for every sign that the screens use and ASCII does not have. A
// test holds it complete, and signs that say something apart. Where a blank stands beside a sign there is
// room for more than a letter: what goes on or is left out between words is no name that was cut.
var toASCII = strings.NewReplacer(
	" … ", ".. ", " …\n", "..\n", " …\x1b", "..\x1b", "…", "$", "⋯", "$",
	" ± ", "+/-", "  ±", "+/-", "±", "?", " → ", "-> ", "→", ">", " ← ", "<- ", "←", "<", "↑", "^", "↓", "V", "▌", "*", "›", ")", "•", "o", "◆", "@", "▾", "v", "▸", "}", "✓", "y", "✗", "X", "×", "x",
	"≈", "_", "‹", "(", "⏎", "\\", "⇥", "\\", "·", ".", "–", "-", "—", "-", "µ", "u",
	"Σ", "S", "Δ", "D", "≥", ">", "≤", "<", "²", "2", "∅", "0", "�", "?", "“", `"`, "”", `"`, "‘", "'",
	"’", "'", "─", "-", "━", "-", "│", "|", "┃", "|", "┌", "/", "┐", ".", "└", "`", "┘", "'", "├", "[",
	"┤", "]", "┬", ".", "█", "#", "▓", ";", "▒", ";", "░", ".", "▁", ".", "▂", ".", "▃", ":", "▄", ":",
	"▅", "H", "▆", "H", "▇", "#", "▲", "A", "▏", ":", "▎", ":", "▍", ":", "▋", "#", "▊", "#", "▉", "#",
	"⌈", "[", "⌉", "]", "∞", "I",
)

// finish turns the text of a frame into the chosen set.
func (g glyphs) finish(s string) string {
	if g.set != "ascii" {
		return s
	}
	return toASCII.Replace(s)
}

// columnChart draws one column per value, in h rows from the top. Values are shares of the tallest; one at or
// under zero stays empty, and a small one shows at least something. second tells which columns belong to the
// second series, which has its own fill.
func (g glyphs) columnChart(values []float64, h int, second func(i int) bool) []string {
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
