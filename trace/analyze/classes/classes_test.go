package classes

import (
	"maps"
	"slices"
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/diff"
	"gpuscope/trace/analyze/workclass"
)

// ran returns a run whose steps have the given times, in µs by operator. A negative time was not measured.
func ran(ops []trace.Op, joined trace.Joined, steps ...[]int64) *analyze.Index {
	t := &trace.Trace{Schema: trace.Schema}
	for i, o := range ops {
		o.ID = trace.OpID(i)
		t.Graph.Ops = append(t.Graph.Ops, o)
		t.Graph.Dispatches = append(t.Graph.Dispatches, trace.Dispatch{
			ID: trace.DispatchID(i), Op: o.ID, Kernels: []string{"k"}, Joined: joined,
		})
		t.Plans = append(t.Plans, trace.Plan{ID: trace.PlanID(i), Dispatch: trace.DispatchID(i), Kernel: "k"})
	}
	for i, times := range steps {
		s := trace.Step{Index: i, Phase: trace.Decode, Timing: trace.TimingDispatch}
		for k, us := range times {
			d := trace.StepDispatch{Plan: trace.PlanID(k)}
			if us >= 0 {
				d.GPUNS = trace.Measured(us * 1000)
			}
			s.Dispatches = append(s.Dispatches, d)
		}
		t.Steps = append(t.Steps, s)
	}
	return analyze.NewIndex(t)
}

func op(name, kind string) trace.Op {
	layer := 0
	return trace.Op{Name: "layers.0.attn." + name, Kind: kind, Layer: &layer, Block: "attn"}
}

func all(t *testing.T, x *analyze.Index) analyze.Selection {
	t.Helper()
	s, err := x.ParseSelection("decode")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestClassesStandBesideThoseOfTheBaseline(t *testing.T) {
	ours := ran([]trace.Op{op("q", "linear_f16"), op("o", "linear_f16"), op("k", "linear_f16")}, "",
		[]int64{10, 20, 5}, []int64{12, 20, 5}, []int64{14, 20, -1})
	theirs := ran([]trace.Op{op("q", "linear_f16"), op("norm", "rms_norm")}, trace.JoinedByTensor,
		[]int64{16, 4})
	c, err := Of(t.Context(), ours, analyze.Options{
		Selection: all(t, ours), Baseline: &analyze.Baseline{Index: theirs, Selection: all(t, theirs)},
	})
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		class            workclass.Class
		now, base        float64
		nowRows, baseRow int
		difference       float64
		known            bool
	}
	var got []row
	for _, r := range append(slices.Clone(c.Rows), c.Total) {
		difference, known := r.DifferenceNS()
		got = append(got, row{
			r.Class, r.Now.NS, r.Base.NS, r.Now.Rows, r.Base.Rows, difference, known,
		})
	}
	want := []row{
		{workclass.QO, 32000, 16000, 2, 1, 16000, true},
		{workclass.KV, 5000, 0, 1, 0, 5000, true}, // the third step was not timed
		{workclass.Norms, 0, 4000, 0, 1, -4000, true},
		{"", 37000, 20000, 3, 2, 17000, true},
	}
	if !slices.Equal(got, want) {
		t.Errorf("rows %+v, want %+v", got, want)
	}
	if ratio, ok := c.Rows[0].Ratio(); !ok || ratio != 2 {
		t.Errorf("ratio %v, %v", ratio, ok)
	}
	if _, ok := c.Rows[1].Ratio(); ok {
		t.Error("a class that the baseline lacks has a ratio")
	}
	if j := c.Rows[0].Base.Joined; !slices.Equal(j, []trace.Joined{trace.JoinedByTensor}) {
		t.Errorf("joined by %v", j)
	}
}

func TestUnmeasuredClassHasNoDifference(t *testing.T) {
	x := ran([]trace.Op{op("q", "linear_f16")}, "", []int64{-1})
	c, err := Of(t.Context(), x, analyze.Options{Selection: all(t, x)})
	if err != nil {
		t.Fatal(err)
	}
	if _, known := c.Rows[0].DifferenceNS(); known || c.Rows[0].Now.Rows != 1 {
		t.Errorf("row %+v", c.Rows[0])
	}
}

// In a profile whose matrices have no class, the time of a class of matrices is not 0 but unknown. So
// is the difference of the class that has them.
func TestClassesOfUnnamedMatricesAreUnknown(t *testing.T) {
	ours := ran([]trace.Op{op("q", "linear_f16"), op("norm", "rms_norm"), op("rope", "rope")}, "",
		[]int64{10, 2, 1})
	theirs := ran([]trace.Op{{Name: "MUL_MAT", Kind: "MUL_MAT"}, {Name: "NORM", Kind: "rms_norm"}}, "",
		[]int64{16, 4})
	c, err := Of(t.Context(), ours, analyze.Options{
		Selection: all(t, ours), Baseline: &analyze.Baseline{Index: theirs, Selection: all(t, theirs)},
	})
	if err != nil {
		t.Fatal(err)
	}
	known := map[workclass.Class]bool{}
	for _, r := range append(slices.Clone(c.Rows), c.Total) {
		_, known[r.Class] = r.DifferenceNS()
	}
	want := map[workclass.Class]bool{
		workclass.QO: false, workclass.Norms: true, workclass.Attention: true, workclass.Other: false,
		"": true,
	}
	if !maps.Equal(known, want) {
		t.Errorf("known differences %v, want %v", known, want)
	}
}

