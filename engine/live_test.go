package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gpuscope/engine/gpu"
	"gpuscope/trace"
)

// runs is which operators the last propagation ran, by name.
func runs(l *Live) []string {
	var s []string
	for _, h := range l.Hooks() {
		s = append(s, h.Op)
	}
	return s
}

func TestResizeOfResidualModelMeetsNoTransientShape(t *testing.T) {
	for _, order := range []Order{Topological, Fixpoint} {
		t.Run(order.String(), func(t *testing.T) {
			b := NewBuilder(gpu.DefaultLimits())
			x := rowsInput(b, "x")
			y := residual(b, "a", x, 3)
			y = residual(b, "b", routed(b, "r", y), 4)
			l := newLive(t, finish(t, b, y), LiveOptions{Order: order})
			for _, n := range []int{128, 32, 7, 32, 1, 300, 512} {
				if err := resize(l, x, n, width); err != nil {
					t.Fatalf("resize to %d: %v", n, err)
				}
				fresh := newLive(t, l.g, LiveOptions{})
				if err := resize(fresh, x, n, width); err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(state(fresh), state(l)); d != "" {
					t.Fatalf("after %d rows (-fresh +resized):\n%s", n, d)
				}
			}
		})
	}
}

func TestOperatorRunsOncePerChangeAndNotAtAllForTheSameShape(t *testing.T) {
	b := NewBuilder(gpu.DefaultLimits())
	x, other := rowsInput(b, "x"), rowsInput(b, "other")
	y := residual(b, "a", x, 2)
	z := unary(b, "z", other)
	l := newLive(t, finish(t, b, y, z), LiveOptions{})
	if err := resize(l, x, 7, width); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"a.f0", "a.f1", "a.add"}, runs(l)); d != "" {
		t.Error(d)
	}
	if err := resize(l, x, 7, width); err != nil {
		t.Fatal(err)
	}
	if got := runs(l); len(got) != 0 || l.Log().Passes() != 0 {
		t.Errorf("the same shape ran %v in %d passes", got, l.Log().Passes())
	}
	if err := resize(l, other, 9, width); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"z"}, runs(l)); d != "" {
		t.Error(d)
	}
}

func TestOperatorWhoseOutputsKeepWakesNobody(t *testing.T) {
	for _, order := range []Order{Topological, Fixpoint} {
		b := NewBuilder(gpu.DefaultLimits())
		x := rowsInput(b, "x")
		n := b.SymInt("n", 1, rows, rows)
		l := newLive(t, finish(t, b, unary(b, "after", cut(b, "cut", x, n))), LiveOptions{Order: order})
		if err := resize(l, x, 7, width); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(l.SetInt(n, 20), l.Propagate()); err != nil {
			t.Fatal(err)
		}
		l.Commit()
		if d := cmp.Diff([]string{"cut"}, runs(l)); d != "" || !l.Hooks()[0].Noop {
			t.Errorf("%v: a cut of 7 rows at 20 is no no-op, or woke others: %s", order, d)
		}
	}
}

func TestRefusedResizeLeavesEverythingAsItWas(t *testing.T) {
	b := NewBuilder(gpu.DefaultLimits())
	x, y := rowsInput(b, "x"), rowsInput(b, "y")
	n := b.SymInt("n", 1, rows, rows)
	sum := addOp(b, "sum", unary(b, "fx", x), y)
	g := finish(t, b, routed(b, "out", cut(b, "cut", sum, n)))
	for _, order := range []Order{Topological, Fixpoint} {
		l := newLive(t, g, LiveOptions{Order: order})
		before := state(l)
		tests := map[string]struct {
			do   func() error
			want string
		}{
			"rank": {func() error { return l.SetDims(x, 7) }, "input x: rank 1, want rank 2"},
			"zero": {
				func() error { return l.SetDims(x, 0, width) },
				"dim 0 is 0, must be positive",
			},
			"negative": {
				func() error { return l.SetDims(x, -3, width) },
				"dim 0 is -3, must be positive",
			},
			"over max": {
				func() error { return l.SetDims(x, rows+1, width) },
				"dim 0 is 513, at most 512",
			},
			"static dim":   {func() error { return l.SetDims(x, rows, 8) }, "dim 1 is 8, at least 16"},
			"not an input": {func() error { return l.SetDims(sum, 7, width) }, "sum is no tensor input"},
			"symint range": {func() error { return l.SetInt(n, rows+1) }, "symint n: 513, want 1 to 512"},
			"the plan's error": {
				func() error { return l.SetDims(x, 7, width) },
				"sum (binary) [fx[7 16] y[512 16]]: operands [7 16] and [512 16] are not of one shape",
			},
		}
		for name, test := range tests {
			t.Run(order.String()+"/"+name, func(t *testing.T) {
				if err := l.SetInt(n, 5); err != nil { // goes too when the other is refused
					t.Fatal(err)
				}
				err := test.do()
				if err == nil {
					err = l.Propagate()
				}
				l.Discard()
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Fatalf("error %v, want %q", err, test.want)
				}
				if d := cmp.Diff(before, state(l)); d != "" {
					t.Errorf("state moved (-before +after):\n%s", d)
				}
			})
		}
		// and the graph can be resized after it
		if err := errors.Join(l.SetDims(x, 7, width), l.SetDims(y, 7, width), l.Propagate()); err != nil {
			t.Fatal(err)
		}
		l.Commit()
		if got := l.Dims(sum); got[0] != 7 {
			t.Errorf("sum is %v", got)
		}
	}
}

