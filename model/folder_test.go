package model

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/fake"
	"gpuscope/model/session"
)

// tinyFolder is a model of a layer as a folder of Hugging Face, with ones for weights.
type tinyFolder struct {
	config  map[string]any
	tensors map[string][]int // dims; all are BF16
}

func newTinyFolder() *tinyFolder {
	return &tinyFolder{map[string]any{
		"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 64, "intermediate_size": 96,
		"max_position_embeddings": 64, "num_attention_heads": 2, "num_key_value_heads": 1,
		"rms_norm_eps":   1e-5,
		"sliding_window": nil, "hidden_act": "silu", "rope_theta": 10000, "rope_scaling": nil,
	}, map[string][]int{
		"model.embed_tokens.weight": {10, 64}, "model.norm.weight": {64}, "lm_head.weight": {10, 64},
		"model.layers.0.input_layernorm.weight":          {64},
		"model.layers.0.self_attn.q_proj.weight":         {64, 64},
		"model.layers.0.self_attn.k_proj.weight":         {32, 64},
		"model.layers.0.self_attn.v_proj.weight":         {32, 64},
		"model.layers.0.self_attn.o_proj.weight":         {64, 64},
		"model.layers.0.post_attention_layernorm.weight": {64},
		"model.layers.0.mlp.gate_proj.weight":            {96, 64},
		"model.layers.0.mlp.up_proj.weight":              {96, 64},
		"model.layers.0.mlp.down_proj.weight":            {64, 96},
		"model.layers.0.self_attn.rotary_emb.inv_freq":   {16}, // as old files have it
	}}
}

// write writes the folder and gives its path.
func (f *tinyFolder) write(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	save := func(name string, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	asJSON := func(v any) []byte {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	header, data := map[string]any{}, []byte{}
	for _, name := range slices.Sorted(maps.Keys(f.tensors)) {
		dims, at := f.tensors[name], len(data)
		elements := 1
		for _, d := range dims {
			elements *= d
		}
		for range elements {
			data = binary.LittleEndian.AppendUint16(data, uint16(math.Float32bits(1)>>16))
		}
		header[name] = map[string]any{"dtype": "BF16", "shape": dims, "data_offsets": []int{at, len(data)}}
	}
	head := asJSON(header)
	save("config.json", asJSON(f.config))
	save("model.safetensors",
		append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(head))), head...), data...))
	return dir
}

// planFolder reads a folder and plans its graph.
func planFolder(path string, o Options) error {
	o.Path = path
	m, err := Read(o)
	if err != nil {
		return err
	}
	defer m.Close()
	_, err = m.Plan(gpu.DefaultLimits())
	return err
}

// make16 is a number 16 times.
func make16(x float64) []float64 { return slices.Repeat([]float64{x}, 16) }

