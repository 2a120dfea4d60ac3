package ops

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/gputest"
	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
	"gpuscope/ops/kind"
	"gpuscope/ops/weight"
)

func TestGateAndUpBecomeOneProduct(t *testing.T) {
	const n = 128
	product := func(b *graph.Builder, name string, x graph.ValueID, n int, f weight.Format) graph.ValueID {
		return Linear(b, name, x, noiseMatrix(name+".w", n, 32, f), graph.None)
	}
	for name, c := range map[string]struct {
		build func(b *graph.Builder, x graph.ValueID) graph.ValueID
		fused bool
	}{
		"gate and up": {func(b *graph.Builder, x graph.ValueID) graph.ValueID {
			return basic.SiLUMul(b, "mul", product(b, "gate", x, n, weight.Q8_0), product(b, "up", x, n,
				weight.Q8_0))
		}, true},
		"two formats": {func(b *graph.Builder, x graph.ValueID) graph.ValueID {
			return basic.SiLUMul(b, "mul", product(b, "gate", x, n, weight.Q8_0), product(b, "up", x, n,
				weight.Q4_0))
		}, false},
		"products of two tensors": {func(b *graph.Builder, x graph.ValueID) graph.ValueID {
			other := basic.Sigmoid(b, "s", x)
			return basic.SiLUMul(b, "mul", product(b, "gate", x, n, weight.Q8_0), product(b, "up", other, n,
				weight.Q8_0))
		}, false},
		"rows that are not whole parts": {func(b *graph.Builder, x graph.ValueID) graph.ValueID {
			return basic.SiLUMul(b, "mul", product(b, "gate", x, 96, weight.Q8_0), product(b, "up", x, 96,
				weight.Q8_0))
		}, false},
		"one of them an output": {func(b *graph.Builder, x graph.ValueID) graph.ValueID {
			gate := product(b, "gate", x, n, weight.Q8_0)
			b.Output(gate)
			return basic.SiLUMul(b, "mul", gate, product(b, "up", x, n, weight.Q8_0))
		}, false},
		"one with a bias": {func(b *graph.Builder, x graph.ValueID) graph.ValueID {
			up := Linear(b, "up", x, noiseMatrix("up.w", n, 32, weight.Q8_0), constant(b, "bias", n))
			return basic.SiLUMul(b, "mul", product(b, "gate", x, n, weight.Q8_0), up)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			fused, plain := fusedAndNot(t, fuseGateUp, func(b *graph.Builder) {
				b.Output(c.build(b, b.Input("x", graph.F32, []int{1, 32}, []int{17, 32})))
			}, gpu.DefaultLimits())
			if !c.fused {
				if parts := partsOf(fused); parts != nil {
					t.Errorf("fused %v", parts)
				}
				return
			}
			want := []string{"gate+up+mul (linear_q8_0) = [gate up mul]"}
			if parts := partsOf(fused); !slices.Equal(parts, want) {
				t.Errorf("fused %v, want %v", parts, want)
			}
			of := func(g *graph.Graph) int64 { return g.AllocatedBytes()["constant"] }
			if of(fused) != of(plain) {
				t.Errorf("weights take %d bytes, unfused %d", of(fused), of(plain))
			}
			for rows, want := range map[int]int{1: 1, 2: 2, 16: 2, 17: 1} {
				if got := runningAt(t, fused, rows, 32); len(got) != want {
					t.Errorf("%d rows run %v, want %d dispatches", rows, got, want)
				}
			}
		})
	}
}

// runningAt returns the operators of the dispatches that a graph runs if its first input has the given dims.
func runningAt(t failer, g *graph.Graph, dims ...int) (names []string) {
	live := liveOf(t, g, graph.LiveOptions{})
	if err := live.SetDims(g.Inputs()[0], dims...); err != nil {
		t.Fatal(err)
	}
	if err := live.Propagate(); err != nil {
		t.Fatal(err)
	}
	live.Commit()
	d := g.Describe()
	for _, id := range live.Active() {
		names = append(names, d.Ops[d.Dispatches[id].Op].Name)
	}
	return names
}

// gateUpPoints are live shapes for a gated MLP of 256 columns.
var gateUpPoints = []step{{"x": {1, 40, 256}}, {"x": {1, 1, 256}}, {"x": {1, 7, 256}}, {"x": {1, 1, 256}}}