func TestRoutesFollowLiveRows(t *testing.T) {
	b := NewBuilder(gpu.DefaultLimits())
	x := rowsInput(b, "x")
	g := finish(t, b, routed(b, "r", x))
	kernels := func(l *Live) (names []string) {
		for _, id := range l.Active() {
			_, k := l.Launch(id)
			names = append(names, k.Name)
		}
		return names
	}
	l := newLive(t, g, LiveOptions{})
	for _, step := range []struct {
		rows int
		want []string
	}{{128, []string{"many", "spread"}}, {1, []string{"one"}}, {2, []string{"many", "spread"}}} {
		if err := resize(l, x, step.rows, width); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(step.want, kernels(l)); d != "" {
			t.Errorf("%d rows: %s", step.rows, d)
		}
	}

	static := newLive(t, g, LiveOptions{Static: true})
	for _, n := range []int{1, 3} {
		if err := resize(static, x, n, width); err != nil {
			t.Fatal(err)
		}
		launch, k := static.Launch(static.Active()[0])
		if k.Name != "many" || launch.Grid.X != rows || launch.needed[0] != uint32(n) {
			t.Errorf("static: kernel %s, grid %d, needed %d: want many, %d and %d", k.Name, launch.Grid.X,
				launch.needed[0], rows, n)
		}
	}
}

func TestAskedRoutesAreTakenOrRefused(t *testing.T) {
	build := func(most int, target, route string) (*Graph, ValueID, error) {
		b := NewBuilder(gpu.DefaultLimits())
		b.AskRoutes(map[string]string{target: route})
		x := b.Input("x", U32, []int{1, width}, []int{most, width})
		b.Output(routed(b, "r", x))
		g, err := b.Finish()
		return g, x, err
	}
	for _, test := range []struct{ target, route, want string }{
		{"routed", "none", "route routed=none: r has one, many"},
		{"elsewhere", "one", "route elsewhere=one: the graph has no such operator; its kinds with routes are routed"},
		{"routed@s", "one", "route routed@s=one: the graph has no such operator; of its kind are r"},
		{"routed@r", "one", "route one cannot do this shape (it would take many, rows > 1)"},
	} {
		if _, _, err := build(rows, test.target, test.route); !errors.Is(err, ErrRoute) ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("%s=%s: error %v, want %q", test.target, test.route, err, test.want)
		}
	}
	g, x, err := build(rows, "routed", "many") // by the name of its kernel it is asked for too
	if err != nil {
		t.Fatal(err)
	}
	l := newLive(t, g, LiveOptions{})
	if err := resize(l, x, 1, width); err != nil {
		t.Fatal(err)
	}
	if launch, k := l.Launch(l.Active()[0]); k.Name != "many" || launch.Grid.X != 1 {
		t.Errorf("one row runs %s with a grid of %d", k.Name, launch.Grid.X)
	}
	if _, _, err := build(1, "routed", "many"); err != nil {
		t.Errorf("a route that the operator would not take by itself: %v", err)
	}
}

