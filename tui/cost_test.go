package tui

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"testing"

	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/tui/tuitest"
	"gpuscope/tui/view"
)

func TestRowsOnTheScreenAreCosted(t *testing.T) {
	t.Parallel()
	d := live(t, 200, 50).press("2").misses("~save")
	d.press("c").sees("[PAUSED]", "cost", "~save↓").reads("about")
	d.press("down", "down").sees(" µs a step ± 0.5 (n=30), ", "~save")
	for i := range d.app.mirror.Trace.Steps {
		s := &d.app.mirror.Trace.Steps[i]
		if n := len(s.Costs); (n > 20) != (i == 3) {
			t.Errorf("step %d has %d costs", i, n)
		}
	}
	before := len(d.app.mirror.Trace.Steps[3].Costs)
	d.press("v").sees("86.8").reads("tabs") // in every scope that has the step
	d.press("V", "o", "space", "/").typed("rope").press("enter", "F", "F", "F", "c")
	if n := len(d.app.mirror.Trace.Steps[3].Costs) - before; n != 32 { // each of the 16 layers' two
		t.Errorf("%d rows more were measured", n)
	}
}

// The first screen says how to find out what to fix first, and then what that is.
func TestTheScreenLeadsToWhatToFixFirst(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{80, 24}, {120, 40}} {
		d := live(t, size[0], size[1]).reads("title")
		d.press("1").reads("list").press("2", "c")
		d.reads("title") // the script's steps wait for longer
		first, _, _ := strings.Cut(strings.SplitAfter(d.screen(), ", then ")[1], " ")
		if first = strings.TrimSuffix(first, ":"); !strings.Contains(d.row(), first) {
			t.Errorf("%s is to be fixed first, and the first row is %q", first, d.row())
		}
		d.press("1").reads("list")
	}
	drive(t, 120, 40, llama, nil, Options{}).misses("c measures")
}

// Where one round was measured on a busy device the largest cost is chance. The title names none, and says
// how to go on; what is measured again joins what was, until the largest stands out.
func TestNoFixFirstWithinNoise(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{80, 24}, {120, 40}} {
		busy := &tuitest.Script{Rounds: 3, Scatter: 270_000}
		d := drive(t, size[0], size[1], llama, busy, Options{Prompt: "Once upon a time"})
		d.settle()
		d.press("s", "2", "c").sees("3 of 5 rounds").reads("title")
		d.press("c").reads("title")
		d.press("c").reads("title", "bottom")
		// From sixteen rounds on more of them say the same.
		d = drive(t, size[0], size[1], llama, &tuitest.Script{Rounds: 8, Scatter: 700_000}, Options{
			Prompt: "Once upon a time",
		})
		d.settle()
		d.press("s", "2", "c").reads("title").press("c").reads("title", "bottom")
	}
}

// What to fix first stays in the title of several steps, beside how many they are and what changed.
func TestFixFirstIsDroppedLast(t *testing.T) {
	t.Parallel()
	for _, w := range []int{80, 120} {
		live(t, w, 40).press("2", "c", "v").sees("decode", "Δ prefill").reads("title")
	}
}

// Times alone stand beside costs: layers of an open row have no others. What costs may be off by,
// which the detail has, stands there where nothing gives way for it.
func TestTimesAloneStandBesideCosts(t *testing.T) {
	t.Parallel()
	for w, off := range map[int]bool{80: false, 110: false, 120: false, 180: true, 200: true} {
		head, _, _ := strings.Cut(live(t, w, 40).press("2", "c").line("# op"), "│")
		if !strings.Contains(head, " Σµs ") || strings.Contains(head, " ± ") != off {
			t.Errorf("%d cells: %q", w, head)
		}
	}
	d := live(t, 120, 40).press("2", "c", "o", "space", "/").typed("gate").press("enter")
	d.sees(" ± ").reads("detail").press("enter").sees("L10", " 19.9 ")
}

