package ops

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/gputest"
	"gpuscope/engine/graph"
	"gpuscope/internal/wordingtest"
	"gpuscope/ops/basic"
	"gpuscope/ops/internal/shape"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
	"gpuscope/ops/weight"
	"gpuscope/trace"
)

// linearCase is a matrix product in a graph.
type linearCase struct {
	kind        string
	k, n, group int
	half, bias  bool
	live        []int // numbers of rows, the largest first
	Route       string
	maxBinding  uint64
	deep        bool // skipped with -short: another case covers its routes
}

func (c linearCase) String() string {
	s := fmt.Sprintf("%s %dx%d", c.kind, c.k, c.n)
	if c.group > 0 {
		s += fmt.Sprintf(" group %d", c.group)
	}
	if c.half {
		s += " half scales"
	}
	if c.bias {
		s += " bias"
	}
	return s + " " + c.Route
}

// format returns the weight format of the case's kind.
func (c linearCase) format() weight.Format {
	switch _, name, _ := strings.Cut(c.kind, "_"); name {
	case "q4gsw":
		return weight.Q4GSW(c.group, weight.Q4Options{HalfScales: c.half})
	case "qcs4w":
		return weight.QCS4W(c.group, weight.Q4Options{HighNibbles: true})
	default:
		return weight.Formats[slices.IndexFunc(weight.Formats,
			func(f weight.Format) bool { return f.Name == name })]
	}
}

func (c linearCase) build(b *graph.Builder) {
	x := b.Input("x", graph.F32, []int{1, 1, c.k}, []int{1, c.live[0], c.k})
	bias := graph.None
	if c.bias {
		bias = constant(b, "bias", c.n)
	}
	b.Output(Linear(b, "y", x, noiseMatrix("w", c.n, c.k, c.format()), bias))
}

func (c linearCase) trial() *trial {
	t := &trial{name: c.String(), build: c.build, maxBinding: c.maxBinding}
	if c.Route != "" {
		t.Routes = map[string]string{c.kind: c.Route}
	}
	for _, m := range c.live {
		t.steps = append(t.steps, step{"x": {1, m, c.k}})
	}
	return t
}

func sampleLinear(t *rapid.T, kind string) *trial {
	c := linearCase{kind: kind, n: draw(t, "n", 1, 300), bias: rapid.Bool().Draw(t, "bias")}
	switch kind {
	case "linear_q4gsw", "linear_qcs4w":
		c.group = 8 * rapid.SampledFrom([]int{1, 2, 3, 4, 4, 4, 8, 16}).Draw(t, "group of eights")
		c.k = c.group * draw(t, "groups", 1, 600/c.group)
		c.half = rapid.Bool().Draw(t, "half scales")
		if kind == "linear_qcs4w" {
			c.group = c.k
		}
	default:
		block := c.format().Pieces[0].Cols
		c.k = block * draw(t, "blocks", 1, max(300/block, 6))
	}
	most := draw(t, "rows", 1, 140)
	c.live = []int{most}
	built := c.trial()
	built.steps = drawSteps(t, func(int) step { return step{"x": {1, draw(t, "live rows", 1, most), c.k}} })
	return built
}

