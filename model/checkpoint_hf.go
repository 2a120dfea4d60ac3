package model

import (
	"math"
	"path/filepath"

	"gpuscope/internal/printable"
	"gpuscope/model/safetensors"
	"gpuscope/model/tokenizer"
)

// hfForm is a model that is a folder as Hugging Face's transformers saves one: config.json, safetensors
// files, and the files of its tokenizer.
type hfForm struct {
	path    string
	said    *configJSON
	weights *safetensors.Folder
}

func openHF(path string) (*Checkpoint, error) {
	c, err := openConfigJSON(filepath.Join(path, "config.json"))
	if err != nil {
		return nil, err
	}
	weights, err := safetensors.OpenFolder(path)
	if err != nil {
		return nil, err
	}
	var tensors []*Tensor
	for _, t := range weights.Tensors() {
		tensors = append(tensors, &Tensor{
			Name: t.Name, Type: t.DType, Dims: t.Dims, Size: t.Size(), Bytes: t.Bytes,
		})
	}
	return newCheckpoint(&hfForm{path, c, weights}, tensors), nil
}

func (f *hfForm) Name() string { return f.path }

// Title is the name of the folder: a config.json has none.
func (f *hfForm) Title() string {
	path, err := filepath.Abs(f.path)
	if err != nil {
		return ""
	}
	return filepath.Base(path)
}

// Metadata is what config.json says, and what the safetensors files do.
func (f *hfForm) Metadata() []Pair {
	pairs := f.said.pairs()
	for _, file := range f.weights.Files() {
		for _, p := range file.Metadata() {
			key := filepath.Base(file.Name()) + ": " + p.Key
			pairs = append(pairs, Pair{key, "string", shortJSON(p.Value, 200)})
		}
	}
	return pairs
}

func (f *hfForm) Close() error { return f.weights.Close() }

func (f *hfForm) tokenizer() (*tokenizer.Tokenizer, error) { return tokenizer.Open(f.path) }

func (f *hfForm) config() (config, error) {
	name, err := f.said.String("model_type")
	if err != nil {
		return config{}, err
	}
	arch, spelling, err := architectureOf(f.said.name, name, func(a *architecture) *spelling { return &a.hf })
	if err != nil {
		return config{}, err
	}
	r := &configReader{f: f.said}
	c, err := readConfig(r, arch, spelling)
	if err != nil {
		return c, err
	}
	c.Tied = r.boolOr("tie_word_embeddings", spelling.tied)
	if c.LocalRope != nil && r.has(localRotation) {
		local := hfRotationAt(r, localRotation, spelling.keys.localBase, c.HeadDim)
		c.LocalRope = &local
	}
	r.windows(&c)
	return c, r.err
}

// windows reads which layers have a window, where that is said layer by layer.
func (r *configReader) windows(c *config) {
	const key = "layer_types"
	if !r.has(key) {
		return
	}
	kinds, err := r.f.Strings(key)
	if err != nil && r.err == nil {
		r.err = err
	}
	if len(kinds) != c.Layers {
		r.errorf(key, "%d of them, and %d layers", len(kinds), c.Layers)
		return
	}
	window := r.intOr(c.Form.keys.window, 0, 0, math.MaxInt32)
	for i, kind := range kinds {
		switch kind {
		case "full_attention":
			c.Windows[i] = 0
		case "sliding_attention":
			if c.Windows[i] = window; window == 0 {
				r.errorf(key, "layer %d has a window, and none is stated or used", i)
			}
		default:
			r.errorf(key, "not yet: layer %d has %s", i, printable.Short(kind, 80))
		}
	}
}
