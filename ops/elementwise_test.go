package ops

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
	"gpuscope/ops/kind"
)

// unaryTrial returns a trial of a unary operator. If or is true, it tests the alternative function of the
// row.
func unaryTrial(r *basic.UnaryRow, or bool, rows, width int) *trial {
	args := kind.Args{}
	fn := r
	if or {
		fn, args[r.Or.When] = r.Or, true
	}
	return &trial{
		name: fmt.Sprintf("%s %dx%d", fn.Kind, rows, width), abs: 1e-5, rel: 2e-5,
		build: func(b *graph.Builder) {
			args["x"] = b.Input("x", graph.F32, []int{1, width}, []int{rows, width})
			b.Output(KindOf(r.Kind).BuildOne(b, "y", args))
		},
		fill: map[string]func(int) float64{"x": func(i int) float64 {
			if at := i % 7; at < len(fn.Also) {
				return fn.Also[at]
			}
			return between(noise("x", i), fn.From, fn.To)
		}},
	}
}

// between maps noise from -2 to 2 to the range from lo to hi, with more values near 0.
func between(noise, lo, hi float64) float64 {
	x := noise / 2
	if lo < 0 {
		return x * x * x * max(-lo, hi)
	}
	return lo + (hi-lo)*x*x
}

func sampleUnary(t *rapid.T, r *basic.UnaryRow) *trial {
	or := r.Or != nil && rapid.Bool().Draw(t, "or")
	rows, width := draw(t, "rows", 1, 200), draw(t, "width", 1, 300)
	c := unaryTrial(r, or, rows, width)
	c.steps = drawSteps(t, func(int) step { return step{"x": {draw(t, "live rows", 1, rows), width}} })
	return c
}

func TestUnary(t *testing.T) {
	var trials []*trial
	for i := range basic.Unaries {
		for _, or := range []bool{false, true} {
			if or && basic.Unaries[i].Or == nil {
				continue
			}
			for _, width := range []int{1, 7, 64, 65, 260} {
				c := unaryTrial(&basic.Unaries[i], or, 70, width)
				c.steps = []step{{"x": {70, width}}, {"x": {1, width}}, {"x": {17, width}}}
				trials = append(trials, c)
			}
		}
	}
	hold(t, trials...)
}

func gatedTrial(r *basic.GatedRow, rows, width int) *trial {
	return &trial{
		name: fmt.Sprintf("%s %dx%d", r.Kind, rows, width), abs: 1e-5, rel: 1e-5,
		build: func(b *graph.Builder) {
			gate := b.Input("gate", graph.F32, []int{1, width}, []int{rows, width})
			up := b.Input("up", graph.F32, []int{1, width}, []int{rows, width})
			b.Output(New(b, r.Kind, "y", kind.Args{"gate": gate, "up": up})[0])
		},
		fill: map[string]func(int) float64{
			"gate": func(i int) float64 { return noise("gate", i) * []float64{1, 4, 60}[i%3] },
			"up":   func(i int) float64 { return noise("up", i) * []float64{1, 10}[i%2] },
		},
	}
}

func sampleGated(t *rapid.T, r *basic.GatedRow) *trial {
	rows, width := draw(t, "rows", 1, 200), draw(t, "width", 1, 300)
	c := gatedTrial(r, rows, width)
	c.steps = drawSteps(t, func(int) step {
		n := draw(t, "live rows", 1, rows)
		return step{"gate": {n, width}, "up": {n, width}}
	})
	return c
}

// Source of the numbers: the formula, computed by hand for inputs on both sides of each limit.
func TestClampedSwiGLULimitsBothBranches(t *testing.T) {
	r := basic.Gates[slices.IndexFunc(basic.Gates,
		func(r basic.GatedRow) bool { return r.Kind == "clamped_swiglu" })]
	for _, c := range []struct{ gate, up, want float64 }{
		{0, 3, 0},
		{1, 0, 0.845796},      // sigmoid(1.702)
		{1, 2, 2.537387},      // times 2 + 1
		{7, 0, 6.999953},      // 7 sigmoid(11.914)
		{100, 0, 6.999953},    // gate is limited to 7 ...
		{100, 9, 55.999625},   // ... and up too, so the factor is 8
		{100, -9, -41.999719}, // up is limited to -7, so the factor is -6
		{-8, 0, -9.766e-6},    // gate has no lower limit
	} {
		if got := r.F(c.gate, c.up); math.Abs(got-c.want) > 1e-6*max(1, math.Abs(c.want)) {
			t.Errorf("gate %g, up %g: %g, want %g", c.gate, c.up, got, c.want)
		}
	}
}

func TestGated(t *testing.T) {
	var trials []*trial
	for i := range basic.Gates {
		for _, width := range []int{1, 33, 172, 8192} {
			c := gatedTrial(&basic.Gates[i], 65, width)
			for _, n := range []int{65, 1, 64} {
				c.steps = append(c.steps, step{"gate": {n, width}, "up": {n, width}})
			}
			trials = append(trials, c)
		}
	}
	hold(t, trials...)
}

// binaryTrial returns a trial of a binary operator, with operands from the row's range and live dims between
// lo and hi.
func binaryTrial(r *basic.BinaryRow, alpha float32, alo, ahi, blo, bhi []int) *trial {
	return binaryTrialOf(graph.F32, r, alpha, alo, ahi, blo, bhi)
}

