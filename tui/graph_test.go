package tui

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/exp/golden"

	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/report"
	"gpuscope/trace/report/outline"
	"gpuscope/tui/tuitest"
	"gpuscope/tui/view/graph"
	"gpuscope/tui/widget"
)

// opened returns an app on a session that shows the graph, with the cursor on an operator.
func opened(t *testing.T, w, h int, s *tuitest.Script, operator string) *driver {
	t.Helper()
	d := drive(t, w, h, llama, s, Options{Prompt: "Once upon a time"})
	d.settle()
	d.press("s", "4", "/").typed(operator).press("enter", "G")
	return d
}

// TestAnOpenedValue shows the page of a value at every size: its statistics, its histogram and a window of
// its numbers.
func TestAnOpenedValue(t *testing.T) {
	t.Parallel()
	for _, size := range some(sizes) {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			d := opened(t, size[0], size[1], &tuitest.Script{NaN: 70}, "select last").press("enter", "G", "enter")
			golden.RequireEqual(t, d.screen()+"\n")
		})
	}
}

// TestAHeatMap shows the heat map of a matrix and of a single row at every size, and one in ASCII.
func TestAHeatMap(t *testing.T) {
	t.Parallel()
	for _, size := range some(sizes) {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			d := opened(t, size[0], size[1], &tuitest.Script{NaN: 9000}, "embed").press("enter", "j", "j", "enter")
			matrix := d.press("d", "pgdown", "l", "l").screen()
			d = opened(t, size[0], size[1], &tuitest.Script{NaN: 70}, "select last").press("enter", "G", "enter")
			golden.RequireEqual(t, matrix+"\n"+d.press("d", "j", "l").screen()+"\n")
		})
	}
}

// rowNameCells is the width of the names of rows beside a heat map.
const rowNameCells = 15

// The numbers that d returns to are those of the cells that the marks of the heat map name.
func TestHeatMapMovesTheWindow(t *testing.T) {
	t.Parallel()
	matrix := func() *driver {
		return opened(t, 120, 40, &tuitest.Script{NaN: 9000}, "embed").press("enter", "j", "j", "enter")
	}
	d := matrix().press("d").sees("max |x| of 142×32", "rows 0–22 of 4,096").reads("bottom")
	d.press("j", "j", "l").sees("rows 284–306 of 4,096", "columns 32–36 of 2,048").press("d").sees(" [284] ", " 32 ")
	d.press("d", "G").sees("rows 4,073–4,095").press("g", "pgdown", "pgup").sees("rows 0–22", "columns 0–4")
	cell := func(d *driver, row, column int) *driver {
		list := d.app.rects()[regionList]
		d.at(list.X+rowNameCells+column, list.Y+3+row, tea.MouseButtonLeft)
		return d
	}
	cell(d, 5, 4).sees("rows 710–732 of 4,096, columns 128–132 of 2,048")
	d.press("d").sees("rows 710–732 of 4,096").misses("max |x|")
	cell(d, 1, 1).sees("rows 710–732")
	row := opened(t, 120, 40, &tuitest.Script{}, "select last").press("enter", "G", "enter", "d")
	row.sees("heat map: largest |x| of 1×2 elements", "rows 0–22 of 410").press("l").sees("rows 1–23").press("h").sees("rows 0–22")
	cell(row.press("j").sees("rows 25–47 of 410"), 15, 60).sees("rows 387–409")
	ascii := drive(t, 80, 24, llama, &tuitest.Script{NaN: 9000}, Options{Prompt: "Once", Glyphs: "ascii"})
	ascii.settle()
	ascii.press("s", "4", "/").typed("embed").press("enter", "G", "enter", "j", "j", "enter", "d").reads("list")
}