func TestFolderIsRefusedByWhatIsWrong(t *testing.T) {
	t.Parallel()
	set := func(key string, value any) func(*tinyFolder) {
		return func(f *tinyFolder) { f.config[key] = value }
	}
	rope := func(pairs ...any) func(*tinyFolder) {
		said := map[string]any{}
		for pair := range slices.Chunk(pairs, 2) {
			said[pair[0].(string)] = pair[1]
		}
		return set("rope_scaling", said)
	}
	tensor := func(name string, dims ...int) func(*tinyFolder) {
		return func(f *tinyFolder) { f.tensors[name] = dims }
	}
	for name, c := range map[string]struct {
		change func(*tinyFolder)
		want   string // of the error; "" where it runs
	}{
		"as it is":           {func(*tinyFolder) {}, ""},
		"tied":               {set("tie_word_embeddings", true), ""},
		"no head":            {func(f *tinyFolder) { delete(f.tensors, "lm_head.weight") }, `tensor "lm_head.weight" is missing`},
		"an unknown model":   {set("model_type", "mamba"), "not yet: architecture mamba; this version runs llama, "},
		"no model":           {set("model_type", nil), `"model_type" is missing`},
		"another activation": {set("hidden_act", "gelu"), "hidden_act: not yet: another activation (gelu, want silu)"},
		"biases":             {set("attention_bias", true), "attention_bias: not yet: biases in the attention (true, want false)"},
		"a window":           {set("sliding_window", 4), ""},
		"a window of a layer": {func(f *tinyFolder) {
			f.config["sliding_window"], f.config["layer_types"] = 4, []string{"sliding_attention"}
		}, ""},
		"no window for a layer":  {set("layer_types", []string{"sliding_attention"}), "layer_types: layer 0 has a window, and none is stated"},
		"layers of another kind": {set("layer_types", []string{"linear_attention"}), "layer_types: not yet: layer 0 has linear_attention"},
		"too many kinds":         {set("layer_types", []string{"full_attention", "full_attention"}), "layer_types: 2 of them, and 1 layers"},
		"a number for kinds":     {set("layer_types", 4), `"layer_types" is 4, want a list of strings`},
		"long rope": {set("rope_scaling", map[string]any{
			"type": "longrope", "short_factor": make16(1), "long_factor": make16(2), "original_max_position_embeddings": 32,
		}), ""},
		"factors of long rope too short": {set("rope_scaling", map[string]any{
			"type": "longrope", "short_factor": make16(1)[:3], "long_factor": make16(2), "original_max_position_embeddings": 32,
		}), "rope_scaling.short_factor: 3 of them, want 16"},
		"factors of nothing": {set("rope_scaling", map[string]any{
			"type": "su", "short_factor": make16(1), "long_factor": make16(0), "original_max_position_embeddings": 32,
		}), "rope_scaling.long_factor: factor 0 is 0, want"},
		"quantised by others": {set("quantization_config", map[string]any{"quant_method": "gptq"}), "quantization_config: not yet"},
		"no layers":           {set("num_hidden_layers", nil), `"num_hidden_layers" is missing`},
		"words for layers":    {set("num_hidden_layers", "many"), `"num_hidden_layers" is "many", want an integer`},
		"too many layers":     {set("num_hidden_layers", 1e6), "num_hidden_layers: 1000000, want 1 to"},
		"uneven heads":        {set("num_key_value_heads", 3), "2 query heads do not share 3"},
		"an unknown tensor":   {tensor("model.layers.0.self_attn.q_proj.bias", 64), "not yet: tensor model.layers.0.self_attn.q_proj.bias"},
		"another shape":       {tensor("model.norm.weight", 63), "tensor model.norm.weight is [63], the metadata makes it [64]"},
		"old linear scaling":  {set("rope_scaling", map[string]any{"type": "linear", "factor": 2}), ""},
		"new linear scaling":  {set("rope_parameters", map[string]any{"rope_type": "linear", "factor": 2, "rope_theta": 5e5}), ""},
		"an unknown scaling":  {set("rope_scaling", map[string]any{"rope_type": "yarn"}), "not yet: rope scaling yarn; this version runs default, linear, llama3"},
		"an unknown rope key": {
			rope("rope_type", "linear", "factor", 2, "x", 1), "rope_scaling.x: not yet",
		},
		"a factor of nothing": {
			rope("type", "linear", "factor", 0), "rope_scaling.factor: 0, want 1e-06 to",
		},
		"a negative factor": {
			rope("type", "linear", "factor", -2), "rope_scaling.factor: -2, want 1e-06 to",
		},
		"a factor in words":   {rope("type", "linear", "factor", "2"), `"rope_scaling.factor" is "2", want a number`},
		"linear by nothing":   {rope("type", "linear"), `"rope_scaling.factor" is missing`},
		"a factor of what":    {rope("factor", 2), "rope_scaling.rope_type does not say of which: want default, linear, llama3, longrope or su"},
		"a type that is none": {rope("type", 3), `"rope_scaling.type" is 3, want a string`},
		"scaling in a word": {
			set("rope_scaling", "linear"), `"rope_scaling" is "linear", want an object`,
		},
		"scaling in a list":     {set("rope_scaling", []int{}), `"rope_scaling" is [], want an object`},
		"scaling of nothing":    {set("rope_scaling", map[string]any{}), ""},
		"new scaling in a word": {set("rope_parameters", "linear"), `"rope_parameters" is "linear", want an object`},
		"new scaling by layers": {set("rope_parameters", map[string]any{"full_attention": 3}), `"rope_parameters.full_attention" is 3, want an object`},
		"low over high":         {rope("rope_type", "llama3", "factor", 8, "low_freq_factor", 4, "high_freq_factor", 1, "original_max_position_embeddings", 32), "rope_scaling.low_freq_factor: 4, want at most the high_freq_factor of 1"},
		"two rotations": {func(f *tinyFolder) {
			f.config["rope_scaling"] = map[string]any{"type": "linear", "factor": 2}
			f.config["rope_parameters"] = map[string]any{"rope_type": "default"}
		}, "rope_parameters: another rotation than that of rope_scaling"},
		"one rotation, twice": {func(f *tinyFolder) {
			f.config["rope_scaling"] = map[string]any{"type": "linear", "factor": 2}
			f.config["rope_parameters"] = map[string]any{
				"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4,
			}
		}, ""},
		"a part of the head":    {set("partial_rotary_factor", 0.5), ""},
		"a base that is a list": {set("rope_theta", []int{1}), `"rope_theta" is [1], want a number`},
	} {
		f := newTinyFolder()
		c.change(f)
		dir := f.write(t)
		err := planFolder(dir, Options{})
		if c.want == "" && err == nil {
			continue
		}
		if c.want == "" || err == nil || !strings.HasPrefix(err.Error(), dir) ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// The base of a rotation stands with it, or by itself as in old files.
func TestBaseOfTheRotationIsFoundWhereItStands(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		said any
		want float64
	}{
		"by itself":         {map[string]any{"rope_type": "default"}, 5000},
		"with the rotation": {map[string]any{"rope_type": "default", "rope_theta": 7000}, 7000},
	} {
		f := newTinyFolder()
		f.config["rope_theta"], f.config["rope_parameters"] = 5000, c.said
		file, err := OpenFile(f.write(t))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if got, err := file.config(); err != nil || got.Rope.Base != c.want {
			t.Errorf("%s: base %v, %v, want %v", name, got.Rope.Base, err, c.want)
		}
	}
}

// A number that JSON has not, as Python writes it, is named with its line.
func TestConfigJSONNamesWhatIsNone(t *testing.T) {
	t.Parallel()
	_, err := parseConfigJSON([]byte("{\"rope_scaling\": {\n  \"factor\": NaN\n}}"), "config.json")
	const want = `config.json: line 2 is no JSON from "NaN" on: correct it, or fetch the file again`
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %q", err, want)
	}
}

