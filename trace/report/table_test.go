package report_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/charmbracelet/x/exp/golden"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/rates"
	"gpuscope/trace/analyze/why"
	"gpuscope/trace/report"
	"gpuscope/trace/report/phases"
	"gpuscope/trace/table"
	"gpuscope/trace/tracetest"
)

var ctx = context.Background()

// dispatched returns the dispatch table of a step.
func dispatched(x *analyze.Index, step int, o analyze.Options) *report.DispatchTable {
	o.Selection = x.Step(step)
	d, err := report.Dispatches(ctx, x, o)
	if err != nil {
		panic(err)
	}
	return d
}

func baseOf(x *analyze.Index, step int) *analyze.Baseline {
	return &analyze.Baseline{Index: x, Selection: x.Step(step)}
}

func detail(x *analyze.Index, step int, id trace.DispatchID, baseline *analyze.Baseline) *analyze.Detail {
	d, err := x.Detail(ctx, step, id, baseline)
	if err != nil {
		panic(err)
	}
	return d
}

func resized(x *analyze.Index, step int) *table.Table {
	t, err := report.Resized(ctx, x, step)
	if err != nil {
		panic(err)
	}
	return t.Table
}

func profile(tr *trace.Trace) *rates.Profile {
	p, err := rates.Of(ctx, analyze.NewIndex(tr), analyze.Selection{})
	if err != nil {
		panic(err)
	}
	return p
}

// printed formats a table as text, with the rows that are open at first.
func printed(t *testing.T, tab *table.Table, s table.Selection, width int) []byte {
	t.Helper()
	rows, err := tab.Select(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := tab.Print(ctx, &b, "text", rows, width); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// decode returns the index of a run, its last decode step, which has repeats, and the previous step as
// baseline.
func decode(t *testing.T) (x *analyze.Index, step int, baseline *analyze.Baseline) {
	t.Helper()
	x = analyze.NewIndex(tracetest.Llama(16, 18))
	return x, 17, baseOf(x, 16)
}

func TestDispatchesOfADecodeStepFoldedByLayer(t *testing.T) {
	x, step, baseline := decode(t)
	golden.RequireEqual(t,
		printed(t, dispatched(x, step, analyze.Options{Baseline: baseline}).Table, table.Selection{}, 140))
}

func TestProfileOfARun(t *testing.T) {
	golden.RequireEqual(t,
		printed(t, phases.Table(profile(tracetest.Run(16, 40, 1, 1, 1, 7, 1))), table.Selection{}, 80))
}

func TestStepsTable(t *testing.T) {
	x := analyze.NewIndex(tracetest.Run(16, 40, 1, 1, 7, 1))
	golden.RequireEqual(t,
		printed(t, report.Steps(x, analyze.Selection{}, nil), table.Selection{}, 200))
}

// lines joins the lines of a text for a golden file.
func lines(list []string) []byte { return []byte(strings.Join(list, "\n") + "\n") }

func TestResizeOfASteadyDecodeStep(t *testing.T) {
	x := analyze.NewIndex(tracetest.Llama(2, 5))
	golden.RequireEqual(t, printed(t, resized(x, 4), table.Selection{}, 140))
}

func TestResizeFromPrefillToDecode(t *testing.T) {
	x := analyze.NewIndex(tracetest.Llama(1, 2))
	golden.RequireEqual(t, printed(t, resized(x, 1), table.Selection{All: true}, 140))
}

func TestWhyAGridGrewWithTheContext(t *testing.T) {
	x := analyze.NewIndex(tracetest.Llama(4, 26))
	var out []string
	for step := 22; step < 25; step++ {
		out = append(out, report.WhyLines(why.Of(x, step, dispatch(t, x, "layers.3.attn.sdpa.split")), "")...)
	}
	golden.RequireEqual(t, lines(out))
}

func TestWhyAGridFollowsTheTokenCount(t *testing.T) {
	x := analyze.NewIndex(tracetest.Llama(16, 5))
	golden.RequireEqual(t, lines(report.WhyLines(why.Of(x, 4, dispatch(t, x, "layers.15.mlp.down")), "")))
}

func TestDetailOfADispatch(t *testing.T) {
	x, step, baseline := decode(t)
	var out []string
	for _, name := range []string{
		"layers.2.attn.sdpa.split", "layers.0.mlp.down", "embed",
		"layers.1.attn.rope_k",
	} {
		out = append(out, report.DetailLines(detail(x, step, dispatch(t, x, name), baseline))...)
		out = append(out, "")
	}
	golden.RequireEqual(t, lines(out))
}

// dispatch finds a dispatch by name.
func dispatch(t *testing.T, x *analyze.Index, name string) trace.DispatchID {
	t.Helper()
	for _, d := range x.Trace.Graph.Dispatches {
		if x.Name(d.ID) == name {
			return d.ID
		}
	}
	t.Fatalf("no dispatch %s", name)
	return 0
}
