package tui

import (
	"context"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/analyzetest"
	"gpuscope/trace/analyze/headline"
	"gpuscope/trace/report/advice"
	"gpuscope/trace/tracetest"
	"gpuscope/tui/tuitest"
)

func TestAScopeIsNamedWhereverItIsShown(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, llama, nil, Options{}).press("2").reads("tabs")
	d.press("v").reads("tabs", "title")
	d.press("v").reads("tabs").press("v").reads("tabs")
	d.press("V", "V").reads("tabs")
	d.press("3").reads("tabs").press("1").reads("tabs")
	drive(t, 80, 24, llama, nil, Options{}).press("2", "v").sees("decode")
}

// If several steps are selected, the detail shows the times of all of them first. Then it says which step the
// rest describes.
func TestDetailNamesItsStepUnderASelection(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, llama, nil, Options{}).press("2", "v")
	d.reads("title").press("j").reads("detail")
	d.press("/").typed("gate").press("enter").reads("detail")
	d.press("esc", "V").reads("tabs").misses(" in s23:")
}

func TestMarkedRangeIsASelection(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, llama, nil, Options{}).press("1", "g", "right", "right", "m").reads("bottom")
	d.press("right", "right", "right", "m").sees("marked steps s2–s5")
	d.sees("showing s2–s5: 4 steps").press("2").reads("title")
	// m marks the shown step, which is the last step of the selection, even if another step was shown before.
	d.press("1", "g", "v", "m").reads("bottom", "tabs").press("v", "v").sees("showing s23")
}

// For the same steps, Step, Dispatches and the report state the same row and the same rates.
func TestOneHeadlineForTheSelectedSteps(t *testing.T) {
	t.Parallel()
	tr := tracetest.Llama(15, 8) // with few layers, the idle time would be first
	if err := analyzetest.Cost(tr, 7); err != nil {
		t.Fatal(err)
	}
	tr.Observer = nil
	for i := 1; i < 7; i++ {
		s := &tr.Steps[i]
		s.Timing = trace.TimingStep
		s.CPU.TotalNS, s.GPU.SpanNS = trace.Measured(4e6+1e6*int64(i)), trace.Measured(3e6)
	}
	for _, c := range []struct {
		name string
		keys []string
		of   func(*analyze.Index) analyze.Selection
		rate float64
	}{
		{"this step", nil, headline.Steps, 1e9 / 7.5e6}, // the median of 5 to 10 ms
		{"all decode steps", []string{"v"}, headline.Steps, 1e9 / 7.5e6},
		{
			"marked steps",
			[]string{"1", "g", "right", "right", "m", "right", "right", "m"},
			func(x *analyze.Index) analyze.Selection { return x.Range(2, 4) }, 1e9 / 7e6,
		},
	} {
		d := drive(t, 120, 40, tr, nil, Options{}).press(c.keys...)
		h, err := headline.Of(context.Background(), d.app.index, c.of(d.app.index))
		if err != nil || h.First == nil || math.Abs(h.Rate-c.rate) > 1e-9 {
			t.Fatalf("%s: headline %+v, error %v, want %g tokens/s", c.name, h, err, c.rate)
		}
		lines := advice.Lines(h)
		for _, view := range []string{"1", "2"} {
			shown := d.press(view).screen()
			if !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(shown, " "+l) }) {
				t.Errorf("%s: view %s has none of %q:\n%s", c.name, view, lines, shown)
			}
		}
	}
}