// The shapes of a model's layers with their live rows, reduced where the size does not affect the kernel.
func TestLinear(t *testing.T) {
	var trials []*trial
	for _, c := range []linearCase{
		// ExecuTorch's dynamic shapes.
		{kind: "linear_q4gsw", k: 64, n: 128, group: 32, live: []int{128, 32, 1, 128}},
		{kind: "linear_q4gsw", k: 72, n: 128, group: 24, live: []int{128, 32, 1}, deep: true},
		{kind: "linear_q4gsw", k: 72, n: 512, group: 24, bias: true, live: []int{128, 32, 1}},
		// Decode, where the lanes cover the columns in one step and in several.
		{kind: "linear_q4gsw", k: 2048, n: 2048, group: 32, half: true, live: []int{1}},
		{kind: "linear_q4gsw", k: 2048, n: 512, group: 64, live: []int{1}},
		{kind: "linear_q4gsw", k: 8192, n: 256, group: 128, half: true, live: []int{1}},
		{kind: "linear_q4gsw", k: 14336, n: 64, group: 32, half: true, live: []int{17, 7, 3, 1}},
		// Every route that live rows choose, and the limits of its range.
		{
			kind: "linear_q4gsw", k: 96, n: 131, group: 32, bias: true,
			live: []int{129, 65, 64, 17, 16, 9, 8, 5, 4, 3, 2, 1},
		},
		{kind: "linear", k: 96, n: 131, bias: true, live: []int{129, 65, 64, 17, 16, 9, 8, 5, 4, 3, 2, 1}},
		{kind: "linear", k: 67, n: 43, bias: true, live: []int{130, 64, 5, 1}, deep: true},
		{kind: "linear_qcs4w", k: 136, n: 70, group: 136, live: []int{70, 16, 4, 1}},
		{kind: "linear_q4gsw", k: 64, n: 16400, group: 32, half: true, live: []int{129, 64, 1}},
		{kind: "linear", k: 36, n: 16390, live: []int{129}, deep: true},
		{kind: "linear_f16", k: 8, n: 5, live: []int{67, 9, 3, 1}},
		{kind: "linear_q8_0", k: 32, n: 2051, live: []int{67, 9, 3, 1}},
		{kind: "linear_q8_0", k: 64, n: 16400, live: []int{65}, deep: true},
		// A table larger than a binding, in three parts.
		{
			kind: "linear_q4gsw", k: 256, n: 700, group: 32, bias: true, live: []int{12, 3, 1},
			maxBinding: 256 / 2 * 300,
		},
		{kind: "linear_q8_0", k: 256, n: 700, bias: true, live: []int{20, 12, 3, 1}, maxBinding: 256 * 300},
		{kind: "linear_f16", k: 256, n: 700, live: []int{50, 12, 3, 1}, maxBinding: 2 * 256 * 300},
		{kind: "linear", k: 257, n: 700, live: []int{70, 12, 1}, maxBinding: 4 * 257 * 300},
	} {
		if !c.deep || !testing.Short() {
			trials = append(trials, c.trial())
		}
	}
	hold(t, trials...)
}

// Every format on every route that live rows choose. Rows have several chunks and lanes, or one block.
func TestLinearOfEachFormat(t *testing.T) {
	var trials []*trial
	for i, f := range weight.Formats {
		if f.Group > 0 && f.File == "" || f.Name == "" {
			continue // TestLinear covers formats with options, and f32
		}
		c := linearCase{kind: f.KindName("linear")}
		if f.Name == weight.Q4_0.Name {
			c.group, c.half = 32, true
		}
		block := f.Pieces[0].Cols
		wide, narrow := c, c
		wide.k, wide.n, wide.bias = shape.DivUp(1152, block)*block, 70, true
		wide.live = []int{130, 64, 16, 4, 1}
		narrow.k, narrow.n, narrow.live = block, 131, []int{67, 9, 3, 1}
		tiled := wide // the route of gate and up products, which are not split
		tiled.Route, tiled.live = "tile64", []int{130, 64}
		cases := []linearCase{wide, tiled, narrow}
		if testing.Short() { // a GEMV and one of the larger kernels
			some := cases[i%len(cases)]
			some.live = []int{some.live[i/len(cases)%(len(some.live)-1)], 1}
			cases = []linearCase{some}
		}
		for _, c := range cases {
			trials = append(trials, c.trial())
		}
		if f.AsHalves {
			flushed := wide
			flushed.live = dealt(i, []int{64, 1})
			small := flushed.trial()
			small.name, small.flushes = small.name+", small halves are flushed", true
			trials = append(trials, small)
		}
	}
	hold(t, trials...)
}