// A route is asked for by a place in all layers, and by one of them, which counts for more.
func TestRoutesAreAskedOfAPlaceInAllLayers(t *testing.T) {
	b := NewBuilder(gpu.DefaultLimits())
	b.AskRoutes(map[string]string{"routed@attn.q": "many", "routed@layers.1.attn.q": "one"})
	v := b.Input("x", U32, []int{1, width}, []int{1, width})
	for layer := range 3 {
		b.Scope(fmt.Sprintf("layers.%d.attn.", layer), layer, "attn")
		v = routed(b, "k", routed(b, "q", v))
	}
	l := newLive(t, finish(t, b, v), LiveOptions{})
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
	for _, order := range []Order{Topological, Fixpoint} {
		b := NewBuilder(gpu.DefaultLimits())
		x := rowsInput(b, "x")
		pos := b.SymInt("pos", 0, 99, 0)
		end := plus(b, "end", pos, size(b, "s", unary(b, "f", x)))
		g := finish(t, b, cut(b, "cut", x, end))
		l := newLive(t, g, LiveOptions{Order: order})
		if lo, hi := g.values[end].lo, g.values[end].hi; lo != 1 || hi != 99+rows {
			t.Errorf("range of end is %d to %d", lo, hi)
		}
		if err := errors.Join(l.SetDims(x, 7, width), l.SetInt(pos, 40), l.Propagate()); err != nil {
			t.Fatal(err)
		}
		l.Commit()
		if got := l.Int(end); got != 47 {
			t.Errorf("%v: end is %d, want 47", order, got)
		}
	}
}

