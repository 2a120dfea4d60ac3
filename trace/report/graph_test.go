package report_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/exp/golden"
	"github.com/google/go-cmp/cmp"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/memory"
	"gpuscope/trace/report"
	"gpuscope/trace/report/outline"
	"gpuscope/trace/report/storage"
	"gpuscope/trace/table"
	"gpuscope/trace/tracetest"
)

func TestTheGraphAsATree(t *testing.T) {
	x := analyze.NewIndex(tracetest.Llama(4, 6))
	g, err := outline.Graph(ctx, x, analyze.Options{Selection: x.Step(5), Grouping: analyze.GroupLayer})
	if err != nil {
		t.Fatal(err)
	}
	open := map[string]bool{"op0": true, "layer0/op11": true}
	golden.RequireEqual(t, printed(t, g.Table, table.Selection{Open: open}, 140))
}

// The time of a heading is the sum of its rows, and all headings add up to the step.
func TestTheTreeAddsUp(t *testing.T) {
	x := analyze.NewIndex(tracetest.Llama(4, 6))
	for fold := analyze.GroupLayer; fold <= analyze.GroupNone; fold++ {
		g, err := outline.Graph(ctx, x, analyze.Options{Selection: x.Step(5), Grouping: fold})
		if err != nil {
			t.Fatal(err)
		}
		sums := make([]float64, len(g.Nodes))
		var ids []trace.DispatchID
		all := 0.0
		for i := range g.Nodes {
			n := &g.Nodes[i]
			switch {
			case n.Edge != "":
			case n.Parent >= 0:
				sums[n.Parent] += n.NS
			default:
				all += n.NS
				ids = append(ids, n.Dispatches...)
			}
		}
		for i, sum := range sums {
			if n := &g.Nodes[i]; sum > 0 && (sum/n.NS < 0.999 || sum/n.NS > 1.001) {
				t.Errorf("grouped by %s: %s takes %.0f ns, its rows %.0f", fold, n.Label, n.NS, sum)
			}
		}
		step := &x.Trace.Steps[5]
		if len(ids) != len(step.Dispatches) {
			t.Errorf("grouped by %s: %d dispatches, the step has %d", fold, len(ids), len(step.Dispatches))
		}
		if want := dispatched(x, 5, analyze.Options{}).Launches; all == 0 || len(want) != len(ids) {
			t.Errorf("grouped by %s: %.0f ns", fold, all)
		}
	}
}

// For several steps the title is the sum of the rows: medians of each dispatch, not the median of the steps.
func TestTreeTitleHasTheSumOfMedians(t *testing.T) {
	tr := tracetest.Run(2, 42, 1, 1, 1)
	for k, d := range []int{0, 1, 2} { // a different dispatch is slow in each step
		tr.Steps[1+k].Dispatches[d].GPUNS = us(9000)
	}
	x := analyze.NewIndex(tr)
	for _, c := range []struct {
		selection   analyze.Selection
		before, and string
	}{{x.Step(2), "isolated ", ""}, {x.Phase(trace.Decode), "medians of isolated times add up to ", ""}} {
		g, err := outline.Graph(ctx, x, analyze.Options{Selection: c.selection})
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for i := range g.Nodes {
			if n := &g.Nodes[i]; n.Parent < 0 && n.Edge == "" {
				sum += n.NS
			}
		}
		want := " · " + c.before + table.Millis(int64(sum), true) + c.and
		if title := g.Title[0].String(); !strings.HasSuffix(title, want) {
			t.Errorf("%s: %q, want %q at the end", c.selection.Name, title, want)
		}
	}
}