// With every weight format, a product is as precise as f32 allows, compared to the product in float64.
func TestProductsOfEachFormatArePrecise(t *testing.T) {
	dev := gputest.Open(t)
	for _, f := range weight.Formats {
		if f.File == "" {
			continue
		}
		t.Run(f.File, func(t *testing.T) {
			b := graph.NewBuilder(dev.Info().Limits)
			linearOf(4096, 32, 1, f)(b)
			g, err := b.Finish()
			if err != nil {
				t.Fatal(err)
			}
			x, err := engine.Load(dev, g, graph.LiveOptions{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer x.Release()
			c := &trial{}
			in := c.input(t, g, step{"x": {1, 4096}})
			got, err := runPoisoned(x, g, in)
			if err != nil {
				t.Fatal(err)
			}
			ref := reference.NewInterpreter(g)
			if err := ref.Step(in, nil); err != nil {
				t.Fatal(err)
			}
			y := g.Outputs()[0]
			values, err := reference.Decode(graph.F32, got[0], 32)
			if err != nil {
				t.Fatal(err)
			}
			var signal, gap float64
			for i, want := range ref.Tensor(y).Data {
				signal += want * want
				gap += (values[i] - want) * (values[i] - want)
			}
			dB := 10 * math.Log10(signal/gap)
			t.Logf("%.0f dB", dB)
			if !(dB > 120) {
				t.Errorf("SNR of %.0f dB against the product in float64, want more than 120", dB)
			}
		})
	}
}

// ExecuTorch's shapes at full size.
func TestLinearLarge(t *testing.T) {
	var trials []*trial
	for _, c := range []linearCase{
		{kind: "linear_q4gsw", k: 2048, n: 8192, group: 32, half: true, live: []int{1}},
		{kind: "linear_q4gsw", k: 8192, n: 2048, group: 64, live: []int{128, 16, 1}},
		{kind: "linear_q4gsw", k: 2048, n: 128256, group: 32, half: true, live: []int{1}},
		{kind: "linear_q4gsw", k: 2048, n: 2048, group: 64, live: []int{4096}},
		{kind: "linear_q4gsw", k: 2048, n: 512, group: 8, live: []int{4096, 1}},
		{kind: "linear_q4gsw", k: 2048, n: 256, group: 32, live: []int{96}},
		{kind: "linear_q4gsw", k: 1024, n: 136, group: 64, live: []int{70}},
		{kind: "linear_q4gsw", k: 2048, n: 8192, group: 128, live: []int{512, 508, 128, 1}},
		{kind: "linear_q4gsw", k: 4096, n: 2056, group: 32, live: []int{130}},
		{kind: "linear", k: 2048, n: 2056, bias: true, live: []int{1030, 128, 1}},
	} {
		built := c.trial()
		if c.k == 8192 {
			built.abs, built.rel = 1e-3, 1e-2
		}
		trials = append(trials, built)
	}
	holdLarge(t, trials...)
}

// A forced route runs every live shape.
func TestLinearRoutesAsked(t *testing.T) {
	var trials []*trial
	for i, route := range linearRouteNames {
		if slices.Contains([]string{"last", "gemv_splits", "split64", "split128"}, route) {
			continue // these need a fusion rule, or more columns (below)
		}
		for _, kind := range dealt(i, []string{"linear_q4gsw", "linear_q8_0", "linear_f16", "linear"}) {
			c := linearCase{kind: kind, k: 160, n: 75, live: []int{67, 16, 3, 1}, Route: route}
			if kind == "linear_q4gsw" {
				c.group = 32
			}
			if route == "gemv" {
				c.live = []int{1}
			}
			trials = append(trials, c.trial())
		}
	}
	// Columns that are not a multiple of a tile's step, and rows and columns that end inside a tile.
	for i, route := range []string{"split64", "tile64", "tile128", "split128"} {
		more := map[string]int{"split64": 1008, "split128": 504}[route]
		for _, c := range dealt(i, []linearCase{
			{kind: "linear_q4gsw", k: 72 + more, n: 75, group: 24, bias: true, live: []int{130, 65, 1}},
			{kind: "linear", k: 99 + 3*more, n: 66, live: []int{129, 1}},
		}) {
			c.Route = route
			if route == "split64" {
				c.live = []int{smallTile - 1, 20, 1}
			}
			trials = append(trials, c.trial())
		}
	}
	hold(t, trials...)
}

// If a shape has too many rows for a forced route, the error says how many the route takes. It takes that
// many.
func TestRoutesForFewRowsSayHowMany(t *testing.T) {
	for route, most := range map[string]int{
		"gemv": 1, "split64": 64, "tile64": kind.Always,
		"batch4": kind.Always,
	} {
		for _, rows := range []int{min(most, 512), min(most, 511) + 1} {
			b := graph.NewBuilder(gpu.DefaultLimits())
			b.AskRoutes(map[string]string{"linear_q8_0": route})
			linearCase{kind: "linear_q8_0", k: 1024, n: 64, live: []int{rows}}.build(b)
			_, err := b.Finish()
			if rows <= most {
				if err != nil {
					t.Errorf("%s of %d rows: %v", route, rows, err)
				}
				continue
			}
			want := graph.RouteLimit{Route: route, Of: "M", Most: most, Work: rows}
			if got, ok := errors.AsType[*graph.RouteLimit](err); !ok || *got != want {
				t.Errorf("%s of %d rows: %v, want %v", route, rows, err, &want)
			}
		}
	}
}

// Four teams need more workgroup memory than some devices have. Two teams are used there.
func TestFourTeamsOfLanesShareATile(t *testing.T) {
	limits := gpu.DefaultLimits()
	for _, c := range []struct {
		memory   uint32
		n, teams int
	}{
		{32 << 10, 1024, 2},
		{48 << 10, 1024, 4},
		{48 << 10, 8192, 4},
		{48 << 10, 8256, 2},
	} {
		limits.MaxWorkgroupStorage = c.memory
		o := &linear{w: weight.Matrix{Rows: c.n, Cols: 4096, Format: weight.Q4_0}}
		if s := tiles64(o, &limits); s.teams != c.teams || s.lanes != 64*c.teams {
			t.Errorf("%d bytes, N %d: %d teams, %d lanes, want %d teams",
				c.memory, c.n, s.teams, s.lanes, c.teams)
		}
	}
	was := tuned
	defer func() { tuned = was }()
	tuned.quads = 2
	var trials []*trial
	for _, c := range []linearCase{
		{kind: "linear_q4gsw", k: 160, n: 75, group: 32, bias: true, live: []int{67, 64, 1}},
		{kind: "linear_q8_0", k: 64, n: 64, live: []int{130}},
		{kind: "linear", k: 99, n: 66, live: []int{129, 1}},
	} {
		c.Route = "tile64"
		trials = append(trials, c.trial())
	}
	hold(t, trials...)
}

// inSplits is an operator that defers a row stored in splits.
type inSplits struct{ leaver }

func (inSplits) left(int) graph.ValueID { return 1 }

func TestGEMVLaneCountMatchesTheDevice(t *testing.T) {
	for _, c := range []struct {
		f                 weight.Format
		k, n, rows, lanes int
	}{
		{weight.Q4_0, 4096, 4096, 8, 128},
		{weight.Q4_0, 4096, 12288, 16, 128}, // all workgroups run at once
		{weight.Q4_0, 4096, 14336, 8, 64},
		{weight.Q4_0, 4096, 28672, 16, 64}, // halved only once, although workgroups still wait
		{weight.Q4_0, 14336, 4096, 8, 224},
		{weight.Q4_0, 2048, 16384, 16, 64},
		{weight.Q4_0, 8192, 2048, 8, 256},
		{weight.Q4_0, 2048, 2048, 4, 64},
		{weight.Q4_K, 4096, 4096, 8, 128},
		{weight.Q4_0, 2016, 32768, 16, 64}, // 63 lanes are too few to halve
		{weight.Q8_0, 4096, 14336, 8, 64},
		{weight.Q4_K, 4096, 14336, 16, 128}, // with several scales, starting a chunk takes longer
		{weight.Q4_K, 14336, 4096, 16, 224},
	} {
		o := &linear{w: weight.Matrix{Rows: c.n, Cols: c.k, Format: c.f}, y: 1}
		limits := gpu.DefaultLimits()
		if s := o.gemv(&limits); s.rows != c.rows || s.lanes != c.lanes {
			t.Errorf("%s, K %d, N %d: %d rows, %d lanes, want %d, %d", c.f.File, c.k, c.n, s.rows, s.lanes,
				c.rows, c.lanes)
		}
	}
	left := &linear{w: weight.Matrix{Rows: 4096, Cols: 4096, Format: weight.Q4_0}, before: inSplits{}, y: 1}
	limits := gpu.DefaultLimits()
	if s := left.gemv(&limits); s.rows != 16 {
		t.Errorf("x in splits, K 4096, N 4096: %d rows, want 16", s.rows)
	}
	left.w.Rows, left.w.Cols = 2048, 2048
	if s := left.gemv(&limits); s.rows != 4 {
		t.Errorf("x in splits, K 2048, N 2048: %d rows, want 4", s.rows)
	}
	// These formats keep their rows and lanes. With F16 a lane reads few columns at a time, so it takes
	// several steps anyway. With a lookup table, lanes wait for the loads of other lanes.
	for _, c := range []struct {
		f        weight.Format
		n, lanes int
	}{{weight.F16, 7168, 176}, {weight.IQ4_NL, 4096, 128}, {weight.IQ4_NL, 14336, 128}} {
		o, limits := &linear{w: weight.Matrix{Rows: c.n, Cols: 4096, Format: c.f}, y: 1}, gpu.DefaultLimits()
		if s := o.gemv(&limits); s.rows != 16 || s.lanes != c.lanes {
			t.Errorf("%s, N %d: %d rows, %d lanes, want 16, %d", c.f.File, c.n, s.rows, s.lanes, c.lanes)
		}
	}
}

func TestLinearChoosesItsRouteByLiveRows(t *testing.T) {
	for _, c := range []struct {
		k, n, m int
		want    string
		why     kind.Reason
	}{
		{2048, 2048, 1, "gemv", kind.OneRow},
		{2048, 2048, 2, "batch4", kind.AtMost4Rows},
		{2048, 2048, 16, "batch8", kind.AtMost16Rows},
		{2048, 2048, 17, "split64", kind.AtMost64Rows},
		{2048, 2048, 64, "split64", kind.AtMost64Rows},
		{2048, 2048, 65, "split128", kind.FewTiles128},
		{1024, 4096, 17, "split64", kind.AtMost64Rows},
		{1024, 4160, 64, "tile64", kind.FewTiles64},
		{1024, 4160, 65, "split128", kind.FewTiles128},
		{1016, 2048, 128, "tile64", kind.FewTiles64},
		{1016, 2048, 129, "split128", kind.FewTiles128},
		{256, 2048, 256, "tile64", kind.FewTiles64},
		{2048, 2048, 512, "split128", kind.FewTiles128},
		{2048, 2048, 769, "tile128", kind.ManyTiles128},
		{2048, 3072, 512, "split128", kind.FewTiles128},
		{2048, 8192, 128, "split128", kind.FewTiles128},
		{256, 2048, 512, "tile128", kind.ManyTiles128},
		{2048, 8192, 512, "tile128", kind.ManyTiles128},
		{2048, 128256, 65, "tile128", kind.ManyTiles128},
	} {
		limits := gpu.LimitSets[1].Limits
		o := linear{w: weight.Matrix{Rows: c.n, Cols: c.k, Format: weight.Q4_0}}
		o.plan(&limits)
		if r := o.Routes[o.Routes.Preferred(c.m)]; r.Name != c.want || r.Why != c.why {
			t.Errorf("K %d, N %d, M %d: route %s (%s), want %s", c.k, c.n, c.m, r.Name, r.Why, c.want)
		}
	}
}

// The reason given for a tile route is true for the shape.
func TestReasonsForTilesAreTrue(t *testing.T) {
	limits, said := gpu.LimitSets[1].Limits, map[kind.Reason]int{}
	for _, k := range []int{256, 512, 1016, 1024, 1028, 4096} {
		for _, n := range []int{64, 1024, 3072, 4096, 4160, 8192, 16384, 128256} {
			for _, gated := range []*gatedRow{nil, {}} {
				o := &linear{w: weight.Matrix{Rows: n, Cols: k, Format: weight.F32}, gated: gated}
				o.plan(&limits)
				for m := 1; m < 1300; m++ {
					few := func(tile, of int) bool {
						return shape.DivUp(m, tile)*shape.DivUp(n, tileColumns) <= of
					}
					why := o.Routes[o.Routes.Preferred(m)].Why
					said[why]++
					if is, ok := map[kind.Reason]bool{
						kind.AtMost64Rows: m <= 64 && few(64, tuned.fill/2) && o.splittable() &&
							k >= 4*splitColumns,
						kind.FewTiles64:   m <= 64 || few(64, tuned.fill),
						kind.FewTiles128:  few(128, tuned.tiles/2) && o.splittable(),
						kind.ManyTiles128: !few(128, tuned.tiles/2) || !o.splittable(),
					}[why]; ok && !is {
						t.Fatalf("K %d, N %d, M %d, gated %v: %s", k, n, m, gated != nil, why)
					}
				}
			}
		}
	}
	for _, why := range []kind.Reason{
		kind.AtMost64Rows, kind.FewTiles64, kind.FewTiles128,
		kind.ManyTiles128,
	} {
		if said[why] == 0 {
			t.Errorf("reason never given: %s", why)
		}
	}
}

// Columns are split into as many parts as fill the device with tiles, while each part keeps enough columns.
func TestFewTilesSplitColumns(t *testing.T) {
	limits := gpu.LimitSets[1].Limits
	for _, c := range []struct{ Route, k, n, m, want int }{
		{linearSplit128, 2048, 2048, 512, 3},
		{linearSplit128, 2048, 2048, 500, 3},
		{linearSplit128, 2048, 2048, 257, 4},
		{linearSplit128, 8192, 1024, 129, 12},
		{linearSplit128, 2048, 1024, 129, 8},
		{linearSplit128, 2048, 3072, 512, 2},
		{linearSplit128, 2048, 8192, 512, 1},
		{linearSplit64, 2048, 2048, 64, 8},
		{linearSplit64, 14336, 4096, 17, 24},
		{linearSplit64, 2048, 1024, 64, 8},
		{linearSplit64, 2048, 512, 64, 16}, // 128 columns each; with 256 they would fill half of the device
	} {
		o := linear{w: weight.Matrix{Rows: c.n, Cols: c.k, Format: weight.Q4_0}}
		o.plan(&limits)
		if n := o.splitsOf(c.Route, c.m); n != c.want {
			t.Errorf("K %d, N %d, M %d: %d splits, want %d", c.k, c.n, c.m, n, c.want)
		}
	}
}

// A graph allocates enough memory for a product with any number of rows, on each forced route and on the
// route that --static pins. No live grid exceeds the largest grid of the corners.
func TestProductsHaveRoomForAnyNumberOfRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := linearCase{
			kind: "linear_q8_0", k: 32 * draw(t, "k", 1, 300), n: draw(t, "n", 1, 9000),
			live: []int{largeTile*draw(t, "tiles", 0, 4) + draw(t, "rows", 1, 32)},
		}
		b := graph.NewBuilder(gpu.LimitSets[draw(t, "limits", 0, len(gpu.LimitSets)-1)].Limits)
		route := rapid.SampledFrom([]string{"", "", "batch4", "split64", "tile64", "split128"}).Draw(t, "route")
		if route != "" {
			b.AskRoutes(map[string]string{c.kind: route})
		}
		c.build(b)
		g, err := b.Finish()
		if errors.Is(err, graph.ErrRoute) {
			t.Skip(err) // the route is not available for these sizes
		}
		if err != nil {
			t.Fatal(err)
		}
		slots := g.Describe().Dispatches
		for _, static := range []bool{false, true} {
			live := liveOf(t, g, graph.LiveOptions{Static: static})
			for m := 1; m <= c.live[0]; m++ {
				x := graph.InputData{Value: g.Inputs()[0], Dims: []int{1, m, c.k}}
				if err := bring(live, &graph.StepInput{Inputs: []graph.InputData{x}}); err != nil {
					t.Fatalf("%v%s, static %v, %d rows: %v", c, route, static, m, err)
				}
				for _, id := range live.Active() {
					l, _ := live.Launch(id)
					if most := slots[id].MaxWorkgroups; l.Grid.Workgroups() > int64(shape.Product(most[:])) {
						t.Fatalf("%v%s, static %v, %d rows: %d workgroups of %v", c, route, static, m,
							l.Grid.Workgroups(), most)
					}
				}
			}
		}
	})
}

