// Package tokenizer converts text to token ids and back. It implements byte-level BPE, which GPT-2, Llama 3,
// Qwen and SmolLM use. It also implements SentencePiece BPE over characters, which Llama 2, Mistral and Gemma
// use. A vocabulary is read from the metadata of a GGUF file, from a tokenizer.json, or from a SentencePiece
// model.
//
//	t, err := tokenizer.Open("tokenizer.json")
//	ids, err := t.Encode("Once upon a time", tokenizer.Options{Special: true, BOS: true})
//	text := t.Decode(ids[1:])
//
// Encoding has four steps. First, added tokens are found in the text. Second, the text between them is
// normalized as the vocabulary requires, for example by writing spaces as ▁. Third, split rules (see
// splits) split the text into words. Fourth, merges join the bytes or characters of each word in the order
// of their priority. A token never crosses the end of a word.
//
// Text may contain any bytes. An invalid byte of UTF-8 counts as a symbol in the split rules and is encoded
// as this byte. Therefore Text(Encode(x)) == x for every string, valid or not, if the vocabulary has a
// token for each byte. Other tokenizers replace such bytes by U+FFFD, which loses them.
package tokenizer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrNoVocabulary means that the model has no vocabulary. Such a model still runs on token ids.
var ErrNoVocabulary = errors.New(
	"no vocabulary. Use gpuscope run --tokenizer to name one, or --ids to give token ids")

// ErrUnsupported means that this package does not support the file's kind of tokenizer. The model still
// runs on token ids.
var ErrUnsupported = errors.New("give the prompt as token ids with gpuscope run --ids")

// Kind is the purpose of a token. The numbers are those of GGUF.
type Kind int

// The kinds of tokens.
const (
	Undefined Kind = iota
	Normal         // a piece of text
	Unknown        // represents text that the vocabulary cannot encode
	// Control tokens control the model, such as <|im_end|>. The same text in a prompt becomes this token
	// only if Options.Special is set.
	Control
	UserDefined // a text that always becomes a single token
	Unused
	Byte // a single byte in a SentencePiece vocabulary, such as <0x0A>
)

var kindNames = [...]string{"undefined", "normal", "unknown", "control", "user-defined", "unused", "byte"}

// String returns the name of the kind.
func (k Kind) String() string {
	if k < 0 || int(k) >= len(kindNames) {
		return fmt.Sprintf("kind %d", int(k))
	}
	return kindNames[k]
}

// None means that there is no token. BOS and EOS are None if the file does not name them.
const None = -1

// Config is a BPE vocabulary from any source.
type Config struct {
	Name string // name of the file, for errors of Encode
	// Tokens lists the texts of the tokens by id, as the vocabulary writes them. Added tokens are listed
	// with their literal text.
	Tokens []string
	// Alphabet means that Tokens are written in the byte alphabet (see ByteText). Otherwise Tokens are
	// written literally, except that a space is written as Space.
	Alphabet bool
	Space    string
	Kinds    []Kind // kind of each token by id; nil: all Normal
	// Characters means that the initial symbols are characters, as in SentencePiece. Otherwise they are
	// bytes, and Tokens are written in the byte alphabet.
	Characters bool
	// Merges lists the pairs of tokens that are merged, in order of decreasing priority. If Scores is set
	// instead, any two neighbors are merged if their joined text is a token. The token with the highest score
	// is merged first.
	Merges [][2]string
	Scores []float32 // score of each token by id; nil if Merges is used
	// ByteFallback means that a character without a token is encoded as the tokens of its bytes, such as
	// <0x0A>.
	ByteFallback bool
	Unknown      int  // token for text that has no other token, or None
	FuseUnknown  bool // encode consecutive unknown text as a single unknown token
	// Added lists the tokens that are found before all other steps. If Added is nil, the control, unknown and
	// user-defined tokens in Kinds are used.
	Added []Added
	// Normal holds the steps that normalize a text without splitting it. Cut holds the steps that then split
	// the text into words.
	Normal, Cut []Step
	// WholeWords means that a word whose text is a token becomes this token without merges. In tokenizer.json
	// the key is ignore_merges.
	WholeWords bool
	BOS, EOS   int // token ids or None
	Ends       []End
	// Before holds the tokens that the file requires at the start of a prompt, usually BOS. After holds the
	// tokens at the end, usually EOS.
	Before, After []int
	// Template is the chat template in Jinja, or empty.
	Template string
	Special  SpecialTokens // special tokens that the files name, for the template
	Warnings []string      // see defects.go
}