// The engine computes the heat map: only its cells are sent, whatever the size of the value.
func TestHeatMapIsComputedByTheEngine(t *testing.T) {
	t.Parallel()
	var maps []session.MapAt
	fails := errors.New("the map cannot be read")
	var fault error
	d := opened(t, 80, 24, &tuitest.Script{Before: func(_ context.Context, c session.Command) error {
		if c.Kind != session.Look || c.At.Map == nil {
			return nil
		}
		maps = append(maps, *c.At.Map)
		if c.At.Count != 0 {
			t.Errorf("%d elements are sent with the heat map", c.At.Count)
		}
		return fault
	}}, "embed").press("enter", "j", "j", "enter")
	if len(maps) != 0 {
		t.Errorf("a heat map is computed before it is shown: %v", maps)
	}
	d.press("d", "j", "l", "d", "d")
	if want := []session.MapAt{{Width: 2048, Rows: 512, Columns: 32}}; !slices.Equal(maps, want) {
		t.Errorf("%v, want %v", maps, want)
	}
	fault = fails
	d.press("d", "s", "d").press("S") // a constant: no step changes it
	if len(maps) != 1 {
		t.Errorf("%d heat maps of a constant", len(maps))
	}
	d = opened(t, 80, 24, &tuitest.Script{Before: func(_ context.Context, c session.Command) error {
		if c.Kind == session.Look && c.At.Map != nil {
			return fails
		}
		return nil
	}}, "lm_head").press("enter", "G", "enter", "d")
	d.sees(widget.MarkFail + " the map cannot be read")
	d = drive(t, 80, 24, llama, nil, Options{}).press("4", "a", "j", "j", "j", "enter", "d")
	d.sees("heat map: a trace does not contain tensor values")
}

// TestAComparison shows the difference from the baseline's value and its heat map at every size.
func TestAComparison(t *testing.T) {
	t.Parallel()
	for _, size := range some(sizes) {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			d := opened(t, size[0], size[1], &tuitest.Script{NaN: 70}, "embed")
			numbers := d.press("enter", "G", "enter", "c").screen()
			golden.RequireEqual(t, numbers+"\n"+d.press("d").screen()+"\n")
		})
	}
}

// c subtracts the value at the last step of the baseline, and names both steps. The value of the prefill has
// more rows than that of a decode step: their common part is compared.
func TestComparisonFollowsTheBaseline(t *testing.T) {
	t.Parallel()
	var looks []session.LookAt
	d := opened(t, 120, 40, &tuitest.Script{Before: func(_ context.Context, c session.Command) error {
		if c.Kind == session.Look || c.Kind == session.Save {
			looks = append(looks, *c.At)
		}
		return nil
	}}, "select last").press("enter", "G", "enter")
	looks = nil
	d.press("c").sees("last, s1 minus s0", "step 1 minus the baseline, step 0", "max |Δ| 0.01695 at [0, 27]", "c value")
	if len(looks) != 2 {
		t.Errorf("%d requests", len(looks))
	}
	for _, at := range looks {
		if at.Baseline == nil || at.Baseline.Step != 0 || *at.Step != 1 {
			t.Errorf("%+v", at)
		}
	}
	d.press("d").sees("max |Δ| of 1×2").press("d")
	d.press("b", "s", "s").sees("last, s3 minus s1", "max |Δ| 0.03").press("y")
	d.press("E").sees("last-s3-minus-s1.npy").press("enter")
	if at := looks[len(looks)-1]; at.Baseline == nil || at.Baseline.Step != 1 || *at.Step != 3 {
		t.Errorf("the saved value is %+v", at)
	}
	d.press("c").sees("from a re-run of step 3", "min -1.7").misses("minus")

	rows := opened(t, 120, 40, &tuitest.Script{}, "embed").press("enter", "G", "enter")
	rows.sees("f32 1×1×2048").press("c").sees("step 1 minus step 0, common part 1×1×2048,").reads("list")
	rows.press("d").sees("rows 0–22").press("d", "c").sees("columns 0–4 of 5")
}