// The sums of splits get exactly the memory that the largest step fills. Few rows have the most splits; with
// many rows, each split has the most rows. With --static, few rows may be split that otherwise would not be.
func TestSplitSumsHaveMemoryForTheLargestStep(t *testing.T) {
	for _, c := range []linearCase{
		{k: 2048, n: 2048, live: []int{512}},
		{k: 8192, n: 1024, live: []int{1000}},
		{k: 3840, n: 2048, live: []int{130}},
	} {
		c.kind = "linear_q8_0"
		b := graph.NewBuilder(gpu.DefaultLimits())
		c.build(b)
		g, err := b.Finish()
		if err != nil {
			t.Fatal(err)
		}
		values := g.Describe().Values
		sums := values[slices.IndexFunc(values, func(v trace.Value) bool { return v.Name == "y.sums" })]
		most := int64(0)
		for _, static := range []bool{false, true} {
			live := liveOf(t, g, graph.LiveOptions{Static: static})
			for m := 1; m <= c.live[0]; m++ {
				x := graph.InputData{Value: g.Inputs()[0], Dims: []int{1, m, c.k}}
				if err := bring(live, &graph.StepInput{Inputs: []graph.InputData{x}}); err != nil {
					t.Fatalf("%v, static %v, %d rows: %v", c, static, m, err)
				}
				most = max(most, graph.F32.Bytes(shape.Product(live.Dims(graph.ValueID(sums.ID)))))
			}
		}
		if sums.Bytes != most {
			t.Errorf("%v: %d bytes allocated, the largest step fills %d", c, sums.Bytes, most)
		}
	}
}

