package tui

import (
	"context"
	"slices"
	"strings"
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/tracetest"
	"gpuscope/tui/view/dispatch"
)

// The detail of a group names the outliers among its own dispatches, and no others.
func TestDetailNamesTheOutliersOfItsRowAlone(t *testing.T) {
	t.Parallel()
	tr := standingOut()
	p := drive(t, 120, 40, tr, nil, Options{}).press("2").app.view().(*dispatch.Page)
	table := p.Table()
	for key, want := range map[string]bool{
		"prologue": false, "layer0": true, "layer0/attn": false, "layer0/mlp": true,
	} {
		row := table.Row(key)
		if row < 0 {
			t.Fatalf("no row %s", key)
		}
		for i, r := range p.Rows.Rows {
			if r == row {
				p.Rows.GoTo(i)
			}
		}
		lines, err := p.Detail().Lines(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		said := strings.Join(lines, "\n")
		if strings.Contains(said, "outlier: layers.5.mlp.down") != want {
			t.Errorf("%s: outlier %v, want %v:\n%s", key, !want, want, said)
		}
	}
}

// standingOut returns a run in which one operator of a layer takes longer than the same operator in other
// layers.
func standingOut() *trace.Trace {
	tr := tracetest.Run(8, 1, 1)
	x := analyze.NewIndex(tr)
	for i := range tr.Steps[1].Dispatches {
		d := &tr.Steps[1].Dispatches[i]
		name := x.Name(tr.Plans[d.Plan].Dispatch)
		d.Samples = []int64{9984, 10_016, 9984, 10_016, 10_000, 9984, 10_016, 10_000}
		for k := range d.Samples {
			d.Samples[k] += int64(i%3) * 32
			if strings.Contains(name, "layers.5.mlp.down") {
				d.Samples[k] += 3000
			}
		}
	}
	return tr
}

// The notes below the rows are about the rows that the filter shows.
func TestRowNotesMatchShownRows(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 60, standingOut(), nil, Options{}).press("2", "z").reads("list")
	d.press("/").typed("norm").press("enter").misses("outlier: ").press("esc").reads("list")
	d.press("/").typed("down").press("enter").reads("list")
}

// A note below the rows is shown completely or not at all, because the numbers are at its end.
func TestNotesUnderTheRowsAreWhole(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, w := range widths(minWidth, 199, 7) {
		for _, h := range []int{24, 40, 41, 42} {
			d := drive(t, w, h, standingOut(), nil, Options{}).press("2", "z")
			said := strings.Join(strings.Fields(d.screen()), " ")
			for _, note := range d.app.view().(*dispatch.Page).Table().Notes {
				if begin := note[:min(len(note), 20)]; strings.Contains(said, begin) {
					if seen++; !strings.Contains(said, note) {
						t.Fatalf("%dx%d shows only a part of %q:\n%s", w, h, note, d.screen())
					}
				}
			}
		}
	}
	if seen == 0 {
		t.Error("no screen has a note")
	}
}

// The detail of rows that did not run says so first, because a small screen shows only the first lines.
func TestDetailOfWhatDidNotRunSaysSo(t *testing.T) {
	t.Parallel()
	d := drive(t, 60, 16, llama, nil, Options{}).press("2", "v", "/").typed("id:=12").press("enter").reads("title", "bottom")
	d.reads("detail").press("z", "tab").reads("detail")
}

// A heading over different operators is not described as several dispatches of one operator.
func TestWhyOfHeadingNamesItsFirstDispatch(t *testing.T) {
	t.Parallel()
	drive(t, 120, 40, llama, nil, Options{}).press("2", "g", "w").reads("overTitle")
}

// The detail says how many steps and dispatches have times: some, all or none.
func TestDetailSaysHowManyStepsWereTimed(t *testing.T) {
	t.Parallel()
	untimed := func(steps int) *trace.Trace {
		tr := tracetest.Run(3, 1, 1, 1, 1, 1)
		for i := range tr.Steps[:steps] {
			s := &tr.Steps[i]
			s.Timing, s.GPU, s.Dispatches = "off", nil, slices.Clone(s.Dispatches)
			for k := range s.Dispatches {
				s.Dispatches[k] = trace.StepDispatch{Plan: s.Dispatches[k].Plan}
			}
		}
		return tr
	}
	d := drive(t, 160, 40, untimed(3), nil, Options{}).press("2", "v", "g")
	d.sees("time   Σ").reads("detail")
	d = drive(t, 80, 24, untimed(5), nil, Options{}).press("2", "g").reads("title", "detail")
	d.press("v").sees("prologue: 3 dispatches, 4 steps").reads("detail")
}
