// Package tokenizer turns text into token ids and back: BPE over bytes, as GPT-2, Llama 3, Qwen and SmolLM
// use it, and SentencePiece's over characters, of Llama 2, Mistral and Gemma. Vocabularies come from the
// metadata of a GGUF file, from a tokenizer.json, or from a SentencePiece model.
//
//	t, err := tokenizer.Open("tokenizer.json")
//	ids, err := t.Encode("Once upon a time", tokenizer.Options{Special: true, BOS: true})
//	text := t.Decode(ids[1:])
//
// Encoding has four steps. Added tokens that are written in the text are cut out; what is left is written as
// the vocabulary has it (spaces as ▁, or nothing at all); split rules (see splits) cut it into words; the
// merges join the bytes or characters of each word, the most urgent first. Tokens of a word never reach over
// its ends.
//
// Text is bytes. An invalid byte of UTF-8 counts as a symbol for the split rule and is encoded as itself, so
// that Text(Encode(x)) == x for every string, valid or not, wherever the vocabulary has a token for each
// byte. Other tokenizers put U+FFFD in place of such bytes, which loses them.
package tokenizer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrNoVocabulary says that the model carries no vocabulary. The model runs all the same, on token ids.
var ErrNoVocabulary = errors.New(
	"no vocabulary: gpuscope run takes one by --tokenizer, or token ids by --ids")

// ErrUnsupported says that the file's tokenizer is of a kind that this package does not know. The model runs
// all the same, on token ids.
var ErrUnsupported = errors.New("give the prompt as token ids with gpuscope run --ids")

// Kind says what a token is for, by GGUF's number.
type Kind int

// The kinds of tokens.
const (
	Undefined Kind = iota
	Normal         // a piece of text
	Unknown        // stands for what the vocabulary cannot say
	// steers the model: <|im_end|>. Text that reads so is the token only where Options.Special is set
	Control
	UserDefined // a piece of text that is always one token
	Unused
	Byte // of SentencePiece vocabularies: <0x0A>
)

var kindNames = [...]string{"undefined", "normal", "unknown", "control", "user-defined", "unused", "byte"}

// String is the kind in a word.
func (k Kind) String() string {
	if k < 0 || int(k) >= len(kindNames) {
		return fmt.Sprintf("kind %d", int(k))
	}
	return kindNames[k]
}

// None is no token: what BOS and EOS are where the file names none.
const None = -1

// Config is a BPE vocabulary, wherever it was read from.
type Config struct {
	Name string // of the file, for errors of Encode
	// Tokens are the texts of the tokens by id, as the vocabulary writes them. Added tokens are as
	// they are.
	Tokens []string
	// Alphabet says that tokens are written in the byte alphabet (see ByteText). Else they are as they
	// are, but for spaces, which are Space.
	Alphabet bool
	Space    string
	Kinds    []Kind // by id; nil: all Normal
	// Characters says that symbols are characters at first, as in SentencePiece, else bytes, which
	// Tokens have in the byte alphabet.
	Characters bool
	// Merges are the texts of the tokens that are joined, by falling priority. With Scores any
	// neighbours are joined whose texts together are a token, that of the highest score first.
	Merges [][2]string
	Scores []float32 // by id; nil where Merges hold
	// ByteFallback says that a character which is no token is spelled by the tokens of its bytes, <0x0A>.
	ByteFallback bool
	Unknown      int  // the token of what has none, or None
	FuseUnknown  bool // one for all of it in a row
	// Added are the tokens that are found before anything else is done; nil: all that Kinds mark.
	Added []Added
	// Normal writes a text anew; all of its steps rewrite. Cut takes it apart into words.
	Normal, Cut []Step
	// WholeWords says that a word that is a token by itself is that token, whatever the merges make of
	// it. (ignore_merges in tokenizer.json)
	WholeWords bool
	BOS, EOS   int // token ids or None
	Ends       []End
	// Before and After are what prompts start and end with, where the file says so: BOS, EOS.
	Before, After []int
	// Template is the chat template, in Jinja; empty where there is none.
	Template string
	Special  SpecialTokens // that the files name, for the template
	Warnings []string      // see defects.go
}