func TestTreeShowsCostsOfRowsSkippedTogether(t *testing.T) {
	tr := tracetest.Llama(2, 3)
	x := analyze.NewIndex(tr)
	norms := []trace.DispatchID{dispatch(t, x, "layers.1.attn.norm"), dispatch(t, x, "layers.0.attn.norm")}
	slices.Sort(norms)
	tr.Steps[2].Costs = []trace.Cost{{Name: "attn.norm", Dispatches: norms, NS: -3200, N: 30}}
	g, err := outline.Graph(ctx, analyze.NewIndex(tr), analyze.Options{
		Selection: x.Step(2),
		Grouping:  analyze.GroupLayer,
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		want := n.Label == "norm ×2" && n.Ops[0][0] == tr.Graph.Dispatches[norms[0]].Op
		if (n.Cost != nil) != want {
			t.Errorf("%s: cost %v", n.Label, n.Cost)
		}
	}
	out := string(printed(t, g.Table, table.Selection{}, 140))
	if !strings.Contains(out, "-3.2") {
		t.Error(out)
	}
}

// sharing returns a graph of four operators in a row whose results alternate between two slots.
func sharing() *trace.Trace {
	slot := func(n int) *int { return &n }
	value := func(id int, name string, role trace.Role, bytes int64, s *int) trace.Value {
		return trace.Value{
			ID: trace.ValueID(id), Name: name, Kind: "tensor", DType: "f32", Role: role,
			MaxDims: []int{int(bytes / 4)}, Bytes: bytes, Slot: s,
		}
	}
	alias := trace.ValueID(2)
	t := tracetest.Tiny()
	t.Plans, t.Steps, t.Events, t.Observer = nil, nil, nil, nil
	t.Graph = trace.Graph{Values: []trace.Value{
		value(0, "in", "input", 400, nil), value(1, "w", "constant", 8000, nil),
		value(2, "a", "intermediate", 4000, slot(0)), value(3, "b", "intermediate", 400, slot(1)),
		value(4, "c", "intermediate", 1000, slot(0)), value(5, "a.view", "intermediate", 4000, slot(0)),
		value(6, "out", "output", 40, nil),
	}}
	t.Graph.Values[5].AliasOf = &alias
	for i, d := range []struct{ reads, writes []trace.ValueID }{
		{[]trace.ValueID{0, 1}, []trace.ValueID{2}},
		{[]trace.ValueID{5}, []trace.ValueID{3}},
		{[]trace.ValueID{3}, []trace.ValueID{4}},
		{[]trace.ValueID{4}, []trace.ValueID{6}},
	} {
		name := string(rune('p' + i))
		t.Graph.Ops = append(t.Graph.Ops, trace.Op{
			ID: trace.OpID(i), Name: name, Kind: "k", Inputs: d.reads,
			Outputs: d.writes,
		})
		t.Graph.Dispatches = append(t.Graph.Dispatches, trace.Dispatch{
			ID: trace.DispatchID(i), Op: trace.OpID(i), Reads: d.reads, Writes: d.writes,
			MaxWorkgroups: [3]int{1, 1, 1},
		})
	}
	return t
}

func TestMemoryByRoleAndSlot(t *testing.T) {
	x := analyze.NewIndex(sharing())
	var out []byte
	for _, made := range []*table.Table{storage.Memory(x, analyze.Selection{}), storage.Tenants(x,
		analyze.Selection{})} {
		out = append(out, printed(t, made, table.Selection{}, 140)...)
		out = append(out, '\n')
	}
	golden.RequireEqual(t, out)
}

// A file may hold dims of any size. Live bytes are never negative and never more than allocated.
func TestDimsOfFilesFitTheMemoryBudget(t *testing.T) {
	tr := sharing()
	step := trace.Step{Phase: trace.Execute, Timing: trace.TimingOff}
	for i := range tr.Graph.Values {
		step.Dims = append(step.Dims, trace.LiveDims{
			Value: trace.ValueID(i), Dims: slices.Repeat([]int{math.MaxInt}, 16),
		})
	}
	tr.Steps = []trace.Step{step}
	x := analyze.NewIndex(tr)
	memory := storage.Memory(x, x.Step(0))
	number := func(column string, row int) float64 {
		i := slices.IndexFunc(memory.Columns, func(c table.Column) bool { return c.Name == column })
		return memory.Columns[i].Of(row).Number
	}
	for row, r := range memory.Rows {
		if live, all := number("live", row), number("allocated", row); live < 0 || live > all {
			t.Errorf("%s: %v bytes of %v are live", r.Key, live, all)
		}
	}
}

// Values that were fused away, and scratch of routes that no shape uses, take no memory. They have no bytes
// and no slot, and do not appear among the tenants of one.
func TestFusedValuesHaveNoMemoryInTables(t *testing.T) {
	tr := sharing()
	slot := 1
	fused := trace.Value{
		ID: 7, Name: "gone", Kind: "tensor", DType: "f32", Role: trace.RoleFused, MaxDims: []int{25},
		Bytes: 100,
	}
	scratch := trace.Value{
		ID: 8, Name: "never", Kind: "tensor", DType: "f32", Role: trace.RoleScratch, MaxDims: []int{0},
		Bytes: 4,
		Slot:  &slot,
	}
	without := analyze.NewIndex(tr)
	want := printed(t, storage.Tenants(without, analyze.Selection{}), table.Selection{}, 140)
	tr = sharing()
	tr.Graph.Values = append(tr.Graph.Values, fused, scratch)
	x := analyze.NewIndex(tr)
	if d := cmp.Diff(want, printed(t, storage.Tenants(x, analyze.Selection{}), table.Selection{}, 140)); d != "" {
		t.Errorf("slots with and without them:\n%s", d)
	}
	if d := cmp.Diff(printed(t, storage.Memory(without, analyze.Selection{}), table.Selection{}, 140),
		printed(t, storage.Memory(x, analyze.Selection{}), table.Selection{}, 140)); d != "" {
		t.Errorf("memory with and without them:\n%s", d)
	}
	for id, want := range map[trace.ValueID]string{
		7: "gone: f32 25, fused\nnever in memory: fused away",
		8: "never: f32 –, scratch\nnever in memory: the routes in use do not need this value",
	} {
		if got := strings.Join(report.ValueLines(x, -1, id)[1:], "\n"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for line := range strings.Lines(string(printed(t, report.Values(x, analyze.Selection{}),
		table.Selection{},
		140))) {
		if (strings.Contains(line, "gone") || strings.Contains(line, "never")) &&
			(strings.Contains(line, " B") || strings.Contains(line, "slot")) {
			t.Error(line)
		}
	}
}

// Weights of a matrix show its format, rows and columns, no matter how they are stored.
func TestWeightsHaveTheShapeOfTheirMatrix(t *testing.T) {
	tr := sharing()
	w := &tr.Graph.Values[1]
	w.DType, w.MaxDims, w.Matrix = "u32", []int{50, 40}, &trace.Matrix{Format: "q5_0", Rows: 50, Cols: 320}
	tr.Plans = []trace.Plan{{Kernel: "k"}}
	tr.Steps = []trace.Step{{
		Phase: trace.Decode, Timing: trace.TimingOff,
		Dispatches: []trace.StepDispatch{{}},
	}}
	x := analyze.NewIndex(tr)
	tree, err := outline.Graph(ctx, x, analyze.Options{Selection: x.Step(0), Grouping: analyze.GroupNone})
	if err != nil {
		t.Fatal(err)
	}
	d, err := x.Detail(ctx, 0, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	for where, c := range map[string]struct{ got, want string }{
		"values": {string(printed(t, report.Values(x, x.Step(0)), table.Selection{}, 200)), "q5_0   50×320      50×320"},
		"tree":   {string(printed(t, tree.Table, table.Selection{All: true}, 200)), "in q5_0"},
		"value":  {strings.Join(report.ValueLines(x, 0, 1), "\n"), "w: q5_0 50×320 as u32 50×40, 7.8 KiB"},
		"detail": {strings.Join(report.DetailLines(d), "\n"), "w 50×320 q5_0 constant"},
	} {
		if !strings.Contains(c.got, c.want) {
			t.Errorf("%s: no %q in\n%s", where, c.want, c.got)
		}
	}
}

// A value that the routes of a step do not use occupies no memory in that step, and is not among what a
// dispatch reads and writes. Every view of live values shows it as fused away.
func TestValuesWithoutAKernelAreFusedAway(t *testing.T) {
	tr := sharing()
	b := trace.ValueID(3)
	for i := range tr.Graph.Dispatches {
		d := &tr.Graph.Dispatches[i]
		d.Kernels, d.Bound = []string{"many"}, [][]trace.ValueID{slices.Concat(d.Reads, d.Writes)}
	}
	tr.Graph.Dispatches[3].Bound = [][]trace.ValueID{} // as in a file without this information
	view := tr.Graph.Values[b]
	view.ID, view.Name, view.AliasOf = 7, "b.view", &b
	tr.Graph.Values = append(tr.Graph.Values, view)
	leaves, takes := &tr.Graph.Dispatches[1], &tr.Graph.Dispatches[2]
	leaves.Kernels, leaves.Bound = append(leaves.Kernels, "one"), append(leaves.Bound, []trace.ValueID{5})
	takes.Reads = append(takes.Reads, 5)
	takes.Kernels, takes.Bound = append(takes.Kernels, "one"), append(takes.Bound, []trace.ValueID{5, 4})
	for i, kernel := range []string{"many", "many", "many", "many", "one", "one+1234"} {
		d := [...]trace.DispatchID{0, 1, 2, 3, 1, 2}[i]
		tr.Plans = append(tr.Plans, trace.Plan{ID: trace.PlanID(i), Dispatch: d, Kernel: kernel})
	}
	for i, plans := range [][]trace.PlanID{{0, 1, 2, 3}, {0, 4, 5, 3}} {
		s := trace.Step{Index: i, Phase: trace.Decode, Timing: trace.TimingOff}
		for _, p := range plans {
			s.Dispatches = append(s.Dispatches, trace.StepDispatch{Plan: p})
		}
		tr.Steps = append(tr.Steps, s)
	}
	x := analyze.NewIndex(tr)
	for step, want := range []struct{ slot, a, made, live, size string }{
		{"d1–d2 b, 400 B", "d0–d1 a", "in     b 100 f32", "100", "400 B"},
		{
			"fused away in this step b, 400 B", "d0–d2 a", "in     a.view 1000 f32", memory.FusedAway,
			memory.FusedAway,
		},
	} {
		tree, err := outline.Graph(ctx, x, analyze.Options{
			Selection: x.Step(step),
			Grouping:  analyze.GroupNone,
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			made      *table.Table
			key, want string
		}{
			{report.Values(x, x.Step(step)), "v3", want.live},
			{report.Values(x, x.Step(step)), "v7", want.live},
			{storage.Tenants(x, x.Step(step)), "v3", want.size},
			{tree.Table, "op1", want.live},
			{tree.Table, "op2/in0", want.live},
		} {
			row := slices.IndexFunc(c.made.Rows, func(r table.Row) bool { return r.Key == c.key })
			live := slices.IndexFunc(c.made.Columns, func(c table.Column) bool { return c.Name == "live" })
			if got := c.made.Columns[live].Of(row).Text; got != c.want {
				t.Errorf("step %d, %s of %s: live %q, want %q", step, c.made.Name, c.key, got, c.want)
			}
		}
		if n := report.Around(x, step, 2, 1, false); n[0].Edge != want.live {
			t.Errorf("step %d: %q is between q and r, want %q", step, n[0].Edge, want.live)
		}
		if lines := report.OperatorLines(x, step, 2); !strings.HasPrefix(
			lines[1],
			"in    b: f32 "+want.live+", ",
		) {
			t.Errorf("step %d: r reads %q", step, lines[1])
		}
		text := strings.Join(report.ValueLines(x, step, b), "\n")
		if strings.Contains(text, "not computed in this step") != (want.live == memory.FusedAway) {
			t.Errorf("step %d: %s", step, text)
		}
		if lines := storage.HoldingLines(x, step, "slot1"); !slices.Contains(lines, want.slot) {
			t.Errorf("step %d: %q, want %q", step, lines, want.slot)
		}
		if lines := storage.HoldingLines(x, step, "slot0"); !strings.HasPrefix(lines[1], want.a) {
			t.Errorf("step %d: %q, want %q first", step, lines, want.a)
		}
		d, err := x.Detail(ctx, step, 2, nil)
		if err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(report.DetailLines(d), "\n"); !strings.Contains(text, want.made) ||
			len(d.Inputs) != 1 {
			t.Errorf("step %d: no %q in\n%s", step, want.made, text)
		}
		wrote := slices.ContainsFunc(x.Writes(step, b), func(w analyze.Written) bool { return w.Value == b })
		if wrote != (step == 0) {
			t.Errorf("step %d: a fused-away value is written: %v", step, wrote)
		}
	}
	// Only the outputs that exist in the step are shown.
	tr.Graph.Ops[1].Outputs = append(tr.Graph.Ops[1].Outputs, 5)
	x = analyze.NewIndex(tr)
	tree, err := outline.Graph(ctx, x, analyze.Options{Selection: x.Step(1), Grouping: analyze.GroupNone})
	if err != nil {
		t.Fatal(err)
	}
	row := slices.IndexFunc(tree.Rows, func(r table.Row) bool { return r.Key == "op1" })
	live := slices.IndexFunc(tree.Columns, func(c table.Column) bool { return c.Name == "live" })
	if got := tree.Cell(row, live).Text; got != "1000" {
		t.Errorf("outputs %q, want only 1000", got)
	}
}

// A fused operator's name contains the names of its parts, with their layer. Equal layers still share one
// row.
func TestEqualLayersOfFusedOperatorsAreOneRow(t *testing.T) {
	tr := tracetest.Llama(4, 3)
	for i := range tr.Graph.Ops {
		if o := &tr.Graph.Ops[i]; o.Layer != nil && o.ShortName() == "o" {
			o.Parts = []string{o.Name, strings.TrimSuffix(o.Name, "o") + "add"}
		}
	}
	x := analyze.NewIndex(tr)
	g, err := outline.Graph(ctx, x, analyze.Options{Selection: x.Step(2), Grouping: analyze.GroupLayer})
	if err != nil {
		t.Fatal(err)
	}
	out := string(printed(t, g.Table, table.Selection{}, 200))
	if !strings.Contains(out, "layers 0–3 ×4") || !strings.Contains(out, "attn.o + attn.add") {
		t.Error(out)
	}
}

func TestAroundFindsProducersAndConsumers(t *testing.T) {
	x := analyze.NewIndex(tracetest.Llama(2, 3))
	g := &x.Trace.Graph
	names := func(list []analyze.Neighbour) (out []string) {
		for _, n := range list {
			out = append(out, n.Label+" "+n.Edge)
		}
		return out
	}
	for _, c := range []struct {
		op                   string
		producers, consumers []string
	}{
		{
			"layers.0.attn.rope_k",
			[]string{"attn.k 1×1×512", "slice cos 1×32", "slice sin 1×32"},
			[]string{"attn.cache_k 1×1×8×64"},
		},
		{"embed", []string{"tokens 1×1", "embed.weight 4096×2048"}, nil},
		{
			"layers.1.attn.sdpa", // reads caches written by other operators
			[]string{
				"attn.rope_q 1×1×32×64", "pos 43", "attn.cache_k 1×1024×8×64", "attn.cache_v 1×1024×8×64",
			},
			[]string{"attn.o 1×1×2048"},
		},
		{"lm_head", nil, []string{"lm_head 1×4096"}},
	} {
		i := slices.IndexFunc(g.Ops, func(o trace.Op) bool { return o.Name == c.op })
		got := report.Around(x, 2, trace.OpID(i), 2, false)
		if n := names(got); c.producers != nil && !slices.Equal(n[:len(c.producers)], c.producers) {
			t.Errorf("%s reads from %q, want %q", c.op, n, c.producers)
		}
		n := names(report.Around(x, 2, trace.OpID(i), 1, true))
		if c.consumers != nil && !slices.Equal(n, c.consumers) {
			t.Errorf("%s is read by %q, want %q", c.op, n, c.consumers)
		}
		for _, n := range got {
			if n.Op != nil && len(n.Far) == 0 {
				t.Errorf("%s has no operators after it", n.Label)
			}
		}
	}
}

// A deferred output is listed with the operator that writes it, wherever its outputs are shown. Only readers
// after that operator show it as their producer.
func TestDeferredOutputsAreShownAsWritten(t *testing.T) {
	tr := tracetest.Llama(1, 3)
	g := &tr.Graph
	op := func(name string) *trace.Op {
		return &g.Ops[slices.IndexFunc(g.Ops, func(o trace.Op) bool { return o.Name == name })]
	}
	sum, norm, gate, add := op("layers.0.attn.add"), op("layers.0.mlp.norm"), op("layers.0.mlp.gate"),
		op("layers.0.mlp.add")
	made := sum.Outputs[0]
	gate.Makes = []trace.ValueID{made}
	x := analyze.NewIndex(tr)
	near := func(o *trace.Op, consumers bool) (names []string) {
		for _, n := range report.Around(x, 2, o.ID, 1, consumers) {
			names = append(names, n.Label)
		}
		return names
	}
	for what, c := range map[string]struct {
		got, want []string
	}{
		"readers of the writing operator": {near(gate, true), []string{"mlp.sigmoid", "mlp.mul_silu", "mlp.add"}},
		"producers of a later reader":     {near(add, false)[:2], []string{"attn.add", "mlp.gate"}},
		"producers of an earlier reader":  {near(norm, false)[:1], []string{"attn.add"}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %q, want %q", what, c.got, c.want)
		}
	}
	tree, err := outline.Graph(ctx, x, analyze.Options{Selection: x.Step(2), Grouping: analyze.GroupNone})
	if err != nil {
		t.Fatal(err)
	}
	for where, c := range map[string]struct{ got, want string }{
		"operator": {
			strings.Join(report.OperatorLines(x, 2, gate.ID),
				"\n"), "\nmakes layers.0.attn.add: f32 1×1×2048",
		},
		"value": {
			strings.Join(report.ValueLines(x, 2, made), "\n"), "\ncan be fused into layers.0.mlp.gate\n",
		},
		"tree": {string(printed(t, tree.Table, table.Selection{All: true}, 200)), "makes f32"},
		"operators": {
			string(printed(t, report.Operators(x), table.Selection{}, 200)), fmt.Sprintf("makes %d", made),
		},
	} {
		if !strings.Contains(c.got, c.want) {
			t.Errorf("%s: no %q in\n%s", where, c.want, c.got)
		}
	}
}

// The slots in a trace are those of large steps. For a small step the views say so.
func TestSlotsSayOfWhichStepsTheyAre(t *testing.T) {
	x := analyze.NewIndex(tracetest.Llama(1, 2))
	title := storage.Tenants(x, x.Step(1)).Title[0].String()
	if !strings.Contains(title, "large steps") {
		t.Errorf("the title is %q", title)
	}
	if lines := storage.HoldingLines(x, 1, "slots"); !strings.Contains(lines[0], "large steps") {
		t.Errorf("the detail begins with %q", lines[0])
	}
}
