package cells_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
	"pgregory.net/rapid"

	"gpuscope/internal/cells"
	"gpuscope/internal/printable"
)

// awkward lists texts whose widths differ between the two kinds of terminals, or between versions of Unicode.
var awkward = []string{
	"👍🏿", "👩🏽‍🚀", "👨‍👩‍👧", "क्षि", "क्ष", "क", "्", "ष", "ि", "नी", "க்ஷ", "กำ", "ำ", "☺️", "☺", "1️⃣", "❤️", "🏿", "🇩", "🇪",
	"🇩🇪", "한", "ᄒ", "ᅡ", "ᆫ", "한", "日", "é", "e\u0301", "\u0301", "\ufe0f", "\u20e3", "🫩", "☰", "㉈", "𝍠", "㌀",
	"ｶﾞ", "א", "ع", "ﷺ", "\U0001d165", "\U00031350", "a", " ", "…", "│", "⣿", "·",
}

func anyText() *rapid.Generator[string] {
	piece := rapid.OneOf(
		rapid.SampledFrom(awkward),
		rapid.StringOfN(rapid.RuneFrom(nil, unicode.M, unicode.So, unicode.Sk, unicode.Lo), 1, 3, -1),
	)
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(piece, 0, 6).Draw(t, "pieces"), "")
	})
}

// A row of three texts between bars has the bars in the same columns on terminals that measure code points
// and on terminals that measure grapheme clusters. No text of an earlier frame remains visible.
func TestColumnsHoldInBothKindsOfTerminals(t *testing.T) {
	t.Parallel()
	const room, screen = 11, 36
	text := anyText()
	rapid.Check(t, func(t *rapid.T) {
		line := "│"
		for range 3 {
			s := cells.Cut(printable.Clean(text.Draw(t, "text")), room-1, "…")
			line += " " + s + strings.Repeat(" ", room-1-cells.Width(s)) + "│"
		}
		frame := line + "\n" + strings.Repeat("=", screen)
		placed := cells.Place(frame)
		// Bubble Tea cuts lines that it measures as too long, and erases the rest of lines that it measures
		// as too short.
		first, _, _ := strings.Cut(placed, "\n")
		if n := ansi.StringWidth(first); n != 3*(room+1)+1 {
			t.Fatalf("%q is measured as %d columns by the renderer", first, n)
		}
		for _, kind := range []string{"\x1b[?2027l", "\x1b[?2027h"} {
			e := vt.NewEmulator(screen+1, 2)
			write := func(s string) {
				if _, err := e.WriteString(s); err != nil {
					t.Fatal(err)
				}
			}
			write(kind + strings.Repeat("#", screen+1) + "\x1b[H")
			write(strings.ReplaceAll(placed, "\n", "\r\n"))
			for x := range screen + 1 {
				got := e.CellAt(x, 0).Content
				if bar := x%(room+1) == 0; bar && !strings.HasPrefix(got, "│") || got == "#" {
					t.Fatalf("%q: column %d of %q shows %q", kind, x, line, got)
				}
			}
			if got := e.CellAt(screen-1, 1).Content; got != "=" {
				t.Fatalf("%q: the next line ends in %q", kind, got)
			}
		}
	})
}

func TestWidthIsTheSumOfItsParts(t *testing.T) {
	t.Parallel()
	text := anyText()
	rapid.Check(t, func(t *rapid.T) {
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		sum := cells.Width(a) + cells.Width(b)
		if got := cells.Width(a + b); got != sum {
			t.Fatalf("%q and %q take %d, together %d", a, b, sum, got)
		}
		// Clean gives a mark without a letter a base. Without one, U+0300 U+FE0F is wider than its parts.
		shown := printable.Clean(a + b)
		if got := max(ansi.StringWidth(shown), ansi.StringWidthWc(shown)); got > cells.Width(shown) {
			t.Fatalf("%q is given %d columns, but its width is %d", shown, cells.Width(shown), got)
		}
	})
}

func TestWidthOfEveryCodePointCoversBothKinds(t *testing.T) {
	t.Parallel()
	for r := rune(' '); r <= unicode.MaxRune; r++ {
		s := string(r)
		if got, want := cells.Width(s), max(ansi.StringWidth(s), ansi.StringWidthWc(s)); got < want {
			t.Fatalf("%U takes %d columns, want %d or more", r, got, want)
		}
	}
}

// A cut on either side gives the requested width and keeps the colours.
func TestCutsHaveTheWidthAskedFor(t *testing.T) {
	t.Parallel()
	text := anyText()
	rapid.Check(t, func(t *rapid.T) {
		s := "\x1b[1m" + text.Draw(t, "text") + "\x1b[0m"
		w, all := rapid.IntRange(0, 20).Draw(t, "w"), cells.Width(s)
		if got := cells.Cut(s, w, ""); cells.Width(got) > w || strings.Count(got, "\x1b") != 2 {
			t.Fatalf("%q cut to %d is %q", s, w, got)
		}
		if got := cells.CutLeft(s, w); cells.Width(got) != max(0, all-w) || strings.Count(got, "\x1b") != 2 {
			t.Fatalf("%q without its first %d is %q", s, w, got)
		}
	})
}

func TestClustersAreCutWhole(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"a👍🏿b": "a…", "abcde": "abc…", "é́́́bcd": "é́́́bcd", "日本語": "日…", "a\x1b[1mbcde\x1b[0m": "a\x1b[1mbc…\x1b[0m",
	} {
		if got := cells.Cut(s, 4, "…"); got != want {
			t.Errorf("%q is %q, want %q", s, got, want)
		}
	}
}

func TestPlainTextIsPlacedAsItIs(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "a b", "\x1b[1m│ é · 日本 한국 кот │\x1b[0m", "▌⣿…→", "αβ\nγ"} {
		if got := cells.Place(s); got != s {
			t.Errorf("%q is %q", s, got)
		}
	}
}
