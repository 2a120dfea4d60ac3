package ops

import (
	"fmt"
	"slices"
	"testing"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/gputest"
	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
	"gpuscope/ops/experts"
	"gpuscope/ops/weight"
)

// expertRules are the fusion rules for mixtures of experts, in order.
var expertRules = append(slices.Clone(experts.Fusions), fuseExpertsResidual, fuseNorm)

// mixtureCase is a mixture of experts with a residual: x + alpha * sum of weight * down(act(gate) * up).
type mixtureCase struct {
	format, down weight.Format // of gate and up, and of down
	dim, ffn     int
	n, k, most   int // experts, chosen ones, and the largest number of tokens
	bias         bool
	alpha        float32
	norm         string // "" if the experts read x itself, "plain" or "prepared" by another product
	// up returns what the product up reads, and residual returns the residual. If they are nil, it is x.
	up, residual func(b *graph.Builder, x graph.ValueID) graph.ValueID
	also         func(b *graph.Builder, gate, down graph.ValueID) // adds readers
}

func (c mixtureCase) build(b *graph.Builder) {
	x := b.Input("x", graph.F32, []int{1, 1, c.dim}, []int{1, c.most, c.dim})
	options := experts.RouterOptions{K: c.k, Scale: 1, Normalize: true}
	r := routerCase{n: c.n, most: c.most, RouterOptions: options}.build(b)
	of := func(name string, x graph.ValueID, rows, cols int, f weight.Format) graph.ValueID {
		bias := graph.None
		if c.bias {
			bias = constant(b, name+".bias", c.n, rows)
		}
		w := noiseMatrix(name+".w", c.n*rows, cols, f)
		if f.Name == weight.NVFP4.Name { // each expert has a factor
			w.Factor = func(row int) (float32, error) { return 0.5 + float32(row/rows), nil }
		}
		return experts.LinearExperts(b, name, x, w, bias, r)
	}
	h := x
	if c.norm != "" {
		if c.norm == "prepared" {
			x = Linear(b, "o", x, noiseMatrix("o.w", c.dim, c.dim, c.format), graph.None)
		}
		h = RMSNorm(b, "norm", x, constant(b, "norm.weight", c.dim), 1e-5)
		b.Output(Linear(b, "router", h, noiseMatrix("router.w", 8, c.dim, weight.F32), graph.None))
	}
	other := func(x graph.ValueID, f func(*graph.Builder, graph.ValueID) graph.ValueID) graph.ValueID {
		if f == nil {
			return x
		}
		return f(b, x)
	}
	gate := of("gate", h, c.ffn, c.dim, c.format)
	up := of("up", other(h, c.up), c.ffn, c.dim, c.format)
	down := of("down", basic.SiLUMul(b, "mul", gate, up), c.dim, c.ffn, c.down)
	if c.also != nil {
		c.also(b, gate, down)
	}
	y := experts.CombineExperts(b, "combine", down, r.Weights)
	b.Output(basic.Add(b, "add", other(x, c.residual), y, c.alpha))
}

// at returns the live point with a number of tokens.
func (c mixtureCase) at(tokens int) step {
	return step{"x": {1, tokens, c.dim}, "logits": {1, tokens, c.n}}
}

