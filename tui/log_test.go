package tui

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"

	"gpuscope/session"
	"gpuscope/trace/tracetest"
	"gpuscope/tui/tuitest"
	"gpuscope/tui/widget"
)

// said returns the lines of the log that contain text, with their levels.
func (d *driver) said(text string) (list []string) {
	lines, _ := d.app.log.Snapshot()
	for _, l := range lines {
		if strings.Contains(l.Text, text) {
			list = append(list, l.Level+" "+l.Text)
		}
	}
	return list
}

func TestTheLogHasWhatWasCompiled(t *testing.T) {
	t.Parallel()
	recorded := drive(t, 120, 40, tracetest.Tiny(), nil, Options{})
	live := drive(t, 120, 40, tracetest.Tiny(), &tuitest.Script{}, Options{Prompt: "once"}).sees("step 0")
	for _, d := range []*driver{recorded, live} {
		d.press("0").reads("list")
	}
	// A trace has no clock time for a compilation. The time at which the trace was opened must not be shown.
	if line := recorded.line("compiled rms_norm"); !strings.HasPrefix(line, " in the trace ") {
		t.Errorf("%q", line)
	}
}

// A refused command is logged once, and not as done. A key that does nothing is logged, but not as a warning.
func TestARefusalIsOneLineOfTheLog(t *testing.T) {
	t.Parallel()
	script := refusing(session.Next)
	d := drive(t, 120, 40, llama, &script, Options{Prompt: "once"}).press("s").reads("bottom")
	if got := d.said("the next is refused"); len(got) != 1 || got[0] != "warn the next is refused" {
		t.Errorf("refused by the engine: %q", got)
	}
	d = drive(t, 120, 40, llama, nil, Options{}).press("2", "c").reads("bottom")
	if got := d.said("this is a recorded trace"); len(got) != 1 || !strings.HasPrefix(got[0], "key ") {
		t.Errorf("refused by the screen: %q", got)
	}
}

// Lines are wrapped to the screen, so scrolling sideways would only hide their times.
func TestTheLogDoesNotGoSideways(t *testing.T) {
	t.Parallel()
	d := live(t, 60, 16).press("0")
	d.app.log.Add("info", strings.Repeat("long ", 40))
	d.press("l", "right").reads("list")
}

// The title counts lines of the log, not wrapped lines.
func TestTheTitleOfTheLogCountsItsLines(t *testing.T) {
	t.Parallel()
	d := live(t, 80, 24).press("0")
	for i := range 60 {
		d.app.log.Add("info", fmt.Sprintf("line %d: %s", i, strings.Repeat("some words ", 10)))
	}
	d.update(widget.LateMsg{})
	d.settle()
	lines, _ := d.app.log.Snapshot()
	all := fmt.Sprintf("%d lines · %d/%d\n", len(lines), len(lines), len(lines))
	d.press("G").sees(all)
	d.press("/").typed("line 1").press("enter", "G")
	d.sees(fmt.Sprintf("filter line 1: 11 of %d lines · 11/11\n", len(lines)))
}

// The log and a text over a view keep their scroll position when a new window size wraps their lines
// differently. A search that is cancelled leaves the text where it was.
func TestTextKeepsItsPlaceWhenResized(t *testing.T) {
	t.Parallel()
	d := live(t, 80, 24).press("0")
	for i := range 60 {
		d.app.log.Add("info", fmt.Sprintf("line %d: %s", i, strings.Repeat("some words ", 5+i%4)))
	}
	d.update(widget.LateMsg{})
	d.settle()
	size := func(w, h int) *driver {
		d.update(tea.WindowSizeMsg{Width: w, Height: h})
		d.settle()
		return d
	}
	for range 10 {
		before := d.press("k").screen()
		size(81, 24)
		size(120, 50)
		if after := size(80, 24).screen(); after != before {
			t.Fatalf("the log was\n%s\nand is now\n%s", before, after)
		}
	}
	for _, keys := range [][]string{{"2", "w"}, {"2", "esc", "?"}} {
		d.press("2")
		size(60, 20) // columns behind the text keep their places until the width changes
		size(80, 24)
		before := d.press(keys...).press("down", "down", "down").screen()
		d.press("/").typed("esc")
		size(60, 20)
		d.press("esc")
		if after := size(80, 24).screen(); after != before {
			t.Errorf("%v: the text was\n%s\nand is now\n%s", keys, before, after)
		}
	}
}

// Before the first step the start page shows the last lines of the log in full, without the notes about keys
// that do nothing.
func TestTheStartHasTheEndOfTheLog(t *testing.T) {
	t.Parallel()
	d := live(t, 80, 24).press("2", "t", "n", "X")
	d.app.log.Add("info", "device memory: "+strings.Repeat("so many GB ", 15)+"at most")
	d.app.results = nil // those of X take room
	d.reads("welcome").
		reads("list", "bottom")
	d.app.fail(nil, errors.New("the engine crashed: "+strings.Repeat("it had reasons ", 20)+"and an end"))
	d.update(widget.LateMsg{})
	d.reads("welcome", "notice")
	d.press("esc", "0").reads("list").misses("! warn")
}
