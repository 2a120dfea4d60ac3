package tui

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/analyze/headline"
	"gpuscope/trace/report/advice"
	"gpuscope/tui/tuitest"
	"gpuscope/tui/view/dispatch"
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
	d.press("v").sees("86.8").reads("tabs") // in every selection that contains the step
	d.press("V", "o", "space", "/").typed("rope").press("enter", "F", "F", "F", "c")
	if n := len(d.app.mirror.Trace.Steps[3].Costs) - before; n != 32 { // two in each of the 16 layers
		t.Errorf("%d more rows were measured", n)
	}
}

// Before costs are measured, the title names the key that measures them. Afterwards it names what to fix
// first.
func TestTheScreenLeadsToWhatToFixFirst(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{80, 24}, {120, 40}} {
		d := live(t, size[0], size[1]).reads("title")
		d.press("1").reads("list").press("2", "c")
		d.reads("list") // the GPU idles longer than any row runs, so the row comes second
		first := regexp.MustCompile(`Then (?:fix )?(?:\w+\.)*([^.,]+)`).FindStringSubmatch(d.screen())
		if first == nil || !strings.Contains(d.row(), first[1]) {
			t.Errorf("the headline names %q, but the selected row is %q", first, d.row())
		}
		d.press("1").reads("list")
	}
	drive(t, 120, 40, llama, nil, Options{}).misses("c measures")
}

// The line above the dispatches and the line in Step are the sentences of the report, and c gives both lines
// from either view.
func TestHeadlineIsThatOfTheReport(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 50}} {
		for _, from := range []string{"1", "2"} {
			d := live(t, size[0], size[1]).press(from, "c")
			x := d.app.index
			h, err := headline.Of(context.Background(), x, x.Step(d.app.at()))
			if err != nil || h.Basis != headline.Costs {
				t.Fatalf("headline %+v, error %v", h, err)
			}
			lines := advice.Lines(h)
			for _, key := range []string{"1", "2"} {
				shown := d.press(key).screen()
				has := func(l string) bool { return strings.Contains(shown, " "+l) }
				if !slices.ContainsFunc(lines, has) {
					t.Errorf("%d cells, c in view %s: view %s has none of %q:\n%s", size[0], from, key, lines,
						shown)
				}
			}
		}
	}
}

// After a single round on a busy device the largest cost may be noise. The title then names no row and says
// how to continue. Further rounds are added to the earlier ones until the largest cost exceeds the noise.
func TestNoFixFirstWithinNoise(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{80, 24}, {120, 40}} {
		busy := &tuitest.Script{Rounds: 3, Scatter: 270_000}
		d := drive(t, size[0], size[1], llama, busy, Options{Prompt: "Once upon a time"})
		d.settle()
		d.press("s", "2", "c").sees("3 of 5 rounds").reads("title")
		d.press("c").reads("title")
		d.press("c").reads("title", "bottom")
		// From 16 rounds on, the error of a cost is computed from its quartiles.
		d = drive(t, size[0], size[1], llama, &tuitest.Script{Rounds: 8, Scatter: 700_000}, Options{
			Prompt: "Once upon a time",
		})
		d.settle()
		d.press("s", "2", "c").reads("title").press("c").reads("title", "bottom")
	}
}

// The title of several steps keeps what to fix first, next to the number of steps and what changed.
func TestFixFirstIsDroppedLast(t *testing.T) {
	t.Parallel()
	for _, w := range []int{80, 120} {
		live(t, w, 40).press("2", "c", "v").sees("decode", "Δ prefill").reads("title")
	}
}

