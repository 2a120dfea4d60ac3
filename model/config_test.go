package model

import (
	"math"
	"slices"
	"testing"

	"gpuscope/internal/wordingtest"
	"gpuscope/model/arch"
)

// The configuration combines the keys of a file with the defaults of its architecture, without reading
// tensors.
func TestConfigIsWhatFileAndRowSay(t *testing.T) {
	of := func(n, window int) []int { return slices.Repeat([]int{window}, n) }
	for name, test := range map[string]struct {
		arch    *arch.Architecture
		keys    map[string]any
		windows []int
		scale   float64
		local   float64 // RoPE base in layers with a window; 0 if it is that of the other layers
	}{
		"a Llama": {arch: &arch.Llama, keys: map[string]any{"block_count": 3}, windows: of(3, 0)},
		"a Llama with a window, which llama.cpp ignores": {
			arch: &arch.Llama, keys: map[string]any{"block_count": 3, "attention.sliding_window": 16},
			windows: of(3, 0),
		},
		"a Qwen with a window, which llama.cpp ignores": {
			arch: &arch.Qwen2, keys: map[string]any{"block_count": 3, "attention.sliding_window": 16},
			windows: of(3, 0),
		},
		"a Phi 3": {
			arch: &arch.Phi3, keys: map[string]any{"block_count": 3, "attention.sliding_window": 16},
			windows: of(3, 16),
		},
		"a Phi 4 with a window of 0": {
			arch: &arch.Phi3, keys: map[string]any{"block_count": 3, "attention.sliding_window": 0},
			windows: of(3, 0),
		},
		"a Gemma with full attention in each sixth layer": {
			arch: &arch.Gemma3, keys: map[string]any{"block_count": 7, "attention.sliding_window": 16},
			windows: []int{16, 16, 16, 16, 16, 0, 16}, local: 10000,
		},
		"a Gemma with its own period and RoPE base": {
			arch: &arch.Gemma3, keys: map[string]any{
				"block_count": 4, "attention.sliding_window": 16, "attention.sliding_window_pattern": 2,
				"rope.freq_base_swa": float32(5000),
			},
			windows: []int{16, 0, 16, 0}, local: 5000,
		},
		"a Gemma of 62 layers": {
			arch: &arch.Gemma3, keys: map[string]any{
				"block_count": 62, "attention.key_length": 16,
				"attention.value_length": 16, "rope.dimension_count": 16,
			},
			windows: of(62, 0), local: 10000, scale: 1 / math.Sqrt(tinyDim/tinyHeads),
		},
		"a Gemma with a bool per layer": {
			arch: &arch.Gemma3, keys: map[string]any{
				"block_count": 3, "attention.sliding_window": 16,
				"attention.sliding_window_pattern": []bool{false, true, false},
			},
			windows: []int{0, 16, 0}, local: 10000,
		},
		"an attention scale in another architecture": {
			arch: &arch.Qwen3, keys: map[string]any{"block_count": 1, "attention.scale": float32(0.25)},
			windows: of(1, 0),
		},
		"a Gemma with the period repeated per layer": {
			arch: &arch.Gemma3, keys: map[string]any{
				"block_count": 3, "attention.sliding_window": 16,
				"attention.sliding_window_pattern": []int32{2, 2, 2},
			},
			windows: []int{16, 0, 16}, local: 10000,
		},
		"equal numbers per layer": {
			arch: &arch.Llama, keys: map[string]any{
				"block_count": 2, "attention.head_count": []int32{2, 2},
				"attention.head_count_kv": []int32{1, 1}, "feed_forward_length": []int32{96, 96},
			},
			windows: of(2, 0),
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := tinyOf(test.arch)
			for key, value := range test.keys {
				b.Set(test.arch.Name+"."+key, value)
			}
			file, err := arch.ParseGGUF(b.Bytes(), "tiny.gguf")
			if err != nil {
				t.Fatal(err)
			}
			c, err := file.Config()
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(c.Windows, test.windows) || c.Scale != test.scale {
				t.Errorf("windows %v, scale %v, want %v and %v", c.Windows, c.Scale, test.windows, test.scale)
			}
			var local float64
			if c.LocalRope != nil {
				local = c.LocalRope.Base
			}
			if local != test.local {
				t.Errorf("RoPE base in layers with a window is %v, want %v", local, test.local)
			}
		})
	}
}

// Per-layer numbers are refused if they differ or if there is not one number per layer.
func TestUnequalNumbersByLayerAreRefused(t *testing.T) {
	t.Parallel()
	golden := wordingtest.New(t)
	for name, c := range map[string]struct {
		key   string
		value any
	}{
		"they differ":     {"attention.head_count_kv", []int32{1, 2}},
		"too many":        {"feed_forward_length", []int32{96, 96, 96}},
		"none":            {"attention.head_count", []int32{}},
		"of words":        {"attention.head_count", []string{"2", "2"}},
		"layers by layer": {"block_count", []int32{2, 2}},
	} {
		b := tiny()
		b.Set("llama."+c.key, c.value)
		file, err := arch.ParseGGUF(b.Bytes(), "tiny.gguf")
		if err != nil {
			t.Fatal(err)
		}
		_, err = file.Config()
		golden.Error(name, err)
	}
}

// A key for attention or RoPE that no known architecture has may change the result, so it is refused.
func TestUnknownKeysOfAttentionAreRefused(t *testing.T) {
	t.Parallel()
	for key, runs := range map[string]bool{
		"attention.new": false, "rope.new": false, "new": true, "attention.clamp_kqv": true,
		"rope.freq_base_swa": true, "vocab_size": true,
	} {
		b := tiny()
		b.Set("llama."+key, 3)
		file, err := arch.ParseGGUF(b.Bytes(), "tiny.gguf")
		if err != nil {
			t.Fatal(err)
		}
		c, err := file.Config()
		if runs != (err == nil) {
			t.Errorf("%s: %v", key, err)
		}
		if ignored := runs && key != "vocab_size"; ignored != (len(c.Ignored) == 1) && runs {
			t.Errorf("%s: ignored %v", key, c.Ignored)
		}
	}
}
