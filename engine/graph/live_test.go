package graph_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/engine/graph/graphtest"
	"gpuscope/engine/graph/grid"
	"gpuscope/trace"
)

// runs returns the names of the operators that the last propagation ran.
func runs(l *graph.Live) []string {
	var s []string
	for _, h := range l.Hooks() {
		s = append(s, h.Op)
	}
	return s
}

func TestResizeOfResidualModelMeetsNoTransientShape(t *testing.T) {
	for _, order := range []graph.Order{graph.Topological, graph.Fixpoint} {
		t.Run(order.String(), func(t *testing.T) {
			b := graph.NewBuilder(gpu.DefaultLimits())
			x := graphtest.RowsInput(b, "x")
			y := graphtest.Residual(b, "a", x, 3)
			y = graphtest.Residual(b, "b", graphtest.Routed(b, "r", y), 4)
			l := graphtest.NewLive(t, graphtest.Finish(t, b, y), graph.LiveOptions{Order: order})
			for _, n := range []int{128, 32, 7, 32, 1, 300, 512} {
				if err := graphtest.Resize(l, x, n, graphtest.Width); err != nil {
					t.Fatalf("resize to %d: %v", n, err)
				}
				fresh := graphtest.NewLive(t, l.G, graph.LiveOptions{})
				if err := graphtest.Resize(fresh, x, n, graphtest.Width); err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(graphtest.State(fresh), graphtest.State(l)); d != "" {
					t.Fatalf("after %d rows (-fresh +resized):\n%s", n, d)
				}
			}
		})
	}
}

func TestOperatorIsPlannedOncePerShapeChange(t *testing.T) {
	b := graph.NewBuilder(gpu.DefaultLimits())
	x, other := graphtest.RowsInput(b, "x"), graphtest.RowsInput(b, "other")
	y := graphtest.Residual(b, "a", x, 2)
	z := graphtest.Unary(b, "z", other)
	l := graphtest.NewLive(t, graphtest.Finish(t, b, y, z), graph.LiveOptions{})
	if err := graphtest.Resize(l, x, 7, graphtest.Width); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"a.f0", "a.f1", "a.add"}, runs(l)); d != "" {
		t.Error(d)
	}
	if err := graphtest.Resize(l, x, 7, graphtest.Width); err != nil {
		t.Fatal(err)
	}
	if got := runs(l); len(got) != 0 || l.Log().Passes() != 0 {
		t.Errorf("the same shape ran %v in %d passes", got, l.Log().Passes())
	}
	if err := graphtest.Resize(l, other, 9, graphtest.Width); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"z"}, runs(l)); d != "" {
		t.Error(d)
	}
}

func TestUnchangedOutputsTriggerNoReplanning(t *testing.T) {
	for _, order := range []graph.Order{graph.Topological, graph.Fixpoint} {
		b := graph.NewBuilder(gpu.DefaultLimits())
		x := graphtest.RowsInput(b, "x")
		n := b.SymInt("n", 1, graphtest.Rows, graphtest.Rows)
		l := graphtest.NewLive(
			t,
			graphtest.Finish(t, b, graphtest.Unary(b, "after", graphtest.Cut(b, "cut", x, n))),
			graph.LiveOptions{Order: order},
		)
		if err := graphtest.Resize(l, x, 7, graphtest.Width); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(l.SetInt(n, 20), l.Propagate()); err != nil {
			t.Fatal(err)
		}
		l.Commit()
		if d := cmp.Diff([]string{"cut"}, runs(l)); d != "" || !l.Hooks()[0].Noop {
			t.Errorf("%v: a cut of 7 rows at 20 is not a no-op, or re-planned others: %s", order, d)
		}
	}
}