// In another fold than the one that was measured rows have no cost until they are measured too, each of them.
func TestRowsOfAnotherFoldGetTheirCosts(t *testing.T) {
	t.Parallel()
	d := live(t, 200, 50).press("2", "c").reads("title").press("F", "F")
	d.reads("title")
	d.press("c").sees(" ~save↓ ").reads("title")
	for i := range d.app.table().Table.Rows {
		r := &d.app.view().(*view.DispatchPage).Table().Grouped[i]
		if r.Parent < 0 && r.Cost == nil {
			t.Errorf("kernel %s has no cost", r.Label)
		}
	}
}

// Members of a row that is costed are not: each costs too little to tell from noise. A mark, or a filter that
// leaves them alone, asks for them.
func TestMembersOfACostedRowAreNotCosted(t *testing.T) {
	t.Parallel()
	costs := func(d *driver) []trace.Cost { return d.app.mirror.Trace.Steps[3].Costs }
	closed := costs(live(t, 200, 50).press("2", "c"))
	d := live(t, 200, 50).press("2")
	for range 20 {
		if d.press("down"); strings.Contains(d.row(), "▸") {
			d.press("right", "down")
			break
		}
	}
	if !strings.Contains(d.row(), " L0 ") {
		t.Fatalf("%q is no member", d.row())
	}
	if d.press("c"); len(costs(d)) != len(closed) {
		t.Errorf("with a row opened %d parts are measured, closed %d", len(costs(d)), len(closed))
	}
	member := func(c trace.Cost) bool { return slices.Equal(c.Dispatches, []trace.DispatchID{37}) }
	d = live(t, 200, 50).press("2", "/").typed("#:=37").press("enter", "c")
	if !slices.ContainsFunc(costs(d), member) {
		t.Errorf("the member that the filter chose is not measured: %+v", costs(d))
	}
	d = live(t, 200, 50).press("2", "/").typed("#:=37").press("enter", "C")
	if c := costs(d); len(c) != 1 || !member(c[0]) {
		t.Errorf("the member that is selected is not measured: %+v", c)
	}
}

// What all dispatches of a row cost stands above what is said of the first of them.
func TestGroupCostComesBeforeItsFirstRow(t *testing.T) {
	t.Parallel()
	d := live(t, 200, 50).press("2", "c", "down", "down").sees(" µs a step").reads("detail")
	if s := d.screen(); strings.Index(s, " µs a step ±") > strings.Index(s, "the first, layers.") {
		t.Errorf("the cost of all stands under the first of them:\n%s", s)
	}
}

func TestWhyWithoutRowsSaysThatNothingIsSelected(t *testing.T) {
	t.Parallel()
	for _, view := range []string{"2", "3", "4"} {
		d := live(t, 120, 40).press(view, "/").typed("nobody").press("enter", "w")
		d.reads("bottom")
	}
}

// On a device of which nothing is known of the least that rows can take, rows stand in the order of costs.
func TestRowsWithoutAFloorStandByTheirCosts(t *testing.T) {
	t.Parallel()
	for said, without := range map[string]func(*trace.Device){
		"no ~save: no ceilings measured": func(d *trace.Device) { d.Ceilings = nil },
		"no ~save":                       func(d *trace.Device) { d.AdapterType = trace.AdapterCPU },
	} {
		tr := *llama
		without(&tr.Device)
		d := drive(t, 240, 50, &tr, &tuitest.Script{}, Options{Prompt: "Once upon a time"})
		d.settle()
		d.press("s", "s", "s", "2", "c").sees("[PAUSED]", " cost↓ ", said)
	}
}

// An order by what no row has yet is that of the graph, the right way up.
func TestRowsKeepGraphOrderUntilCosted(t *testing.T) {
	t.Parallel()
	d := live(t, 120, 40).press("2").sees("embed")
	d.app.view().(*view.DispatchPage).Ranked()
	d.press("down").reads("title", "bottom")
	if p := d.app.table(); p.Choice.Reverse || len(p.Rows) == 0 || p.Rows[0] != 0 {
		t.Errorf("reversed %v, rows %v", p.Choice.Reverse, p.Rows)
	}
}

