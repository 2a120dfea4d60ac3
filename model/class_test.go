package model

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gpuscope/internal/wordingtest"
	"gpuscope/model/arch"
	"gpuscope/ops/reference"
)

// logitsOf reads a model and returns it, with its reference logits after the given tokens.
func logitsOf(t *testing.T, path string, tokens ...int) ([]float64, *Model) {
	t.Helper()
	m, err := Read(Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	n, err := m.build(deviceLimits())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := broughtTo(n, len(tokens), 0); err != nil {
		t.Fatal(err)
	}
	x := reference.NewInterpreter(n.Graph)
	if err := x.Step(n.Input(0, tokens), nil); err != nil {
		t.Fatal(err)
	}
	return slices.Clone(x.Tensor(n.Logits).Data), m
}

// best returns the index of the largest logit.
func best(logits []float64) int { return slices.Index(logits, slices.Max(logits)) }

// sharedCase returns the path of a test case in the shared folder. If the file is missing, it skips the test,
// or fails it in CI.
func sharedCase(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join("..", "..", "shared", "cases", name)
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("needs the shared folder next to the clone: %v", err)
	}
	return path
}

// wide returns 12 tokens, which exceed the attention windows of the cases.
func wide() []int {
	tokens := make([]int, 12)
	for i := range tokens {
		tokens[i] = (7*i + 3) % 64
	}
	return tokens
}

func TestStoredHeadOverridesTyingWithAWarning(t *testing.T) {
	t.Parallel()
	logits, m := logitsOf(t, sharedCase(t, "tied-with-head"), 1, 5, 20, 7)
	if best(logits) != 46 || len(m.Warnings()) != 1 {
		t.Errorf("best token %d, warnings %q, want 46 and one", best(logits), m.Warnings())
	}
}

func TestWindowOfALlamaIsIgnored(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]string{
		"llama-window": "sliding_window", "llama-window.gguf": "llama.attention.sliding_window",
	} {
		logits, m := logitsOf(t, sharedCase(t, name), wide()...)
		ignored := m.Ignored()
		if best(logits) != 3 || len(ignored) != 1 || ignored[0].Key != key || len(m.Warnings()) != 1 {
			t.Errorf("%s: best token %d, ignored %v, warnings %q", name, best(logits), ignored, m.Warnings())
		}
	}
}

func TestKeysMissingInGemma3TakeItsDefaults(t *testing.T) {
	t.Parallel()
	for without, with := range map[string]string{
		"gemma3-no-theta": "gemma3-full", "gemma3-no-window": "gemma3-4096",
	} {
		got, _ := logitsOf(t, sharedCase(t, without), wide()...)
		want, _ := logitsOf(t, sharedCase(t, with), wide()...)
		if !slices.Equal(got, want) {
			t.Errorf("%s and %s give different logits", without, with)
		}
	}
}

func TestEqualNumbersByLayerRun(t *testing.T) {
	t.Parallel()
	if _, m := logitsOf(t, sharedCase(t, "kv-array.gguf"), 1, 2, 3); m.Info().Dims["kv_heads"] < 1 {
		t.Errorf("%d KV heads", m.Info().Dims["kv_heads"])
	}
}

