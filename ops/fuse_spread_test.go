package ops

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/gputest"
	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
	"gpuscope/ops/internal/shape"
	"gpuscope/ops/kind"
	"gpuscope/ops/weight"
	"gpuscope/trace"
)

// gatedRows is a gated MLP of x, which is 256 columns wide, and the products that read it.
type gatedRows struct {
	format   weight.Format
	n        int   // columns of the gated row
	outs     []int // columns of each product
	residual bool  // each product adds a residual
	Uses     bool  // the residual has its own live rows, so nothing is deferred
	norm     bool  // a norm and another product follow the first product
	views    int   // number of views between the gated row and the products
	// also adds another reader of the gated row, if it is not nil.
	also   func(b *graph.Builder, y graph.ValueID)
	Routes map[string]string
}

func (c gatedRows) build(b *graph.Builder) {
	b.AskRoutes(c.Routes)
	x := b.Input("x", graph.F32, []int{1, 1, 256}, []int{1, 40, 256})
	product := func(name string, x graph.ValueID, n int) graph.ValueID {
		return Linear(b, name, x, noiseMatrix(name+".w", n, shape.Last(b.MaxDims(x)), c.format), graph.None)
	}
	y := basic.SiLUMul(b, "mul", product("gate", x, c.n), product("up", x, c.n))
	if c.also != nil {
		c.also(b, y)
	}
	for range c.views {
		y = basic.View(b, "view", y, kind.Fixed(1), basic.Rest, kind.Fixed(c.n))
	}
	for i, n := range c.outs {
		name := "down" + string(rune('a'+i))
		z := product(name, y, n)
		if c.residual {
			r := product(name+".r", x, n)
			if c.Uses {
				r = b.Input(name+".r", graph.F32, []int{1, 1, n}, []int{1, 40, n})
			}
			z = basic.Add(b, name+".add", z, r, 1)
		}
		b.Output(z)
		if c.norm && i == 0 {
			h := RMSNorm(b, "norm", z, constant(b, "norm.w", n), 1e-5)
			b.Output(Linear(b, "next", h, noiseMatrix("next.w", 24, n, weight.F32), graph.None))
		}
	}
}

// fused builds the graph twice: with the rule and without it.
func (c gatedRows) fused(t failer, limits gpu.Limits) (fused, plain *graph.Graph) {
	return fusedBy(t, c.build, limits, fuseResidual, fuseGateUp, fuseSpread, fuseNorm),
		fusedBy(t, c.build, limits, fuseResidual, fuseGateUp, fuseNorm)
}

func TestGatedMLPRowIsDeferredToItsReaders(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*gatedRows)
		left   bool
	}{
		"one product reads it":                        {func(*gatedRows) {}, true},
		"several products read it":                    {func(c *gatedRows) { c.outs = []int{24, 7} }, true},
		"the products read views of it":               {func(c *gatedRows) { c.views = 2 }, true},
		"the products add a value with the same rows": {func(c *gatedRows) { c.residual = true }, true},
		"the products add a value with its own live rows": {
			func(c *gatedRows) { c.residual, c.Uses = true, true }, false,
		},
		"it is an output": {func(c *gatedRows) { c.also = (*graph.Builder).Output }, false},
		"another operator reads it too": {func(c *gatedRows) {
			c.also = func(b *graph.Builder, y graph.ValueID) { b.Output(basic.Sigmoid(b, "s", y)) }
		}, false},
		"a product reads a view with other rows": {func(c *gatedRows) {
			c.also = func(b *graph.Builder, y graph.ValueID) {
				y = basic.View(b, "halves", y, kind.Fixed(1), basic.Rest, kind.Fixed(128))
				b.Output(Linear(b, "half", y, noiseMatrix("half.w", 24, 128, weight.F32), graph.None))
			}
		}, false},
		"its route is forced": {func(c *gatedRows) {
			c.Routes = map[string]string{"linear_q8_0@gate": "tile64"}
		}, false},
		"the route of a reader is forced": {func(c *gatedRows) {
			c.Routes = map[string]string{"linear_q8_0@downa": "tile64"}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := gatedRows{format: weight.Q8_0, n: 256, outs: []int{24}}
			c.change(&m)
			g, _ := m.fused(t, gpu.DefaultLimits())
			spread := func(v trace.Value) bool { return v.Name == "mul.spread" }
			if left := slices.ContainsFunc(g.Describe().Values, spread); left != c.left {
				t.Errorf("deferred: %v, want %v", left, c.left)
			}
		})
	}
}

func sampleGatedRows(t *rapid.T) gatedRows {
	c := gatedRows{
		format:   drawFormat(t),
		n:        256 * draw(t, "256 columns", 1, 5),
		outs:     rapid.SliceOfN(rapid.IntRange(1, 70), 1, 2).Draw(t, "columns of products"),
		residual: rapid.Bool().Draw(t, "residual"), norm: rapid.Bool().Draw(t, "norm"),
		views: draw(t, "views", 0, 2),
	}
	if rapid.Bool().Draw(t, "chunks") {
		c.outs[0] = 96
	}
	return c
}

var gatedRowsPoints = []step{{"x": {1, 40, 256}}, {"x": {1, 1, 256}}, {"x": {1, 7, 256}}, {"x": {1, 1, 256}}}

func TestInterleavingRowsKeepsResults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fused, plain := sampleGatedRows(t).fused(t, gpu.DefaultLimits())
		if placesIn(fused) == placesIn(plain) {
			t.Fatal("nothing was deferred")
		}
		referencesOf(t, fused, plain, gatedRowsPoints, 0)
	})
}

func TestInterleavedRowsOnTheGPU(t *testing.T) {
	dev := gputest.Open(t)
	for seed := range few(8) {
		fused, plain := rapid.Custom(sampleGatedRows).Example(seed).fused(t, dev.Info().Limits)
		kernelsOf(t, dev, fused, plain, gatedRowsPoints, 5e-5)
	}
}
