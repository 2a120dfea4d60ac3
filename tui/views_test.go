package tui

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"
	"pgregory.net/rapid"

	"gpuscope/trace"
	"gpuscope/trace/tracetest"
	"gpuscope/tui/command"
	"gpuscope/tui/tuitest"
	"gpuscope/tui/view/step"
	"gpuscope/tui/widget"
)

// row returns the text of the selected row.
func (d *driver) row() string { return strings.TrimSpace(d.line(widget.MarkSelected)) }

func (d *driver) at(x, y int, b tea.MouseButton) *driver {
	d.update(tea.MouseMsg{X: x, Y: y, Button: b, Action: tea.MouseActionPress})
	d.settle()
	return d
}

func TestFilterShowsAndCountsMatches(t *testing.T) {
	t.Parallel()
	d := drive(t, 80, 24, llama, nil, Options{}).press("2", "F", "F", "F", "/")
	d.typed("fd_split").reads("bottom", "title").misses("rms_norm")
	d.press("enter").reads("title")
	d.press("/").typed(" us:>").reads("notice").press("esc").reads("title")
	d.press("esc").reads("title").sees("rms_norm")
}

func TestFilterCountsRowsInsideClosedRows(t *testing.T) {
	t.Parallel()
	d := drive(t, 80, 24, llama, nil, Options{}).press("2", "/")
	d.typed("fd_split").press("enter").reads("title")
	d.press("F", "F").reads("title")
}

// Keys act on the selected row, so a filter selects the row that it found, and not the group of that row. The
// detail names the group.
func TestAFilterSelectsWhatItFound(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, llama, nil, Options{}).press("2", "/").typed("layers.3.attn.q").press("enter")
	if got := d.row(); !strings.Contains(got, " L3 ") {
		t.Errorf("the filter selects %q:\n%s", got, d.screen())
	}
	d.sees("L3 of q ×16").press("w").reads("overTitle").press("esc")
	d.press("esc").press("/").typed("re:^(k|down)$").press("enter")
	if got := d.row(); !strings.Contains(got, " k ") {
		t.Errorf("%q is selected, want the first match, k", got)
	}
	d.press("j", "j", "esc", "/").typed("mlp").press("enter")
	if got := d.row(); !strings.Contains(got, " down ") {
		t.Errorf("%q is selected, want the row selected before, which matches", got)
	}
}

func TestPrintableKeysBelongToTheInput(t *testing.T) {
	t.Parallel()
	d := live(t, 80, 24).press("2", "/")
	before := d.app.mirror.State.Step
	d.typed("sqx?").press("space")
	d.reads("bottom")
	if d.app.mirror.State.Step != before || d.app.over != nil {
		t.Error("a typed letter acted as a key")
	}
}

func TestSortingIsByTheLetterOfAColumn(t *testing.T) {
	t.Parallel()
	d := drive(t, 80, 24, llama, nil, Options{}).press("2", "F", "F", "F", "o").sees("l ~excess", "# id").reads("bottom")
	d.press("l").sees("~excess↓").reads("bottom")
	lost := regexp.MustCompile(`(\d+)( +\w*)?$`)
	last := 1 << 30
	for _, l := range strings.Split(d.screen(), "\n")[6:15] {
		var n int
		fmt.Sscan(lost.FindStringSubmatch(strings.TrimSpace(l))[1], &n)
		if n > last {
			t.Errorf("%d comes after %d:\n%s", n, last, d.screen())
		}
		last = n
	}
	d.press("o", "l").sees("~excess↑").press("O").sees("~excess↓")
	d.press("o", "!").sees("~excess↓").reads("bottom").press("o", "esc").sees("~excess↓")
	d.press("o", "space").misses("~excess↓", "~excess↑")
	d.press("F", "o").misses("…#") // the column is listed by its name: its title has no letter
	if !regexp.MustCompile(`\w last\b`).MatchString(d.screen()) {
		t.Errorf("no key sorts by the column last:\n%s", d.screen())
	}
}

