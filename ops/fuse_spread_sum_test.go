package ops

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/gputest"
	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
	"gpuscope/ops/reference"
	"gpuscope/ops/weight"
	"gpuscope/trace"
)

func TestProductSumIsInterleavedForItsReaders(t *testing.T) {
	type values struct{ sum, next graph.ValueID }
	product := func(b *graph.Builder, name string, x graph.ValueID) graph.ValueID {
		return Linear(b, name, x, noiseMatrix(name+".w", 32, 32, weight.Q8_0), graph.None)
	}
	norm := func(b *graph.Builder, name string, x graph.ValueID) graph.ValueID {
		return RMSNorm(b, name, x, constant(b, name+".w", 32), 1e-5)
	}
	last := func(b *graph.Builder, v values) { b.Output(product(b, "end", norm(b, "norm2", v.next))) }
	for name, c := range map[string]struct {
		own    bool // the next sum reads an input with its own live rows
		build  func(b *graph.Builder, v values)
		Routes map[string]string
		spread []string
	}{
		"the next sum is fused into products": {build: last, spread: []string{"sum1.spread"}},
		"two sums before a fused sum": {build: func(b *graph.Builder, v values) {
			h := product(b, "down2", product(b, "gate2", norm(b, "norm2", v.next)))
			b.Output(product(b, "end", norm(b, "norm3", normWithResidual(b, "sum3", h, v.next))))
		}, spread: []string{"sum1.spread", "sum2.spread"}},
		"the next sum is not fused": {build: last, Routes: map[string]string{"rms_norm@sum2": "rows"}},
		"another operator reads the sum": {build: func(b *graph.Builder, v values) {
			b.Output(basic.Sigmoid(b, "s", v.sum))
			last(b, v)
		}},
		"the next sum has its own live rows": {own: true, build: last},
	} {
		t.Run(name, func(t *testing.T) {
			b := graph.NewBuilder(gpu.DefaultLimits())
			b.AskRoutes(c.Routes)
			b.Fuse(fuseNormSum, fuseNorm, fuseSpreadSum)
			x := b.Input("x", graph.F32, []int{1, 1, 32}, []int{1, 9, 32})
			v := values{sum: normWithResidual(b, "sum1", product(b, "o", x), x)}
			h := product(b, "gate", norm(b, "norm1", v.sum))
			if c.own {
				b.Output(h)
				h = b.Input("h", graph.F32, []int{1, 1, 32}, []int{1, 9, 32})
			}
			v.next = normWithResidual(b, "sum2", product(b, "down", h), v.sum)
			c.build(b, v)
			g, err := b.Finish()
			if err != nil {
				t.Fatal(err)
			}
			var spread []string
			for _, d := range g.Describe().Values {
				if strings.HasSuffix(d.Name, ".spread") && d.Role == trace.RoleIntermediate {
					spread = append(spread, d.Name)
				}
			}
			if !slices.Equal(spread, c.spread) {
				t.Errorf("interleaved values %v, want %v", spread, c.spread)
			}
		})
	}
}

// spreadSums builds a graph of several sums with norms twice: with the rule and without any rule.
func spreadSums(t failer, build func(b *graph.Builder), limits gpu.Limits) (fused, plain *graph.Graph) {
	fused = fusedBy(t, build, limits, fuseNormSum, fuseSpreadSum)
	if placesIn(fused) == placesIn(fusedBy(t, build, limits, fuseNormSum)) {
		t.Fatal("no sum is interleaved")
	}
	return fused, fusedBy(t, build, limits)
}

func threeSums(t *rapid.T) func(b *graph.Builder) { return normSumsGraph(t, 3) }

func TestInterleavingSumsKeepsResults(t *testing.T) {
	limits := gpu.DefaultLimits()
	limits.MaxStorageBuffers = 11 // weights of some formats are stored in four arrays
	rapid.Check(t, func(t *rapid.T) {
		build := threeSums(t)
		fused, plain := spreadSums(t, build, limits)
		referencesOf(t, fused, plain, normSumPoints(columnsOf(build)), 1e-9)
	})
}

func TestInterleavedSumsOnTheGPU(t *testing.T) {
	dev := gputest.Open(t)
	for seed := range few(8) {
		build := rapid.Custom(threeSums).Example(seed)
		fused, plain := spreadSums(t, build, dev.Info().Limits)
		kernelsOf(t, dev, fused, plain, normSumPoints(columnsOf(build)), 5e-4)
	}
}

// A file may hold fewer elements than the dims of its constant declare.
func TestInterleavedConstantCoversItsWholeRow(t *testing.T) {
	b := graph.NewBuilder(gpu.DefaultLimits())
	three := func() ([]byte, error) { return make([]byte, 12), nil }
	short := b.Constant("short", graph.F32, []int{64}, three)
	whole := constant(b, "whole", 64)
	for v, want := range map[graph.ValueID]int{short: 12, whole: 256} {
		info, _ := b.Value(spreadConstant(b, v))
		data, err := info.Load()
		if err != nil || len(data) != want {
			t.Errorf("%s: %d bytes, %v; want %d", info.Name, len(data), err, want)
		}
		if list, err := reference.Decode(graph.F32, data, want/4); v == whole &&
			(err != nil || list[4] != float64(float32(noise("whole", 32)))) {
			t.Errorf("element 4 is %v, want that of column 32", list[4])
		}
	}
}
