package graph_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/engine/graph/graphtest"
	"gpuscope/trace"
)

// A rule may fuse two operators that feed the same reader. The result takes the place of the second one. The
// operators are not fused if the first is read, or State changes, between the two.
func TestARuleTakesAnOperatorBesideAnother(t *testing.T) {
	for name, c := range map[string]struct {
		build func(b *graph.Builder, x, y graph.ValueID)
		want  []string
	}{
		"two with one reader": {func(b *graph.Builder, x, y graph.ValueID) {
			b.Output(graphtest.AddOp(b, "sum", graphtest.Unary(b, "u", x), graphtest.Unary(b, "v", y)))
		}, []string{"u+v unary", "sum binary"}},
		"later readers": {func(b *graph.Builder, x, y graph.ValueID) {
			u, v := graphtest.Unary(b, "u", x), graphtest.Unary(b, "v", y)
			b.Output(graphtest.AddOp(b, "sum", v, u))
			b.Output(graphtest.AddOp(b, "more", u, x))
			b.Output(v)
		}, []string{"u+v unary", "sum binary", "more binary"}},
		"the first is read before the second": {func(b *graph.Builder, x, y graph.ValueID) {
			u := graphtest.Unary(b, "u", x)
			between := graphtest.AddOp(b, "between", u, x)
			b.Output(graphtest.AddOp(b, "sum", graphtest.AddOp(b, "both", u, graphtest.Unary(b, "v", y)),
				between))
		}, []string{"u unary", "between binary", "v unary", "both binary", "sum binary"}},
		"one feeds the other": {func(b *graph.Builder, x, _ graph.ValueID) {
			u := graphtest.Unary(b, "u", x)
			b.Output(graphtest.AddOp(b, "sum", u, graphtest.Unary(b, "v", u)))
		}, []string{"u unary", "v unary", "sum binary"}},
		"no common reader": {func(b *graph.Builder, x, y graph.ValueID) {
			b.Output(graphtest.Unary(b, "u", x))
			b.Output(graphtest.Unary(b, "v", y))
		}, []string{"u unary", "v unary"}},
		"the first reads State": {func(b *graph.Builder, x, y graph.ValueID) {
			state := b.State("state", graph.U32, []int{4})
			u := graphtest.Unary(b, "u", state)
			graphtest.StoreOp(b, x, state)
			b.Output(graphtest.AddOp(b, "sum", u, graphtest.Unary(b, "v", y)))
		}, []string{"u unary", "store store", "v unary", "sum binary"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := graph.NewBuilder(gpu.DefaultLimits())
			b.Fuse(graphtest.PairRule)
			in := func(name string) graph.ValueID { return b.Input(name, graph.U32, []int{4}, []int{4}) }
			c.build(b, in("x"), in("y"))
			g, err := b.Finish()
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, opNames(g)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

func opNames(g *graph.Graph) (names []string) {
	for i := range g.Ops {
		names = append(names, g.Ops[i].Name+" "+g.Ops[i].Spec.Kind)
	}
	return names
}

func TestFusionReplacesOperatorsWithoutOtherReaders(t *testing.T) {
	build := func(rules ...graph.Fusion) (*graph.Graph, graph.ValueID) {
		b := graph.NewBuilder(gpu.DefaultLimits())
		b.Fuse(rules...)
		x := graphtest.RowsInput(b, "x")
		shared := graphtest.Unary(b, "shared", x) // two readers
		out := graphtest.Unary(b, "out", x)       // an output
		b.Scope("layers.3.attn.", 3, "attn")
		alone := graphtest.Unary(b, "alone", shared)
		y := graphtest.AddOp(b, "add", x, alone)
		b.Scope("", -1, "")
		y = graphtest.AddOp(b, "first", shared, y)
		y = graphtest.AddOp(b, "second", y, out)
		return graphtest.Finish(t, b, y, out), alone
	}
	plain, alone := build()
	want := []string{
		"shared unary", "out unary", "layers.3.attn.alone unary", "layers.3.attn.add binary", "first binary",
		"second binary",
	}
	if d := cmp.Diff(want, opNames(plain)); d != "" {
		t.Errorf("without rules (-want +got):\n%s", d)
	}
	g, _ := build(graphtest.SumRule)
	want = []string{
		"shared unary", "out unary", "layers.3.attn.alone+add addone", "first binary", "second binary",
	}
	if d := cmp.Diff(want, opNames(g)); d != "" {
		t.Errorf("with the rule (-want +got):\n%s", d)
	}
	d := g.Describe()
	fused := d.Ops[2]
	if parts := []string{"layers.3.attn.alone", "layers.3.attn.add"}; !slices.Equal(fused.Parts, parts) ||
		fused.Layer == nil || *fused.Layer != 3 || fused.Block != "attn" || fused.ID != 2 {
		t.Errorf("the fused operator is %+v", fused)
	}
	if v := d.Values[alone]; v.Role != trace.RoleFused || v.Slot != nil {
		t.Errorf("the fused value is %+v", v)
	}
	before, after := graphtest.NewLive(t, plain, graph.LiveOptions{}).
		Levels(),
		graphtest.NewLive(t, g, graph.LiveOptions{}).
			Levels()
	if n := len(after); n != len(before)-1 {
		t.Errorf("%d levels: want one level fewer for one dispatch fewer in the chain", n)
	}
	notes := g.Passes()[slices.IndexFunc(g.Passes(),
		func(p graph.PassReport) bool { return p.Name == "fuse" })].Notes
	if !slices.Equal(notes, []string{"1 × sum"}) {
		t.Errorf("the pass has the notes %q", notes)
	}
}

func TestFusedOperatorIsFoundByAPartsRoute(t *testing.T) {
	build := func(target, route string) (*graph.Graph, error) {
		b := graph.NewBuilder(gpu.DefaultLimits())
		b.Fuse(graphtest.SumRule, graphtest.MapRule)
		b.AskRoutes(map[string]string{target: route})
		x := graphtest.RowsInput(b, "x")
		b.Output(graphtest.Routed(b, "r", graphtest.Unary(b, "u", x)))
		return b.Finish()
	}
	for _, target := range []string{"routed@r", "routed", "routed@u+r"} {
		g, err := build(target, "many")
		if err != nil {
			t.Fatal(err)
		}
		if route, must := g.RouteAsked(0); g.Ops[0].Name != "u+r" || route != 1 || !must {
			t.Errorf("requested for %s: %s has route %d, %v", target, g.Ops[0].Name, route, must)
		}
	}
	for _, wrong := range []string{"routed@r=one", "routed@u+r=one", "routed@u+r=none", "routed@u+x=many"} {
		target, route, _ := strings.Cut(wrong, "=")
		_, err := build(target, route)
		if !errors.Is(err, graph.ErrRoute) || !strings.HasPrefix(err.Error(), "route "+wrong+": ") {
			t.Errorf("%s: error %v", wrong, err)
		}
	}
}

func TestFusionThatChangesAShapeIsRefused(t *testing.T) {
	b := graph.NewBuilder(gpu.DefaultLimits())
	x, n := graphtest.RowsInput(b, "x"), b.SymInt("n", 1, 4, 4)
	b.Fuse(graph.Fusion{
		Name: "wrong", Pattern: graph.Pattern{Kinds: []string{"unary"}, Of: []graph.Pattern{{Kinds: []string{"unary"}}}},
		Replace: func(_ *graph.Builder, m *graph.Match) graph.Operator {
			return &graphtest.CutOp{In: x, Rows: n, Out: m.Last().(*graphtest.UnaryOp).Out}
		},
	})
	b.Output(graphtest.Unary(b, "v", graphtest.Unary(b, "u", x)))
	_, err := b.Finish()
	want := "wrong: u+v v [1 16] [4 16] [1 16] [512 16]"
	if !graphtest.Mentions(err, want) {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestDeclarationsOfADeclinedRuleAreForgotten(t *testing.T) {
	tried := 0
	declines := graph.Fusion{
		Name: "declines", Doc: "nothing", Pattern: graph.Pattern{Kinds: []string{"unary"}},
		Replace: func(b *graph.Builder, _ *graph.Match) graph.Operator {
			tried++
			b.Scratch("fresh", graph.U32)
			b.Constant("weights", graph.U32, []int{tried}, nil) // different dims in each attempt
			return nil
		},
	}
	b := graph.NewBuilder(gpu.DefaultLimits())
	b.Fuse(declines)
	x := graphtest.RowsInput(b, "x")
	g := graphtest.Finish(t, b, graphtest.Unary(b, "second", graphtest.Unary(b, "first", x)))
	if tried != 2 || g.NumValues() != 3 {
		t.Errorf("%d values after %d tries, want 3 after 2", g.NumValues(), tried)
	}
}

func TestSelectedFusionsAreNamedOrRefused(t *testing.T) {
	rules := []graph.Fusion{graphtest.SumRule, graphtest.MapRule}
	both := []string{"sum", "map"}
	for want, names := range map[string][]string{
		"on": both, "": both, "off": nil, "map": {"map"}, "sum,map": both, "map,sum": both,
	} {
		var got []string
		selected, err := graph.SelectFusions(rules, want)
		for _, r := range selected {
			got = append(got, r.Name)
		}
		if err != nil || !slices.Equal(got, names) {
			t.Errorf("%q selects %v, %v: want %v", want, got, err, names)
		}
	}
	_, err := graph.SelectFusions(rules, "none")
	want := `"none" on off sum, map`
	if !graphtest.Mentions(err, want) {
		t.Errorf("error %v, want %s", err, want)
	}
}

// The State changes between the operator that reads it and the sum that could absorb this operator.
func TestOperatorThatReadsStateStaysWhereItIs(t *testing.T) {
	b := graph.NewBuilder(gpu.DefaultLimits())
	b.Fuse(graphtest.SumRule)
	x, state := b.Input("x", graph.U32, []int{4}, []int{4}), b.State("state", graph.U32, []int{4})
	old := graphtest.Unary(b, "old", state)
	graphtest.StoreOp(b, x, state)
	g := graphtest.Finish(t, b, graphtest.AddOp(b, "sum", x, old))
	if d := cmp.Diff([]string{"old unary", "store store", "sum binary"}, opNames(g)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// An operator with several outputs is fused only if the same operator is the only reader of all outputs.
func TestPatternMatchesAnOperatorWithAllItsOutputs(t *testing.T) {
	var between []graph.ValueID
	rule := graph.Fusion{
		Name: "both", Pattern: graph.Pattern{Kinds: []string{"binary"}, Of: []graph.Pattern{{Kinds: []string{"fork"}}}},
		Replace: func(_ *graph.Builder, m *graph.Match) graph.Operator {
			between = m.Between
			fork := m.Ops[0].(*graphtest.ForkOp)
			return &graphtest.AddOneOp{A: fork.In, B: fork.In, Out: m.Last().(*graphtest.BinaryOp).Out}
		},
	}
	for name, c := range map[string]struct {
		build func(b *graph.Builder, x, near, far graph.ValueID)
		want  []string
	}{
		"one reader of both": {func(b *graph.Builder, _, near, far graph.ValueID) {
			b.Output(graphtest.AddOp(b, "sum", near, far))
		}, []string{"fork+sum addone"}},
		"another reader of one": {func(b *graph.Builder, _, near, far graph.ValueID) {
			b.Output(graphtest.AddOp(b, "sum", near, far))
			b.Output(graphtest.Unary(b, "end", far))
		}, []string{"fork fork", "sum binary", "end unary"}},
		"one without readers": {func(b *graph.Builder, x, near, _ graph.ValueID) {
			b.Output(graphtest.AddOp(b, "sum", near, x))
		}, []string{"fork fork", "sum binary"}},
		"one that is an output": {func(b *graph.Builder, _, near, far graph.ValueID) {
			b.Output(graphtest.AddOp(b, "sum", near, far))
			b.Output(near)
		}, []string{"fork fork", "sum binary"}},
	} {
		t.Run(name, func(t *testing.T) {
			between = nil
			b := graph.NewBuilder(gpu.DefaultLimits())
			b.Fuse(rule)
			x := graphtest.RowsInput(b, "x")
			near, far := graphtest.Fork(b, "fork", x)
			c.build(b, x, near, far)
			g, err := b.Finish()
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, opNames(g)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			if len(c.want) == 1 && !slices.Equal(between, []graph.ValueID{near, far}) {
				t.Errorf("the fused values are %v, want %v", between, []graph.ValueID{near, far})
			}
		})
	}
}

// remakeRule returns a rule that replaces a sum with the operator that add builds.
func remakeRule(add func(b *graph.Builder, name string, s *graphtest.BinaryOp)) graph.Fusion {
	return graph.Fusion{
		Name: "remake", Pattern: graphtest.SumRule.Pattern,
		Replace: func(b *graph.Builder, m *graph.Match) graph.Operator {
			return b.Remake(m, func(name string) { add(b, name, m.Last().(*graphtest.BinaryOp)) })
		},
	}
}

func TestRuleBuildsAnOperatorLikeAnyGraph(t *testing.T) {
	build := func(add func(b *graph.Builder, name string, s *graphtest.BinaryOp)) (*graph.Graph, error) {
		b := graph.NewBuilder(gpu.DefaultLimits())
		b.Fuse(remakeRule(add))
		x := graphtest.RowsInput(b, "x")
		b.Scope("layers.1.", 1, "")
		y := graphtest.AddOp(b, "add", x, graphtest.Unary(b, "one", x))
		b.Scope("layers.2.", 2, "")
		b.Output(graphtest.Unary(b, "end", y))
		return b.Finish()
	}
	g, err := build(
		func(b *graph.Builder, name string, s *graphtest.BinaryOp) { graphtest.Routed(b, name, s.A) },
	)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"layers.1.one+add routed", "layers.2.end unary"}
	if d := cmp.Diff(want, opNames(g)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	o := &g.Ops[0]
	if v := g.Values[o.Spec.Outputs[0]]; v.Name != "layers.1.add" || v.Producer != o.ID || o.Layer != 1 {
		t.Errorf("the output is %s of operator %d, in layer %d", v.Name, v.Producer, o.Layer)
	}
	if s := g.Values[o.Spec.Scratch[0]].Name; s != "layers.1.one+add.partial" {
		t.Errorf("the scratch is %s", s)
	}
	for want, add := range map[string]func(b *graph.Builder, name string, s *graphtest.BinaryOp){
		": 0 operators 1 outputs": func(*graph.Builder, string, *graphtest.BinaryOp) {},
		": output q": func(b *graph.Builder, name string,
			s *graphtest.BinaryOp,
		) {
			graphtest.Unary(b, name, s.A)
			graphtest.Unary(b, "q", s.A)
		},
		": tensor f32 layers.1.add u32": func(b *graph.Builder, name string,
			_ *graphtest.BinaryOp,
		) {
			b.Tensor(name, graph.F32)
		},
	} {
		want = "layers.1.one+add" + want
		if _, err := build(add); !graphtest.Mentions(err, want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// Values that a rule declared before it declined are not in the graph.
func TestARuleThatGivesUpLeavesNothing(t *testing.T) {
	build := func(rules ...graph.Fusion) *graph.Graph {
		b := graph.NewBuilder(gpu.DefaultLimits())
		b.Fuse(rules...)
		x := graphtest.RowsInput(b, "x")
		return graphtest.Finish(t, b, graphtest.AddOp(b, "add", x, graphtest.Unary(b, "one", x)))
	}
	rule := graphtest.SumRule
	rule.Replace = func(b *graph.Builder, _ *graph.Match) graph.Operator {
		b.Scratch("scratch", graph.U32)
		b.Constant("c", graph.U32, []int{4}, nil)
		return nil
	}
	if got, want := len(build(rule).Values), len(build().Values); got != want {
		t.Errorf("the graph has %d values, without the rule %d", got, want)
	}
}

// A value that is deferred at one row re-plans its readers when it is computed again. Reading it while it is
// deferred is an error.
func TestDeferredValuesHaveNoReaders(t *testing.T) {
	for _, order := range []graph.Order{graph.Topological, graph.Fixpoint} {
		for _, folds := range []bool{true, false} {
			b := graph.NewBuilder(gpu.DefaultLimits())
			x := graphtest.RowsInput(b, "x")
			left := b.Tensor("left", graph.U32)
			use := func(p *graph.Planner, slot int) {
				p.Dispatch(slot, graphtest.Threads(p, p.Numel(x), 64)).Params.U32("p0", p.Numel(x))
			}
			b.Add("leaves", &graphtest.FuncOp{
				Declares: graph.Spec{
					Kind: "leaves", Inputs: []graph.ValueID{x}, Outputs: []graph.ValueID{left},
					Slots: []graph.Slot{{Uses: []graph.Use{graphtest.On(graphtest.UnaryKernel, x, left)}}},
				},
				Bounds: func(r *graph.Ranges) []graph.Corner { return r.Ends(x) },
				Plans: func(p *graph.Planner) error {
					if p.Dim(x, 0) == 1 {
						p.Defer(left, p.Dims(x)...)
						return nil
					}
					p.SetDims(left, p.Dims(x)...)
					use(p, 0)
					return nil
				},
			})
			out := b.Tensor("out", graph.U32)
			b.Add("reads", &graphtest.FuncOp{
				Declares: graph.Spec{
					Kind: "reads", Inputs: []graph.ValueID{left, x}, Outputs: []graph.ValueID{out},
					Slots: []graph.Slot{
						{Label: "folded", Uses: []graph.Use{graphtest.On(graphtest.UnaryKernel, x, out)}},
						{Label: "read", Uses: []graph.Use{graphtest.On(graphtest.UnaryKernel, left, out)}},
					},
				},
				Bounds: func(r *graph.Ranges) []graph.Corner { return r.Ends(left, x) },
				Plans: func(p *graph.Planner) error {
					p.SetDims(out, p.Dims(left)...)
					if folds && p.Dim(left, 0) == 1 {
						use(p, 0)
					} else {
						use(p, 1)
					}
					return nil
				},
			})
			l := graphtest.NewLive(t, graphtest.Finish(t, b, out), graph.LiveOptions{Order: order})
			for _, rows := range []int{7, 1, 7} {
				err := graphtest.Resize(l, x, rows, graphtest.Width)
				switch {
				case rows == 1 && !folds:
					want := "reads unary left,"
					if !graphtest.Mentions(err, want) {
						t.Errorf("%v: at one row the error is %v, want %q", order, err, want)
					}
				case err != nil:
					t.Fatal(err)
				case len(l.Active()) != min(rows, 2):
					t.Errorf("%v: %d rows run %d dispatches", order, rows, len(l.Active()))
				}
			}
		}
	}
}

// moreOp computes a unary operator's result and writes it to two outputs.
type moreOp struct {
	graphtest.UnaryOp
	more graph.ValueID
}

func (o *moreOp) Spec() graph.Spec {
	s := o.UnaryOp.Spec()
	s.Outputs = append(s.Outputs, o.more)
	s.Slots = append(
		s.Slots,
		graph.Slot{Label: "more", Uses: []graph.Use{graphtest.On(graphtest.UnaryKernel, o.In, o.more)}},
	)
	return s
}

func (o *moreOp) Plan(p *graph.Planner) error {
	p.SetDims(o.more, p.Dims(o.In)...)
	p.Dispatch(1, graphtest.Threads(p, p.Numel(o.In), 64)).Params.U32("p0", p.Numel(o.In))
	return o.UnaryOp.Plan(p)
}

// A replacement may write additional values, and later operators may read them.
func TestReplacementWritesMoreValuesThanItReplaces(t *testing.T) {
	rule := graph.Fusion{
		Name: "more", Pattern: graph.Pattern{Kinds: []string{"unary"}},
		Replace: func(b *graph.Builder, m *graph.Match) graph.Operator {
			o := *m.Last().(*graphtest.UnaryOp)
			if before, ok := b.Producer(o.In).(*moreOp); ok {
				o.In = before.more
				return &o
			}
			return &moreOp{o, b.Tensor(b.Name(o.Out)+".more", graph.U32)}
		},
	}
	b := graph.NewBuilder(gpu.DefaultLimits())
	b.Fuse(rule)
	x := graphtest.RowsInput(b, "x")
	first := graphtest.Unary(b, "first", x)
	g := graphtest.Finish(t, b, first, graphtest.Unary(b, "second", first))
	more := g.Ops[0].Spec.Outputs[1]
	v := &g.Values[more]
	if v.Name != "first.more" || v.Producer != 0 || !slices.Equal(v.MaxDims, g.Values[first].MaxDims) {
		t.Errorf("the additional output is %s %v of operator %d", v.Name, v.MaxDims, v.Producer)
	}
	in := g.Ops[1].Spec.Inputs
	if !slices.Equal(in, []graph.ValueID{more}) || !slices.Equal(v.Consumers, []graph.OpID{1}) {
		t.Errorf("the next operator reads %v, want %d, whose readers are %v", in, more, v.Consumers)
	}
}
