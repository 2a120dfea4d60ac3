package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"

	"gpuscope/internal/printable"
	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/tracetest"
	"gpuscope/tui/command"
	"gpuscope/tui/tuitest"
	"gpuscope/tui/view/all"
	"gpuscope/tui/widget"
)

// flaw returns what is wrong with a frame, or "". A frame must fill the screen exactly, the header and the
// tabs must be complete, the last line must not be empty, and the selected row must be visible. A dialog may
// cover everything but the header.
func (d *driver) flaw() string {
	a := d.app
	lines := strings.Split(a.View(), "\n")
	if small := tooSmall(a.w, a.h) != ""; len(lines) > a.h || len(lines) < a.h && !small {
		return fmt.Sprintf("it has %d lines, want %d", len(lines), a.h)
	}
	for _, l := range lines {
		if widget.Width(l) > a.w || printable.Clean(l) != l {
			return fmt.Sprintf("a line has %d cells on a screen of %d: %q", widget.Width(l), a.w, l)
		}
	}
	switch {
	case tooSmall(a.w, a.h) != "":
		return ""
	case !strings.HasSuffix(lines[0], a.stateWord()):
		return fmt.Sprintf("the header is %q without %s", lines[0], a.stateWord())
	case a.dialog == nil && !strings.Contains(lines[1], "["+a.tabLabel(a.current)+"]"):
		return fmt.Sprintf("the tabs are %q without %s", lines[1], all.Views[a.current].Name)
	case lines[a.h-1] == "" && a.dialog == nil:
		return "the last line is empty"
	}
	return d.unselected(lines)
}

// unselected describes the list if the selected row is not visible. It returns "" if the row is visible or if
// there are no rows.
func (d *driver) unselected(lines []string) string {
	a := d.app
	p := a.view().Pane()
	r := a.rects()[regionList]
	if p == nil || r.H == 0 || a.over != nil || a.dialog != nil || a.chord != nil || a.empty() != "" ||
		len(a.noteLines(a.w)) > 1 {
		return ""
	}
	if p.Table == nil || len(p.Rows) == 0 {
		return ""
	}
	marks := []string{a.glyphs.Finish(widget.MarkSelected, 1), a.glyphs.Finish("›", 1)}
	for _, l := range lines[r.Y : r.Y+r.H] {
		if slices.ContainsFunc(marks, func(m string) bool { return strings.HasPrefix(l, m) }) {
			return ""
		}
	}
	return fmt.Sprintf("row %d of %d is selected, and %d to %d are shown", p.Cursor, len(p.Rows), p.Top,
		p.Top+p.Page)
}

// TestEveryKeyInEveryViewAtEverySize presses every key in every view, at every size, on a session and on a
// trace, before the first step and before anything is opened. Every frame must be complete, even after the
// window changes its size.
func TestEveryKeyInEveryViewAtEverySize(t *testing.T) {
	t.Chdir(t.TempDir()) // exports go there
	small := tracetest.Llama(4, 12)
	session := func(w, h int) *driver { return playing(t, w, h, small) }
	recorded := func(w, h int) *driver { return drive(t, w, h, small, nil, Options{}) }
	for _, c := range []struct {
		name  string
		sizes [][2]int
		open  func(w, h int) *driver
	}{
		{"session", screens, session},
		{"trace", screens, recorded},
		{"before a step", screens[:1], func(w, h int) *driver {
			return drive(t, w, h, small, &tuitest.Script{}, Options{})
		}},
		{"nothing opened", screens[:1], func(w, h int) *driver {
			return bare(t, Options{Width: w, Height: h})
		}},
		{"ascii", screens[1:2], func(w, h int) *driver {
			return drive(t, w, h, small, nil, Options{Glyphs: "ascii"})
		}},
	} {
		for i, size := range some(c.sizes) {
			w, h, other := size[0], size[1], screens[(i+1)%len(screens)]
			t.Run(fmt.Sprintf("%s %dx%d", c.name, w, h), func(t *testing.T) {
				for n, view := range viewKeys() {
					d := c.open(w, h).press(view, "j", "j")
					for _, k := range dealt(safeKeys(), n) {
						d.wholeAfter(k, other, "view "+view)
						d.press("esc", "esc", view)
					}
				}
			})
		}
	}
}

