package model

import (
	"slices"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/model/gguf"
	"gpuscope/model/tokenizer"
)

// ggufForm is a model that is one GGUF file.
type ggufForm struct{ *gguf.File }

func openGGUF(path string) (*Checkpoint, error) { return ggufCheckpoint(gguf.Open(path)) }

// parseGGUF is openGGUF of a file that is in memory already.
func parseGGUF(data []byte, name string) (*Checkpoint, error) {
	return ggufCheckpoint(gguf.Parse(data, name))
}

func ggufCheckpoint(f *gguf.File, err error) (*Checkpoint, error) {
	if err != nil {
		return nil, err
	}
	var tensors []*Tensor
	for _, t := range f.Tensors() {
		tensors = append(tensors, &Tensor{
			Name: t.Name, Type: t.Type.String(), Dims: t.Dims, Size: t.Size(), Bytes: t.Bytes,
		})
	}
	return newCheckpoint(ggufForm{f}, tensors), nil
}

func (f ggufForm) Title() string {
	if s, err := f.String("general.name"); err == nil {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	return ""
}

func (f ggufForm) Metadata() []Pair {
	var pairs []Pair
	for _, key := range f.Keys() {
		v, _ := f.Value(key)
		pairs = append(pairs, Pair{key, v.Type(), v.String()})
	}
	return pairs
}

func (f ggufForm) tokenizer() (*tokenizer.Tokenizer, error) { return tokenizer.New(f.File) }

// refuseUnknownKeys refuses what a file says of attention and rotation that this version does not know: it
// would change the result.
func refuseUnknownKeys(r *configReader, s *spelling) {
	known := slices.Concat(s.keys.list(), rotationKeys)
	for _, o := range s.only {
		known = append(known, o.key)
	}
	for _, key := range r.f.Keys() {
		own, ours := strings.CutPrefix(key, r.prefix)
		of := strings.HasPrefix(own, "attention.") || strings.HasPrefix(own, "rope.")
		if ours && of && !slices.Contains(known, own) {
			r.errorf(printable.Short(own, 80), "not yet: this version does not know what it does to the attention")
		}
	}
}

func (f ggufForm) config() (config, error) {
	name, err := f.String("general.architecture")
	if err != nil {
		return config{}, err
	}
	arch, spelling, err := architectureOf(f.Name(), name, func(a *architecture) *spelling { return &a.gguf })
	if err != nil {
		return config{}, err
	}
	r := &configReader{f: f, prefix: name + "."}
	refuseUnknownKeys(r, spelling)
	c, err := readConfig(r, arch, spelling)
	c.Tied = !f.HasTensor(spelling.names.head)
	return c, err
}
