package ops

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
)

// drawDims draws the range of a tensor's dims. Each dim is static or live.
func drawDims(t *rapid.T, rank int) (lo, hi []int) {
	for range rank {
		n := draw(t, "dim", 1, []int{0, 300, 60, 16, 8}[rank])
		hi = append(hi, n)
		lo = append(lo, rapid.SampledFrom([]int{1, n}).Draw(t, "least"))
	}
	return lo, hi
}

func drawLive(t *rapid.T, lo, hi []int) []int {
	var dims []int
	for k := range hi {
		dims = append(dims, draw(t, "live dim", lo[k], hi[k]))
	}
	return dims
}

// sliceTrial slices along one axis. A start or second that is a SymInt gets its range from symRange.
func sliceTrial(lo, hi []int, axis int, start, second kind.Int, symRange [2][2]int64, ranged bool,
	stride int,
) *trial {
	return &trial{
		name: fmt.Sprintf("%v dim %d", hi, axis), abs: 1e-9, rel: 1e-9,
		build: func(b *graph.Builder) {
			x := b.Input("x", graph.F32, lo, hi)
			if start.IsSym {
				start = kind.Sym(b.SymInt("start", symRange[0][0], symRange[0][1], symRange[0][0]))
			}
			if second.IsSym {
				second = kind.Sym(b.SymInt("second", symRange[1][0], symRange[1][1], symRange[1][0]))
			}
			if ranged {
				b.Output(basic.SliceRange(b, "y", x, axis, start, second, stride))
			} else {
				b.Output(basic.Slice(b, "y", x, axis, start, second))
			}
		},
	}
}

func sampleSlice(t *rapid.T) *trial {
	rank := rapid.IntRange(1, 4).Draw(t, "rank")
	lo, hi := drawDims(t, rank)
	axis := rapid.IntRange(0, rank-1).Draw(t, "axis")
	ranged := rapid.Bool().Draw(t, "ranged")
	if ranged {
		return sampleSliceRange(t, lo, hi, axis)
	}
	// Draw a start and a length that fit the largest live dim.
	n := hi[axis]
	length := rapid.IntRange(1, n).Draw(t, "length")
	start := rapid.IntRange(0, n-length).Draw(t, "start")
	symStart, symLength := rapid.Bool().Draw(t, "start is a SymInt"),
		rapid.Bool().Draw(t, "length is a SymInt")
	from, count := kind.Fixed(start), kind.Fixed(length)
	symRange := [2][2]int64{{0, int64(n)}, {1, int64(n)}}
	if symStart {
		from = kind.Int{IsSym: true}
	}
	if symLength {
		count = kind.Int{IsSym: true}
	}
	c := sliceTrial(lo, hi, axis, from, count, symRange, false, 1)
	c.steps = drawSteps(t, func(int) step {
		dims := drawLive(t, lo, hi)
		least := 1
		if !symStart {
			least += start
		}
		if !symLength {
			least += length - 1
		}
		dims[axis] = max(dims[axis], least)
		s := step{"x": dims}
		at := start
		if symStart {
			at = rapid.IntRange(0, dims[axis]-cond(symLength, 1, length)).Draw(t, "live start")
			s["start"] = []int{at}
		}
		if symLength {
			s["second"] = []int{rapid.IntRange(1, dims[axis]-at).Draw(t, "live length")}
		}
		return s
	})
	return c
}

func cond(b bool, yes, no int) int {
	if b {
		return yes
	}
	return no
}

