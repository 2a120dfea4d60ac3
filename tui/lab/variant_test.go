package lab

import (
	"slices"
	"strings"
	"testing"

	"gpuscope/tui/widget"
)

func TestChangeOfASource(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, to       string
		added, removed int
		first          string
	}{
		{"a\nb\nc\n", "a\nb\nc\n", 0, 0, ""},
		{"a\nb\nc\n", "a\n\tlet x = 4u;\nc\n", 1, 1, "let x = 4u;"},
		{"a\nb\nc\n", "a\nc\n", 0, 1, "without: b"},
		{"a\nb", "a\nb\nc", 2, 1, "b"}, // the last line gets a line break
		{"", "a\n", 1, 0, "a"},
		{"a\nb\n", "a\n\x1b[31mb\n", 1, 1, "·[31mb"},
	} {
		got := changeOf(c.from, c.to)
		if got.added != c.added || got.removed != c.removed || got.first != c.first {
			t.Errorf("%q to %q: +%d -%d %q", c.from, c.to, got.added, got.removed, got.first)
		}
		if len(got.marks) != len(got.lines) {
			t.Errorf("%q to %q: %d lines have %d marks", c.from, c.to, len(got.lines), len(got.marks))
		}
		paints := map[byte]widget.Paint{'+': widget.Good, '-': widget.Bad, '@': widget.Accent}
		for i, l := range got.lines {
			want := []widget.Stretch{{To: len(l), Paint: paints[l[0]]}}
			if l[0] == ' ' {
				want = nil
			}
			if !slices.Equal(got.marks[i], want) || strings.ContainsAny(l, "\t\x1b\n") {
				t.Errorf("%q to %q: line %q has %v", c.from, c.to, l, got.marks[i])
			}
		}
	}
}