func TestSlotSharingAddsNoBarrier(t *testing.T) {
	draws(t, 2000)
	rapid.Check(t, func(t *rapid.T) {
		g, inputs, _ := randomGraph(t, gpu.DefaultLimits())
		l, err := NewLive(g, LiveOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := resize(l, inputs[0], rapid.SampledFrom([]int{1, 7}).Draw(t, "rows"), width); err != nil {
			return // operands of two lengths
		}
		shared := len(l.Levels())
		apart, one, late := l.Unshared()
		// The barriers that values were given for their memory are known, and no others are there.
		if shared < apart || shared > apart+late {
			t.Fatalf("%d levels with shared slots, %d with memory of their own, want %d more at most", shared,
				apart, late)
		}
		if shared > one+late {
			t.Fatalf("%d levels in the passes that memory asks for, %d in one pass", shared, one)
		}
	})
}

func TestSteadyPropagationAllocatesNothing(t *testing.T) {
	b := NewBuilder(gpu.DefaultLimits())
	x := rowsInput(b, "x")
	pos := b.SymInt("pos", 1, rows, 1)
	y := x
	for i := range 8 {
		y = residual(b, fmt.Sprint("layer", i), cut(b, fmt.Sprint("cut", i), y, pos), 2)
	}
	l := newLive(t, finish(t, b, y), LiveOptions{})
	n := int64(1)
	step := func() {
		n = n%rows + 1
		if err := l.SetInt(pos, n); err != nil {
			t.Fatal(err)
		}
		if err := l.Propagate(); err != nil {
			t.Fatal(err)
		}
		l.Commit()
	}
	for range rows { // the log's memory grows to what the largest resize takes
		step()
	}
	if got := testing.AllocsPerRun(500, step); got != 0 {
		t.Errorf("%v allocations a step", got)
	}
}

func BenchmarkPropagate(b *testing.B) {
	for _, operators := range []int{100, 1000, 10000} {
		for _, order := range []Order{Topological, Fixpoint} {
			b.Run(fmt.Sprintf("operators=%d/%v", operators, order), func(b *testing.B) {
				bl := NewBuilder(gpu.DefaultLimits())
				x := rowsInput(bl, "x")
				y := x
				for i := range operators / 4 {
					y = residual(bl, fmt.Sprint("r", i), y, 3)
				}
				l := newLive(b, finish(b, bl, y), LiveOptions{Order: order})
				n := 1
				for b.Loop() {
					n = n%rows + 1
					if err := resize(l, x, n, width); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(operators),
					"ns/operator")
			})
		}
	}
}

// The corner with the most work need not have the largest grid of every slot: a pinned grid smaller than the
// live one would leave work undone.
func TestStaticGridIsTheLargestOfAnyCorner(t *testing.T) {
	splitStatic(t, func(p *Planner, n int) { // few rows are split over more workgroups than many are
		l := p.Dispatch(0, p.Rows(64, 64, Each("rows", 1000-n)))
		l.Params.U32("p0", n)
		l.FLOPs = int64(n)
	}, func(n int, launch *Launch) {
		if launch.Grid.X != 999 || launch.needed[0] != uint32(1000-n) {
			t.Errorf("%d rows: grid %d, needed %d, want 999 and %d", n, launch.Grid.X, launch.needed[0],
				1000-n)
		}
	})
}

// Few rows may be split over more workgroups in one dimension than many are, which have more of them in all.
func TestStaticGridIsTheLargestInEachDimension(t *testing.T) {
	splitStatic(t, func(p *Planner, n int) {
		p.Dispatch(0, p.Tiles(64, Each("rows", n), Each("splits", 2+rows-n))).Params.U32("p0", n)
	}, func(n int, launch *Launch) {
		if launch.Grid.X != rows || launch.Grid.Y != 1+rows {
			t.Errorf("%d rows: grid %d x %d, want %d x %d", n, launch.Grid.X, launch.Grid.Y, rows, 1+rows)
		}
	})
}

// splitStatic plans the dispatch of one operator with all grids pinned, and looks at it at several numbers of
// rows.
func splitStatic(t *testing.T, plan func(p *Planner, n int), look func(n int, launch *Launch)) {
	t.Helper()
	b := NewBuilder(gpu.DefaultLimits())
	x := rowsInput(b, "x")
	out := b.Tensor("y", U32)
	b.Add("y", &funcOp{
		spec: Spec{
			Kind: "split", Inputs: []ValueID{x}, Outputs: []ValueID{out},
			Slots: []Slot{{Uses: []Use{on(unaryKernel, x, out)}}},
		},
		corners: func(r *Ranges) []Corner { return r.Ends(x) },
		plan: func(p *Planner) error {
			p.SetDims(out, p.Dims(x)...)
			plan(p, p.Dim(x, 0))
			return nil
		},
	})
	l := newLive(t, finish(t, b, out), LiveOptions{Static: true})
	for _, n := range []int{rows, 7, 1} {
		if err := resize(l, x, n, width); err != nil {
			t.Fatal(err)
		}
		launch, _ := l.Launch(0)
		look(n, launch)
	}
}

// Static takes the route of the largest corner to shapes that would take another: what they need there is
// allocated, and no grid is larger than the one that is pinned.
func TestStaticHasRoomForShapesOfOtherRoutes(t *testing.T) {
	b := NewBuilder(gpu.DefaultLimits())
	x := rowsInput(b, "x")
	out, scratch := b.Tensor("y", U32), b.Scratch("scratch", U32)
	b.Add("y", &funcOp{
		spec: Spec{
			Kind: "routed", Inputs: []ValueID{x}, Outputs: []ValueID{out}, Scratch: []ValueID{scratch},
			Routes: []string{"few", "many"},
			Slots:  []Slot{{Uses: []Use{on(unaryKernel, x, out), on(unaryKernel, x, scratch)}}},
		},
		corners: func(r *Ranges) []Corner { return r.Ends(x) },
		plan: func(p *Planner) error { // on the route of many rows few need more than these
			n, preferred := p.Dim(x, 0), 0
			if n == rows {
				preferred = 1
			}
			p.SetDims(out, p.Dims(x)...)
			work := n
			if p.Choose(preferred, reasonMany, 0b11) == 1 {
				work = 1000 - n
				p.SetDims(scratch, work)
			}
			p.Dispatch(0, p.Rows(64, 64, Each("work", work))).Params.U32("p0", n)
			return nil
		},
	})
	g := finish(t, b, out)
	if most := g.Describe().Dispatches[0].MaxWorkgroups[0]; most != 999 {
		t.Errorf("at most %d workgroups, want 999", most)
	}
	for _, static := range []bool{false, true} {
		l := newLive(t, g, LiveOptions{Static: static})
		for _, n := range []int{rows, 7, 1} {
			if err := resize(l, x, n, width); err != nil {
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
		g, _, _ := randomGraph(t, gpu.DefaultLimits())
		slots := rapid.SampledFrom(g.SlotsOf()).Draw(t, "layout")
		holds, left := map[int]ValueID{}, map[ValueID]bool{}
		for i := range g.dispatches {
			for _, root := range g.Touches(trace.DispatchID(i)) {
				slot := slots[root]
				if was, ok := holds[slot]; ok && was != root {
					left[was] = true
				}
				if slot >= 0 && left[root] {
					t.Fatalf("dispatch %d touches %s, whose slot %d has passed on", i, g.values[root].name,
						slot)
				}
				holds[slot] = root
			}
		}
	})
}
