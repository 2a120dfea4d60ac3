package ops

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/gputest"
	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
	"gpuscope/ops/internal/shape"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
	"gpuscope/ops/weight"
	"gpuscope/trace"
)

// leftAttention describes attention followed by a matrix product. Fusion can defer the last part of
// attention, the combination of its splits, to the product.
type leftAttention struct {
	attention
	format         weight.Format
	out            int  // columns of the product
	bias, residual bool // whether the product adds a bias or a residual
	Uses           bool // the residual has its own range of rows, which prevents the fusion
	norm           bool // a norm and another product follow
	views          int  // number of views between attention and the product
	perHead        bool // the product has the columns of one head, and a row per head
	// also adds another reader of the attention result, if it is not nil.
	also   func(b *graph.Builder, y graph.ValueID)
	Routes map[string]string
}

func (c leftAttention) build(b *graph.Builder) {
	b.AskRoutes(c.Routes)
	q, k, v := c.inputs(b)
	y := c.attend(b, q, k, v, c.position(b))
	width := c.qHeads * c.headDim
	if c.perHead {
		width = c.headDim
	}
	if c.also != nil {
		c.also(b, y)
	}
	for range c.views {
		y = basic.View(b, "join", y, kind.Fixed(1), basic.Rest, kind.Fixed(width))
	}
	bias := graph.None
	if c.bias {
		bias = constant(b, "bias", c.out)
	}
	y = Linear(b, "o", y, noiseMatrix("o.w", c.out, width, c.format), bias)
	if c.residual {
		r := basic.View(b, "r.x", k, kind.Fixed(1), basic.Rest, kind.Fixed(c.kvHeads*c.headDim))
		if r = Linear(b, "r", r, noiseMatrix("r.w", c.out, c.kvHeads*c.headDim, weight.F32),
			graph.None); c.Uses {
			r = b.Input("r", graph.F32, []int{1, 1, c.out}, []int{1, c.tokens, c.out})
		}
		y = basic.Add(b, "add", y, r, 1)
	}
	b.Output(y)
	if c.norm {
		h := RMSNorm(b, "norm", y, constant(b, "norm.w", c.out), 1e-5)
		b.Output(Linear(b, "next", h, noiseMatrix("next.w", 24, c.out, weight.F32), graph.None))
	}
}

func (c leftAttention) points() (points []step) {
	for i, at := range c.live {
		s := c.step(at[0], at[1])
		if c.Uses {
			s["r"] = []int{1, at[0], c.out}
			if i%2 == 1 && at[0] == 1 {
				s["r"] = []int{1, c.tokens, c.out}
			}
		}
		points = append(points, s)
	}
	return points
}

func TestOneTokenAttentionIsDeferredWithFewSplits(t *testing.T) {
	for _, headDim := range []int{16, 64, 68, 128} {
		few, most := 128, 2048
		if headDim > 64 {
			few, most = 256, 768
		}
		leftAbove(t, headDim, few, most)
	}
}

func leftAbove(t *testing.T, headDim, few, most int) {
	c := leftAttention{
		attention: attention{qHeads: 8, kvHeads: 2, headDim: headDim, tokens: 3, context: most + 9},
		format:    weight.F32, out: 24, views: 1,
	}
	whole, left := []string{"sdpa_decode", "linear_gemv"}, []string{"sdpa_decode_split", "linear_gemv_splits"}
	split := []string{"sdpa_fd_split", "sdpa_fd_reduce", "linear_gemv"}
	g, _ := c.fused(t, gpu.DefaultLimits())
	live := liveOf(t, g, graph.LiveOptions{})
	for _, p := range []struct {
		step
		want []string
	}{
		{c.step(1, 0), whole},
		{c.step(1, few-1), whole},
		{c.step(1, few), left},
		{c.step(1, most-1), left},
		{c.step(1, most), split},
		{c.step(3, few), []string{"sdpa_update_cache", "sdpa_streaming", "linear_batch4"}},
		{c.step(1, few), left},
		{c.step(1, most-1), left},
	} {
		if err := bring(live, (&trial{}).input(t, g, p.step)); err != nil {
			t.Fatalf("%v: %v", p.step, err)
		}
		if got := kernelsOfStep(g, live); !slices.Equal(got, p.want) {
			t.Errorf("%v runs %v, want %v", p.step, got, p.want)
		}
	}
}

