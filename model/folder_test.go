package model

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/fake"
	"gpuscope/engine/graph"
	"gpuscope/internal/wordingtest"
	"gpuscope/model/arch"
	"gpuscope/model/checkpoint/configjson"
	"gpuscope/model/checkpoint/safetensors"
	"gpuscope/model/sample"
	"gpuscope/session"
)

// tinyFolder describes a one-layer model in a Hugging Face folder. Its random weights depend only on the
// names of the tensors.
type tinyFolder struct {
	Config  map[string]any
	tensors map[string][]int         // dims; all are BF16
	text    string                   // raw JSON appended to the object in config.json
	like    map[string]string        // tensors that have the weights of others, by name
	called  func(name string) string // name of a tensor in the file; nil keeps the name
	ones    bool                     // all weights are 1
}

func newTinyFolder() *tinyFolder {
	return &tinyFolder{Config: map[string]any{
		"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 64, "intermediate_size": 96,
		"max_position_embeddings": 64, "num_attention_heads": 2, "num_key_value_heads": 1,
		"rms_norm_eps":   1e-5,
		"sliding_window": nil, "hidden_act": "silu", "rope_theta": 10000, "rope_scaling": nil,
	}, tensors: map[string][]int{
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
		"model.layers.0.self_attn.rotary_emb.inv_freq":   {16}, // as in old files
	}}
}

// write writes the folder and returns its path.
func (f *tinyFolder) write(t testing.TB) string {
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
		hash := fnv.New64()
		hash.Write([]byte(cmp.Or(f.like[name], name)))
		random := rand.New(rand.NewPCG(hash.Sum64(), 0))
		for range elements {
			weight := float32(random.NormFloat64())
			if f.ones {
				weight = 1
			}
			bits := math.Float32bits(weight)
			data = binary.LittleEndian.AppendUint16(data, uint16(bits>>16))
		}
		if f.called != nil {
			name = f.called(name)
		}
		header[name] = map[string]any{"dtype": "BF16", "shape": dims, "data_offsets": []int{at, len(data)}}
	}
	head := asJSON(header)
	config := asJSON(f.Config)
	if f.text != "" {
		config = append(append(config[:len(config)-1], ','), f.text+"}"...)
	}
	save("config.json", config)
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

// make16 returns x 16 times.
func make16(x float64) []float64 { return slices.Repeat([]float64{x}, 16) }