// sampleSliceRange draws ExecuTorch's slice, with fixed ends of any sign. At its live points the slice is not
// empty.
func sampleSliceRange(t *rapid.T, lo, hi []int, axis int) *trial {
	n := hi[axis]
	start := rapid.SampledFrom([]int{0, -n, n / 2, -(n / 3), -1}).Draw(t, "start")
	end := rapid.SampledFrom([]int{basic.ToEnd, n, n/2 + 1, -1, -(n / 4)}).Draw(t, "end")
	stride := rapid.IntRange(1, 3).Draw(t, "step")
	symStart := rapid.Bool().Draw(t, "start is a SymInt")
	from := kind.Fixed(start)
	if symStart {
		from = kind.Int{IsSym: true}
	}
	left := func(dim, start int) bool {
		_, k := (&basic.GatherOp{Step: stride}).Cut(dim, start, end)
		return k > 0
	}
	if symStart {
		start = 0
	}
	// The live dims of the axis for which the slice is not empty.
	var legal []int
	for d := lo[axis]; d <= n; d++ {
		if left(d, start) {
			legal = append(legal, d)
		}
	}
	if !left(n, start) { // a graph starts at its maximum shape
		end, legal = basic.ToEnd, []int{n}
		start = 0
		from = kind.Fixed(0)
		symStart = false
	}
	c := sliceTrial(lo, hi, axis, from, kind.Fixed(end), [2][2]int64{{0, int64(n)}, {}}, true, stride)
	c.steps = drawSteps(t, func(int) step {
		dims := drawLive(t, lo, hi)
		dims[axis] = rapid.SampledFrom(legal).Draw(t, "live dim of the axis")
		s := step{"x": dims}
		if symStart {
			at := rapid.IntRange(0, n).Draw(t, "live start")
			for !left(dims[axis], at) {
				at /= 2
			}
			s["start"] = []int{at}
		}
		return s
	})
	return c
}

func TestSlice(t *testing.T) {
	dims := []int{3, 8, 4}
	var trials []*trial
	for _, c := range []struct {
		name              string
		axis, start, stop int
		stride            int
	}{
		{"[:, 1:5]", 1, 1, 5, 1},
		{"[..., 1:3]", 2, 1, 3, 1},
		{"[:, ::2]", 1, 0, basic.ToEnd, 2},
		{"[:, 1:-1]", 1, 1, -1, 1},
		{"[-2:]", 0, -2, basic.ToEnd, 1},
	} {
		tr := sliceTrial([]int{2, 3, 4}, dims, c.axis, kind.Fixed(c.start), kind.Fixed(c.stop),
			[2][2]int64{}, true,
			c.stride)
		tr.name = c.name
		tr.steps = []step{{"x": dims}, {"x": {2, 5, 4}}, {"x": {2, 3, 4}}}
		trials = append(trials, tr)
	}
	// The rows of the rotary tables that a step needs: position and length are SymInts.
	rows := sliceTrial([]int{64, 32}, []int{64, 32}, 0, kind.Int{IsSym: true}, kind.Int{IsSym: true},
		[2][2]int64{{0, 63}, {1, 16}}, false, 1)
	rows.name = "rows from a position"
	rows.steps = []step{
		{"x": {64, 32}, "start": {0}, "second": {16}},
		{"x": {64, 32}, "start": {16}, "second": {1}},
		{"x": {64, 32}, "start": {63}, "second": {1}},
	}
	hold(t, append(trials, rows)...)
}

func selectTrial(lo, hi []int, axis, index int) *trial {
	return &trial{
		name: fmt.Sprintf("%v dim %d index %d", hi, axis, index), abs: 1e-9, rel: 1e-9,
		build: func(b *graph.Builder) {
			b.Output(basic.Select(b, "y", b.Input("x", graph.F32, lo, hi), axis,
				index))
		},
	}
}

func sampleSelect(t *rapid.T) *trial {
	rank := rapid.IntRange(1, 4).Draw(t, "rank")
	lo, hi := drawDims(t, rank)
	axis := rapid.IntRange(-rank, rank-1).Draw(t, "axis")
	at := (axis + rank) % rank
	index := rapid.IntRange(-hi[at], hi[at]-1).Draw(t, "index")
	c := selectTrial(lo, hi, axis, index)
	c.steps = drawSteps(t, func(int) step {
		dims := drawLive(t, lo, hi)
		dims[at] = max(dims[at], index+1, -index)
		return step{"x": dims}
	})
	return c
}

