package ops

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/internal/wordingtest"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
	"gpuscope/trace"
)

// attention is a sdpa_with_kv_cache in a graph.
type attention struct {
	qHeads, kvHeads, headDim int
	tokens, context          int     // the most
	window                   int     // 0 for none
	softCap                  float64 // 0 for none
	sinks                    float64 // size of the sinks; 0 for none
	half                     bool
	Last                     bool // q holds the last token only
	shared                   bool // another attention reads the caches after this one
	Route                    string
	gain                     float64     // factor on q; 0 means 1
	stream                   streamShape // shape of the streaming kernel; zero means the best one
	live                     [][2]int    // tokens and position of each step
}

func (c attention) String() string {
	s := fmt.Sprintf("%d on %d heads of %d, %d tokens, %d positions", c.qHeads, c.kvHeads, c.headDim,
		c.tokens, c.context)
	if c.half {
		s += ", f16"
	}
	if c.Last {
		s += ", q of the last"
	}
	if c.shared {
		s += ", shared caches"
	}
	if c.window > 0 {
		s += fmt.Sprintf(", a window of %d", c.window)
	}
	if c.softCap > 0 {
		s += fmt.Sprintf(", a soft cap of %g", c.softCap)
	}
	if c.sinks > 0 {
		s += fmt.Sprintf(", sinks of %g", c.sinks)
	}
	return s + " " + c.Route
}

func (c attention) build(b *graph.Builder) {
	if c.stream.down > 0 {
		was := streamShapes
		defer func() { streamShapes = was }()
		streamShapes = []streamShape{c.stream}
	}
	q, k, v := c.inputs(b)
	kCache, vCache := c.caches(b)
	position := c.position(b)
	b.Output(c.attendTo(b, "sdpa", q, k, v, kCache, vCache, position))
	if c.shared {
		q := c.input(b, "other", c.qHeads, c.tokens)
		b.Output(c.attendTo(b, "other_sdpa", q, graph.None, graph.None, kCache, vCache, position))
	}
}

// inputs adds the graph inputs q, k and v.
func (c attention) inputs(b *graph.Builder) (q, k, v graph.ValueID) {
	return c.input(b, "q", c.qHeads, c.queries(c.tokens)), c.input(b, "k", c.kvHeads, c.tokens),
		c.input(b, "v", c.kvHeads, c.tokens)
}

func (c attention) input(b *graph.Builder, name string, heads, tokens int) graph.ValueID {
	return b.Input(name, graph.F32, []int{1, 1, heads, c.headDim}, []int{1, tokens, heads, c.headDim})
}

func (c attention) position(b *graph.Builder) kind.Int {
	return kind.Sym(b.SymInt("position", 0, int64(c.context)-1, 0))
}

// attend adds the attention, with its own caches.
func (c attention) attend(b *graph.Builder, q, k, v graph.ValueID, position kind.Int) graph.ValueID {
	kCache, vCache := c.caches(b)
	return c.attendTo(b, "sdpa", q, k, v, kCache, vCache, position)
}

func (c attention) caches(b *graph.Builder) (k, v graph.ValueID) {
	t := graph.F32
	if c.half {
		t = graph.F16
	}
	dims := []int{1, c.context, c.kvHeads, c.headDim}
	return b.State("k_cache", t, dims), b.State("v_cache", t, dims)
}

func (c attention) attendTo(b *graph.Builder, name string, q, k, v, kCache, vCache graph.ValueID,
	position kind.Int,
) graph.ValueID {
	return SDPA(b, name, q, k, v, kCache, vCache, position, 0, c.softCap, c.window, c.sinksOf(b))
}

// sinksOf adds the sinks as a constant, or returns None.
func (c attention) sinksOf(b *graph.Builder) graph.ValueID {
	if c.sinks == 0 {
		return graph.None
	}
	return scaledConstant(b, c.sinks, "sinks", c.qHeads)
}

// queries returns how many of a step's tokens q holds.
func (c attention) queries(tokens int) int {
	if c.Last {
		return 1
	}
	return tokens
}

