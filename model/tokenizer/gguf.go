package tokenizer

import (
	"fmt"
	"slices"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/model/gguf"
)

// The keys of a vocabulary in a GGUF file.
const (
	keyModel    = "tokenizer.ggml.model"
	keyPre      = "tokenizer.ggml.pre"
	keyTokens   = "tokenizer.ggml.tokens"
	keyTypes    = "tokenizer.ggml.token_type"
	keyScores   = "tokenizer.ggml.scores"
	keyMerges   = "tokenizer.ggml.merges"
	keyBOS      = "tokenizer.ggml.bos_token_id"
	keyEOS      = "tokenizer.ggml.eos_token_id"
	keyEOT      = "tokenizer.ggml.eot_token_id"
	keyEOM      = "tokenizer.ggml.eom_token_id"
	keyUnknown  = "tokenizer.ggml.unknown_token_id"
	keyAddBOS   = "tokenizer.ggml.add_bos_token"
	keyAddEOS   = "tokenizer.ggml.add_eos_token"
	keyPrefix   = "tokenizer.ggml.add_space_prefix"
	keySqueeze  = "tokenizer.ggml.remove_extra_whitespaces"
	keyTemplate = "tokenizer.chat_template"
	keyName     = "general.name"
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

// Read is the vocabulary of a model file.
func Read(f *gguf.File) (Config, error) {
	model, err := f.StringOr(keyModel, "none")
	if err != nil {
		return Config{}, err
	}
	r := reader{f: f}
	switch model {
	case "gpt2":
		return r.byteLevel()
	case "llama":
		return r.sentencePiece()
	case "none", "no_vocab":
		return Config{}, fmt.Errorf("%s: %w", f.Name(), ErrNoVocabulary)
	}
	return Config{},
		fmt.Errorf("%s: tokenizer model %q is not supported yet (gpt2, byte-level BPE, and llama, SentencePiece, are): %w",
			f.Name(), printable.Short(model, 80), ErrUnsupported)
}

// common is what vocabularies of every kind say; special tokens that the file leaves out are those given.
func (r *reader) common(bos, eos int) Config {
	c := Config{
		Name: r.f.Name(), Tokens: r.tokens(), Kinds: r.kinds(),
		BOS: r.id(keyBOS, bos), EOS: r.id(keyEOS, eos), Unknown: None,
	}
	for _, key := range []string{keyEOT, keyEOM} {
		if id := r.id(key, None); id != None {
			c.Ends = append(c.Ends, id)
		}
	}
	if c.Ends == nil {
		c.Ends = c.turnEnds()
	}
	var err error
	c.Template, err = r.f.StringOr(keyTemplate, "")
	r.keep(err)
	c.Special = specialTokensOf(r.f, c.Tokens)
	return c
}

// around says what prompts start and end with; whether with BOS where the file does not say.
func (r *reader) around(c *Config, bos bool) {
	if r.bool(keyAddBOS, bos && c.BOS != None) {
		c.Before = []int{c.BOS}
	}
	if r.bool(keyAddEOS, false) {
		c.After = []int{c.EOS}
	}
}

// byteLevel reads a vocabulary of bytes, which are joined by merges.
func (r *reader) byteLevel() (Config, error) {
	if !r.f.Has(keyPre) {
		return Config{},
			fmt.Errorf("%s: the file does not name its split rule (%s): convert the model again with a present-day llama.cpp, or: %w",
				r.f.Name(), keyPre, ErrUnsupported)
	}
	pre, err := r.f.String(keyPre)
	if err != nil {
		return Config{}, err
	}
	rule, err := findSplit(pre)
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", r.f.Name(), err)
	}
	c := r.common(None, None)
	c.Alphabet, c.Merges, c.Cut, c.WholeWords = true, r.merges(), rule.steps(), rule.wholeWords
	r.around(&c, rule.addBOS)
	return c, r.err
}

// sentencePiece reads a vocabulary of SentencePiece, whose tokens are joined by scores. What the file leaves
// out is as in Llama 2.
func (r *reader) sentencePiece() (Config, error) {
	c := r.common(1, 2)
	c.Characters, c.Space, c.FuseUnknown = true, spaceSign, true
	c.Unknown = r.id(keyUnknown, 0)
	c.Scores = make([]float32, len(c.Tokens))
	if r.f.Has(keyScores) {
		c.Scores = r.scores()
	}
	c.ByteFallback = slices.Contains(c.Kinds, Byte)
	c.Normal = spaceSteps(r.bool(keySqueeze, false), r.bool(keyPrefix, true))
	if c.Kinds != nil {
		c.Added = addedByKind(c.Tokens, c.Kinds)
		r.strip(c.Added)
	}
	r.around(&c, true)
	return c, r.err
}

// spaceSteps is how SentencePiece writes spaces.
func spaceSteps(squeeze, prefix bool) (steps []Step) {
	if squeeze {
		steps = append(steps, Squeeze())
	}
	if prefix {
		steps = append(steps, Prepend(" "))
	}
	steps = append(steps, Replace(" ", spaceSign))
	if squeeze { // SentencePiece looks for spaces at the end after it wrote them
		steps = append(steps, trimEnd(spaceSign))
	}
	return steps
}

// strip marks the tokens that take the white space behind them away. GGUF has no place for that, so llama.cpp
// knows them by the model's name: Phi 3 does so with all special tokens but those that every Llama has.
func (r *reader) strip(added []Added) {
	name, err := r.f.StringOr(keyName, "")
	r.keep(err)
	name = strings.ToLower(name)
	if !strings.Contains(name, "phi-3") && !strings.Contains(name, "phi3") {
		return
	}
	for i, a := range added {
		added[i].StripRight = !slices.Contains([]string{"<unk>", "<s>", "<|endoftext|>"}, a.Text)
	}
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

func (r *reader) scores() []float32 {
	numbers, err := r.f.Floats(keyScores)
	r.keep(err)
	scores := make([]float32, len(numbers))
	for i, n := range numbers {
		scores[i] = float32(n)
	}
	return scores
}

func (r *reader) bool(key string, def bool) bool {
	b, err := r.f.BoolOr(key, def)
	r.keep(err)
	return b
}

// id is a token's id; def where the file does not have the key.
func (r *reader) id(key string, def int) int {
	if !r.f.Has(key) {
		return def
	}
	id, err := r.f.Uint(key)
	r.keep(err)
	const none = 1<<32 - 1 // how llama.cpp writes -1
	if id >= none {
		return None
	}
	return int(id)
}