// If the run changes its routes within the selection, Step names the steps with the routes of the last one.
// Its speed and what to fix first are of these.
func TestStepNamesTheStepsOfItsSums(t *testing.T) {
	t.Parallel()
	tr := tracetest.Llama(15, 24)
	if err := analyzetest.Cost(tr, 23); err != nil {
		t.Fatal(err)
	}
	tr.Observer = nil
	for i := 1; i < 23; i++ {
		s := &tr.Steps[i]
		s.Timing, s.Cold = trace.TimingStep, false
		wall := int64(20e6) // before the change of routes
		if i >= 13 {
			wall = 8e6
		} else {
			tracetest.Reroute(tr, i)
		}
		s.CPU.TotalNS, s.GPU.SpanNS = trace.Measured(wall), trace.Measured(3e6)
	}
	d := drive(t, 180, 40, tr, nil, Options{}).press("1", "v")
	x := d.app.index
	of := x.Routed(x.Phase(trace.Decode))
	if len(of.Steps) != 11 || of.Rerouted != 12 {
		t.Fatalf("selection %+v", of)
	}
	d.sees("showing 11 of 23 decode steps: same routes as s23")
	d.sees("s23, last of 11 of 23 decode steps: same routes as s23 · 10 of 11 decode steps, median 8.00 ms",
		"· 125 tok/s stepped")
	h, err := headline.Of(context.Background(), x, of)
	if err != nil || h.First == nil || math.Abs(h.Rate-125) > 1e-9 {
		t.Fatalf("headline %+v, error %v", h, err)
	}
	shown := d.screen()
	lines := advice.Lines(h)
	if !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(shown, " "+l) }) {
		t.Errorf("none of %q:\n%s", lines, shown)
	}
	d.press("V").sees("showing this step", " 10 of 11 decode steps with the routes of s23, median 8.00 ms")
	// Resize has no such numbers: it names the steps of all of which it lists the changed grids.
	d.press("v", "3").sees("showing all 23 warm decode steps")
}

// Three presses lead from a decode step to its differences from the prefill.
func TestAScopeIsABase(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, llama, nil, Options{}).press("2").sees("Δ s22:")
	d.press("V", "b").reads("bottom").press("v").sees("Δ prefill:").reads("tabs")
	d.press("v").sees("Δ prefill:").reads("tabs")
	d.press("b", "V").sees("Δ decode:").reads("tabs")
	d.press("v", "b", "V").sees("Δ s22:")
}

func TestDefaultBaselineOfSeveralStepsIsPrefill(t *testing.T) {
	t.Parallel()
	drive(t, 120, 40, llama, nil, Options{}).press("2", "v").sees("Δ prefill:")
}

// A decode selection of a single warm step is compared with the prefill too, like a selection of many steps.
func TestOneDecodeStepIsComparedWithPrefill(t *testing.T) {
	t.Parallel()
	recorded := tracetest.Llama(16, 24)
	for i := range recorded.Steps {
		recorded.Steps[i].Cold = i != 2
	}
	playing(t, 120, 40, recorded).press("2", "v").sees("Δ prefill:").reads("tabs")
}

// If a prompt was read in two chunks and the first is cold, the prefill is the second chunk. The screen names
// it as a chunk.
func TestPrefillChunkIsNamed(t *testing.T) {
	t.Parallel()
	recorded := tracetest.Llama(16, 24)
	first, second := recorded.Steps[0], recorded.Steps[0]
	first.Tokens, second.Tokens = first.Tokens[:20], first.Tokens[20:]
	second.Position, second.Cold = 20, false
	recorded.Steps = slices.Concat([]trace.Step{first, second}, recorded.Steps[1:])
	for i := range recorded.Steps {
		recorded.Steps[i].Index = i
	}
	d := drive(t, 160, 40, recorded, nil, Options{}).press("2", "v").sees("Δ prefill s1, chunk 2 of 2:")
	d.press("v").reads("tabs", "title")
	d.press("4").reads("title").press("2")
	d.press("b").reads("bottom")
	d.press("v").sees("Δ prefill s1, chunk 2 of 2:").press("1").reads("title")
	d.press("v", "v", "2", ",").sees("step 0 ").press("b", "G", "1", "G", "2").sees("Δ s0:")
	drive(t, 60, 16, recorded, nil, Options{}).press("2", "v").sees("Δ chunk 2:")
}

func TestABaseMayBeAnotherTrace(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "other.json")
	if err := trace.WriteFile(path, tracetest.Llama(16, 12)); err != nil {
		t.Fatal(err)
	}
	d := drive(t, 120, 40, llama, nil, Options{}).press("2", "B").typed(path).press("enter")
	d.reads("notice", "title")
	d.press("V").reads("title").press("v")
	d.press("B").typed("nothing.json").press("enter").sees("✗ baseline: ").reads("notice")
	d.press("esc").reads("title").press("B", "enter").sees("Δ s22:")
	d.press("B").typed("nothing.json").press("enter", "1").sees("✗ baseline: ")
	d.press("B").typed(path).press("enter").misses("✗ baseline: ") // a baseline that loads clears the error
}

