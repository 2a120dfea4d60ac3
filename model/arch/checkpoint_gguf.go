package arch

import (
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/model/checkpoint/gguf"
	"gpuscope/text/tokenizer"
)

// ggufForm is a model that is one GGUF file.
type ggufForm struct{ *gguf.File }

func openGGUF(path string) (*Checkpoint, error) { return ggufCheckpoint(gguf.Open(path)) }

// ParseGGUF is openGGUF of a file that is in memory already.
func ParseGGUF(data []byte, name string) (*Checkpoint, error) {
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
	return NewCheckpoint(ggufForm{f}, tensors), nil
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

func (f ggufForm) Tokenizer() (*tokenizer.Tokenizer, error) { return tokenizer.New(f.File) }

// Top are all keys: none belongs to an object.
func (f ggufForm) Top() []string { return f.Keys() }

// Null: a GGUF file has no such value.
func (f ggufForm) Null(string) bool { return false }

// List says whether the value of a key is an array.
func (f ggufForm) List(key string) bool {
	v, ok := f.Value(key)
	return ok && v.Kind == gguf.KindArray
}

// refuseUnknownKeys refuses what a file says of attention and rotation that no architecture of llama.cpp that
// this version knows of has: it may change the result.
func (r *configReader) refuseUnknownKeys() {
	for _, key := range r.f.Keys() {
		own, ours := strings.CutPrefix(key, r.prefix)
		of := strings.HasPrefix(own, "attention.") || strings.HasPrefix(own, "rope.")
		if ours && of && !r.form.knows(own) && len(r.others(own)) == 0 {
			r.errorf(printable.Short(own, 80), "not yet: this version does not know what it does to the attention")
		}
	}
}

func (f ggufForm) Config() (Config, error) {
	name, err := f.String("general.architecture")
	if err != nil {
		return Config{}, err
	}
	in := func(a *Architecture) *Spelling { return &a.Gguf }
	arch, form, err := architectureOf(f.Name(), name, in)
	if err != nil {
		return Config{}, err
	}
	r := &configReader{f: f, prefix: name + ".", form: form, in: in}
	r.refuseUnknownKeys()
	c, err := readConfig(r, arch)
	c.Tied = !f.HasTensor(form.Names.Head)
	return c, err
}