// Tiles are as large as workgroup memory allows. If four teams do not fit, two are used.
func TestTilesFitTheWorkgroupMemory(t *testing.T) {
	for _, c := range []struct {
		memory uint32
		quads  map[string]int
	}{
		{16 << 10, map[string]int{"split64": 4, "tile64": 2, "split128": 4, "tile128": 4}},
		{32 << 10, map[string]int{"split64": 4, "tile64": 4, "split128": 4, "tile128": 4}},
	} {
		limits := gpu.DefaultLimits()
		limits.MaxWorkgroupStorage = c.memory
		for _, n := range []int{64, 2048, 28672} {
			o := linear{w: weight.Matrix{Rows: n, Cols: 2048, Format: weight.Q4_0}}
			o.plan(&limits)
			for i, s := range o.shapes {
				if i == linearSplit64 && !o.manySplits() {
					continue
				}
				if name := o.Routes[i].Name; s.quads != c.quads[name] || strings.HasPrefix(name, "tile") &&
					o.Routes.Has(i) != (s.quads > 0) {
					t.Errorf("%d bytes, N %d: %s has %d quads, want %d", c.memory, n, name, s.quads,
						c.quads[name])
				}
			}
			for m := range 2000 {
				if m > 0 && !o.Routes.Has(o.Routes.Preferred(m)) {
					t.Fatalf("%d bytes, N %d: M %d takes a route that is ruled out", c.memory, n, m)
				}
			}
		}
	}
}

