package model

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// What a file of an architecture says, and what its row adds, without a look at tensors.
func TestConfigIsWhatFileAndRowSay(t *testing.T) {
	of := func(n, window int) []int { return slices.Repeat([]int{window}, n) }
	for name, test := range map[string]struct {
		arch    *architecture
		keys    map[string]any
		windows []int
		scale   float64
		local   float64 // base of the rotation in layers with a window; 0 for that of the others
	}{
		"a Llama": {arch: &llama, keys: map[string]any{"block_count": 3}, windows: of(3, 0)},
		"a Mistral": {
			arch: &llama, keys: map[string]any{"block_count": 3, "attention.sliding_window": 16},
			windows: of(3, 16),
		},
		"a Phi 4, which states a window of nothing": {
			arch: &phi3, keys: map[string]any{"block_count": 3, "attention.sliding_window": 0},
			windows: of(3, 0),
		},
		"a Gemma: each sixth layer sees all": {
			arch: &gemma3, keys: map[string]any{"block_count": 7, "attention.sliding_window": 16},
			windows: []int{16, 16, 16, 16, 16, 0, 16}, local: 10000,
		},
		"a Gemma that says which, and by what base": {
			arch: &gemma3, keys: map[string]any{
				"block_count": 4, "attention.sliding_window": 16, "attention.sliding_window_pattern": 2,
				"rope.freq_base_swa": float32(5000),
			},
			windows: []int{16, 0, 16, 0}, local: 5000,
		},
		"the Gemma of 62 layers": {
			arch: &gemma3, keys: map[string]any{
				"block_count": 62, "attention.key_length": 16,
				"attention.value_length": 16, "rope.dimension_count": 16,
			},
			windows: of(62, 0), local: 10000, scale: 1 / math.Sqrt(tinyDim/tinyHeads),
		},
		"a stated scale": {
			arch: &qwen3, keys: map[string]any{"block_count": 1, "attention.scale": float32(0.25)},
			windows: of(1, 0), scale: 0.25,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := tinyOf(test.arch)
			for key, value := range test.keys {
				b.Set(test.arch.name+"."+key, value)
			}
			file, err := parseGGUF(b.Bytes(), "tiny.gguf")
			if err != nil {
				t.Fatal(err)
			}
			c, err := file.config()
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
				t.Errorf("the base of the rotation in windows is %v, want %v", local, test.local)
			}
		})
	}
}

func TestQwenWithAWindowIsRefused(t *testing.T) {
	for _, a := range []*architecture{&qwen2, &qwen3} {
		b := tinyOf(a)
		b.Set(a.name+".attention.sliding_window", 16)
		file, err := parseGGUF(b.Bytes(), "tiny.gguf")
		if err != nil {
			t.Fatal(err)
		}
		want := "attention.sliding_window: not yet: attention in a sliding window (16, want 0)"
		if _, err := file.config(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", a.name, err, want)
		}
	}
}