// binaryTrialOf is binaryTrial with operands of a type.
func binaryTrialOf(t graph.DType, r *basic.BinaryRow, alpha float32, alo, ahi, blo, bhi []int) *trial {
	c := &trial{
		name: fmt.Sprintf("%s %s %v %v", r.Kind, t, ahi, bhi), abs: 1e-5, rel: 2e-5,
		build: func(b *graph.Builder) {
			args := kind.Args{"a": b.Input("a", t, alo, ahi), "b": b.Input("b", t, blo, bhi)}
			if r.Scaled {
				args["alpha"] = alpha
			}
			b.Output(KindOf(r.Kind).BuildOne(b, "y", args))
		},
		fill: map[string]func(int) float64{
			"a": func(i int) float64 {
				switch {
				case i%17 < len(r.Also):
					return r.Also[i%17][0]
				case r.From < r.To:
					return between(noise("a", i), r.From, r.To)
				}
				return noise("a", i)
			},
			"b": func(i int) float64 {
				switch {
				case i%17 < len(r.Also):
					return r.Also[i%17][1]
				case r.From < r.To:
					return noise("b", i)
				}
				return 3 + noise("b", i)
			},
		},
	}
	if t == graph.I32 {
		c.fill = nil
	}
	return c
}

// typesOf returns the types of operands that an operator takes.
func typesOf(r *basic.BinaryRow) []graph.DType { return KindOf(r.Kind).Args[0].Type.DTypes }

// sampleBinary draws dims that are static or live, and equal or 1, in every legal combination.
func sampleBinary(t *rapid.T, r *basic.BinaryRow) *trial {
	rank := rapid.IntRange(1, 4).Draw(t, "rank")
	var lo, hi [2][]int
	ones := make([][2]bool, rank) // whether the dim of operand a or b is always 1
	for k := range rank {
		n := draw(t, "dim", 1, []int{0, 300, 40, 12, 6}[rank])
		one := rapid.SampledFrom([][2]bool{{}, {}, {true, false}, {false, true}}).Draw(t, "ones")
		live := rapid.Bool().Draw(t, "live")
		ones[k] = one
		for side := range 2 {
			l, h := n, n
			if live {
				l = 1
			}
			if one[side] {
				l, h = 1, 1
			}
			lo[side], hi[side] = append(lo[side], l), append(hi[side], h)
		}
	}
	cut := [2]int{}
	cut[rapid.IntRange(0, 1).Draw(t, "shorter")] = rapid.IntRange(0, rank-1).Draw(t, "cut")
	dtype, alphas := rapid.SampledFrom(typesOf(r)).Draw(t, "type"), []float32{1, -0.5, 2}
	if dtype == graph.I32 {
		alphas[1] = -3
	}
	c := binaryTrialOf(dtype, r, rapid.SampledFrom(alphas).Draw(t, "alpha"), lo[0][cut[0]:],
		hi[0][cut[0]:], lo[1][cut[1]:], hi[1][cut[1]:])
	c.steps = drawSteps(t, func(int) step {
		var dims [2][]int
		for k := range rank {
			n := max(hi[0][k], hi[1][k])
			if min(lo[0][k], lo[1][k]) != n && (lo[0][k] != n && lo[1][k] != n) {
				n = draw(t, "live dim", 1, n)
			}
			for side := range 2 {
				d := n
				if ones[k][side] {
					d = 1
				} else if lo[side][k] != hi[side][k] && rapid.IntRange(0, 3).Draw(t, "repeat") == 0 {
					d = 1 // a live dim that happens to be 1
				} else if lo[side][k] == hi[side][k] {
					d = hi[side][k]
				}
				dims[side] = append(dims[side], d)
			}
		}
		return step{"a": dims[0][cut[0]:], "b": dims[1][cut[1]:]}
	})
	return c
}

func TestBinaryBroadcasts(t *testing.T) {
	var trials []*trial
	for _, dims := range [][2][]int{
		{{8, 32}, {8, 32}},
		{{1, 1, 7, 896}, {1, 1, 7, 1}},
		{{4, 4}, {1, 4}},
		{{3, 5, 7, 11}, {1, 5, 1, 11}},
		{{4}, {3, 4}},
		{{1}, {5}},
		{{2, 1, 3, 1, 2, 1, 3, 4}, {1, 2, 1, 3, 1, 2, 1, 4}},
		{{64, 4096}, {64, 4096}},
		{{3, 64}, {64}},
	} {
		for i := range basic.BinariesAndCompares {
			r := &basic.BinariesAndCompares[i]
			for _, dtype := range typesOf(r) {
				alpha := float32(0.5)
				if dtype == graph.I32 {
					alpha = -2
				}
				c := binaryTrialOf(dtype, r, alpha, dims[0], dims[0], dims[1], dims[1])
				c.steps = []step{{"a": dims[0], "b": dims[1]}}
				trials = append(trials, c)
			}
		}
	}
	hold(t, trials...)
}

// One graph switches between its routes: a residual with operands of one shape, and one with a repeated
// operand.
func TestAddChangesRouteWithTheLiveShape(t *testing.T) {
	c := binaryTrial(&basic.Binaries[0], 1, []int{1, 64}, []int{128, 64}, []int{1, 64}, []int{128, 64})
	c.steps = []step{
		{"a": {128, 64}, "b": {128, 64}},
		{"a": {1, 64}, "b": {128, 64}},
		{"a": {17, 64}, "b": {17, 64}},
		{"a": {17, 64}, "b": {1, 64}},
		{"a": {1, 64}, "b": {1, 64}},
	}
	hold(t, c)
}