func TestSelect(t *testing.T) {
	var trials []*trial
	for _, at := range [][2]int{{0, 1}, {1, 2}, {2, 3}, {1, -1}} {
		c := selectTrial([]int{2, 3, 4}, []int{3, 8, 4}, at[0], at[1])
		c.steps = []step{{"x": {3, 8, 4}}, {"x": {2, 3, 4}}, {"x": {2, 7, 4}}}
		trials = append(trials, c)
	}
	lastRow := selectTrial([]int{1, 1, 256}, []int{1, 128, 256}, 1, -1)
	lastRow.name = "the last live row"
	lastRow.steps = []step{{"x": {1, 128, 256}}, {"x": {1, 1, 256}}, {"x": {1, 17, 256}}}
	hold(t, append(trials, lastRow)...)
}

// viewTrial views a graph input, which makes a copy, or an operator's output, which makes an alias.
func viewTrial(lo, hi []int, alias bool, dims ...kind.Int) *trial {
	return &trial{
		name: fmt.Sprintf("%v alias %v", hi, alias), abs: 1e-5, rel: 1e-5,
		build: func(b *graph.Builder) {
			x := b.Input("x", graph.F32, lo, hi)
			if alias {
				x = basic.SiLU(b, "before", x)
			}
			y := basic.View(b, "view", x, dims...)
			if alias {
				y = basic.SiLU(b, "after", y)
			}
			b.Output(y)
		},
	}
}

func sampleView(t *rapid.T) *trial {
	rank := rapid.IntRange(1, 4).Draw(t, "rank")
	lo, hi := drawDims(t, rank)
	// Merge two adjacent dims or insert a dim of 1, and leave one dim to infer.
	var dims []kind.Int
	if rest := slices.IndexFunc(hi, func(n int) bool { return n > 1 }); rest < 0 || slices.Equal(lo, hi) {
		dims = []kind.Int{kind.Fixed(1), basic.Rest}
	} else {
		dims = []kind.Int{basic.Rest}
		for k := range rank {
			if lo[k] == hi[k] {
				dims = append(dims, kind.Fixed(hi[k]))
			}
		}
	}
	c := viewTrial(lo, hi, rapid.Bool().Draw(t, "alias"), dims...)
	c.steps = drawSteps(t, func(int) step { return step{"x": drawLive(t, lo, hi)} })
	return c
}

func TestView(t *testing.T) {
	var trials []*trial
	for _, alias := range []bool{false, true} {
		for name, dims := range map[string][]kind.Int{
			"merges dims": {basic.Rest, kind.Fixed(4)}, "flattens dims": {basic.Rest},
			"inserts a leading 1": {kind.Fixed(1), basic.Rest, kind.Fixed(3), kind.Fixed(4)},
			"splits a dim":        {basic.Rest, kind.Fixed(3), kind.Fixed(2), kind.Fixed(2)},
		} {
			c := viewTrial([]int{1, 3, 4}, []int{9, 3, 4}, alias, dims...)
			c.name = fmt.Sprintf("%s, alias %v", name, alias)
			c.steps = []step{{"x": {9, 3, 4}}, {"x": {1, 3, 4}}, {"x": {7, 3, 4}}}
			trials = append(trials, c)
		}
	}
	hold(t, trials...)
}

func catTrial(axis int, lo, hi [][]int) *trial {
	return &trial{
		name: fmt.Sprintf("dim %d of %v", axis, hi), abs: 1e-9, rel: 1e-9,
		build: func(b *graph.Builder) {
			var parts []graph.ValueID
			for i := range hi {
				parts = append(parts, b.Input(fmt.Sprint("x", i), graph.F32, lo[i], hi[i]))
			}
			b.Output(basic.Cat(b, "y", axis, parts...))
		},
	}
}

func sampleCat(t *rapid.T) *trial {
	rank := rapid.IntRange(1, 4).Draw(t, "rank")
	lo, hi := drawDims(t, rank)
	axis := rapid.IntRange(0, rank-1).Draw(t, "axis")
	n := rapid.IntRange(1, 3).Draw(t, "parts")
	var los, his [][]int
	for range n {
		l, h := slices.Clone(lo), slices.Clone(hi)
		h[axis] = draw(t, "dim of a part", 1, 20)
		l[axis] = rapid.SampledFrom([]int{1, h[axis]}).Draw(t, "least of a part")
		los, his = append(los, l), append(his, h)
	}
	c := catTrial(axis, los, his)
	c.steps = drawSteps(t, func(int) step {
		dims := drawLive(t, lo, hi)
		s := step{}
		for i := range n {
			d := slices.Clone(dims)
			d[axis] = draw(t, "live dim of a part", los[i][axis], his[i][axis])
			s[fmt.Sprint("x", i)] = d
		}
		return s
	})
	return c
}

