package report_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/why"
	"gpuscope/trace/report"
	"gpuscope/trace/tracetest"
)

// A grid that follows the token count must not be explained by the position, although the path through the
// RoPE tables is short. The length of the tables follows the token count too, and the position changes no
// grid.
func TestWhyAvoidsTheRopeTables(t *testing.T) {
	x := analyze.NewIndex(tracetest.Llama(16, 3))
	g := &x.Trace.Graph
	asked := 0
	for i := range g.Dispatches {
		o := &g.Ops[g.Dispatches[i].Op]
		if slices.Contains(o.Inputs, valueNamed(t, g, "pos")) {
			continue // the position is one of its inputs
		}
		w := why.Of(x, 1, trace.DispatchID(i))
		if w == nil || w.Grid == nil || w.Grid.At != 1 {
			continue
		}
		asked++
		for _, c := range w.Grid.Causes {
			if name := g.Values[c.Input].Name; name != "tokens" {
				t.Errorf("the cause of %s is %s, want tokens", w.Name, name)
			}
			for _, l := range c.Links {
				if name := g.Values[l.Value].Name; name == "cos" || name == "sin" {
					t.Errorf("the path to %s goes through %s", w.Name, name)
				}
			}
		}
		if said := strings.Join(report.WhyLines(w, ""), "\n"); !strings.Contains(said, "pos 0 → 42 re-planned ") ||
			!strings.Contains(said, "did not change this grid") {
			t.Errorf("%s does not report the effect of the position:\n%s", w.Name, said)
		}
	}
	if asked < 16*15 {
		t.Errorf("only %d grids were checked", asked)
	}
}

func valueNamed(t *testing.T, g *trace.Graph, name string) trace.ValueID {
	t.Helper()
	i := slices.IndexFunc(g.Values, func(v trace.Value) bool { return v.Name == name })
	if i < 0 {
		t.Fatalf("no value %s", name)
	}
	return trace.ValueID(i)
}

// fixpointed returns a trace in which two passes plan the same operator. The first pass changes its grid. The
// second pass restores the grid or changes it again.
func fixpointed(last trace.PlanID) *trace.Trace {
	tr := tracetest.Tiny()
	before, between := trace.PlanID(0), trace.PlanID(len(tr.Plans))
	mid := tr.Plans[0]
	mid.ID, mid.Workgroups = between, [3]int{2, 1, 1}
	tr.Plans = append(tr.Plans, mid)
	hook := func(from, to trace.PlanID) []trace.Hook {
		return []trace.Hook{{Op: 0, Plans: []trace.PlanChange{{From: &from, To: &to}}}}
	}
	tr.Steps[1].Resize = trace.Resize{Order: "fixpoint", Passes: []trace.Pass{
		{Index: 0, Hooks: hook(before, between)}, {Index: 1, Hooks: hook(between, last)},
	}}
	return tr
}

// With the fixpoint order an operator can be planned several times in a step. Its grid counts as changed
// once, or not at all if the last pass restores it.
func TestGridsChangedTwiceCountOnce(t *testing.T) {
	back := analyze.NewIndex(fixpointed(0))
	if r := back.Resize(1); r.Grids != 0 || r.Params != 0 {
		t.Errorf("a restored plan: %s", report.ResizeLine(r))
	}
	if got := why.GridChanges(back, 0); slices.Contains(got, 1) {
		t.Errorf("a restored grid is reported as changed in steps %v", got)
	}
	other := analyze.NewIndex(fixpointed(1))
	if r := other.Resize(1); r.Grids != 1 || r.Hooks != 2 || r.Operators != 1 {
		t.Errorf("a grid that was changed twice: %s", report.ResizeLine(r))
	}
}

