package ops

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/engine/graph"
	"gpuscope/internal/wordingtest"
	"gpuscope/ops/basic"
	"gpuscope/ops/kind"
)

// shown makes a SymInt of 1 to most visible, as the length of a slice.
func shown(b *graph.Builder, v graph.ValueID, most int) {
	b.Output(basic.Slice(b, "rows", constant(b, "table", most, 4), 0, kind.Fixed(0), kind.Sym(v)))
}

func sampleSymSize(t *rapid.T) *trial {
	n := draw(t, "rows", 1, 100)
	c := &trial{
		build: func(b *graph.Builder) {
			shown(b, basic.SymSize(b, "n", b.Input("x", graph.F32, []int{1, 3}, []int{n, 3}), 0), n)
		},
	}
	c.steps = drawSteps(t, func(int) step { return step{"x": {draw(t, "live rows", 1, n), 3}} })
	return c
}

func sampleSelectAsSymInt(t *rapid.T) *trial {
	n := draw(t, "elements", 1, 10)
	hi := draw(t, "largest", 1, 50)
	c := &trial{
		build: func(b *graph.Builder) {
			x := b.Input("x", graph.I32, []int{2, 1}, []int{2, n})
			at := []int{rapid.SampledFrom([]int{0, 1, -2}).Draw(t, "row"), rapid.SampledFrom([]int{0, -1}).Draw(t, "index")}
			shown(b, basic.SelectAsSymInt(b, "n", x, at, 1, int64(hi)), hi)
		},
		fill: map[string]func(int) float64{"x": func(i int) float64 { return float64(1 + i%hi) }},
	}
	c.steps = drawSteps(t, func(int) step { return step{"x": {2, draw(t, "live elements", 1, n)}} })
	return c
}

// sampleSymBinary draws a graph that shows the result plus an offset. The offset makes it positive, and adds
// an operator.
func sampleSymBinary(t *rapid.T, kindName string) *trial {
	drawRange := func(name string) (lo, hi int) {
		lo = rapid.IntRange(-20, 20).Draw(t, name+" lo")
		return lo, lo + rapid.IntRange(0, 20).Draw(t, name+" range")
	}
	alo, ahi := drawRange("a")
	blo, bhi := drawRange("b")
	if blo == 0 && bhi == 0 {
		bhi = 1
	}
	c := &trial{
		build: func(b *graph.Builder) {
			x, y := b.SymInt("a", int64(alo), int64(ahi), int64(ahi)),
				b.SymInt("b", int64(blo), int64(bhi), int64(cond(bhi == 0, blo, bhi)))
			v := KindOf(kindName).BuildOne(b, "n", kind.Args{"a": kind.Sym(x), "b": kind.Sym(y)})
			shown(b, basic.SymAdd(b, "positive", kind.Sym(v), kind.Fixed(2001)), 4001)
		},
	}
	c.steps = drawSteps(t, func(int) step {
		d := draw(t, "live b", blo, bhi)
		if kindName == "sym_floordiv" && d == 0 {
			d = cond(bhi == 0, blo, bhi)
		}
		return step{"a": {draw(t, "live a", alo, ahi)}, "b": {d}}
	})
	return c
}

func TestSymIntArithmetic(t *testing.T) {
	for _, c := range []struct {
		kind string
		a, b int64
		want int64
	}{
		{"sym_add", 3, -5, -2},
		{"sym_sub", 3, -5, 8},
		{"sym_mul", -3, 5, -15},
		{"sym_floordiv", 7, 2, 3},
		{"sym_floordiv", -7, 2, -4},
		{"sym_floordiv", 7, -2, -4},
		{"sym_floordiv", -7, -2, 3},
		{"sym_floordiv", 6, 3, 2},
		{"sym_floordiv", -6, 3, -2},
		{"sym_floordiv", 0, -3, 0},
	} {
		t.Run(fmt.Sprintf("%d %s %d", c.a, c.kind, c.b), func(t *testing.T) {
			b := tinyBuilder()
			x, y := b.SymInt("a", -100, 100, 0), b.SymInt("b", -100, 100, 1)
			v := KindOf(c.kind).BuildOne(b, "n", kind.Args{"a": kind.Sym(x), "b": y})
			live := liveGraph(t, b)
			set(t, live, x, c.a)
			set(t, live, y, c.b)
			if err := live.Propagate(); err != nil {
				t.Fatal(err)
			}
			live.Commit()
			if got := live.Int(v); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func TestSymIntsThatHaveNoResultAreRefused(t *testing.T) {
	golden := wordingtest.New(t)
	b := tinyBuilder()
	x := b.SymInt("b", -1, 1, 1)
	basic.SymFloorDiv(b, "n", kind.Fixed(6), kind.Sym(x))
	live := liveGraph(t, b)
	set(t, live, x, 0)
	golden.Error("division by 0", live.Propagate())

	b = tinyBuilder()
	ids := b.Input("ids", graph.I32, []int{1}, []int{2})
	basic.SelectAsSymInt(b, "pos", ids, []int{0}, 0, 9)
	live = liveGraph(t, b)
	if err := live.SetHost(ids, []int64{10, 0}); err != nil {
		t.Fatal(err)
	}
	golden.Error("out of its range", live.Propagate())
}

func TestSymIntRangesFollowFromTheirOperands(t *testing.T) {
	for _, c := range []struct {
		kind           string
		a, b           [2]int64
		wantLo, wantHi int64
	}{
		{"sym_add", [2]int64{1, 5}, [2]int64{-2, 3}, -1, 8},
		{"sym_sub", [2]int64{1, 5}, [2]int64{-2, 3}, -2, 7},
		{"sym_mul", [2]int64{-4, 5}, [2]int64{-2, 3}, -12, 15},
		{"sym_floordiv", [2]int64{-9, 8}, [2]int64{-4, 3}, -9, 9},
	} {
		t.Run(c.kind, func(t *testing.T) {
			b := tinyBuilder()
			x, y := b.SymInt("a", c.a[0], c.a[1], c.a[1]), b.SymInt("b", c.b[0], c.b[1], c.b[1])
			v := KindOf(c.kind).BuildOne(b, "n", kind.Args{"a": kind.Sym(x), "b": y})
			g, err := b.Finish()
			if err != nil {
				t.Fatal(err)
			}
			if got := g.Value(v).Range; got != [2]int64{c.wantLo, c.wantHi} {
				t.Errorf("got %v, want %d to %d", got, c.wantLo, c.wantHi)
			}
		})
	}
}

func liveGraph(t *testing.T, b *graph.Builder) *graph.Live {
	t.Helper()
	g, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return liveOf(t, g, graph.LiveOptions{})
}

func set(t *testing.T, live *graph.Live, v graph.ValueID, n int64) {
	t.Helper()
	if err := live.SetInt(v, n); err != nil {
		t.Fatal(err)
	}
}
