package tui

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
	"gpuscope/trace/tracetest"
	"gpuscope/tui/command"
	"gpuscope/tui/tuitest"
	"gpuscope/tui/view"
	"gpuscope/tui/view/dispatch"
	"gpuscope/tui/view/step"
	"gpuscope/tui/widget"
)

// squeezed returns the text of the screen with each run of white space replaced by a blank.
func (d *driver) squeezed() string { return strings.Join(strings.Fields(d.screen()), " ") }

// A note that is wider than the screen takes a second line. It hides no error, and the key hints come back
// after it.
func TestANoteIsNotCut(t *testing.T) {
	t.Parallel()
	d := drive(t, 60, 16, llama, nil, Options{}).press("2", "r")
	if d.app.note == "" || widget.Width(d.app.note) < 60 {
		t.Fatalf("the note %q fits on a line", d.app.note)
	}
	if !strings.Contains(d.squeezed(), d.app.note) {
		t.Errorf("no %q in\n%s", d.app.note, d.screen())
	}
	d.app.fail(nil, errors.New("something went wrong"))
	d.sees(d.app.note[:30]).reads("notice")
	d.app.failure = ""
	d.update(fadeMsg{d.app.noteID})
	d.sees("? help").misses("restart:")
}

// A note that is too long for the screen says where to read the rest of it.
func TestANoteThatIsCutSaysSo(t *testing.T) {
	t.Parallel()
	d := drive(t, 60, 16, tracetest.Tiny(), nil, Options{})
	d.app.say(strings.Repeat("word ", 100) + "end")
	d.reads("bottom").misses("end")
	if said := d.said("word end"); len(said) != 1 {
		t.Errorf("the log has %q", said)
	}
}

// The bottleneck of a step is shown in full if there is room.
func TestTheVerdictIsNotCut(t *testing.T) {
	t.Parallel()
	d := drive(t, 60, 24, pictured(), &tuitest.Script{}, Options{Prompt: "Once upon a time"})
	d.press("space", "v", "v", "c", "1")
	verdict := report.Verdict(d.app.view().(*step.Page).Task.Value.Sum)
	if widget.Width(verdict) < 60 {
		t.Fatalf("%q fits on a line", verdict)
	}
	if !strings.Contains(d.squeezed(), verdict) {
		t.Errorf("no %q in\n%s", verdict, d.screen())
	}
}

// A trace without steps says that its graph can be shown.
func TestATraceWithoutStepsLeadsToItsGraph(t *testing.T) {
	t.Parallel()
	bare := *llama
	bare.Steps, bare.Events = []trace.Step{}, nil
	for _, view := range []string{"1", "2", "3"} {
		d := drive(t, 80, 24, &bare, nil, Options{}).press(view)
		d.reads("welcome").press("4").sees("Operators")
	}
}

// oddDetail is the list of dispatches. While odd is set, its details fail.
type oddDetail struct {
	*dispatch.Page
	odd bool
}

func (p *oddDetail) Detail() *view.Detail {
	d := p.Page.Detail()
	if lines := d.Lines; p.odd {
		d.Of += " odd"
		d.Lines = func(ctx context.Context) ([]string, error) {
			lines(ctx)
			return nil, errors.New("detail: the trace is odd")
		}
	}
	return d
}

// If a detail cannot be computed, its pane says so, even after the error was dismissed. It never shows the
// detail of another row.
func TestFailedDetailShowsNoOtherRow(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{80, 24}, {120, 40}} {
		d := drive(t, size[0], size[1], llama, nil, Options{})
		p := &oddDetail{Page: d.dispatches()}
		d.app.views[1] = p
		d.press("2", "g", "j").sees("0 embedding_q4gsw · embed")
		p.odd = true
		d.press("j").reads("notice").press("esc").reads("notice")
		d.reads("detail").misses("0 embedding_q4gsw · embed")
		p.odd = false
		d.press("k").sees("0 embedding_q4gsw · embed").reads("detail")
	}
}

// On the smallest screen the title of a resize shows its counts in full.
func TestTheCountsOfAResizeAreNotCut(t *testing.T) {
	t.Parallel()
	d := drive(t, 60, 16, llama, nil, Options{}).press("3", "z").reads("title")
	if l := d.line("zoomed"); strings.Contains(l, "…") || !strings.Contains(l, " params") {
		t.Errorf("the title is %q", l)
	}
}

// A note disappears with the next key, so that it cannot be read as the answer to that key.
func TestANoteGoesWithTheNextKey(t *testing.T) {
	t.Parallel()
	recorded := func() *driver { return drive(t, 120, 40, llama, nil, Options{}) }
	recorded().press("2", "n").reads("bottom").press("5").reads("bottom")
	recorded().press("2",
		"v").reads("bottom").press("5").reads("tabs").
		reads("bottom")
	recorded().press("5", "a", "-").reads("bottom").press("+").reads("bottom")
	said := "select an operator, or a value that an operator reads or writes"
	recorded().press("4", "g", "p").sees(said).press("j").misses(said)
	d := recorded().press("1", "l").reads("bottom")
	if d.press("l", "l").reads("bottom"); len(d.said("is the last")) != 1 {
		t.Errorf("a held key logged %q", d.said("is the last"))
	}
	d.press("h").reads("bottom")
}

