package tui

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"
	"pgregory.net/rapid"

	"gpuscope/trace"
	"gpuscope/trace/tracetest"
	"gpuscope/tui/view"
	"gpuscope/tui/widget"
)

// templated returns a run whose kernels have parts that were generated from constants.
func templated() *trace.Trace {
	tr := *tracetest.Llama(2, 3)
	tr.Graph.Kernels = slices.Clone(tr.Graph.Kernels)
	for i := range tr.Graph.Kernels {
		k := &tr.Graph.Kernels[i]
		k.Constants = "Lanes 64"
		k.Source = "fn one() {\n\tuse(64);\n}\nfn taken() {\n}\n"
		at := strings.Index(k.Source, "64")
		k.Filled = [][2]int{{at, at + 2}}
		k.Taken = [][2]int{{strings.Index(k.Source, "fn taken"), len(k.Source) - 1}}
	}
	return &tr
}

// The parts of a source that were generated from constants are marked: by a glyph before the line and by
// colour, or by quotes if there is no colour. Copying gives the source without marks.
func TestWGSLMarksWhatItsConstantsMade(t *testing.T) {
	t.Parallel()
	d := drive(t, 80, 24, templated(), nil, Options{Color: "never"}).press("2", "F", "F", "F", "e")
	d.sees("2 ▎    use(“64”);", "3  }", "5 ▎}").reads("over")
	if got, want := d.app.over.Whole, templated().Graph.Kernels[0].Source; got != want {
		t.Errorf("copied is %q, want %q", got, want)
	}
	d = drive(t, 80, 24, templated(), nil, Options{Color: "256"}).press("2", "F", "F", "F", "e")
	if view := d.app.View(); !regexp.MustCompile(`\x1b\[[0-9;]*m64\x1b`).MatchString(view) || strings.Contains(view, "“") {
		t.Errorf("64 has no colour, or is quoted too:\n%q", view)
	}
	// A trace that does not record the constants of its kernels has no marks.
	d = drive(t, 80, 24, llama, nil, Options{}).press("2", "e")
	d.sees("WGSL ").misses("▎", "constants")
}

// Every text over a view has the same search. It marks matches, and n and N go through them.
func TestATextOverAViewIsSearched(t *testing.T) {
	t.Parallel()
	d := drive(t, 80, 24, templated(), nil, Options{Color: "never"}).press("2", "F", "F", "F", "e", "/")
	d.typed("FN").sees("find FN: 1 of 2 lines", "find: FN▏").reads("over")
	d.press("enter", "n").sees("find FN: 2 of 2 lines").reads("over")
	d.press("n").reads("bottom").press("N").sees("find FN: 1 of 2 lines")
	d.press("/", "ctrl+u").typed("nothing like it").reads("over")
	d.press("esc").sees("find FN: 1 of 2 lines").press("esc").misses("find FN: 1 of")

	d.press("?").reads("title", "bottom").press("n").reads("bottom")
	d.press("/").typed("goes to the last").press("enter").reads("over")
	if got := d.line(widget.MarkSelected); !strings.Contains(got, "Goes to the last row.") {
		t.Errorf("found is %q", got)
	}
	d.press("esc", "2", "w", "/").typed("kernel").press("enter").reads("over")
}

// In an explanation, [ and ] go through the changes of the grid in the run and say when there are no more.
func TestWhyGoesThroughTheChangesOfItsGrid(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, llama, nil, Options{}).press("2", "/").typed("layers.0.attn.sdpa.split").press("enter", "w")
	d.sees("grid 32 → 64 at s23").reads("overTitle", "bottom")
	d.press("]").sees("in s23").reads("bottom")
	d.press("[").reads("overTitle", "over").misses("in s23").reads("bottom")
	d.press("[").sees("in s1").reads("bottom")
	d.press("]").sees("in s23", "grid 32 → 64 at s23").reads("bottom").press("esc").reads("overTitle")
	if got := d.app.shownIndex(); got != 23 {
		t.Errorf("step %d is shown, want 23: showing another change must not change the step", got)
	}
}

// The causes of a grid are one line at first, and a key opens the whole chain. For a row of several
// dispatches the title says which one is explained.
func TestWhyOpensItsChain(t *testing.T) {
	t.Parallel()
	link := "layers.0.mlp.gate ← "
	d := drive(t, 160, 40, llama, nil, Options{}).press("2", "/").typed("op:=gate").press("enter", "w")
	d.reads("overTitle", "over").misses(link)
	d.press("enter").sees(link).reads("over").press("enter").reads("over").misses(link)
	d.press("esc", "?").sees("Help").press("enter").misses("Help") // enter closes a text without folded lines
}