func (c attention) trial() *trial {
	t := &trial{name: c.String(), build: c.build, state: true}
	if c.Route != "" {
		t.Routes = map[string]string{"sdpa_with_kv_cache": c.Route}
	}
	if c.gain != 0 {
		t.fill = map[string]func(int) float64{"q": func(i int) float64 { return c.gain * noise("q", i) }}
	}
	if c.half {
		t.abs, t.rel = 2e-3, 1e-2
	}
	for _, at := range c.live {
		t.steps = append(t.steps, c.step(at[0], at[1]))
	}
	return t
}

func (c attention) step(tokens, position int) step {
	kv := []int{1, tokens, c.kvHeads, c.headDim}
	s := step{"q": {1, c.queries(tokens), c.qHeads, c.headDim}, "k": kv, "v": kv, "position": {position}}
	if c.shared {
		s["other"] = s["q"]
	}
	return s
}

func sampleSDPA(t *rapid.T) *trial {
	c := attention{
		kvHeads: draw(t, "kv heads", 1, 4), headDim: 4 * draw(t, "quads", 1, 34),
		context: draw(t, "context", 1, 300), half: rapid.Bool().Draw(t, "half"),
		Last: rapid.Bool().Draw(t, "of the last"),
	}
	c.qHeads = c.kvHeads * draw(t, "queries of a head", 1, 8)
	c.tokens = draw(t, "tokens", 1, min(c.context, 70))
	if rapid.Bool().Draw(t, "windowed") {
		c.window = draw(t, "window", 1, c.context+1)
	}
	if rapid.IntRange(0, 3).Draw(t, "capped") == 0 {
		c.softCap = float64(draw(t, "soft cap", 1, 50)) / 10
	}
	if rapid.IntRange(0, 3).Draw(t, "with sinks") == 0 {
		c.sinks = float64(draw(t, "sinks", 1, 50)) / 10
	}
	c.shared = !c.Last && c.sinks == 0 && rapid.IntRange(0, 3).Draw(t, "shared") == 0
	if rapid.Bool().Draw(t, "materialized") && c.tokens > 1 { // one token has the routes for one token only
		c.Route = "materialized"
	}
	built := c.trial()
	built.steps = drawSteps(t, func(int) step {
		tokens := draw(t, "live tokens", 1, c.tokens)
		return c.step(tokens, draw(t, "position", 0, c.context-tokens))
	})
	return built
}

// replay returns consecutive steps with the given numbers of tokens.
func replay(tokens ...int) (live [][2]int) {
	position := 0
	for _, n := range tokens {
		live = append(live, [2]int{n, position})
		position += n
	}
	return live
}

// attentions selects the cases of a list that a test tries. Each head width compiles its own kernels. So with
// -short, heads have 16 or 64 columns, or more than a split has lanes.
func attentions(list []attention) (some []attention) {
	for _, c := range list {
		if !testing.Short() || slices.Contains([]int{16, 64, 132, 516}, c.headDim) {
			some = append(some, c)
		}
	}
	return some
}

