package tokenizer

import (
	"fmt"
	"slices"
	"strings"

	"gpuscope/internal/printable"
)

// Keys of a vocabulary in a GGUF file.
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

// Metadata provides the metadata keys of a model file. It has the methods of a GGUF reader that this package
// needs. A method whose name ends in Or returns its default if the key is missing. Errors name the file and
// the key.
type Metadata interface {
	Name() string // name of the file, for error messages
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

// New reads the vocabulary of a model file. The error is ErrNoVocabulary if the file has none, and a
// RefusedError if the vocabulary cannot encode text. Even then the Tokenizer contains everything that could
// be read.
func New(f Metadata) (*Tokenizer, error) { return newTokenizer(Read(f)) }

// Read reads the vocabulary of a model file. If it returns an error, the Config still contains everything
// that could be read.
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
		err = fmt.Errorf("%s: tokenizer model %q is not supported yet; supported: gpt2 (byte-level BPE), llama (SentencePiece) and gemma4 (BPE over characters): %w",
			f.Name(), printable.Short(model, 80), ErrUnsupported)
	default:
		return r.c, r.err
	}
	r.c.Tokens = nil // the encoding of these tokens is unknown
	return r.c, err
}

// readers maps each supported value of keyModel to the function that reads such a vocabulary.
var readers = map[string]func(*reader){
	"gpt2": (*reader).byteLevel, "llama": (*reader).sentencePiece, "gemma4": (*reader).gemma4,
}

// specials reads the tokens, special tokens and end tokens, which all kinds of vocabularies have. specialsOr
// does the same, but has default ids for BOS and EOS. It uses a default id if the file states no id and the
// vocabulary contains the default id.
func (r *reader) specials() { r.specialsOr(None, None) }

func (r *reader) specialsOr(bos, eos int) {
	c := &r.c
	c.Tokens, c.Kinds = r.tokens(), r.kinds()
	c.BOS = r.id(keyBOS, bos)
	c.EOS = r.id(keyEOS, eos)
	if r.f.Has(keyEOS) {
		c.endAt(c.EOS, keyEOS)
	} else {
		c.endAt(c.EOS, "SentencePiece's default")
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

// around reads which tokens are added before and after prompts. `bos` is the default for whether prompts
// start with BOS.
func (r *reader) around(bos bool) {
	c := &r.c
	if orWarn(r, keyAddBOS, bos && c.BOS != None, r.f.BoolOr) {
		c.ask(&c.Before, &c.BOS, keyAddBOS, bosNames)
	}
	if orWarn(r, keyAddEOS, false, r.f.BoolOr) {
		c.ask(&c.After, &c.EOS, keyAddEOS, endNames)
	}
}

// byteLevel reads a byte-level vocabulary with merges.
func (r *reader) byteLevel() {
	r.specials()
	rule := r.splitRule()
	c := &r.c
	c.Alphabet, c.Merges, c.Cut, c.WholeWords = true, r.merges(), rule.steps(), rule.wholeWords
	r.around(rule.addBOS)
}

// splitRule finds the split rule that the file names.
func (r *reader) splitRule() (rule splitRule) {
	pre, err := r.f.String(keyPre)
	if !r.f.Has(keyPre) {
		err = fmt.Errorf("%s: the file does not name its split rule (%s). Convert the model again with a current llama.cpp, or %w",
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

// sentencePiece reads a SentencePiece vocabulary with scores. The defaults are those of Llama 2.
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

// gemma4 reads a vocabulary of Gemma 4: a SentencePiece vocabulary with merges instead of scores. As in
// llama.cpp, the split rule in the file is ignored, and line breaks are never merged with other text.
func (r *reader) gemma4() {
	r.specials()
	c := &r.c
	c.Characters, c.Space, c.FuseUnknown, c.Merges = true, spaceSign, true, r.merges()
	c.Unknown = r.id(keyUnknown, None)
	c.ByteFallback = slices.Contains(c.Kinds, Byte)
	c.Normal = spaceSteps(false, orWarn(r, keyPrefix, false, r.f.BoolOr))
	c.Cut = patternSteps(linesPattern)
	r.around(false)
}

// spaceSteps returns the steps that treat spaces as SentencePiece does. `squeeze` removes extra spaces.
// `prefix` inserts a space before the text.
func spaceSteps(squeeze, prefix bool) (steps []Step) {
	if squeeze {
		steps = append(steps, Squeeze())
	}
	if prefix {
		steps = append(steps, Prepend(" "))
	}
	steps = append(steps, Replace(" ", spaceSign))
	if squeeze { // SentencePiece trims the end after it has replaced the spaces
		steps = append(steps, trimEnd(spaceSign))
	}
	return steps
}

// strip sets StripRight of each token that includes the white space after it. GGUF has no key for this, so
// strip decides by the name of the model, as llama.cpp does. In Phi 3 all special tokens include the white
// space, except those that every Llama has.
func (r *reader) strip(added []Added) {
	name, _ := r.f.StringOr(keyName, "") // ignore the error, because the name is not a part of the vocabulary
	name = strings.ToLower(name)
	if !strings.Contains(name, "phi-3") && !strings.Contains(name, "phi3") {
		return
	}
	for i, a := range added {
		added[i].StripRight = !slices.Contains([]string{"<unk>", "<s>", "<|endoftext|>"}, a.Text)
	}
}

// reader reads a vocabulary. It keeps only the first error.
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
			r.keep(fmt.Errorf("%s: metadata %q: merge %d is %q; it must be two tokens separated by a space",
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

// orWarn returns the value of a key, or `def` if the key is missing. If the value has another type, it also
// returns `def` and adds a warning.
func orWarn[T any](r *reader, key string, def T, read func(string, T) (T, error)) T {
	v, err := read(key, def)
	if err != nil {
		r.c.warnf("%v; ignored", err)
		return def
	}
	return v
}

// id returns the token id of a key, or `def` if the key is missing or its id is not in the vocabulary.
func (r *reader) id(key string, def int) int {
	if def >= len(r.c.Tokens) {
		def = None
	}
	if !r.f.Has(key) {
		return def
	}
	const none = 1<<32 - 1 // llama.cpp stores -1 as this value
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
