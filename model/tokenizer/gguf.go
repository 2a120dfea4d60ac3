package tokenizer

import (
	"fmt"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/model/gguf"
)

// The keys of a vocabulary in a GGUF file.
const (
	keyModel  = "tokenizer.ggml.model"
	keyPre    = "tokenizer.ggml.pre"
	keyTokens = "tokenizer.ggml.tokens"
	keyTypes  = "tokenizer.ggml.token_type"
	keyMerges = "tokenizer.ggml.merges"
	keyBOS    = "tokenizer.ggml.bos_token_id"
	keyEOS    = "tokenizer.ggml.eos_token_id"
	keyEOT    = "tokenizer.ggml.eot_token_id"
	keyEOM    = "tokenizer.ggml.eom_token_id"
	keyAddBOS = "tokenizer.ggml.add_bos_token"
)

// New reads the vocabulary of a model file. The error is ErrNoVocabulary where the file has none and
// ErrUnsupported where it is of an unknown kind: such a model can be run on token ids, with a nil Tokenizer.
func New(f *gguf.File) (*Tokenizer, error) {
	c, err := Read(f)
	if err != nil {
		return nil, err
	}
	t, err := NewBPE(c)
	if err != nil {
		return nil, fmt.Errorf("%s: vocabulary: %w", f.Name(), err)
	}
	return t, nil
}

// Read is the vocabulary of a model file as plain data.
func Read(f *gguf.File) (Config, error) {
	model, err := f.StringOr(keyModel, "none")
	if err != nil {
		return Config{}, err
	}
	switch model {
	case "gpt2":
	case "none", "no_vocab":
		return Config{}, fmt.Errorf("%s: %w", f.Name(), ErrNoVocabulary)
	default:
		return Config{},
			fmt.Errorf("%s: tokenizer model %q is not supported yet (gpt2, byte-level BPE, is): %w", f.Name(),
				printable.Short(model, 80), ErrUnsupported)
	}
	if !f.Has(keyPre) {
		return Config{},
			fmt.Errorf("%s: the file does not name its split rule (%s): convert the model again with a present-day llama.cpp, or: %w", f.Name(), keyPre, ErrUnsupported)
	}
	pre, err := f.String(keyPre)
	if err != nil {
		return Config{}, err
	}
	rule, err := findSplit(pre)
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", f.Name(), err)
	}
	r := reader{f: f}
	c := Config{
		Split:      pre,
		WholeWords: rule.wholeWords,
		Tokens:     r.tokens(),
		Kinds:      r.kinds(),
		Merges:     r.merges(),
		BOS:        r.id(keyBOS),
		EOS:        r.id(keyEOS),
	}
	for _, key := range []string{keyEOT, keyEOM} {
		if id := r.id(key); id != None {
			c.Ends = append(c.Ends, id)
		}
	}
	c.AddBOS, err = f.BoolOr(keyAddBOS, rule.addBOS && c.BOS != None)
	r.keep(err)
	return c, r.err
}

// reader keeps the first error of several reads.
type reader struct {
	f   *gguf.File
	err error
}

func (r *reader) keep(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *reader) tokens() []string {
	tokens, err := r.f.Strings(keyTokens)
	r.keep(err)
	return tokens
}

func (r *reader) kinds() []Kind {
	if !r.f.Has(keyTypes) {
		return nil
	}
	numbers, err := r.f.Ints(keyTypes)
	r.keep(err)
	kinds := make([]Kind, len(numbers))
	for i, n := range numbers {
		kinds[i] = Kind(n)
	}
	return kinds
}

func (r *reader) merges() [][2]string {
	lines, err := r.f.Strings(keyMerges)
	r.keep(err)
	merges := make([][2]string, len(lines))
	for i, line := range lines {
		left, right, ok := strings.Cut(line, " ")
		if !ok || left == "" || right == "" {
			r.keep(fmt.Errorf("%s: metadata %q: merge %d is %q, want two tokens with a space between",
				r.f.Name(), keyMerges, i, printable.Short(line, 80)))
		}
		merges[i] = [2]string{left, right}
	}
	return merges
}

func (r *reader) id(key string) int {
	if !r.f.Has(key) {
		return None
	}
	id, err := r.f.Uint(key)
	r.keep(err)
	const none = 1<<32 - 1 // how llama.cpp writes -1
	if id >= none {
		return None
	}
	return int(id)
}