func TestSDPA(t *testing.T) {
	var trials []*trial
	for _, c := range attentions([]attention{
		// ExecuTorch's shapes.
		{qHeads: 6, kvHeads: 2, headDim: 8, tokens: 4, context: 16, live: [][2]int{{4, 0}, {2, 2}}},
		{qHeads: 4, kvHeads: 4, headDim: 16, tokens: 3, context: 8, live: [][2]int{{3, 0}}},
		{qHeads: 8, kvHeads: 4, headDim: 4, tokens: 5, context: 16, live: [][2]int{{5, 0}}},
		{qHeads: 4, kvHeads: 4, headDim: 32, tokens: 4, context: 16, gain: 100, live: [][2]int{{4, 0}}},
		{qHeads: 32, kvHeads: 8, headDim: 64, tokens: 1, context: 4096, live: [][2]int{{1, 4095}, {1, 0}}},
		{
			qHeads: 8, kvHeads: 8, headDim: 64, tokens: 1, context: 8400,
			live: [][2]int{{1, 8191}, {1, 8192}, {1, 8399}},
		},
		{
			qHeads: 4, kvHeads: 1, headDim: 64, tokens: 128, context: 512,
			live: [][2]int{{128, 0}, {1, 127}, {128, 384}},
		},
		{qHeads: 16, kvHeads: 8, headDim: 128, tokens: 17, context: 64, live: [][2]int{{17, 31}, {1, 63}}},
		{qHeads: 24, kvHeads: 8, headDim: 128, tokens: 66, context: 256, live: [][2]int{{66, 0}, {66, 190}}},
		{
			qHeads: 8, kvHeads: 2, headDim: 16, tokens: 64, context: 64,
			live: [][2]int{{64, 0}, {1, 63}, {16, 48}, {1, 0}, {64, 0}},
		},
		{
			qHeads: 8, kvHeads: 2, headDim: 16, tokens: 64, context: 64, Last: true,
			live: [][2]int{{64, 0}, {1, 63}, {16, 48}, {1, 0}, {64, 0}},
		},
		{
			qHeads: 8, kvHeads: 2, headDim: 64, tokens: 64, context: 1200, Last: true,
			live: [][2]int{{64, 0}, {64, 1136}, {2, 600}, {1, 600}},
		},
		{
			qHeads: 4, kvHeads: 2, headDim: 64, tokens: 64, context: 1200, window: 500, Last: true,
			live: [][2]int{{64, 0}, {64, 1136}, {3, 700}},
		},
		{
			qHeads: 2, kvHeads: 1, headDim: 132, tokens: 5, context: 70, Last: true,
			live: [][2]int{{5, 0}, {1, 5}, {5, 65}},
		},
		{
			qHeads: 2, kvHeads: 1, headDim: 132, tokens: 5, context: 70,
			live: [][2]int{{5, 0}, {1, 5}, {1, 69}},
		},
		// Heads with more columns than a split has lanes.
		{qHeads: 4, kvHeads: 1, headDim: 132, tokens: 2, context: 500, live: [][2]int{{1, 450}, {1, 499}}},
		{qHeads: 4, kvHeads: 1, headDim: 256, tokens: 2, context: 500, live: [][2]int{{1, 450}, {1, 499}}},
		{qHeads: 8, kvHeads: 1, headDim: 512, tokens: 2, context: 500, live: [][2]int{{1, 300}, {1, 499}}},
		// Another attention reads the caches. In the steps of one token it takes each of its routes.
		{
			qHeads: 8, kvHeads: 2, headDim: 16, tokens: 64, context: 1200, shared: true, half: true,
			live: [][2]int{{64, 0}, {1, 64}, {1, 0}, {5, 65}, {1, 1199}},
		},
		{
			qHeads: 4, kvHeads: 1, headDim: 64, tokens: 3, context: 700, window: 500, shared: true,
			live: [][2]int{{3, 697}, {1, 660}, {1, 3}},
		},
		// One cache, filled over several calls.
		{qHeads: 8, kvHeads: 2, headDim: 16, tokens: 5, context: 16, live: replay(3, 1, 1, 5, 1, 1, 2)},
		{qHeads: 9, kvHeads: 3, headDim: 64, tokens: 111, context: 180, live: replay(111, 1, 1, 1, 57, 1, 1)},
		{
			qHeads: 9, kvHeads: 3, headDim: 64, tokens: 57, context: 180, half: true,
			live: replay(57, 1, 1, 1, 57, 1, 1),
		},
		{
			qHeads: 32, kvHeads: 8, headDim: 64, tokens: 1, context: 512, half: true,
			live: [][2]int{{1, 127}, {1, 511}},
		},
		{
			qHeads: 4, kvHeads: 2, headDim: 80, tokens: 1, context: 1500,
			live: [][2]int{{1, 383}, {1, 384}, {1, 385}, {1, 448}, {1, 1499}},
		},
	}) {
		trials = append(trials, c.trial())
	}
	hold(t, trials...)
}

// ExecuTorch's shapes at full size, on the routes that can run them.
func TestSDPALarge(t *testing.T) {
	var trials []*trial
	for _, c := range []attention{
		{qHeads: 24, kvHeads: 8, headDim: 128, tokens: 128, context: 256, live: [][2]int{{128, 0}}},
		{qHeads: 32, kvHeads: 8, headDim: 64, tokens: 1, context: 8192, live: [][2]int{{1, 8191}}},
		{qHeads: 32, kvHeads: 8, headDim: 64, tokens: 128, context: 512, live: [][2]int{{128, 0}, {1, 127}}},
		{qHeads: 32, kvHeads: 8, headDim: 64, tokens: 512, context: 512, live: [][2]int{{512, 0}}},
		{qHeads: 32, kvHeads: 8, headDim: 64, tokens: 2048, context: 2048, live: [][2]int{{2048, 0}}},
		{
			qHeads: 32, kvHeads: 8, headDim: 64, tokens: 512, context: 525, half: true,
			live: [][2]int{{512, 13}, {508, 13}, {128, 13}, {127, 13}, {16, 13}, {1, 13}},
		},
	} {
		trials = append(trials, c.trial())
	}
	holdLarge(t, trials...)
}