func TestRefusedResizeLeavesEverythingAsItWas(t *testing.T) {
	b := graph.NewBuilder(gpu.DefaultLimits())
	x, y := graphtest.RowsInput(b, "x"), graphtest.RowsInput(b, "y")
	n := b.SymInt("n", 1, graphtest.Rows, graphtest.Rows)
	sum := graphtest.AddOp(b, "sum", graphtest.Unary(b, "fx", x), y)
	g := graphtest.Finish(t, b, graphtest.Routed(b, "out", graphtest.Cut(b, "cut", sum, n)))
	for _, order := range []graph.Order{graph.Topological, graph.Fixpoint} {
		l := graphtest.NewLive(t, g, graph.LiveOptions{Order: order})
		before := graphtest.State(l)
		tests := map[string]struct {
			do   func() error
			want string
		}{
			"rank": {func() error { return l.SetDims(x, 7) }, "x 1; 2:"},
			"zero": {
				func() error { return l.SetDims(x, 0, graphtest.Width) },
				"x: 0 0;",
			},
			"negative": {
				func() error { return l.SetDims(x, -3, graphtest.Width) },
				"x: 0 -3;",
			},
			"over max": {
				func() error { return l.SetDims(x, graphtest.Rows+1, graphtest.Width) },
				"x: 0 513; 512:",
			},
			"static dim": {
				func() error { return l.SetDims(x, graphtest.Rows, 8) },
				"x: 1 8; 16:",
			},
			"not an input": {
				func() error { return l.SetDims(sum, 7, graphtest.Width) },
				"sum tensor",
			},
			"symint range": {
				func() error { return l.SetInt(n, graphtest.Rows+1) },
				"n 513 1 512:",
			},
			"the plan's error": {
				func() error { return l.SetDims(x, 7, graphtest.Width) },
				"sum (binary) [fx[7 16] y[512 16]]: operands [7 16] and [512 16] ",
			},
		}
		for name, test := range tests {
			t.Run(order.String()+"/"+name, func(t *testing.T) {
				if err := l.SetInt(n, 5); err != nil { // discarded with the refused change
					t.Fatal(err)
				}
				err := test.do()
				if err == nil {
					err = l.Propagate()
				}
				l.Discard()
				if !graphtest.Mentions(err, test.want) {
					t.Fatalf("error %v, want %q", err, test.want)
				}
				if d := cmp.Diff(before, graphtest.State(l)); d != "" {
					t.Errorf("the state changed (-before +after):\n%s", d)
				}
			})
		}
		// The graph can be resized afterwards.
		if err := errors.Join(l.SetDims(x, 7, graphtest.Width), l.SetDims(y, 7, graphtest.Width),
			l.Propagate()); err != nil {
			t.Fatal(err)
		}
		l.Commit()
		if got := l.Dims(sum); got[0] != 7 {
			t.Errorf("sum is %v", got)
		}
	}
}

func TestRoutesFollowLiveRows(t *testing.T) {
	b := graph.NewBuilder(gpu.DefaultLimits())
	x := graphtest.RowsInput(b, "x")
	g := graphtest.Finish(t, b, graphtest.Routed(b, "r", x))
	kernels := func(l *graph.Live) (names []string) {
		for _, id := range l.Active() {
			_, k := l.Launch(id)
			names = append(names, k.Name)
		}
		return names
	}
	l := graphtest.NewLive(t, g, graph.LiveOptions{})
	for _, step := range []struct {
		rows int
		want []string
	}{{128, []string{"many", "spread"}}, {1, []string{"one"}}, {2, []string{"many", "spread"}}} {
		if err := graphtest.Resize(l, x, step.rows, graphtest.Width); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(step.want, kernels(l)); d != "" {
			t.Errorf("%d rows: %s", step.rows, d)
		}
	}

	static := graphtest.NewLive(t, g, graph.LiveOptions{Static: true})
	for _, n := range []int{1, 3} {
		if err := graphtest.Resize(static, x, n, graphtest.Width); err != nil {
			t.Fatal(err)
		}
		launch, k := static.Launch(static.Active()[0])
		if k.Name != "many" || launch.Grid.X != graphtest.Rows || launch.Needed[0] != uint32(n) {
			t.Errorf("static: kernel %s, grid %d, needed %d: want many, %d and %d", k.Name, launch.Grid.X,
				launch.Needed[0], graphtest.Rows, n)
		}
	}
}

