package ops

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gpuscope/engine/gpu/gputest"
	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
	"gpuscope/ops/experts"
	"gpuscope/ops/weight"
)

// mixtureShape has the sizes of a published mixture of experts.
type mixtureShape struct {
	name             string
	dim, ffn         int
	n, k             int // experts, and chosen ones
	gateUp, down, or weight.Format
}

var mixtureShapes = []mixtureShape{
	{"qwen3-30b-a3b", 2048, 768, 128, 8, weight.Q4_K, weight.Q6_K, weight.Q8_0},
	{"gpt-oss-20b", 2880, 2880, 32, 4, weight.MXFP4, weight.MXFP4, weight.Q8_0},
}

// routed returns the content of the outputs of a router, for tokens that choose their experts at random.
func (c mixtureShape) routed(tokens int) map[string][]byte {
	random := rand.New(rand.NewPCG(3, 4))
	var chosen, pairs []int
	for range tokens {
		chosen = append(chosen, random.Perm(c.n)[:c.k]...)
	}
	counts := make([]int, c.n+1)
	for i, e := range chosen {
		counts[e+1]++
		pairs = append(pairs, i)
	}
	for e := range c.n {
		counts[e+1] += counts[e]
	}
	slices.SortStableFunc(pairs, func(a, b int) int { return chosen[a] - chosen[b] })
	words := func(list []int) (data []byte) {
		for _, v := range list {
			data = binary.LittleEndian.AppendUint32(data, uint32(v))
		}
		return data
	}
	return map[string][]byte{
		"route.experts": words(chosen), "route.sorted": words(slices.Concat(counts, pairs)),
	}
}

// build returns a function that builds the product gate and up of a mixture, or down, for a number of tokens.
func (c mixtureShape) build(tokens int, down bool, f weight.Format, route string) func(b *graph.Builder) {
	return func(b *graph.Builder) {
		if route != "" {
			b.AskRoutes(map[string]string{f.KindName("linear_experts"): route})
		}
		b.Fuse(expertRules...)
		in := func(name string, dims ...int) graph.ValueID {
			dims = append([]int{1, tokens}, dims...)
			return b.Input(name, graph.F32, dims, dims)
		}
		r := experts.Router(b, "route", in("logits", c.n), experts.RouterOptions{
			K: c.k, Scale: 1, Normalize: true, Bias: graph.None, Factors: graph.None,
		})
		of := func(name string, x graph.ValueID, rows, cols int) graph.ValueID {
			return experts.LinearExperts(b, name, x, noiseMatrix(name+".w", c.n*rows, cols, f), graph.None, r)
		}
		if !down {
			x := in("x", c.dim)
			b.Output(basic.SiLUMul(b, "mul", of("gate", x, c.ffn, c.dim), of("up", x, c.ffn, c.dim)))
			return
		}
		y := experts.CombineExperts(b, "combine", of("down", in("x", c.k, c.ffn), c.dim, c.ffn), r.Weights)
		b.Output(basic.Add(b, "add", in("stream", c.dim), y, 1))
	}
}

// dense builds the products of an MLP with as many weights as the chosen experts, for rows rows.
func (c mixtureShape) dense(rows, ffn int, down bool, f weight.Format) func(b *graph.Builder) {
	return func(b *graph.Builder) {
		b.Fuse(fuseGateUp)
		of := func(name string, x graph.ValueID, rows, cols int) graph.ValueID {
			return Linear(b, name, x, noiseMatrix(name+".w", rows, cols, f), graph.None)
		}
		if down {
			b.Output(of("down", b.Input("x", graph.F32, []int{rows, ffn}, []int{rows, ffn}), c.dim, ffn))
			return
		}
		x := b.Input("x", graph.F32, []int{rows, c.dim}, []int{rows, c.dim})
		b.Output(basic.SiLUMul(b, "mul", of("gate", x, ffn, c.dim), of("up", x, ffn, c.dim)))
	}
}

// half names the two products of a mixture.
func half(down bool) string {
	if down {
		return "down"
	}
	return "gate_up"
}

// BenchmarkExpertsDecode measures the products of a mixture for one token, beside those of an MLP with as
// many weights as the chosen experts. GB/s counts the weights of the chosen experts.
func BenchmarkExpertsDecode(b *testing.B) {
	dev := benchDevice(b)
	for _, c := range mixtureShapes {
		for _, down := range []bool{false, true} {
			formats := []weight.Format{c.gateUp, c.or}
			if down {
				formats[0] = c.down
			}
			for _, f := range formats {
				for _, apart := range []bool{false, true} {
					name := fmt.Sprintf("%s/%s/%s/%s", c.name, half(down), f.File, placed(apart))
					b.Run(name+"/experts", func(b *testing.B) {
						x := newBenchOf(b, dev, c.build(1, down, f, ""), apart, c.routed(1))
						defer x.release()
						x.run(b)
					})
					b.Run(name+"/dense", func(b *testing.B) {
						x := newBench(b, dev, c.dense(1, c.k*c.ffn, down, f), apart)
						defer x.release()
						x.run(b)
					})
				}
			}
		}
	}
}

// BenchmarkExpertsPrefill measures each route of the products of a mixture for many tokens, beside the
// product of an MLP with as many rows as an expert has on average, and enough columns to fill the device.
func BenchmarkExpertsPrefill(b *testing.B) {
	dev := benchDevice(b)
	for _, c := range mixtureShapes {
		for _, tokens := range []int{4, 16, 64, 128, 512, 2048} {
			for _, down := range []bool{false, true} {
				f := c.or
				name := fmt.Sprintf("%s/S%d/%s/", c.name, tokens, half(down))
				for _, route := range []string{"", "pairs", "tile32", "tile64", "tile128"} {
					if route == "pairs" && tokens*c.k > 16*c.n || route == "tile128" && tokens < 128 {
						continue
					}
					b.Run(name+"experts "+route, func(b *testing.B) {
						x := newBenchOf(b, dev, c.build(tokens, down, f, route), false, c.routed(tokens))
						defer x.release()
						x.run(b)
					})
				}
				b.Run(name+"dense", func(b *testing.B) {
					rows := max(1, tokens*c.k/c.n)
					x := newBench(b, dev, c.dense(rows, 8192, down, f), false)
					defer x.release()
					x.run(b)
				})
			}
		}
	}
}

// TestABenchOfExpertsRuns runs benches as a test, and checks that their routes are accepted.
func TestABenchOfExpertsRuns(t *testing.T) {
	dev := gputest.Open(t)
	t.Cleanup(emptyStock)
	c := mixtureShape{"tiny", 64, 32, 4, 2, weight.Q8_0, weight.Q8_0, weight.Q8_0}
	for tokens, route := range map[int]string{1: "", 20: "tile32"} {
		x := newBenchOf(t, dev, c.build(tokens, tokens > 1, weight.Q8_0, route), false, c.routed(tokens))
		if took := x.once(t); took == 0 || len(x.runs) < x.copies {
			t.Errorf("%d tokens: %d dispatches in %d copies, %d ticks", tokens, len(x.runs), x.copies, took)
		}
		x.release()
	}
	for _, s := range mixtureShapes {
		for _, down := range []bool{false, true} {
			planned(t, large, s.build(512, down, s.or, "tile64"))
			planned(t, large, s.dense(16, 8192, down, s.or))
		}
	}
}
