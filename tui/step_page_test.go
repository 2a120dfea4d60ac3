package tui

import (
	"strings"
	"testing"

	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/tracks"
	"gpuscope/trace/tracetest"
	"gpuscope/tui/tuitest"
	"gpuscope/tui/view"
	"gpuscope/tui/view/step"
	"gpuscope/tui/widget"
)

// If there are more steps than columns, several steps share a column. It shows their number, median and
// maximum.
func TestStepsShareColumnsWhereThereAreMany(t *testing.T) {
	t.Parallel()
	steps := make([]trace.Step, 1000)
	for i := range steps {
		steps[i] = trace.Step{Index: i, Phase: trace.Decode, CPU: trace.CPU{TotalNS: trace.Measured(1000)}}
	}
	steps[701].CPU.TotalNS = trace.Measured(4000)
	events := []analyze.Event{
		{Step: 0, Kind: analyze.ColdEvent},
		{Step: 700, Kind: "repeat", Text: "repeated"},
		{Step: 701, Kind: analyze.OutlierEvent, Text: "late"},
	}
	wall := func(s *trace.Step) float64 {
		ns, _ := s.CPU.TotalNS.NS()
		return float64(ns)
	}
	s := step.NewStrip(steps, wall, events, 2000, 80)
	if s.Per != 13 || len(s.Median) != 77 {
		t.Fatalf("%d columns of %d steps", len(s.Median), s.Per)
	}
	c := s.Column(701)
	if s.Median[c] != 1000 || s.Most[c] != 4000 || s.Signs[c] != "!" {
		t.Errorf("the column of step 701 has median %g, longest %g, sign %q", s.Median[c], s.Most[c],
			s.Signs[c])
	}
	g, _ := widget.NewGlyphs("")
	dark, _ := widget.NewTheme("dark", "never", nil, nil)
	rows := s.Chart(dark, g, 4)
	column := func(row string) string { return string([]rune(row)[widget.Axis+1+c]) }
	if column(rows[0]) != "↑" || column(rows[1]) != "░" || column(rows[3]) != "█" {
		t.Errorf("the column of step 701 in\n%s", strings.Join(rows, "\n"))
	}
	legend := strings.Join(s.Legend(), "  ")
	for _, sign := range []string{" 13 steps", "█", "░", "↑", "!", "c"} {
		if !strings.Contains(legend, sign) {
			t.Errorf("legend %q has no %q", legend, sign)
		}
	}
	if got := s.Said(700); got != "R s700 pos 0: repeated" {
		t.Errorf("at a step with an event, in a column with another event: %q", got)
	}
	if got := s.Said(690); got != "! s701 pos 0: late" {
		t.Errorf("at a step without an event, in a column with one: %q", got)
	}
	if got := s.Said(500); got != "next ! s701 pos 0: late" {
		t.Errorf("at a step before the event: %q", got)
	}
	for step := range steps {
		if at := []rune(s.Cursor(step, -1)); at[s.Column(step)] != '▲' || len(at) != 77 {
			t.Fatalf("step %d: cursor %q", step, string(at))
		}
	}
	if got := strings.TrimSpace(s.Marked(130, 400)); got != "├──── s130–s400 ────┤" {
		t.Errorf("mark %q", got)
	}
}

// On a small screen whole clauses are left out, so that no number is cut.
func TestFiguresOfANarrowStepAreWhole(t *testing.T) {
	t.Parallel()
	ms := func(v float64) trace.Time { return trace.Measured(int64(v * 1e6)) }
	f := &step.Facts{Tracks: &tracks.Tracks{}, Sum: &analyze.StepSummary{
		Step: &trace.Step{},
		Untimed: analyze.Untimed{
			Wall: ms(2.03), Before: ms(0.52), GPU: ms(1.28), After: ms(0.23), From: "s125 ×31", N: 31,
			WallOff: ms(0.01), GPUOff: ms(0.01),
		},
	}}
	for w, want := range map[int]string{
		100: "This token took 2.03 ms: CPU 0.52, GPU 1.28, CPU 0.23.", 30: "This token took 2.03 ms.",
	} {
		if got := f.Took().Fit(w); got != want {
			t.Errorf("in %d cells: %q, want %q", w, got, want)
		}
	}
	tr := *llama
	x := drive(t, 60, 16, &tr, nil, Options{}).press("1", "g", "]", "]", "[")
	if lane := x.line("event │"); !strings.HasSuffix(lane, "M s1 pos 42") {
		t.Errorf("the lane of events is %q", lane)
	}
}

func TestAStepThatWasTakenBackStaysVisible(t *testing.T) {
	t.Parallel()
	d := live(t, 120, 40).press("1", "S", "S")
	d.reads("list")
	lane := d.line("event │")
	if !strings.Contains(lane, "│PM←←") {
		t.Errorf("the lane of events is %q", lane)
	}
	d.press("s").sees("5 steps")
}