func TestAskedRoutesAreTakenOrRefused(t *testing.T) {
	build := func(most int, target, route string) (*graph.Graph, graph.ValueID, error) {
		b := graph.NewBuilder(gpu.DefaultLimits())
		b.AskRoutes(map[string]string{target: route})
		x := b.Input("x", graph.U32, []int{1, graphtest.Width}, []int{most, graphtest.Width})
		b.Output(graphtest.Routed(b, "r", x))
		g, err := b.Finish()
		return g, x, err
	}
	for _, test := range []struct{ target, route, want string }{
		{"routed", "none", "route routed=none: r has one, many"},
		{"elsewhere", "one", "elsewhere=one: routed"},
		{"routed@s", "one", "routed@s=one: r"},
		{"routed@r", "one", "one many rows > 1"},
	} {
		if _, _, err := build(graphtest.Rows, test.target, test.route); !errors.Is(err, graph.ErrRoute) ||
			!graphtest.Mentions(err, test.want) {
			t.Errorf("%s=%s: error %v, want %q", test.target, test.route, err, test.want)
		}
	}
	g, x, err := build(graphtest.Rows, "routed", "many") // the route is requested by its kernel's name
	if err != nil {
		t.Fatal(err)
	}
	l := graphtest.NewLive(t, g, graph.LiveOptions{})
	if err := graphtest.Resize(l, x, 1, graphtest.Width); err != nil {
		t.Fatal(err)
	}
	if launch, k := l.Launch(l.Active()[0]); k.Name != "many" || launch.Grid.X != 1 {
		t.Errorf("one row runs %s with a grid of %d", k.Name, launch.Grid.X)
	}
	if _, _, err := build(1, "routed", "many"); err != nil {
		t.Errorf("a route that the operator would not choose itself: %v", err)
	}
}

// A route can be requested for a place in all layers, or for one layer. The request for one layer takes
// precedence.
func TestRouteOfAPlaceAppliesToAllLayers(t *testing.T) {
	b := graph.NewBuilder(gpu.DefaultLimits())
	b.AskRoutes(map[string]string{"routed@attn.q": "many", "routed@layers.1.attn.q": "one"})
	v := b.Input("x", graph.U32, []int{1, graphtest.Width}, []int{1, graphtest.Width})
	for layer := range 3 {
		b.Scope(fmt.Sprintf("layers.%d.attn.", layer), layer, "attn")
		v = graphtest.Routed(b, "k", graphtest.Routed(b, "q", v))
	}
	l := graphtest.NewLive(t, graphtest.Finish(t, b, v), graph.LiveOptions{})
	var names []string
	for _, id := range l.Active() {
		_, k := l.Launch(id)
		names = append(names, k.Name)
	}
	want := []string{"many", "spread", "one", "one", "one", "many", "spread", "one"}
	if d := cmp.Diff(want, names); d != "" {
		t.Error(d)
	}
}

func TestSymIntsAreOfThisStep(t *testing.T) {
	for _, order := range []graph.Order{graph.Topological, graph.Fixpoint} {
		b := graph.NewBuilder(gpu.DefaultLimits())
		x := graphtest.RowsInput(b, "x")
		pos := b.SymInt("pos", 0, 99, 0)
		end := graphtest.Plus(b, "end", pos, graphtest.Size(b, "s", graphtest.Unary(b, "f", x)))
		g := graphtest.Finish(t, b, graphtest.Cut(b, "cut", x, end))
		l := graphtest.NewLive(t, g, graph.LiveOptions{Order: order})
		if lo, hi := g.Values[end].Lo, g.Values[end].Hi; lo != 1 || hi != 99+graphtest.Rows {
			t.Errorf("range of end is %d to %d", lo, hi)
		}
		if err := errors.Join(l.SetDims(x, 7, graphtest.Width), l.SetInt(pos, 40),
			l.Propagate()); err != nil {
			t.Fatal(err)
		}
		l.Commit()
		if got := l.Int(end); got != 47 {
			t.Errorf("%v: end is %d, want 47", order, got)
		}
	}
}