// The hint about a second ctrl+c is shown exactly as long as a second ctrl+c quits.
func TestQuitHintHoldsWhileItWorks(t *testing.T) {
	d := bare(t, Options{})
	synctest.Test(t, func(t *testing.T) {
		begun, messages := time.Now(), make(chan tea.Msg, 10)
		var all sync.WaitGroup
		defer all.Wait()
		d.app.cancel()
		for _, cmd := range d.app.cmds {
			all.Go(func() { messages <- cmd() })
		}
		m := <-messages
		if took := time.Since(begun); took != command.Again {
			t.Errorf("the hint is shown for %v but applies for %v", took, command.Again)
		}
		d.update(m)
		d.reads("bottom")
	})
}

// Every command and task that takes a while reports its result. The result stays on the screen, beside the
// keys, until the next key, and is in the log.
func TestResultsStayUntilTheNextKey(t *testing.T) {
	for _, c := range []struct {
		logged string // a part of the line in the log
		keys   []string
	}{
		{"ceilings: ", []string{"L"}},
		{"measured the cost of", []string{"2", "c"}},
		{"measured the cost of 1 ", []string{"2", "C"}},
		{"first divergence: dispatch ", []string{"2", "A"}},
		{"within their tolerance", []string{"2", "a"}},
		{"repeated 10 times", []string{"R"}},
		{"timed ", []string{"5", "a", "j", "t"}},
		{"16 tokens per step", []string{"K", "ctrl+u", "16", "enter"}},
		{"timing ", []string{"T", "enter"}},
		{"reset", []string{"X"}},
		{" steps, ", []string{"x", "enter"}},
		{" rows", []string{"2", "E", "enter"}},
		{"copied ", []string{"2", "y"}},
		{"breakpoint position 45", []string{"D", "position 45", "enter", "enter", "space"}},
		{"kernel", []string{"2", "F", "F", "F", "e", "edit", "U"}},
	} {
		for _, size := range some(sizes) {
			t.Chdir(t.TempDir()) // no export exists yet
			d := drive(t, size[0], size[1], sourced(), &tuitest.Script{Notes: true},
				Options{Prompt: "once", editor: editor(t, "exit 0")})
			d.press("s")
			for _, k := range c.keys {
				_, named := keyMessages[k]
				switch {
				case k == "edit":
					d.edits("// " + tuitest.Right)
				case len(k) > 1 && !named:
					d.typed(k)
				default:
					d.press(k)
				}
			}
			if n := len(d.app.results); n != 1 {
				t.Errorf("%q: %d results", c.keys, n)
				continue
			}
			start := strings.Fields(d.app.results[0].text)[0]
			d.update(fadeMsg{d.app.noteID})
			d.sees(start, "? help")
			said := d.said(c.logged)
			if c.keys[0] == "D" { // the log also has the breakpoint that was typed
				said = said[1:]
			}
			if len(said) != 1 {
				t.Errorf("%q: the log has %q", c.keys, said)
			}
			if d.press("?"); len(d.app.results) > 0 {
				t.Errorf("%q: after a key, %v are shown", c.keys, d.app.results)
			}
		}
	}
}

// A key that is typed into an input removes no result, nor does a key that was pressed before the user could
// read the result.
func TestResultOutlastsKeysOfOthers(t *testing.T) {
	t.Parallel()
	for _, keys := range [][]string{{"/", "n", "o", "enter"}, {":", "n", "esc"}, {"o", "esc"}} {
		d := live(t, 80, 24).press("2").press(keys[0])
		d.app.report("wrote a file")
		if d.press(keys[1:]...).sees("wrote a file").press("j"); len(d.app.results) > 0 {
			t.Errorf("after %q and another key, %v are shown", keys, d.app.results)
		}
	}
	d := live(t, 80, 24).press("2")
	d.app.report("wrote a file")
	d.app.results[0].since = widget.Now().Add(time.Millisecond) // the clock of the tests stands still
	d.press("j").sees("wrote a file")
	d.app.results[0].since = widget.Now()
	d.press("j").misses("wrote a file")
}

// No result covers another one. An explanation of a key and an error leave them visible, too.
func TestResultsAreShownTogether(t *testing.T) {
	t.Parallel()
	for _, size := range some(sizes) {
		d := live(t, size[0], size[1]).press("2")
		d.app.report("wrote a file")
		d.app.announce(widget.Bad, widget.MarkFail+" first divergence: dispatch 3")
		d.app.report("wrote a file") // not twice
		d.sees("wrote a file", "first divergence", "? help")
		if n := strings.Count(d.screen(), "wrote a file"); n != 1 {
			t.Errorf("the same result is shown %d times", n)
		}
		d.app.fail(nil, errors.New("something went wrong"))
		d.sees("wrote a file", "first divergence", "something went wrong")
		d.app.remark("this key does nothing")
		d.sees("wrote a file", "first divergence", "something went wrong", "this key does nothing")
		d.press("j").misses("wrote a file", "first divergence", "this key does nothing").sees("something went wrong")
	}
}