func TestCat(t *testing.T) {
	var trials []*trial
	for _, c := range []struct {
		axis int
		dims [][]int
	}{
		{0, [][]int{{2, 3}, {2, 3}, {2, 3}}},
		{1, [][]int{{1, 4, 8}, {1, 4, 8}}},
		{1, [][]int{{2, 1, 4}, {2, 3, 4}, {2, 2, 4}}},
		{-1, [][]int{{2, 3}, {2, 5}}},
	} {
		tr := catTrial(c.axis, c.dims, c.dims)
		s := step{}
		for i, d := range c.dims {
			s[fmt.Sprint("x", i)] = d
		}
		tr.steps = []step{s}
		trials = append(trials, tr)
	}
	hold(t, trials...)
}

func permuteTrial(lo, hi []int, order ...int) *trial {
	return &trial{
		name: fmt.Sprintf("%v to %v", hi, order), abs: 1e-9, rel: 1e-9,
		build: func(b *graph.Builder) {
			b.Output(basic.Permute(b, "y", b.Input("x", graph.F32, lo, hi),
				order...))
		},
	}
}

func samplePermute(t *rapid.T) *trial {
	rank := rapid.IntRange(1, 4).Draw(t, "rank")
	lo, hi := drawDims(t, rank)
	order := make([]int, rank)
	for k := range order {
		order[k] = k
	}
	c := permuteTrial(lo, hi, rapid.Permutation(order).Draw(t, "order")...)
	c.steps = drawSteps(t, func(int) step { return step{"x": drawLive(t, lo, hi)} })
	return c
}

func TestPermute(t *testing.T) {
	var trials []*trial
	for _, c := range [][2][]int{
		{{2, 3, 4}, {2, 0, 1}},
		{{1, 8, 4, 16}, {0, 2, 1, 3}},
		{{3, 5}, {1, 0}},
		{{2, 3, 4, 5}, {3, 1, 0, 2}},
		{{2, 3, 4, 8}, {0, -3, 2, -1}},
		{{65}, {0}},
	} {
		tr := permuteTrial(c[0], c[0], c[1]...)
		tr.steps = []step{{"x": c[0]}}
		trials = append(trials, tr)
	}
	hold(t, trials...)
}

// gatherTrial returns a trial of one row of the gather table.
func gatherTrial(r *basic.GatherRow, try *basic.GatherTry) *trial {
	return &trial{
		name: fmt.Sprintf("%s %v", r.Kind, try.Args), abs: 1e-9, rel: 1e-9,
		build: func(b *graph.Builder) {
			given := maps.Clone(try.Args)
			given["x"] = b.Input("x", graph.F32, try.Lowest, try.Highest)
			b.Output(KindOf(r.Kind).BuildOne(b, "y", given))
		},
	}
}

func sampleGather(t *rapid.T, r *basic.GatherRow) *trial {
	try := &r.Tries[rapid.IntRange(0, len(r.Tries)-1).Draw(t, "try")]
	c := gatherTrial(r, try)
	c.steps = drawSteps(t, func(int) step { return step{"x": drawLive(t, try.Lowest, try.Highest)} })
	return c
}

func TestGather(t *testing.T) {
	var trials []*trial
	for i := range basic.Gathers {
		for j := range basic.Gathers[i].Tries {
			try := &basic.Gathers[i].Tries[j]
			c := gatherTrial(&basic.Gathers[i], try)
			c.steps = []step{{"x": try.Highest}, {"x": try.Lowest}}
			trials = append(trials, c)
		}
	}
	hold(t, trials...)
}

