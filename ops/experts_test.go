package ops

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
	"gpuscope/ops/experts"
	"gpuscope/ops/weight"
)

// routerCase is a router in a graph.
type routerCase struct {
	n, most       int // experts, and the largest number of tokens
	bias, factors bool
	experts.RouterOptions
	live []int // numbers of tokens
}

func (c routerCase) build(b *graph.Builder) experts.Routing {
	o := c.RouterOptions
	o.Bias, o.Factors = graph.None, graph.None
	if c.bias {
		o.Bias = constant(b, "bias", c.n)
	}
	if c.factors {
		o.Factors = constant(b, "factors", c.n)
	}
	logits := b.Input("logits", graph.F32, []int{1, 1, c.n}, []int{1, c.most, c.n})
	return experts.Router(b, "route", logits, o)
}

func (c routerCase) trial() *trial {
	t := &trial{
		name: fmt.Sprintf("%d of %d, %+v, bias %v, factors %v", c.K, c.n, c.RouterOptions, c.bias, c.factors),
		abs:  1e-6, rel: 1e-5,
		build: func(b *graph.Builder) {
			r := c.build(b)
			for _, v := range []graph.ValueID{r.Experts, r.Weights, r.Counts, r.Sorted} {
				b.Output(v)
			}
		},
		fill: map[string]func(int) float64{"logits": func(i int) float64 { return 4 * noise("logits", i) }},
	}
	for _, n := range c.live {
		t.steps = append(t.steps, step{"logits": {1, n, c.n}})
	}
	return t
}

func sampleRouter(t *rapid.T) *trial {
	c := routerCase{
		n: draw(t, "experts", 1, 300), most: draw(t, "tokens", 1, 70),
		factors: rapid.Bool().Draw(t, "factors"),
		RouterOptions: experts.RouterOptions{
			Sigmoid: rapid.Bool().Draw(t, "sigmoid"), Normalize: rapid.Bool().Draw(t, "normalize"),
			Scale: rapid.SampledFrom([]float64{1, 2.5}).Draw(t, "scale"),
		},
	}
	c.K = rapid.IntRange(1, min(c.n, 16)).Draw(t, "k")
	c.bias = c.Sigmoid && rapid.Bool().Draw(t, "bias")
	for range rapid.IntRange(1, 4).Draw(t, "steps") {
		c.live = append(c.live, draw(t, "live tokens", 1, c.most))
	}
	tr := c.trial()
	if !c.bias && rapid.Bool().Draw(t, "ties") {
		tr.fill["logits"] = func(i int) float64 { return math.Floor(noise("logits", i) * 3) }
	}
	return tr
}

func TestRouter(t *testing.T) {
	softmax := experts.RouterOptions{Normalize: true, Scale: 1}
	of := func(k int, o experts.RouterOptions) experts.RouterOptions {
		o.K = k
		return o
	}
	hold(t,
		routerCase{n: 128, most: 300, RouterOptions: of(8, softmax), live: []int{300, 1, 33, 2}}.trial(),
		routerCase{
			n: 5, most: 3, RouterOptions: of(5, experts.RouterOptions{Scale: 1}), live: []int{3, 1},
		}.trial(),
		routerCase{
			n: 513, most: 40, RouterOptions: of(16, experts.RouterOptions{Sigmoid: true, Scale: 2.5}),
			bias: true, factors: true, live: []int{40, 1},
		}.trial(),
		routerCase{n: 1, most: 9, RouterOptions: of(1, softmax), live: []int{9, 1}}.trial(),
	)
}

// Logits that are equal, or not finite, choose the experts with the lowest indices, and never one that does
// not exist.
func TestRouterChoosesWithoutAnOrder(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	var trials []*trial
	for _, c := range []struct {
		name   string
		logits []float64
	}{
		{"equal", []float64{1, 1, 1, 1, 1}},
		{"the first of equals", []float64{1, 5, 5, 5, 1}},
		{"zeros of both signs", []float64{-1, math.Copysign(0, -1), 0, -2, 0}},
		{"infinities and NaN", []float64{nan, -inf, inf, nan, 2}},
	} {
		tr := routerCase{
			n: 5, most: 2, live: []int{2, 1},
			RouterOptions: experts.RouterOptions{K: 3, Scale: 1, Normalize: true},
		}.trial()
		tr.name = c.name
		tr.fill["logits"] = func(i int) float64 { return c.logits[i%5] }
		trials = append(trials, tr)
	}
	hold(t, trials...)
}

func sampleCombineExperts(t *rapid.T) *trial {
	most, k, n := draw(t, "tokens", 1, 20), draw(t, "k", 1, 16), draw(t, "columns", 1, 300)
	c := &trial{
		name: fmt.Sprintf("%d x %d", k, n), abs: 1e-5, rel: 1e-5,
		build: func(b *graph.Builder) {
			x := b.Input("x", graph.F32, []int{1, 1, k, n}, []int{1, most, k, n})
			w := b.Input("weights", graph.F32, []int{1, 1, k}, []int{1, most, k})
			b.Output(experts.CombineExperts(b, "y", x, w))
		},
	}
	c.steps = drawSteps(t, func(int) step {
		tokens := draw(t, "live tokens", 1, most)
		return step{"x": {1, tokens, k, n}, "weights": {1, tokens, k}}
	})
	return c
}

