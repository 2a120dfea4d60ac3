package arch

import (
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/model/checkpoint/gguf"
	"gpuscope/text/tokenizer"
)

// ggufForm implements form for a GGUF file.
type ggufForm struct{ *gguf.File }

func openGGUF(path string) (*Checkpoint, error) { return ggufCheckpoint(gguf.Open(path)) }

// ParseGGUF parses a GGUF file that is in memory.
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

// Top returns all keys: the metadata of a GGUF file is not nested, so every key is a top-level key.
func (f ggufForm) Top() []string { return f.Keys() }

// Null returns false, because GGUF metadata has no null value.
func (f ggufForm) Null(string) bool { return false }

// List reports whether the value of a key is an array.
func (f ggufForm) List(key string) bool {
	v, ok := f.Value(key)
	return ok && v.Kind == gguf.KindArray
}

// refuseUnknownKeys records an error for each key of attention or RoPE that is in the file but unknown to
// this version. Such a key may change the results.
func (r *configReader) refuseUnknownKeys() {
	for _, key := range r.f.Keys() {
		own, ours := strings.CutPrefix(key, r.prefix)
		of := strings.HasPrefix(own, "attention.") || strings.HasPrefix(own, "rope.")
		if ours && of && !r.form.knows(own) && len(r.others(own)) == 0 {
			r.errorf(printable.Short(own, 80), "not supported yet: this key may change how attention is computed, but this version does not know how")
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
