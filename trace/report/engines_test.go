package report_test

import (
	"slices"
	"strings"
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/join"
	"gpuscope/trace/report"
)

// traceOf returns a trace of decode steps. Each dispatch is an operator with its times in µs, one per step.
func traceOf(engine string, ops []trace.Op, times [][]float64) *trace.Trace {
	t := &trace.Trace{Schema: trace.Schema, Engine: engine, Graph: trace.Graph{Ops: ops}}
	for i := range ops {
		ops[i].ID = trace.OpID(i)
	}
	ran := 0 // operators with times
	for i, list := range times {
		if list == nil {
			continue
		}
		id := trace.DispatchID(ran)
		t.Graph.Dispatches = append(t.Graph.Dispatches, trace.Dispatch{ID: id, Op: trace.OpID(i)})
		grid := [3]int{1 + i, 1, 1}
		t.Plans = append(t.Plans, trace.Plan{
			ID: trace.PlanID(ran), Dispatch: id, Kernel: engine + ops[i].Kind, Workgroups: grid,
			NeededGrid: grid,
		})
		for step, us := range list {
			if step == len(t.Steps) {
				t.Steps = append(t.Steps, trace.Step{
					Index: step, Phase: trace.Decode, Timing: trace.TimingDispatch, Position: step,
					Tokens: []int{1},
				})
			}
			t.Steps[step].Dispatches = append(t.Steps[step].Dispatches, trace.StepDispatch{
				Plan: trace.PlanID(ran), GPUNS: trace.Measured(int64(us * 1e3)),
			})
		}
		ran++
	}
	return t
}

func op(name string, parts ...string) trace.Op {
	_, kind, _ := strings.Cut(name, ".")
	return trace.Op{Name: name, Kind: kind, Parts: parts}
}

// theirs is the unfused graph of another engine, ours the fused one. In ours, the norm of operator 1 is left
// to its reader.
func theirs() *trace.Trace {
	return traceOf("ExecuTorch",
		[]trace.Op{op("1.norm"), op("2.linear"), op("3.sigmoid"), op("4.mul"), op("5.add"), op("6.sort")},
		[][]float64{{10, 10.5, 10}, {20, 20, 20.25}, {5, 5.5, 5}, {6, 6, 6}, {7, 7, 7}, {8, 8, 8}})
}

func ours() *trace.Trace {
	t := traceOf("",
		[]trace.Op{op("1.norm"), op("2.linear"), op("3.sigmoid+4.mul", "3.sigmoid", "4.mul"), op("5.add"), op("argmax")},
		[][]float64{nil, {4, 4, 4.5}, {2, 2, 2}, {7, 7, 7}, {1, 1, 1}})
	t.Graph.Values = []trace.Value{{Name: "normed", Kind: "tensor", DType: "f32", Role: trace.RoleFused}}
	t.Graph.Ops[0].Outputs, t.Graph.Ops[1].Inputs = []trace.ValueID{0}, []trace.ValueID{0}
	return t
}