// A column has the same letter on every screen, before and after costs are measured. A column that a narrow
// screen has no room for is shown while rows are sorted by it.
func TestSortedColumnIsShownAndKeepsItsLetter(t *testing.T) {
	t.Parallel()
	for _, w := range some([]int{60, 80, 120, 200}) {
		d := live(t, w, 40).press("2", "o").sees("sort by:").misses(" s share").press("esc")
		d.press("c", "o", "space").misses("~save↓").press("o").sees("s ~save").press("s").sees("~save↓")
		d.press("o", "u").sees("µs↓").press("o", "m").sees("total↓").press("o", "c").sees("cost↓")
	}
}

// The selected row stays selected, at its place on the screen, when the rows change.
func TestTheSelectionFollowsItsRow(t *testing.T) {
	t.Parallel()
	d := drive(t, 80, 24, llama, nil, Options{}).press("2", "/").typed("mlp.down").press("enter")
	d.press("G", "esc")
	row := func(what string, want string) {
		t.Helper()
		if !strings.Contains(d.row(), want) {
			t.Errorf("after %s the selected row is %q, want %s", what, d.row(), want)
		}
	}
	row("clearing the filter", "down")
	height := d.app.table().Cursor - d.app.table().Top
	d.press("o", "l")
	row("sorting", "down")
	if now := d.app.table().Cursor - d.app.table().Top; now != height && d.app.table().Top > 0 {
		t.Errorf("the row moved from line %d to %d", height, now)
	}
	d.press("O")
	row("reversing", "down")
	d.press(",")
	row("another step", "down")
	d.press("F")
	row("grouping by op", "linear")
	d.press("F")
	row("grouping by kernel", "linear")
	d.press("F")
	row("grouping by none", "mlp.down")
}

func TestUndoTakesBackAChangeOfTheView(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, llama, nil, Options{}).press("2")
	begin := d.screen()
	d.press("u").reads("bottom")
	d.press("F").press("o", "l").press("/").typed("norm").press("enter").press("v", "b").press("<", "z", "3")
	for _, gone := range []string{"[3 Resize]", "zoomed", "", "", "warm decode steps", "filter norm", "~excess↓", "by op"} {
		if gone != "" {
			d.sees(gone)
		}
		d.press("u")
		d.update(fadeMsg{d.app.noteID})
		if gone != "" {
			d.misses(gone)
		}
	}
	d.press("u").reads("bottom")
	d.update(fadeMsg{d.app.noteID})
	if got := d.screen(); got != begin {
		t.Errorf("after undoing everything the screen is\n%s\nwant\n%s", got, begin)
	}
}

func TestInvalidFilterKeepsRowsAndExplains(t *testing.T) {
	t.Parallel()
	d := drive(t, 80, 24, llama, nil, Options{}).press("2", "F", "F", "F", "/").typed("fd_split")
	d.typed(" us:>x").reads("notice").misses("rms_norm")
	d.press("enter").reads("notice").misses("rms_norm")
	d.press("F").sees("fd_split").reads("notice").misses("rms_norm")
	d.press("esc").misses("✗").sees("rms_norm")
}

// The error of a filter is shown in full at every size. Typing into a reopened filter replaces the old text.
func TestInvalidFilterIsExplainedAtAnySize(t *testing.T) {
	t.Parallel()
	want := `filter us:>abc: "abc" is not a number`
	for _, size := range [][2]int{{60, 16}, {80, 24}, {120, 40}} {
		d := drive(t, size[0], size[1], llama, nil, Options{}).press("2", "v", "/").typed("layers").press("enter", "/")
		d.typed("us:>abc").sees(want).reads("bottom").press("enter").sees(want, "✗ filter")
		d.press("/").typed("us:>1").press("enter").reads("title").misses("✗")
		d.press("/", "end").typed("0").press("enter").reads("title") // end keeps the old text
	}
}

func TestFilteredParentSaysWhatItsSumsCover(t *testing.T) {
	t.Parallel()
	for _, s := range some([][2]int{{200, 60}, {120, 40}, {80, 24}}) {
		d := drive(t, s[0], s[1], llama, nil, Options{}).press("2", "/").typed("fd_").press("enter")
		d.sees("attn 32/192", "sums").misses("sdpa.split 16/16")
		d.press("esc").misses("32/192", "sums")
	}
	for _, s := range some([][2]int{{200, 60}, {120, 40}, {80, 24}}) { // also with costs
		d := live(t, s[0], s[1]).press("2", "c", "/").typed("#:=37").press("enter")
		d.sees(" 1/16", "sums")
	}
}