// A key that a folder omits has the default of the folder's model class. A null value differs from an omitted
// key. Keys of other classes are ignored.
func TestConfigOfAFolderFollowsItsClass(t *testing.T) {
	t.Parallel()
	golden := wordingtest.New(t)
	type keys = map[string]any
	absent := struct{}{} // marks a key to remove
	windows := func(n, from, window int) []int {
		list := make([]int, n)
		for i := from; i < n; i++ {
			list[i] = window
		}
		return list
	}
	for name, c := range map[string]struct {
		class   string
		keys    keys
		windows []int
		base    float64
		ignored []string
		refused bool
	}{
		"llama": {class: "llama", keys: keys{"rope_theta": absent}, windows: windows(1, 0, 0), base: 1e4},
		"llama, a window": {
			class: "llama", keys: keys{"sliding_window": 4}, windows: windows(1, 0, 0), base: 1e4,
			ignored: []string{"sliding_window"},
		},
		"llama, kinds of layers": {
			class: "llama", keys: keys{
				"layer_types": []string{"sliding_attention"}, "transformers.js_config": keys{"a": 1},
			},
			windows: windows(1, 0, 0), base: 1e4, ignored: []string{"layer_types", "transformers.js_config"},
		},
		"llama, biases": {class: "llama", keys: keys{"attention_bias": true}, refused: true},
		"llama, null for biases": {
			class: "llama", keys: keys{"attention_bias": nil}, windows: windows(1, 0, 0), base: 1e4,
		},
		"llama, null for a number": {
			class: "llama", keys: keys{"rms_norm_eps": nil},
			refused: true,
		},
		"mistral": {
			class: "mistral", keys: keys{"sliding_window": absent}, windows: windows(1, 0, 4096), base: 1e4,
		},
		"mistral, null": {
			class: "mistral", keys: keys{"sliding_window": nil},
			windows: windows(1, 0, 0), base: 1e4,
		},
		"mistral, a window": {
			class: "mistral", keys: keys{"sliding_window": 4},
			windows: windows(1, 0, 4), base: 1e4,
		},
		"mistral, biases": {
			class: "mistral", keys: keys{"attention_bias": true}, windows: windows(1, 0, 0), base: 1e4,
			ignored: []string{"attention_bias"},
		},
		"qwen2, a window that is not used": {
			class: "qwen2", keys: keys{"sliding_window": 4, "use_sliding_window": false},
			windows: windows(1, 0, 0), base: 1e4,
		},
		"qwen2, a window that is used": {
			class: "qwen2", keys: keys{
				"sliding_window": 4, "use_sliding_window": true, "max_window_layers": 2,
				"num_hidden_layers": 4,
			},
			windows: windows(4, 2, 4), base: 1e4,
		},
		"qwen2, the window and its layers left out": {
			class: "qwen2", keys: keys{
				"sliding_window": absent, "use_sliding_window": true, "num_hidden_layers": 30,
			},
			windows: windows(30, 28, 4096), base: 1e4,
		},
		"qwen2, null and used": {
			class: "qwen2", keys: keys{"use_sliding_window": true, "max_window_layers": 0},
			windows: windows(1, 0, 0), base: 1e4,
		},
		"qwen3, layer by layer": {
			class: "qwen3", keys: keys{
				"sliding_window": 4, "use_sliding_window": true, "num_hidden_layers": 2,
				"layer_types": []string{"sliding_attention", "full_attention"}, "head_dim": 32,
			},
			windows: []int{4, 0}, base: 1e4,
		},
		"qwen3, a window that is not used, by layer": {
			class: "qwen3", keys: keys{"sliding_window": 4, "layer_types": []string{"sliding_attention"}},
			refused: true,
		},
		"gemma3": {
			class: "gemma3_text", keys: keys{
				"sliding_window": absent, "rope_theta": absent, "num_hidden_layers": 7,
				"num_attention_heads": absent, "num_key_value_heads": absent, "hidden_act": absent,
				"rms_norm_eps": absent, "hidden_size": absent, "intermediate_size": absent,
				"max_position_embeddings": absent,
			},
			windows: []int{4096, 4096, 4096, 4096, 4096, 0, 4096}, base: 1e6,
		},
		"gemma3, an activation of others": {
			class: "gemma3_text", keys: keys{"sliding_window": 4}, windows: windows(1, 0, 4), base: 1e4,
			ignored: []string{"hidden_act"},
		},
		"gemma3, every second layer": {
			class: "gemma3_text", keys: keys{
				"sliding_window": 4, "sliding_window_pattern": 2, "num_hidden_layers": 3,
				"hidden_act": absent,
			},
			windows: []int{4, 0, 4}, base: 1e4,
		},
		"llama, keys of others that say nothing": {
			class: "llama", keys: keys{
				"use_sliding_window": false, "max_window_layers": 28, "partial_rotary_factor": 1.0,
				"layer_types": []string{"full_attention"}, "hidden_activation": nil,
			},
			windows: windows(1, 0, 0), base: 1e4,
			ignored: []string{"layer_types", "max_window_layers", "partial_rotary_factor", "use_sliding_window"},
		},
		"gemma3, null for a window": {class: "gemma3_text", refused: true},
		"phi3": {
			class: "phi3", keys: keys{"sliding_window": absent, "rope_theta": absent},
			windows: windows(1, 0, 0), base: 1e4,
		},
		"phi3, a window": {
			class: "phi3", keys: keys{"sliding_window": 4},
			windows: windows(1, 0, 4), base: 1e4,
		},
		"numbers by layer": {
			class: "llama", keys: keys{
				"num_hidden_layers": 2, "num_key_value_heads": []int{1, 1}, "intermediate_size": 96,
			},
			windows: windows(2, 0, 0), base: 1e4,
		},
		"numbers by layer that differ": {
			class: "llama", keys: keys{"num_hidden_layers": 2, "num_key_value_heads": []int{1, 2}},
			refused: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newTinyFolder()
			f.Config["model_type"] = c.class
			for key, value := range c.keys {
				if f.Config[key] = value; value == absent {
					delete(f.Config, key)
				}
			}
			path := f.write(t)
			file, err := arch.OpenFile(path)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			got, err := file.Config()
			if c.refused {
				golden.Text(name, inFolder(err, path))
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var ignored []string
			for _, i := range got.Ignored {
				ignored = append(ignored, i.Key)
			}
			if c.class == "llama" && len(got.Warnings) > 0 != strings.Contains(name, "a window") &&
				len(got.Warnings) > 0 != strings.Contains(name, "kinds") {
				t.Errorf("warnings %q", got.Warnings)
			}
			if !slices.Equal(got.Windows, c.windows) || got.Rope.Base != c.base ||
				!slices.Equal(ignored, c.ignored) {
				t.Errorf("windows %v, base %v, ignored %v; want %v, %v and %v", got.Windows, got.Rope.Base,
					ignored, c.windows, c.base, c.ignored)
			}
			if c.class == "gemma3_text" && (!got.Tied || got.LocalRope.Base != 1e4 || got.Scale != 1.0/16) {
				t.Errorf("tied %v, base in windows %v, scale %v", got.Tied, got.LocalRope.Base, got.Scale)
			}
			if name == "gemma3" && (got.Heads != 8 || got.KVHeads[0] != 4 || got.HeadDim != 256 ||
				got.Dim != 2304 || got.FFN[0] != 9216 || got.Context != 131072 || got.Eps != 1e-6) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// RoPE settings that change nothing are accepted in every notation.
func TestNeutralScalingOfTheRotationRuns(t *testing.T) {
	t.Parallel()
	type keys = map[string]any
	of := func(t *testing.T, key string, value any) arch.Rotation {
		f := newTinyFolder()
		f.Config[key] = value
		file, err := arch.OpenFile(f.write(t))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		c, err := file.Config()
		if err != nil {
			t.Error(err)
		}
		return c.Rope
	}
	want := of(t, "rope_scaling", nil)
	for _, value := range []any{
		keys{"type": "default", "factor": 1.0},
		keys{"rope_type": "default"},
		keys{},
		keys{"rope_type": "linear", "factor": 1.0},
		keys{"type": "dynamic", "factor": 1},
		keys{"factor": 1.0},
		keys{"rope_type": "yarn", "factor": 1.0, "beta_fast": 32, "original_max_position_embeddings": 32},
		keys{"rope_type": "yarn", "factor": 1.0, "attention_factor": 1.0},
		keys{"rope_type": "default", "factor": 1.0, "rope_theta": 10000, "partial_rotary_factor": 1},
	} {
		for _, key := range []string{"rope_scaling", "rope_parameters"} {
			got := of(t, key, value)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s %v: %+v, want %+v", key, value, got, want)
			}
		}
	}
	// Phi3Config reads the types yarn and su as longrope, whose factors count whatever "factor" is.
	phi := newTinyFolder()
	phi.Config["model_type"] = "phi3"
	phi.Config["rope_scaling"] = keys{"type": "yarn", "factor": 1.0, "short_factor": []float64{1}}
	if err := planFolder(phi.write(t), Options{}); err == nil {
		t.Error("phi3: factors of a wrong number were ignored")
	}
	for _, value := range []any{
		keys{"type": "dynamic", "factor": 2},
		keys{"type": "mrope", "factor": 1},
	} {
		f := newTinyFolder()
		f.Config["rope_scaling"] = value
		if err := planFolder(f.write(t), Options{}); err == nil {
			t.Errorf("%v was accepted", value)
		}
	}
}

// The tensors of a model are found with any name prefix, and the logits stay the same.
func TestTensorsAreFoundAfterAnyPrefix(t *testing.T) {
	t.Parallel()
	want, _ := logitsOf(t, newTinyFolder().write(t), 1, 2, 3)
	for name, c := range map[string]struct{ base, head string }{
		"none":              {"", "lm_head.weight"},
		"a decoder":         {"language_model.model.", "language_model.lm_head.weight"},
		"a part":            {"model.language_model.", "lm_head.weight"},
		"a part alone":      {"language_model.", "lm_head.weight"},
		"a part with head":  {"language_model.", "language_model.lm_head.weight"},
		"a wrapped model":   {"_orig_mod.model.", "_orig_mod.lm_head.weight"},
		"a head of its own": {"base_model.model.model.", "base_model.model.lm_head.weight"},
	} {
		f := newTinyFolder()
		f.called = func(name string) string {
			if name == "lm_head.weight" {
				return c.head
			}
			return c.base + strings.TrimPrefix(name, "model.")
		}
		got, m := logitsOf(t, f.write(t), 1, 2, 3)
		if !slices.Equal(got, want) || len(m.Warnings()) != 0 {
			t.Errorf("%s: different logits, or warnings %q", name, m.Warnings())
		}
	}
}

// If a file stores a head that differs from the embedding, the head computes the logits. Otherwise the
// embedding does. The file's setting for tied embeddings does not change this.
func TestHeadIsTheStoredOneOrTheEmbedding(t *testing.T) {
	t.Parallel()
	const table, head = "model.embed_tokens.weight", "lm_head.weight"
	logits := map[bool][]float64{}
	for name, c := range map[string]struct {
		tied     any // nil if the file does not set it
		head     bool
		like     bool // the head has the same weights as the embedding
		used     bool // the head computes the logits
		warnings int
	}{
		"stored":             {tied: false, head: true, used: true},
		"stored, not said":   {head: true, used: true},
		"tied":               {tied: true},
		"tied, the same":     {tied: true, head: true, like: true},
		"tied, another":      {tied: true, head: true, used: true, warnings: 1},
		"not tied, no head":  {tied: false, warnings: 1},
		"not said, no head":  {warnings: 1},
		"not tied, the same": {tied: false, head: true, like: true},
	} {
		f := newTinyFolder()
		if c.tied != nil {
			f.Config["tie_word_embeddings"] = c.tied
		}
		if !c.head {
			delete(f.tensors, head)
		}
		if c.like {
			f.like = map[string]string{head: table}
		}
		got, m := logitsOf(t, f.write(t), 1, 2, 3)
		if logits[c.used] == nil {
			logits[c.used] = got
		}
		if !slices.Equal(got, logits[c.used]) || len(m.Warnings()) != c.warnings {
			t.Errorf("%s: logits %.3v, warnings %q", name, got, m.Warnings())
		}
	}
	if slices.Equal(logits[true], logits[false]) || math.IsNaN(logits[true][0]) {
		t.Error("the embedding and the head give the same logits")
	}
}

// A tensor that the model has no use for is refused, ignored with a warning, or ignored silently if it only
// repeats the configuration.
func TestTensorsWithoutAPlace(t *testing.T) {
	t.Parallel()
	golden := wordingtest.New(t)
	for name, want := range map[string]struct {
		refused  bool
		warnings int
	}{
		"model.layers.0.self_attn.rotary_emb.inv_freq":     {},
		"model.layers.0.self_attn.masked_bias":             {},
		"model.layers.0.attention.masked_bias":             {},
		"model.rotary_emb.inv_freq":                        {},
		"vision_tower.encoder.layers.0.fc1.weight":         {warnings: 1},
		"model.vision_tower.encoder.layers.0.fc1.weight":   {warnings: 1},
		"multi_modal_projector.linear_1.weight":            {warnings: 1},
		"mtp.layers.0.mlp.up_proj.weight":                  {warnings: 1},
		"model.layers.0.self_attn.k_proj.k_scale":          {warnings: 1},
		"model.layers.0.self_attn.q_proj.weight_scale":     {refused: true},
		"model.layers.0.self_attn.q_proj.weight_scale_inv": {refused: true},
		"model.layers.0.self_attn.q_proj.qweight":          {refused: true},
		"model.layers.0.self_attn.q_proj.bias":             {refused: true},
		"model.layers.0.self_attn.q_proj.lora_A.weight":    {refused: true},
		"model.layers.1.self_attn.q_proj.weight":           {refused: true},
		"model.new":                                        {refused: true},
	} {
		f := newTinyFolder()
		f.tensors[name] = []int{4}
		path := f.write(t)
		m, err := Read(Options{Path: path})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		defer m.Close()
		_, err = m.Plan(deviceLimits())
		if len(m.Warnings()) != want.warnings || (err != nil) != want.refused {
			t.Errorf("%s: %v, warnings %q", name, err, m.Warnings())
		}
		if err != nil {
			golden.Text(name, inFolder(err, path))
		}
	}
}

// A folder may have all tensors in one file and again in several files. Then the single file is read, with a
// warning.
func TestSingleFileIsReadBesideASet(t *testing.T) {
	t.Parallel()
	dir := newTinyFolder().write(t)
	want, m := logitsOf(t, dir, 1, 2, 3)
	if len(m.Warnings()) != 0 {
		t.Errorf("warnings %q", m.Warnings())
	}
	index := `{"weight_map": {"model.norm.weight": "model-00001-of-00002.safetensors"}}`
	path := filepath.Join(dir, "model.safetensors.index.json")
	if err := os.WriteFile(path, []byte(index), 0o600); err != nil {
		t.Fatal(err)
	}
	got, m := logitsOf(t, dir, 1, 2, 3)
	if !slices.Equal(got, want) || len(m.Warnings()) != 1 {
		t.Errorf("logits %.3v, want %.3v; warnings %q", got, want, m.Warnings())
	}
}