// gateUpGraph builds a gated MLP with weights in a random format.
func gateUpGraph(t *rapid.T) func(b *graph.Builder) {
	f := drawFormat(t)
	r := &basic.Gates[rapid.IntRange(0, len(basic.Gates)-1).Draw(t, "gated")]
	n := 128 * rapid.IntRange(1, 2).Draw(t, "128 rows")
	return func(b *graph.Builder) {
		x := b.Input("x", graph.F32, []int{1, 1, 256}, []int{1, 40, 256})
		gate := Linear(b, "gate", x, noiseMatrix("gate.w", n, 256, f), graph.None)
		up := Linear(b, "up", x, noiseMatrix("up.w", n, 256, f), graph.None)
		b.Output(KindOf(r.Kind).BuildOne(b, "mul", kind.Args{"gate": gate, "up": up}))
	}
}

func TestMergingGateAndUpKeepsResults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if n := referencesAgree(t, fuseGateUp, gateUpGraph(t), gateUpPoints); n != 1 {
			t.Fatalf("fused in %d places", n)
		}
	})
}

func TestMergedGateAndUpOnTheGPU(t *testing.T) {
	dev := gputest.Open(t)
	for seed := range few(12) {
		kernelsAgree(t, dev, fuseGateUp, rapid.Custom(gateUpGraph).Example(seed), gateUpPoints)
	}
}

// With this many columns, each lane handles several chunks of a row, and continues from the last row of up to
// the first row of gate.
func TestWideGateAndUpOnTheGPU(t *testing.T) {
	dev := gputest.Open(t)
	const k, n = 16384, 128
	for _, name := range []string{weight.Q4_0.Name, weight.Q8_0.Name, "q4_k", "q6_k"} {
		f := weight.Formats[slices.IndexFunc(weight.Formats,
			func(f weight.Format) bool { return f.Name == name })]
		kernelsAgree(t, dev, fuseGateUp, func(b *graph.Builder) {
			x := b.Input("x", graph.F32, []int{1, k}, []int{2, k})
			gate := Linear(b, "gate", x, noiseMatrix("gate.w", n, k, f), graph.None)
			up := Linear(b, "up", x, noiseMatrix("up.w", n, k, f), graph.None)
			b.Output(basic.SiLUMul(b, "mul", gate, up))
		}, []step{{"x": {1, k}}, {"x": {2, k}}, {"x": {1, k}}})
	}
}

// Each matrix of NVFP4 has a factor of its own, also in a merged matrix.
func TestMergedMatricesKeepTheirFactors(t *testing.T) {
	dev := gputest.Open(t)
	build := func(b *graph.Builder) {
		x := b.Input("x", graph.F32, []int{1, 256}, []int{20, 256})
		matrix := func(name string, factor float32) weight.Matrix {
			w := noiseMatrix(name, 128, 256, weight.NVFP4)
			w.Factor = func(int) (float32, error) { return factor, nil }
			return w
		}
		gate := Linear(b, "gate", x, matrix("gate.w", 0.25), graph.None)
		b.Output(basic.SiLUMul(b, "mul", gate, Linear(b, "up", x, matrix("up.w", 3), graph.None)))
	}
	points := []step{{"x": {20, 256}}, {"x": {1, 256}}}
	if n := referencesAgree(t, fuseGateUp, build, points); n != 1 {
		t.Errorf("fused in %d places, want 1", n)
	}
	kernelsAgree(t, dev, fuseGateUp, build, points)
}

// Products of only the last row are not merged, because a merged product would compute all rows.
func TestLastRowGateAndUpStaySeparate(t *testing.T) {
	build := func(b *graph.Builder) {
		x := b.Input("x", graph.F32, []int{1, 1, 32}, []int{1, 9, 32})
		gate := Linear(b, "gate", lastOf(b, x, 1), noiseMatrix("gate.w", 256, 32, weight.Q4_0), graph.None)
		up := Linear(b, "up", lastOf(b, x, 1), noiseMatrix("up.w", 256, 32, weight.Q4_0), graph.None)
		b.Output(basic.Mul(b, "mul", basic.SiLU(b, "silu", gate), up))
	}
	fused := fusedBy(t, build, gpu.DefaultLimits(), Fusions...)
	plain := fusedBy(t, build, gpu.DefaultLimits())
	referencesOf(t, fused, plain, []step{{"x": {1, 1, 32}}, {"x": {1, 7, 32}}}, 1e-9)
}