func TestFolderIsRefusedByWhatIsWrong(t *testing.T) {
	t.Parallel()
	golden := wordingtest.New(t)
	set := func(key string, value any) func(*tinyFolder) {
		return func(f *tinyFolder) { f.Config[key] = value }
	}
	rope := func(pairs ...any) func(*tinyFolder) {
		said := map[string]any{}
		for pair := range slices.Chunk(pairs, 2) {
			said[pair[0].(string)] = pair[1]
		}
		return set("rope_scaling", said)
	}
	mistype := func(key string, value any) func(*tinyFolder) { // in a class that knows the key
		return func(f *tinyFolder) { f.Config["model_type"], f.Config[key] = "qwen3", value }
	}
	gptOSS := func(key string, value any) func(*tinyFolder) {
		return func(f *tinyFolder) {
			f.Config["model_type"], f.Config["sliding_window"] = "gpt_oss", 4
			f.Config["rope_scaling"] = map[string]any{"rope_type": "yarn", "factor": 8.0}
			f.Config[key] = value
		}
	}
	tensor := func(name string, dims ...int) func(*tinyFolder) {
		return func(f *tinyFolder) { f.tensors[name] = dims }
	}
	for name, c := range map[string]struct {
		change func(*tinyFolder)
		runs   bool
	}{
		"as it is":                  {func(*tinyFolder) {}, true},
		"tied":                      {set("tie_word_embeddings", true), true},
		"no head":                   {func(f *tinyFolder) { delete(f.tensors, "lm_head.weight") }, true},
		"an unknown model":          {set("model_type", "mamba"), false},
		"no model":                  {func(f *tinyFolder) { delete(f.Config, "model_type") }, false},
		"null for a model":          {set("model_type", nil), false},
		"another activation":        {set("hidden_act", "gelu"), false},
		"gpt-oss with other limits": {gptOSS("swiglu_limit", 5.0), false},
		"gpt-oss in another format": {
			gptOSS("quantization_config", map[string]any{"quant_method": "awq"}), false,
		},
		"gpt-oss without YaRN": {gptOSS("rope_scaling", nil), false},
		"biases":               {set("attention_bias", true), false},
		"a window":             {set("sliding_window", 4), true},
		"no window for a layer": {
			mistype("layer_types", []string{"sliding_attention"}), false,
		},
		"layers of another kind": {
			mistype("layer_types", []string{"linear_attention"}), false,
		},
		"too many kinds": {
			mistype("layer_types", []string{"full_attention", "full_attention"}), false,
		},
		"a number for kinds": {
			mistype("layer_types", 4), false,
		},
		"NaN where a number is used": {func(f *tinyFolder) { f.text = `"rms_norm_eps": NaN` }, false},
		"NaN where none is used": {func(f *tinyFolder) {
			f.text = `"aux_loss": [NaN, -Infinity, Infinity]`
		}, true},
		"long rope": {set("rope_scaling", map[string]any{
			"type": "longrope", "short_factor": make16(1), "long_factor": make16(2), "original_max_position_embeddings": 32,
		}), true},
		"factors of long rope too short": {set("rope_scaling", map[string]any{
			"type": "longrope", "short_factor": make16(1)[:3], "long_factor": make16(2), "original_max_position_embeddings": 32,
		}), false},
		"factors of nothing": {set("rope_scaling", map[string]any{
			"type": "su", "short_factor": make16(1), "long_factor": make16(0), "original_max_position_embeddings": 32,
		}), false},
		"quantised by others": {set("quantization_config", map[string]any{"quant_method": "gptq"}), false},
		"null for layers": {
			set("num_hidden_layers", nil), false,
		},
		"words for layers":   {set("num_hidden_layers", "many"), false},
		"too many layers":    {set("num_hidden_layers", 1e6), false},
		"uneven heads":       {set("num_key_value_heads", 3), false},
		"an unknown tensor":  {tensor("model.layers.0.self_attn.q_proj.bias", 64), false},
		"another shape":      {tensor("model.norm.weight", 63), false},
		"old linear scaling": {set("rope_scaling", map[string]any{"type": "linear", "factor": 2}), true},
		"new linear scaling": {set("rope_parameters", map[string]any{
			"rope_type": "linear", "factor": 2, "rope_theta": 5e5,
		}), true},
		"an unknown scaling": {set("rope_scaling", map[string]any{"rope_type": "ntk"}), false},
		"yarn":               {set("rope_scaling", map[string]any{"type": "yarn", "factor": 2}), true},
		"yarn of no factor":  {set("rope_scaling", map[string]any{"rope_type": "yarn"}), false},
		"yarn with a key of Mistral's": {set("rope_scaling", map[string]any{
			"type": "yarn", "factor": 2, "llama_4_scaling_beta": 0.1,
		}), false},
		"an unknown rope key": {
			rope("rope_type", "linear", "factor", 2, "x", 1), false,
		},
		"a factor of nothing": {
			rope("type", "linear", "factor", 0), false,
		},
		"a negative factor": {
			rope("type", "linear", "factor", -2), false,
		},
		"a factor in words":   {rope("type", "linear", "factor", "2"), false},
		"linear by nothing":   {rope("type", "linear"), false},
		"a factor of what":    {rope("factor", 2), false},
		"a type that is none": {rope("type", 3), false},
		"scaling in a word": {
			set("rope_scaling", "linear"), false,
		},
		"scaling in a list":     {set("rope_scaling", []int{}), false},
		"scaling of nothing":    {set("rope_scaling", map[string]any{}), true},
		"new scaling in a word": {set("rope_parameters", "linear"), false},
		"new scaling by layers": {set("rope_parameters", map[string]any{"full_attention": 3}), false},
		"low over high":         {rope("rope_type", "llama3", "factor", 8, "low_freq_factor", 4, "high_freq_factor", 1, "original_max_position_embeddings", 32), false},
		"two rotations": {func(f *tinyFolder) {
			f.Config["rope_scaling"] = map[string]any{"type": "linear", "factor": 2}
			f.Config["rope_parameters"] = map[string]any{"rope_type": "default"}
		}, false},
		"one rotation, twice": {func(f *tinyFolder) {
			f.Config["rope_scaling"] = map[string]any{"type": "linear", "factor": 2}
			f.Config["rope_parameters"] = map[string]any{
				"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4,
			}
		}, true},
		"a part of the head":    {set("partial_rotary_factor", 0.5), true},
		"a base that is a list": {set("rope_theta", []int{1}), false},
	} {
		f := newTinyFolder()
		c.change(f)
		dir := f.write(t)
		err := planFolder(dir, Options{})
		if c.runs != (err == nil) || err != nil && !strings.HasPrefix(err.Error(), dir) {
			t.Errorf("%s: %v, want it to run: %v", name, err, c.runs)
		}
		if err == nil {
			continue
		}
		golden.Text(name, inFolder(err, dir))
	}
}