// The streaming route, alternating with the others.
func TestSDPAStreams(t *testing.T) {
	var trials []*trial
	for i, c := range attentions([]attention{
		{qHeads: 6, kvHeads: 2, headDim: 8, tokens: 4, context: 16, live: [][2]int{{4, 0}, {2, 2}, {1, 4}}},
		{qHeads: 4, kvHeads: 4, headDim: 32, tokens: 4, context: 16, gain: 100, live: [][2]int{{4, 0}}},
		{
			qHeads: 4, kvHeads: 1, headDim: 64, tokens: 150, context: 300,
			live: [][2]int{{150, 0}, {1, 127}, {70, 230}},
		},
		{
			qHeads: 9, kvHeads: 3, headDim: 64, tokens: 57, context: 180, half: true,
			live: replay(57, 1, 1, 1, 57, 1, 1),
		},
		{qHeads: 3, kvHeads: 1, headDim: 128, tokens: 66, context: 256, live: [][2]int{{66, 0}, {66, 190}}},
		{qHeads: 2, kvHeads: 2, headDim: 80, tokens: 66, context: 256, live: [][2]int{{66, 0}, {66, 190}}},
		// Several splits. Some tiles see no position of a split, or only some.
		{
			qHeads: 8, kvHeads: 2, headDim: 64, tokens: 70, context: 700,
			live: [][2]int{{70, 0}, {70, 630}, {2, 500}, {33, 290}, {16, 255}, {3, 1}},
		},
		{
			qHeads: 4, kvHeads: 1, headDim: 128, tokens: 40, context: 900, window: 400, half: true,
			live: [][2]int{{40, 0}, {40, 860}, {2, 898}, {20, 390}, {17, 640}},
		},
		{
			qHeads: 3, kvHeads: 3, headDim: 20, tokens: 5, context: 400,
			live: [][2]int{{5, 395}, {2, 250}, {4, 4}},
		},
	}) {
		for _, c.stream = range dealt(i, streamShapes) {
			streams := c.trial()
			streams.name += fmt.Sprintf(" %+v", c.stream)
			trials = append(trials, streams)
		}
	}
	wide := attention{
		qHeads: 8, kvHeads: 1, headDim: 256, tokens: 66, context: 300,
		live: [][2]int{{66, 0}, {66, 190}, {3, 260}, {1, 299}},
	}.trial()
	wide.maxBinding = 560_000 // larger than q, smaller than the scores of 66 tokens
	hold(t, append(trials, wide)...)
}

// On every device the streaming kernel has a shape that fits in workgroup memory.
func TestSDPAStreamsInTheMemoryOfTheDevice(t *testing.T) {
	best, small, smallest := streamShapes[0], streamShapes[1], streamShapes[2]
	for _, c := range []struct {
		headDim, storage int
		want             streamShape
	}{
		{64, 16 << 10, small},
		{128, 16 << 10, small},
		{132, 16 << 10, smallest},
		{256, 16 << 10, smallest},
		{64, 32 << 10, best},
		{128, 32 << 10, best},
		{256, 32 << 10, small},
		{256, 48 << 10, best},
		{260, 48 << 10, streamShape{}},
	} {
		limits := gpu.DefaultLimits()
		limits.MaxWorkgroupStorage = uint32(c.storage)
		b := graph.NewBuilder(limits)
		attention{
			qHeads: 4, kvHeads: 2, headDim: c.headDim, tokens: 512, context: 4096,
		}.build(b)
		g, err := b.Finish()
		if err != nil {
			t.Fatalf("heads of %d, %d bytes of workgroup memory: %v", c.headDim, c.storage, err)
		}
		g.Operators(func(_ graph.OpID, _ string, impl graph.Operator) bool {
			if o := impl.(*sdpa); o.stream != c.want {
				t.Errorf("heads of %d, %d bytes of workgroup memory: %+v, want %+v", c.headDim, c.storage,
					o.stream, c.want)
			}
			return true
		})
	}
}