func TestFilterOpensParentsOfMatches(t *testing.T) {
	t.Parallel()
	d := drive(t, 80, 24, llama, nil, Options{}).press("2", "/").typed("layers.3.attn.q").press("enter")
	d.sees("▾ q 1/16", "layers.3.attn.q", "1 of 326 rows")
}

func TestNextMatchWorksWithAndWithoutFilter(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, llama, nil, Options{}).press("2").press("n").reads("bottom")
	d.press("/").typed("norm").press("enter", "g", "n")
	if !strings.Contains(d.row(), "norm") {
		t.Errorf("the next match is %q", d.row())
	}
	first := d.row()
	d.press("n", "N")
	if d.row() != first {
		t.Errorf("after n and N %q is selected, want %q", d.row(), first)
	}
	d.press("esc", "n").sees("rope_q") // rows that do not match are shown
	if !strings.Contains(d.row(), "norm") || d.row() == first {
		t.Errorf("without the filter the next match is %q", d.row())
	}
	d.press("G", "n").reads("bottom")
}

func TestRowsAreMarkedAndCounted(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, llama, nil, Options{}).press("2", "j", "m", "j", "j", "m", "j").sees("2 marked", "•  0   embed")
	marked, _ := d.dispatches().Parts(true)
	if len(marked) != 2 || marked[0].Name != "embed" || fmt.Sprint(marked[1].Dispatches) != "[2]" {
		t.Errorf("%+v are marked", marked)
	}
	d.press("k", "m").sees("1 marked")
}

func TestFoldingGoesRound(t *testing.T) {
	t.Parallel()
	d := drive(t, 80, 24, llama, nil, Options{}).press("2")
	for _, fold := range []string{"op", "kernel", "none", "layer"} {
		d.press("F").sees("by " + fold)
	}
}

func TestRowKeepsItsPlaceWhenOpenedAndClosed(t *testing.T) {
	t.Parallel()
	d := drive(t, 80, 24, llama, nil, Options{}).press("2", "j", "j", "j", "j")
	if !strings.Contains(d.row(), "▾ layers 0–15") {
		t.Fatalf("selected is %q", d.row())
	}
	d.press("enter").misses("▾ attn").sees("epilogue")
	if !strings.Contains(d.row(), "▸ layers 0–15") {
		t.Errorf("after closing, selected is %q", d.row())
	}
	d.press("l").sees("▾ attn").press("j", "j", "h")
	if !strings.Contains(d.row(), "attn") {
		t.Errorf("h on a row without members selected %q, want its group", d.row())
	}
}

func TestTheSelectedRowSurvivesAnotherStep(t *testing.T) {
	t.Parallel()
	d := live(t, 80, 24).press("2", "j", "j", "j", "j", "j", "j", "j")
	before := strings.Fields(d.row())[3]
	d.press("s", "s", "S")
	if got := strings.Fields(d.row())[3]; got != before {
		t.Errorf("selected is %s, was %s", got, before)
	}
}

func TestTheBaseStaysWhereItIsMarked(t *testing.T) {
	t.Parallel()
	d := live(t, 80, 24).press("2").sees("Δ s2:")
	// The baseline itself is compared with the step before it.
	d.press("b", "s", "s").sees("Δ s3:").press("S", "S").sees("Δ s2:")
	d.press("b", "s").sees("Δ s5:")
}

func TestRepeatingAddsSamplesAndNothingElse(t *testing.T) {
	t.Parallel()
	d := live(t, 120, 40).press("2").sees("1 sample")
	step := d.app.shown
	d.press("R").sees("n=10").press("R").sees("n=20")
	if d.app.shown != step {
		t.Error("a repeat moved the step")
	}
}

func TestLookingBackDoesNotMoveTheModel(t *testing.T) {
	t.Parallel()
	d := live(t, 80, 24).press("1")
	d.press(",", ",").sees("step 1 (newest 3)").press("f").sees("step 3 decode pos 44")
	d.press("left").sees("step 2 (newest 3)")
	d.press("s").sees("step 4 decode pos 45") // a new step is shown
}

