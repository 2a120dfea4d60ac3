package widget

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

// A box covers exactly its rectangle. What is behind it stays in place and is dimmed.
func TestBoxCoversItsRectangle(t *testing.T) {
	for _, c := range []struct {
		glyphs string
		want   []string
	}{
		{"block", []string{
			"0 日本語 µs … │ to the end", "1 ┌─ A titl…  3/9 ─┐he end", "2 │text           …│he end",
			"3 │                │he end", "4 └─ esc ──────────┘he end", "5 日本語 µs … │ to the end",
		}},
		{"ascii", []string{
			"0 日本語 us .. | to the end", "1 /- A tit..  3/9 -.the end", "2 |text          ..|the end",
			"3 |                |the end", "4 `- esc ----------'the end", "5 日本語 us .. | to the end",
		}},
	} {
		th, err := NewTheme("dark", "true", io.Discard, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := NewCanvas(6, Glyphs{c.glyphs})
		for y := range 6 {
			f.Draw(Area(0, y, 40, 1), []string{fmt.Sprint(y) + " " + th.Put(Good, "日本語 µs … │") + " to the end"})
		}
		f.Cover(th, Area(0, 1, 40, 5), Area(2, 1, 18, 4), Box{
			Title: "A title that is too long", Right: "3/9", Foot: "esc", Lines: []string{th.Put(Bad, "text           …")},
		})
		lines := strings.Split(f.String(), "\n")
		if !strings.Contains(lines[0], th.start[Good]) || strings.Contains(lines[5], th.start[Good]) ||
			!strings.Contains(lines[5], th.start[Dim]) || !strings.Contains(lines[2], th.start[Bad]) {
			t.Errorf("only lines behind the box are dimmed: %q", lines)
		}
		for i := range lines {
			lines[i] = ansi.Strip(lines[i])
		}
		if !slices.Equal(lines, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", c.glyphs, strings.Join(lines, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// A frame fills a narrow screen. On a wide one, the screen is visible at both sides.
func TestFramesLeaveTheScreenVisible(t *testing.T) {
	for _, c := range [][3]int{
		{60, 30, 60}, {80, 200, 80}, {120, 50, 80}, {120, 112, 120}, {200, 150, 150}, {200, 190, 200},
	} {
		if got := FrameWidth(c[0], c[1]); got != c[2] {
			t.Errorf("screen %d, content %d: frame %d, want %d", c[0], c[1], got, c[2])
		}
	}
}
