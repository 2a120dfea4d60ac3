package tui

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/tui/command"
	"gpuscope/tui/tuitest"
)

// asks returns an app on a session, and the commands that the session receives. Consecutive runs are listed
// once.
func asks(t *testing.T, o Options) (*driver, *[]session.Command) {
	t.Helper()
	var list []session.Command
	d := drive(t, 80, 24, llama, &tuitest.Script{
		Before: func(_ context.Context, c session.Command) error {
			if n := len(list); c.Kind != session.Run || n == 0 || list[n-1].Kind != session.Run {
				list = append(list, c)
			}
			return nil
		},
	}, o)
	d.settle()
	return d, &list
}

func (d *driver) wantStep(want int) {
	d.t.Helper()
	if got := d.app.mirror.State.Step; got != want {
		d.t.Errorf("at step %d, want %d:\n%s", got, want, d.screen())
	}
}

func TestARunPausesAtBreakpointsThatWereTyped(t *testing.T) {
	t.Parallel()
	d, list := asks(t, Options{Prompt: "once"})
	d.press("D").sees("kernel PATTERN").reads("bottom")
	d.typed("position").press("enter").reads("bottom").typed(" 46").press("enter")
	d.typed("op zzz").press("enter").reads("bottom")
	d.press("ctrl+u").sees("▌ position 46").typed("op attn.q").press("enter").reads("bottom").press("down", "delete")
	d.reads("bottom").press("enter").misses("Add a breakpoint")
	d.press("space").sees("[BREAKPOINT]").reads("notice").wantStep(4)
	if c := (*list)[len(*list)-1]; !slices.Equal(c.Breaks, []session.Break{{On: "position", Of: "46"}}) {
		t.Errorf("the session was given %+v", c)
	}
	d.press("s").sees("[PAUSED]").wantStep(5)
	d.press("space").misses("[BREAKPOINT]").wantStep(23) // the position is already passed
}

func TestRunStopsAtPositionOrDispatch(t *testing.T) {
	t.Parallel()
	d, list := asks(t, Options{Prompt: "once"})
	d.press("P").typed("45").press("enter").sees("[PAUSED]").wantStep(3)
	d.press("s").press("P").typed("position 47").press("enter").sees("[PAUSED]").wantStep(5)
	if c := (*list)[len(*list)-1]; c.Until != 47 || c.Breaks != nil { // not a breakpoint
		t.Errorf("the session was given %+v", c)
	}
	d.press("P").typed("d 37").press("enter").sees("[AFTER DISPATCH 37]").wantStep(5)
	d.press("s").sees("[PAUSED]").wantStep(5) // the paused step is finished
	d.press("s").wantStep(6)
	n := len(*list)
	d.press("P").typed("there").press("enter").sees("✗", `breakpoint "there"`).press("esc").misses("✗")
	d.press("P").typed("kernel zzz").press("enter").sees("✗").reads("bottom").press("esc").misses("✗")
	if len(*list) != n {
		t.Errorf("commands %+v", (*list)[n:])
	}
}

func TestATraceGoesToAPosition(t *testing.T) {
	t.Parallel()
	d := drive(t, 80, 24, llama, nil, Options{}).press("P").typed("50").press("enter")
	if s := d.app.step(); s.Position != 50 || s.Phase != trace.Decode {
		t.Errorf("it shows the %s step at position %d", s.Phase, s.Position)
	}
	first, last := llama.Steps[0], llama.Steps[len(llama.Steps)-1]
	for _, c := range []struct{ position, step int }{
		{0, first.Index},
		{len(first.Tokens) - 1, first.Index},
		{len(first.Tokens), first.Index + 1},
		{last.Position, last.Index},
		{last.Position + 1, last.Index}, // the end of the text
	} {
		d.press("P").typed(strconv.Itoa(c.position)).press("enter").wantShown(c.step)
	}
	d.press("P").typed("5000").press("enter").reads("bottom")
	d.press("ctrl+u").typed("there").press("enter").reads("bottom").press("esc").misses("✗")
}

// At the ends of a recorded run the keys say that there are no more steps. A held key says so once.
func TestEndsOfARecordedRunAreReported(t *testing.T) {
	t.Parallel()
	d := drive(t, 80, 24, llama, nil, Options{}).press("s").reads("bottom")
	before, _ := d.app.log.Snapshot()
	d.press("s", "s", ".")
	if after, _ := d.app.log.Snapshot(); len(after) != len(before) {
		t.Errorf("a held key is logged again: %q", after)
	}
	d.press("1", "g").reads("bottom").press("S").reads("bottom")
}

