package tokenizer

import (
	"fmt"
	"slices"
	"strings"

	"gpuscope/internal/printable"
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

// Metadata are the keys of a model file as GGUF has them: what this package needs of a reader of such files.
// A method whose name ends in Or returns its default where the key is missing; errors name the file and key.
type Metadata interface {
	Name() string // of the file, for errors
	Has(key string) bool
	String(key string) (string, error)
	StringOr(key, def string) (string, error)
	Strings(key string) ([]string, error)
	Uint(key string) (uint64, error)
	UintOr(key string, def uint64) (uint64, error)
	Ints(key string) ([]int, error)
	Floats(key string) ([]float64, error)
	BoolOr(key string, def bool) (bool, error)
}

// New reads the vocabulary of a model file. The error is ErrNoVocabulary where the file has none, and a
// RefusedError where it encodes no text; the Tokenizer has what is known all the same.
func New(f Metadata) (*Tokenizer, error) { return newTokenizer(Read(f)) }

// Read is the vocabulary of a model file. With an error it is what is known of it.
func Read(f Metadata) (Config, error) {
	r := reader{f: f, c: Config{Name: f.Name(), BOS: None, EOS: None, Unknown: None}}
	model, err := f.StringOr(keyModel, "none")
	read := readers[model]
	if read == nil {
		read = (*reader).specials
	}
	read(&r)
	switch {
	case err != nil:
	case model == "none" || model == "no_vocab":
		err = fmt.Errorf("%s: %w", f.Name(), ErrNoVocabulary)
	case readers[model] == nil:
		err = fmt.Errorf("%s: tokenizer model %q is not supported yet (gpt2, byte-level BPE, and llama, SentencePiece, are): %w",
			f.Name(), printable.Short(model, 80), ErrUnsupported)
	default:
		return r.c, r.err
	}
	r.c.Tokens = nil // what they stand for is not known
	return r.c, err
}

// readers read the kinds of vocabularies, by the name that keyModel has.
var readers = map[string]func(*reader){"gpt2": (*reader).byteLevel, "llama": (*reader).sentencePiece}

// specials reads what vocabularies of every kind have: tokens, special tokens, ends. A special token that the
// file leaves out is the one given, where the vocabulary has so many.
func (r *reader) specials() { r.specialsOr(None, None) }

func (r *reader) specialsOr(bos, eos int) {
	c := &r.c
	c.Tokens, c.Kinds = r.tokens(), r.kinds()
	c.BOS = r.id(keyBOS, bos)
	c.EOS = r.id(keyEOS, eos)
	if r.f.Has(keyEOS) {
		c.endAt(c.EOS, keyEOS)
	} else {
		c.endAt(c.EOS, "the default of SentencePiece")
	}
	for _, key := range []string{keyEOT, keyEOM} {
		c.endAt(r.id(key, None), key)
	}
	for _, f := range fillIns {
		c.endAt(r.id(f.key, None), f.key)
	}
	c.endByName(r.f.Has)
	c.Template = orWarn(r, keyTemplate, "", r.f.StringOr)
	c.Special = specialTokensOf(r.f, c.Tokens)
}

// around says what prompts start and end with; whether with BOS where the file does not say.
func (r *reader) around(bos bool) {
	c := &r.c
	if orWarn(r, keyAddBOS, bos && c.BOS != None, r.f.BoolOr) {
		c.ask(&c.Before, &c.BOS, keyAddBOS, bosNames)
	}
	if orWarn(r, keyAddEOS, false, r.f.BoolOr) {
		c.ask(&c.After, &c.EOS, keyAddEOS, endNames)
	}
}

// byteLevel reads a vocabulary of bytes, which are joined by merges.
func (r *reader) byteLevel() {
	r.specials()
	rule := r.splitRule()
	c := &r.c
	c.Alphabet, c.Merges, c.Cut, c.WholeWords = true, r.merges(), rule.steps(), rule.wholeWords
	r.around(rule.addBOS)
}

// splitRule finds the rule that the file names.
func (r *reader) splitRule() (rule splitRule) {
	pre, err := r.f.String(keyPre)
	if !r.f.Has(keyPre) {
		err = fmt.Errorf("%s: the file does not name its split rule (%s): convert the model again with a present-day llama.cpp, or: %w",
			r.f.Name(), keyPre, ErrUnsupported)
	}
	if err == nil {
		if rule, err = findSplit(pre); err != nil {
			err = fmt.Errorf("%s: %w", r.f.Name(), err)
		}
	}
	r.keep(err)
	return rule
}

// sentencePiece reads a vocabulary of SentencePiece, whose tokens are joined by scores. What the file leaves
// out is as in Llama 2.
func (r *reader) sentencePiece() {
	r.specialsOr(1, 2)
	c := &r.c
	c.Characters, c.Space, c.FuseUnknown = true, spaceSign, true
	c.Unknown = r.id(keyUnknown, 0)
	c.Scores = make([]float32, len(c.Tokens))
	if r.f.Has(keyScores) {
		c.Scores = r.scores()
	}
	c.ByteFallback = slices.Contains(c.Kinds, Byte)
	c.Normal = spaceSteps(orWarn(r, keySqueeze, false, r.f.BoolOr), orWarn(r, keyPrefix, true, r.f.BoolOr))
	if len(c.Kinds) == len(c.Tokens) && c.Kinds != nil {
		c.Added = addedByKind(c.Tokens, c.Kinds)
		r.strip(c.Added)
	}
	r.around(true)
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

// strip marks the tokens that take the white space after them away. GGUF has no place for that, so llama.cpp
// knows them by the model's name: Phi 3 does so with all special tokens but those that every Llama has.
func (r *reader) strip(added []Added) {
	name, _ := r.f.StringOr(keyName, "") // another type of it is no defect of the vocabulary
	name = strings.ToLower(name)
	if !strings.Contains(name, "phi-3") && !strings.Contains(name, "phi3") {
		return
	}
	for i, a := range added {
		added[i].StripRight = !slices.Contains([]string{"<unk>", "<s>", "<|endoftext|>"}, a.Text)
	}
}

// reader fills a vocabulary. It keeps the first error of several reads.
type reader struct {
	f   Metadata
	c   Config
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

// orWarn is the value of a key; def where the file does not have it, and with a warning where it is of
// another type.
func orWarn[T any](r *reader, key string, def T, read func(string, T) (T, error)) T {
	v, err := read(key, def)
	if err != nil {
		r.c.warnf("%v: ignored", err)
		return def
	}
	return v
}

// id is a token's id; def where the file does not have the key or has no id of the vocabulary in it.
func (r *reader) id(key string, def int) int {
	if def >= len(r.c.Tokens) {
		def = None
	}
	if !r.f.Has(key) {
		return def
	}
	const none = 1<<32 - 1 // how llama.cpp writes -1
	n := orWarn(r, key, none+1, r.f.UintOr)
	switch {
	case n == none:
		return None
	case n > none:
		return def
	}
	if id := r.c.within(int(n), key); id != None {
		return id
	}
	return def
}