func TestWhyLeadsBackToTheTokens(t *testing.T) {
	t.Parallel()
	d := drive(t, 80, 24, llama, nil, Options{}).press("2", "F", "F", "F",
		"/").typed("fd_split").press("enter", "w")
	d.sees("grid 32 → 64", "← pos 63 → 64").reads("overTitle").press("esc").reads("overTitle")
	d.press("e").sees("@workgroup_size(64, 1, 1)").reads("over").press("q").reads("over")
}

func TestResizeShowsWhatAValueReaches(t *testing.T) {
	t.Parallel()
	d := drive(t, 80, 24, tracetest.Llama(2, 2), nil, Options{}).press("3", "j", "l", "j")
	d.reads("detail").press("w").reads("over").press("G").sees("lm_head")
}

// w on a value lists everything that the value affects, in every view. For an operator that launches nothing
// it uses the values of the operator, for a pass the changed values, and in the neighbourhood and on the page
// of a value that value.
func TestWhyOfAValueIsWhatItReaches(t *testing.T) {
	t.Parallel()
	tr := tracetest.Llama(2, 2)
	tr.Steps[1].Resize.Passes[0].Hooks[0].Plans = nil // of embed
	d := drive(t, 120, 40, tr, nil, Options{}).press("3", "w")
	d.reads("overTitle", "over").press("esc")
	d.press("j", "w").reads("over").press("esc")
	d.press("/").typed("sdpa.qk").press("enter", "w").reads("over").press("esc")
	d.press("4", "a", "/").typed("layers.1.mlp.up").press("enter", "w").reads("over")
	d.press("esc", "enter").sees("Graph › Value").press("w").reads("over")
	d = drive(t, 120, 40, tracetest.Llama(2, 2), nil, Options{}).press("4", "/").typed("embed").press("enter", "p")
	d.press("up").press("up").press("left").press("w").reads("over")
}

// If the rows change and the filter now matches some, it selects the first match.
func TestAFilterThatFindsSomethingLaterSelectsIt(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, llama, nil, Options{}).press("2", "/").typed("id:=34").press("enter")
	d.reads("list").press("w").reads("overTitle").press("esc", "V")
	if got := d.row(); !strings.Contains(got, " L1 ") {
		t.Errorf("the filter selects %q:\n%s", got, d.screen())
	}
	d.press("w").reads("overTitle")
}

// The list says where a dispatch runs only if the filter excludes it by its number alone. Another word may be
// the one that excludes it, and in Graph a number is that of an operator.
func TestDispatchIdFilterSaysWhereItRuns(t *testing.T) {
	t.Parallel()
	for view, said := range map[string]string{"2": "#34 zzz", "4": "#34 zzz", "5": "#34"} {
		d := drive(t, 120, 40, llama, nil, Options{}).press(view, "/").typed(said).press("enter")
		d.misses("Dispatch 34 runs")
	}
	d := drive(t, 120, 40, llama, nil, Options{}).press("2", "/").typed("#34").press("enter")
	d.reads("list")
}

// A filter finds a dispatch by its number in the # column. A dispatch that never runs is explained too.
func TestIdOfAnUnlaunchedDispatchIsExplained(t *testing.T) {
	t.Parallel()
	d := drive(t, 80, 24, llama, nil, Options{}).press("2", "/").sees("filter: ▏").reads("bottom").typed("#")
	d.reads("bottom").typed("27").press("enter").sees("filter #27: 1 of ")
	detail := drive(t, 120, 40, llama, nil, Options{}).press("2", "/").typed("#27").press("enter")
	detail.sees("op     #27 ", "operator ")

	tr := tracetest.Llama(2, 2)
	slot := tr.Graph.Dispatches[3]
	slot.ID, slot.Label = trace.DispatchID(len(tr.Graph.Dispatches)), "unused"
	tr.Graph.Dispatches = append(tr.Graph.Dispatches, slot)
	d = drive(t, 120, 40, tr, nil, Options{}).press("2", "/")
	d.typed(fmt.Sprintf("#%d", slot.ID)).press("enter")
	d.sees(fmt.Sprintf("Dispatch %d", slot.ID)).reads("list").press("w")
	d.reads("over")
}