// The kernels of every route add the residual that follows a product. A single row on either side is
// broadcast to all rows of the other, as in the unfused sum.
func TestLinearAddsAResidual(t *testing.T) {
	var trials []*trial
	for i, f := range weight.Formats {
		k := max(64, f.Pieces[0].Cols)
		if f.Name == weight.Q4_0.Name {
			k = 768 // for three splits
		}
		c := &trial{name: f.KindName("linear") + " " + f.File, build: func(b *graph.Builder) {
			o := &linear{w: noiseMatrix("w", 75, k, f), bias: graph.None}
			o.x = b.Input("x", graph.F32, []int{1, 1, k}, []int{1, 70, k})
			o.residual = b.Input("r", graph.F32, []int{1, 1, 75}, []int{1, 70, 75})
			if i%2 == 0 {
				o.bias = constant(b, "bias", 75)
			}
			b.Output(o.add(b, "y"))
		}}
		rows := []int{70, 16, 4, 1}
		if f.Name != weight.Q4_0.Name && testing.Short() {
			rows = dealt(i, rows[1:]) // tiles take the longest to compile
		}
		for _, m := range rows {
			c.steps = append(c.steps, step{"x": {1, m, k}, "r": {1, m, 75}})
		}
		if !testing.Short() || f.Name == weight.Q4_0.Name {
			for _, m := range []int{70, 3} {
				c.steps = append(c.steps, step{"x": {1, 1, k}, "r": {1, m, 75}})
				c.steps = append(c.steps, step{"x": {1, m, k}, "r": {1, 1, 75}})
			}
		}
		trials = append(trials, c)
		if f.Name == weight.Q4_0.Name {
			for _, route := range []string{"split128", "tile128"} {
				asked := *c
				asked.name, asked.Routes = c.name+" "+route, map[string]string{f.KindName("linear"): route}
				trials = append(trials, &asked)
			}
		}
	}
	hold(t, trials...)
}