func TestALayerOpensToItsDispatches(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, llama, nil, Options{}).press("1").reads("bottom")
	d.press("enter").sees("GPU, L", ": 20 dispatches", "gate 1").misses(" CPU │")
	first := d.line(": 20 dispatches")
	d.press("down")
	if d.line(": 20 dispatches") == first || d.app.shown != len(llama.Steps)-1 {
		t.Errorf("down shows %q of step %d", d.line(": 20 dispatches"), d.app.shown)
	}
	d.press("left").sees(": 20 dispatches").press("esc").misses(": 20 dispatches").sees(" CPU │")
	d.press("enter", "enter").misses(": 20 dispatches")
	off := tracetest.Llama(2, 3)
	for i := range off.Steps {
		s := &off.Steps[i]
		s.Timing, s.GPU.BusyNS = "step", trace.Time{}
		for k := range s.Dispatches {
			s.Dispatches[k].StartNS, s.Dispatches[k].GPUNS = trace.Time{}, trace.Time{}
		}
	}
	d = drive(t, 120, 40, off, nil, Options{}).press("1")
	if gpu := d.line("│the step"); !strings.HasPrefix(gpu, " GPU ") {
		t.Errorf("a step whose span was measured has the track %q", gpu)
	}
	d.reads("bottom").press("enter").reads("bottom")
}

func TestTheColdStartIsSplit(t *testing.T) {
	t.Parallel()
	run := *llama
	run.Opening = []trace.Opening{
		{Phase: "load", NS: trace.Measured(20e6)},
		{Phase: "prepack", NS: trace.Measured(900e6)},
		{Phase: "upload", NS: trace.Measured(300e6)},
		{Phase: "compile", NS: trace.Measured(1100e6)},
	}
	drive(t, 120, 40, &run, nil, Options{}).press("1").
		reads("list")
	// It uses more lines if they would be blank otherwise, and so do the counts. If lines are missing, it
	// says so.
	drive(t, 80, 24, &run, nil, Options{}).press("1").
		sees("compile 1100 …").reads("list", "title", "bottom")
	drive(t, 80, 34, &run, nil, Options{}).press("1").sees(" live").reads("list").misses(" …")
}

// A character made of several tokens is shown once and whole. A token inside a character is marked as well.
func TestCharactersOfTheTextAreWhole(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, llama, &tuitest.Script{}, Options{Prompt: "once"})
	d.settle()
	d.app.mirror.Text.Prompt = []session.Token{
		{ID: 1, Text: "Gr"}, {ID: 2}, {ID: 3, Text: "ü"}, {ID: 4, Text: "ße"},
	}
	d.app.news = true
	d.press("1").sees("Grüße").misses("�")
	words := step.WordsAround(view.Snapshot{
		Trace: &trace.Trace{Steps: []trace.Step{{Tokens: []int{1}, Token: new(int)}}}, Live: true,
		Text: session.Text{Prompt: []session.Token{{ID: 1, Text: "a"}}, Given: []session.Token{{ID: 0}}},
	})
	f := &step.Facts{Words: words}
	dark, _ := widget.NewTheme("dark", "never", nil, nil)
	if got := f.Text(dark, 40, 2); len(got) != 1 || got[0] != " a[…]" {
		t.Errorf("the text is %q", got)
	}
}

func TestStripMapsCellsToSteps(t *testing.T) {
	t.Parallel()
	d := drive(t, 80, 24, llama, nil, Options{}).press("1")
	p := d.app.views[0].(*step.Page)
	for step := range llama.Steps {
		if got, ok := p.StepAt(widget.Axis+1+step, 80); !ok || got != step {
			t.Errorf("at the column of step %d is step %d, %v", step, got, ok)
		}
	}
	for _, x := range []int{0, widget.Axis, widget.Axis + 1 + len(llama.Steps), 79} {
		if step, ok := p.StepAt(x, 80); ok {
			t.Errorf("at cell %d is step %d", x, step)
		}
	}
}

func TestAStepSaysHowItsTokenWasDrawn(t *testing.T) {
	t.Parallel()
	s := &trace.Step{Token: new(int), Text: " cat", Top: []trace.Candidate{{ID: 5, Text: " dog", P: 0.5}}}
	f := &step.Facts{Sum: &analyze.StepSummary{Step: s}}
	if got := f.Candidates(60); got != `✓ " cat" · " dog" 50.0%` {
		t.Errorf("a token that is not among the candidates: %s", got)
	}
	if got := f.Drawn(); got != nil {
		t.Errorf("without sampling: %s", got)
	}
	s.Sampling = map[string]any{"top_k": 40.0, "temperature": 0.8}
	if got := strings.Join(f.Drawn(), " · "); got != "sampled with top k 40 · temperature 0.8" {
		t.Error(got)
	}
}