// inPrefillAlone removes a dispatch from every step but the first.
func inPrefillAlone(tr *trace.Trace, id trace.DispatchID) {
	for i := range tr.Steps[1:] {
		s := &tr.Steps[i+1]
		s.Dispatches = slices.DeleteFunc(slices.Clone(s.Dispatches), func(d trace.StepDispatch) bool {
			return tr.Plans[d.Plan].Dispatch == id
		})
	}
	for _, h := range tr.Steps[1].Resize.Passes[0].Hooks {
		if h.Op == tr.Graph.Dispatches[id].Op {
			h.Plans[0].To = nil
		}
	}
}

// fusedNorms returns a run in which the projections compute the preceding norm themselves as soon as they
// take the single-token route. The norm runs only in the prefill.
func fusedNorms(t *testing.T) *analyze.Index {
	tr := tracetest.Llama(2, 3)
	g := &tr.Graph
	norm := g.Dispatches[dispatch(t, analyze.NewIndex(tr), "layers.1.attn.norm")]
	for i := range g.Dispatches {
		d := &g.Dispatches[i]
		if slices.Contains(g.Ops[d.Op].Inputs, norm.Writes[0]) && !strings.HasSuffix(g.Ops[d.Op].Name, "v") {
			d.Reads = append(slices.Clone(d.Reads), norm.Reads...)
		}
	}
	inPrefillAlone(tr, norm.ID)
	return analyze.NewIndex(tr)
}

// fusedSums returns a run in which the sum before that norm is fused away too. The projections read one
// operand of the sum, and a second output of the operator that computes the other operand.
func fusedSums(t *testing.T) *analyze.Index {
	tr := fusedNorms(t).Trace
	g := &tr.Graph
	x := analyze.NewIndex(tr)
	sum := g.Dispatches[dispatch(t, x, "layers.0.mlp.add")]
	norm := g.Dispatches[dispatch(t, x, "layers.1.attn.norm")]
	beside := trace.Value{
		ID: trace.ValueID(len(g.Values)), Name: "squares", Kind: "tensor",
		Role: trace.RoleIntermediate,
	}
	g.Values = append(g.Values, beside)
	down := &g.Ops[g.Dispatches[dispatch(t, x, "layers.0.mlp.down")].Op]
	down.Outputs = append(slices.Clone(down.Outputs), beside.ID)
	for i := range g.Dispatches {
		d := &g.Dispatches[i]
		if slices.Contains(d.Reads, norm.Reads[0]) && slices.Contains(d.Reads, norm.Writes[0]) {
			ofNorm := func(v trace.ValueID) bool { return slices.Contains(norm.Reads, v) }
			d.Reads = append(slices.DeleteFunc(d.Reads, ofNorm), sum.Reads[0], beside.ID)
		}
	}
	inPrefillAlone(tr, sum.ID)
	return analyze.NewIndex(tr)
}

// A dispatch that stops running is a change like any other. In earlier steps its explanation says when it
// stops. In later steps it says what replaced the dispatch.
func TestWhyOfADispatchOfPrefillOnly(t *testing.T) {
	x := analyze.NewIndex(tracetest.Llama(2, 3))
	fused, sums := fusedNorms(t), fusedSums(t)
	decoding := "attn.sdpa.split, attn.sdpa.reduce (route FlashDecoding: S=1, D=64 (else materialised))"
	for _, c := range []struct {
		x    *analyze.Index
		step int
		name string
		want []string
	}{
		{x, 0, "layers.1.attn.sdpa.qk", []string{
			"s1 (decode, position 42); replaced by: " + decoding, "later at s1",
		}},
		{x, 2, "layers.1.attn.sdpa.qk", []string{
			"s1 (decode, position 42)", "s0\n", ": " + decoding,
			"\n  before: ", "  tokens 1×42 → 1×1, through embed", "earlier at s0",
		}},
		{x, 0, "layers.1.attn.sdpa.split", []string{
			" s0 (prefill, position 0)", " s1",
		}},
		{fused, 0, "layers.1.attn.norm", []string{
			"s1 (decode, position 42); replaced by: attn.q, attn.k (route bicol: ",
		}},
		{fused, 1, "layers.1.attn.norm", []string{": attn.q, attn.k (route bicol: "}},
		{sums, 1, "layers.1.attn.norm", []string{": attn.q, attn.k, attn.v (route bicol: "}},
		{sums, 1, "layers.0.mlp.add", []string{": layers.1.attn.q, layers.1.attn.k (route bicol: "}},
	} {
		said := strings.Join(report.WhyLines(why.Of(c.x, c.step, dispatch(t, c.x, c.name)), ""), "\n")
		for _, want := range c.want {
			if !strings.Contains(said, want) {
				t.Errorf("%s in s%d does not say %q:\n%s", c.name, c.step, want, said)
			}
		}
	}
	if steps := why.GridChanges(x, dispatch(t, x, "layers.1.attn.sdpa.qk")); !slices.Equal(steps, []int{
		0,
		1,
	}) {
		t.Errorf("a grid set in s0 and removed in s1 changed in steps %v", steps)
	}
}