// Isolated times are shown next to costs, because the layers of an open row have only isolated times. The
// detail shows the error of a cost, so the error column is shown only if no other column has to give way.
func TestTimesAloneStandBesideCosts(t *testing.T) {
	t.Parallel()
	for w, off := range map[int]bool{80: false, 110: false, 120: false, 180: true, 200: true} {
		head, _, _ := strings.Cut(live(t, w, 40).press("2", "c").line("# op"), "│")
		if !strings.Contains(head, " total ") || strings.Contains(head, " ± ") != off {
			t.Errorf("%d cells: %q", w, head)
		}
	}
	d := live(t, 120, 40).press("2", "c", "o", "space", "/").typed("gate").press("enter")
	d.sees(" ± ").reads("detail").press("enter").sees("L10", " 19.9 ")
}

// After a change of grouping rows have no cost until they are measured too. Then each of them has one.
func TestRowsOfAnotherFoldGetTheirCosts(t *testing.T) {
	t.Parallel()
	d := live(t, 200, 50).press("2", "c").reads("title").press("F", "F")
	d.reads("title")
	d.press("c").sees(" ~save↓ ").reads("title")
	for i := range d.app.table().Table.Rows {
		r := &d.app.view().(*dispatch.Page).Table().Grouped[i]
		if r.Parent < 0 && r.Cost == nil {
			t.Errorf("kernel %s has no cost", r.Label)
		}
	}
}

// The members of a measured row are not measured: each costs too little to tell it from noise. A member is
// measured if it is selected with C, or if a filter shows only that member.
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
		t.Fatalf("%q is not a member", d.row())
	}
	if d.press("c"); len(costs(d)) != len(closed) {
		t.Errorf("with an open row %d parts are measured, with a closed row %d", len(costs(d)), len(closed))
	}
	member := func(c trace.Cost) bool { return slices.Equal(c.Dispatches, []trace.DispatchID{37}) }
	d = live(t, 200, 50).press("2", "/").typed("#:=37").press("enter", "c")
	if !slices.ContainsFunc(costs(d), member) {
		t.Errorf("the member that the filter shows is not measured: %+v", costs(d))
	}
	d = live(t, 200, 50).press("2", "/").typed("#:=37").press("enter", "C")
	if c := costs(d); len(c) != 1 || !member(c[0]) {
		t.Errorf("the selected member is not measured: %+v", c)
	}
}

// The detail shows the cost of all dispatches of a row above the details of the first dispatch.
func TestGroupCostComesBeforeItsFirstRow(t *testing.T) {
	t.Parallel()
	d := live(t, 200, 50).press("2", "c", "down", "down").sees(" µs a step").reads("detail")
	if s := d.screen(); strings.Index(s, " µs a step ±") > strings.Index(s, "the first, layers.") {
		t.Errorf("the cost of all dispatches is below the first dispatch:\n%s", s)
	}
}

func TestWhyWithoutRowsSaysThatNothingIsSelected(t *testing.T) {
	t.Parallel()
	for _, view := range []string{"2", "3", "4"} {
		d := live(t, 120, 40).press(view, "/").typed("nobody").press("enter", "w")
		d.reads("bottom")
	}
}

// The shortest possible time of a row is unknown if no ceilings were measured, or if the device is a CPU.
// Then rows are sorted by cost.
func TestRowsWithoutAFloorStandByTheirCosts(t *testing.T) {
	t.Parallel()
	for said, without := range map[string]func(*trace.Device){
		"~save unknown: no ceilings": func(d *trace.Device) { d.Ceilings = nil },
		"~save unknown":              func(d *trace.Device) { d.AdapterType = trace.AdapterCPU },
	} {
		tr := *llama
		without(&tr.Device)
		d := drive(t, 240, 50, &tr, &tuitest.Script{}, Options{Prompt: "Once upon a time"})
		d.settle()
		d.press("s", "s", "s", "2", "c").sees("[PAUSED]", " cost↓ ", said)
	}
}

