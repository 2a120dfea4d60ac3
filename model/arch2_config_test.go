package model

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"gpuscope/internal/wordingtest"
	"gpuscope/model/arch"
)

// tinyConfig returns the configuration of a tiny folder with some keys set.
func tinyConfig(t *testing.T, set map[string]any) (arch.Config, error) {
	t.Helper()
	f := newTinyFolder()
	delete(f.Config, "sliding_window")
	maps.Copy(f.Config, set)
	return configAt(t, f.write(t))
}

// configAt returns the configuration of a folder.
func configAt(t *testing.T, path string) (arch.Config, error) {
	t.Helper()
	file, err := arch.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file.Config()
}

func TestLayersWithoutRoPEFollowTheClass(t *testing.T) {
	t.Parallel()
	type keys = map[string]any
	full, local := "full_attention", "sliding_attention"
	for name, c := range map[string]struct {
		set  keys
		want []bool // nil: all layers have RoPE
	}{
		"smollm3, no list": {keys{"model_type": "smollm3"}, []bool{false, false, false, true, false}},
		"smollm3, interval": {
			keys{"model_type": "smollm3", "no_rope_layer_interval": 2},
			[]bool{false, true, false, true, false},
		},
		"smollm3, a list": {
			keys{"model_type": "smollm3", "no_rope_layers": []int{0, 1, 1, 1, 1}},
			[]bool{true, false, false, false, false},
		},
		"exaone4": {keys{"model_type": "exaone4"}, []bool{false, false, false, true, false}},
		"exaone4, no window": {
			keys{"model_type": "exaone4", "sliding_window": nil, "sliding_window_pattern": 0}, nil,
		},
		"exaone4, kinds": {
			keys{
				"model_type": "exaone4", "sliding_window": 4, "sliding_window_pattern": "LGLGL",
				"layer_types": []string{local, full, local, full, local},
			},
			[]bool{false, true, false, true, false},
		},
		"cohere2": {keys{"model_type": "cohere2"}, []bool{false, false, false, true, false}},
		"cohere2, no window": {
			keys{
				"model_type": "cohere2", "sliding_window": nil,
				"layer_types": []string{full, full, full, full, full},
			},
			[]bool{true, true, true, true, true},
		},
		"llama": {keys{"model_type": "llama"}, nil},
	} {
		c.set["num_hidden_layers"] = 5
		got, err := tinyConfig(t, c.set)
		if err != nil || !slices.Equal(got.Unrotated, c.want) {
			t.Errorf("%s: %v, %v, want %v", name, got.Unrotated, err, c.want)
		}
	}
}

