package engine

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/fake"
	"gpuscope/engine/graph"
	"gpuscope/engine/graph/graphtest"
)

func TestMaterializedValueServesAllLaterOperators(t *testing.T) {
	for _, order := range []graph.Order{graph.Topological, graph.Fixpoint} {
		dev := fake.New(fake.Options{})
		dev.OnDispatch = compute
		b := graph.NewBuilder(dev.Info().Limits)
		x := graphtest.RowsInput(b, "x")
		left := graphtest.DeferOp(b, "left", x)
		apart := x
		for _, name := range []string{"a", "b", "c"} { // could reuse memory that is not written yet
			apart = graphtest.Unary(b, name, apart)
		}
		made := graphtest.MaterializeOp(b, "made", apart, left, false)
		out := graphtest.AddOp(b, "out", graphtest.AddOp(b, "sum", left, made), apart)
		g := graphtest.Finish(t, b, out)
		for _, o := range g.Describe().Ops {
			if got := slices.Contains(o.Makes, left); got != slices.Contains(o.Outputs, made) {
				t.Errorf("%s is described as materializing the deferred value: %v", o.Name, got)
			}
		}
		ex, err := Load(dev, g, graph.LiveOptions{Order: order}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, rows := range []int{7, 1, 7, 1} {
			in := &graph.StepInput{
				Inputs: []graph.InputData{
					{
						Value: x,
						Dims:  []int{rows, graphtest.Width},
						Data:  graphtest.BytesOf(graphtest.Pattern(rows, 0)),
					},
				},
				Read: []graph.ValueID{out},
			}
			if err := ex.Step(context.Background(), in, TimingOff); err != nil {
				t.Fatal(err)
			}
			given := uint32(1) // the deferred value: x + 1 by DeferOp, x + 4 by MaterializeOp
			if rows == 1 {
				given = 4
			}
			want := graphtest.Pattern(rows, 0)
			for i := range want {
				want[i] = 3*want[i] + given + 7
			}
			got := make([]byte, 4*rows*graphtest.Width)
			if _, err := ex.Output(out, got); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, graphtest.Words(got)); d != "" {
				t.Fatalf("%v, %d rows:\n%s", order, rows, d)
			}
			looks := allOutputs(ex)
			i := slices.IndexFunc(looks, func(l Look) bool { return l.Value == left })
			if i < 0 {
				t.Fatalf("%v, %d rows: nothing wrote the deferred value", order, rows)
			}
			if err := ex.Replay(context.Background(), looks...); err != nil {
				t.Fatal(err)
			}
			if got, want := graphtest.Words(looks[i].Into)[0], graphtest.Pattern(rows,
				0)[0]+given; got != want {
				t.Errorf("%v, %d rows: the deferred value begins with %d, want %d", order, rows, got, want)
			}
		}
		ex.Release()
		dev.Release()
	}
}