// If rows are sorted by a column that has no values yet, they keep the order of the graph and are not
// reversed.
func TestRowsKeepGraphOrderUntilCosted(t *testing.T) {
	t.Parallel()
	d := live(t, 120, 40).press("2").sees("embed")
	d.app.view().(*dispatch.Page).Ranked()
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
	x.press("?").sees("Help: Dispatches").press(escape).misses("Help:") // the screen stays responsive
	x.press(escape).sees("[PAUSED]", " 6.8 ", " – ", "~save↓")          // the costs measured so far are kept
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
		t.Error("plain mode returns no error although a command failed")
	}
	for _, want := range []string{
		"parts of step s1", "costs measured in 30 rounds", "attn.norm + mlp.norm", "measure costs: ",
		`error: "nothing"`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("plain mode does not say %q:\n%s", want, got)
		}
	}
	if n := strings.Count(got, "measure costs: "); n != 2 {
		t.Errorf("two short measurements report progress %d times, want 2", n)
	}
}

// All rows are compared by the same kind of number. If only a few rows have costs, because another grouping
// was measured or rows were measured together, the table still shows the times of all rows.
func TestFewCostsLeaveTheTimesWhereTheyAre(t *testing.T) {
	t.Parallel()
	d := live(t, 120, 40).press("2", "c", "F", "F")
	if row := d.line("▸ rms_norm"); !strings.ContainsAny(row, "█▏▎▍▋▊▉") || !strings.Contains(row, "–") {
		t.Errorf("%q: want a bar for its time, and no cost", row)
	}
	if head := d.line("# op"); !strings.Contains(head, "µs ") || !strings.Contains(head, " cost ") {
		t.Errorf("columns %q: want times and costs", head)
	}
	d.reads("title")
	d = live(t, 120, 40).press("2", "/").typed("norm").press("enter", "G", "m", "up", "up", "m", "C")
	d.sees("together")
	if head := d.line("# op"); !strings.Contains(head, " µs ") || strings.Contains(head, " cost ") {
		t.Errorf("columns %q: want only times", head)
	}
}

// Costs that add up to more than the step are not an error. The detail explains the negative shared part.
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

// When rows are measured again, their headings are measured too, although a list sorted by cost does not show
// headings. Otherwise costs would have different numbers of rounds.
func TestHeadingsAreMeasuredAgainWithTheirRows(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, llama, &tuitest.Script{Rounds: 2, Scatter: 1000}, Options{Prompt: "Once upon a time"})
	d.settle()
	d.press("s", "2", "c", "c", "c").sees("~save↓")
	d.press("c").sees("~save↓") // measure again, now sorted by saving
	for _, c := range d.app.mirror.Trace.Steps[1].Costs {
		if c.N != 8 {
			t.Errorf("%s has %d rounds, want 8", c.Name, c.N)
		}
	}
}

// Under a filter a bar still shows the share of the whole step.
func TestBarScaleIgnoresTheFilter(t *testing.T) {
	t.Parallel()
	d := live(t, 80, 40).press("2", "c", "o", "space")
	bar := func() string {
		other := func(r rune) bool { return !strings.ContainsRune("█▏▎▍▋▊▉", r) }
		return strings.TrimFunc(d.line("▸ k "), other)
	}
	all := bar()
	d.press("/").typed("op:=k").press("enter")
	if got := bar(); got != all || got == "" {
		t.Errorf("under a filter %q, without one %q", got, all)
	}
}

// Costs do not add up to the time of the step. The screen shows the rest, which rows share, at every width,
// for one step and for several. It does so even if rows of the baseline no longer run.
func TestSharedCostIsShownInEveryWidth(t *testing.T) {
	t.Parallel()
	const want = "26 rows share 7.0"
	for _, w := range []int{80, 120} {
		d := live(t, w, 40).press("2", "c").sees(want)
		d.press("v").sees("decode", "Δ prefill", want)
	}
}

// A cost without a known error is marked in its row at every screen size, and shares are still computed from
// isolated times. The detail names the key that continues the measurement, and so does the title of rows
// measured together. Rows keep the order of the graph.
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