// kernelsOfStep returns the kernels of the current step, in order of submission.
func kernelsOfStep(g *graph.Graph, live *graph.Live) (names []string) {
	for _, id := range live.Active() {
		_, k := live.Launch(id)
		names = append(names, g.KernelName(k))
	}
	return names
}

func TestAttentionThatOthersReadIsNotLeft(t *testing.T) {
	c := leftAttention{
		attention: attention{qHeads: 8, kvHeads: 2, headDim: 16, tokens: 3, context: 512},
		format:    weight.F32, out: 24, views: 1,
	}
	asks := func(target, route string) func(*leftAttention) {
		return func(c *leftAttention) { c.Routes = map[string]string{target: route} }
	}
	const alone, sum = "only a product reads it", "the product adds a residual with as many rows"
	for name, change := range map[string]func(*leftAttention){
		alone: func(*leftAttention) {},
		sum:   func(c *leftAttention) { c.residual = true },
		"the product adds a residual whose rows may differ": func(c *leftAttention) {
			c.residual, c.Uses = true, true
		},
		"its rows are not whole chunks": func(c *leftAttention) { c.qHeads, c.kvHeads = 9, 1 },
		"it is an output":               func(c *leftAttention) { c.also = (*graph.Builder).Output },
		"another operator reads it": func(c *leftAttention) {
			c.also = func(b *graph.Builder, y graph.ValueID) { b.Output(basic.Sigmoid(b, "s", y)) }
		},
		"the product has a row per head":  func(c *leftAttention) { c.perHead = true },
		"its route is set":                asks("sdpa_with_kv_cache", "streaming"),
		"the route of the product is set": asks("linear", "tile64"),
		"heads are wider than lanes":      func(c *leftAttention) { c.headDim = 516 },
	} {
		t.Run(name, func(t *testing.T) {
			c := c
			change(&c)
			g, _ := c.fused(t, gpu.DefaultLimits())
			splits := func(v trace.Value) bool { return v.Name == "sdpa.splits" }
			left := slices.ContainsFunc(g.Describe().Values, splits)
			if want := name == alone || name == sum; left != want {
				t.Errorf("deferred: %v, want %v", left, want)
			}
		})
	}
}

// fused returns the graph with the fusion rule and without it.
func (c leftAttention) fused(t failer, limits gpu.Limits) (fused, plain *graph.Graph) {
	return fusedBy(t, c.build, limits, fuseResidual, fuseAttention, fuseNorm),
		fusedBy(t, c.build, limits, fuseResidual, fuseNorm)
}

func sampleLeftAttention(t *rapid.T) leftAttention {
	c := leftAttention{
		attention: attention{
			kvHeads: draw(t, "kv heads", 1, 3), context: draw(t, "context", 3, leftSpans[0].upTo+200),
			half: rapid.Bool().Draw(t, "half"),
		},
		format: rapid.SampledFrom([]weight.Format{weight.F32, weight.F16, weight.Q4_0, weight.Q4_K, weight.Q6_K, weight.IQ4_NL}).Draw(t, "format"),
		out:    draw(t, "out", 1, 70), bias: rapid.Bool().Draw(t, "bias"),
		residual: rapid.Bool().Draw(t, "residual"),
		norm:     rapid.Bool().Draw(t, "norm"), views: draw(t, "views", 1, 2),
	}
	// The columns are a whole number of blocks. Heads are as wide as a chunk, narrower, wider, or not a
	// multiple of it.
	sizes := rapid.SampledFrom([][2]int{
		{8, 32}, {4, 64}, {2, 128}, {16, 16}, {64, 4}, {32, 24}, {32, 40}, {1, 512},
	}).Draw(t, "heads")
	c.qHeads, c.headDim = c.kvHeads*sizes[0], sizes[1]
	c.Uses = c.residual && rapid.Bool().Draw(t, "one")
	if rapid.IntRange(0, 3).Draw(t, "capped") == 0 {
		c.softCap = 0.5
	}
	if rapid.Bool().Draw(t, "windowed") {
		c.window = draw(t, "window", 1, c.context+1)
	}
	if rapid.IntRange(0, 3).Draw(t, "with sinks") == 0 {
		c.sinks = 2
	}
	c.tokens = draw(t, "tokens", 1, min(c.context, 7))
	for range 4 {
		tokens := draw(t, "live tokens", 1, c.tokens)
		if rapid.Bool().Draw(t, "one token") {
			tokens = 1
		}
		c.live = append(c.live, [2]int{tokens, draw(t, "position", 0, c.context-tokens)})
	}
	return c
}

