package ops

import (
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
	"gpuscope/ops/reference"
	"gpuscope/ops/weight"
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
		down := product("down", basic.SiLUMul(b, "mul", product("gate", h), product("up", h)))
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
