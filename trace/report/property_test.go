package report_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/why"
	"gpuscope/trace/report"
	"gpuscope/trace/report/storage"
	"gpuscope/trace/table"
	"gpuscope/trace/tracetest"
)

func TestAnyTraceCanBeShown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { show(t, tracetest.Random(t)) })
}

// show computes everything that can be shown of a trace: every table over every selection that it accepts, in
// every output format and grouping, and the texts of every dispatch and value.
func show(t interface{ Fatal(...any) }, tr *trace.Trace) {
	x := analyze.NewIndex(tr)
	selections := []analyze.Selection{{}}
	for i := range tr.Steps {
		selections = append(selections, x.Step(i))
	}
	for _, word := range []string{"all", "prefill", "decode", "execute", "0-1000000000"} {
		if s, err := x.ParseSelection(word); err == nil {
			selections = append(selections, s)
		}
	}
	for _, made := range report.Tables() {
		for _, selection := range selections {
			_, one := selection.One()
			if selection.Steps != nil && !one && made.Takes == report.OneStep {
				continue
			}
			o := analyze.Options{Selection: selection}
			if selection.Steps != nil {
				o.Baseline = &analyze.Baseline{Index: x, Selection: selections[len(selections)-1]}
			}
			for o.Grouping = analyze.GroupLayer; o.Grouping <= analyze.GroupNone; o.Grouping++ {
				tab, err := made.Of(ctx, x, o)
				if selection.Steps == nil && errors.Is(err, report.ErrSelection) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				print(t, tab)
				if !made.Folds {
					break
				}
			}
		}
	}
	for i := range tr.Steps {
		baseline := baseOf(x, len(tr.Steps)-1)
		for d := range tr.Graph.Dispatches {
			why := why.Of(x, i, trace.DispatchID(d))
			report.WhyLines(why, "")
			report.WhyLines(why, "closed")
			why.Around()
			if of := detail(x, i, trace.DispatchID(d), baseline); of != nil {
				report.DetailLines(of)
			}
		}
	}
	for step := -1; step < len(tr.Steps); step++ {
		for o := range tr.Graph.Ops {
			report.OperatorLines(x, step, trace.OpID(o))
			for _, consumers := range []bool{false, true} {
				report.Around(x, step, trace.OpID(o), 2, consumers)
			}
		}
		for v := range tr.Graph.Values {
			report.ValueLines(x, step, trace.ValueID(v))
			if step >= 0 {
				x.Writes(step, trace.ValueID(v))
			}
		}
		memory := analyze.Selection{}
		if step >= 0 {
			memory = x.Step(step)
		}
		for _, r := range storage.Memory(x, memory).Rows {
			storage.HoldingLines(x, step, r.Key)
		}
	}
	for v := range tr.Graph.Values {
		x.Reaches(trace.ValueID(v))
	}
}

// print prints a table in every output format, and checks that JSON output is valid JSON.
func print(t interface{ Fatal(...any) }, tab *table.Table) {
	rows, err := tab.Select(ctx, table.Selection{All: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range table.Formats {
		var b bytes.Buffer
		if err := tab.Print(ctx, &b, format, rows, 0); err != nil {
			t.Fatal(err)
		}
		if format == "json" && !json.Valid(b.Bytes()) {
			t.Fatal("not JSON: " + b.String())
		}
	}
	for _, line := range tab.Title {
		for _, w := range []int{0, 1, 7, 40, 80} {
			if got := line.Fit(w); table.Width(got) > w {
				t.Fatal(got)
			}
		}
	}
}

func FuzzShow(f *testing.F) {
	var object, stream bytes.Buffer
	if err := trace.Write(&object, tracetest.Tiny()); err != nil {
		f.Fatal(err)
	}
	if err := trace.WriteStream(&stream, tracetest.Tiny()); err != nil {
		f.Fatal(err)
	}
	f.Add(object.Bytes())
	f.Add(stream.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		if tr, err := trace.Read(bytes.NewReader(b)); err == nil {
			show(t, tr)
		}
	})
}

func TestSnapshotsCanBeReadDuringARun(t *testing.T) {
	whole := tracetest.Run(1, slices.Repeat([]int{1}, 60)...)
	r := trace.NewRecorder(whole, 60_000)
	done := make(chan error)
	go func() { // the race detector checks the shared memory
		var x *analyze.Index
		for {
			s := r.Snapshot()
			x = x.Next(s)
			if n := len(s.Steps); n > 0 {
				dispatched(x, n-1, analyze.Options{})
				if s.Steps[n-1].Index == len(whole.Steps)-1 {
					done <- s.Check()
					return
				}
			}
		}
	}()
	tracetest.Record(t, r, whole, func() {})
	if err := <-done; err != nil {
		t.Error(err)
	}
}
