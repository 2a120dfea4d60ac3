package forecast

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/engine/graph/graphtest"
	"gpuscope/trace"
)

// The plan that a line reports for a dispatch at a position is the plan after a resize to that position. This
// holds for any graph, and whether or not the previous position re-planned the dispatch's operator.
func TestLineSaysThePlansThatAResizeGives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := graph.NewBuilder(gpu.DefaultLimits())
		x, other := graphtest.RowsInput(b, "x"), graphtest.RowsInput(b, "other")
		y := graphtest.Residual(b, "a", x, rapid.IntRange(1, 3).Draw(t, "ops"))
		z := graphtest.Residual(b, "c", graphtest.Routed(b, "s", other), 1)
		y = graphtest.Routed(b, "r", y)
		b.Output(y)
		b.Output(z)
		g, err := b.Finish()
		if err != nil {
			t.Fatal(err)
		}
		from := rapid.IntRange(1, 40).Draw(t, "from")
		places := rapid.SliceOfN(rapid.IntRange(1, 9), 1, 40).Draw(t, "rows of x")
		every := rapid.IntRange(1, 7).Draw(t, "places between changes of other")
		set := func(l *graph.Live, at int) error {
			return errors.Join(l.SetDims(x, places[at-from], graphtest.Width),
				l.SetDims(other, 1+(at-from)/every, graphtest.Width))
		}
		o := graph.LiveOptions{Static: rapid.Bool().Draw(t, "static")}
		line, err := Line(g, context.Background(), o, from, from+len(places)-1, set)
		if err != nil {
			t.Fatal(err)
		}
		for at := from; at <= line.To; at++ {
			l, err := graph.NewLive(g, o)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(set(l, at), l.Propagate()); err != nil {
				t.Fatal(err)
			}
			l.Commit()
			want := map[trace.DispatchID]trace.Plan{}
			plans, _ := l.Step()
			for _, p := range plans {
				p.ID, p.Params, p.Grid = -1, "", nil
				want[p.Dispatch] = p
			}
			got := map[trace.DispatchID]trace.Plan{}
			for id := range g.NumDispatches() {
				if p, runs := line.Plan(trace.DispatchID(id), at); runs {
					got[p.Dispatch] = p
				}
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Fatalf("at %d (-resized +line):\n%s", at, d)
			}
		}
	})
}

func TestLineThatGrowsEvenlyIsOneStretch(t *testing.T) {
	b := graph.NewBuilder(gpu.DefaultLimits())
	x := graphtest.RowsInput(b, "x")
	g := graphtest.Finish(t, b, graphtest.Unary(b, "u", x))
	line, err := Line(
		g,
		context.Background(),
		graph.LiveOptions{},
		1,
		128,
		func(l *graph.Live, at int) error {
			return l.SetDims(x, 4*at, graphtest.Width) // 64 elements per unit of at: one workgroup
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(line.Courses[0].Stretches); n != 1 {
		t.Errorf("%d stretches, want 1", n)
	}
}

func TestLineEndsWithContextOrRefusal(t *testing.T) {
	b := graph.NewBuilder(gpu.DefaultLimits())
	x := graphtest.RowsInput(b, "x")
	g := graphtest.Finish(t, b, graphtest.Unary(b, "u", x))
	rows := func(l *graph.Live, at int) error { return l.SetDims(x, at, graphtest.Width) }
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Line(g, ctx, graph.LiveOptions{}, 1, 512, rows); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := Line(g, context.Background(), graph.LiveOptions{}, 500, 600, rows); !errors.Is(
		err,
		graph.ErrShape,
	) {
		t.Errorf("past the largest shape: %v", err)
	}
}