// Differences from another model or device are not changes. The screen says so wherever it names the
// baseline.
func TestForeignBaselineIsNamed(t *testing.T) {
	t.Parallel()
	tr := tracetest.Llama(16, 12)
	tr.Model.Name, tr.Device.Name = "small", "llvmpipe"
	path := filepath.Join(t.TempDir(), "other.json")
	if err := trace.WriteFile(path, tr); err != nil {
		t.Fatal(err)
	}
	const both = "another model and device: small q4_0 on llvmpipe"
	d := drive(t, 200, 50, llama, nil, Options{}).press("2", "B").typed(path).press("enter")
	d.sees("baseline: other.json, 12 steps; "+both).press("v", "0").sees(both)
	for _, view := range []string{"1", "2", "4"} {
		d.press(view).sees(both)
	}
	d.press("5").reads("title")
	for _, size := range [][2]int{{80, 24}, {60, 16}} {
		d := drive(t, size[0], size[1], llama, nil, Options{}).press("2", "B").typed(path).press("enter", "v")
		d.reads("title")
	}
	tr.Device.Name = llama.Device.Name
	if err := trace.WriteFile(path, tr); err != nil {
		t.Fatal(err)
	}
	d.press("B").typed(path).press("enter").reads("notice").press("2").reads("title")
}

// A trace that was imported without a model names none.
func TestHeaderOfAnUnnamedModel(t *testing.T) {
	t.Parallel()
	tr := tracetest.Llama(2, 3)
	tr.Model = trace.Model{}
	drive(t, 120, 40, tr, nil, Options{}).sees("gpuscope  unnamed model · ")
}

// While the model runs, tables cover all warm steps so far. A command for one step shows that step.
func TestARunShowsAllItsWarmSteps(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, llama, &tuitest.Script{}, Options{Prompt: "Once upon a time"})
	d.settle()
	d.press("2").reads("tabs").press("space").reads("tabs", "title")
	d.press("S").reads("tabs")
	d.press("v", "space").reads("tabs")
}

func TestEventsAreJumpedTo(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, llama, nil, Options{}).press("2")
	d.press("]").reads("bottom")
	d.press("1", "g", "[").reads("bottom")
	d.press("3", "[").reads("bottom")
	d.press("2", "]").sees("step 1 ").reads("bottom")
	d.press("]").sees("step 23 decode").reads("bottom")
	if row := d.row(); !strings.Contains(row, "sdpa.split") {
		t.Errorf("the selected row is %q", row)
	}
	d.press("[").sees("s1 pos 42: decode").press("[").sees("s0 pos 0: cold")
}

func TestEventKeysFollowTheCurve(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, llama, nil, Options{}).press("5").reads("detail")
	d.press("]").reads("detail").press("[").reads("bottom")
	for range 100 {
		d.press("]")
	}
	d.reads("bottom")
}

// Every table of times compares with the baseline that the user sets.
func TestEveryViewHasItsDeltaAgainstTheBase(t *testing.T) {
	t.Parallel()
	d := drive(t, 200, 60, llama, nil, Options{}).press("1", "left", "left", "m", "left", "left", "left", "m", "G")
	d.press("v", "v", "v", "b", "v", "v").sees("baseline s18–s21").reads("tabs", "list")
	d.press("2").sees("Δ s18–s21: ")
	d.press("4").sees("Δ against s18–s21", "Δµs")
	d.press("5").sees("Δlast").reads("title")
	one := drive(t, 200, 60, llama, nil, Options{}).press("1", "left", "left", "b", "G", "4")
	one.sees("Δµs", "? ") // one time on each side: not known whether the difference is significant
}

// A baseline that the user chose gives every view one line with the outcome, and the tables a total and the
// columns of both times, with the detail pane open.
func TestBaselineShowsOutcomeAndTotal(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, llama, nil, Options{}).press("1", "left", "left", "m", "left", "left", "left", "m", "G")
	d.misses("Δµs").press("v", "v", "v", "b", "v", "v").sees("decode against s18–s21: ")
	for _, view := range []string{"2", "3", "4", "5"} {
		d.press(view).sees("decode against s18–s21: ", " decode step")
	}
	d.press("2").sees(" total ", "baseline", "Δµs").reads("list")
	d.press("4").sees("total", "baseline", "Δµs")
	d.press("2", "V", "V", "b", "b").misses("Δµs", "against") // set to these steps, then removed
}