func TestCombiningSplitsInProductsKeepsResults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := sampleLeftAttention(t)
		fused, plain := c.fused(t, gpu.DefaultLimits())
		referencesOf(t, fused, plain, c.points(), 1e-9)
	})
}

func TestSplitsCombinedInProductsOnTheGPU(t *testing.T) {
	dev := gputest.Open(t)
	for seed := range few(20) {
		c := rapid.Custom(sampleLeftAttention).Example(seed)
		fused, plain := c.fused(t, dev.Info().Limits)
		kernelsOf(t, dev, fused, plain, c.points(), 1e-3)
	}
}

// With several tokens, splits are not deferred to a product of the last token, although that product has one
// row.
func TestLastRowOfSeveralTokensUsesNoSplits(t *testing.T) {
	a := attention{qHeads: 8, kvHeads: 2, headDim: 16, tokens: 3, context: 512}
	build := func(b *graph.Builder) {
		q, k, v := a.inputs(b)
		y := a.attend(b, q, k, v, a.position(b))
		y = lastOf(b, basic.View(b, "join", y, kind.Fixed(1), basic.Rest, kind.Fixed(128)), 1)
		b.Output(Linear(b, "o", y, noiseMatrix("o.w", 24, 128, weight.F32), graph.None))
	}
	fused := fusedBy(t, build, gpu.DefaultLimits(), Fusions...)
	plain := fusedBy(t, build, gpu.DefaultLimits())
	referencesOf(t, fused, plain, []step{a.step(3, 0), a.step(1, 200), a.step(3, 201)}, 1e-9)
}

// A product of the last token may take its residual from a tensor that always has several rows.
func TestFiveRowResidualIsCutForOneToken(t *testing.T) {
	a := attention{qHeads: 8, kvHeads: 2, headDim: 16, tokens: 3, context: 512, Last: true}
	build := func(b *graph.Builder) {
		q, k, v := a.inputs(b)
		y := a.attend(b, q, k, v, a.position(b))
		y = basic.View(b, "join", y, kind.Fixed(1), basic.Rest, kind.Fixed(128))
		y = Linear(b, "o", y, noiseMatrix("o.w", 24, 128, weight.F32), graph.None)
		five := b.Input("r", graph.F32, []int{1, 5, 24}, []int{1, 5, 24})
		b.Output(basic.Add(b, "add", y, lastOf(b, five, 1), 1))
	}
	fused := fusedBy(t, build, gpu.DefaultLimits(), Fusions...)
	plain := fusedBy(t, build, gpu.DefaultLimits())
	points := []step{a.step(3, 0), a.step(1, 200), a.step(3, 201), a.step(1, 0)}
	for _, s := range points {
		s["r"] = []int{1, 5, 24}
	}
	referencesOf(t, fused, plain, points, 1e-9)
}

// In a sum of attention and a product of attention, attention is not a residual that was computed earlier.
func TestAttentionIsNoResidualOfItsOwnReader(t *testing.T) {
	a := attention{qHeads: 1, kvHeads: 1, headDim: 64, tokens: 3, context: 512}
	build := func(b *graph.Builder) {
		q, k, v := a.inputs(b)
		y := a.attend(b, q, k, v, a.position(b))
		o := Linear(b, "o", y, noiseMatrix("o.w", 64, 64, weight.F32), graph.None)
		b.Output(basic.Add(b, "add", y, o, 1))
	}
	g := fusedBy(t, build, gpu.DefaultLimits(), Fusions...)
	live := liveAt(t, g, (&trial{}).input(t, g, a.step(1, 300)))
	if got, want := kernelsOfStep(g, live), []string{"sdpa_decode", "linear_gemv"}; !slices.Equal(got, want) {
		t.Errorf("runs %v, want %v", got, want)
	}
}