// The RoPE base is stored with the RoPE settings, or separately in old files.
func TestRoPEBaseIsFoundInEveryPlace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		said     any
		want     float64
		warnings int
	}{
		"by itself":         {map[string]any{"rope_type": "default"}, 5000, 0},
		"with the rotation": {map[string]any{"rope_type": "default", "rope_theta": 7000}, 7000, 1},
		"twice the same":    {map[string]any{"rope_type": "default", "rope_theta": 5000}, 5000, 0},
	} {
		f := newTinyFolder()
		f.Config["rope_theta"], f.Config["rope_parameters"] = 5000, c.said
		file, err := arch.OpenFile(f.write(t))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		got, err := file.Config()
		if err != nil || got.Rope.Base != c.want || len(got.Warnings) != c.warnings {
			t.Errorf("%s: base %v, %v, warnings %q; want %v and %d", name, got.Rope.Base, err, got.Warnings,
				c.want, c.warnings)
		}
	}
}

// The error for invalid JSON names the line.
func TestConfigJSONNamesInvalidValues(t *testing.T) {
	t.Parallel()
	golden := wordingtest.New(t)
	_, err := configjson.Parse([]byte("{\"rope_scaling\": {\n  \"factor\": nan\n}}"), "config.json")
	golden.Error("nan", err)
}

// If the context is longer than the training context, LongRoPE uses a larger attention scale and other
// divisors.
func TestLongRotationFollowsTheContext(t *testing.T) {
	f := newTinyFolder()
	f.Config["rope_scaling"] = map[string]any{
		"type": "longrope", "short_factor": make16(1), "long_factor": make16(2),
	}
	f.Config["original_max_position_embeddings"] = 16
	file, err := arch.OpenFile(f.write(t))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	c, err := file.Config()
	if err != nil {
		t.Fatal(err)
	}
	// A context of 64 is four times 16: sqrt(1 + ln 4 / ln 16).
	if want := math.Sqrt(1.5); math.Abs(c.Rope.Gain-want) > 1e-12 || c.Rope.Original != 16 ||
		c.Rope.LongDivisors[15] != 2 {
		t.Errorf("got %+v, want a gain of %v", c.Rope, want)
	}
}

func TestInvalidConfigJSONIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "[]", "{", "{}{}", `{"a":`, strings.Repeat(`{"a":`, 20) + "1" + strings.Repeat("}", 20),
		strings.Repeat("[", 1<<20), `{"a` + "\x1b" + `":1}`,
	} {
		if _, err := configjson.Parse([]byte(text), "config.json"); err == nil ||
			len(err.Error()) > 300 ||
			strings.ContainsFunc(err.Error(), unicode.IsControl) {
			t.Errorf("%.40q: %v", text, err)
		}
	}
}