func TestFusedValuesAreMaterializedBeforeTheyAreRead(t *testing.T) {
	for want, build := range map[string]func(b *graph.Builder, x, left graph.ValueID) graph.ValueID{
		"made left": func(b *graph.Builder, x,
			left graph.ValueID,
		) graph.ValueID {
			return graphtest.AddOp(b, "sum", left, graphtest.MaterializeOp(b, "made", x, left, true))
		},
		"reads (reads) [x[1 16]] left": func(
			b *graph.Builder, x, left graph.ValueID,
		) graph.ValueID {
			out := b.Tensor("reads", graph.U32)
			b.Add("reads", &graphtest.FuncOp{
				Declares: graph.Spec{
					Kind: "reads", Inputs: []graph.ValueID{x}, Outputs: []graph.ValueID{out},
					Materializes: []graph.ValueID{left},
					Slots: []graph.Slot{{
						Uses: []graph.Use{graphtest.On(graphtest.UnaryKernel, left, out)},
					}},
				},
				Bounds: func(r *graph.Ranges) []graph.Corner { return r.Ends(x) },
				Plans: func(p *graph.Planner) error {
					p.SetDims(out, p.Dims(x)...)
					p.Dispatch(0, graphtest.Threads(p, p.Numel(x), 64)).Params.U32("p0", p.Numel(x))
					return nil
				},
			})
			return out
		},
		"early unary left": func(b *graph.Builder, x,
			left graph.ValueID,
		) graph.ValueID {
			early := graphtest.Unary(b, "early", left)
			return graphtest.AddOp(b, "sum", early, graphtest.MaterializeOp(b, "made", x, left, false))
		},
	} {
		b := graph.NewBuilder(gpu.DefaultLimits())
		x := graphtest.RowsInput(b, "x")
		l := graphtest.NewLive(
			t,
			graphtest.Finish(t, b, build(b, x, graphtest.DeferOp(b, "left", x))),
			graph.LiveOptions{},
		)
		if err := graphtest.Resize(l, x, 7, graphtest.Width); err != nil {
			t.Fatal(err)
		}
		if err := graphtest.Resize(l, x, 1, graphtest.Width); !graphtest.Mentions(err, want) {
			t.Errorf("at one row the error is %v, want %q", err, want)
		}
	}
}

func TestMaterializedValueIsNoLongerDeferred(t *testing.T) {
	b := graph.NewBuilder(gpu.DefaultLimits())
	x := graphtest.RowsInput(b, "x")
	left := graphtest.DeferOp(b, "left", x)
	seen := map[string]bool{} // whether left was deferred, by operator
	look := func(name string) graph.ValueID {
		out := b.Tensor(name, graph.U32)
		b.Add(name, &graphtest.FuncOp{
			Declares: graph.Spec{
				Kind: "looks", Inputs: []graph.ValueID{x, left}, Outputs: []graph.ValueID{out},
				Slots: []graph.Slot{{Uses: []graph.Use{graphtest.On(graphtest.UnaryKernel, x, out)}}},
			},
			Bounds: func(r *graph.Ranges) []graph.Corner { return r.Ends(x) },
			Plans: func(p *graph.Planner) error {
				seen[name] = p.Deferred(left)
				p.SetDims(out, p.Dims(x)...)
				p.Dispatch(0, graphtest.Threads(p, p.Numel(x), 64)).Params.U32("p0", p.Numel(x))
				return nil
			},
		})
		return out
	}
	early := look("early")
	made := graphtest.MaterializeOp(b, "made", x, left, false)
	l := graphtest.NewLive(
		t,
		graphtest.Finish(
			t,
			b,
			graphtest.AddOp(b, "out", graphtest.AddOp(b, "sum", early, made), look("late")),
		),
		graph.LiveOptions{},
	)
	for rows, want := range map[int]map[string]bool{
		7: {"early": false, "late": false}, 1: {"early": true, "late": false},
	} {
		if err := graphtest.Resize(l, x, rows, graphtest.Width); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, seen); d != "" {
			t.Errorf("%d rows:\n%s", rows, d)
		}
	}
}

func TestOnlyValuesOfEarlierOperatorsCanBeMaterialized(t *testing.T) {
	for want, build := range map[string]func(b *graph.Builder, x graph.ValueID){
		"materializes x;": func(b *graph.Builder, x graph.ValueID) {
			graphtest.MaterializeOp(b, "made", x, x, false)
		},
		"materializes left;": func(b *graph.Builder, x graph.ValueID) {
			left := graphtest.DeferOp(b, "left", x)
			graphtest.MaterializeOp(b, "made", x, left, false)
			graphtest.MaterializeOp(b, "again", x, left, false)
		},
	} {
		b := graph.NewBuilder(gpu.DefaultLimits())
		build(b, graphtest.RowsInput(b, "x"))
		if _, err := b.Finish(); !graphtest.Mentions(err, want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
