package tui

import (
	"fmt"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/timeline"
	page "gpuscope/tui/view/timeline"
	"gpuscope/tui/widget"
)

// timelineOf returns the view on the screen, and its item at the cursor.
func timelineOf(t testing.TB, d *driver) (*page.Page, timeline.Item) {
	t.Helper()
	p, ok := d.app.view().(*page.Page)
	if !ok {
		t.Fatalf("the view is a %T:\n%s", d.app.view(), d.screen())
	}
	it, _ := p.Cursor()
	return p, it
}

// column returns the column of the cursor on the screen.
func column(d *driver) int {
	before, _, _ := strings.Cut(d.line("▲"), "▲")
	return ansi.StringWidth(before)
}

// + and - keep the cursor in its column and on its item, from the whole run to one dispatch.
func TestTimelineZoomsAtTheCursor(t *testing.T) {
	t.Parallel()
	d := recorded(t, 120, 40).press("6", "down", "down", "left", "left", "left")
	_, was := timelineOf(t, d)
	begin := column(d)
	for n := range 20 {
		d.press("+")
		if strings.Contains(d.screen(), "largest scale") {
			if n < 5 {
				t.Errorf("only %d zooms", n)
			}
			break
		}
		if _, it := timelineOf(t, d); it != was {
			t.Fatalf("after %d zooms the cursor is on %+v, not %+v", n+1, it, was)
		}
		if c := column(d); c < begin-1 || c > begin+1 {
			t.Fatalf("after %d zooms the cursor is in column %d, not %d:\n%s", n+1, c, begin, d.screen())
		}
	}
	for range 20 {
		d.press("-")
	}
	if _, it := timelineOf(t, d); it != was {
		t.Errorf("after zooming out the cursor is on %+v, not %+v", it, was)
	}
	d.sees("the whole run: 25 steps")
}

// With enter, ten presses lead from the whole run to a dispatch in Dispatches.
func TestTimelineLeadsToTheDispatch(t *testing.T) {
	t.Parallel()
	d := recorded(t, 120, 40).press("6", "left", "left", "enter", "down", "enter", "down", "left")
	_, it := timelineOf(t, d)
	if it.Track != timeline.GPUDispatches || it.Unmeasured {
		t.Fatalf("the cursor is on %+v:\n%s", it, d.screen())
	}
	tr := d.app.index.Trace
	want := tr.Plans[tr.Steps[it.Step].Dispatches[it.At].Plan].Dispatch
	d.press("enter").sees("[2 Dispatches]")
	if got, _ := d.app.table().Chosen().(trace.DispatchID); got != want || d.app.at() != it.Step {
		t.Errorf("Dispatches shows dispatch %d of step %d, want %d of %d", got, d.app.at(), want, it.Step)
	}
	// The way back keeps the cursor. Another row of Dispatches moves it.
	d.press("6")
	if _, back := timelineOf(t, d); back != it {
		t.Errorf("the cursor is on %+v, want %+v", back, it)
	}
	d.press("2", "F", "F", "F", "G", "6")
	last, _ := d.app.views[dispatches].Pane().Chosen().(trace.DispatchID)
	_, moved := timelineOf(t, d)
	if got := tr.Plans[tr.Steps[moved.Step].Dispatches[moved.At].Plan].Dispatch; got != last || got == want {
		t.Errorf("the cursor is on dispatch %d, want %d", got, last)
	}
}

// A marked range is the selection at once.
func TestTimelineMarksSelectSteps(t *testing.T) {
	t.Parallel()
	d := recorded(t, 120, 40).press("6", "left", "m", "left", "left", "left", "m")
	d.sees("showing s", "marked")
	if s := d.app.speaks(); s.of != markedSteps || len(s.scope.Steps) < 3 {
		t.Errorf("the selection is %d with %d steps", s.of, len(s.scope.Steps))
	}
}

// Right goes through a track without leaving out a visible item, and ends at its end. Left goes back.
func TestTimelineGoesThroughATrack(t *testing.T) {
	t.Parallel()
	for row := range 5 {
		d := recorded(t, 120, 40).press("6", "up", "up", "g")
		for range row {
			d.press("down")
		}
		if row < 3 {
			d.press("enter", "g")
		}
		_, was := timelineOf(t, d)
		n := 0
		for ; n < 400; n++ {
			d.press("right")
			_, it := timelineOf(t, d)
			if it == was {
				break
			}
			if it.From < was.From || it.Track != was.Track {
				t.Fatalf("row %d: right leads from %+v to %+v", row, was, it)
			}
			was = it
		}
		d.sees("end of the track")
		_, end := timelineOf(t, d)
		if d.press("G"); n < 20 {
			t.Errorf("row %d: %d items", row, n)
		}
		if _, last := timelineOf(t, d); last.Step != end.Step {
			t.Errorf("row %d: right ends at %+v, the last item is %+v", row, end, last)
		}
		for range 400 {
			d.press("left")
		}
		if _, it := timelineOf(t, d); it.Step != 0 {
			t.Errorf("row %d: left ends at %+v", row, it)
		}
	}
}

