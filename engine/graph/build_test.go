package graph_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/engine/graph/graphtest"
)

// mapOp adds a FuncOp from x to a new tensor, with one thread per element. plan makes it wrong.
func mapOp(
	b *graph.Builder,
	x graph.ValueID,
	plan func(p *graph.Planner, out graph.ValueID) error,
) graph.ValueID {
	out := b.Tensor("y", graph.U32)
	b.Add("y", &graphtest.FuncOp{
		Declares: graph.Spec{
			Kind: "map", Inputs: []graph.ValueID{x}, Outputs: []graph.ValueID{out}, Routes: []string{
				"a",
				"b",
			},
			Slots: []graph.Slot{
				{Uses: []graph.Use{graphtest.On(graphtest.UnaryKernel, x, out)}},
				{Label: "more", Uses: []graph.Use{graphtest.On(graphtest.UnaryKernel, x, out), {}}},
				{
					Label: "either",
					Uses: []graph.Use{
						graphtest.On(graphtest.UnaryKernel, x, out),
						graphtest.On(graphtest.CopyKernel, x, out),
					},
				},
			},
		},
		Bounds: func(r *graph.Ranges) []graph.Corner { return r.Ends(x) },
		Plans:  func(p *graph.Planner) error { return plan(p, out) },
	})
	return out
}

