package tui

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	tea "github.com/charmbracelet/bubbletea"

	"gpuscope/trace"
	"gpuscope/trace/tracetest"
	"gpuscope/tui/tuitest"
	"gpuscope/tui/view/curves"
	"gpuscope/tui/widget"
)

func TestCurvesSayWhoseTheSlopeIs(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, llama, nil, Options{}).press("5")
	d.reads("title")
	d.press("j").sees("311 ± 34.1 µs", "128: 64 → 96").reads("list")
	d.press("d").reads("list")
}

func TestCurvesSayAtWhichLengthTheRouteChanges(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, llama, nil, Options{}).press("5", "a")
	d.reads("title").press("j")
	d.reads("list", "detail")
}

// Before the first decode step the page asks for one and shows everything else.
func TestCurvesWaitForADecodeStep(t *testing.T) {
	t.Parallel()
	d := drive(t, 200, 50, llama, &tuitest.Script{}, Options{Prompt: "Once"}).press("5", "j")
	d.reads("list").press("s").reads("list")
}

// In a hybrid model, d shows the state after the other four quantities. In other models, it shows the
// roofline instead.
func TestStateIsDrawnForHybridModels(t *testing.T) {
	t.Parallel()
	const name = "recurrent state 3.1 MB"
	drive(t, 120, 40, llama, nil, Options{}).press("5", "d", "d", "d").misses(name).press("d").misses(name)
	hybrid := *llama
	hybrid.Graph.Values = append(slices.Clone(llama.Graph.Values), trace.Value{
		ID: trace.ValueID(len(llama.Graph.Values)), Name: "state", Kind: "tensor", DType: "f32",
		MaxDims: []int{4, 768, 1024}, Bytes: 4 * 768 * 1024 * 4, Role: trace.RoleState, Recurrent: true,
	})
	d := drive(t, 120, 40, &hybrid, nil, Options{}).press("5", "d", "d", "d").misses(name)
	d.press("d").sees(name, "KV cache in use").press("d", "d").misses(name).press("u").sees(name)
}

// The cursor moves along the axis column by column and stops at both ends. Jump moves it to the next change.
func TestCurveCursorStaysOnItsAxis(t *testing.T) {
	t.Parallel()
	for _, axis := range [][]string{{"5"}, {"5", "a"}} {
		d := drive(t, 80, 24, llama, nil, Options{}).press(axis...).press("j", "d")
		for range 200 {
			d.press("l")
		}
		page := d.app.view().(*curves.Page)
		c, _ := page.Current()
		if at := page.Cursor(c); at != c.To {
			t.Errorf("%v: 200 columns right the cursor is at %d, the axis ends at %d", axis, at, c.To)
		}
		for range 200 {
			d.press("h")
		}
		if at := page.Cursor(c); at != c.From {
			t.Errorf("%v: 200 columns left the cursor is at %d, the axis begins at %d", axis, at, c.From)
		}
		d.press("l", "l")
		if was := page.Cursor(c); !page.Jump(1) || page.Cursor(c) <= was {
			t.Errorf("%v: the next change is at %d, after %d", axis, page.Cursor(c), was)
		}
	}
}

func TestAnOperatorIsTimedFromItsCurve(t *testing.T) {
	t.Parallel()
	d := live(t, 120, 40).press("5", "t").reads("bottom")
	d.press("a", "j", "t").sees("▸ M 1 ", "M 512").reads("detail")
	d.reads("list")
	d.sees("bicol 1–2 · steel 512  ").reads("detail")
	if n := len(d.app.mirror.Trace.Trials); n != 6 { // two routes at 1, 2 and 512 tokens; the cursor is at 1
		t.Errorf("%d trials, want 6", n)
	}
	drive(t, 80, 24, llama, nil, Options{}).press("5", "j", "t").sees("recorded")
}

// Without a forecast the page shows the measured times and says what is unknown.
func TestCurvesWithoutAForecast(t *testing.T) {
	t.Parallel()
	old := tracetest.Llama(16, 24)
	d := drive(t, 120, 40, old, nil, Options{}).press("5").reads("title")
	d.press("a").reads("title")
	one := *old
	one.Steps = old.Steps[:1]
	drive(t, 80, 24, &one, nil, Options{}).press("5").reads("title")
}