// n and N visit each dispatch that a search finds, and only those.
func TestTimelineSearchVisitsEachHit(t *testing.T) {
	t.Parallel()
	d := recorded(t, 120, 40).press("6", "down", "down", "g", "/").typed("layers.3.attn.o").press("enter")
	tr := d.app.index.Trace
	want := 0
	for i := range tr.Steps {
		for k := range tr.Steps[i].Dispatches {
			id := tr.Plans[tr.Steps[i].Dispatches[k].Plan].Dispatch
			if strings.Contains(d.app.index.Name(id), "layers.3.attn.o") {
				want++
			}
		}
	}
	d.sees(fmt.Sprintf("%q: %s", "layers.3.attn.o", widget.Plural(want, "dispatch")), "found")
	seen := map[[2]int]bool{}
	for range want + 5 {
		_, it := timelineOf(t, d)
		id := tr.Plans[tr.Steps[it.Step].Dispatches[it.At].Plan].Dispatch
		if name := d.app.index.Name(id); !strings.Contains(name, "layers.3.attn.o") {
			t.Fatalf("the cursor is on %s", name)
		}
		seen[[2]int{it.Step, it.At}] = true
		d.press("n")
	}
	if d.sees("no further hit"); len(seen) != want {
		t.Errorf("%d hits were visited, want %d", len(seen), want)
	}
	d.press("N").misses("no further hit").press("esc").misses("found")
	d.press("n").sees("nothing is searched for")
}

// At timing level step, dispatches are shown as not timed.
func TestTimelineShowsUntimedDispatches(t *testing.T) {
	t.Parallel()
	tr, err := trace.ReadFile(recording)
	if err != nil {
		t.Fatal(err)
	}
	for i := range tr.Steps {
		s := &tr.Steps[i]
		s.Timing = trace.TimingStep
		for k := range s.Dispatches {
			s.Dispatches[k].StartNS, s.Dispatches[k].GPUNS = trace.Time{}, trace.Time{}
		}
	}
	d := drive(t, 120, 40, tr, nil, Options{}).press("6", "enter", "down", "down")
	if _, it := timelineOf(t, d); !it.Unmeasured {
		t.Errorf("the cursor is on %+v", it)
	}
	d.sees("not timed one by one").press("/").typed("attn").press("enter", "n").sees("have no place on the axis")
	d.press("w").sees("why: go to a dispatch")
}

// Whatever part is drawn, the shares of the cells are those of the times.
func TestTimelineDrawsShares(t *testing.T) {
	t.Parallel()
	tr, err := trace.ReadFile(recording)
	if err != nil {
		t.Fatal(err)
	}
	o, err := timeline.NewOverview(t.Context(), analyze.NewIndex(tr))
	if err != nil {
		t.Fatal(err)
	}
	signs := " ▁▂▃▄▅▆▇█"
	rapid.Check(t, func(r *rapid.T) {
		cells := rapid.IntRange(10, 200).Draw(r, "cells")
		from := rapid.Int64Range(0, o.End-100_000).Draw(r, "from")
		w := o.Window(from, rapid.Int64Range(from+100_000, o.End).Draw(r, "to"), cells)
		high := rapid.IntRange(1, 5).Draw(r, "lines")
		row := &w.Rows[timeline.GPUDispatches]
		for c := range row.Cells {
			drawn := 0
			for _, sign := range page.Cell(w, row, c, high) {
				drawn += len([]rune(signs[:strings.Index(signs, string(sign))]))
			}
			share := float64(row.Cells[c].BusyNS) / float64(w.Bound(c+1)-w.Bound(c)) * float64(8*high)
			off := float64(drawn) - share // a small share is drawn as one eighth
			if share > 0.5 && max(off, -off) > 0.51 || share == 0 && drawn > 0 {
				r.Fatalf("cell %d is drawn with %d eighths, want %.2f", c, drawn, share)
			}
		}
	})
}