// The verdict of a verification has a color, and a sign for terminals without colors.
func TestVerifyVerdictHasPaintAndSign(t *testing.T) {
	t.Parallel()
	d := live(t, 120, 40).press("2", "A")
	r := d.app.results[0]
	want := map[widget.Paint]string{
		widget.Good: widget.MarkOK, widget.Warn: widget.MarkWarn, widget.Bad: widget.MarkFail,
	}[r.paint]
	if want == "" || !strings.HasPrefix(r.text, want+" ") {
		t.Errorf("%q has paint %d", r.text, r.paint)
	}
}

// A note disappears when it no longer applies, and when an error replaces it.
func TestANoteGoesWhenItDoesNotHold(t *testing.T) {
	d := bare(t, Options{})
	d.press("2", "s").reads("bottom")
	d.update(openedTrace(llama, nil))
	d.settle()
	d.reads("bottom")
	t.Chdir(t.TempDir())
	d.press("2", "E", "enter").sees("wrote ").press("E").typed("dispatches-s23.csv")
	d.press("enter").reads("notice").misses("wrote ")
}

// The dialog describes every breakpoint condition in full, even on the smallest screen.
func TestTheHelpOfBreakpointsIsNotCut(t *testing.T) {
	t.Parallel()
	for _, size := range some(sizes) {
		d := live(t, size[0], size[1]).press("D")
		for _, k := range session.Breaks {
			said := strings.Join(strings.Fields(strings.ReplaceAll(d.screen(), widget.MarkBar, "")), " ")
			if !strings.Contains(said, widget.Joined(" ", k.Word, k.Takes, k.Doc)) {
				t.Errorf("%v: no %q in\n%s", size, k.Doc, d.screen())
			}
		}
	}
}

// Opening a row at the bottom of the list scrolls its members into view. The row itself stays visible.
func TestOpeningLastRowShowsItsRows(t *testing.T) {
	t.Parallel()
	d := drive(t, 80, 24, llama, nil, Options{}).press("2")
	p := d.dispatches().Pane()
	p.GoTo(p.Top + p.Page - 1)
	for !p.Table.Rows[p.Current()].Children || p.IsOpen(p.Current()) {
		p.GoTo(p.Cursor + 1)
	}
	if d.press("z", "z"); p.Cursor != p.Top+p.Page-1 {
		t.Fatalf("the row is at line %d of %d", p.Cursor-p.Top, p.Page)
	}
	name := d.row()
	d.press("enter")
	in, open := p.Top+p.Page-1-p.Cursor, strings.Replace(name, "▸", "▾", 1)
	if in < min(p.Page-1, 16) || d.row() != open {
		t.Errorf("after opening, %d members are visible and %q is selected:\n%s", in, d.row(),
			d.screen())
	}
	d.press("enter")
	if p.Cursor < p.Top || p.Cursor >= p.Top+p.Page {
		t.Errorf("after closing, the row is not visible")
	}
}

// A text over a view always shows its own keys, even with a note or an error, so that the user sees how to
// close it.
func TestNoteLeavesOverlayKeysVisible(t *testing.T) {
	t.Parallel()
	d := live(t, 80, 24).press("?", "n").reads("bottom")
	d.app.fail(nil, errors.New("the engine crashed"))
	d.press("N").reads("bottom", "notice")
	d.press("esc").reads("notice").misses("Help:")
}

// The keys that an error names also work while a text is open over the view.
func TestErrorKeysWorkOverAnOverlay(t *testing.T) {
	t.Parallel()
	d := live(t, 80, 24).press("?", "x").reads("bottom").press("esc").sees("Help:")
	d.press("r").reads("bottom")
}

func TestAResetSaysOnceWhatItDid(t *testing.T) {
	t.Parallel()
	d := live(t, 80, 24).press("X").reads("notice")
	lines, _ := d.app.log.Snapshot()
	said := 0
	for _, l := range lines {
		said += strings.Count(l.Text, "reset")
	}
	if said != 1 {
		t.Errorf("the log mentions the reset %d times: %v", said, lines)
	}
}

// The help describes the columns of the view with the same texts that programs get, and the marks of costs.
func TestTheHelpExplainsColumnsAndMarks(t *testing.T) {
	t.Parallel()
	d := live(t, 200, 50).press("2", "?")
	said := strings.Join(d.app.over.Lines, "\n")
	for _, c := range d.app.shownTable().Columns {
		if c.Width != table.Unseen && !strings.Contains(said, c.Doc) {
			t.Errorf("the help does not describe %s: %s", c.Title, c.Doc)
		}
	}
	for _, sign := range []string{"  ?  ", "  isolated  ", "  (s63 ×8)  ", "  (2.4×)  "} {
		if !strings.Contains(said, sign) {
			t.Errorf("the help does not describe%s", sign)
		}
	}
	said = strings.Join(live(t, 80, 24).press("1", "?").app.over.Lines, "\n")
	if strings.Contains(said, "\nColumns") {
		t.Error("Step has no table, but its help describes columns")
	}
}