// TestEveryKeyOverAView presses every key while a text, a dialog or a prompt is open over a view.
func TestEveryKeyOverAView(t *testing.T) {
	t.Chdir(t.TempDir()) // exports go there
	small := tracetest.Llama(2, 6)
	for i, way := range some([]struct {
		keys, sees string
		recorded   bool
	}{
		{"4 j j j p", "Neighbourhood", false},
		{"4 / norm enter G enter G enter", "Graph › Value", false},
		{"2 j ?", "Help: Dispatches", false},
		{"2 j j w", "Why ", false},
		{"2 j j e", "WGSL ", true},
		{":", ": ▏", false},
		{"D", "Add a breakpoint", false},
		{"P", "Run to", false},
		{"T", "Timing of the next steps", false},
		{"K", "prompt tokens per step", false},
		{"2 o", "sort by", false},
		{"2 /", "filter:", false},
		{"2 E", "table to", false},
		{"i", "prompt:", false},
		{"B", "baseline trace:", false},
		{"2 j tab", "tab returns", false},
		{"2 j tab z", "zoomed", false},
	}) {
		size, other := screens[i%len(screens)], screens[(i+1)%len(screens)]
		t.Run(fmt.Sprintf("%s %dx%d", way.keys, size[0], size[1]), func(t *testing.T) {
			open := playing
			if way.recorded {
				open = func(t testing.TB, w, h int, recorded *trace.Trace) *driver {
					return drive(t, w, h, recorded, nil, Options{})
				}
			}
			d := open(t, size[0], size[1], small).press(strings.Fields(way.keys)...).sees(way.sees)
			d.press("esc", "esc", "esc", "esc", "esc")
			for _, k := range dealt(safeKeys(), i) {
				d.press(strings.Fields(way.keys)...)
				d.wholeAfter(k, other, way.keys)
				d.press("esc", "esc", "esc", "esc", "esc")
			}
		})
	}
}

// wholeAfter presses a key and checks every frame: at once, when all jobs are done, and after the window has
// changed its size and back.
func (d *driver) wholeAfter(key string, other [2]int, where string) {
	d.t.Helper()
	w, h := d.app.w, d.app.h
	whole := func(when string) {
		d.t.Helper()
		if flaw := d.flaw(); flaw != "" {
			d.t.Fatalf("%s, %s after %s, %dx%d: %s:\n%s", where, when, key, d.app.w, d.app.h, flaw,
				d.screen())
		}
	}
	d.touch(key)
	whole("at once")
	if d.app.stateWord() == "[RUNNING]" {
		d.touch("space") // pause the run, which would not end
	}
	d.settle()
	whole("a while")
	d.resize(other[0], other[1])
	whole("a new size")
	d.resize(w, h)
	whole("two new sizes")
}

// screens lists the sizes at which every screen is tested.
var screens = [][2]int{{60, 16}, {80, 24}, {120, 40}, {200, 50}}

// some returns the cases of a sweep to run: all of them, or one of four with -short. Under the race detector
// each case is many times slower, and the remaining cases would find no other race.
func some[T any](all []T) []T { return dealt(all, 0) }

// dealt is like some but starts at case i modulo 4. Four consecutive values of i cover all cases.
func dealt[T any](all []T, i int) []T {
	if !testing.Short() {
		return all
	}
	var few []T
	for i %= 4; i < len(all); i += 4 {
		few = append(few, all[i])
	}
	return few
}

// widths returns the widths of a sweep.
func widths(from, to, step int) []int {
	var all []int
	for w := from; w <= to; w += step {
		all = append(all, w)
	}
	return some(all)
}

// safeKeys returns the keys of all commands, except those that quit or suspend the program.
func safeKeys() []string {
	var keys []string
	for i := range command.Table {
		for _, k := range command.Table[i].Keys {
			if k != "ctrl+z" && k != "q" && k != "ctrl+c" {
				keys = append(keys, k)
			}
		}
	}
	return keys
}

// resize changes the size of the window.
func (d *driver) resize(w, h int) {
	d.update(tea.WindowSizeMsg{Width: w, Height: h})
	d.settle()
}

// While a model runs, the window changes its size at every step. Every frame must be complete.
func TestTheWindowIsResizedWhileAModelRuns(t *testing.T) {
	t.Parallel()
	for _, view := range viewKeys() {
		step := make(chan struct{})
		script := tuitest.Script{Before: func(ctx context.Context, c session.Command) error {
			if c.Kind != session.Run {
				return nil
			}
			select {
			case <-step:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}}
		d := drive(t, 80, 24, llama, &script, Options{Prompt: "once"})
		d.press(view).touch("space")
		for _, size := range append(screens, [][2]int{{20, 5}, {300, 100}, {61, 16}, {110, 17}, {1, 1}}...) {
			step <- struct{}{}
			d.update(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
			d.events()
			if flaw := d.flaw(); flaw != "" || d.app.stateWord() != "[RUNNING]" {
				t.Fatalf("view %s, %v, %s: %s:\n%s", view, size, d.app.stateWord(), flaw, d.screen())
			}
		}
		d.touch("space")
		d.settle()
		d.resize(80, 24)
		if flaw := d.flaw(); flaw != "" {
			t.Errorf("view %s: %s:\n%s", view, flaw, d.screen())
		}
		d.sees("[PAUSED]", "step 9 decode pos 50")
	}
}