// Projections with and without a residual share a kernel. A second kernel would cost a decode step more than
// the fused sum saves, because its code is fetched from memory in every layer.
func TestProjectionsShareAKernelDespiteResiduals(t *testing.T) {
	b := graph.NewBuilder(gpu.DefaultLimits())
	x := b.Input("x", graph.F32, []int{1, 1, 256}, []int{1, 70, 256})
	projection := func(name string, rows int, residual graph.ValueID) *linear {
		o := &linear{x: x, w: noiseMatrix(name, rows, 256, weight.Q4_0), bias: graph.None, residual: residual}
		o.add(b, name)
		return o
	}
	up := projection("up", 2048, graph.None)
	down := projection("down", 2048, b.Input("r", graph.F32, []int{1, 1, 2048}, []int{1, 70, 2048}))
	if err := b.Err(); err != nil {
		t.Fatal(err)
	}
	if up.kernels[0] != down.kernels[0] {
		t.Errorf("route %s has two kernels, want a shared one:\n%s\n%s", linearRoutes[0].name,
			up.kernels[0].Constants, down.kernels[0].Constants)
	}
}

// A submit has to wait for every param. So a GEMV only has params that its kernel cannot know.
func TestGEMVParamsHoldWhatItsKernelCannotKnow(t *testing.T) {
	mlp := func(b *graph.Builder) {
		x := b.Input("x", graph.F32, []int{1, 256}, []int{9, 256})
		product := func(name string, x graph.ValueID) graph.ValueID {
			return Linear(b, name, x, noiseMatrix(name+".w", 256, 256, weight.Q4_0), graph.None)
		}
		h := RMSNorm(b, "norm", x, constant(b, "norm.w", 256), 1e-5)
		down := product("down", SiLUMul(b, "mul", product("gate", h), product("up", h)))
		b.Output(basic.Add(b, "add", down, x, 1))
	}
	whole, halves := gpu.DefaultLimits(), gpu.DefaultLimits()
	halves.MaxStorageBinding = partBytes(weight.Q4_0, 256)
	for name, c := range map[string]struct {
		limits gpu.Limits
		rules  []graph.Fusion
		want   []string // params and constants of each kernel
	}{
		"fused":   {whole, Fusions, []string{"const n const eps", "const n"}},
		"unfused": {whole, nil, []string{"residual_rows const n"}},
		"parts":   {halves, nil, []string{"n first residual_rows"}},
		"norm deferred to parts": {
			halves, []graph.Fusion{fuseNorm}, []string{"n first const eps", "n first residual_rows"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, k := range fusedBy(t, mlp, c.limits, c.rules...).Describe().Kernels {
				if !strings.HasPrefix(k.Name, "linear_q4gsw_gemv") {
					continue
				}
				var has []string
				for _, p := range k.Params {
					has = append(has, p.Name)
				}
				for _, c := range []string{"const n", "const eps"} {
					if strings.Contains(k.Source, "\n"+c+" = ") {
						has = append(has, c)
					}
				}
				got = append(got, strings.Join(has, " "))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("kernels have %q, want %q", got, c.want)
			}
		})
	}
}