// Caches hold noise, so that a wrongly visible position changes the result.
func TestSDPASeesAWindow(t *testing.T) {
	var trials []*trial
	for _, c := range attentions([]attention{
		{qHeads: 4, kvHeads: 2, headDim: 16, tokens: 5, context: 40, window: 3, live: replay(5, 1, 1, 5, 1)},
		{
			qHeads: 2, kvHeads: 1, headDim: 32, tokens: 140, context: 400, window: 64,
			live: [][2]int{{140, 0}, {1, 140}, {140, 260}, {1, 63}, {1, 399}, {65, 127}, {2, 63}},
		},
		{qHeads: 4, kvHeads: 1, headDim: 8, tokens: 70, context: 200, window: 1, live: replay(70, 1, 70, 3)},
		{qHeads: 2, kvHeads: 2, headDim: 64, tokens: 1, context: 900, window: 300, live: [][2]int{{1, 899}}},
		{qHeads: 4, kvHeads: 2, headDim: 256, tokens: 9, context: 90, window: 33, live: replay(9, 1, 9, 9)},
		{qHeads: 2, kvHeads: 1, headDim: 516, tokens: 3, context: 30, window: 4, live: replay(3, 3, 1, 1)},
		{
			qHeads: 3, kvHeads: 1, headDim: 64, tokens: 100, context: 300, window: 50, half: true,
			live: replay(100, 1, 99, 1, 2, 1),
		},
	}) {
		trials = append(trials, c.trial())
		if c.headDim <= sdpaRoomy && c.tokens > 1 {
			c.Route = "materialized"
			trials = append(trials, c.trial())
		}
	}
	hold(t, trials...)
}

// A gain of 20 makes scores much larger than the cap. The lengths of the steps select all routes.
func TestSDPACapsScores(t *testing.T) {
	var trials []*trial
	for _, c := range attentions([]attention{
		{
			qHeads: 8, kvHeads: 2, headDim: 64, tokens: 70, context: 1200, gain: 20, softCap: 2.5,
			live: [][2]int{{70, 0}, {1, 70}, {2, 600}, {1, 700}},
		},
		{
			qHeads: 2, kvHeads: 1, headDim: 16, tokens: 9, context: 500, gain: 20, softCap: 50, window: 33,
			half: true, live: replay(9, 1, 9, 9),
		},
		{
			qHeads: 2, kvHeads: 1, headDim: 132, tokens: 5, context: 70, gain: 20, softCap: 1,
			live: [][2]int{{5, 0}, {1, 5}, {5, 65}},
		},
		{
			qHeads: 4, kvHeads: 2, headDim: 16, tokens: 70, context: 100, gain: 20, softCap: 3,
			Route: "materialized", live: [][2]int{{70, 0}, {3, 70}},
		},
	}) {
		trials = append(trials, c.trial())
	}
	hold(t, trials...)
}

// Large sinks take most of the weight. The lengths of the steps select all routes.
func TestSDPAIncludesSinks(t *testing.T) {
	var trials []*trial
	for _, c := range attentions([]attention{
		{
			qHeads: 8, kvHeads: 2, headDim: 64, tokens: 70, context: 1200, sinks: 4,
			live: [][2]int{{70, 0}, {1, 70}, {2, 600}, {1, 700}, {70, 1100}},
		},
		{
			qHeads: 6, kvHeads: 2, headDim: 16, tokens: 9, context: 500, gain: 20, sinks: 60, window: 33,
			half: true, live: replay(9, 1, 9, 9),
		},
		{
			qHeads: 2, kvHeads: 1, headDim: 132, tokens: 5, context: 70, sinks: 200, softCap: 1,
			live: [][2]int{{5, 0}, {1, 5}, {5, 65}},
		},
		{
			qHeads: 4, kvHeads: 2, headDim: 16, tokens: 70, context: 100, sinks: 3, window: 20,
			Route: "materialized", live: [][2]int{{70, 0}, {3, 70}},
		},
		{
			qHeads: 4, kvHeads: 2, headDim: 64, tokens: 64, context: 1200, window: 500, Last: true, sinks: 2,
			live: [][2]int{{64, 0}, {64, 1136}, {3, 700}},
		},
	}) {
		trials = append(trials, c.trial())
	}
	hold(t, trials...)
}