// A text over the view is wrapped again when the window changes its size. Nothing is cut, and the match stays
// selected.
func TestATextOverAViewFitsAnyWindow(t *testing.T) {
	t.Parallel()
	for keys, want := range map[string]string{"w": "next change: ", "?": "Finds a text"} {
		d := drive(t, 160, 40, llama, nil, Options{}).press("2", "j", "j", "j", keys, "/").typed(want).press("enter")
		d.sees("1 of 1 line")
		for _, w := range []int{60, 200, 80} {
			d.update(tea.WindowSizeMsg{Width: w, Height: 40})
			d.settle()
			if !slices.ContainsFunc(strings.Split(d.screen(), "\n"), func(l string) bool {
				return strings.Contains(l, widget.MarkBar+widget.MarkSelected) && strings.Contains(l, want)
			}) {
				t.Errorf("%s in %d cells:\n%s", keys, w, d.screen())
			}
			for _, l := range d.app.over.text.Lines {
				if widget.Width(l) > d.app.overArea().W-3 {
					t.Errorf("%s in %d cells: %q is cut", keys, w, l)
				}
			}
		}
	}
}

// Overlaid combines two lists of stretches. Each byte has the paint of the upper list, or else of the lower
// list.
func TestStretchesLieOverEachOther(t *testing.T) {
	t.Parallel()
	const n = 30
	rapid.Check(t, func(r *rapid.T) {
		draw := func(what string, p widget.Paint) (list []widget.Stretch, of [n]widget.Paint) {
			for at := 0; at < n; {
				from := rapid.IntRange(at, n).Draw(r, what+" from")
				to := rapid.IntRange(from, n).Draw(r, what+" to")
				if from < to {
					list = append(list, widget.Stretch{From: from, To: to, Paint: p})
				}
				for i := from; i < to; i++ {
					of[i] = p
				}
				at = to + 1
			}
			return list, of
		}
		under, below := draw("under", widget.Warn)
		over, above := draw("over", widget.Accent)
		from := rapid.IntRange(0, n).Draw(r, "from")
		to := rapid.IntRange(from, n).Draw(r, "to")
		at := from
		for _, s := range widget.Within(widget.Overlaid(under, over), from, to) {
			if s.From != at || s.To <= s.From {
				r.Fatalf("%v after %d", s, at)
			}
			for ; at < s.To; at++ {
				want := above[at]
				if want == widget.Plain {
					want = below[at]
				}
				if s.Paint != want {
					r.Fatalf("byte %d has paint %d, want %d", at, s.Paint, want)
				}
			}
		}
		if at != to {
			r.Fatalf("ends at %d, want %d", at, to)
		}
	})
}

// A painted line fits the given width when it is cut at either end.
func TestAPaintedLineIsCutAtBothEnds(t *testing.T) {
	t.Parallel()
	th, err := widget.NewTheme("dark", "never", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	list := []widget.Stretch{
		{From: 2, To: 4, Paint: widget.Accent, Quoted: true},
		{From: 6, To: 8, Paint: widget.Warn},
	}
	for _, c := range []struct {
		x, w int
		want string
	}{
		{0, 20, "ab“cd”efghij"},
		{0, 12, "ab“cd”efghij"},
		{0, 11, "ab“cd”efgh…"},
		{0, 6, "ab“cd…"},
		{3, 20, "cd”efghij"},
		{3, 4, "cd”…"},
		{12, 4, ""},
		{0, 1, "…"},
	} {
		if got := widget.PaintLine(th, "abcdefghij", list, c.x, c.w); got != c.want {
			t.Errorf("from %d in %d cells: %q, want %q", c.x, c.w, got, c.want)
		}
	}
}

// A title that is cut is separated by a blank from the scroll position.
func TestOverlayTitleIsSeparateFromItsCount(t *testing.T) {
	t.Parallel()
	d := drive(t, 60, 16, llama, nil, Options{})
	d.app.over = overlayOf(view.Page{
		Title: "WGSL " + strings.Repeat("a constant, ", 9), Lines: slices.Repeat([]string{"line"}, 99),
	})
	d.app.over.lay(60)
	d.sees("WGSL a constant,").sees("…  10/99 ─┐")
}