func TestYaRNReadsTheKeysOfItsFormat(t *testing.T) {
	t.Parallel()
	type keys = map[string]any
	of := func(set keys) arch.Rotation {
		scaling := keys{"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
		maps.Copy(scaling, set)
		c, err := tinyConfig(t, keys{"rope_scaling": scaling, "max_position_embeddings": 256})
		if err != nil {
			t.Fatal(err)
		}
		return c.Rope
	}
	plain, gain := of(nil), 1+0.1*math.Log(4)
	if math.Abs(plain.Gain-gain) > 1e-12 {
		t.Errorf("gain %v, want %v", plain.Gain, gain)
	}
	if d := plain.Divisors; d[0] != 1 || d[len(d)-1] != 4 {
		t.Errorf("divisors %v, want from 1 to 4", d)
	}
	for name, c := range map[string]struct {
		set  keys
		same bool // the divisors are those without the keys
		gain float64
	}{
		"an attention factor": {keys{"attention_factor": 1.5}, true, 1.5},
		"both mscales":        {keys{"mscale": 1.0, "mscale_all_dim": 1.0}, true, 1},
		"other betas":         {keys{"beta_fast": 4.0, "beta_slow": 0.5}, false, gain},
		"an exact ramp":       {keys{"truncate": false}, false, gain},
	} {
		got := of(c.set)
		if slices.Equal(got.Divisors, plain.Divisors) != c.same || math.Abs(got.Gain-c.gain) > 1e-12 {
			t.Errorf("%s: divisors %v, gain %v", name, got.Divisors, got.Gain)
		}
	}
	in := func(a *arch.Architecture) arch.Rotation {
		file := tinyOf(a)
		for key, value := range map[string]any{
			"rope.scaling.type": "yarn", "rope.scaling.factor": float32(4),
			"rope.scaling.yarn_beta_fast": float32(4),
		} {
			file.Set(a.Name+"."+key, value)
		}
		c, err := arch.ParseGGUF(file.Bytes(), "tiny.gguf")
		if err != nil {
			t.Fatal(err)
		}
		config, err := c.Config()
		if err != nil {
			t.Fatal(err)
		}
		return config.Rope
	}
	rows := map[string]*arch.Architecture{}
	for _, a := range ggufArchitectures() {
		rows[a.Name] = a
	}
	if got := in(&arch.Llama); !slices.Equal(got.Divisors, plain.Divisors) {
		t.Errorf("llama as GGUF: divisors %v, want %v", got.Divisors, plain.Divisors)
	}
	if got := in(rows["mistral3"]); slices.Equal(got.Divisors, plain.Divisors) {
		t.Error("mistral3 as GGUF ignores yarn_beta_fast")
	}
}

// A bias is used if the key of its class asks for it. Without the key, its tensor has no place.
func TestBiasesOfAttentionFollowTheirKey(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		class    string
		bias, ok bool
		tensors  []string
	}{
		"granite with biases":           {"granite", true, true, []string{"q", "k", "v", "o"}},
		"granite without its o bias":    {"granite", true, false, []string{"q", "k", "v"}},
		"granite with unexpected ones":  {"granite", false, false, []string{"q", "k", "v", "o"}},
		"seed_oss with biases":          {"seed_oss", true, true, []string{"q", "k", "v"}},
		"seed_oss with o's, not stated": {"seed_oss", true, false, []string{"q", "k", "v", "o"}},
		"seed_oss without biases":       {"seed_oss", false, true, nil},
	} {
		f := newTinyFolder()
		maps.Copy(f.Config, map[string]any{"model_type": c.class, "attention_bias": c.bias, "head_dim": 32})
		for _, p := range c.tensors {
			f.tensors["model.layers.0.self_attn."+p+"_proj.bias"] = []int{map[string]int{"k": 32, "v": 32}[p]}
			if p == "q" || p == "o" {
				f.tensors["model.layers.0.self_attn."+p+"_proj.bias"] = []int{64}
			}
		}
		if err := planFolder(f.write(t), Options{}); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Queries grow with the position even if the RoPE scaling changes nothing.
func TestQueriesGrowWithoutRoPEScaling(t *testing.T) {
	t.Parallel()
	rope := map[string]any{
		"rope_type": "default", "rope_theta": 1e4, "llama_4_scaling_beta": 0.3,
		"original_max_position_embeddings": 32,
	}
	c, err := tinyConfig(t, map[string]any{
		"model_type": "ministral3", "head_dim": 32, "rope_parameters": rope,
	})
	if err != nil || c.Rope.QueryGrowth != 0.3 || c.Rope.Original != 32 {
		t.Errorf("%+v, %v", c.Rope, err)
	}
	if _, err := tinyConfig(t, map[string]any{"model_type": "ministral3", "head_dim": 32}); err == nil {
		t.Error("a folder without rope_parameters was accepted")
	}
}

// The layers of Gemma 4 differ in the sizes of attention and MLP, and the last ones share keys and values.
func TestSizesByLayerFollowTheirKeys(t *testing.T) {
	t.Parallel()
	type keys = map[string]any
	const full, local = "full_attention", "sliding_attention"
	golden := wordingtest.New(t)
	for name, c := range map[string]struct {
		set                   keys
		headDims              [2]int // with full attention and in windows
		kvHeads, kvFrom, wide []int
	}{
		"heads of full attention": {
			keys{"global_head_dim": 64, "num_global_key_value_heads": 1, "num_key_value_heads": 2},
			[2]int{64, 32},
			[]int{2, 1, 2, 1},
			[]int{0, 1, 2, 3},
			[]int{96, 96, 96, 96},
		},
		"single layers": {
			keys{"per_layer_config": keys{
				"1": keys{"head_dim": 64}, "3": keys{"head_dim": 64, "num_key_value_heads": 2},
			}},
			[2]int{64, 32},
			[]int{1, 1, 1, 2},
			[]int{0, 1, 2, 3},
			[]int{96, 96, 96, 96},
		},
		"shared keys and values": {
			keys{"num_kv_shared_layers": 2, "use_double_wide_mlp": true},
			[2]int{32, 32},
			[]int{1, 1, 1, 1},
			[]int{0, 1, 0, 1},
			[]int{96, 96, 192, 192},
		},
		"nothing to share":        {set: keys{"num_kv_shared_layers": 3}},
		"another setting":         {set: keys{"per_layer_config": keys{"1": keys{"hidden_size": 64}}}},
		"a layer that is missing": {set: keys{"per_layer_config": keys{"4": keys{"head_dim": 64}}}},
		"one layer of a kind":     {set: keys{"per_layer_config": keys{"1": keys{"head_dim": 64}}}},
		"no types of layers":      {set: keys{"layer_types": nil}},
		"experts without number":  {set: keys{"enable_moe_block": true}},
	} {
		set := keys{
			"model_type": "gemma4_text", "num_hidden_layers": 4, "sliding_window": 16, "head_dim": 32,
			"layer_types": []string{local, full, local, full},
			"rope_parameters": keys{
				full:  keys{"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1e6},
				local: keys{"rope_type": "default", "rope_theta": 1e4},
			},
			"hidden_activation": "gelu_pytorch_tanh",
		}
		maps.Copy(set, c.set)
		f := newTinyFolder()
		maps.Copy(f.Config, set)
		dir := f.write(t)
		got, err := configAt(t, dir)
		if c.kvHeads == nil {
			golden.Text(name, inFolder(err, dir))
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if dims := [2]int{got.HeadDim, got.LocalHeadDim}; dims != c.headDims ||
			!slices.Equal(got.KVHeads, c.kvHeads) || !slices.Equal(got.KVFrom, c.kvFrom) ||
			!slices.Equal(got.FFN, c.wide) {
			t.Errorf("%s: heads of %v, KV heads %v from %v, MLP %v", name, dims, got.KVHeads, got.KVFrom,
				got.FFN)
		}
		// A quarter of the pairs is rotated, with the frequencies of whole heads.
		pairs := got.HeadDim / 2
		if d := got.Rope.Divisors; len(d) != pairs || d[pairs/4-1] != 1 || d[pairs/4] != 1e30 {
			t.Errorf("%s: divisors %v", name, d)
		}
		if got.LocalRope.Base != 1e4 || got.Rope.Base != 1e6 || got.LocalRope.Dims != got.LocalHeadDim {
			t.Errorf("%s: rotations %+v and %+v", name, got.Rope, got.LocalRope)
		}
	}
}

// The folder of a larger model has the configuration of its decoder in text_config.
func TestDecoderOfALargerModelIsFound(t *testing.T) {
	t.Parallel()
	type keys = map[string]any
	for name, c := range map[string]struct {
		outer, inner keys
		tied, ok     bool
	}{
		"as written":   {nil, nil, false, true},
		"tied outside": {keys{"tie_word_embeddings": true}, nil, true, true},
		"tied outside only": {
			keys{"tie_word_embeddings": true}, keys{"tie_word_embeddings": false}, false, true,
		},
		"quantized":           {keys{"quantization_config": keys{"quant_method": "fp8"}}, nil, false, false},
		"a decoder not known": {nil, keys{"model_type": "mamba"}, false, false},
		"no model type":       {nil, keys{"model_type": nil}, false, false},
	} {
		f := newTinyFolder()
		f.Config["model_type"] = "mistral"
		maps.Copy(f.Config, c.inner)
		f.Config = keys{"model_type": "mistral3", "text_config": f.Config, "vision_config": keys{}}
		maps.Copy(f.Config, c.outer)
		f.tensors["vision_tower.x"] = []int{4}
		f.called = func(name string) string {
			if own, ok := strings.CutPrefix(name, "model."); ok {
				return "model.language_model." + own
			}
			return name
		}
		dir := f.write(t)
		got, err := configAt(t, dir)
		if err == nil {
			err = planFolder(dir, Options{})
		}
		if c.ok != (err == nil) || c.ok && got.Tied != c.tied {
			t.Errorf("%s: %v, tied %v, want %v", name, err, got.Tied, c.tied)
		}
	}
}