// If steps took different routes, tables of times cover only the steps with the routes of the last one. The
// screen says so at every width.
func TestSelectionOfSeveralRoutesNamesOmittedSteps(t *testing.T) {
	t.Parallel()
	tr := tracetest.Run(3, 1, 1, 1, 1, 1)
	for i := range 3 {
		s := &tr.Steps[i]
		s.Dispatches = slices.Delete(slices.Clone(s.Dispatches), 4, 5)
	}
	for i := range tr.Steps {
		tr.Steps[i].Cold = false
		tr.Steps[i].CPU.TotalNS = trace.Measured([]int64{90e6, 90e6, 90e6, 4e6, 6e6}[i])
	}
	d := drive(t, 160, 40, tr, nil, Options{}).press("2", "v")
	d.reads("tabs", "title")
	d.reads("bottom")
	d.sees("timed step 5.00 ms")
	d.press("1").reads("tabs")
	drive(t, 80, 24, tr, nil, Options{}).press("2", "v").sees("2 of 5 decode steps")
}

// The step in the header always belongs to the selection, and a table of one step shows that step.
func TestOneStepTableMatchesTheHeader(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, llama, nil, Options{}).press("2", "v").reads("tabs")
	d.press("3", "P").typed("1").press("enter").sees("step 0 ").reads("title", "tabs")
	d.press("v", "v").reads("tabs", "title")
}

// In each view the header shows the last step of the selection. Going through all selections returns to the
// step that the user was at.
func TestEveryViewIsOfTheScope(t *testing.T) {
	t.Parallel()
	for _, view := range viewKeys()[:5] {
		d := drive(t, 120, 40, llama, nil, Options{}).press(",", ",", "2").sees("step 21 (newest 23)")
		for _, want := range []string{"step 23 decode", "step 0 (newest 23) prefill", "step 21 (newest 23)"} {
			d.press("2", "v", view)
			if d.sees(want); view == "5" {
				d.reads("tabs")
			}
		}
	}
}

// If several steps are selected, a view of one step names its step in the title and at the bottom.
func TestOneStepViewNamesItsStep(t *testing.T) {
	t.Parallel()
	d := drive(t, 160, 40, llama, nil, Options{}).press("1", "v").reads("title")
	d.press("3").reads("title")
	d.app.note = "" // the note would hide the bottom line
	d.sees("s23: 1/")
	d.press("4").reads("title").press("a").sees("Values").reads("title")
	d.press("v", "3").reads("title").sees("step 0 ")
	drive(t, 60, 16, llama, nil, Options{}).press("3", "v").reads("title")
}

// A command for one step shows that step in every view and says that the selection changed.
func TestWhatAsksForAStepLeavesTheScope(t *testing.T) {
	t.Parallel()
	for _, view := range some(viewKeys()[:5]) {
		for keys, want := range map[string]string{
			",": "step 22 (newest 23)", "S": "step 22 (newest 23)", ".": "step 23 decode", "s": "step 23 decode",
			"[": "step 1 (newest 23)", "P 43 enter": "step 2 (newest 23)",
		} {
			d := drive(t, 120, 40, llama, nil, Options{}).press("2", "v", view)
			if view == "5" && keys == "[" {
				continue // [ moves the cursor along the curve
			}
			if d.press(strings.Fields(keys)...).sees(want); view != "5" {
				d.sees("showing this step")
			}
			if !strings.Contains(d.app.note, "selection: this step") {
				t.Errorf("view %s, %s: the note is %q", view, keys, d.app.note)
			}
			if d.press("u"); d.app.scope != warmDecode {
				t.Errorf("view %s, %s: after undo, the selection is %d", view, keys, d.app.scope)
			}
		}
	}
}

