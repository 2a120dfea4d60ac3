package ops

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
)

// padTrial pads or cuts a tensor of f32 or i32.
func padTrial(t graph.DType, lo, hi, pad []int, value float64) *trial {
	return &trial{
		name: fmt.Sprintf("%s %v pad %v", t, hi, pad),
		build: func(b *graph.Builder) {
			b.Output(basic.ConstantPadND(b, "y", b.Input("x", t, lo, hi), pad, value))
		},
	}
}

func samplePad(t *rapid.T) *trial {
	rank := rapid.IntRange(1, 4).Draw(t, "rank")
	lo, hi := drawDims(t, rank)
	var pad []int
	for k := range rapid.IntRange(0, rank).Draw(t, "padded dims") {
		before := rapid.IntRange(-lo[rank-1-k]+1, 5).Draw(t, "before")
		pad = append(pad, before, rapid.IntRange(1-lo[rank-1-k]-min(before, 0), 5).Draw(t, "after"))
	}
	c := padTrial(rapid.SampledFrom([]graph.DType{graph.F32, graph.I32}).Draw(t, "type"), lo, hi, pad, -3)
	c.steps = drawSteps(t, func(int) step { return step{"x": drawLive(t, lo, hi)} })
	return c
}

func TestConstantPadND(t *testing.T) {
	var trials []*trial
	for _, pad := range [][]int{{}, {1, 2}, {0, 3, 2, 0}, {-1, 4, 0, -2}, {1, 1, 1, 1, 1, 1}} {
		for _, dtype := range []graph.DType{graph.F32, graph.I32} {
			c := padTrial(dtype, []int{1, 3, 2}, []int{2, 5, 7}, pad, -1.5)
			if dtype == graph.I32 {
				c = padTrial(dtype, []int{1, 3, 2}, []int{2, 5, 7}, pad, -2)
			}
			c.steps = []step{{"x": {2, 5, 7}}, {"x": {1, 3, 2}}, {"x": {2, 4, 3}}}
			trials = append(trials, c)
		}
	}
	hold(t, trials...)
}

// whereTrial selects between two tensors. lo and hi are the dims of the condition and of the two.
func whereTrial(lo, hi [3][]int) *trial {
	return &trial{
		name: fmt.Sprint(hi),
		build: func(b *graph.Builder) {
			var of [3]graph.ValueID
			for i, name := range []string{"condition", "a", "b"} {
				of[i] = b.Input(name, graph.F32, lo[i], hi[i])
			}
			b.Output(basic.Where(b, "y", of[0], of[1], of[2]))
		},
		fill: map[string]func(int) float64{
			"condition": func(i int) float64 { return float64(i * 7 % 3 % 2) },
			"b": func(i int) float64 { // must not change the elements of a
				return []float64{math.NaN(), math.Inf(1), 3, -0.5}[i%4]
			},
		},
	}
}

func sampleWhere(t *rapid.T) *trial {
	rank := rapid.IntRange(1, 4).Draw(t, "rank")
	lo, hi := drawDims(t, rank)
	var los, his [3][]int
	for i := range 3 {
		from := rapid.IntRange(0, rank-1).Draw(t, "dims left out")
		if i == 1 {
			from = 0
		}
		los[i], his[i] = slices.Clone(lo[from:]), slices.Clone(hi[from:])
		for k := range his[i] {
			if i != 1 && rapid.IntRange(0, 3).Draw(t, "repeated") == 0 {
				los[i][k], his[i][k] = 1, 1
			}
		}
	}
	c := whereTrial(los, his)
	c.steps = drawSteps(t, func(int) step {
		live := drawLive(t, lo, hi)
		s := step{}
		for i, name := range []string{"condition", "a", "b"} {
			dims := slices.Clone(live[rank-len(his[i]):])
			for k := range dims {
				dims[k] = min(dims[k], his[i][k])
			}
			s[name] = dims
		}
		return s
	})
	return c
}

