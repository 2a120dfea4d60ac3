package tui

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gpuscope/trace"
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

// Beside a table of many steps the detail says which of them it describes, and first what all of them take.
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
	d.press("right", "right", "right", "m").sees("marked the range s2–s5")
	d.press("v", "v", "v").sees("showing s2–s5: 4 steps").press("2").reads("title")
	// What is marked is what is shown, the last step of the scope, whichever was looked at before.
	d.press("1", "g", "v", "m").reads("bottom", "tabs").press("v", "v").sees("showing s23")
}

// Three presses from a decode step to what differs from the prefill.
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

// The first warm decode step alone is compared with what many are.
func TestOneDecodeStepIsComparedWithPrefill(t *testing.T) {
	t.Parallel()
	recorded := tracetest.Llama(16, 24)
	for i := range recorded.Steps {
		recorded.Steps[i].Cold = i != 2
	}
	playing(t, 120, 40, recorded).press("2", "v").sees("Δ prefill:").reads("tabs")
}

// Of a prompt that was read in two chunks, the first of them cold, the prefill is the second, and is called
// that.
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
	d.reads("bottom", "title")
	d.press("V").reads("title").press("v")
	d.press("B").typed("nothing.json").press("enter").sees("✗ baseline: ").reads("notice")
	d.press("esc").reads("title").press("B", "enter").sees("Δ s22:")
	d.press("B").typed("nothing.json").press("enter", "1").sees("✗ baseline: ")
	d.press("B").typed(path).press("enter").misses("✗ baseline: ") // it went with what was wrong
}

// What differs from a base of another model or device is no change: that is said wherever the base is.
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
	d.press("B").typed(path).press("enter", "2").reads("bottom", "title")
}

// While the model runs, tables speak of all warm steps so far; who asks for a step sees that step.
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

// A base that somebody sets is what every table of times compares with.
func TestEveryViewHasItsDeltaAgainstTheBase(t *testing.T) {
	t.Parallel()
	d := drive(t, 200, 60, llama, nil, Options{}).press("1", "left", "left", "m", "left", "left", "left", "m", "G")
	d.press("v", "v", "v", "b", "v", "v").sees("baseline s18–s21").reads("tabs", "list")
	d.press("2").sees("Δ s18–s21: ")
	d.press("4").sees("Δ against s18–s21", "Δµs")
	d.press("5").sees("Δlast").reads("title")
	one := drive(t, 200, 60, llama, nil, Options{}).press("1", "left", "left", "b", "G", "4")
	one.misses("Δµs")
}

// Where steps took other routes, tables of times are of those of the last, and that is said in any width.
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
	d.sees("wall 5.00 ms")
	d.press("1").reads("tabs")
	drive(t, 80, 24, tr, nil, Options{}).press("2", "v").sees("decode n=2 of 5")
}

// Whatever the scope, the step in the header is one of it, and what is of one step is of that step.
func TestOneStepTableMatchesTheHeader(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, llama, nil, Options{}).press("2", "v").reads("tabs")
	d.press("3", "P").typed("1").press("enter").sees("step 0 ").reads("title", "tabs")
	d.press("v", "v").reads("tabs", "title")
}

// In each view the header has the last step of the scope, and going round the choices comes back to the step
// that a person was at.
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

// Of several steps, a view of one says in its title and below which of them that is.
func TestOneStepViewNamesItsStep(t *testing.T) {
	t.Parallel()
	d := drive(t, 160, 40, llama, nil, Options{}).press("1", "v").reads("title")
	d.press("3").reads("title")
	d.app.note = "" // it stands over the foot
	d.sees("s23: 1/")
	d.press("4").reads("title").press("a").sees("Values").reads("title")
	d.press("v", "3").reads("title").sees("step 0 ")
	drive(t, 60, 16, llama, nil, Options{}).press("3", "v").reads("title")
}

// Who asks for a step sees that step, in every view, and is told that the scope is left.
func TestWhatAsksForAStepLeavesTheScope(t *testing.T) {
	t.Parallel()
	for _, view := range some(viewKeys()[:5]) {
		for keys, want := range map[string]string{
			",": "step 22 (newest 23)", "S": "step 22 (newest 23)", ".": "step 23 decode", "s": "step 23 decode",
			"[": "step 1 (newest 23)", "P 43 enter": "step 2 (newest 23)",
		} {
			d := drive(t, 120, 40, llama, nil, Options{}).press("2", "v", view)
			if view == "5" && keys == "[" {
				continue // it goes along the line
			}
			if d.press(strings.Fields(keys)...).sees(want); view != "5" {
				d.sees("showing this step")
			}
			if !strings.Contains(d.app.note, "selection: this step") {
				t.Errorf("view %s, %s: the note is %q", view, keys, d.app.note)
			}
			if d.press("u"); d.app.scope != warmDecode {
				t.Errorf("view %s, %s: undone, the scope is %d", view, keys, d.app.scope)
			}
		}
	}
}