// A row of the prefill is explained by the prefill, even if another step was shown before. A row that does
// not run in the selection is not explained by a step in which it runs.
func TestWhyIsOfTheScopesStep(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, llama, nil, Options{}).press("2", "V", "/").typed("id:=4").press("enter")
	d.sees("linear_q4gsw_steel", "32")
	d.press("w").reads("over")
	d.press("esc", "v", "w").reads("over")
	d.press("esc", "esc", "v", "/").typed("id:=13").press("enter").sees("Δ prefill", "sdpa.av")
	d.press("w").reads("over").press("[")
	d.reads("over").press("]").reads("over")

	warm := tracetest.Llama(16, 24)
	warm.Steps[0].Cold = false
	d = drive(t, 120, 40, warm, nil, Options{}).press("1", "g", "m", "right", "right", "m", "2")
	d.press("/").typed("id:=11").press("enter", "w").reads("over")
	d.press("esc", "/").typed("id:=14").press("enter", "w").reads("over")
}

func TestCurvesCoverTheWholeRun(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, llama, nil, Options{}).press("2", "v", "5").reads("tabs")
	d.press("v").reads("bottom").press("2")
	d.reads("tabs")
}

// A run changes the selection, and so does the step at which it pauses.
func TestARunTakesTheScopeWithIt(t *testing.T) {
	t.Parallel()
	d := live(t, 120, 40).press("2", "V").sees("step 0 (newest 3)").reads("tabs")
	d.press("P").typed("50").press("enter").reads("tabs", "header")
	d.press("V").reads("tabs").press("s").reads("tabs", "header")
	d.press("V", "space").reads("tabs").press("u").reads("tabs")
}

// Undo does not revert a selection that a run made, but the user's last change of grouping. If the user
// selects something else, undo returns to the run's selection.
func TestUndoLeavesTheScopeThatARunBrought(t *testing.T) {
	t.Parallel()
	d := live(t, 120, 40).press("2", "space").reads("tabs", "title")
	d.press("F").reads("title").press("u").reads("title", "tabs")
	d.press("v").reads("bottom").press("u").reads("tabs").press("S").reads("tabs")
	if strings.Contains(d.app.note, "selection") {
		t.Errorf("leaving a selection that the user did not make shows the note %q", d.app.note)
	}
}

// A run that pauses at a breakpoint shows only that step, without a note about the selection that the run
// made. A range without an end grows with the run.
func TestRunSelectionEndsAtBreakpoint(t *testing.T) {
	t.Parallel()
	d := live(t, 120, 40).press("2", "D").typed("position 52").press("enter", "enter", "space")
	d.sees("[BREAKPOINT]").reads("tabs")
	d.press("D", "delete", "esc", "space").reads("tabs").press("S").reads("tabs")
	if strings.Contains(d.app.note, "selection") {
		t.Errorf("leaving a selection that the user did not make shows the note %q", d.app.note)
	}
	d = live(t, 120, 40).press("1", "m", "s", "2", "V").sees("showing s3–s4")
	d.press("space").sees("showing s3–s").misses("showing s3–s4").reads("tabs")
}

// The header says that the text continued without a step only if that step is shown.
func TestSelectedStepOutsideTextIsMarked(t *testing.T) {
	t.Parallel()
	d := live(t, 160, 40).press("1", "m", "m", "S", "s").sees("step 4 decode").reads("header")
	d.press("V").sees("showing s3", "step 3 (newest 4)").reads("header")
}

// The number of samples is shown only if a single step is selected.
func TestRepeatsAreOfOneStep(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, llama, nil, Options{}).press("2").reads("tabs")
	for _, keys := range [][]string{{"v"}, {"5"}, {"0"}} {
		if d.press(keys...); strings.Contains(d.line("showing "), "n=") {
			t.Errorf("%v: %s", keys, d.line("showing "))
		}
	}
	d.press("1").reads("tabs")
}

// The line above a view is about the steps that the header names. While their times are being computed it
// shows no number, rather than one of the previous step.
func TestHeaderNeverShowsAFigureOfAnotherStep(t *testing.T) {
	t.Parallel()
	const digits = "0123456789"
	for _, view := range []string{"1", "2", "3", "4"} {
		d := drive(t, 120, 30, llama, nil, Options{})
		d.press(view)
		if got := d.app.about(120); !strings.ContainsAny(got, digits) {
			t.Errorf("view %s shows no number of its step: %q", view, got)
		}
		d.app.shown-- // nothing has been computed for that step
		d.app.version++
		if got := d.app.about(120); strings.ContainsAny(got, digits) {
			t.Errorf("view %s shows numbers of another step: %q", view, got)
		}
	}
}