func TestRowsAtMost(t *testing.T) {
	for _, c := range []struct {
		lowest, highest []int
		m               int
		want            []int
	}{
		{[]int{1, 1, 8}, []int{1, 512, 8}, 16, []int{1, 16, 8}},
		{[]int{1, 8}, []int{5, 8}, 16, []int{5, 8}},
		{[]int{3, 1, 8}, []int{3, 9, 8}, 16, []int{3, 5, 8}},
		{[]int{1, 3, 8}, []int{9, 3, 8}, 16, []int{5, 3, 8}},
		{[]int{1, 5, 8}, []int{9, 7, 8}, 17, []int{3, 5, 8}},
		{[]int{4, 5, 8}, []int{9, 7, 8}, 17, nil},
		{[]int{8}, []int{8}, 1, []int{8}},
	} {
		if got := rowsAtMost(c.lowest, c.highest, c.m); !slices.Equal(got, c.want) {
			t.Errorf("between %v and %v at most %d rows: %v, want %v", c.lowest, c.highest, c.m, got, c.want)
		}
	}
}

func TestLinearRefuses(t *testing.T) {
	golden := wordingtest.New(t)
	for _, c := range []struct {
		name  string
		built linearCase
	}{
		{
			"columns that make no whole words",
			linearCase{kind: "linear_q4gsw", k: 60, n: 8, group: 4, live: []int{1}},
		},
		{
			"groups that do not divide a row",
			linearCase{kind: "linear_q4gsw", k: 64, n: 8, group: 24, live: []int{1}},
		},
		{
			"groups where one scale to a row is wanted",
			linearCase{kind: "linear_qcs4w", k: 64, n: 8, group: 32, live: []int{1}},
		},
		{
			"columns that make no whole groups",
			linearCase{kind: "linear_q8_0", k: 40, n: 8, live: []int{1}},
		},
		{
			"columns that make no whole blocks",
			linearCase{kind: "linear_f16", k: 36, n: 8, live: []int{1}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := graph.NewBuilder(gpu.DefaultLimits())
			c.built.build(b)
			golden.Error(c.name, b.Err())
		})
	}
	b := graph.NewBuilder(gpu.DefaultLimits())
	Linear(b, "y", b.Input("x", graph.F32, []int{1, 32}, []int{4, 32}), q4Noise("w", 8, 64, 32),
		graph.None)
	golden.Error("x of the wrong width", b.Err())
}
