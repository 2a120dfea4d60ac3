package ops

import (
	"slices"
	"testing"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/gputest"
)

// besideGraph has products q, k and v of one tensor, and o of another.
func besideGraph(b *engine.Builder) {
	x := b.Input("x", engine.F32, []int{1, 32}, []int{512, 32})
	for _, p := range []struct {
		name string
		rows int
	}{{"q", 2048}, {"k", 512}, {"v", 512}} {
		b.Output(Linear(b, p.name, x, noiseMatrix(p.name+".w", p.rows, 32, Q8_0), engine.None))
	}
	b.Output(Linear(b, "o", Sigmoid(b, "s", x), noiseMatrix("o.w", 512, 32, Q8_0), engine.None))
}

func TestProductsOfOneTensorTakeTilesTogether(t *testing.T) {
	fused, plain := fusedAndNot(t, fuseBeside, besideGraph, gpu.LimitSets[1].Limits)
	if n := placesIn(fused); n != 3 || partsOf(fused) != nil {
		t.Errorf("%d operators are told of others, made of %v, want q, k and v as they are", n,
			partsOf(fused))
	}
	routes := func(g *engine.Graph, rows int) (list []string) {
		live := liveAt(t, g, (&trial{}).input(t, g, step{"x": {rows, 32}}))
		plans, _ := live.Step()
		for i := range plans {
			if plans[i].Route != "" {
				list = append(list, plans[i].Route)
			}
		}
		return list
	}
	for _, c := range []struct {
		rows        int
		fused, then []string
	}{
		{1, []string{"gemv", "gemv", "gemv", "gemv"}, []string{"gemv", "gemv", "gemv", "gemv"}},
		{128, []string{"tile64", "tile64", "tile64", "tile64"}, []string{"tile64", "tile64", "tile64", "tile64"}},
		{
			512,
			[]string{"tile128", "tile128", "tile128", "tile64"},
			[]string{"tile128", "tile64", "tile64", "tile64"},
		},
	} {
		for g, want := range map[*engine.Graph][]string{fused: c.fused, plain: c.then} {
			if got := routes(g, c.rows); !slices.Equal(got, want) {
				t.Errorf("%d rows take %v, want %v", c.rows, got, want)
			}
		}
	}
}

func TestProductsOfOneTensorKeepWhatAGraphComputes(t *testing.T) {
	points := []step{{"x": {200, 32}}, {"x": {1, 32}}, {"x": {7, 32}}}
	referencesAgree(t, fuseBeside, besideGraph, points)
	kernelsAgree(t, gputest.Open(t), fuseBeside, besideGraph, points)
}