func besideTheirs(t *testing.T, steps string) *report.DispatchTable {
	t.Helper()
	for _, tr := range []*trace.Trace{ours(), theirs()} {
		if err := tr.Check(); err != nil {
			t.Fatal(err)
		}
	}
	x := analyze.NewIndex(ours())
	s, err := x.ParseSelection(steps)
	if err != nil {
		t.Fatal(err)
	}
	file := analyze.NewIndex(theirs())
	d, err := report.Dispatches(t.Context(), x, analyze.Options{
		Selection: s, Grouping: analyze.GroupNone,
		Baseline: &analyze.Baseline{Index: file, Selection: file.Phase(trace.Decode)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestFusedDispatchesAreComparedWithTheirParts(t *testing.T) {
	d := besideTheirs(t, "decode")
	if d.Joined != join.ByOperator {
		t.Errorf("joined %v", d.Joined)
	}
	type row struct {
		label, base, delta string
	}
	want := []row{
		{"2.linear", "20.0", "-16.0"}, // although it computes the norm itself
		{"3.sigmoid+4.mul", "11.0", "-9.0"},
		{"5.add", "7.0", "= 0.0"},
		{"argmax", "", "+1.0"}, // the other engine has no such operator
		{"gone", "18.0", "-18.0"},
		{"1.norm", "10.0", "-10.0"},
		{"6.sort", "8.0", "-8.0"},
	}
	if len(d.Grouped) != len(want) {
		t.Fatalf("%d rows, want %d", len(d.Grouped), len(want))
	}
	for i, w := range want {
		base, delta := d.Cell(i, d.Column("base_us")), d.Cell(i, d.Column("delta_us"))
		got := row{d.Grouped[i].Label, base.Text, delta.Text}
		if got != w {
			t.Errorf("row %d: %+v, want %+v", i, got, w)
		}
	}
	if diff := d.Grouped[0].Delta.PlanDiff; diff.Any() {
		t.Errorf("the grids of two engines are compared: %+v", diff)
	}
}

// The difference of a step that ran once has a mark, because its variation is not known.
func TestTimesOfAnotherEngineNeedNoRepeats(t *testing.T) {
	d := besideTheirs(t, "last")
	base, delta := d.Cell(0, d.Column("base_us")), d.Cell(0, d.Column("delta_us"))
	if base.Text != "20.0" || delta.Text != "? -15.5" || delta.Mark != analyze.MarkUnknown {
		t.Errorf("baseline %q, Δ %q", base.Text, delta.Text)
	}
}

// The other engine's operators are unfused, so the fused dispatch of the baseline has several counterparts.
// It is compared with none of them.
func TestUnfusedDispatchesAreNotComparedWithAFusedOne(t *testing.T) {
	x, file := analyze.NewIndex(theirs()), analyze.NewIndex(ours())
	d, err := report.Dispatches(t.Context(), x, analyze.Options{
		Selection: x.Phase(trace.Decode), Grouping: analyze.GroupNone,
		Baseline: &analyze.Baseline{Index: file, Selection: file.Phase(trace.Decode)},
	})
	if err != nil {
		t.Fatal(err)
	}
	var gone []string
	for _, l := range d.Gone {
		gone = append(gone, l.Op.Name)
	}
	if got := strings.Join(gone, " "); got != "argmax" {
		t.Errorf("gone: %s", got)
	}
	if got := d.Cell(1, d.Column("base_us")).Text; got != "4.0" {
		t.Errorf("baseline of 2.linear: %s", got)
	}
}

// The profile of another engine may state the time of a whole step. The part outside of the dispatches is its
// difference from their sum, and is unknown if the sum is larger.
func TestStatedTimeOfAStepIsSplit(t *testing.T) {
	const by = ", stated by the profile"
	for _, c := range []struct {
		wallUS    int64
		parts     []string
		cpuBound  bool
		ofUnknown bool
	}{
		{560, []string{"step 0.56 ms" + by, "0.50 (90 %) outside of dispatches"}, true, false},
		{80, []string{"step 0.08 ms" + by, "0.02 (30 %) outside of dispatches"}, false, false},
		{40, []string{"step 0.04 ms" + by}, false, false},
		{0, []string{"the profile states no time of the whole step"}, false, true},
	} {
		tr := theirs()
		for i := range tr.Steps {
			busy := int64(0)
			for _, d := range tr.Steps[i].Dispatches {
				ns, _ := d.GPUNS.NS()
				busy += ns
			}
			tr.Steps[i].GPU = &trace.GPU{BusyNS: trace.Measured(busy)}
		}
		if c.wallUS > 0 {
			tr.Stated = []trace.Stated{{
				Phase: trace.Decode, Tokens: 1, WallNS: trace.Measured(c.wallUS * 1000),
			}}
		}
		x := analyze.NewIndex(tr)
		var texts []string
		for _, part := range report.StatedStep(x.Summary(0)) {
			texts = append(texts, part.Text)
		}
		if !slices.Equal(texts, c.parts) {
			t.Errorf("%d µs: %q, want %q", c.wallUS, texts, c.parts)
		}
		verdict := report.Verdict(x.Summary(0))
		if strings.Contains(verdict, "CPU-bound") != c.cpuBound ||
			strings.Contains(verdict, "unknown") != c.ofUnknown {
			t.Errorf("%d µs: %s", c.wallUS, verdict)
		}
	}
}
