package ops

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/gputest"
	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
	"gpuscope/ops/vision"
	"gpuscope/ops/weight"
	"gpuscope/trace"
)

// samples draws, for each kind of operator, a graph with it and legal live points. The kinds of a family are
// added from its rows. Tests that cover every operator use it.
var samples = map[string]func(t *rapid.T) *trial{
	"apply_rotary_emb":             sampleRotary,
	"apply_rotary_emb_hf":          sampleRotaryHF,
	"apply_rotary_emb_interleaved": sampleRotaryInterleaved,
	"argmax":                       sampleArgmax,
	"bmm":                          sampleBMM,
	"cat":                          sampleCat,
	"causal_conv1d":                sampleCausalConv,
	"choose_qparams_affine":        sampleChooseQParams,
	"combine_experts":              sampleCombineExperts,
	"quantize_affine":              sampleQuantizeAffine,
	"constant_pad_nd":              samplePad,
	"cumsum":                       sampleCumSum,
	"gated_delta_rule":             sampleDeltaRule,
	"gated_rms_norm":               sampleGatedNorm,
	"gather":                       func(t *rapid.T) *trial { return sampleAlong(t, false) },
	"scatter":                      func(t *rapid.T) *trial { return sampleAlong(t, true) },
	"where":                        sampleWhere,
	"index_select":                 sampleIndexSelect,
	"layer_norm":                   sampleLayerNorm,
	"permute":                      samplePermute,
	"rms_norm":                     sampleRMSNorm,
	"router":                       sampleRouter,
	"sdpa_with_kv_cache":           sampleSDPA,
	"select":                       sampleSelect,
	"slice":                        sampleSlice,
	"softmax":                      sampleSoftmax,
	"topk":                         sampleTopK,
	"update_cache":                 sampleUpdateCache,
	"view":                         sampleView,
	"avg_pool2d":                   func(t *rapid.T) *trial { return samplePool(t, "avg_pool2d") },
	"convolution":                  sampleConvolution,
	"grid_priors":                  samplePriors,
	"grid_sampler_2d":              sampleSampler,
	"max_pool2d":                   func(t *rapid.T) *trial { return samplePool(t, "max_pool2d") },

	"sym_size":         sampleSymSize,
	"select_as_symint": sampleSelectAsSymInt,
}

func init() {
	for i := range basic.Unaries {
		samples[basic.Unaries[i].Kind] = func(t *rapid.T) *trial { return sampleUnary(t, &basic.Unaries[i]) }
	}
	for i := range basic.BinariesAndCompares {
		samples[basic.BinariesAndCompares[i].Kind] = func(t *rapid.T) *trial {
			return sampleBinary(t, &basic.BinariesAndCompares[i])
		}
	}
	for i := range basic.Gates {
		samples[basic.Gates[i].Kind] = func(t *rapid.T) *trial { return sampleGated(t, &basic.Gates[i]) }
	}
	for i := range basic.Conversions {
		samples[basic.Conversions[i].Kind] = func(t *rapid.T) *trial {
			return sampleConversion(t, basic.Conversions[i].Kind)
		}
	}
	for i := range basic.Reductions {
		samples[basic.Reductions[i].Kind] = func(t *rapid.T) *trial {
			return sampleReduce(t, &basic.Reductions[i])
		}
	}
	for i := range basic.Gathers {
		if r := &basic.Gathers[i]; r.Tries != nil {
			samples[r.Kind] = func(t *rapid.T) *trial { return sampleGather(t, r) }
		}
	}
	for i := range vision.Upsamples {
		kind := vision.Upsamples[i].Kind
		samples[kind] = func(t *rapid.T) *trial { return sampleUpsample(t, kind) }
	}
	for i := range weight.Formats {
		for of, sample := range map[string]func(*rapid.T, string) *trial{
			"embedding": sampleEmbedding, "linear": sampleLinear, "linear_experts": sampleLinearExperts,
		} {
			kind := weight.Formats[i].KindName(of)
			samples[kind] = func(t *rapid.T) *trial { return sample(t, kind) }
		}
	}
	for _, r := range basic.SymBinaries {
		samples[r.Kind] = func(t *rapid.T) *trial { return sampleSymBinary(t, r.Kind) }
	}
}