func TestUploadProgressIsInBytes(t *testing.T) {
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

// FuzzConfigJSON looks for a config.json that panics, takes too long, or causes an error that is not one
// short line. Every architecture reads the file. The file's own architecture also plans it, with tensors of
// the sizes that the file states.
func FuzzConfigJSON(f *testing.F) {
	for _, name := range []string{"llama3", "qwen2", "qwen3", "gemma3", "phi3"} {
		path := filepath.Join("..", "..", "shared", "models", "arch", name, "config.json")
		if data, err := os.ReadFile(path); err == nil {
			f.Add(data)
		}
	}
	f.Add([]byte(`{"model_type":"llama","rope_scaling":{"type":"linear","factor":2},"rms_norm_eps":NaN}`))
	f.Add([]byte(`{"model_type":"qwen2","use_sliding_window":true,"max_window_layers":0,"sliding_window":null}`))
	small := `{"hidden_size":64,"intermediate_size":96,"num_hidden_layers":1,"num_attention_heads":2,` +
		`"num_key_value_heads":[1],"head_dim":32,"max_position_embeddings":64,"sliding_window":8`
	f.Add([]byte(small + `,"model_type":"mistral","layer_types":["full_attention"]}`))
	f.Add([]byte(small + `,"model_type":"phi3","partial_rotary_factor":0.5,"rope_scaling":{"type":"yarn","factor":1}}`))
	dir := newTinyFolder().write(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		check := func(err error) {
			if err == nil {
				return
			}
			if text := err.Error(); len(text) > 1000 || strings.ContainsFunc(text, unicode.IsControl) {
				t.Errorf("%q", text)
			}
		}
		said, err := configjson.Parse(data, "config.json")
		check(err)
		if err != nil {
			return
		}
		said.Pairs()
		named, _ := said.String("model_type")
		for _, a := range arch.Architectures {
			name := cmp.Or(strings.Join(a.Hf.Called, ""), a.Name)
			said.Values["model_type"] = name
			c, err := (&arch.HfForm{Path: "x", Said: said, Weights: &safetensors.Folder{}}).Config()
			if check(err); err == nil && name == named {
				c.Layers = min(c.Layers, 1) // all layers are planned alike
				check(planHollow(&c))
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "config.json"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := Read(Options{Path: dir})
		if check(err); err == nil {
			check(m.Close())
		}
	})
}

// planHollow plans a decoder with tensors of the sizes that its configuration requires, without data.
func planHollow(c *arch.Config) error {
	file := arch.NewCheckpoint(&arch.HfForm{Path: "x"}, nil)
	n, q := c.Form.Names, c.Heads*c.HeadDim
	add := func(name string, dims ...int) {
		t := &arch.Tensor{Name: name, Type: "F32", Dims: dims, Size: 4 * arch.Numel(dims)}
		file.All, file.ByName[name] = append(file.All, t), t
	}
	add(n.Embed, 10, c.Dim)
	add(n.Norm, c.Dim)
	for i := range c.Layers {
		at, kv, ffn := n.Of(i), c.KVHeads[i]*c.HeadDim, c.FFN[i]
		if !c.Arch.NoPreNorms {
			add(at+n.AttnNorm, c.Dim)
			if !c.Arch.Parallel {
				add(at+n.FfnNorm, c.Dim)
			}
		}
		if c.Arch.PostNorms {
			add(at+n.AttnPostNorm, c.Dim)
			add(at+n.FfnPostNorm, c.Dim)
		}
		if c.Arch.HeadNorms {
			add(at+n.QNorm, c.HeadDim)
			add(at+n.KNorm, c.HeadDim)
		}
		if c.Arch.WideNorms {
			add(at+n.QNorm, q)
			add(at+n.KNorm, kv)
		}
		if c.OutBias {
			add(at+n.OBias, c.Dim)
		}
		if c.Biases {
			add(at+n.QBias, q)
			add(at+n.KBias, kv)
			add(at+n.VBias, kv)
		}
		if c.Arch.Fused {
			add(at+n.Qkv, q+2*kv, c.Dim)
			add(at+n.GateUp, 2*ffn, c.Dim)
		} else {
			add(at+n.Q, q, c.Dim)
			add(at+n.K, kv, c.Dim)
			add(at+n.V, kv, c.Dim)
			if c.Arch.FusedMLP {
				add(at+n.GateUp, 2*ffn, c.Dim)
			} else {
				add(at+n.Gate, ffn, c.Dim)
				add(at+n.Up, ffn, c.Dim)
			}
		}
		add(at+n.O, c.Dim, q)
		add(at+n.Down, c.Dim, ffn)
	}
	c.Vocab, c.Tied = 10, true
	context, chunk, err := c.Bounds(0, 0)
	if err != nil {
		return err
	}
	b := graph.NewBuilder(gpu.DefaultLimits())
	l := &arch.Decoder{
		Builder: b, Config: *c, Context: context, KV: graph.F32, W: arch.NewWeights(b, file, c.Form, nil),
	}
	_, err = l.Build(chunk, 0, sample.Sampling{})
	return err
}

// Each key is stored with its path, so a long key above many others could take all memory.
func TestKeysOfAConfigAreBounded(t *testing.T) {
	golden := wordingtest.New(t)
	_, err := configjson.Parse([]byte(`{"`+strings.Repeat("k", configjson.MaxPath)+`": {"a": 1}}`), "config.json")
	golden.Error("a long key", err)
}