// A row of the prefill is explained by the prefill, whatever step was looked at before. What does not run
// in the scope is not explained by a step in which it does.
func TestWhyIsOfTheScopesStep(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, llama, nil, Options{}).press("2", "V", "/").typed("id:=4").press("enter")
	d.sees("linear_q4gsw_steel", "32")
	d.press("w").reads("over")
	d.press("esc", "v", "w").reads("over")
	d.press("esc", "esc", "v", "G").sees("Δ prefill", "gone")
	d.press("w").reads("over").press("[")
	d.reads("over").press("]").reads("over")

	warm := tracetest.Llama(16, 24)
	warm.Steps[0].Cold = false
	d = drive(t, 120, 40, warm, nil, Options{}).press("1", "g", "m", "right", "right", "m", "V", "2")
	d.press("/").typed("id:=11").press("enter", "w").reads("over")
	d.press("esc", "/").typed("id:=14").press("enter", "w").reads("over")
}

func TestCurvesCoverTheWholeRun(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, llama, nil, Options{}).press("2", "v", "5").reads("tabs")
	d.press("v").reads("bottom").press("2")
	d.reads("tabs")
}

// A run takes the scope with it, and so does what it pauses for.
func TestARunTakesTheScopeWithIt(t *testing.T) {
	t.Parallel()
	d := live(t, 120, 40).press("2", "V").sees("step 0 (newest 3)").reads("tabs")
	d.press("P").typed("50").press("enter").reads("tabs", "header")
	d.press("V").reads("tabs").press("s").reads("tabs", "header")
	d.press("V", "space").reads("tabs").press("u").reads("tabs")
}

// The scope that a run brought is no change of the person's: what is undone is the fold, and what they chose
// in its place gives it back.
func TestUndoLeavesTheScopeThatARunBrought(t *testing.T) {
	t.Parallel()
	d := live(t, 120, 40).press("2", "space").reads("tabs", "title")
	d.press("F").reads("title").press("u").reads("title", "tabs")
	d.press("v").reads("bottom").press("u").reads("tabs").press("S").reads("tabs")
	if strings.Contains(d.app.note, "selection") {
		t.Errorf("a scope that nobody chose is left with %q", d.app.note)
	}
}

// What a run pauses for is shown alone, and nobody is told of a scope that came with the run. A range that is
// open grows with it.
func TestRunSelectionEndsAtBreakpoint(t *testing.T) {
	t.Parallel()
	d := live(t, 120, 40).press("2", "D").typed("position 52").press("enter", "enter", "space")
	d.sees("[BREAKPOINT]").reads("tabs")
	d.press("D", "delete", "esc", "space").reads("tabs").press("S").reads("tabs")
	if strings.Contains(d.app.note, "selection") {
		t.Errorf("a scope that nobody chose is left with %q", d.app.note)
	}
	d = live(t, 120, 40).press("1", "m", "s", "2", "V").sees("showing s3–s4")
	d.press("space").sees("showing s3–s").misses("showing s3–s4").reads("tabs")
}

// The header says of the step that is shown, and not of another, that the text has gone on without it.
func TestSelectedStepOutsideTextIsMarked(t *testing.T) {
	t.Parallel()
	d := live(t, 160, 40).press("1", "m", "m", "S", "s").sees("step 4 decode").reads("header")
	d.press("V").sees("showing s3", "step 3 (newest 4)").reads("header")
}

// How often the dispatches of one step were timed is said of that step alone.
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

// The line over a view is of the steps that the header names: while what they took is being computed there is
// no figure, not that of the step before.
func TestHeaderNeverShowsAFigureOfAnotherStep(t *testing.T) {
	t.Parallel()
	const digits = "0123456789"
	for _, view := range []string{"1", "2", "3", "4"} {
		d := drive(t, 120, 30, llama, nil, Options{})
		d.press(view)
		if got := d.app.about(120); !strings.ContainsAny(got, digits) {
			t.Errorf("view %s says nothing of its step: %q", view, got)
		}
		d.app.shown-- // nothing was computed of that step
		d.app.version++
		if got := d.app.about(120); strings.ContainsAny(got, digits) {
			t.Errorf("view %s has figures of another step: %q", view, got)
		}
	}
}