func TestBuildRefusesOperatorsThatPlanWrongly(t *testing.T) {
	var x, other graph.ValueID
	tests := map[string]struct {
		plan func(p *graph.Planner, out graph.ValueID) error
		want string
	}{
		"reads a value that is not its argument": {func(p *graph.Planner, out graph.ValueID) error {
			p.SetDims(out, p.Dims(other)...)
			return nil
		}, "y (map) [x[512 16]]: reads value 1,"},
		"sets no shape": {
			func(p *graph.Planner, out graph.ValueID) error { return nil },
			"no dims output y",
		},
		"zero dim": {func(p *graph.Planner, out graph.ValueID) error {
			p.SetDims(out, 0)
			return nil
		}, "y: dim 0 has sizes from 0 to 0"},
		"too few params": {func(p *graph.Planner, out graph.ValueID) error {
			p.SetDims(out, p.Dims(x)...)
			p.Dispatch(0, graphtest.Threads(p, 4, 64))
			return nil
		}, "unary 1 params 0"},
		"a param of another type": {func(p *graph.Planner, out graph.ValueID) error {
			p.SetDims(out, p.Dims(x)...)
			p.Dispatch(0, graphtest.Threads(p, 4, 64)).Params.F32("p0", 1)
			return nil
		}, "p0 unary u32 f32"},
		"a param under another's name": {func(p *graph.Planner, out graph.ValueID) error {
			p.SetDims(out, p.Dims(x)...)
			p.Dispatch(0, graphtest.Threads(p, 4, 64)).Params.U32("p1", 1)
			return nil
		}, "0 unary p0 p1"},
		"one param too many": {func(p *graph.Planner, out graph.ValueID) error {
			p.SetDims(out, p.Dims(x)...)
			p.Dispatch(0, graphtest.Threads(p, 4, 64)).Params.U32("p0", 1).U32("p1", 1)
			return nil
		}, "unary 1 params 2"},
		"a grid before the route is chosen": {func(p *graph.Planner, out graph.ValueID) error {
			p.SetDims(out, p.Dims(x)...)
			p.Dispatch(2, graphtest.Threads(p, 4, 64)).Params.U32("p0", 1)
			p.Choose(1, graphtest.ReasonMany, 0b11)
			return nil
		}, `slot "either" before route`},
		"a param that overflows": {func(p *graph.Planner, out graph.ValueID) error {
			p.SetDims(out, p.Dims(x)...)
			p.Dispatch(0, graphtest.Threads(p, 4, 64)).Params.U32("p0", -1)
			return nil
		}, "param p0 of kernel unary does not fit into 32 bits"},
		"zero grid": {func(p *graph.Planner, out graph.ValueID) error {
			p.SetDims(out, p.Dims(x)...)
			p.Dispatch(0, graphtest.Threads(p, 0, 64)).Params.U32("p0", 1)
			return nil
		}, "grid 0 x 1 x 1"},
		"a slot that the route does not use": {func(p *graph.Planner, out graph.ValueID) error {
			p.SetDims(out, p.Dims(x)...)
			p.Choose(1, graphtest.ReasonMany, 0b10)
			p.Dispatch(1, graphtest.Threads(p, 4, 64)).Params.U32("p0", 1)
			return nil
		}, `"more" kernel route 1`},
		"writes an input": {func(p *graph.Planner, out graph.ValueID) error {
			p.SetDims(x, 1)
			return nil
		}, "sets value 0, output"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := graph.NewBuilder(gpu.DefaultLimits())
			x, other = graphtest.RowsInput(b, "x"), graphtest.RowsInput(b, "other")
			mapOp(b, x, test.plan)
			if _, err := b.Finish(); !graphtest.Mentions(err, test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

// If the corners omit the largest shape, a plan that exceeds them must be refused and not run.
func TestPlanThatExceedsItsCornersIsRefused(t *testing.T) {
	for want, plan := range map[string]func(p *graph.Planner, x, out, n, scratch graph.ValueID){
		"y [512 16], [8 16]": func(p *graph.Planner, x, out, n,
			scratch graph.ValueID,
		) {
			p.SetDims(out, p.Dims(x)...)
			p.SetInt(n, 8)
		},
		"s 2048 bytes, 32": func(p *graph.Planner, x, out, n,
			scratch graph.ValueID,
		) {
			p.SetDims(out, 1)
			p.SetInt(n, 8)
			p.SetDims(scratch, p.Dim(x, 0))
		},
		"n 512 8 8": func(p *graph.Planner, x, out, n, scratch graph.ValueID) {
			p.SetDims(out, 1)
			p.SetInt(n, int64(p.Dim(x, 0)))
		},
	} {
		b := graph.NewBuilder(gpu.DefaultLimits())
		x := graphtest.RowsInput(b, "x")
		out, n, scratch := b.Tensor("y", graph.F32), b.SymIntOut("n"), b.Scratch("s", graph.F32)
		b.Add("y", &graphtest.FuncOp{
			Declares: graph.Spec{
				Kind: "map", Inputs: []graph.ValueID{x}, Outputs: []graph.ValueID{
					out,
					n,
				}, Scratch: []graph.ValueID{scratch},
				Slots: []graph.Slot{{Uses: []graph.Use{graphtest.On(graphtest.UnaryKernel, x, out)}}},
			},
			Bounds: func(r *graph.Ranges) []graph.Corner {
				return []graph.Corner{{{Value: x, Dims: []int{8, graphtest.Width}}}}
			},
			Plans: func(p *graph.Planner) error {
				plan(p, x, out, n, scratch)
				p.Dispatch(0, graphtest.Threads(p, 1, 64)).Params.U32("p0", 1)
				return nil
			},
		})
		_, err := graph.NewLive(graphtest.Finish(t, b), graph.LiveOptions{})
		if !graphtest.Mentions(err, want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestFaultAtEveryPlanLeavesTheGraphUsable(t *testing.T) {
	b := graph.NewBuilder(gpu.DefaultLimits())
	x := graphtest.RowsInput(b, "x")
	n := b.SymInt("n", 1, graphtest.Rows, graphtest.Rows)
	y := x
	for i := range 4 {
		y = graphtest.Residual(b, fmt.Sprint("layer", i),
			graphtest.Cut(b, fmt.Sprint("cut", i), graphtest.Routed(b, fmt.Sprint("r", i), y), n), 2)
	}
	g := graphtest.Finish(t, b, y)
	fault := errors.New("injected")
	for _, order := range []graph.Order{graph.Topological, graph.Fixpoint} {
		for i := range g.Ops {
			l := graphtest.NewLive(t, g, graph.LiveOptions{Order: order})
			before := graphtest.State(l)
			sound := g.Replace(
				graph.OpID(i),
				&graphtest.FuncOp{Plans: func(*graph.Planner) error { return fault }},
			)
			err := graphtest.Resize(l, x, 7, graphtest.Width)
			g.Replace(graph.OpID(i), sound)
			var refused *graph.OpError
			if !errors.As(err, &refused) || refused.Op != g.Ops[i].Name || !errors.Is(err, fault) {
				t.Fatalf("%v: a fault in %s gave %v", order, g.Ops[i].Name, err)
			}
			if d := cmp.Diff(before, graphtest.State(l)); d != "" {
				t.Fatalf("%v: a fault in %s changed the state:\n%s", order, g.Ops[i].Name, d)
			}
			fresh := graphtest.NewLive(t, g, graph.LiveOptions{})
			for _, retry := range []*graph.Live{l, fresh} {
				if err := graphtest.Resize(retry, x, 7, graphtest.Width); err != nil {
					t.Fatalf("%v: after a fault in %s: %v", order, g.Ops[i].Name, err)
				}
			}
			if d := cmp.Diff(graphtest.State(fresh), graphtest.State(l)); d != "" {
				t.Fatalf("%v: a retry after a fault in %s (-fresh +retried):\n%s", order, g.Ops[i].Name, d)
			}
		}
	}
}

func TestBuildPlansAtTheMaximumShape(t *testing.T) {
	b := graph.NewBuilder(gpu.DefaultLimits())
	x := graphtest.RowsInput(b, "x")
	g := graphtest.Finish(t, b, graphtest.Residual(b, "a", graphtest.Routed(b, "r", x), 2))
	built, resized := graphtest.NewLive(
		t,
		g,
		graph.LiveOptions{},
	), graphtest.NewLive(
		t,
		g,
		graph.LiveOptions{},
	)
	for _, n := range []int{1, graphtest.Rows} {
		if err := graphtest.Resize(resized, x, n, graphtest.Width); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(graphtest.State(built), graphtest.State(resized)); d != "" {
		t.Error(d)
	}
}

// pickOp computes a SymInt from host integer 0 of its input, within 0 to 99.
type pickOp struct{ in, out graph.ValueID }

func (o *pickOp) Spec() graph.Spec {
	return graph.Spec{Kind: "pick", Inputs: []graph.ValueID{o.in}, Outputs: []graph.ValueID{o.out}}
}

func (o *pickOp) Corners(*graph.Ranges) []graph.Corner {
	return []graph.Corner{{{Value: o.in, Host: []int64{0}}}, {{Value: o.in, Host: []int64{99}}}}
}

func (o *pickOp) Plan(p *graph.Planner) error {
	n := p.HostInts(o.in)[0]
	if n < 0 || n > 99 {
		return p.Errorf("host integer %d, want 0 to 99", n)
	}
	p.SetInt(o.out, n)
	return nil
}

func TestNewHostIntegersWakeTheirReadersOnly(t *testing.T) {
	b := graph.NewBuilder(gpu.DefaultLimits())
	x := graphtest.RowsInput(b, "x")
	where := b.Input("where", graph.I32, []int{1}, []int{1})
	pos := b.SymIntOut("pos")
	b.Add("pick", &pickOp{where, pos})
	g := graphtest.Finish(
		t,
		b,
		graphtest.Cut(b, "cut", x, graphtest.Plus(b, "end", pos, graphtest.Size(b, "s", x))),
		graphtest.Unary(b, "other", where),
	)
	l := graphtest.NewLive(t, g, graph.LiveOptions{})
	set := func(n int64) error {
		if err := l.SetHost(where, []int64{n}); err != nil {
			return err
		}
		if err := l.Propagate(); err != nil {
			return err
		}
		l.Commit()
		return nil
	}
	if err := set(40); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"pick", "end", "cut"}, runs(l)); d != "" {
		t.Error(d)
	}
	if err := set(40); err != nil || len(runs(l)) != 0 {
		t.Errorf("the same integers ran %v, %v", runs(l), err)
	}
	if err := set(100); err == nil || l.Int(pos) != 40 {
		t.Errorf("an integer out of range: %v, pos is %d, want an error and 40", err, l.Int(pos))
	}
	if err := l.SetHost(where, []int64{1, 2}); err == nil ||
		!strings.Contains(err.Error(), "2 integers for dims [1]") {
		t.Errorf("too many integers: %v", err)
	}
}

// viewOp returns its input's elements as one row.
type viewOp struct{ in, out graph.ValueID }

func view(b *graph.Builder, name string, in graph.ValueID) graph.ValueID {
	out := b.Tensor(name, graph.U32)
	b.Add(name, &viewOp{in, out})
	return out
}

func (o *viewOp) Spec() graph.Spec {
	return graph.Spec{
		Kind: "view", Inputs: []graph.ValueID{o.in}, Outputs: []graph.ValueID{o.out}, Alias: true,
		Slots: []graph.Slot{{Uses: []graph.Use{graphtest.On(graphtest.CopyKernel, o.in, o.out)}}},
	}
}
func (o *viewOp) Corners(r *graph.Ranges) []graph.Corner { return r.Ends(o.in) }
func (o *viewOp) Plan(p *graph.Planner) error {
	n := p.Numel(o.in)
	p.SetDims(o.out, 1, n)
	if !p.Aliased() {
		p.Dispatch(0, graphtest.Threads(p, n, 64)).Params.U32("p0", n)
	}
	return nil
}

func TestViewIsAnAliasUnlessCopyingIsNeeded(t *testing.T) {
	b := graph.NewBuilder(gpu.DefaultLimits())
	x := graphtest.RowsInput(b, "x")
	ofInput := view(b, "of input", x)
	inner := view(b, "inner", graphtest.Unary(b, "f", ofInput))
	out := view(b, "out", graphtest.Unary(b, "g", view(b, "again", inner)))
	g := graphtest.Finish(t, b, out)
	l := graphtest.NewLive(t, g, graph.LiveOptions{})
	var copies []string
	for _, id := range l.Active() {
		if o := &g.Ops[g.Dispatches[id].Op]; o.Spec.Kind == "view" {
			copies = append(copies, o.Name)
		}
	}
	if d := cmp.Diff([]string{"of input", "out"}, copies); d != "" {
		t.Errorf("views that are copied: %s", d)
	}
	if !g.SharesMemory(inner) {
		t.Error("inner does not share its source's memory")
	}
	if err := graphtest.Resize(l, x, 7, graphtest.Width); err != nil {
		t.Fatal(err)
	}
	if got := l.Dims(out); got[1] != 7*graphtest.Width {
		t.Errorf("out is %v after a resize through aliases", got)
	}
}

func TestLevelsOfAChainAndOfARow(t *testing.T) {
	build := func(chain bool) *graph.Live {
		b := graph.NewBuilder(gpu.DefaultLimits())
		x := graphtest.RowsInput(b, "x")
		y := x
		for i := range 6 {
			in := x
			if chain {
				in = y
			}
			y = graphtest.Unary(b, fmt.Sprint("f", i), in)
		}
		return graphtest.NewLive(t, graphtest.Finish(t, b), graph.LiveOptions{})
	}
	if n := len(build(true).Levels()); n != 6 {
		t.Errorf("a chain of 6 has %d levels", n)
	}
	if n := len(build(false).Levels()); n != 1 {
		t.Errorf("a row of 6 has %d levels", n)
	}
}

func TestIndependentDispatchesStandSideBySide(t *testing.T) {
	b := graph.NewBuilder(gpu.DefaultLimits())
	x := graphtest.RowsInput(b, "x")
	// Two branches that were declared one after the other run alternately.
	left := graphtest.Unary(b, "l1", graphtest.Unary(b, "l0", x))
	right := graphtest.Unary(b, "r1", graphtest.Unary(b, "r0", x))
	g := graphtest.Finish(t, b, graphtest.AddOp(b, "join", left, right))
	var names []string
	for i := range g.Dispatches {
		names = append(names, g.Ops[g.Dispatches[i].Op].Name)
	}
	if d := cmp.Diff([]string{"l0", "r0", "l1", "r1", "join"}, names); d != "" {
		t.Error(d)
	}
	// l1 and r1 each need a barrier as the first reader of a dispatch's output. One barrier covers both
	// operands of join.
	if n := len(graphtest.NewLive(t, g, graph.LiveOptions{}).Levels()); n != 4 {
		t.Errorf("%d levels, want 4", n)
	}
}

// If only writes were ordered, the store could run first.
func TestStateIsWrittenAfterItWasRead(t *testing.T) {
	b := graph.NewBuilder(gpu.DefaultLimits())
	x, state := b.Input("x", graph.U32, []int{4}, []int{4}), b.State("state", graph.U32, []int{4})
	late := graphtest.AddOp(b, "read", graphtest.Unary(b, "u1", graphtest.Unary(b, "u0", x)), state)
	graphtest.StoreOp(b, x, state)
	g := graphtest.Finish(t, b, late)
	var names []string
	for i := range g.Dispatches {
		names = append(names, g.Ops[g.Dispatches[i].Op].Name)
	}
	if read, store := slices.Index(names, "read"), slices.Index(names, "store"); read < 0 || store < read {
		t.Errorf("submitted in the order %v, want read before store", names)
	}
}

func TestChainOfAnyLengthTakesTwoSlots(t *testing.T) {
	b := graph.NewBuilder(gpu.DefaultLimits())
	y := graphtest.RowsInput(b, "x")
	for i := range 50 {
		y = graphtest.Unary(b, fmt.Sprint("f", i), y)
	}
	if g := graphtest.Finish(t, b); g.Slots() != 2 {
		t.Errorf("%d slots", g.Slots())
	}
}

func TestTensorOverTheBindingLimitIsNamed(t *testing.T) {
	limits := gpu.DefaultLimits()
	limits.MaxStorageBinding = 1 << 10
	b := graph.NewBuilder(limits)
	graphtest.Unary(b, "f", graphtest.RowsInput(b, "x"))
	_, err := b.Finish()
	want := "input x [512 16] u32 32768 storage binding 1024"
	if !graphtest.Mentions(err, want) || !errors.Is(err, gpu.ErrUnsupported) {
		t.Errorf("error %v, want %q", err, want)
	}
}

func TestAConstantIsSharedByItsName(t *testing.T) {
	load := func() ([]byte, error) { return make([]byte, 16), nil }
	b := graph.NewBuilder(gpu.DefaultLimits())
	w := b.Constant("w", graph.F32, []int{4}, load)
	if again := b.Constant("w", graph.F32, []int{4}, load); again != w {
		t.Errorf("declared again, the constant is value %d, want %d", again, w)
	}
	if other := b.Constant("v", graph.F32, []int{4}, load); other == w {
		t.Error("a constant with another name is the same value")
	}
	if v := b.Constant("w", graph.F32, []int{2, 2}, load); v != graph.None {
		t.Errorf("with other dims, the constant is value %d", v)
	}
	if err := b.Err(); !graphtest.Mentions(err, "constant w f32 [4] f32 [2 2]") {
		t.Errorf("got %v", err)
	}
}

func TestSlotThatNoCornerUsesIsRefused(t *testing.T) {
	b := graph.NewBuilder(gpu.DefaultLimits())
	x := graphtest.RowsInput(b, "x")
	out := b.Tensor("y", graph.U32)
	b.Add("y", &graphtest.FuncOp{
		Declares: graph.Spec{
			Kind:    "map",
			Inputs:  []graph.ValueID{x},
			Outputs: []graph.ValueID{out},
			Slots: []graph.Slot{
				{Label: "always", Uses: []graph.Use{graphtest.On(graphtest.UnaryKernel, x, out)}},
				{Label: "at seven", Uses: []graph.Use{graphtest.On(graphtest.UnaryKernel, x, out)}},
			},
		},
		Bounds: func(r *graph.Ranges) []graph.Corner { return r.Ends(x) },
		Plans: func(p *graph.Planner) error {
			p.SetDims(out, p.Dims(x)...)
			p.Dispatch(0, graphtest.Threads(p, 4, 64)).Params.U32("p0", 4)
			if p.Dim(x, 0) == 7 {
				p.Dispatch(1, graphtest.Threads(p, 4, 64)).Params.U32("p0", 4)
			}
			return nil
		},
	})
	l := graphtest.NewLive(t, graphtest.Finish(t, b, out), graph.LiveOptions{})
	if err := graphtest.Resize(l, x, 7, graphtest.Width); err == nil ||
		!strings.Contains(err.Error(), `slot "at seven" has no compiled kernel`) {
		t.Errorf("error %v", err)
	}
}

func TestHostIntegersOfOtherDimsAreRefused(t *testing.T) {
	b := graph.NewBuilder(gpu.DefaultLimits())
	where := b.Input("where", graph.I32, []int{1}, []int{4})
	out := b.SymIntOut("last")
	b.Add("pick", &graphtest.FuncOp{
		Declares: graph.Spec{Kind: "pick", Inputs: []graph.ValueID{where}, Outputs: []graph.ValueID{out}},
		Bounds: func(r *graph.Ranges) []graph.Corner {
			return []graph.Corner{
				{{Value: where, Host: []int64{0, 0, 0, 0}}},
				{{Value: where, Host: []int64{0, 0, 0, 9}}},
			}
		},
		Plans: func(p *graph.Planner) error {
			n := p.Dim(where, 0)
			if host := p.HostInts(where); host != nil {
				p.SetInt(out, host[n-1])
			}
			return nil
		},
	})
	l := graphtest.NewLive(
		t,
		graphtest.Finish(
			t,
			b,
			graphtest.Cut(
				b,
				"cut",
				graphtest.RowsInput(b, "x"),
				graphtest.Plus(b, "n", out, b.SymInt("one", 1, 1, 1)),
			),
		),
		graph.LiveOptions{},
	)
	if err := graphtest.Resize(l, where, 2); err == nil ||
		!strings.Contains(err.Error(), "where: the host supplies 4 integers, but dims [2] need 2") {
		t.Errorf("dims without their integers: %v", err)
	}
	if err := errors.Join(l.SetDims(where, 2), l.SetHost(where, []int64{3, 5}), l.Propagate()); err != nil {
		t.Fatal(err)
	}
	l.Commit()
	if got := l.Int(out); got != 5 {
		t.Errorf("last is %d", got)
	}
}

func TestShapesThatOverflowAreRefused(t *testing.T) {
	huge := []int{1 << 40, 1 << 20}
	tests := map[string]func(b *graph.Builder){
		"more bits than an int64": func(b *graph.Builder) { b.Input("x", graph.F32, []int{1, 1}, huge) },
		"corners that overflow together": func(b *graph.Builder) {
			x := b.Input("x", graph.F32, []int{1, 1}, []int{2, 2})
			out := b.Tensor("y", graph.F32)
			b.Add("y", &graphtest.FuncOp{
				Declares: graph.Spec{Kind: "map", Inputs: []graph.ValueID{x}, Outputs: []graph.ValueID{out}},
				Bounds:   func(r *graph.Ranges) []graph.Corner { return r.Ends(x) },
				Plans: func(p *graph.Planner) error {
					if p.Dim(x, 0) == 2 {
						p.SetDims(out, 1<<40, 1)
					} else {
						p.SetDims(out, 1, 1<<40)
					}
					return nil
				},
			})
		},
	}
	for name, build := range tests {
		t.Run(name, func(t *testing.T) {
			b := graph.NewBuilder(gpu.DefaultLimits())
			build(b)
			if _, err := b.Finish(); !graphtest.Mentions(err,
				"1099511627776 more 144115188075855871 elements") {
				t.Errorf("error %v", err)
			}
		})
	}
	t.Run("scratch at run time", func(t *testing.T) {
		b := graph.NewBuilder(gpu.DefaultLimits())
		x := graphtest.RowsInput(b, "x")
		out, scratch := b.Tensor("y", graph.U32), b.Scratch("s", graph.U32)
		b.Add("y", &graphtest.FuncOp{
			Declares: graph.Spec{
				Kind: "map", Inputs: []graph.ValueID{x}, Outputs: []graph.ValueID{out},
				Scratch: []graph.ValueID{scratch},
			},
			Bounds: func(r *graph.Ranges) []graph.Corner { return r.Ends(x) },
			Plans: func(p *graph.Planner) error {
				p.SetDims(out, p.Dims(x)...)
				p.SetDims(scratch, 1, 1)
				if p.Dim(x, 0) == 7 {
					p.SetDims(scratch, 1<<40, 1<<40)
				}
				return nil
			},
		})
		l := graphtest.NewLive(t, graphtest.Finish(t, b, out), graph.LiveOptions{})
		if err := graphtest.Resize(l, x, 7, graphtest.Width); err == nil ||
			!strings.Contains(err.Error(), "s would") {
			t.Errorf("error %v", err)
		}
	})
}

// An operator without outputs returns None. Reading None is an error, not a panic.
func TestBuilderTakesNoneForNoValue(t *testing.T) {
	for _, v := range []graph.ValueID{graph.None, 99} {
		b := graph.NewBuilder(gpu.DefaultLimits())
		graphtest.RowsInput(b, "x")
		if b.MaxDims(v) != nil || b.MinDims(v) != nil || b.DType(v) != graph.F32 || b.Producer(v) != nil {
			t.Errorf("%d has dims %v, type %s", v, b.MaxDims(v), b.DType(v))
		}
		if b.Err() != nil {
			t.Error(b.Err())
		}
		b.Output(v)
		want := fmt.Sprintf("output: value %d", v)
		if _, err := b.Finish(); !graphtest.Mentions(err, want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