func TestComparisonSaysWhyItIsImpossible(t *testing.T) {
	t.Parallel()
	d := opened(t, 120, 40, &tuitest.Script{}, "embed").press("enter", "j", "j", "enter", "c")
	d.sees("compare: a constant is the same in every step").press("esc")
	first := drive(t, 120, 40, llama, &tuitest.Script{}, Options{Prompt: "Once"})
	first.settle()
	first.press("4", "/").typed("lm_head").press("enter", "G", "enter", "G", "enter", "c")
	first.sees("compare: no baseline is set; press b on another step")
	path := filepath.Join(t.TempDir(), "base.json")
	if err := trace.WriteFile(path, llama); err != nil {
		t.Fatal(err)
	}
	d = opened(t, 120, 40, &tuitest.Script{}, "lm_head").press("enter", "G", "enter", "B").typed(path).press("enter")
	d.press("c").sees("compare: the baseline is a trace file, which contains no tensor values")
	cache := opened(t, 120, 40, &tuitest.Script{}, "layers.0.attn.cache_k")
	values := cache.app.index.Trace.Graph.Values
	i := slices.IndexFunc(values, func(v trace.Value) bool { return v.Name == "layers.0.attn.k_cache" })
	graph.OpenValue(hosting{cache.app}, values[i].ID, cache.app.snapshot())
	cache.press("g", "c").sees("compare: a KV cache still has the rows of earlier steps")
	// A baseline that the engine cannot run again: the page shows the engine's reason.
	d = opened(t, 120, 40, &tuitest.Script{Before: func(_ context.Context, c session.Command) error {
		if c.Kind == session.Look && c.At.Baseline != nil {
			return errors.New("step 0 cannot run again")
		}
		return nil
	}}, "lm_head").press("enter", "G", "enter", "c")
	d.sees(widget.MarkFail + " step 0 cannot run again").press("d").sees("step 0 cannot run again")
	d.press("d", "c").sees("rows 0–").misses("cannot run again")
}

// E asks for a file and sends one command, which names the value, the step and the dispatch on the screen.
func TestExportOfAValueNamesWhatIsShown(t *testing.T) {
	t.Parallel()
	var sent []session.Command
	script := &tuitest.Script{Before: func(_ context.Context, c session.Command) error {
		if c.Kind == session.Save {
			sent = append(sent, c)
		}
		return nil
	}}
	d := opened(t, 80, 24, script, "lm_head").press("enter", "G", "enter", "E")
	d.sees("value to", "lm_head-s1.npy").press("enter").sees("wrote ", "float32 1×2, 136 B")
	value := d.app.index.Trace.Graph.Values
	path, err := filepath.Abs("lm_head-s1.npy")
	if err != nil || len(sent) != 1 || sent[0].Save.Path != path || *sent[0].At.Step != 1 ||
		sent[0].At.After != nil || value[sent[0].At.Value].Name != "lm_head" {
		t.Fatalf("%+v, %v", sent, err)
	}
	d.press("E", "esc").press("E", "ctrl+u", "enter")
	if len(sent) != 1 {
		t.Errorf("%d files are written", len(sent))
	}
	// The memory of x is written by other operators too. The user chooses the last write.
	shared := *llama
	shared.Graph.Values = append(shared.Graph.Values[:0:0], llama.Graph.Values...)
	slot := 2
	for i := range shared.Graph.Values {
		if v := &shared.Graph.Values[i]; v.Name == "x" || v.Name == "layers.0.attn.q" {
			v.Slot = &slot
		}
	}
	sent = nil
	d = drive(t, 120, 40, &shared, script, Options{Prompt: "Once"})
	d.settle()
	d.press("s", "4", "a", "j", "j", "j", "enter", "]", "E", "ctrl+u").typed("a.csv").press("enter")
	if len(sent) != 1 || value[sent[0].At.Value].Name != "layers.0.attn.q" || sent[0].At.After == nil {
		t.Errorf("%+v", sent)
	}
	// A large value: the size of the file is shown before it is written.
	d = opened(t, 120, 40, script, "embed").press("enter", "j", "j", "enter", "E").sees("value to: embed.weight.npy")
	d.press("ctrl+u").typed("b.csv").sees("value (about 109.1 MB) to").press("esc")
	recorded := drive(t, 80, 24, llama, nil, Options{}).press("4", "a", "j", "j", "j", "enter", "E")
	recorded.sees("export value: a trace does not contain tensor values")
}

