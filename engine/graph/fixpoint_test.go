package graph_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/engine/graph/graphtest"
	"gpuscope/internal/wordingtest"
)

func TestFixpointBoundNamesWhatIsStillDirty(t *testing.T) {
	b := graph.NewBuilder(gpu.DefaultLimits())
	x := graphtest.RowsInput(b, "x")
	y := x
	for i := range 5 {
		y = graphtest.Unary(b, fmt.Sprint("f", i), y)
	}
	l := graphtest.NewLive(
		t,
		graphtest.Finish(t, b, y),
		graph.LiveOptions{Order: graph.Fixpoint, MaxPasses: 3},
	)
	before := graphtest.State(l)
	err := graphtest.Resize(l, x, 7, graphtest.Width)
	wordingtest.New(t).Error("resize", err)
	if d := cmp.Diff(before, graphtest.State(l)); d != "" {
		t.Error(d)
	}
}

func TestFixpointRecordsGlitchesAndDeferrals(t *testing.T) {
	b := graph.NewBuilder(gpu.DefaultLimits())
	x := graphtest.RowsInput(b, "x")
	y := graphtest.Residual(b, "a", x, 2)
	l := graphtest.NewLive(
		t,
		graphtest.Finish(t, b, graphtest.Unary(b, "end", y)),
		graph.LiveOptions{Order: graph.Fixpoint},
	)
	if err := graphtest.Resize(l, x, 7, graphtest.Width); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, h := range l.Hooks() {
		got = append(
			got,
			fmt.Sprintf(
				"pass %d %s noop=%v glitch=%v deferred=%v",
				h.Pass,
				h.Op,
				h.Noop,
				h.Glitch,
				h.Deferred,
			),
		)
	}
	want := []string{
		"pass 0 a.f0 noop=false glitch=false deferred=false",
		"pass 0 a.add noop=false glitch=true deferred=true", // x has its new size, f1 its old size
		"pass 1 a.f1 noop=false glitch=false deferred=false",
		"pass 1 a.add noop=false glitch=false deferred=false",
		"pass 2 a.add noop=true glitch=false deferred=false",
		"pass 2 end noop=false glitch=false deferred=false",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// A run that was refused has not processed its changes, so the next run lists their causes again.
func TestFixpointRecordsTheCauseOfARepeatedRun(t *testing.T) {
	b := graph.NewBuilder(gpu.DefaultLimits())
	x := graphtest.RowsInput(b, "x")
	far, near := x, x
	for i := range 4 {
		far = graphtest.Unary(b, fmt.Sprint("far", i), far)
	}
	near = graphtest.Unary(b, "near", near)
	l := graphtest.NewLive(
		t,
		graphtest.Finish(t, b, graphtest.AddOp(b, "sum", near, far)),
		graph.LiveOptions{Order: graph.Fixpoint},
	)
	if err := graphtest.Resize(l, x, 7, graphtest.Width); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, h := range l.Hooks() {
		got = append(got, fmt.Sprintf("pass %d %s by %s", h.Pass, h.Op, strings.Join(h.Triggers, " ")))
	}
	want := []string{
		"pass 0 far0 by x", "pass 0 near by x",
		"pass 1 far1 by far0", "pass 1 sum by near",
		"pass 2 far2 by far1", "pass 2 sum by near",
		"pass 3 far3 by far2", "pass 3 sum by near far3",
		"pass 4 sum by far3",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestBothOrdersEndAsAFreshGraph(t *testing.T) {
	graphtest.Draws(t, 10000)
	rapid.Check(t, func(t *rapid.T) {
		g, inputs, pos := graphtest.RandomGraph(t, gpu.DefaultLimits())
		var lives [2]*graph.Live
		for i, order := range []graph.Order{graph.Topological, graph.Fixpoint} {
			l, err := graph.NewLive(g, graph.LiveOptions{Order: order})
			if err != nil {
				t.Fatal(err)
			}
			lives[i] = l
		}
		for range rapid.IntRange(1, 6).Draw(t, "resizes") {
			set := map[graph.ValueID]int{}
			for _, v := range inputs {
				if rapid.Bool().Draw(t, "resize it") {
					set[v] = rapid.OneOf(rapid.Just(1), rapid.IntRange(1, graphtest.Rows)).Draw(t, "rows")
				}
			}
			at := rapid.IntRange(1, graphtest.Rows).Draw(t, "pos")
			apply := func(l *graph.Live) error {
				for v, n := range set {
					if err := l.SetDims(v, n, graphtest.Width); err != nil {
						return err
					}
				}
				if err := errors.Join(l.SetInt(pos, int64(at)), l.Propagate()); err != nil {
					return err
				}
				l.Commit()
				return nil
			}
			before := graphtest.State(lives[0])
			errTop, errFix := apply(lives[0]), apply(lives[1])
			if fmt.Sprint(errTop) != fmt.Sprint(errFix) {
				t.Fatalf("topological: %v\nfixpoint: %v", errTop, errFix)
			}
			want := before
			if errTop == nil {
				fresh, err := graph.NewLive(g, graph.LiveOptions{})
				if err != nil {
					t.Fatal(err)
				}
				for _, v := range inputs {
					if err := fresh.SetDims(v, lives[0].Dims(v)...); err != nil {
						t.Fatal(err)
					}
				}
				if err := errors.Join(fresh.SetInt(pos, int64(at)), fresh.Propagate()); err != nil {
					t.Fatal(err)
				}
				fresh.Commit()
				want = graphtest.State(fresh)
			}
			for i, l := range lives {
				if d := cmp.Diff(want, graphtest.State(l)); d != "" {
					t.Fatalf("%v (-fresh +resized):\n%s", graph.Order(i), d)
				}
			}
			seen := map[string]bool{}
			for _, h := range lives[0].Hooks() {
				if seen[h.Op] || h.Glitch {
					t.Fatalf("topological order ran %s twice, or too early", h.Op)
				}
				seen[h.Op] = true
			}
		}
	})
}

func TestBothOrdersNameTheSameRefusal(t *testing.T) {
	b := graph.NewBuilder(gpu.DefaultLimits())
	x, y := graphtest.RowsInput(b, "x"), graphtest.RowsInput(b, "y")
	sum := graphtest.AddOp(b, "sum", graphtest.Unary(b, "fx", x), y)
	n := b.SymInt("n", 1, graphtest.Rows, graphtest.Rows)
	m := b.SymIntOut("m")
	b.Add("m", &graphtest.FuncOp{
		Declares: graph.Spec{Kind: "half", Inputs: []graph.ValueID{n}, Outputs: []graph.ValueID{m}},
		Bounds:   func(r *graph.Ranges) []graph.Corner { return r.Ends(n) },
		Plans: func(p *graph.Planner) error {
			if p.Int(n) == 13 {
				return p.Errorf("13 is no number")
			}
			p.SetInt(m, int64(p.Int(n)))
			return nil
		},
	})
	g := graphtest.Finish(t, b, graphtest.Cut(b, "cut", sum, m))
	var errs [2]string
	for i, order := range []graph.Order{graph.Topological, graph.Fixpoint} {
		l := graphtest.NewLive(t, g, graph.LiveOptions{Order: order})
		errs[i] = fmt.Sprint(errors.Join(l.SetDims(x, 7, graphtest.Width), l.SetInt(n, 13), l.Propagate()))
	}
	if errs[0] != errs[1] || !strings.Contains(errs[0], "sum (binary)") {
		t.Errorf("topological: %s\nfixpoint: %s", errs[0], errs[1])
	}
}

// Graphs have no cycles and plans are pure, so operators + 1 passes are always enough. With fewer passes
// allowed, or with a plan that flips between two results, the propagation must end in an error.
func TestFixpointBoundHoldsForAnOperatorThatFlips(t *testing.T) {
	b := graph.NewBuilder(gpu.DefaultLimits())
	x := graphtest.RowsInput(b, "x")
	out := b.Tensor("flip", graph.U32)
	calls := 0
	b.Add("flip", &graphtest.FuncOp{
		Declares: graph.Spec{
			Kind: "flip", Inputs: []graph.ValueID{x}, Outputs: []graph.ValueID{out},
			Slots: []graph.Slot{{Uses: []graph.Use{graphtest.On(graphtest.UnaryKernel, x, out)}}},
		},
		Bounds: func(r *graph.Ranges) []graph.Corner { return r.Ends(x) },
		Plans: func(p *graph.Planner) error {
			calls++
			p.SetDims(out, 1+calls%2, graphtest.Width)
			p.Dispatch(0, graphtest.Threads(p, 1, 64)).Params.U32("p0", calls%2)
			return nil
		},
	})
	y := out
	for i := range 4 {
		y = graphtest.Unary(b, fmt.Sprint("after", i), y)
	}
	l := graphtest.NewLive(
		t,
		graphtest.Finish(t, b, y),
		graph.LiveOptions{Order: graph.Fixpoint, MaxPasses: 3},
	)
	before := graphtest.State(l)
	err := graphtest.Resize(l, x, 7, graphtest.Width)
	wordingtest.New(t).Error("resize", err)
	if d := cmp.Diff(before, graphtest.State(l)); d != "" {
		t.Error(d)
	}
}

// A plan can also succeed with operands of different ages: here the cut of 7 rows, at the previous size of x.
func TestFixpointMarksARunThatSucceededTooEarly(t *testing.T) {
	b := graph.NewBuilder(gpu.DefaultLimits())
	x := graphtest.RowsInput(b, "x")
	l := graphtest.NewLive(
		t,
		graphtest.Finish(
			t,
			b,
			graphtest.Cut(b, "cut", x, graphtest.Size(b, "s", graphtest.Unary(b, "f", x))),
		),
		graph.LiveOptions{Order: graph.Fixpoint},
	)
	if err := graphtest.Resize(l, x, 7, graphtest.Width); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, h := range l.Hooks() {
		got = append(got, fmt.Sprintf("%s glitch=%v deferred=%v", h.Op, h.Glitch, h.Deferred))
	}
	want := []string{
		"f glitch=false deferred=false", "cut glitch=true deferred=false",
		"s glitch=false deferred=false", "cut glitch=false deferred=false",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