// Tokenizer encodes and decodes. It does not change after New; all methods may be called from any goroutine.
// A nil Tokenizer is a vocabulary of no tokens: Encode returns ErrNoVocabulary.
type Tokenizer struct {
	config  Config
	refused error            // why no text is encoded; nil where it is
	ids     map[string]int32 // by text as in Config.Tokens, but for added tokens outside of the vocabulary
	outside map[string]int32 // these
	pieces  []string         // what each token stands for, in bytes
	words   map[string]int32 // by text as words have it, only where config.WholeWords
	bytes   [256]int32       // token of each byte, None where the vocabulary has none
	merges  map[pair]joint
	scored  map[string]joint // by text, only where Config.Scores hold
	longest int              // of the texts in scored, in bytes
	// Added tokens that are found in the text as it came, and in what Config.Normal made of it.
	found [2]*finder
	parts map[int]bool // the added tokens that texts are parted by as they came
}

// NewBPE makes a tokenizer of a vocabulary. With an error, a RefusedError or ErrNoVocabulary, it encodes no
// text; what else is known works.
func NewBPE(c Config) (*Tokenizer, error) {
	if len(c.Tokens) == 0 {
		return newTokenizer(c, ErrNoVocabulary)
	}
	return newTokenizer(c, nil)
}

// newTokenizer is NewBPE of a vocabulary that was read with an error, or nil.
func newTokenizer(c Config, err error) (*Tokenizer, error) {
	t := &Tokenizer{config: c}
	if made := t.make(); err == nil && made != nil {
		if err = made; c.Name != "" {
			err = fmt.Errorf("%s: vocabulary: %w", c.Name, made)
		}
	}
	if err != nil && !errors.Is(err, ErrNoVocabulary) {
		err = &RefusedError{err}
	}
	t.refused = err
	return t, err
}

// make makes the tables that encoding and decoding need. With an error those of encoding are missing.
func (t *Tokenizer) make() error {
	c := &t.config
	if err := c.checkTokens(); err != nil {
		c.Tokens, c.Kinds = nil, nil
		return err
	}
	added := c.Added
	if added == nil {
		added = addedByKind(c.Tokens, c.Kinds)
	}
	t.ids, t.outside = make(map[string]int32, len(c.Tokens)), map[string]int32{}
	outside := map[int]bool{}
	for _, a := range added {
		outside[a.ID] = a.Outside
	}
	for id, text := range c.Tokens {
		if outside[id] {
			t.outside[text] = int32(id)
		} else if text != "" {
			t.ids[text] = int32(id)
		}
	}
	t.decodePieces()
	if err := c.check(); err != nil {
		return err
	}
	for b := range t.bytes {
		text := ByteText(byte(b))
		if c.Characters {
			text = byteName(byte(b))
		}
		t.bytes[b] = None
		if id, ok := t.ids[text]; ok {
			t.bytes[b] = id
		}
	}
	if c.Scores != nil {
		t.readScores()
	} else if err := t.readMerges(); err != nil {
		return err
	}
	for i, normalized := range []bool{false, true} {
		t.found[i] = newFinder(slices.DeleteFunc(slices.Clone(added), func(a Added) bool {
			return a.Normalized != normalized
		}))
	}
	t.parts = map[int]bool{}
	for _, a := range added {
		t.parts[a.ID] = !a.Normalized
	}
	return nil
}

// maxTokens is how many tokens or merges a vocabulary may have; published ones have half a million at most.
const maxTokens = 1 << 22

// checkTokens says what is wrong with the tokens.
func (c *Config) checkTokens() error {
	switch n := len(c.Tokens); {
	case n > maxTokens || len(c.Merges) > maxTokens:
		return fmt.Errorf("%d tokens and %d merges, at most %d are read", n, len(c.Merges), maxTokens)
	case c.Kinds != nil && len(c.Kinds) != n:
		return fmt.Errorf("%d tokens but %d token types", n, len(c.Kinds))
	}
	return nil
}

