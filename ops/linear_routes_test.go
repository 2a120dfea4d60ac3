package ops

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
	"gpuscope/ops/internal/shape"
	"gpuscope/ops/kind"
	"gpuscope/ops/weight"
	"gpuscope/trace"
)

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
			for _, gated := range []*basic.GatedRow{nil, {}} {
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