func TestSlotSharingAddsNoBarrier(t *testing.T) {
	graphtest.Draws(t, 2000)
	rapid.Check(t, func(t *rapid.T) {
		g, inputs, _ := graphtest.RandomGraph(t, gpu.DefaultLimits())
		l, err := graph.NewLive(g, graph.LiveOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := graphtest.Resize(l, inputs[0], rapid.SampledFrom([]int{1, 7}).Draw(t, "rows"),
			graphtest.Width); err != nil {
			return // operands of different lengths
		}
		shared := len(l.Levels())
		apart, one, late := l.Unshared()
		// The layout records the barriers that shared memory adds. There must be no others.
		if shared < apart || shared > apart+late {
			t.Fatalf("%d levels with shared slots, %d with separate memory, want at most %d more", shared,
				apart, late)
		}
		if shared > one+late {
			t.Fatalf("%d levels in the passes of the layout, %d in one pass", shared, one)
		}
	})
}

func TestSteadyPropagationAllocatesNothing(t *testing.T) {
	b := graph.NewBuilder(gpu.DefaultLimits())
	x := graphtest.RowsInput(b, "x")
	pos := b.SymInt("pos", 1, graphtest.Rows, 1)
	y := x
	for i := range 8 {
		y = graphtest.Residual(b, fmt.Sprint("layer", i), graphtest.Cut(b, fmt.Sprint("cut", i), y, pos), 2)
	}
	l := graphtest.NewLive(t, graphtest.Finish(t, b, y), graph.LiveOptions{})
	n := int64(1)
	step := func() {
		n = n%graphtest.Rows + 1
		if err := l.SetInt(pos, n); err != nil {
			t.Fatal(err)
		}
		if err := l.Propagate(); err != nil {
			t.Fatal(err)
		}
		l.Commit()
	}
	for range graphtest.Rows { // until the log has room for the largest resize
		step()
	}
	if got := testing.AllocsPerRun(500, step); got != 0 {
		t.Errorf("%v allocations a step", got)
	}
}

func BenchmarkPropagate(b *testing.B) {
	for _, operators := range []int{100, 1000, 10000} {
		for _, order := range []graph.Order{graph.Topological, graph.Fixpoint} {
			b.Run(fmt.Sprintf("operators=%d/%v", operators, order), func(b *testing.B) {
				bl := graph.NewBuilder(gpu.DefaultLimits())
				x := graphtest.RowsInput(bl, "x")
				y := x
				for i := range operators / 4 {
					y = graphtest.Residual(bl, fmt.Sprint("r", i), y, 3)
				}
				l := graphtest.NewLive(b, graphtest.Finish(b, bl, y), graph.LiveOptions{Order: order})
				n := 1
				for b.Loop() {
					n = n%graphtest.Rows + 1
					if err := graphtest.Resize(l, x, n, graphtest.Width); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(operators),
					"ns/operator")
			})
		}
	}
}

// The corner with the most work need not have the largest grid of every slot. If a pinned grid were smaller
// than the live one, part of the work would not be done.
func TestStaticGridIsTheLargestOfAnyCorner(t *testing.T) {
	splitStatic(t, func(p *graph.Planner, n int) { // few rows are split over more workgroups than many
		l := p.Dispatch(0, p.Rows(64, 64, grid.Each("rows", 1000-n)))
		l.Params.U32("p0", n)
		l.FLOPs = int64(n)
	}, func(n int, launch *graph.Launch) {
		if launch.Grid.X != 999 || launch.Needed[0] != uint32(1000-n) {
			t.Errorf("%d rows: grid %d, needed %d, want 999 and %d", n, launch.Grid.X, launch.Needed[0],
				1000-n)
		}
	})
}

// Few rows may have more workgroups in one dimension than many rows, which have more workgroups in total.
func TestStaticGridIsTheLargestInEachDimension(t *testing.T) {
	splitStatic(t, func(p *graph.Planner, n int) {
		p.Dispatch(
			0,
			p.Tiles(64, grid.Each("rows", n), grid.Each("splits", 2+graphtest.Rows-n)),
		).Params.U32(
			"p0",
			n,
		)
	}, func(n int, launch *graph.Launch) {
		if launch.Grid.X != graphtest.Rows || launch.Grid.Y != 1+graphtest.Rows {
			t.Errorf(
				"%d rows: grid %d x %d, want %d x %d",
				n,
				launch.Grid.X,
				launch.Grid.Y,
				graphtest.Rows,
				1+graphtest.Rows,
			)
		}
	})
}

// splitStatic plans the dispatch of one operator with all grids pinned, and calls look for several numbers of
// rows.
func splitStatic(t *testing.T, plan func(p *graph.Planner, n int), look func(n int, launch *graph.Launch)) {
	t.Helper()
	b := graph.NewBuilder(gpu.DefaultLimits())
	x := graphtest.RowsInput(b, "x")
	out := b.Tensor("y", graph.U32)
	b.Add("y", &graphtest.FuncOp{
		Declares: graph.Spec{
			Kind: "split", Inputs: []graph.ValueID{x}, Outputs: []graph.ValueID{out},
			Slots: []graph.Slot{{Uses: []graph.Use{graphtest.On(graphtest.UnaryKernel, x, out)}}},
		},
		Bounds: func(r *graph.Ranges) []graph.Corner { return r.Ends(x) },
		Plans: func(p *graph.Planner) error {
			p.SetDims(out, p.Dims(x)...)
			plan(p, p.Dim(x, 0))
			return nil
		},
	})
	l := graphtest.NewLive(t, graphtest.Finish(t, b, out), graph.LiveOptions{Static: true})
	for _, n := range []int{graphtest.Rows, 7, 1} {
		if err := graphtest.Resize(l, x, n, graphtest.Width); err != nil {
			t.Fatal(err)
		}
		launch, _ := l.Launch(0)
		look(n, launch)
	}
}

// A static graph uses the route of the largest corner for all shapes, even for shapes that would use another
// route. The memory that this route needs at these shapes is allocated, and no grid is larger than the pinned
// one.
func TestStaticHasRoomForShapesOfOtherRoutes(t *testing.T) {
	b := graph.NewBuilder(gpu.DefaultLimits())
	x := graphtest.RowsInput(b, "x")
	out, scratch := b.Tensor("y", graph.U32), b.Scratch("scratch", graph.U32)
	b.Add("y", &graphtest.FuncOp{
		Declares: graph.Spec{
			Kind: "routed", Inputs: []graph.ValueID{x}, Outputs: []graph.ValueID{out},
			Scratch: []graph.ValueID{scratch},
			Routes:  []string{"few", "many"},
			Slots: []graph.Slot{
				{
					Uses: []graph.Use{
						graphtest.On(graphtest.UnaryKernel, x, out),
						graphtest.On(graphtest.UnaryKernel, x, scratch),
					},
				},
			},
		},
		Bounds: func(r *graph.Ranges) []graph.Corner { return r.Ends(x) },
		Plans: func(p *graph.Planner) error { // on this route few rows need more than many
			n, preferred := p.Dim(x, 0), 0
			if n == graphtest.Rows {
				preferred = 1
			}
			p.SetDims(out, p.Dims(x)...)
			work := n
			if p.Choose(preferred, graphtest.ReasonMany, 0b11) == 1 {
				work = 1000 - n
				p.SetDims(scratch, work)
			}
			p.Dispatch(0, p.Rows(64, 64, grid.Each("work", work))).Params.U32("p0", n)
			return nil
		},
	})
	g := graphtest.Finish(t, b, out)
	if most := g.Describe().Dispatches[0].MaxWorkgroups[0]; most != 999 {
		t.Errorf("at most %d workgroups, want 999", most)
	}
	for _, static := range []bool{false, true} {
		l := graphtest.NewLive(t, g, graph.LiveOptions{Static: static})
		for _, n := range []int{graphtest.Rows, 7, 1} {
			if err := graphtest.Resize(l, x, n, graphtest.Width); err != nil {
				t.Fatalf("static %v, %d rows: %v", static, n, err)
			}
			if launch, _ := l.Launch(0); static && launch.Grid.X != 999 {
				t.Errorf("%d rows: grid %d, want 999", n, launch.Grid.X)
			}
		}
	}
}

func TestSlotHoldsOneValueAtATime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, _, _ := graphtest.RandomGraph(t, gpu.DefaultLimits())
		slots := rapid.SampledFrom(g.SlotsOf()).Draw(t, "layout")
		holds, left := map[int]graph.ValueID{}, map[graph.ValueID]bool{}
		for i := range g.Dispatches {
			for _, root := range g.Touches(trace.DispatchID(i)) {
				slot := slots[root]
				if was, ok := holds[slot]; ok && was != root {
					left[was] = true
				}
				if slot >= 0 && left[root] {
					t.Fatalf("dispatch %d uses %s, whose slot %d was reused", i, g.Values[root].Name,
						slot)
				}
				holds[slot] = root
			}
		}
	})
}