// check says what is wrong with how text becomes tokens.
func (c *Config) check() error {
	n := len(c.Tokens)
	if c.Scores != nil && len(c.Scores) != n {
		return fmt.Errorf("%d tokens but %d scores", n, len(c.Scores))
	}
	special := []int{c.BOS, c.EOS, c.Unknown}
	for _, a := range c.Added {
		special = append(special, a.ID)
	}
	for _, id := range special {
		if id != None && (id < 0 || id >= n) {
			return fmt.Errorf("special token %d is outside the vocabulary of %d tokens", id, n)
		}
	}
	for _, id := range slices.Concat(c.Before, c.After) {
		if id == None {
			return errors.New("prompts shall start with a BOS token or end with an EOS token, and there is none")
		}
		if id < 0 || id >= n {
			return fmt.Errorf("special token %d is outside the vocabulary of %d tokens", id, n)
		}
	}
	return checkSteps(slices.Concat(c.Normal, c.Cut))
}

// decodePieces writes down what each token stands for.
func (t *Tokenizer) decodePieces() {
	c := &t.config
	t.pieces = make([]string, len(c.Tokens))
	if c.WholeWords {
		t.words = make(map[string]int32, len(c.Tokens))
	}
	for id, text := range c.Tokens {
		kind, piece := t.Kind(id), text
		bytes, inAlphabet := fromByteText(text)
		switch {
		case c.Alphabet && kind == Normal:
			piece = bytes
		case c.Characters && kind == Byte:
			piece = fromByteName(text)
		case !c.Alphabet && c.Space != "" && (kind == Normal || kind == UserDefined):
			piece = strings.ReplaceAll(text, c.Space, " ")
		}
		t.pieces[id] = piece
		if c.Characters {
			inAlphabet, bytes = true, text
		}
		// Tokens that the user added are as they are, also where their characters are of the byte alphabet.
		if c.WholeWords && inAlphabet && (kind == Normal || kind == UserDefined && bytes == text) {
			t.words[bytes] = int32(id)
		}
	}
}

// Options says how text is encoded.
type Options struct {
	Special bool // control tokens written in the text ("<|im_end|>") are those tokens, not their letters
	// BOS puts around the text what the model's file says that prompts start and end with.
	BOS bool
	// Continues says that the text follows other text, which has its own tokens: what the vocabulary puts
	// before a text, such as SentencePiece's first space, is left out.
	Continues bool
}

// LostError says that the vocabulary has no token for a part of a text, and none that stands for the unknown.
type LostError struct {
	At    int // of the first byte
	Byte  byte
	Count int // of the bytes
}

func (e *LostError) Error() string {
	return fmt.Sprintf("byte %d of the text is %#02x, and the vocabulary has no token for it: leave it out, or give token ids with gpuscope run --ids", e.At, e.Byte)
}

// maxText is how long a text may be, in bytes: places in it are kept in 32 bits.
const maxText = 1 << 29

// Encode gives the ids of a text. With a *LostError it gives those of the rest of the text, as reference
// tokenizers do, which leave such bytes out without a word.
func (t *Tokenizer) Encode(text string, o Options) ([]int, error) {
	if t == nil {
		return nil, ErrNoVocabulary
	}
	if t.refused != nil {
		return nil, t.refused
	}
	if len(text) > maxText {
		return nil, fmt.Errorf("the text has %d bytes, at most %d can be encoded: give it in parts",
			len(text), maxText)
	}
	e := encoder{t: t, ids: make([]int, 0, len(text)/3+2)}
	if o.BOS {
		e.ids = append(e.ids, t.config.Before...)
	}
	whole := piece{text: text, continues: o.Continues}
	if !o.Continues {
		whole.head = firstLength(text)
	}
	err := t.found[0].each(whole, o.Special, e.addID, func(p piece) error {
		p, err := rewriteAll(t.config.Normal, p)
		if err != nil {
			return err
		}
		return t.found[1].each(p, o.Special, e.addID, func(p piece) error {
			return walk(t.config.Cut, p, e.word)
		})
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.config.Name, err)
	}
	if o.BOS {
		e.ids = append(e.ids, t.config.After...)
	}
	if e.lost.Count > 0 {
		e.lost.At = max(0, strings.Index(text, e.missing))
		return e.ids, &e.lost
	}
	return e.ids, nil
}