// In Resize, [ and ] go to the steps in which a grid changed. If several steps are selected, the title names
// them.
func TestNeighboursInResizeAreWhereGridsChange(t *testing.T) {
	t.Parallel()
	tr := tracetest.Llama(2, 26)
	for i := range tr.Steps {
		tr.Steps[i].Cold = i == 0
	}
	tr.Steps[24].Cold = true // an event without a change of grids
	d := drive(t, 120, 40, tr, nil, Options{}).press("2", "v", "3").reads("title")
	d.press("[").sees("step 23 (newest").press("[").sees("step 1 (newest").press("]").sees("step 23 (newest")
	drive(t, 120, 40, tr, nil, Options{}).press("2", "[").sees("step 24 (newest")
}

// Opening a row shows its members and moves no column.
func TestOpeningARowMovesNoColumn(t *testing.T) {
	t.Parallel()
	for _, view := range []string{"2", "3"} {
		d := drive(t, 120, 40, llama, nil, Options{}).press(view, "j", "j", "j")
		head := func() string { return widget.Cut(strings.Split(d.screen(), "\n")[4], 78) }
		before := head()
		for range 6 {
			d.press("l", "j")
			if after := head(); after != before {
				t.Fatalf("view %s: the columns are\n%s\nand were\n%s", view, after, before)
			}
		}
	}
}

func TestThePaletteFindsAndRuns(t *testing.T) {
	t.Parallel()
	d := drive(t, 80, 24, llama, nil, Options{}).press("2", ":").typed("group")
	d.reads("bottom").press("enter").reads("title", "bottom")
}

func TestZoomGivesAPaneTheScreen(t *testing.T) {
	t.Parallel()
	d := drive(t, 80, 24, llama, nil, Options{}).press("2", "z").reads("title")
	if rows := d.app.table().Page; rows != 17 {
		t.Errorf("the zoomed list has %d rows, want 17", rows)
	}
	d.press("tab").reads("detailTitle").misses("epilogue").press("esc").reads("title").sees("▾ layers")
}

func TestTheMouseSelectsSortsAndScrolls(t *testing.T) {
	t.Parallel()
	d := drive(t, 80, 24, llama, nil, Options{}).press("2")
	d.at(10, 9, tea.MouseButtonLeft)
	if !strings.Contains(d.row(), "slice sin") {
		t.Errorf("a click selected %q", d.row())
	}
	d.at(1, 1, tea.MouseButtonLeft).sees("[1 Step] 2").at(9, 1, tea.MouseButtonLeft).sees("[2 Dispatches]")
	d.at(10, 8, tea.MouseButtonWheelDown)
	if d.app.table().Cursor != 6 {
		t.Errorf("the wheel moved the cursor to %d, want 6", d.app.table().Cursor)
	}
	x := strings.Index(d.line("# op"), "~excess") - 1 // µ is one cell but two bytes
	d.at(x, 5, tea.MouseButtonLeft).sees("~excess↓").at(x, 5, tea.MouseButtonLeft).sees("~excess↑")
}

// The last line shows the available keys and the position of the cursor. A dialog shows its own keys.
func TestTheFootSaysKeysAndPlace(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, llama, nil, Options{}).press("2", "G").sees("[ ] event")
	p := d.app.table()
	want := fmt.Sprintf("%d/%d rows of 326", len(p.Rows), len(p.Rows))
	if lines := strings.Split(d.screen(), "\n"); !strings.HasSuffix(lines[39], want) {
		t.Errorf("the last line is %q, want %s", lines[39], want)
	}
	d.press(":").reads("bottom").press("esc")
	d = live(t, 80, 24).press("T").reads("bottom").press("esc", "D")
	d.reads("bottom").typed("nan").press("enter")
	d.reads("bottom")
}

func TestAViewOfOnePaneSaysSo(t *testing.T) {
	t.Parallel()
	d := drive(t, 80, 24, llama, nil, Options{}).press("1", "z").reads("title")
	d.reads("bottom").press("tab").reads("bottom")
}

// The border between list and detail stops when a pane has its minimum size. Each view keeps its own border.
func TestTheSplitIsBoundedAndRemembered(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{80, 24}, {120, 40}} {
		d := drive(t, size[0], size[1], llama, nil, Options{}).press("2")
		at := d.app.rects()
		for range 100 {
			d.press("<")
		}
		least := d.app.rects()
		if least[regionList] == at[regionList] || !strings.Contains(d.screen(), "the panes cannot be resized further") {
			t.Errorf("%v: the border does not move, or no note says that it reached its limit", size)
		}
		d.press(">")
		if d.app.rects()[regionList] == least[regionList] {
			t.Errorf("%v: at the limit, one press back does not move the border", size)
		}
		d.press("3")
		if d.app.rects()[regionList] != at[regionList] {
			t.Errorf("%v: the border of one view moved that of another", size)
		}
		d.press("1", "<").reads("bottom")
	}
}