// Tokenizer encodes and decodes text. It is immutable, so all methods may be called from any goroutine. A
// nil Tokenizer is an empty vocabulary: Encode returns ErrNoVocabulary.
type Tokenizer struct {
	config  Config
	refused error            // reason why text cannot be encoded; nil if it can be
	ids     map[string]int32 // token ids by text as in Config.Tokens, except the tokens in `outside`
	outside map[string]int32 // ids of added tokens outside of the vocabulary, by text
	pieces  []string         // the bytes that each token represents
	words   map[string]int32 // token ids by whole word; only if config.WholeWords is set
	bytes   [256]int32       // token id of each byte, or None
	merges  map[pair]joint
	scored  map[string]joint // merges by the joined text; only if Config.Scores is set
	longest int              // length in bytes of the longest text in `scored`
	// found has two finders for added tokens. found[0] searches the original text. found[1] searches the text
	// to which Config.Normal has been applied.
	found [2]*finder
	parts map[int]bool // added tokens that are found in the original text
}

// NewBPE returns the tokenizer of a vocabulary. If the error is a RefusedError or ErrNoVocabulary, the
// tokenizer cannot encode text, but its other methods work as far as the vocabulary is known.
func NewBPE(c Config) (*Tokenizer, error) {
	if len(c.Tokens) == 0 {
		return newTokenizer(c, ErrNoVocabulary)
	}
	return newTokenizer(c, nil)
}

// newTokenizer returns the tokenizer of a vocabulary. `err` is the error of reading the vocabulary, or nil.
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

// make builds the tables for decoding and encoding. If it returns an error, the tokenizer can decode but not
// encode.
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

// maxTokens is the maximum number of tokens or merges of a vocabulary. Published vocabularies have at most
// half a million.
const maxTokens = 1 << 22

// checkTokens returns an error if the tokens are invalid.
func (c *Config) checkTokens() error {
	switch n := len(c.Tokens); {
	case n > maxTokens || len(c.Merges) > maxTokens:
		return fmt.Errorf("the vocabulary has %d tokens and %d merges, but the maximum of each is %d",
			n, len(c.Merges), maxTokens)
	case c.Kinds != nil && len(c.Kinds) != n:
		return fmt.Errorf("the vocabulary has %d tokens, but the list of token types has %d entries",
			n, len(c.Kinds))
	}
	return nil
}

// check returns an error if the settings for encoding are invalid.
func (c *Config) check() error {
	n := len(c.Tokens)
	if c.Scores != nil && len(c.Scores) != n {
		return fmt.Errorf("the vocabulary has %d tokens, but the list of scores has %d entries",
			n, len(c.Scores))
	}
	special := []int{c.BOS, c.EOS, c.Unknown}
	for _, a := range c.Added {
		special = append(special, a.ID)
	}
	for _, id := range special {
		if id != None && (id < 0 || id >= n) {
			return fmt.Errorf("the id %d of a special token is outside the vocabulary of %d tokens", id, n)
		}
	}
	for _, id := range slices.Concat(c.Before, c.After) {
		if id == None {
			return errors.New("the tokenizer starts prompts with BOS or ends them with EOS, but the vocabulary has no such token")
		}
		if id < 0 || id >= n {
			return fmt.Errorf("the id %d of a special token is outside the vocabulary of %d tokens", id, n)
		}
	}
	return checkSteps(slices.Concat(c.Normal, c.Cut))
}

// decodePieces computes the bytes that each token represents.
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
		// User-defined tokens are written literally, even if all their characters are in the byte alphabet.
		if c.WholeWords && inAlphabet && (kind == Normal || kind == UserDefined && bytes == text) {
			t.words[bytes] = int32(id)
		}
	}
}