// A fused operator of ours is compared with several operators of the other engine, which are of several
// classes. The table of classes and a diff must not count them differently.
func TestADiffHasTheTimesOfTheTable(t *testing.T) {
	mlp := func(role, kind string, parts ...string) trace.Op {
		layer := 0
		return trace.Op{Name: "layers.0.mlp." + role, Kind: kind, Layer: &layer, Block: "mlp", Parts: parts}
	}
	ours := ran([]trace.Op{
		mlp("gate+up+silu_mul", "linear_f16", "layers.0.mlp.norm", "layers.0.mlp.gate", "layers.0.mlp.up",
			"layers.0.mlp.silu_mul"),
		mlp("down", "linear_f16"),
	}, "", []int64{50, 20}, []int64{52, 24}, []int64{54, 20})
	theirs := ran([]trace.Op{
		mlp("norm", "rms_norm"), mlp("gate", "linear_f16"), mlp("up", "linear_f16"), mlp("silu_mul", "silu_mul"),
		mlp("down", "linear_f16"),
	}, trace.JoinedByTensor, []int64{3, 20, 21, 4, 30}, []int64{3, 22, 25, 4, 31}, []int64{4, 21, 21, 5, 32})
	theirs.Trace.Engine = "llama.cpp"
	c, err := Of(t.Context(), ours, analyze.Options{
		Selection: all(t, ours), Baseline: &analyze.Baseline{Index: theirs, Selection: all(t, theirs)},
	})
	if err != nil {
		t.Fatal(err)
	}
	d, err := diff.Of(t.Context(), diff.Side{Index: theirs, Selection: all(t, theirs)},
		diff.Side{Index: ours, Selection: all(t, ours)})
	if err != nil {
		t.Fatal(err)
	}
	type times struct {
		now, base       float64
		nows, baselines int
	}
	want, got := map[workclass.Class]times{}, map[workclass.Class]times{}
	for _, r := range c.Rows {
		want[r.Class] = times{r.Now.NS, r.Base.NS, r.Now.Rows, r.Base.Rows}
	}
	for _, g := range d.GroupsBy(diff.ByClass) {
		got[workclass.Class(g.Name)] = times{g.Times.Now.NS, g.Times.Base.NS, g.Now, g.Base}
	}
	if !maps.Equal(got, want) {
		t.Errorf("the diff has %v, the table %v", got, want)
	}
	if w := want[workclass.GateUp]; w != (times{52000, 46000, 1, 3}) || want[workclass.Norms].base != 3000 {
		t.Errorf("the table has %v", want)
	}
	if d.Isolated.Now.NS != c.Total.Now.NS || d.Isolated.Base.NS != c.Total.Base.NS {
		t.Errorf("the diff has %v in all, the table %+v", d.Isolated, c.Total)
	}
}

// A prompt is compared with those prompts of the baseline that have the same number of tokens.
func TestPromptsOfTheSameLengthAreCompared(t *testing.T) {
	q := []trace.Op{op("q", "linear_f16")}
	prompts := func(tokens ...int64) *analyze.Index {
		times := make([][]int64, len(tokens))
		for i, n := range tokens {
			times[i] = []int64{n}
		}
		x := ran(q, trace.JoinedByShape, times...)
		for i, n := range tokens {
			x.Trace.Steps[i].Phase, x.Trace.Steps[i].SymInts = trace.Prefill, map[string]int64{"seq": n}
		}
		return analyze.NewIndex(x.Trace)
	}
	theirs := prompts(512, 512, 8, 8, 8)
	for tokens, want := range map[int64]struct {
		base         float64
		apart, reads int
	}{512: {512_000, 3, 512}, 8: {8000, 2, 8}, 3: {8000, 2, 8}} {
		ours := prompts(tokens)
		c, err := Of(t.Context(), ours, analyze.Options{
			Selection: ours.All(),
			Baseline:  &analyze.Baseline{Index: theirs, Selection: theirs.Phase(trace.Prefill)},
		})
		if err != nil {
			t.Fatal(err)
		}
		d, err := diff.Of(t.Context(), diff.Side{Index: theirs, Selection: theirs.Phase(trace.Prefill)},
			diff.Side{Index: ours, Selection: ours.All()})
		if err != nil {
			t.Fatal(err)
		}
		s := c.Baseline.Selection
		if c.Total.Base.NS != want.base || s.Apart != want.apart || s.Tokens != want.reads {
			t.Errorf("%d tokens: %g ns, selection %+v", tokens, c.Total.Base.NS, s)
		}
		if s := d.Base.Selection; d.Isolated.Base.NS != want.base || s.Apart != want.apart {
			t.Errorf("%d tokens: the diff has %g ns, selection %+v", tokens, d.Isolated.Base.NS, s)
		}
	}
	// Both sides are narrowed, so the result does not depend on which of them is the baseline.
	ours, swapped := prompts(512, 88), prompts(512)
	for _, c := range []struct{ now, base *analyze.Index }{{ours, swapped}, {swapped, ours}} {
		got, err := Of(t.Context(), c.now, analyze.Options{
			Selection: c.now.All(), Baseline: &analyze.Baseline{Index: c.base, Selection: c.base.All()},
		})
		if err != nil || got.Total.Now.NS != 512_000 || got.Total.Base.NS != 512_000 {
			t.Errorf("total %+v, %v", got.Total, err)
		}
	}
	alone, err := Of(t.Context(), theirs, analyze.Options{Selection: theirs.All()})
	if err != nil || alone.Total.Now.NS != 8000 || alone.Selection.Apart != 2 {
		t.Errorf("without a baseline: total %+v, selection %+v, %v", alone.Total, alone.Selection, err)
	}
}