// The factor by which a context grew past the training's makes scores larger; past it other divisors hold.
func TestLongRotationFollowsTheContext(t *testing.T) {
	f := newTinyFolder()
	f.config["rope_scaling"] = map[string]any{
		"type": "longrope", "short_factor": make16(1), "long_factor": make16(2),
	}
	f.config["original_max_position_embeddings"] = 16
	file, err := OpenFile(f.write(t))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	c, err := file.config()
	if err != nil {
		t.Fatal(err)
	}
	// A context of 64 is four times 16: sqrt(1 + ln 4 / ln 16).
	if want := math.Sqrt(1.5); math.Abs(c.Rope.Gain-want) > 1e-12 || c.Rope.Original != 16 ||
		c.Rope.LongDivisors[15] != 2 {
		t.Errorf("got %+v, want a gain of %v", c.Rope, want)
	}
}

func TestConfigJSONThatIsNone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "[]", "{", "{}{}", `{"a":`, strings.Repeat(`{"a":`, 20) + "1" + strings.Repeat("}", 20),
		strings.Repeat("[", 1<<20), `{"a` + "\x1b" + `":1}`,
	} {
		if _, err := parseConfigJSON([]byte(text), "config.json"); err == nil || len(err.Error()) > 300 ||
			strings.ContainsFunc(err.Error(), unicode.IsControl) {
			t.Errorf("%.40q: %v", text, err)
		}
	}
}

func TestUploadIsToldInBytes(t *testing.T) {
	t.Parallel()
	var uploads []session.Progress
	o := Options{Path: newTinyFolder().write(t), Driver: &fake.Driver{All: []fake.Options{{}}}}
	s, err := Open(t.Context(), o, func(e session.Event) {
		if e.Progress != nil && e.Progress.Phase == engine.UploadPhase {
			uploads = append(uploads, *e.Progress)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	first, last := uploads[0], uploads[len(uploads)-1]
	const weights = 2 * (2*10*64 + 2*64*64 + 2*32*64 + 3*64*96) // of the matrices
	if first.Done != 0 || last.Done != last.Total || last.Total < weights || !last.Bytes ||
		last.PerSecond <= 0 {
		t.Errorf("from %+v to %+v, want all of at least %d bytes", first, last, weights)
	}
}

// FuzzConfigJSON looks for a config.json that panics, or whose error is no line.
func FuzzConfigJSON(f *testing.F) {
	for _, name := range []string{"llama3", "qwen2", "qwen3", "gemma3", "phi3"} {
		path := filepath.Join("..", "..", "shared", "models", "arch", name, "config.json")
		if data, err := os.ReadFile(path); err == nil {
			f.Add(data)
		}
	}
	f.Add([]byte(`{"model_type":"llama","rope_scaling":{"type":"linear","factor":2}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		said, err := parseConfigJSON(data, "config.json")
		if err == nil {
			_, err = (&hfForm{path: "x", said: said}).config()
			said.pairs()
		}
		if err != nil && (len(err.Error()) > 1000 || strings.ContainsFunc(err.Error(), unicode.IsControl)) {
			t.Errorf("%q", err)
		}
	})
}

// Keys are kept with the path to them, so that a long one over many would take all memory.
func TestKeysOfAConfigAreBounded(t *testing.T) {
	_, err := parseConfigJSON([]byte(`{"`+strings.Repeat("k", maxConfigPath)+`": {"a": 1}}`), "config.json")
	if err == nil || !strings.Contains(err.Error(), "have 258 bytes, want at most 256") {
		t.Errorf("error %v", err)
	}
}