// The detail is next to the list only if its lines have room there, so that nothing is cut unnecessarily.
func TestWideScreenPutsDetailOnTheRight(t *testing.T) {
	t.Parallel()
	wide := drive(t, 120, 40, llama, nil, Options{}).press("2", "j")
	if l := wide.line(widget.MarkSelected); !strings.Contains(l, "embed") ||
		!strings.Contains(l, widget.MarkBar) {
		t.Errorf("no detail beside the row: %q", l)
	}
	wide.press("tab")
	if l := wide.line(widget.MarkHeavyBar); l == "" || !strings.Contains(wide.screen(), "▸ embed") {
		t.Error("nothing shows that the detail has the focus")
	}
	narrow := drive(t, 109, 40, llama, nil, Options{}).press("2", "j")
	if l := narrow.line(widget.MarkSelected); strings.Contains(l, widget.MarkBar) {
		t.Errorf("the detail is next to a list that has no room for it: %q", l)
	}
}

func TestASmallWindowSaysWhatIsNeeded(t *testing.T) {
	t.Parallel()
	d := live(t, 80, 24)
	d.update(tea.WindowSizeMsg{Width: 50, Height: 10})
	d.sees("50 x 10", "60 x 16").press("s")
	d.update(tea.WindowSizeMsg{Width: 80, Height: 24})
	d.sees("step 4 decode") // the key worked in the small window
	for w := 0; w < 12; w++ {
		for h := 0; h < 4; h++ {
			d.update(tea.WindowSizeMsg{Width: w, Height: h})
			d.app.View()
		}
	}
}

func TestASoftwareDeviceIsNamedInWords(t *testing.T) {
	t.Parallel()
	soft := *llama
	soft.Device.Name, soft.Device.AdapterType = "llvmpipe (LLVM 15.0.6, 256 bits)", "cpu"
	for _, size := range some(sizes) {
		d := drive(t, size[0], size[1], &soft, nil, Options{})
		d.sees("software device (llvmpipe")
		if size[0] > widget.MainWidth {
			d.sees("Llama-3.2-1B", "compare ratios only")
		}
	}
}

func TestCommandDuringRunStopsTheRun(t *testing.T) {
	t.Parallel()
	d := drive(t, 80, 24, llama, &tuitest.Script{}, Options{Prompt: "once"})
	d.settle()
	d.touch("space")
	d.touch("X")
	d.settle()
	if s := d.app.mirror.State; s.Position != 0 || s.Step != -1 {
		t.Errorf("after a reset the state is %+v", s)
	}
	if d.app.empty() == "" {
		t.Errorf("after a reset the view shows rows:\n%s", d.screen())
	}
}

// A live run and its opened trace show the same prompt, tokens and rows. Only the title and the headline
// of a live run say what can be measured.
func TestAnOpenedTraceShowsWhatTheRunShowed(t *testing.T) {
	t.Parallel()
	d := live(t, 120, 40).press("2")
	recorded := *d.app.index.Trace
	opened := drive(t, 120, 40, &recorded, nil, Options{}).press("2")
	list := func(d *driver) string {
		lines := strings.Split(d.screen(), "\n")
		return strings.Join(append(lines[2:3:3], lines[5:38]...), "\n")
	}
	for _, w := range []int{121, 120} { // until the window changes, columns are as wide as in earlier steps
		d.update(tea.WindowSizeMsg{Width: w, Height: 40})
		d.settle()
	}
	if list(d) != list(opened) {
		t.Errorf("live:\n%s\nopened:\n%s", list(d), list(opened))
	}
}

// If no step is shown, f cannot follow. The next step is shown anyway.
func TestFollowNeedsAShownStep(t *testing.T) {
	t.Parallel()
	d := live(t, 80, 24).press("X", "f").reads("bottom")
	d.reads("bottom").press("i").typed("again").press("enter").sees("step 4 prefill")
}

