package arch

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"gpuscope/model/checkpoint/configjson"
	"gpuscope/model/checkpoint/safetensors"
	"gpuscope/text/tokenizer"
)

// HfForm implements form for a Hugging Face folder, which contains config.json, safetensors files, and the
// files of the tokenizer.
type HfForm struct {
	Path    string
	Said    *configjson.File
	Weights *safetensors.Folder
}

func openHF(path string) (*Checkpoint, error) {
	c, err := configjson.Open(filepath.Join(path, "config.json"))
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
	if tensors, err = joinMXFP4(path, tensors); err != nil {
		return nil, err
	}
	checkpoint := NewCheckpoint(&HfForm{path, c, weights}, tensors)
	checkpoint.findPrefix(&hfNames)
	return checkpoint, nil
}

// hfBase is the usual prefix of the names of a decoder's tensors in transformers. Files that contain the
// decoder and the output head use this prefix for all tensors except the head.
const hfBase = "model."

// findPrefix makes tensors available under their usual names if the file does not use the prefix hfBase. The
// names have no prefix in the file of a decoder without its head, and a longer prefix if the decoder is part
// of a larger model. findPrefix takes the prefix from the name of the embedding tensor. If several tensors
// could be the embedding, findPrefix prefers a prefix that tensors of layers have too, and then the shortest
// prefix.
func (c *Checkpoint) findPrefix(n *names) {
	if c.ByName[n.Embed] != nil {
		return
	}
	var prefixes []string
	for _, t := range c.All {
		p, ok := strings.CutSuffix(t.Name, strings.TrimPrefix(n.Embed, hfBase))
		if ok && (p == "" || strings.HasSuffix(p, ".")) {
			prefixes = append(prefixes, p)
		}
	}
	if prefixes == nil {
		return
	}
	layers := strings.TrimPrefix(n.layer[:strings.IndexByte(n.layer, '%')], hfBase)
	doubt := map[string]int{} // -1 for each prefix that layers of a decoder have
	for _, t := range c.All {
		if p, _, ok := strings.Cut(t.Name, layers); ok && orphanOf(t.Name) == nil {
			doubt[p] = -1
		}
	}
	prefix := slices.MinFunc(prefixes, func(p, q string) int {
		return cmp.Or(doubt[p]-doubt[q], len(p)-len(q))
	})
	for _, t := range c.All {
		if own, ok := strings.CutPrefix(t.Name, prefix); ok {
			c.ByName[hfBase+own] = t
		}
	}
	// Find the output head. The prefix of its name is the decoder's prefix, possibly without one or more of
	// the last dot-separated parts.
	for at := prefix; at != "" && c.ByName[n.Head] == nil; {
		if t := c.ByName[at+n.Head]; t != nil {
			c.ByName[n.Head] = t
		}
		at = at[:strings.LastIndexByte(strings.TrimSuffix(at, "."), '.')+1]
	}
}

func (f *HfForm) Name() string { return f.Path }

// Title returns the name of the folder, because config.json contains no title.
func (f *HfForm) Title() string {
	path, err := filepath.Abs(f.Path)
	if err != nil {
		return ""
	}
	return filepath.Base(path)
}

// Metadata returns the values of config.json and the metadata of the safetensors files.
func (f *HfForm) Metadata() []Pair {
	var pairs []Pair
	for _, p := range f.Said.Pairs() {
		pairs = append(pairs, Pair(p))
	}
	for _, file := range f.Weights.Files() {
		for _, p := range file.Metadata() {
			key := filepath.Base(file.Name()) + ": " + p.Key
			pairs = append(pairs, Pair{key, "string", configjson.Short(p.Value, 200)})
		}
	}
	return pairs
}

func (f *HfForm) Close() error { return f.Weights.Close() }

func (f *HfForm) Tokenizer() (*tokenizer.Tokenizer, error) { return tokenizer.Open(f.Path) }

func (f *HfForm) Config() (Config, error) {
	said := f.Said.Decoder()
	name, err := said.String("model_type")
	if err != nil {
		return Config{}, err
	}
	in := func(a *Architecture) *Spelling { return &a.Hf }
	arch, form, err := architectureOf(said.Name(), name, in)
	if err != nil {
		return Config{}, err
	}
	r := &configReader{f: said, form: form, in: in}
	c, err := readConfig(r, arch)
	if err != nil {
		return c, err
	}
	if c.LocalRope != nil && r.has(localRotation) {
		local := hfRotationAt(r, localRotation, form.Keys.localBase, c.LocalHeadDim)
		c.LocalRope = &local
	}
	c.Warnings = append(c.Warnings, r.warnings...)
	if index := f.Weights.Unread(); index != "" {
		c.Warnings = append(c.Warnings, fmt.Sprintf("%s: reading the weights from %s only; the other weight files, which %s lists, are ignored",
			f.Path, filepath.Base(f.Weights.Files()[0].Name()), index))
	}
	return c, r.err
}