// draw draws an integer from lo to hi. It favors both ends and the neighborhood of multiples of 64.
func draw(t *rapid.T, name string, lo, hi int) int {
	edges := []int{lo, hi}
	for _, n := range []int{2, 3, 4, 5, 7, 31, 63, 64, 65, 127, 128, 129, 255, 256, 257} {
		if n > lo && n < hi {
			edges = append(edges, n)
		}
	}
	return rapid.OneOf(rapid.SampledFrom(edges), rapid.IntRange(lo, hi)).Draw(t, name)
}

// drawFormat draws a weight format for rows of any length. It excludes qcs4w, which has one scale per row.
func drawFormat(t *rapid.T) weight.Format {
	return rapid.SampledFrom(weight.Formats).Filter(func(f weight.Format) bool { return f.Name != "qcs4w" }).Draw(t, "format")
}

// drawSteps draws one to four live points.
func drawSteps(t *rapid.T, one func(i int) step) []step {
	var list []step
	for i := range rapid.IntRange(1, 4).Draw(t, "steps") {
		list = append(list, one(i))
	}
	return list
}

func TestEveryOperatorHasASample(t *testing.T) {
	for _, info := range Kinds {
		if samples[info.Name] == nil {
			t.Errorf("%s: no graph in samples", info.Name)
		}
	}
	if len(samples) != len(Kinds) {
		t.Errorf("%d samples for %d kinds", len(samples), len(Kinds))
	}
}

// Every legal live point can be planned with what the corners allocated and compiled, in any order.
func TestNoLivePlanExceedsItsCorners(t *testing.T) {
	for _, info := range Kinds {
		t.Run(info.Name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				c := samples[info.Name](t)
				g := finish(t, c)
				live := liveOf(t, g, graph.LiveOptions{})
				for _, s := range c.steps {
					if err := bring(live, c.input(t, g, s)); err != nil {
						t.Fatalf("%v: %v", s, err)
					}
				}
			})
		})
	}
}

// The route that --static pins must run every legal live point.
func TestStaticModeTakesEveryLivePoint(t *testing.T) {
	for _, info := range Kinds {
		t.Run(info.Name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				c := samples[info.Name](t)
				g := finish(t, c)
				live := liveOf(t, g, graph.LiveOptions{Static: true})
				for _, s := range c.steps {
					if err := bring(live, c.input(t, g, s)); err != nil {
						t.Fatalf("%v: %v", s, err)
					}
				}
			})
		})
	}
}

// The explanation of a grid ends with counts that are visible in the shapes: a number of workgroups explained
// by itself explains nothing. The number of idle lanes is at most the number of lanes started.
func TestEveryGridIsDerivedFromTheLiveShape(t *testing.T) {
	for _, info := range Kinds {
		t.Run(info.Name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				c := samples[info.Name](t)
				g := finish(t, c)
				live := liveOf(t, g, graph.LiveOptions{})
				for _, s := range c.steps {
					if err := bring(live, c.input(t, g, s)); err != nil {
						t.Fatalf("%v: %v", s, err)
					}
					plans, _ := live.Step()
					for i := range plans {
						p := &plans[i]
						if said := explained(p); said != "" {
							t.Errorf("%v: kernel %s: %s", s, p.Kernel, said)
						}
						_, k := live.Launch(p.Dispatch)
						size := k.WorkgroupSize
						n := p.NeededGroups * int64(size[0]*size[1]*size[2])
						if p.IdleLanes < 0 || p.IdleLanes > n {
							t.Errorf("%v: kernel %s: %d lanes of %d are idle", s, p.Kernel, p.IdleLanes, n)
						}
					}
				}
			})
		})
	}
}