// Options selects how text is encoded.
type Options struct {
	Special bool // encode control tokens in the text, such as "<|im_end|>", as tokens and not as plain text
	// BOS adds the tokens that the model's file requires at the start and the end of a prompt.
	BOS bool
	// Continues means that the text follows text that is already encoded. The prefix that some vocabularies
	// insert before a text, such as the space of SentencePiece, is then omitted.
	Continues bool
}

// LostError means that a part of a text cannot be encoded. The vocabulary has neither a token for this part
// nor an unknown token.
type LostError struct {
	At    int  // index of the first lost byte
	Byte  byte // value of the first lost byte
	Count int  // number of lost bytes
}

func (e *LostError) Error() string {
	return fmt.Sprintf("the vocabulary has no token for the byte at position %d of the text, which has the value %#02x. Remove the byte, or give token ids with gpuscope run --ids", e.At, e.Byte)
}

// maxText is the maximum length of a text in bytes, because positions are stored in 32 bits.
const maxText = 1 << 29

// Encode returns the token ids of a text. If the error is a *LostError, the ids cover all other parts of the
// text. Reference tokenizers drop the lost bytes without an error.
func (t *Tokenizer) Encode(text string, o Options) ([]int, error) {
	if t == nil {
		return nil, ErrNoVocabulary
	}
	if t.refused != nil {
		return nil, t.refused
	}
	if len(text) > maxText {
		return nil, fmt.Errorf("the text has %d bytes, but the maximum is %d. Split the text",
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

func (e *encoder) addID(a *Added) { e.ids = append(e.ids, a.ID) }

// replacement is the text of ids outside the vocabulary.
const replacement = "\uFFFD"

// Decode returns the text of ids. The text is valid UTF-8 only if the bytes of the tokens are. A control
// token decodes to its name, and an id outside the vocabulary to U+FFFD.
func (t *Tokenizer) Decode(ids []int) string {
	var b strings.Builder
	for _, id := range ids {
		b.WriteString(t.piece(id))
	}
	return b.String()
}

// Text returns the text from which Encode produced the ids. Unlike Decode, Text omits the space that
// Config.Normal or Config.Cut inserts at the beginning of a text and after an added token. Control tokens
// decode to their names if `special` is set, otherwise to nothing.
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

// prefixed reports whether Encode inserts a space before a text.
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

// Bytes returns the bytes that a token represents, or nil if the id is outside the vocabulary.
func (t *Tokenizer) Bytes(id int) []byte {
	if !t.Valid(id) {
		return nil
	}
	return []byte(t.pieces[id])
}

// Valid reports whether an id is in the vocabulary.
func (t *Tokenizer) Valid(id int) bool { return id >= 0 && id < t.VocabSize() }

// VocabSize returns the number of tokens.
func (t *Tokenizer) VocabSize() int {
	if t == nil {
		return 0
	}
	return len(t.config.Tokens)
}

// Kind returns the kind of a token, or Undefined if the id is outside the vocabulary.
func (t *Tokenizer) Kind(id int) Kind {
	switch {
	case !t.Valid(id):
		return Undefined
	case t.config.Kinds == nil:
		return Normal
	}
	return t.config.Kinds[id]
}

// ID returns the id of the token with the given text. The text must be written as in the vocabulary, such as
// "<|im_end|>" or "Ġthe".
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

// BOS returns the token that starts a text, or None.
func (t *Tokenizer) BOS() int {
	if t == nil {
		return None
	}
	return t.config.BOS
}

// EOS returns the token that ends a text, or None.
func (t *Tokenizer) EOS() int {
	if t == nil {
		return None
	}
	return t.config.EOS
}

// AddBOS reports whether the model's file requires prompts to start with a special token, usually BOS.
func (t *Tokenizer) AddBOS() bool { return t != nil && len(t.config.Before) > 0 }

// Template returns the model's chat template in Jinja, or "".
func (t *Tokenizer) Template() string {
	if t == nil {
		return ""
	}
	return t.config.Template
}

// Token returns a token's text as the vocabulary writes it, or "" if the id is outside the vocabulary.
func (t *Tokenizer) Token(id int) string {
	if !t.Valid(id) {
		return ""
	}
	return t.config.Tokens[id]
}
