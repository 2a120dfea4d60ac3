package model

import (
	"cmp"
	"encoding/binary"
	"math"
	"testing"

	"gpuscope/engine/graph"
	"gpuscope/model/arch"
	"gpuscope/model/checkpoint/gguf/gguftest"
)

// The RoPE angles of a file match llama.cpp: the scaling in its keys and tensors is applied, whichever of
// them the file has. The test states the expected angles in float64.
func TestRotationIsScaledAsTheFileSays(t *testing.T) {
	factors := make([]float32, tinyHeadDim/2)
	for i := range factors {
		factors[i] = 1 + float32(i)/2
	}
	factorsAs := func(name string) func(*gguftest.Builder) {
		return func(b *gguftest.Builder) { b.F32(name, []int{len(factors)}, factors) }
	}
	withFactors := factorsAs("rope_freqs.weight")
	byFactors := func(i int) float64 { return 1 / float64(factors[i]) }
	none := func(int) float64 { return 1 }
	by := func(x float64) func(int) float64 { return func(int) float64 { return 1 / x } }
	tests := map[string]struct {
		keys   map[string]any
		change func(*gguftest.Builder)
		scale  func(pair int) float64
		gain   float64 // 0 stands for 1
	}{
		"no scaling":     {scale: none},
		"only a factor":  {keys: map[string]any{"factor": float32(8)}, scale: by(8)},
		"linear":         {keys: map[string]any{"type": "linear", "factor": float32(2.5)}, scale: by(2.5)},
		"none, a factor": {keys: map[string]any{"type": "none", "factor": float32(8)}, scale: none},
		"YaRN by a factor of 1": {
			keys:  map[string]any{"type": "yarn", "factor": float32(1), "yarn_beta_fast": float32(32)},
			scale: none,
		},
		"a factor of zero": {keys: map[string]any{"factor": float32(0)}, scale: none},
		"the key of old files": {
			change: set("llama.rope.scale_linear", float32(4)), scale: by(4),
		},
		"both keys": {
			keys: map[string]any{"factor": float32(2)}, change: set("llama.rope.scale_linear", float32(4)),
			scale: by(2),
		},
		"settings without effect": {keys: map[string]any{
			"factor": float32(2), "original_context_length": 32, "finetuned": true, "attn_factor": float32(1),
		}, scale: by(2)},
		"a factor of each pair": {
			change: withFactors, scale: byFactors,
		},
		"a gain": {keys: map[string]any{"attn_factor": float32(1.25)}, scale: none, gain: 1.25},
		"long factors past the training": {
			keys:   map[string]any{"original_context_length": tinyContext - 1, "type": "longrope"},
			change: factorsAs("rope_factors_long.weight"), scale: byFactors,
		},
		"long factors within the training": {
			keys:   map[string]any{"original_context_length": tinyContext},
			change: factorsAs("rope_factors_long.weight"), scale: none,
		},
		"short factors within the training": {
			keys:   map[string]any{"original_context_length": tinyContext},
			change: factorsAs("rope_factors_short.weight"), scale: byFactors,
		},
		"short factors past the training": {
			keys:   map[string]any{"original_context_length": tinyContext - 1},
			change: factorsAs("rope_factors_short.weight"), scale: none,
		},
		"both": {
			keys: map[string]any{"factor": float32(2)}, change: withFactors,
			scale: func(i int) float64 { return 0.5 / float64(factors[i]) },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := tiny()
			for key, value := range test.keys {
				b.Set("llama.rope.scaling."+key, value)
			}
			if test.change != nil {
				test.change(b)
			}
			g := graphOf(t, Options{Path: write(t, b.Bytes())})
			tables := map[string]func(float64) float64{"rope_cos": math.Cos, "rope_sin": math.Sin}
			for table, f := range tables {
				data := constant(t, g, table)
				pairs := tinyHeadDim / 2
				for at := range tinyContext * pairs {
					pos, i := float64(at/pairs), at%pairs
					angle := pos * math.Pow(10000, -2*float64(i)/tinyHeadDim) * test.scale(i)
					got := math.Float32frombits(binary.LittleEndian.Uint32(data[4*at:]))
					if want := cmp.Or(test.gain, 1) * f(angle); math.Abs(float64(got)-want) > 1e-6 {
						t.Fatalf("%s of position %v and pair %d is %v, want %v", table, pos, i, got, want)
					}
				}
			}
		})
	}
}

// In Phi 4 mini, RoPE rotates only the first dims of a head, so its tables have only as many columns.
func TestRotationOfAPartOfTheHead(t *testing.T) {
	b := tinyOf(&arch.Phi3)
	b.Set("phi3.rope.dimension_count", tinyHeadDim*3/4)
	g := graphOf(t, Options{Path: write(t, b.Bytes())})
	const turned = tinyHeadDim * 3 / 4
	data := constant(t, g, "rope_cos")
	if len(data) != 4*tinyContext*turned {
		t.Fatalf("a table of %d bytes, want %d positions of %d columns", len(data), tinyContext, turned)
	}
	for at := range tinyContext * turned {
		want := math.Cos(float64(at/turned) * math.Pow(10000, -2*float64(at%(turned/2))/turned))
		got := math.Float32frombits(binary.LittleEndian.Uint32(data[4*at:]))
		if math.Abs(float64(got)-want) > 1e-6 {
			t.Fatalf("position %d, column %d: %v, want %v", at/turned, at%turned, got, want)
		}
	}
}

// constant returns the data of the constant with the given name.
func constant(t *testing.T, g *graph.Graph, name string) []byte {
	t.Helper()
	for id := range g.Describe().Values {
		if v := g.Value(graph.ValueID(id)); v.Name == name && v.Load != nil {
			data, err := v.Load()
			if err != nil {
				t.Fatal(err)
			}
			return data
		}
	}
	t.Fatalf("the graph has no constant %s", name)
	return nil
}
