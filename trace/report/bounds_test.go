package report_test

import (
	"bytes"
	"math"
	"regexp"
	"slices"
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/tracks"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
	"gpuscope/trace/tracetest"
)

// A file may hold the largest possible numbers. Sums of them stay at the maximum and do not overflow.
func TestSumsOfTimesDoNotOverflow(t *testing.T) {
	tr := tracetest.Llama(2, 6)
	most := trace.Measured(math.MaxInt64)
	for i := range tr.Steps {
		s := &tr.Steps[i]
		for _, time := range []*trace.Time{
			&s.CPU.ResizeNS, &s.CPU.UploadNS, &s.CPU.EncodeNS, &s.CPU.SubmitNS, &s.CPU.WaitNS,
			&s.CPU.SampleNS, &s.CPU.TotalNS, &s.GPU.BusyNS, &s.GPU.SpanNS,
		} {
			*time = most
		}
		for j := range s.Dispatches {
			s.Dispatches[j].GPUNS = most
			if i%2 == 1 {
				s.Dispatches[j].Samples = []int64{math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64}
			}
		}
		for p := range s.Resize.Passes {
			for h := range s.Resize.Passes[p].Hooks {
				s.Resize.Passes[p].Hooks[h].NS = most
			}
		}
	}
	blocks := &tr.Steps[5]
	blocks.Timing = trace.TimingBlock
	for j := range blocks.Dispatches {
		blocks.Dispatches[j] = trace.StepDispatch{Plan: blocks.Dispatches[j].Plan}
	}
	blocks.Blocks = []trace.Block{
		{Name: "layers.0.attn", Dispatches: 1, GPUNS: most},
		{Name: "layers.0.mlp", Dispatches: len(blocks.Dispatches) - 1, GPUNS: most},
	}
	tr.Trials = []trace.Trial{{Tokens: 1, NS: math.MaxInt64, Q1NS: math.MaxInt64, Q3NS: math.MaxInt64, N: 1}}
	if err := tr.Check(); err != nil {
		t.Fatal(err)
	}
	x := analyze.NewIndex(tr)
	negative := regexp.MustCompile(`-\d{6,}.*`)
	for _, made := range report.Tables() {
		printed := 0
		for _, selection := range []analyze.Selection{
			{},
			x.Step(0), x.Step(1), x.Step(5),
			x.Phase(trace.Decode),
		} {
			tab, err := made.Of(ctx, x, analyze.Options{Selection: selection})
			if err != nil {
				continue // this table needs another selection
			}
			rows, err := tab.Select(ctx, table.Selection{All: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, format := range []string{"text", "csv"} {
				var b bytes.Buffer
				if err := tab.Print(ctx, &b, format, rows, 0); err != nil {
					t.Fatal(err)
				}
				printed += len(rows)
				if found := negative.Find(b.Bytes()); found != nil {
					t.Errorf("%s of %s as %s: %.80s", made.Name, selection.Name, format, found)
				}
			}
		}
		empty := []string{"experts", "forecast", "gaps", "state"} // the trace has nothing for these
		if printed == 0 && !slices.Contains(empty, made.Name) {
			t.Errorf("%s: no row was printed", made.Name)
		}
	}
	for i := range tr.Steps {
		tracks := tracks.Of(x, i)
		for _, span := range append(tracks.CPU, tracks.GPU...) {
			if span.From < 0 || span.To < span.From {
				t.Errorf("s%d: %s from %d to %d", i, span.Name, span.From, span.To)
			}
		}
	}
}