// The elements that a row picks match lists written by hand.
func TestGatherPicks(t *testing.T) {
	for _, test := range []struct {
		kind string
		args kind.Args
		dims []int
		want []float64
	}{
		{"flip", kind.Args{"dims": []int{1}}, []int{2, 3}, []float64{2, 1, 0, 5, 4, 3}},
		{"flip", kind.Args{"dims": []int{0, -1}}, []int{2, 3}, []float64{5, 4, 3, 2, 1, 0}},
		{"expand", kind.Args{"size": []int{3, -1, 2}}, []int{1, 2}, []float64{0, 1, 0, 1, 0, 1}},
		{"expand", kind.Args{"size": []int{2, 2}}, []int{2, 1}, []float64{0, 0, 1, 1}},
		{"permute", kind.Args{"dims": []int{1, 0}}, []int{2, 3}, []float64{0, 3, 1, 4, 2, 5}},
		{"select", kind.Args{"dim": 1, "index": -1}, []int{2, 3}, []float64{2, 5}},
		{"slice", kind.Args{"dim": 1, "start": kind.Fixed(-2), "step": 1}, []int{2, 3}, []float64{
			1, 2, 4,
			5,
		}},
	} {
		b := graph.NewBuilder(gpu.DefaultLimits())
		test.args["x"] = b.Input("x", graph.F32, test.dims, test.dims)
		b.Output(KindOf(test.kind).BuildOne(b, "y", test.args))
		g, err := b.Finish()
		if err != nil {
			t.Fatal(err)
		}
		c := &trial{fill: map[string]func(int) float64{"x": func(i int) float64 { return float64(i) }}}
		r := reference.NewInterpreter(g)
		if err := r.Step(c.input(t, g, step{"x": test.dims}), nil); err != nil {
			t.Fatal(err)
		}
		if got := r.Tensor(g.Outputs()[0]).Data; !slices.Equal(got, test.want) {
			t.Errorf("%s %v of %v is %v, want %v", test.kind, test.args, test.dims, got, test.want)
		}
	}
}

// updateCacheTrial reads the cache back through a copy.
func updateCacheTrial(s, h, d, rows int) *trial {
	return &trial{
		name: fmt.Sprintf("S %d, H %d, D %d, C %d", s, h, d, rows), abs: 1e-9, rel: 1e-9,
		build: func(b *graph.Builder) {
			value := b.Input("value", graph.F32, []int{1, 1, h, d}, []int{1, s, h, d})
			cache := b.State("cache", graph.F32, []int{1, rows, h, d})
			basic.UpdateCache(b, "update", value, cache, kind.Sym(b.SymInt("pos", 0, int64(rows-1), 0)))
			b.Output(basic.Slice(b, "content", cache, 1, kind.Fixed(0), kind.Fixed(rows)))
		},
	}
}

func sampleUpdateCache(t *rapid.T) *trial {
	s, h, d := draw(t, "S", 1, 20), draw(t, "H", 1, 5), draw(t, "D", 1, 33)
	rows := s + draw(t, "more rows", 0, 30)
	c := updateCacheTrial(s, h, d, rows)
	c.steps = drawSteps(t, func(int) step {
		n := draw(t, "live S", 1, s)
		return step{"value": {1, n, h, d}, "pos": {draw(t, "pos", 0, rows-n)}}
	})
	return c
}

func TestUpdateCache(t *testing.T) {
	var trials []*trial
	for _, dims := range [][5]int{
		{2, 2, 4, 8, 0},
		{2, 2, 4, 8, 5},
		{3, 4, 8, 16, 0},
		{3, 4, 8, 16, 10},
		{5, 1, 3, 7, 2},
	} {
		c := updateCacheTrial(dims[0], dims[1], dims[2], dims[3])
		c.name = fmt.Sprintf("%s, position %d", c.name, dims[4])
		c.steps = []step{
			{"value": {1, dims[0], dims[1], dims[2]}, "pos": {dims[4]}},
			{"value": {1, 1, dims[1], dims[2]}, "pos": {dims[3] - 1}},
			{"value": {1, 1, dims[1], dims[2]}, "pos": {0}},
		}
		trials = append(trials, c)
	}
	hold(t, trials...)
}