func TestPlainModeSavesAValue(t *testing.T) {
	t.Parallel()
	var sent []session.Command
	script := tuitest.Script{Before: func(_ context.Context, c session.Command) error {
		if c.Kind == session.Save {
			sent = append(sent, c)
		}
		return nil
	}}
	dir := t.TempDir()
	lines := fmt.Sprintf("save 3 %[1]s/a b.npy\nsave v3 d7 %[1]s/c.csv\nq\n", dir)
	out, err := plainly(opens(script), "once", lines)
	if err != nil || !strings.Contains(out, "wrote "+dir+"/c.csv: float32 1×2, 136 B") {
		t.Errorf("%v, output:\n%s", err, out)
	}
	if len(sent) != 2 || sent[0].Save.Path != dir+"/a b.npy" || sent[0].At.Value != 3 ||
		sent[0].At.After != nil || sent[1].Save.Path != dir+"/c.csv" || *sent[1].At.After != 7 {
		t.Errorf("%+v", sent)
	}
	for _, typed := range []string{"save", "save 3", "save x a.npy", "save 3 5"} {
		out, err := plainly(opens(tuitest.Script{}), "once", typed+"\nq\n")
		if (err == nil) != (typed == "save 3 5") {
			t.Errorf("%q: %v, output:\n%s", typed, err, out)
		}
	}
}

func TestValueOpensFromItsOperator(t *testing.T) {
	t.Parallel()
	d := opened(t, 80, 24, &tuitest.Script{NaN: 70}, "lm_head").press("enter", "G")
	d.press("enter").sees("Graph › Value", "lm_head", "NaN 1", "rows 0–").reads("list")
	d.press("esc").misses("Graph ›").sees("Operators")
	if !strings.Contains(d.row(), "out f32") {
		t.Errorf("selected is %q", d.row())
	}
	d.press("enter", "q").misses("Graph ›").sees("Operators") // q closes it as well
	d.press("enter", "4").misses("Graph ›").sees("Operators") // and so does the view's own key
}

