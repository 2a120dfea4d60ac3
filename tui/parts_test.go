package tui

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/trace/analyze/tracks"
	"gpuscope/trace/table"
	"gpuscope/tui/view"
	"gpuscope/tui/view/step"
	"gpuscope/tui/widget"
)

func TestLayoutTilesTheScreen(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, h := rapid.IntRange(minWidth, 400).Draw(t, "w"), rapid.IntRange(minHeight, 120).Draw(t, "h")
		a := arrangement{
			detail: rapid.Bool().Draw(t, "detail"), zoom: zoom(rapid.IntRange(0, 2).Draw(t, "zoom")),
			notice: rapid.IntRange(0, 3).Draw(t, "notice"), split: split{
				rapid.IntRange(-400, 400).Draw(t, "columns"), rapid.IntRange(-200, 200).Draw(t, "rows"),
			},
		}
		cells := make([]int, w*h)
		for r, q := range layout(w, h, a) {
			if q.W <= 0 || q.H <= 0 || q.X < 0 || q.Y < 0 || q.X+q.W > w || q.Y+q.H > h {
				t.Fatalf("region %d is %+v on %dx%d", r, q, w, h)
			}
			for y := q.Y; y < q.Y+q.H; y++ {
				for x := q.X; x < q.X+q.W; x++ {
					cells[y*w+x]++
				}
			}
		}
		if i := slices.IndexFunc(cells, func(n int) bool { return n != 1 }); i >= 0 {
			t.Fatalf("cell %d,%d belongs to %d regions", i%w, i/w, cells[i])
		}
	})
}

func TestTheMainSizeKeepsRoomForTheList(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		w, h         int
		list, detail widget.Rect
	}{
		{80, 24, widget.Area(0, 4, 80, 14), widget.Area(0, 19, 80, 4)},
		{60, 16, widget.Area(0, 4, 60, 8), widget.Area(0, 13, 60, 2)},
		{84, 50, widget.Area(0, 4, 84, 29), widget.Area(0, 34, 84, 15)},
		{109, 40, widget.Area(0, 4, 109, 27), widget.Area(0, 32, 109, 7)},
		{110, 40, widget.Area(0, 4, 69, 35), widget.Area(70, 4, 40, 35)},
		{120, 40, widget.Area(0, 4, 79, 35), widget.Area(80, 4, 40, 35)},
		{200, 60, widget.Area(0, 4, 135, 55), widget.Area(136, 4, 64, 55)},
	} {
		m := layout(c.w, c.h, arrangement{detail: true})
		if m[regionList] != c.list || m[regionDetail] != c.detail {
			t.Errorf("%dx%d: list %v, detail %v, want %v and %v", c.w, c.h, m[regionList], m[regionDetail],
				c.list, c.detail)
		}
	}
}

func TestKeysTypedInOneReadAreEachPressed(t *testing.T) {
	t.Parallel()
	d := drive(t, 80, 24, llama, nil, Options{}).press("2")
	d.typed("jjj")
	if d.app.table().Cursor != 3 {
		t.Errorf("the cursor is at %d, want 3", d.app.table().Cursor)
	}
}

func TestWrongOptionsSayWhatTheyMayBe(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{{Theme: "pink"}, {Color: "some"}, {Glyphs: "emoji"}} {
		if _, err := newApp(o); err == nil || !strings.Contains(err.Error(), "choose one of") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// Only a few files define colours or import the terminal library, so that replacing either is easy.
func TestColoursAndTerminalTypesStayInTheirFiles(t *testing.T) {
	t.Parallel()
	var files []string
	for _, folder := range []string{"*.go", "*/*.go"} {
		list, err := filepath.Glob(folder)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, list...)
	}
	color := regexp.MustCompile(`"#[0-9a-fA-F]{6}"|\\x1b\[[0-9;]*m|lipgloss\.`)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if s := color.Find(b); s != nil && name != filepath.Join("widget", "theme.go") {
			t.Errorf("%s defines the colour %s: move it to theme.go", name, s)
		}
		if strings.Contains(string(b), "charmbracelet/bubbletea") &&
			!slices.Contains([]string{"app.go", "keys.go", "pacing.go", "suspend.go", "run.go"}, name) {
			t.Errorf("%s imports bubbletea", name)
		}
	}
}