func TestMarkedRowsAreCostedTogether(t *testing.T) {
	t.Parallel()
	d := live(t, 200, 50).press("2", "/").typed("norm").press("enter")
	for !strings.Contains(d.row(), "norm") {
		d.press("down")
	}
	d.press("m", "G", "m").press("C").sees("2 marked", " (n=30)").reads("title")
	costs := d.app.mirror.Trace.Steps[3].Costs
	if len(costs) != 1 || !strings.Contains(costs[0].Name, " + ") || len(costs[0].Dispatches) < 17 {
		t.Errorf("costs %+v", costs)
	}
	alone := live(t, 200, 50).press("2", "down", "C") // nothing is marked
	if costs := alone.app.mirror.Trace.Steps[3].Costs; len(costs) != 1 || costs[0].Name != "embed" {
		t.Errorf("costs %+v", costs)
	}
}

func TestCostsOfTheStepThatIsShown(t *testing.T) {
	t.Parallel()
	d := live(t, 200, 50).press("2", ",", ",", "c").reads("about").wantShown(1)
	d.press(".").reads("about")
}

func (d *driver) wantShown(want int) *driver {
	d.t.Helper()
	if got := d.app.shownIndex(); got != want {
		d.t.Errorf("step %d is shown, want %d", got, want)
	}
	return d
}

func TestCostsCanBeCancelledByAStep(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	x := start(t, context.Background(), opens(gated(session.Cost, gate)), Options{Prompt: "once"})
	x.sees("step 0 prefill").press("2s").sees("step 1 decode", "Δ s0").press("c").sees("[MEASURING 0 %]")
	gate <- struct{}{}
	gate <- struct{}{}
	gate <- struct{}{}
	x.press("?").sees("Help: Dispatches").press(escape).misses("Help:") // the GPU works, the screen answers
	x.press(ctrlC).sees("[PAUSED]", " 6.8 ", " – ", "~save↓")           // what was measured is kept
	x.press("c").sees("[MEASURING 0 %]").press("s").sees("step 2 decode", "[PAUSED]").misses("✗")
	x.press("q")
	if err := x.ends(); err != nil {
		t.Fatal(err)
	}
}

func TestCostsNeedASessionAndAStep(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, llama, nil, Options{}).press("2", "c").reads("bottom")
	if d.app.job != nil {
		t.Error("a command was sent")
	}
	drive(t, 120, 40, llama, &tuitest.Script{}, Options{}).press("2", "C").reads("bottom")
}

func TestPlainModeMeasuresCosts(t *testing.T) {
	t.Parallel()
	got, err := plainly(opens(tuitest.Script{}), "once", "s\nc\nc attn.norm, mlp.norm\nc nothing\nq\n")
	if err == nil {
		t.Error("a script whose command failed ends well")
	}
	for _, want := range []string{
		"cost at s1, 30 rounds", "26 rows share 7.0", "attn.norm + mlp.norm", "measure costs: ",
		`error: "nothing"`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("plain mode does not say %q:\n%s", want, got)
		}
	}
	if n := strings.Count(got, "measure costs: "); n != 2 {
		t.Errorf("two measurements of no time say %d times how far they are", n)
	}
}

// Rows are told apart by one kind of number: costs of a few, measured in another fold or of rows left out
// together, take no time from the others.
func TestFewCostsLeaveTheTimesWhereTheyAre(t *testing.T) {
	t.Parallel()
	d := live(t, 120, 40).press("2", "c", "F", "F")
	if row := d.line("▸ rms_norm"); !strings.Contains(row, "█") || !strings.Contains(row, "–") {
		t.Errorf("%q: want a bar of its time, and no cost", row)
	}
	if head := d.line("# op"); !strings.Contains(head, "µs ") || !strings.Contains(head, " cost ") {
		t.Errorf("columns %q: want times and costs", head)
	}
	d.reads("title")
	d = live(t, 120, 40).press("2", "/").typed("norm").press("enter", "G", "m", "up", "up", "m", "C")
	d.sees("together")
	if head := d.line("# op"); !strings.Contains(head, " µs ") || strings.Contains(head, " cost ") {
		t.Errorf("columns %q: want times alone", head)
	}
}

