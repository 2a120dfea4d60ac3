package model

import (
	"strings"

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

func (f ggufForm) config() (config, error) {
	name, err := f.String("general.architecture")
	if err != nil {
		return config{}, err
	}
	arch, spelling, err := architectureOf(f.Name(), name, func(a *architecture) *spelling { return &a.gguf })
	if err != nil {
		return config{}, err
	}
	c, err := readConfig(&configReader{f: f, prefix: name + "."}, arch, spelling)
	c.Tied = !f.HasTensor(spelling.names.head)
	return c, err
}