// expertsCase is a product with the matrices of the chosen experts, after its router.
type expertsCase struct {
	format         weight.Format
	cols, rows     int // size of the matrix of an expert
	n, k           int // experts, and chosen ones
	eachSlot, bias bool
	live           []int // numbers of tokens, the largest first
	route          string
	maxBinding     uint64
	alike          bool // all tokens choose the same experts
}

func (c expertsCase) trial() *trial {
	kind := c.format.KindName("linear_experts")
	t := &trial{
		name: fmt.Sprintf("%s %dx%d, %d of %d, each %v, bias %v %s", kind, c.cols, c.rows, c.k, c.n,
			c.eachSlot, c.bias, c.route),
		maxBinding: c.maxBinding, fill: map[string]func(int) float64{},
		build: func(b *graph.Builder) {
			most := c.live[0]
			options := experts.RouterOptions{K: c.k, Scale: 1}
			r := routerCase{n: c.n, most: most, RouterOptions: options}.build(b)
			dims := func(tokens int) []int {
				if c.eachSlot {
					return []int{1, tokens, c.k, c.cols}
				}
				return []int{1, tokens, c.cols}
			}
			x := b.Input("x", graph.F32, dims(1), dims(most))
			bias := graph.None
			if c.bias {
				bias = constant(b, "bias", c.n, c.rows)
			}
			w := noiseMatrix("w", c.n*c.rows, c.cols, c.format)
			b.Output(experts.LinearExperts(b, "y", x, w, bias, r))
		},
	}
	if c.alike {
		t.fill["logits"] = func(i int) float64 { return noise("logits", i%c.n) }
	}
	if c.route != "" {
		t.Routes = map[string]string{kind: c.route}
	}
	for _, n := range c.live {
		t.steps = append(t.steps, c.at(n))
	}
	return t
}

// at returns the live point with a number of tokens.
func (c expertsCase) at(tokens int) step {
	s := step{"logits": {1, tokens, c.n}, "x": {1, tokens, c.cols}}
	if c.eachSlot {
		s["x"] = []int{1, tokens, c.k, c.cols}
	}
	return s
}

func sampleLinearExperts(t *rapid.T, kind string) *trial {
	c := expertsCase{
		rows: 4 * draw(t, "rows / 4", 1, 20), n: draw(t, "experts", 1, 9),
		eachSlot: rapid.Bool().Draw(t, "each slot"), bias: rapid.Bool().Draw(t, "bias"),
	}
	c.k = rapid.IntRange(1, min(4, c.n)).Draw(t, "k")
	of := linearCase{kind: kind[len("linear_experts"):], group: 32}
	block := 32
	if of.kind != "_qcs4w" {
		c.format = of.format()
		block = max(8, c.format.Pieces[0].Cols, c.format.Group)
	}
	c.cols = block * draw(t, "blocks", 1, max(2, 160/block))
	if of.kind == "_qcs4w" {
		of.group = c.cols
		c.format = of.format()
	}
	most := draw(t, "tokens", 1, 40)
	c.live = []int{most}
	built := c.trial()
	built.steps = drawSteps(t, func(int) step { return c.at(draw(t, "live tokens", 1, most)) })
	return built
}

func TestLinearExperts(t *testing.T) {
	q4 := weight.Q4GSW(32, weight.Q4Options{HalfScales: true})
	hold(t,
		// Every route, chosen by the number of tokens.
		expertsCase{format: q4, cols: 256, rows: 132, n: 6, k: 2, live: []int{600, 100, 96, 6, 2, 1}}.trial(),
		expertsCase{
			format: weight.Q8_0, cols: 96, rows: 68, n: 5, k: 3, eachSlot: true, bias: true,
			live: []int{70, 40, 3, 2, 1},
		}.trial(),
		// The stack is split into parts of whole experts.
		expertsCase{
			format: weight.F16, cols: 64, rows: 36, n: 7, k: 3, bias: true, live: []int{20, 3, 1},
			maxBinding: 2 * 64 * 36 * 3,
		}.trial(),
		// All tokens choose the same experts, and the others have no tokens.
		expertsCase{
			format: q4, cols: 64, rows: 64, n: 40, k: 2, live: []int{90, 1}, route: "tile32", alike: true,
		}.trial(),
		expertsCase{
			format: weight.F32, cols: 72, rows: 40, n: 3, k: 3, live: []int{130, 65, 1}, route: "tile128",
		}.trial(),
	)
}

// The counts of all routers are read back with one copy, and the graph predicts barriers as if they were one
// buffer.
func TestCountsOfRoutersShareABuffer(t *testing.T) {
	b := graph.NewBuilder(gpu.DefaultLimits())
	var counts []graph.ValueID
	for i := range 2 {
		logits := b.Input(fmt.Sprintf("logits %d", i), graph.F32, []int{1, 1, 8}, []int{1, 4, 8})
		scaled := basic.Mul(b, fmt.Sprintf("scaled %d", i), logits, logits)
		r := experts.Router(b, fmt.Sprintf("route %d", i), scaled, experts.RouterOptions{
			K: 2, Bias: graph.None, Factors: graph.None,
		})
		b.Output(r.Weights)
		counts = append(counts, r.Counts)
	}
	for _, v := range counts {
		b.Output(v)
	}
	g, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	l, err := graph.NewLive(g, graph.LiveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !g.Beside(counts[0], counts[1]) || l.Buffer(counts[0]) != l.Buffer(counts[1]) {
		t.Errorf("the counts are in buffers %d and %d", l.Buffer(counts[0]), l.Buffer(counts[1]))
	}
}