// Without a sink the weights of the positions add up to 1, so a value of 1 at all positions gives 1. A sink
// as large as all scores together takes half of the weight.
func TestSinkTakesItsShareOfTheWeight(t *testing.T) {
	c := attention{qHeads: 2, kvHeads: 1, headDim: 4, tokens: 3, context: 8}
	build := func(b *graph.Builder) {
		q, k, v := c.inputs(b)
		dims := []int{1, c.context, c.kvHeads, c.headDim}
		sinks := b.Constant("sinks", graph.F32, []int{2}, func() ([]byte, error) {
			return float32Bytes([]float32{float32(math.Log(3)), float32(math.Inf(-1))}), nil
		})
		b.Output(SDPA(b, "sdpa", q, k, v, b.State("k_cache", graph.F32, dims),
			b.State("v_cache", graph.F32, dims), c.position(b), 0, 0, 0, sinks))
	}
	built := &trial{name: "sinks", build: build, state: true, fill: map[string]func(int) float64{
		"q": func(int) float64 { return 0 }, // all scores are 0
		"v": func(int) float64 { return 1 },
	}, steps: []step{c.step(3, 0)}}
	hold(t, built)
	g := finish(t, built)
	x := reference.NewInterpreter(g)
	if err := x.Step(built.input(t, g, built.steps[0]), nil); err != nil {
		t.Fatal(err)
	}
	y := x.Tensor(g.Outputs()[0])
	for token := range 3 {
		seen := float64(token + 1)
		if got, want := y.Row(2 * token)[0], seen/(seen+3); math.Abs(got-want) > 1e-6 {
			t.Errorf("token %d, head with a sink: %g, want %g", token, got, want)
		}
		if got := y.Row(2*token + 1)[0]; math.Abs(got-1) > 1e-12 {
			t.Errorf("token %d, head whose sink is minus infinity: %g, want 1", token, got)
		}
	}
}

// With a window, a step does the same work at every position past the window.
func TestAWindowBoundsTheWork(t *testing.T) {
	const window, context = 128, 4096
	for _, tokens := range []int{1, 100, 300} {
		work := func(position int) (groups, bytes, flops int64) {
			c := attention{
				qHeads: 4, kvHeads: 2, headDim: 64, tokens: 300, context: context, window: window,
				live: [][2]int{{tokens, position}},
			}
			trial := c.trial()
			g := finish(t, trial)
			live := liveAt(t, g, trial.input(t, g, trial.steps[0]))
			plans, _ := live.Step()
			for i := range plans {
				groups += plans[i].NeededGroups
				bytes += plans[i].Bytes
				flops += plans[i].FLOPs
			}
			return groups, bytes, flops
		}
		groups, bytes, flops := work(window)
		if g, b, f := work(context - tokens); g != groups || b != bytes || f != flops {
			t.Errorf("%d tokens at the end: %d workgroups, %d bytes, %d FLOPs; at %d: %d, %d, %d", tokens, g,
				b, f, window, groups, bytes, flops)
		}
		if _, _, f := work(0); f >= flops {
			t.Errorf("%d tokens at the start take %d FLOPs, want fewer than the %d of a full window",
				tokens, f, flops)
		}
	}
}

func TestSDPARefuses(t *testing.T) {
	golden := wordingtest.New(t)
	b := graph.NewBuilder(gpu.DefaultLimits())
	attention{qHeads: 2, kvHeads: 1, headDim: 6, tokens: 2, context: 8}.build(b)
	golden.Error("heads of 6", b.Err())
	b = graph.NewBuilder(gpu.DefaultLimits())
	attention{qHeads: 3, kvHeads: 2, headDim: 8, tokens: 2, context: 8}.build(b)
	golden.Error("3 heads on 2", b.Err())
	b = graph.NewBuilder(gpu.DefaultLimits())
	few := attention{qHeads: 2, kvHeads: 1, headDim: 8, tokens: 2, context: 8}
	q, k, v := few.inputs(b)
	dims := []int{1, 8, 1, 8}
	SDPA(b, "sdpa", q, k, v, b.State("k_cache", graph.F32, dims), b.State("v_cache", graph.F32, dims),
		few.position(b), 0, 0, 0, constant(b, "sinks", 1))
	golden.Error("one sink for 2 heads", b.Err())
	b = graph.NewBuilder(gpu.DefaultLimits())
	q, k, _ = few.inputs(b)
	few.attend(b, q, k, graph.None, few.position(b))
	golden.Error("k without v", b.Err())
	c := attention{qHeads: 2, kvHeads: 1, headDim: 8, tokens: 4, context: 8, live: [][2]int{{4, 5}}}
	g := finish(t, c.trial())
	live := liveOf(t, g, graph.LiveOptions{})
	golden.Error("past the cache", bring(live, c.trial().input(t, g, c.trial().steps[0])))
}