func TestStepCountsAreWholeOrOmitted(t *testing.T) {
	t.Parallel()
	parts := []string{"92 passes", "1 submit", "2 writes of 1,156 B", "12.2 MiB live"}
	for w := range 80 {
		for most := 1; most < 4; most++ {
			lines := step.Packed(parts, w, most)
			var said []string
			for _, line := range lines {
				if table.Width(line) > w {
					t.Errorf("%q is wider than %d", line, w)
				}
				said = append(said, strings.Split(strings.TrimSuffix(line, " …"), " · ")...)
			}
			if len(lines) > most || !slices.Equal(said, parts[:len(said)]) {
				t.Errorf("in %d lines of %d: %q", most, w, lines)
			}
			cut := strings.HasSuffix(strings.Join(lines, ""), " …")
			if whole := len(said) == len(parts); whole && cut || w > 20 && !whole && !cut {
				t.Errorf("in %d lines of %d, %d of %d parts: %q", most, w, len(said), len(parts), lines)
			}
		}
	}
	if got := step.Packed(parts, 80, 1); len(got) != 1 || got[0] != strings.Join(parts, " · ") {
		t.Errorf("with room for all: %q", got)
	}
}

// A sentence that has no room is cut after a clause, and a list of times after a time. No number loses
// digits.
func TestNoFigureLosesDigits(t *testing.T) {
	t.Parallel()
	const verdict = "32 % of the step the GPU waits: 0.57 of 1.75 ms. Encoding gives 571 → 845 tok/s, at most"
	for _, c := range []struct {
		w    int
		want string
	}{
		{90, verdict},
		{87, "32 % of the step the GPU waits: 0.57 of 1.75 ms. Encoding gives 571 → 845 tok/s"},
		{78, "32 % of the step the GPU waits: 0.57 of 1.75 ms"},
		{46, "32 % of the step the GPU waits"},
		{10, "32 % of t…"},
	} {
		if got := step.Clauses(verdict, c.w); got != c.want {
			t.Errorf("in %d cells: %q, want %q", c.w, got, c.want)
		}
	}
	list := []tracks.Span{
		{Name: "resize", To: 3e3},
		{Name: "encode", To: 900e3},
		{Name: "wait", To: 654e6},
		{Name: "sample", To: 40e3},
	}
	for w, want := range map[int]string{
		80: "resize 0.00 encode 0.90 wait 654 sample 0.04 ms",
		46: "encode 0.90 wait 654 sample 0.04 ms …",
		36: "encode 0.90 wait 654 ms …",
		20: "wait 654 ms …",
	} {
		if got := step.LongestSpans(list, w); got != want {
			t.Errorf("in %d cells: %q, want %q", w, got, want)
		}
	}
}

// The sort menu lists every column, even on the smallest screen.
func TestEveryColumnIsInTheMenu(t *testing.T) {
	t.Parallel()
	for _, size := range some(sizes) {
		d := live(t, size[0], size[1]).press("2", "o").sees("sort by:", "space graph order").misses(" more")
		d.press("esc").misses("sort by:")
	}
}

func TestWrappedLineIsIndentedUnderItsStart(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"next   pos 640: 80 → 88 · M = 2: not launched": "next   pos 640: 80 → 88 · M|       = 2: not launched",
		"  attn.q 2: gemv → batch4, grid 128 → 128":     "  attn.q 2: gemv → batch4,|    grid 128 → 128",
		"what is not labelled is broken at the left":    "what is not labelled is|broken at the left",
		"  it fits": "  it fits",
	} {
		lines := view.WrapHanging(line, 28)
		if got := strings.Join(lines, "|"); got != want {
			t.Errorf("%q is wrapped as\n%q, want\n%q", line, got, want)
		}
	}
}

func TestASCIISpellsAnEllipsis(t *testing.T) {
	t.Parallel()
	d := drive(t, 80, 24, llama, nil, Options{Glyphs: "ascii"}).press("2")
	h := hold(&d.dispatches().ListPage)
	d.app.jobs.Patience = 0
	d.touch("F")
	d.reads("title")
	close(h.release)
	d.settle()
}