func TestDroppedStepsLeaveAValidSelection(t *testing.T) {
	t.Parallel()
	d := bare(t, Options{Width: 80, Height: 24, Prompt: "Once upon a time"})
	d.app.mirror.Budget = 256 << 10
	d.session = tuitest.Play(llama, tuitest.Script{})
	d.update(openedMsg{session: d.session})
	d.settle()
	d.press("s", "b", "s", "s", "f").reads("bottom")
	for range 4 {
		d.press("i").typed("again").press("enter", "f", "space")
		for _, view := range []string{"1", "2", "3"} {
			d.press(view)
		}
	}
	if d.app.mirror.Trace.DroppedSteps == 0 {
		t.Fatal("no step was dropped, so this test checks nothing")
	}
	if got, want := d.app.step().Index, d.app.shownIndex(); got != want || d.app.base.Step != -1 {
		t.Errorf("step %d is shown as %d, the baseline is step %d", got, want, d.app.base.Step)
	}
	d.press("1", "g").reads("title")
}

func TestNoKeyDoesHarmWhileTheModelLoads(t *testing.T) {
	d := bare(t, Options{Width: 80, Height: 24})
	for i := range command.Table {
		for _, k := range command.Table[i].Keys {
			if k == "ctrl+c" || k == "ctrl+z" || k == "q" {
				continue
			}
			d.touch(k)
			d.touch(k)
			d.touch("esc")
		}
	}
	d.sees("[LOADING]")
	d.touch("f")
	d.reads("bottom")
}

// Every screen size shows the essential facts: that a filter is wrong, what changed against the baseline,
// what timing costs, and that grids are pinned.
func TestWhatMustNotBeLostSurvivesAnyWidth(t *testing.T) {
	t.Parallel()
	static := *llama
	static.Command = []string{"gpuscope", "--static", "llama.gguf"}
	rapid.Check(t, func(r *rapid.T) {
		w, h := rapid.IntRange(minWidth, 200).Draw(r, "w"), rapid.IntRange(minHeight, 60).Draw(r, "h")
		pinned := rapid.Bool().Draw(r, "static")
		d := drive(t, w, h, map[bool]*trace.Trace{false: llama, true: &static}[pinned], nil, Options{}).press("2")
		for range rapid.IntRange(0, 3).Draw(r, "folds") {
			d.press("F")
		}
		if rapid.Bool().Draw(r, "sorted") {
			d.press("o", "k")
		}
		want := []string{"Δ s22", "adds 18 %", "step 7.70 ms"}
		if pinned {
			want = append(want, "STATIC")
		}
		if filter := rapid.SampledFrom([]string{"", "norm", "us:>x", "nonsense:x", "re:["}).Draw(r, "f"); filter != "" {
			d.press("/").typed(filter).press("enter")
			want = append(want, "filter "+filter[:4])
		}
		for _, text := range want {
			if !strings.Contains(d.screen(), text) {
				r.Fatalf("%dx%d: no %q on\n%s", w, h, text, d.screen())
			}
		}
		d.app.runner.Cancel()
	})
}

// Every view says first that grids are pinned.
func TestEveryViewOfAStaticRunSaysSo(t *testing.T) {
	t.Parallel()
	static := *llama
	static.Static = true
	for _, size := range [][2]int{{60, 16}, {80, 24}, {120, 40}} {
		d := drive(t, size[0], size[1], &static, nil, Options{})
		for _, view := range []string{"1", "2", "3", "4", "5"} {
			if d.press(view); !strings.HasPrefix(d.line("STATIC"), " STATIC") {
				t.Errorf("%v, view %s:\n%s", size, view, d.screen())
			}
		}
	}
}

// A click sorts only by the heading that it points at.
func TestAClickOnTheChartSortsNoTable(t *testing.T) {
	t.Parallel()
	d := drive(t, 80, 24, llama, nil, Options{}).press("1")
	p := d.app.views[0].(*step.Page)
	before := p.Steps.Rows.WantedOf
	for y := range 20 {
		for x := 0; x < 80; x += 4 {
			d.app.current = 0 // a click on a tab changes the view
			d.at(x, y, tea.MouseButtonLeft)
		}
	}
	if p.Steps.Rows.WantedOf != before {
		t.Errorf("clicks on the step sorted its table by %q", p.Steps.Rows.Wanted.Sort)
	}
}