func TestArithmeticOfAGrid(t *testing.T) {
	terms := func(rule string, list ...trace.Term) *trace.Grid { return &trace.Grid{Rule: rule, Terms: list} }
	for _, c := range []struct {
		plan trace.Plan
		want string
	}{
		{trace.Plan{NeededGrid: [3]int{96, 1, 1}, NeededGroups: 96}, ""},
		{
			trace.Plan{
				NeededGrid: [3]int{96, 1, 1}, NeededGroups: 96, Workgroups: [3]int{96, 1, 1},
				Grid: terms("rows", trace.Term{Name: "cols", Value: 384, Per: 4},
					trace.Term{Name: "rows", Value: 1, Per: 1}),
			}, "96 = ⌈cols 384 / 4⌉ × rows 1",
		},
		{
			trace.Plan{
				NeededGrid: [3]int{6, 1, 1}, NeededGroups: 6, Workgroups: [3]int{6, 8, 1},
				Grid: terms("tiles", trace.Term{Name: "cols", Value: 384, Per: 64},
					trace.Term{Name: "rows", Value: 1, Per: 64}, trace.Term{Name: "z", Value: 1, Per: 1}),
			}, "6×8, the size for the largest shape; this step needs 6 = ⌈cols 384 / 64⌉ × ⌈rows 1 / 64⌉",
		},
		{
			trace.Plan{
				NeededGrid: [3]int{257, 256, 1}, NeededGroups: 65_536, Workgroups: [3]int{257, 256, 1},
				Grid: terms("linear", trace.Term{Name: "n", Value: 4_194_304, Per: 64}),
			}, "257×256 (two dimensions) to cover 65,536 workgroups = ⌈n 4,194,304 / 64⌉",
		},
		{
			trace.Plan{
				NeededGrid: [3]int{65_535, 1, 1}, NeededGroups: 65_535, Workgroups: [3]int{65_535, 1, 1},
				Grid: terms("grid_stride", trace.Term{Name: "n", Value: 100_000, Per: 1}),
			}, "65,535 workgroups stride over n 100,000",
		},
		{
			trace.Plan{
				NeededGrid: [3]int{64, 1, 1}, NeededGroups: 64,
				Grid: terms("rows", trace.Term{Name: "heads", Value: 32, Per: 16},
					trace.Term{Name: "context", Value: 5000, Per: 64, Most: 32}),
			}, "64 = ⌈heads 32 / 16⌉ × min(⌈context 5,000 / 64⌉, 32)",
		},
		{
			trace.Plan{
				NeededGrid: [3]int{48, 1, 1}, NeededGroups: 48,
				Grid: terms("rows", trace.Term{Name: "tokens", Value: 512, Times: 3, Per: 64},
					trace.Term{Name: "kv heads", Value: 2, Per: 1}),
			}, "48 = ⌈tokens 512 × 3 / 64⌉ × kv heads 2",
		},
	} {
		if c.plan.Workgroups == [3]int{} {
			c.plan.Workgroups = c.plan.NeededGrid
		}
		if got := report.LaunchArithmetic(&c.plan); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestExplainFindsWhatAPersonNames(t *testing.T) {
	x := analyze.NewIndex(tracetest.Llama(2, 3))
	for name, want := range map[string]string{
		"1": "slice cos ", "#1": "slice cos ",
		"layers.1.attn.sdpa.split": "layers.1.attn.sdpa.split ", "pos": "A change of pos can ",
		"layers.1.attn.sdpa": "layers.1.attn.sdpa matches 2 dispatches; only the first is used: layers.1.attn.sdpa.split",
		"attn.sdpa.split":    "attn.sdpa.split matches 2 dispatches; only the first is used: layers.0.attn.sdpa.split",
		"attn.q":             "attn.q matches 2 dispatches; only the first is used: layers.0.attn.q",
		"q":                  "q matches 2 dispatches; only the first is used: layers.0.attn.q",
		"sdpa.qk": "sdpa.qk matches 2 dispatches; only the first is used: " +
			"layers.0.attn.sdpa.qk",
		"prologue":              "prologue matches ",
		"mlp":                   "mlp matches ",
		"rms_norm":              "rms_norm matches 5 dispatches; only the first is used: layers.0.attn.norm",
		"layers.1.attn.sdpa.qk": "layers.1.attn.sdpa.qk  not launched since s1 ",
	} {
		lines, err := report.Explain(x, 1, name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !strings.HasPrefix(lines[0], want) {
			t.Errorf("%s: %q, want it to begin with %q", name, lines[0], want)
		}
	}
	for name, want := range map[string]string{
		"99999": "no dispatch 99999", "-1": "no dispatch -1",
		"nobody": `no dispatch, operator or value "nobody"`, "": `no dispatch, operator or value ""`,
	} {
		if _, err := report.Explain(x, 1, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", name, err, want)
		}
	}
}

// The commands w and o accept every name that a table shows for a row of a step, except names that cover
// several layers.
func TestNamesOfTablesAreUnderstood(t *testing.T) {
	x := analyze.NewIndex(tracetest.Llama(2, 3))
	for step := range x.Trace.Steps {
		for _, fold := range []analyze.Grouping{analyze.GroupLayer, analyze.GroupKernel, analyze.GroupOp} {
			d := dispatched(x, step, analyze.Options{Grouping: fold})
			for i := range d.Grouped {
				name, up := d.Called(i), d.Grouped[i].Parent
				if up >= 0 && !d.Grouped[up].Open || strings.HasPrefix(name, "layers ") {
					continue
				}
				if _, err := report.Explain(x, step, name); err != nil {
					t.Error(err)
				}
				if _, _, err := x.OpNamed(step, name); err != nil {
					t.Error(err)
				}
			}
		}
	}
	for name, want := range map[string]string{
		"layers.1.attn.q": "", "3": "",
		"attn.q": "attn.q matches 2 operators; only the first is used: layers.0.attn.q", "slice cos": "",
	} {
		if _, said, err := x.OpNamed(-1, name); err != nil || said != want {
			t.Errorf("%s: %q, %v", name, said, err)
		}
	}
	n := len(x.Trace.Graph.Ops)
	if len(x.Trace.Graph.Dispatches) <= n {
		t.Fatal("want more dispatches than operators")
	}
	op, _, err := x.OpNamed(-1, fmt.Sprintf("#%d", n))
	if err != nil || op != x.Trace.Graph.Dispatches[n].Op {
		t.Errorf("dispatch %d belongs to operator %d, %v", n, op, err)
	}
	want := fmt.Sprintf("no operator %d; the trace has %d", n, n)
	if _, _, err := x.OpNamed(-1, strconv.Itoa(n)); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	if _, _, err := x.OpNamed(-1, "nobody"); err == nil || !strings.Contains(err.Error(), `no operator "nobody"`) {
		t.Error(err)
	}
}