// After another step is selected, the page marks its numbers as old until the numbers of that step are read.
func TestNumbersAreStaleUntilStepReruns(t *testing.T) {
	t.Parallel()
	held := make(chan struct{})
	script := &tuitest.Script{Before: func(ctx context.Context, c session.Command) error {
		if c.Kind != session.Look || held == nil {
			return nil
		}
		select {
		case <-held:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
	gate := held
	held = nil
	d := opened(t, 80, 24, script, "lm_head").press("enter", "G", "enter").reads("list")
	held = gate
	d.touch(",")
	d.reads("list")
	close(gate)
	d.settle()
	d.reads("list")
}

func TestNumbersWaitForARunToPause(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	script := gated(session.Run, gate)
	d := opened(t, 80, 24, &script, "lm_head").press("enter", "G", "enter").reads("list")
	d.touch("space")
	gate <- struct{}{}
	for d.app.shown < 2 { // wait for a step
		d.events()
	}
	d.reads("list")
	d.touch("space")
	d.settle()
	d.reads("list")
}

func TestValueGridReadsOnlyVisibleNumbers(t *testing.T) {
	t.Parallel()
	asked := 0
	d := opened(t, 80, 24, &tuitest.Script{Before: func(_ context.Context, c session.Command) error {
		if c.Kind == session.Look && !c.At.Statistics {
			asked = max(asked, c.At.Count*max(1, c.At.Rows))
		}
		return nil
	}}, "embed").press("enter", "j", "j", "enter")
	d.sees("rows 0–", "of 4,096", "columns 0–5 of 2,048").reads("title").press("G").sees("–4,095 of 4,096")
	d.press("l").sees("columns 3–8 of 2,048").press("g").sees("rows 0–", "columns 0–5")
	if asked > 24*8 {
		t.Errorf("%d numbers were read at once", asked)
	}
}

// A trace stores no numbers, and the screen says so.
func TestValueOfTraceHasNoNumbers(t *testing.T) {
	t.Parallel()
	d := drive(t, 80, 24, llama, nil, Options{}).press("4", "a", "j", "j", "j", "enter")
	d.sees("Graph › Value", "intermediate").reads("list", "detail")
}

func TestTheDispatchThatWroteTheMemoryIsChosen(t *testing.T) {
	t.Parallel()
	shared := *llama
	shared.Graph.Values = append(shared.Graph.Values[:0:0], llama.Graph.Values...)
	slot := 2
	for i := range shared.Graph.Values {
		if v := &shared.Graph.Values[i]; v.Name == "x" || v.Name == "layers.0.attn.q" {
			v.Slot = &slot
		}
	}
	d := drive(t, 120, 40, &shared, &tuitest.Script{}, Options{Prompt: "Once"})
	d.settle()
	d.press("s", "4", "a", "j", "j", "j", "enter").sees("Value · x").reads("list")
	d.press("]").sees("layers.0.attn.q", "2 of 2").reads("title")
	d.press("w").reads("overTitle").press("esc", "]")
	d.reads("bottom").press("[").sees("Value · x", "1 of 2")
}

func TestProducersAndConsumersAreWalked(t *testing.T) {
	t.Parallel()
	d := live(t, 120, 40).press("4", "j", "j", "j", "j", "j", "j", "j", "j", "j", "j", "j", "p")
	d.sees("Graph › Neighbourhood", "1×1×512").reads("list", "title")
	if !strings.Contains(d.row(), "attn.k") {
		t.Errorf("selected is %q", d.row())
	}
	d.press("p").sees("layers.0.attn.k · linear_q4gsw").press("esc").reads("title")
	d.press("c", "enter").sees("attn.k_cache").reads("title").press("c", "enter").reads("title")
	d.press("esc", "esc", "esc").misses("Graph ›")
}

// A value that no operator computes has consumers too: c goes from the value to the first of them.
func TestNeighbourhoodGoesFromValueToConsumers(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, llama, nil, Options{}).press("4", "j", "p").sees("Graph › Neighbourhood")
	if !strings.Contains(d.row(), "▌tokens") {
		t.Fatalf("selected is %q", d.row())
	}
	d.press("p").reads("bottom", "title")
	d.press("c").misses("▌tokens").reads("title", "bottom").sees("▌embed")
}

func TestMemoryLeadsToWhoHasASlot(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, llama, nil, Options{}).press("4", "a", "a").sees("Memory").reads("list", "title")
	d.press("/").typed("layers.0.mlp.up").press("enter", "G", "enter").sees("Slots").reads("list")
	if !strings.Contains(d.row(), "slot") {
		t.Errorf("selected is %q", d.row())
	}
}

func TestOperatorsAreMarkedByWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, llama, nil, Options{}).press("4").sees("██████").reads("title")
	d.press("A").reads("title")
	d.press("A").reads("title").press("A").reads("title")
	d.press("F").sees("linear_q4gsw ×").reads("title").press("F").sees("▸ layer 1").reads("title").press("F").reads("title")
	d.press("a").sees("Values").press("u").sees("Operators").reads("title").press("u", "u").reads("title")
	d.press("u", "u").reads("title").press("u").reads("title")
}

// A row that is part of a larger row in another grouping selects the larger row. The next grouping selects
// the original row again, unless the user moved the cursor.
func TestARowIsFoundAgainThroughAllFolds(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"lm_head", "select last"} {
		d := drive(t, 120, 40, llama, nil, Options{}).press("2", "/").typed(name).press("enter", "/", "ctrl+u", "enter")
		before := d.row()
		if !strings.Contains(before, name) {
			t.Fatalf("selected is %q", before)
		}
		for range 4 {
			d.press("F")
		}
		if got := d.row(); got != before {
			t.Errorf("after all groupings %q is selected, want %q", got, before)
		}
		d.press("F", "down")
		elsewhere := d.row()
		for range 4 {
			d.press("F")
		}
		if got := d.row(); got != elsewhere {
			t.Errorf("after all groupings %q is selected, want the user's row %q", got, elsewhere)
		}
	}
}