// Each glyph set draws a line from corner to corner of the plot, in exactly the given number of cells.
func TestPlotsInEveryGlyphSet(t *testing.T) {
	t.Parallel()
	th, err := widget.NewTheme("dark", "never", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range widget.GlyphNames {
		g, err := widget.NewGlyphs(set)
		if err != nil {
			t.Fatal(err)
		}
		p := widget.NewPlot(g, 20, 6, widget.Scale{Lo: 0, Hi: 100}, widget.Scale{Lo: 0, Hi: 50})
		p.Label = func(float64) string { return "y" }
		p.Position = func(float64) string { return "x" }
		p.Line([]float64{0, 100}, []float64{0, 50})
		p.Dot(200, 7) // outside
		lines := p.Render(th)
		if len(lines) != 8 {
			t.Fatalf("%s: %d lines, want 8", set, len(lines))
		}
		first, last := []rune(lines[5])[widget.Axis+1], []rune(lines[0])
		if first == ' ' || len(last) != widget.Axis+1+20 || last[widget.Axis+20] == ' ' {
			t.Errorf("%s: the line does not go from corner to corner:\n%s", set, strings.Join(lines, "\n"))
		}
		for _, l := range lines {
			if utf8.RuneCountInString(l) > widget.Axis+1+20 {
				t.Errorf("%s: %q", set, l)
			}
		}
	}
}

// By default the axis covers the steps that were measured, not the whole context. Keys zoom it.
func TestAnAxisIsDrawnWhereSomethingWasMeasured(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, llama, nil, Options{}).press("5", "j")
	page := d.app.view().(*curves.Page)
	drawn := func() curves.AxisRange {
		c, r := page.Current()
		return page.Part(c, r)
	}
	c, _ := page.Current()
	if c.To < 10*c.Last {
		t.Fatalf("the axis ends at %d, the steps at %d: want a much longer axis", c.To, c.Last)
	}
	first := drawn()
	if first.From > c.First || first.To < c.Last || first.To-first.From > 3*(c.Last-c.First) {
		t.Errorf("steps from %d to %d are drawn on an axis from %d to %d", c.First, c.Last, first.From,
			first.To)
	}
	d.sees(" of " + widget.Count(c.To))
	cursor := page.Cursor(c)
	for range 20 {
		d.press("-")
	}
	if d.reads("bottom"); drawn() != (curves.AxisRange{From: c.From, To: c.To}) {
		t.Errorf("zoomed out 20 times, the axis covers %d to %d", drawn().From, drawn().To)
	}
	for range 20 {
		if d.press("+"); drawn().From > cursor || drawn().To < cursor {
			t.Fatalf("zoomed in, %d to %d excludes the cursor at %d", drawn().From, drawn().To, cursor)
		}
	}
	closest := drawn()
	for range 100 {
		d.press("l")
	}
	if at := page.Cursor(c); at <= closest.To || drawn().To != at ||
		drawn().To-drawn().From < curves.LeastPart {
		t.Errorf("the cursor moved to %d, the axis is drawn from %d to %d", at, drawn().From, drawn().To)
	}
	for i := 0; page.Drawn[page.Along] != (curves.AxisRange{}) && i < 40; i++ {
		d.press("u")
	}
	if page.Drawn[page.Along] != (curves.AxisRange{}) {
		t.Errorf("after undo, the range %+v is still set", page.Drawn[page.Along])
	}
	if d.press("d"); drawn() != (curves.AxisRange{From: c.From, To: c.To}) {
		t.Errorf("planned values are drawn only from %d to %d", drawn().From, drawn().To)
	}
}

// Until the curves along the new axis are ready, the whole page shows the previous axis. Then all of it
// switches at once.
func TestAnotherAxisIsDrawnAllAtOnce(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, llama, nil, Options{}).press("5", "j")
	here := []string{"214.4 µs in s23"}
	d.sees(here...).touch("a")
	d.sees(here...)
	if d.app.detailTask.Cancel != nil {
		t.Error("the detail is computed for an axis that is not ready yet")
	}
	d.settle()
	d.reads("list", "detail").press("d")
	d.reads("list").press("a").reads("list").press("u").reads("list")
}

// The curve of the whole step shows its total time. The step has no grid to explain, so w asks for a row
// below it.
func TestWholeStepCurveHasNoGrid(t *testing.T) {
	t.Parallel()
	d := drive(t, 80, 24, llama, nil, Options{}).press("5", "w").sees("at 64: Σ 3.11 ms")
	d.reads("bottom")
	d.press("j", "w").sees(" Why ").reads("bottom")
}

// On a narrow screen the list does not show the fastest route of a timed operator, so that names and planned
// routes have room. The detail shows it instead.
func TestWhatIsFastestLeavesNamesTheirRoom(t *testing.T) {
	t.Parallel()
	d := live(t, 80, 24).press("5", "a", "j", "t").reads("list").press("tab", "z").sees("fastest ")
	d.press("z", "tab")
	d.update(tea.WindowSizeMsg{Width: 200, Height: 40})
	d.settle()
	d.reads("list")
}