func TestMixturesOfExpertsAreFused(t *testing.T) {
	base := mixtureCase{
		format: weight.Q8_0, down: weight.Q4_0, dim: 64, ffn: 96, n: 6, k: 2, most: 40, alpha: 0.5,
	}
	gateUp := "gate+up+mul (linear_experts_q8_0) = [gate up mul]"
	combined := "down+combine+add (linear_experts_q4gsw) = [down combine add]"
	for name, c := range map[string]struct {
		change func(c *mixtureCase)
		want   []string
	}{
		"all rules":              {func(*mixtureCase) {}, []string{gateUp, combined}},
		"biases":                 {func(c *mixtureCase) { c.bias = true }, []string{gateUp, combined}},
		"a norm":                 {func(c *mixtureCase) { c.norm = "plain" }, []string{gateUp, combined}},
		"a norm after a product": {func(c *mixtureCase) { c.norm = "prepared" }, []string{gateUp, combined}},
		"factors of the experts": {func(c *mixtureCase) {
			c.ffn, c.format, c.down = 128, weight.NVFP4, weight.NVFP4
		}, []string{
			"gate+up+mul (linear_experts_nvfp4) = [gate up mul]",
			"down+combine+add (linear_experts_nvfp4) = [down combine add]",
		}},
		"up reads another tensor": {func(c *mixtureCase) {
			c.up = func(b *graph.Builder, x graph.ValueID) graph.ValueID { return basic.Sigmoid(b, "s", x) }
		}, []string{combined}},
		"gate is an output": {func(c *mixtureCase) {
			c.also = func(b *graph.Builder, gate, _ graph.ValueID) { b.Output(gate) }
		}, []string{combined}},
		"down is an output": {func(c *mixtureCase) {
			c.also = func(b *graph.Builder, _, down graph.ValueID) { b.Output(down) }
		}, []string{gateUp}},
		"a residual with rows of its own": {func(c *mixtureCase) {
			c.residual = func(b *graph.Builder, _ graph.ValueID) graph.ValueID {
				return b.Input("other", graph.F32, []int{1, 1, 64}, []int{1, 40, 64})
			}
		}, []string{gateUp, "down+combine (linear_experts_q4gsw) = [down combine]"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := base
			c.change(&m)
			fused := fusedBy(t, m.build, gpu.DefaultLimits(), expertRules...)
			if parts := partsOf(fused); !slices.Equal(parts, c.want) {
				t.Errorf("fused %v, want %v", parts, c.want)
			}
			if len(c.want) < 2 || m.residual != nil {
				return
			}
			live, d := liveAt(t, fused, (&trial{}).input(t, fused, m.at(1))), fused.Describe()
			for _, id := range live.Active() {
				if d.Ops[d.Dispatches[id].Op].Kind == "rms_norm" {
					t.Errorf("one token runs a norm")
				}
			}
			plain := fusedBy(t, m.build, gpu.DefaultLimits())
			if a, b := fused.AllocatedBytes()["constant"], plain.AllocatedBytes()["constant"]; a != b {
				t.Errorf("weights take %d bytes, unfused %d", a, b)
			}
			referencesOf(t, fused, plain, []step{m.at(40), m.at(1), m.at(3)}, 1e-12)
		})
	}
}

// Fused kernels agree with the unfused reference, for one token, a few and many.
func TestFusedMixturesAgreeOnTheGPU(t *testing.T) {
	dev := gputest.Open(t)
	cases := []mixtureCase{
		{
			format: weight.Q4_0, down: weight.Q8_0, dim: 256, ffn: 96, n: 6, k: 3, most: 40, alpha: 1,
			norm: "prepared",
		},
		{
			format: weight.Q8_0, down: weight.Q4_0, dim: 64, ffn: 160, n: 5, k: 4, most: 40, alpha: 0.5,
			bias: true, norm: "plain",
		},
		{format: weight.F32, down: weight.F16, dim: 72, ffn: 40, n: 4, k: 2, most: 300, alpha: 1},
		{format: weight.Q6_K, down: weight.Q4_K, dim: 512, ffn: 256, n: 12, k: 8, most: 30, alpha: 1},
	}
	if testing.Short() {
		cases = cases[:2]
	}
	for i, c := range cases {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			limits := dev.Info().Limits
			fused, plain := fusedBy(t, c.build, limits, expertRules...), fusedBy(t, c.build, limits)
			points := []step{c.at(c.most), c.at(1), c.at(3), c.at(1)}
			kernelsOf(t, dev, fused, plain, points, 1e-3)
		})
	}
}