func TestTheSelectedOperatorSurvivesTheFold(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, llama, nil, Options{}).press("4", "/").typed("lm_head").press("enter", "G")
	kin := func() any {
		p := d.app.table()
		return p.KinOf(p.Table, p.Current())
	}
	before := kin()
	for range 3 {
		d.press("F")
		if kin() != before {
			t.Errorf("selected is %q", d.row())
		}
	}
}

// The real program in a terminal opens a value, reads its numbers, runs a step and closes the value.
func TestValueIsReadWhileTextContinues(t *testing.T) {
	t.Parallel()
	x := start(t, context.Background(), opens(tuitest.Script{NaN: 3}), Options{Prompt: "once"})
	x.sees("step 0 prefill").press("4").sees("Operators")
	x.press("G").sees("▌  ▸ lm_head").press(enter).sees("▾ lm_head").press("G").sees("▌    lm_head ")
	x.press(enter).sees("Graph › Value", "step 0", "NaN 1", "[0, 3]")
	x.press("s").sees("step 1 ").press("q").misses("Graph ›").press("q")
	if err := x.ends(); err != nil {
		t.Fatal(err)
	}
}

func TestPlainModePrintsValueStatistics(t *testing.T) {
	t.Parallel()
	out, err := plainly(opens(tuitest.Script{NaN: 5}), "once", "v 3\nv 3 d0\nq\n")
	for _, want := range []string{
		"value 3, x: f32 1×42×2048, ", "step 0", "dispatch 0", "86,016 elements, NaN 1, infinities 0, zeros 0, min -1.7",
		"first NaN or Inf at element 5", ": 0.14112",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if err != nil {
		t.Error(err)
	}
	for _, typed := range []string{"v", "v x", "v 3 4 5", "v 99999", "v 3 -1"} {
		out, err := plainly(opens(tuitest.Script{}), "once", typed+"\nq\n")
		if err == nil || !strings.Contains(out, "error: ") {
			t.Errorf("%q: %v, output:\n%s", typed, err, out)
		}
	}
}

// The user can cancel the reading of a large value. The page stays open and shows what was read.
func TestReadingAValueIsCancelled(t *testing.T) {
	t.Parallel()
	d := opened(t, 80, 24, &tuitest.Script{Before: func(ctx context.Context, c session.Command) error {
		if c.Kind == session.Look && c.At.Statistics {
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}}, "lm_head").press("enter", "G")
	d.touch("enter")
	for !strings.Contains(d.screen(), "rows 0–") { // the visible numbers are read first
		d.update(<-d.messages)
	}
	d.sees("rows 0–").reads("list")
	d.press("ctrl+c").sees("rows 0–", "cancelled;").reads("list")
}

// A value that cannot be read shows the reason, and does not claim to be loading.
func TestUnreadableValueShowsOnlyTheReason(t *testing.T) {
	t.Parallel()
	d := opened(t, 80, 24, &tuitest.Script{Before: func(_ context.Context, c session.Command) error {
		if c.Kind == session.Look {
			return errors.New("nothing writes it in this step")
		}
		return nil
	}}, "lm_head").press("enter", "G", "enter")
	d.sees(widget.MarkFail + " nothing writes it in this step").reads("list")
}

// A range or number that is cut could be read as a different one. A narrow screen drops whole columns
// instead.
func TestNoRangeOrFigureIsCut(t *testing.T) {
	t.Parallel()
	for _, w := range widths(minWidth, 140, 4) {
		for _, key := range []string{"2", "4"} {
			d := drive(t, w, 24, llama, nil, Options{}).press(key)
			p := d.app.table()
			for _, r := range p.Rows {
				for _, c := range p.Columns {
					col, cell := &p.Table.Columns[c.Col], p.Table.Cell(r, c.Col)
					shown := strings.TrimSpace(p.Cell(r, c))
					heading := p.Table.Rows[r].Group
					name := strings.TrimLeft(shown, "▾▸ ")
					if col.Tree && heading && name != cell.Text && name != cell.Short {
						t.Errorf("%d columns: a heading reads %q, not %q", w, shown, cell.Text)
					}
					if col.Name == "live" && shown != cell.Text && shown != cell.Short {
						t.Errorf("%d columns: a shape reads %q, not %q", w, shown, cell.Text)
					}
					if col.Name == "kernel" && heading && !strings.HasPrefix(cell.Text, shown) {
						t.Errorf("%d columns: a heading says %q, not %q", w, shown, cell.Text)
					}
				}
			}
		}
	}
}

// The rows of a cache after the current position do not belong to the text. The page says which rows are
// live.
func TestCacheShowsItsLiveRows(t *testing.T) {
	t.Parallel()
	d := opened(t, 80, 24, &tuitest.Script{}, "layers.0.attn.cache_k")
	values := d.app.index.Trace.Graph.Values
	at := func(name string) trace.ValueID {
		return trace.ValueID(slices.IndexFunc(values, func(v trace.Value) bool { return v.Name == name }))
	}
	show := func(v trace.ValueID) {
		graph.OpenValue(hosting{d.app}, v, d.app.snapshot())
		d.press("g")
	}
	s, cache := d.app.step(), at("layers.0.attn.k_cache")
	show(cache)
	last := (s.Position+len(s.Tokens))*values[cache].MaxDims[2] - 1
	d.sees(fmt.Sprintf("(rows 0–%s in use", widget.Count(last)))
	d.press("d", "G").sees("[0,0,0] ", fmt.Sprintf("rows %s–", widget.Count(last))).misses("[0,512,0]")
	d.press("g").sees("rows 0–")
	show(at("layers.0.attn.normed"))
	d.reads("title", "bottom")
}

// The height of a histogram is a number. On a narrow screen its label is shortened, but the number is
// complete.
func TestTheHeightOfAHistogramIsNotCut(t *testing.T) {
	t.Parallel()
	for w, want := range map[int]string{75: " · top 5", 80: " · highest 5"} {
		d := opened(t, w, 24, &tuitest.Script{}, "select last").press("enter", "G", "enter").sees(want)
		for _, l := range strings.Split(d.screen(), "\n") {
			if strings.Contains(l, want) && strings.Contains(l, "…") {
				t.Error(l)
			}
		}
	}
}

func TestNoLineEndsWithAMinus(t *testing.T) {
	t.Parallel()
	got := widget.WrapText("numbers from -1403.2 to +695.4 of up-to-date 3-17", 14)
	want := []string{"numbers from", "-1403.2 to", "+695.4 of up-", "to-date 3-17"}
	if !slices.Equal(want, got) {
		t.Errorf("%q", got)
	}
}

func TestFilterFindsTheSameInGraphAndDispatches(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, llama, nil, Options{})
	found := func(view, word string) []trace.OpID {
		d.press(view, "/", "ctrl+u").typed(word).press("enter")
		l := &d.app.table().Listing
		of := map[trace.OpID]bool{}
		for _, r := range l.Rows {
			if slices.ContainsFunc(l.Rows, func(i int) bool { return l.Table.Rows[i].Parent == r }) {
				continue
			}
			switch from := l.Table.From.(type) {
			case *report.DispatchTable:
				for _, id := range from.Operators(r) {
					of[id] = true
				}
			case *outline.GraphTable:
				for _, id := range slices.Concat(from.Nodes[r].Ops...) {
					of[id] = true
				}
			}
		}
		return slices.Sorted(maps.Keys(of))
	}
	for _, word := range []string{"L0", "L3", "op:=q", "#4", "re:^q$", "us:>10", "grid:>90", "wg:64", "sum_us:>100"} {
		in, also := found("2", word), found("4", word)
		if len(in) == 0 || !slices.Equal(in, also) {
			t.Errorf("%s finds the operators %v in Dispatches and %v in Graph", word, in, also)
		}
	}
}