func TestWhere(t *testing.T) {
	var trials []*trial
	for _, dims := range [][3][]int{
		{{3, 65}, {3, 65}, {3, 65}}, {{65}, {3, 65}, {1}}, {{3, 1}, {1, 65}, {2, 1, 1}}, {{}, {5}, {5}},
	} {
		c := whereTrial(dims, dims)
		c.steps = []step{{"condition": dims[0], "a": dims[1], "b": dims[2]}}
		trials = append(trials, c)
	}
	hold(t, trials...)
}

// alongTrial is gather, or scatter, along a dim.
func alongTrial(scatter bool, axis int, lo, hi, index []int) *trial {
	c := &trial{
		name: fmt.Sprintf("dim %d of %v by %v, scatter %v", axis, hi, index, scatter),
		// Some indices are past the end.
		below: map[string]int{"index": hi[axis] + 2},
		build: func(b *graph.Builder) {
			x := b.Input("x", graph.F32, lo, hi)
			least := make([]int, len(index))
			for k := range least {
				least[k] = 1
			}
			at := b.Input("index", graph.I32, least, index)
			if scatter {
				b.Output(basic.ScatterAlong(b, "y", x, axis, at, b.Input("src", graph.F32, least, index)))
			} else {
				b.Output(basic.GatherAlong(b, "y", x, axis, at))
			}
		},
	}
	return c
}

func sampleAlong(t *rapid.T, scatter bool) *trial {
	rank := rapid.IntRange(1, 3).Draw(t, "rank")
	lo, hi, index := make([]int, rank), make([]int, rank), make([]int, rank)
	for k := range rank {
		hi[k] = draw(t, "dim", 1, 20)
		index[k] = rapid.IntRange(1, hi[k]).Draw(t, "dim of index")
		lo[k] = 1
	}
	axis := rapid.IntRange(0, rank-1).Draw(t, "axis")
	index[axis] = draw(t, "indices", 1, 40)
	c := alongTrial(scatter, axis, lo, hi, index)
	c.steps = drawSteps(t, func(int) step {
		x := drawLive(t, lo, hi)
		at := make([]int, rank)
		for k := range at {
			most := index[k]
			if k != axis {
				most = min(most, x[k])
			}
			at[k] = draw(t, "live dim of index", 1, most)
		}
		s := step{"x": x, "index": at}
		if scatter {
			s["src"] = at
		}
		return s
	})
	return c
}

func TestGatherAndScatterAlongADim(t *testing.T) {
	var trials []*trial
	for axis := range 3 {
		for _, scatter := range []bool{false, true} {
			index := []int{2, 3, 4}
			index[axis] = 9
			c := alongTrial(scatter, axis, []int{1, 1, 1}, []int{3, 5, 7}, index)
			one := []int{1, 1, 1}
			for _, s := range []step{{"x": {3, 5, 7}, "index": index}, {"x": one, "index": one}} {
				if scatter {
					s["src"] = s["index"]
				}
				c.steps = append(c.steps, s)
			}
			trials = append(trials, c)
		}
	}
	hold(t, trials...)
}

func cumSumTrial(dtype graph.DType, rows, width int) *trial {
	return &trial{
		name: fmt.Sprintf("%s %dx%d", dtype, rows, width), abs: 1e-3, rel: 1e-3,
		build: func(b *graph.Builder) {
			b.Output(basic.CumSum(b, "y", b.Input("x", dtype, []int{1, 1}, []int{rows, width})))
		},
	}
}

func sampleCumSum(t *rapid.T) *trial {
	rows, width := draw(t, "rows", 1, 70), draw(t, "width", 1, 600)
	c := cumSumTrial(rapid.SampledFrom([]graph.DType{graph.F32, graph.I32}).Draw(t, "type"), rows, width)
	c.steps = drawSteps(t, func(int) step {
		return step{"x": {draw(t, "live rows", 1, rows), draw(t, "live width", 1, width)}}
	})
	return c
}

func TestCumSum(t *testing.T) {
	var trials []*trial
	for _, dtype := range []graph.DType{graph.F32, graph.I32} {
		for _, width := range []int{1, 64, 65, 300} {
			c := cumSumTrial(dtype, 3, width)
			c.steps = []step{{"x": {3, width}}, {"x": {1, 1}}, {"x": {2, (width + 1) / 2}}}
			trials = append(trials, c)
		}
	}
	hold(t, trials...)
}