// Costs that add up to more than the step are no mistake of theirs, and the detail says why.
func TestTheDetailSaysWhatANegativeShareMeans(t *testing.T) {
	t.Parallel()
	d := live(t, 120, 40).press("2", "c").sees("share 7.0").reads("about")
	recorded := *d.app.mirror.Trace
	recorded.Steps = slices.Clone(recorded.Steps)
	last := &recorded.Steps[len(recorded.Steps)-1]
	whole := *last.Whole
	whole.NS -= 10_000
	last.Whole = &whole
	drive(t, 120, 40, &recorded, nil, Options{}).press("2").reads("about", "detail")
}

// What is measured again is measured with the headings that an order by costs does not show: all costs are of
// as many rounds.
func TestHeadingsAreMeasuredAgainWithTheirRows(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, llama, &tuitest.Script{Rounds: 2, Scatter: 1000}, Options{Prompt: "Once upon a time"})
	d.settle()
	d.press("s", "2", "c", "c", "c").sees("~save↓")
	d.press("c").sees("~save↓") // of rows in that order
	for _, c := range d.app.mirror.Trace.Steps[1].Costs {
		if c.N != 8 {
			t.Errorf("%s is of %d rounds", c.Name, c.N)
		}
	}
}

// A bar under a filter is the part of the step that it is without one.
func TestBarScaleIgnoresTheFilter(t *testing.T) {
	t.Parallel()
	d := live(t, 80, 40).press("2", "c", "o", "space")
	bar := func() string {
		return strings.TrimFunc(d.line("▸ attn.k "), func(r rune) bool { return !strings.ContainsRune("█▏▎▍▋▊▉", r) })
	}
	all := bar()
	d.press("/").typed("attn.k").press("enter")
	if got := bar(); got != all || got == "" {
		t.Errorf("under a filter %q, without one %q", got, all)
	}
}

// That costs do not add up to the step is said in every width, of one step and of several, also where rows
// are gone that ran at the base.
func TestSharedCostIsShownInEveryWidth(t *testing.T) {
	t.Parallel()
	for w, want := range map[int]string{80: "26 rows share 7.0 µs", 120: "26 rows share 7.0 ± 2.5 µs"} {
		d := live(t, w, 40).press("2", "c").sees(want)
		d.press("v").sees("decode", "Δ prefill", want)
	}
}

// A cost whose scatter is not known yet says so on its row, on any screen, and shares stay those of times
// alone; the detail, and marked rows of what they cost together, say which key goes on. Rows stay in the
// order of the graph.
func TestCostOfFewRoundsIsMarked(t *testing.T) {
	t.Parallel()
	tr := *llama
	for _, size := range some([][2]int{{80, 24}, {120, 40}, {200, 50}}) {
		d := drive(t, size[0], size[1], &tr, &tuitest.Script{Rounds: 1}, Options{Prompt: "Once upon a time"})
		d.settle()
		d.press("s", "s", "s", "2", "c").sees("[PAUSED]", " ? ", "share of Σgpu").misses("share by cost")
		pane := d.app.table()
		for _, r := range pane.Rows {
			cell := pane.Table.Cell(r, pane.Table.Column("cost_us"))
			if cell.Has && cell.Text != "?" {
				t.Fatalf("%d cells: row %d costs %q", size[0], r, cell.Text)
			}
		}
		if id := pane.Table.Column("id"); !slices.IsSortedFunc(pane.Rows, func(a, b int) int {
			return cmp.Compare(pane.Table.Cell(a, id).Number, pane.Table.Cell(b, id).Number)
		}) {
			t.Errorf("%d cells: rows %v", size[0], pane.Rows)
		}
	}
	d := drive(t, 120, 40, &tr, &tuitest.Script{Rounds: 1}, Options{Prompt: "Once upon a time"})
	d.settle()
	d.press("s", "2", "c").sees(" ? ").reads("detail").
		press("4", "g").reads("detail")
	d = drive(t, 200, 50, &tr, &tuitest.Script{Rounds: 1}, Options{Prompt: "Once upon a time"})
	d.settle()
	d.press("s", "s", "s", "2", "down", "m", "down", "m", "C").
		reads("title")
}