// The samples belong to the shown step. While they are taken the header names that step.
func TestRepeatIsOfTheStepThatIsShown(t *testing.T) {
	t.Parallel()
	var d *driver
	said := ""
	d = drive(t, 80, 24, llama, &tuitest.Script{Before: func(_ context.Context, c session.Command) error {
		if c.Kind == session.Repeat {
			said = d.app.stateWord()
		}
		return nil
	}}, Options{Prompt: "once"})
	d.settle()
	d.press("s", "s", "s", ",", ",").sees("step 1 (newest 3)").press("R").sees("step 1 (newest 3)")
	if said != "[REPEATING s1]" {
		t.Errorf("while it repeats the header says %q", said)
	}
	for i, want := range []int{0, command.Repeats, 0, 0} {
		if got := len(d.app.mirror.Trace.Steps[i].Dispatches[0].Samples); got != want {
			t.Errorf("step %d has %d samples, want %d", i, got, want)
		}
	}
	d.press("S").press("f", ",", ".", ".").press("R") // a step that is no longer in the text
	d.reads("bottom").misses("✗")
}

func TestHeldKeyLeavesANoteAtTheEnd(t *testing.T) {
	t.Parallel()
	d, _ := asks(t, Options{Prompt: "once"})
	for range 3 * len(llama.Steps) {
		d.touch("s") // faster than the model
		if d.app.job == nil {
			d.events()
		}
		if d.app.queued != nil && d.app.job == nil {
			t.Fatal("a command is queued although no command is running")
		}
	}
	d.settle()
	d.press("space").press("s", "s")
	if d.app.failure != "" {
		t.Errorf("the screen has the error %q", d.app.failure)
	}
	d.sees("[ENDED]").reads("bottom")
}

func TestEditReplacesTextFromShownStep(t *testing.T) {
	t.Parallel()
	d, list := asks(t, Options{Prompt: "once"})
	d.press("s", "s", "s", ",", ",")
	var behind strings.Builder // the text of the shown step and of later steps
	for _, tok := range d.app.mirror.Text.Given[1:] {
		behind.WriteString(tok.Text)
	}
	d.press("I").sees("the text from token 43 on: " + strings.TrimRight(behind.String(), " \n"))
	d.press("ctrl+u").typed(" dog").press("enter")
	c := (*list)[len(*list)-1]
	if c.Kind != session.Edit || c.N != 43 || c.Text != " dog" {
		t.Errorf("the session was given %+v", c)
	}
	d.sees("step 4")
}

func TestChunkAndTimingAreChosen(t *testing.T) {
	t.Parallel()
	d, list := asks(t, Options{})
	d.press("K").reads("welcome").press("ctrl+u").typed("16").press("enter")
	d.press("T").sees("✓ dispatch").reads("bottom").press("up", "enter")
	want := []session.Command{{Kind: session.Chunk, N: 16}, {Kind: session.Timing, Level: "block"}}
	for i, c := range *list {
		if c.Kind != want[i].Kind || c.N != want[i].N || c.Level != want[i].Level {
			t.Errorf("the session was given %+v, want %+v", c, want[i])
		}
	}
	d.press("K").press("ctrl+u").typed("many").press("enter").reads("bottom")
	if len(*list) != 2 {
		t.Errorf("the session was given %+v", *list)
	}
}

func TestPlainModeGoesThroughTheText(t *testing.T) {
	t.Parallel()
	var list []session.Command
	script := tuitest.Script{Before: func(_ context.Context, c session.Command) error {
		if n := len(list); c.Kind != session.Run || n == 0 || list[n-1].Kind != session.Run {
			list = append(list, c)
		}
		return nil
	}}
	out, err := plainly(opens(script), "once", strings.Join([]string{
		"b", "b position 45", "b time 1", "b op zzz", "r", "B 1", "B 1", "r 47", "r d 3", "s", "R 1", "k 16", "T step",
		"e 3 a dog", "r there", "q",
	}, "\n"))
	requireFailures(t, err, 4)
	requireSaid(t, out)
	kinds := []session.CommandKind{
		session.Prompt, session.Run, session.Run, session.Upto, session.Next, session.Repeat, session.Chunk,
		session.Timing, session.Edit,
	}
	got := make([]session.CommandKind, len(list))
	for i, c := range list {
		got[i] = c.Kind
	}
	if !slices.Equal(slices.Compact(got), slices.Compact(kinds)) {
		t.Errorf("commands %v, want %v", got, kinds)
	}
}

// If the text continued without the shown step, the header says so and names the step where the text ends.
func TestHeaderMarksStepsOutsideTheText(t *testing.T) {
	t.Parallel()
	for _, size := range some(sizes) {
		d := live(t, size[0], size[1]).press("s", "s", "S", "S", ".", ".")
		d.sees(" 5 ", "stepped back", "text ends at s3")
		d.press("f", "s").sees("step 6").press(",", ",").sees("in the text", "newest")
		d.press("f", "X").sees("the text is empty").press(",")
	}
}
