package engine

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gpuscope/engine/gpu"
)

// Of operators that feed one reader two become one where the second stands, unless the first is read, or
// State changes, on the way there.
func TestARuleTakesAnOperatorBesideAnother(t *testing.T) {
	for name, c := range map[string]struct {
		build func(b *Builder, x, y ValueID)
		want  []string
	}{
		"two that feed one": {func(b *Builder, x, y ValueID) {
			b.Output(addOp(b, "sum", unary(b, "u", x), unary(b, "v", y)))
		}, []string{"u+v unary", "sum binary"}},
		"with other readers behind": {func(b *Builder, x, y ValueID) {
			u, v := unary(b, "u", x), unary(b, "v", y)
			b.Output(addOp(b, "sum", v, u))
			b.Output(addOp(b, "more", u, x))
			b.Output(v)
		}, []string{"u+v unary", "sum binary", "more binary"}},
		"of which the first is read before": {func(b *Builder, x, y ValueID) {
			u := unary(b, "u", x)
			between := addOp(b, "between", u, x)
			b.Output(addOp(b, "sum", addOp(b, "both", u, unary(b, "v", y)), between))
		}, []string{"u unary", "between binary", "v unary", "both binary", "sum binary"}},
		"of which one feeds the other": {func(b *Builder, x, _ ValueID) {
			u := unary(b, "u", x)
			b.Output(addOp(b, "sum", u, unary(b, "v", u)))
		}, []string{"u unary", "v unary", "sum binary"}},
		"that feed nothing together": {func(b *Builder, x, y ValueID) {
			b.Output(unary(b, "u", x))
			b.Output(unary(b, "v", y))
		}, []string{"u unary", "v unary"}},
		"of which the first reads State": {func(b *Builder, x, y ValueID) {
			state := b.State("state", U32, []int{4})
			u := unary(b, "u", state)
			storeOp(b, x, state)
			b.Output(addOp(b, "sum", u, unary(b, "v", y)))
		}, []string{"u unary", "store store", "v unary", "sum binary"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewBuilder(gpu.DefaultLimits())
			b.Fuse(pairRule)
			in := func(name string) ValueID { return b.Input(name, U32, []int{4}, []int{4}) }
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

func opNames(g *Graph) (names []string) {
	for i := range g.ops {
		names = append(names, g.ops[i].name+" "+g.ops[i].spec.Kind)
	}
	return names
}

func TestFusionReplacesOperatorsWhoseValuesNobodyElseSees(t *testing.T) {
	build := func(rules ...Fusion) (*Graph, ValueID) {
		b := NewBuilder(gpu.DefaultLimits())
		b.Fuse(rules...)
		x := rowsInput(b, "x")
		shared := unary(b, "shared", x) // two readers
		out := unary(b, "out", x)       // an output
		b.Scope("layers.3.attn.", 3, "attn")
		alone := unary(b, "alone", shared)
		y := addOp(b, "add", x, alone)
		b.Scope("", -1, "")
		y = addOp(b, "first", shared, y)
		y = addOp(b, "second", y, out)
		return finish(t, b, y, out), alone
	}
	plain, alone := build()
	want := []string{
		"shared unary", "out unary", "layers.3.attn.alone unary", "layers.3.attn.add binary", "first binary",
		"second binary",
	}
	if d := cmp.Diff(want, opNames(plain)); d != "" {
		t.Errorf("without rules (-want +got):\n%s", d)
	}
	g, _ := build(sumRule)
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
	if v := d.Values[alone]; v.Role != "fused" || v.Slot != nil {
		t.Errorf("the value between is %+v", v)
	}
	before, after := newLive(t, plain, LiveOptions{}).Levels(), newLive(t, g, LiveOptions{}).Levels()
	if n := len(after); n != len(before)-1 {
		t.Errorf("%d levels: a dispatch fewer in the chain is a level fewer", n)
	}
	notes := g.Passes()[slices.IndexFunc(g.Passes(), func(p PassReport) bool { return p.Name == "fuse" })].Notes
	if !slices.Equal(notes, []string{"1 × sum"}) {
		t.Errorf("the pass says %q", notes)
	}
}

func TestFusedOperatorIsFoundByTheRouteOfAPart(t *testing.T) {
	build := func(target, route string) (*Graph, error) {
		b := NewBuilder(gpu.DefaultLimits())
		b.Fuse(sumRule, mapRule)
		b.AskRoutes(map[string]string{target: route})
		x := rowsInput(b, "x")
		b.Output(routed(b, "r", unary(b, "u", x)))
		return b.Finish()
	}
	for _, target := range []string{"routed@r", "routed", "routed@u+r"} {
		g, err := build(target, "many")
		if err != nil {
			t.Fatal(err)
		}
		if route, must := g.RouteAsked(0); g.ops[0].name != "u+r" || route != 1 || !must {
			t.Errorf("asked of %s: %s takes %d, %v", target, g.ops[0].name, route, must)
		}
	}
	for _, wrong := range []string{"routed@r=one", "routed@u+r=one", "routed@u+r=none", "routed@u+x=many"} {
		target, route, _ := strings.Cut(wrong, "=")
		_, err := build(target, route)
		if !errors.Is(err, ErrRoute) || !strings.HasPrefix(err.Error(), "route "+wrong+": ") {
			t.Errorf("%s: error %v", wrong, err)
		}
	}
}

func TestFusionThatChangesAShapeIsRefused(t *testing.T) {
	b := NewBuilder(gpu.DefaultLimits())
	x, n := rowsInput(b, "x"), b.SymInt("n", 1, 4, 4)
	b.Fuse(Fusion{
		Name: "wrong", Pattern: Pattern{Kinds: []string{"unary"}, Of: []Pattern{{Kinds: []string{"unary"}}}},
		Replace: func(_ *Builder, m *Match) Operator {
			return &cutOp{x, n, m.Last().(*unaryOp).out}
		},
	})
	b.Output(unary(b, "v", unary(b, "u", x)))
	_, err := b.Finish()
	want := "fusion wrong: u+v gives v the dims [1 16] to [4 16], its parts [1 16] to [512 16]"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestWhatARuleDeclaresAndThenDeclinesIsForgotten(t *testing.T) {
	tried := 0
	declines := Fusion{
		Name: "declines", Doc: "nothing", Pattern: Pattern{Kinds: []string{"unary"}},
		Replace: func(b *Builder, _ *Match) Operator {
			tried++
			b.Scratch("fresh", U32)
			b.Constant("weights", U32, []int{tried}, nil) // other ones each time
			return nil
		},
	}
	b := NewBuilder(gpu.DefaultLimits())
	b.Fuse(declines)
	x := rowsInput(b, "x")
	g := finish(t, b, unary(b, "second", unary(b, "first", x)))
	if tried != 2 || g.Values() != 3 {
		t.Errorf("%d values after %d tries, want 3 after 2", g.Values(), tried)
	}
}

func TestSelectedFusionsAreNamedOrRefused(t *testing.T) {
	rules := []Fusion{sumRule, mapRule}
	both := []string{"sum", "map"}
	for want, names := range map[string][]string{
		"on": both, "": both, "off": nil, "map": {"map"}, "sum,map": both, "map,sum": both,
	} {
		var got []string
		selected, err := SelectFusions(rules, want)
		for _, r := range selected {
			got = append(got, r.Name)
		}
		if err != nil || !slices.Equal(got, names) {
			t.Errorf("%q selects %v, %v: want %v", want, got, err, names)
		}
	}
	_, err := SelectFusions(rules, "none")
	want := `no fusion rule "none": want on or off alone, or some of sum, map`
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// Between the operator that reads State and the sum that would take it in, the State changes.
func TestOperatorThatReadsStateStaysWhereItIs(t *testing.T) {
	b := NewBuilder(gpu.DefaultLimits())
	b.Fuse(sumRule)
	x, state := b.Input("x", U32, []int{4}, []int{4}), b.State("state", U32, []int{4})
	old := unary(b, "old", state)
	storeOp(b, x, state)
	g := finish(t, b, addOp(b, "sum", x, old))
	if d := cmp.Diff([]string{"old unary", "store store", "sum binary"}, opNames(g)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// An operator of several outputs is taken where all of them are for the reader alone.
func TestAPatternTakesAnOperatorWithAllThatItGives(t *testing.T) {
	var between []ValueID
	rule := Fusion{
		Name: "both", Pattern: Pattern{Kinds: []string{"binary"}, Of: []Pattern{{Kinds: []string{"fork"}}}},
		Replace: func(_ *Builder, m *Match) Operator {
			between = m.Between
			fork := m.Ops[0].(*forkOp)
			return &addOneOp{fork.in, fork.in, m.Last().(*binaryOp).out}
		},
	}
	for name, c := range map[string]struct {
		build func(b *Builder, x, near, far ValueID)
		want  []string
	}{
		"one reader of both": {func(b *Builder, _, near, far ValueID) {
			b.Output(addOp(b, "sum", near, far))
		}, []string{"fork+sum addone"}},
		"another reader of one": {func(b *Builder, _, near, far ValueID) {
			b.Output(addOp(b, "sum", near, far))
			b.Output(unary(b, "end", far))
		}, []string{"fork fork", "sum binary", "end unary"}},
		"one that nobody reads": {func(b *Builder, x, near, _ ValueID) {
			b.Output(addOp(b, "sum", near, x))
		}, []string{"fork fork", "sum binary"}},
		"one that is an output": {func(b *Builder, _, near, far ValueID) {
			b.Output(addOp(b, "sum", near, far))
			b.Output(near)
		}, []string{"fork fork", "sum binary"}},
	} {
		t.Run(name, func(t *testing.T) {
			between = nil
			b := NewBuilder(gpu.DefaultLimits())
			b.Fuse(rule)
			x := rowsInput(b, "x")
			near, far := fork(b, "fork", x)
			c.build(b, x, near, far)
			g, err := b.Finish()
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, opNames(g)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			if len(c.want) == 1 && !slices.Equal(between, []ValueID{near, far}) {
				t.Errorf("between are %v, want %v", between, []ValueID{near, far})
			}
		})
	}
}

// remakeRule puts an operator of another kind together by what adds it to a graph.
func remakeRule(add func(b *Builder, name string, s *binaryOp)) Fusion {
	return Fusion{
		Name: "remake", Pattern: sumRule.Pattern,
		Replace: func(b *Builder, m *Match) Operator {
			return b.Remake(m, func(name string) { add(b, name, m.Last().(*binaryOp)) })
		},
	}
}

func TestARuleHasAnOperatorPutTogetherAsForAnyGraph(t *testing.T) {
	build := func(add func(b *Builder, name string, s *binaryOp)) (*Graph, error) {
		b := NewBuilder(gpu.DefaultLimits())
		b.Fuse(remakeRule(add))
		x := rowsInput(b, "x")
		b.Scope("layers.1.", 1, "")
		y := addOp(b, "add", x, unary(b, "one", x))
		b.Scope("layers.2.", 2, "")
		b.Output(unary(b, "end", y))
		return b.Finish()
	}
	g, err := build(func(b *Builder, name string, s *binaryOp) { routed(b, name, s.a) })
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"layers.1.one+add routed", "layers.2.end unary"}
	if d := cmp.Diff(want, opNames(g)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	o := &g.ops[0]
	if v := g.values[o.spec.Outputs[0]]; v.name != "layers.1.add" || v.producer != o.id || o.layer != 1 {
		t.Errorf("it gives %s of operator %d, in layer %d", v.name, v.producer, o.layer)
	}
	if s := g.values[o.spec.Scratch[0]].name; s != "layers.1.one+add.partial" {
		t.Errorf("its scratch is %s", s)
	}
	for want, add := range map[string]func(b *Builder, name string, s *binaryOp){
		": 0 operators were made of the match": func(*Builder, string, *binaryOp) {},
		": it gives q beside what the match gives": func(b *Builder, name string, s *binaryOp) {
			unary(b, name, s.a)
			unary(b, "q", s.a)
		},
		": it gives a tensor of type f32 as layers.1.add": func(b *Builder, name string, _ *binaryOp) {
			b.Tensor(name, F32)
		},
	} {
		want = "layers.1.one+add" + want
		if _, err := build(add); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// What a rule declared before it gave up is in no graph.
func TestARuleThatGivesUpLeavesNothing(t *testing.T) {
	build := func(rules ...Fusion) *Graph {
		b := NewBuilder(gpu.DefaultLimits())
		b.Fuse(rules...)
		x := rowsInput(b, "x")
		return finish(t, b, addOp(b, "add", x, unary(b, "one", x)))
	}
	rule := sumRule
	rule.Replace = func(b *Builder, _ *Match) Operator {
		b.Scratch("scratch", U32)
		b.Constant("c", U32, []int{4}, nil)
		return nil
	}
	if got, want := len(build(rule).values), len(build().values); got != want {
		t.Errorf("the graph has %d values, without the rule %d", got, want)
	}
}

// A value that is left to its readers at one row wakes them when it is made again, and who would read it
// there is refused.
func TestWhatIsLeftToItsReadersIsReadByNobody(t *testing.T) {
	for _, order := range []Order{Topological, Fixpoint} {
		for _, folds := range []bool{true, false} {
			b := NewBuilder(gpu.DefaultLimits())
			x := rowsInput(b, "x")
			left := b.Tensor("left", U32)
			use := func(p *Planner, slot int) {
				p.Dispatch(slot, threads(p, p.Numel(x), 64)).Params.U32("p0", p.Numel(x))
			}
			b.Add("leaves", &funcOp{
				spec: Spec{
					Kind: "leaves", Inputs: []ValueID{x}, Outputs: []ValueID{left},
					Slots: []Slot{{Uses: []Use{on(unaryKernel, x, left)}}},
				},
				corners: func(r *Ranges) []Corner { return r.Ends(x) },
				plan: func(p *Planner) error {
					if p.Dim(x, 0) == 1 {
						p.Leave(left, p.Dims(x)...)
						return nil
					}
					p.SetDims(left, p.Dims(x)...)
					use(p, 0)
					return nil
				},
			})
			out := b.Tensor("out", U32)
			b.Add("reads", &funcOp{
				spec: Spec{
					Kind: "reads", Inputs: []ValueID{left, x}, Outputs: []ValueID{out},
					Slots: []Slot{
						{Label: "folded", Uses: []Use{on(unaryKernel, x, out)}},
						{Label: "read", Uses: []Use{on(unaryKernel, left, out)}},
					},
				},
				corners: func(r *Ranges) []Corner { return r.Ends(left, x) },
				plan: func(p *Planner) error {
					p.SetDims(out, p.Dims(left)...)
					if folds && p.Dim(left, 0) == 1 {
						use(p, 0)
					} else {
						use(p, 1)
					}
					return nil
				},
			})
			l := newLive(t, finish(t, b, out), LiveOptions{Order: order})
			for _, rows := range []int{7, 1, 7} {
				err := resize(l, x, rows, width)
				switch {
				case rows == 1 && !folds:
					want := "kernel unary reads left, which is left to its readers here"
					if err == nil || !strings.Contains(err.Error(), want) {
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

// moreOp gives what a unary does, and the same once more.
type moreOp struct {
	unaryOp
	more ValueID
}

func (o *moreOp) Spec() Spec {
	s := o.unaryOp.Spec()
	s.Outputs = append(s.Outputs, o.more)
	s.Slots = append(s.Slots, Slot{Label: "more", Uses: []Use{on(unaryKernel, o.in, o.more)}})
	return s
}

func (o *moreOp) Plan(p *Planner) error {
	p.SetDims(o.more, p.Dims(o.in)...)
	p.Dispatch(1, threads(p, p.Numel(o.in), 64)).Params.U32("p0", p.Numel(o.in))
	return o.unaryOp.Plan(p)
}

// A replacement may give values that nothing gave before, and operators behind it may read those.
func TestAReplacementGivesMoreThanWhatItStandsFor(t *testing.T) {
	rule := Fusion{
		Name: "more", Pattern: Pattern{Kinds: []string{"unary"}},
		Replace: func(b *Builder, m *Match) Operator {
			o := *m.Last().(*unaryOp)
			if before, ok := b.Producer(o.in).(*moreOp); ok {
				o.in = before.more
				return &o
			}
			return &moreOp{o, b.Tensor(b.Name(o.out)+".more", U32)}
		},
	}
	b := NewBuilder(gpu.DefaultLimits())
	b.Fuse(rule)
	x := rowsInput(b, "x")
	first := unary(b, "first", x)
	g := finish(t, b, first, unary(b, "second", first))
	more := g.ops[0].spec.Outputs[1]
	v := &g.values[more]
	if v.name != "first.more" || v.producer != 0 || !slices.Equal(v.maxDims, g.values[first].maxDims) {
		t.Errorf("it gives %s %v of operator %d besides", v.name, v.maxDims, v.producer)
	}
	in := g.ops[1].spec.Inputs
	if !slices.Equal(in, []ValueID{more}) || !slices.Equal(v.consumers, []OpID{1}) {
		t.Errorf("the operator behind it reads %v, want %d, which %v read", in, more, v.consumers)
	}
}