// With --static, the splits of a token may be deferred at any position that gives each split some work. The
// reference computes the splits at such positions.
func TestRequestedSplitsAtFewPositionsHaveAReference(t *testing.T) {
	a := attention{qHeads: 8, kvHeads: 2, headDim: 64, tokens: 1, context: 512}
	c := leftAttention{attention: a, format: weight.F32, out: 24, views: 1}
	g := fusedBy(t, c.build, gpu.DefaultLimits(), fuseResidual, fuseAttention, fuseNorm)
	live := liveOf(t, g, graph.LiveOptions{Static: true})
	in := (&trial{}).input(t, g, a.step(1, 60))
	if err := bring(live, in); err != nil {
		t.Fatal(err)
	}
	x := reference.NewInterpreter(g)
	if err := x.Step(in, nil); err != nil {
		t.Fatal(err)
	}
	want := []string{"sdpa_decode_split", "linear_gemv_splits"}
	if got := kernelsOfStep(g, live); !slices.Equal(got, want) {
		t.Fatalf("runs %v, want %v", got, want)
	}
	for i := range g.NumValues() {
		v := graph.ValueID(i)
		if got := len(x.Tensor(v).Data); g.Value(v).Name == "sdpa.splits" && got != leftSplits*8*(64+2) {
			t.Errorf("the reference computes %d numbers for the splits", got)
		}
	}
}

// If a step defers the splits, as it does far from the first position, the reference does not compute them.
func TestSplitsThatAreLeftHaveNoReference(t *testing.T) {
	a := attention{qHeads: 8, kvHeads: 2, headDim: 64, tokens: 1, context: 512}
	c := leftAttention{attention: a, format: weight.F32, out: 24, views: 1}
	g := fusedBy(t, c.build, gpu.DefaultLimits(), fuseResidual, fuseAttention, fuseNorm)
	splits := graph.ValueID(slices.IndexFunc(g.Describe().Values, func(v trace.Value) bool {
		return v.Name == "sdpa.splits"
	}))
	in := (&trial{}).input(t, g, a.step(1, 300))
	for _, left := range []bool{false, true} {
		x := reference.NewInterpreter(g)
		if err := x.Begin(in); err != nil {
			t.Fatal(err)
		}
		if left {
			x.Leave(splits)
		}
		g.Operators(func(id graph.OpID, _ string, _ graph.Operator) bool {
			if err := x.Run(id); err != nil {
				t.Fatal(err)
			}
			return true
		})
		if given := x.Tensor(splits).Data != nil; given == left {
			t.Errorf("deferred: %v, computed by the reference: %v", left, given)
		}
	}
}

// A sum that overflows f32 is reported with its column, which is the same in each split.
func TestNonFiniteSplitsAreLocatedByColumn(t *testing.T) {
	const heads, headDim, wrong = 2, 64, 71 // a column of the second head
	a := attention{qHeads: heads, kvHeads: heads, headDim: headDim, tokens: 1, context: 512}
	c := leftAttention{attention: a, format: weight.F32, out: 24, views: 1}
	dev := gputest.Open(t)
	g, _ := c.fused(t, dev.Info().Limits)
	x, err := engine.Load(dev, g, graph.LiveOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Release()
	for i := range g.NumValues() {
		if v := graph.ValueID(i); g.Value(v).Name == "v_cache" {
			values := make([]float32, shape.Product(g.Value(v).MaxDims))
			for at := wrong; at < len(values); at += heads * headDim {
				values[at] = 3e38
			}
			if err := x.WriteValue(v, float32Bytes(values)); err != nil {
				t.Fatal(err)
			}
		}
	}
	zero := func(int) float64 { return 0 }
	same := trial{fill: map[string]func(int) float64{"q": zero, "k": zero, "v": zero}}
	if err := x.Step(t.Context(), same.input(t, g, a.step(1, 200)), engine.TimingOff); err != nil {
		t.Fatal(err)
	}
	first, found, err := x.FirstNonFinite(t.Context())
	if err != nil || !found {
		t.Fatalf("found %v, %v", found, err)
	}
	if name := g.Value(first.Value).Name; name != "sdpa.splits" || first.Index != wrong {
		t.Errorf("element %d of %s, want %d of sdpa.splits", first.Index, name, wrong)
	}
}