// addID appends the id of an added token.
func (e *encoder) addID(a *Added) { e.ids = append(e.ids, a.ID) }

// replacement stands for ids outside the vocabulary.
const replacement = "\uFFFD"

// Decode gives the text of ids, bytes as they are: it is valid UTF-8 only where the tokens make it so.
// Control tokens give their names. An id outside the vocabulary gives U+FFFD.
func (t *Tokenizer) Decode(ids []int) string {
	var b strings.Builder
	for _, id := range ids {
		b.WriteString(t.piece(id))
	}
	return b.String()
}

// Text is the text that Encode made these ids of: Decode, without the space that Config.Normal or Config.Cut
// puts before what begins a text or follows an added token.
// Control tokens give their names with special, and nothing without.
func (t *Tokenizer) Text(ids []int, special bool) string {
	var b strings.Builder
	prefixed, begin := t.prefixed(), true
	for _, id := range ids {
		piece := t.piece(id)
		if prefixed && begin {
			piece = strings.TrimPrefix(piece, " ")
		}
		begin = t.Valid(id) && t.parts[id]
		if special || t.Kind(id) != Control {
			b.WriteString(piece)
		}
	}
	return b.String()
}

// prefixed says whether texts are encoded with a space before them.
func (t *Tokenizer) prefixed() bool {
	if t == nil {
		return false
	}
	const probe = "x"
	ids, err := t.Encode(probe, Options{})
	return err == nil && strings.HasPrefix(t.Decode(ids), " "+probe)
}

func (t *Tokenizer) piece(id int) string {
	if t.Valid(id) {
		return t.pieces[id]
	}
	return replacement
}

// Bytes are what a token stands for, nil where the id is outside the vocabulary.
func (t *Tokenizer) Bytes(id int) []byte {
	if !t.Valid(id) {
		return nil
	}
	return []byte(t.pieces[id])
}

// Valid says whether the id is one of the vocabulary's.
func (t *Tokenizer) Valid(id int) bool { return id >= 0 && id < t.VocabSize() }

// VocabSize is the number of tokens.
func (t *Tokenizer) VocabSize() int {
	if t == nil {
		return 0
	}
	return len(t.config.Tokens)
}

// Kind says what a token is for, Undefined where the id is outside the vocabulary.
func (t *Tokenizer) Kind(id int) Kind {
	switch {
	case !t.Valid(id):
		return Undefined
	case t.config.Kinds == nil:
		return Normal
	}
	return t.config.Kinds[id]
}

// ID finds a token by its text as the vocabulary writes it: "<|im_end|>", "Ġthe".
func (t *Tokenizer) ID(text string) (id int, ok bool) {
	if t == nil {
		return None, false
	}
	for _, ids := range []map[string]int32{t.outside, t.ids} {
		if id, ok := ids[text]; ok {
			return int(id), true
		}
	}
	return None, false
}

// BOS is the token that starts a text, or None.
func (t *Tokenizer) BOS() int {
	if t == nil {
		return None
	}
	return t.config.BOS
}

// EOS is the token that ends a text, or None.
func (t *Tokenizer) EOS() int {
	if t == nil {
		return None
	}
	return t.config.EOS
}

// AddBOS says whether the model's file wants prompts to start with a token of its own, BOS as a rule.
func (t *Tokenizer) AddBOS() bool { return t != nil && len(t.config.Before) > 0 }

// Template is the model's chat template, in Jinja, or empty.
func (t *Tokenizer) Template() string {
	if t == nil {
		return ""
	}
	return t.config.Template
}

// Token is a token's text as the vocabulary writes it, "" where the id is outside the vocabulary.
func (t *Tokenizer) Token(id int) string {
	if !t.Valid(id) {
		return ""
	}
	return t.config.Tokens[id]
}