// explained returns what is wrong with the arithmetic of a plan's grid, or "".
func explained(p *trace.Plan) string {
	if p.Grid == nil {
		return "its grid has no arithmetic"
	}
	groups := int64(1)
	for i := range p.Grid.Terms {
		groups *= p.Grid.Terms[i].Groups()
	}
	if groups != p.NeededGroups {
		return fmt.Sprintf("%v makes %d workgroups, not %d", *p.Grid, groups, p.NeededGroups)
	}
	// A number of elements is visible in the shape, even if each workgroup has one.
	if one := p.Grid.Terms[0]; len(p.Grid.Terms) == 1 && one.Per == 1 && one.Name != "elements" {
		return fmt.Sprintf("%d workgroups are explained only by %s %d", groups, one.Name, one.Value)
	}
	return ""
}

// Every step plans again, so planning must not allocate.
func TestPlansDoNotAllocate(t *testing.T) {
	for _, info := range Kinds {
		t.Run(info.Name, func(t *testing.T) {
			c := rapid.Custom(samples[info.Name]).Example(1)
			g := finish(t, c)
			live := liveOf(t, g, graph.LiveOptions{})
			var points []*graph.StepInput
			for _, s := range c.steps {
				points = append(points, c.input(t, g, s))
			}
			points = append(points, points[0])
			again := func() {
				for _, in := range points {
					if err := bring(live, in); err != nil {
						t.Fatal(err)
					}
				}
			}
			again() // the first resizes grow the log
			if n := testing.AllocsPerRun(10, again); n != 0 {
				t.Errorf("%v allocations in %d resizes", n, len(points))
			}
		})
	}
}

// finish builds the graph of a trial for a device with default limits.
func finish(t failer, c *trial) *graph.Graph {
	limits := gpu.DefaultLimits()
	if c.maxBinding > 0 {
		limits.MaxStorageBinding = c.maxBinding
	}
	b := graph.NewBuilder(limits)
	c.build(b)
	g, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// liveOf returns the live state of a graph.
func liveOf(t failer, g *graph.Graph, o graph.LiveOptions) *graph.Live {
	t.Helper()
	live, err := graph.NewLive(g, o)
	if err != nil {
		t.Fatal(err)
	}
	return live
}

// liveAt returns the live state of a graph at the shapes of a step.
func liveAt(t failer, g *graph.Graph, in *graph.StepInput) *graph.Live {
	t.Helper()
	live := liveOf(t, g, graph.LiveOptions{})
	if err := bring(live, in); err != nil {
		t.Fatal(err)
	}
	return live
}

// bring resizes a graph to the shapes of a step.
func bring(live *graph.Live, in *graph.StepInput) error {
	for i := range in.Inputs {
		a := &in.Inputs[i]
		if err := live.SetDims(a.Value, a.Dims...); err != nil {
			return err
		}
		if a.Host != nil {
			if err := live.SetHost(a.Value, a.Host); err != nil {
				return err
			}
		}
	}
	for _, a := range in.SymInts {
		if err := live.SetInt(a.Value, a.Int); err != nil {
			return err
		}
	}
	if err := live.Propagate(); err != nil {
		return err
	}
	live.Commit()
	return nil
}

// The same random graphs run on the GPU. Seeds are fixed, so a failure is reproducible.
func TestRandomShapesOnTheGPU(t *testing.T) {
	dev := gputest.Open(t)
	for i, info := range Kinds {
		t.Run(info.Name, func(t *testing.T) {
			for _, seed := range dealt(i, []int{0, 1, 2, 3, 4, 5}) {
				c := rapid.Custom(samples[info.Name]).Example(seed)
				c.static = seed%3 == 1
				if seed%3 == 2 {
					c.maxWorkgroups = 48
				}
				c.run(t, dev)
				if t.Failed() {
					t.Fatalf("seed %d, steps %v", seed, c.steps)
				}
			}
		})
	}
}
