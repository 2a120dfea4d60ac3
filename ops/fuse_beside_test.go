package ops

import (
	"slices"
	"testing"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/gputest"
	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
	"gpuscope/ops/weight"
)

// besideGraph builds the products q, k and v of one tensor with the given number of columns, and o of another
// tensor.
func besideGraph(columns, q int) func(b *graph.Builder) {
	return func(b *graph.Builder) {
		x := b.Input("x", graph.F32, []int{1, columns}, []int{512, columns})
		for _, p := range []struct {
			name string
			rows int
		}{{"q", q}, {"k", 512}, {"v", 512}} {
			b.Output(Linear(b, p.name, x, noiseMatrix(p.name+".w", p.rows, columns, weight.Q8_0), graph.None))
		}
		b.Output(Linear(b, "o", basic.Sigmoid(b, "s", x), noiseMatrix("o.w", 512, columns, weight.Q8_0),
			graph.None))
	}
}

func TestProductsOfOneTensorTakeTilesTogether(t *testing.T) {
	fused, _ := fusedAndNot(t, fuseBeside, besideGraph(32, 2048), gpu.LimitSets[1].Limits)
	if n := placesIn(fused); n != 3 || partsOf(fused) != nil {
		t.Errorf("%d operators run next to others, fused parts %v; want q, k and v, each unfused", n,
			partsOf(fused))
	}
	routes := func(g *graph.Graph, rows, columns int) (list []string) {
		live := liveAt(t, g, (&trial{}).input(t, g, step{"x": {rows, columns}}))
		plans, _ := live.Step()
		slots := g.Describe().Dispatches
		for i := range plans {
			if plans[i].Route != "" && slots[plans[i].Dispatch].Label != "sums" {
				list = append(list, plans[i].Route)
			}
		}
		return list
	}
	each := func(qkv, o string) []string { return []string{qkv, qkv, qkv, o} }
	for _, c := range []struct {
		columns, q, rows int
		fused, then      []string
	}{
		{32, 2048, 1, each("gemv", "gemv"), each("gemv", "gemv")},
		{32, 2048, 128, each("tile64", "tile64"), each("tile64", "tile64")},
		{32, 2048, 512, each("tile128", "tile64"), []string{"tile128", "tile64", "tile64", "tile64"}},
		{1024, 3072, 17, each("split64", "split64"), each("split64", "split64")},
		{1024, 3072, 65, each("split128", "split128"), each("split128", "split128")},
		{1024, 3136, 17, each("tile64", "split64"), each("split64", "split64")}, // over 4,096 rows together
	} {
		fused, plain := fusedAndNot(t, fuseBeside, besideGraph(c.columns, c.q), gpu.LimitSets[1].Limits)
		for g, want := range map[*graph.Graph][]string{fused: c.fused, plain: c.then} {
			if got := routes(g, c.rows, c.columns); !slices.Equal(got, want) {
				t.Errorf("%d rows of %d columns take %v, want %v", c.rows, c.columns, got, want)
			}
		}
	}
}

func TestMergingProductsOfOneTensorKeepsResults(t *testing.T) {
	dev := gputest.Open(t)
	// -short tests only the products that are split.
	for _, x := range dealt(1, [][]int{{200, 32}, {20, 1024}}) {
		columns := x[1]
		build := besideGraph(columns, 2048)
		points := []step{{"x": x}, {"x": {1, columns}}, {"x": {7, columns}}}
		referencesAgree(t, fuseBeside, build, points)
		kernelsAgree(t, dev, fuseBeside, build, points)
	}
}
