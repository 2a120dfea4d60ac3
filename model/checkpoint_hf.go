package model

import (
	"fmt"
	"path/filepath"
	"strings"

	"gpuscope/model/checkpoint/safetensors"
	"gpuscope/text/tokenizer"
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
	checkpoint := newCheckpoint(&hfForm{path, c, weights}, tensors)
	checkpoint.findPrefix(&hfNames)
	return checkpoint, nil
}

// hfBase comes before the names of a decoder's tensors, but for the head's, where transformers saves both.
const hfBase = "model."

// findPrefix lets tensors be found by their usual names where others come before them: none in the file of a
// decoder without its head, longer ones in that of a model which a decoder is a part of. The prefix is what
// comes before the name of the embedding, the shortest where there are several.
func (c *Checkpoint) findPrefix(n *names) {
	if c.byName[n.embed] != nil {
		return
	}
	prefix, found := "", false
	for _, t := range c.tensors {
		p, ok := strings.CutSuffix(t.Name, strings.TrimPrefix(n.embed, hfBase))
		if ok && (p == "" || strings.HasSuffix(p, ".")) && (!found || len(p) < len(prefix)) {
			prefix, found = p, true
		}
	}
	if !found {
		return
	}
	for _, t := range c.tensors {
		if own, ok := strings.CutPrefix(t.Name, prefix); ok {
			c.byName[hfBase+own] = t
		}
	}
	// The head is a part of the same model as the decoder, or of one that this is a part of.
	for at := prefix; at != "" && c.byName[n.head] == nil; {
		at = at[:strings.LastIndexByte(strings.TrimSuffix(at, "."), '.')+1]
		if t := c.byName[at+n.head]; t != nil {
			c.byName[n.head] = t
		}
	}
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

func (f *hfForm) Tokenizer() (*tokenizer.Tokenizer, error) { return tokenizer.Open(f.path) }

func (f *hfForm) config() (config, error) {
	name, err := f.said.String("model_type")
	if err != nil {
		return config{}, err
	}
	in := func(a *architecture) *spelling { return &a.hf }
	arch, form, err := architectureOf(f.said.name, name, in)
	if err != nil {
		return config{}, err
	}
	r := &configReader{f: f.said, form: form, in: in}
	c, err := readConfig(r, arch)
	if err != nil {
		return c, err
	}
	if c.LocalRope != nil && r.has(localRotation) {
		local := hfRotationAt(r, localRotation, form.keys.localBase, c.HeadDim)
		c.LocalRope = &local
	}
	c.Warnings = append(c.Warnings, r.warnings...)
	if index := f.weights.Unread(); index != "" {
		c.Warnings = append(c.Warnings, fmt.Sprintf("%s: reading %s; the files that %s lists are not read",
			f.path, filepath.Base(f.weights.Files()[0].Name()), index))
	}
	return c, r.err
}