func TestAttentionReportsItsReadsAndIdleLanes(t *testing.T) {
	const heads, headDim, group = 6, 64, 64
	b := tinyBuilder()
	b.AskRoutes(map[string]string{"sdpa_with_kv_cache": "materialized"})
	c := attention{qHeads: heads, kvHeads: heads, headDim: headDim, tokens: 4, context: 2048}
	c.build(b)
	g, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	described := g.Describe()
	slot := func(label string) int {
		for i, d := range described.Dispatches {
			if d.Label == label {
				return i
			}
		}
		t.Fatalf("no dispatch %s", label)
		return -1
	}
	softmax := described.Dispatches[slot("softmax")]
	if len(softmax.Reads) != 1 || len(softmax.Writes) != 1 || softmax.Reads[0] != softmax.Writes[0] {
		t.Errorf("softmax reads %v and writes %v, want the scores as both", softmax.Reads, softmax.Writes)
	}
	b = tinyBuilder()
	b.AskRoutes(map[string]string{"sdpa_with_kv_cache": "flash_decoding"})
	c.tokens = 1
	c.build(b)
	if g, err = b.Finish(); err != nil {
		t.Fatal(err)
	}
	described = g.Describe()
	x := liveOf(t, g, graph.LiveOptions{})
	values := map[string]graph.ValueID{}
	for _, v := range g.Inputs() {
		values[g.Value(v).Name] = v
	}
	var block int
	g.Operators(func(_ graph.OpID, _ string, o graph.Operator) bool {
		block = o.(*sdpa).split.block
		return true
	})
	// 16 lanes add up every fourth split. With one split, three of the four groups of lanes have none.
	for position, busy := range map[int]int{0: 16, 2 * block: 48, 2047: 64} {
		for _, name := range []string{"q", "k", "v"} {
			if err := x.SetDims(values[name], 1, 1, heads, headDim); err != nil {
				t.Fatal(err)
			}
		}
		if err := x.SetInt(values["position"], int64(position)); err != nil {
			t.Fatal(err)
		}
		if err := x.Propagate(); err != nil {
			t.Fatal(err)
		}
		x.Commit()
		launch, _ := x.Launch(trace.DispatchID(slot("fd_reduce")))
		if want := int64(heads * (group - busy)); launch == nil || launch.Grid.Idle != want {
			t.Errorf("position %d: fd_reduce launches %+v, want %d idle lanes", position, launch, want)
		}
	}
}

// Each tile has 32 rows here. Each lane has 8 of them, and 16 lanes share the same 8.
func TestStreamingAttentionLanesWithoutARowIdle(t *testing.T) {
	c := attention{
		qHeads: 6, kvHeads: 2, headDim: 64, tokens: 100, context: 256, Route: "streaming",
		stream: streamShape{16, 4, 2}, live: [][2]int{{2, 0}, {3, 0}, {10, 0}, {11, 0}, {43, 100}},
	}
	g := finish(t, c.trial())
	live := liveOf(t, g, graph.LiveOptions{})
	for i, want := range []int64{2 * 3 * 16, 2 * 2 * 16, 0, 2 * 3 * 16, 2 * 3 * 16} {
		if err := bring(live, c.trial().input(t, g, c.trial().steps[i])); err != nil {
			t.Fatal(err)
		}
		plans, _ := live.Step()
		p := &plans[slices.IndexFunc(plans, func(p trace.Plan) bool { return p.Kernel == "sdpa_streaming" })]
		if p.IdleLanes != want {
			t.Errorf("%d tokens: %d lanes are idle, want %d", c.live[i][0], p.IdleLanes, want)
		}
	}
}
