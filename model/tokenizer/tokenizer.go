// Package tokenizer turns text into token ids and back: byte-level BPE as GPT-2, Llama 3, Qwen and SmolLM use
// it, from the metadata of a GGUF file.
//
//	t, err := tokenizer.New(f)
//	ids, err := t.Encode("Once upon a time", tokenizer.Options{Special: true, BOS: true})
//	text := t.Decode(ids[1:])
//
// Encoding has three steps. Special tokens that are written in the text are cut out; a split rule (see
// splits) cuts the rest into words; the merges join the bytes of each word, lowest rank first. Tokens of a
// word never reach over its ends.
//
// Text is bytes. An invalid byte of UTF-8 counts as a symbol for the split rule and is encoded as itself, so
// that Decode(Encode(x)) == x for every string, valid or not. Other tokenizers put U+FFFD in place of such
// bytes, which loses them. A vocabulary that lacks a byte, as some published ones do, makes Encode return an
// error that names the byte; others drop it without a word.
package tokenizer

import (
	"errors"
	"fmt"
	"strings"
)

// ErrNoVocabulary says that the model file carries no vocabulary. The model runs all the same, on token ids.
var ErrNoVocabulary = errors.New("the model file has no vocabulary: give the prompt as token ids with gpuscope run --ids")

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

// Config is a byte-level BPE vocabulary as plain data, wherever it was read from.
type Config struct {
	// Tokens are the texts of the tokens by id. Normal tokens are written in the byte alphabet (see
	// ByteText), the others as they are.
	Tokens []string
	Kinds  []Kind      // by id; nil: all Normal
	Merges [][2]string // texts of the tokens that are joined, by falling priority
	// name of the split rule: "gpt-2", "smollm", "llama-bpe", "qwen2" or another name of one of these
	Split string
	// WholeWords says that a word that is a token by itself is that token, whatever the merges make of it.
	// (ignore_merges in tokenizer.json)
	WholeWords bool
	BOS, EOS   int   // token ids or None
	Ends       []int // further tokens at which generation ends (end of turn, end of message)
	AddBOS     bool  // prompts start with BOS
}

// Tokenizer encodes and decodes. It does not change after New; all methods may be called from any goroutine.
// A nil Tokenizer is a vocabulary of no tokens: Encode returns ErrNoVocabulary.
type Tokenizer struct {
	config Config
	ids    map[string]int32 // by text as in Config.Tokens
	pieces []string         // what each token stands for, in bytes
	words  map[string]int32 // by piece, only where config.WholeWords
	split  splitter
	bytes  [256]int32 // token of each byte, None where the vocabulary has none
	ranks  map[pair]int32
	joined []int32 // token that a merge gives, by rank
	// Tokens that are found where a text writes them out: of every text, and where Options.Special is set.
	always, marked specials
}

// NewBPE makes a tokenizer of a vocabulary.
func NewBPE(c Config) (*Tokenizer, error) {
	if len(c.Tokens) == 0 {
		return nil, ErrNoVocabulary
	}
	const most = 1 << 30 // ids are kept in 32 bits
	if len(c.Tokens) > most || len(c.Merges) > most {
		return nil,
			fmt.Errorf("%d tokens and %d merges, at most %d are possible", len(c.Tokens), len(c.Merges), most)
	}
	if c.Kinds != nil && len(c.Kinds) != len(c.Tokens) {
		return nil, fmt.Errorf("%d tokens but %d token types", len(c.Tokens), len(c.Kinds))
	}
	rule, err := findSplit(c.Split)
	if err != nil {
		return nil, err
	}
	for _, special := range append([]int{c.BOS, c.EOS}, c.Ends...) {
		if special != None && (special < 0 || special >= len(c.Tokens)) {
			return nil,
				fmt.Errorf("special token %d is outside the vocabulary of %d tokens", special, len(c.Tokens))
		}
	}
	if c.AddBOS && c.BOS == None {
		return nil, errors.New("prompts shall start with a BOS token, and there is none")
	}
	t := &Tokenizer{config: c, split: rule.next, ids: make(map[string]int32, len(c.Tokens))}
	for id, text := range c.Tokens {
		t.ids[text] = int32(id)
	}
	t.decodePieces()
	for b := range t.bytes {
		t.bytes[b] = None
		if id, ok := t.ids[ByteText(byte(b))]; ok {
			t.bytes[b] = id
		}
	}
	if err := t.readMerges(); err != nil {
		return nil, err
	}
	t.always, t.marked = t.findSpecials(UserDefined), t.findSpecials(UserDefined, Control, Unknown)
	return t, nil
}

// decodePieces writes down what each token stands for.
func (t *Tokenizer) decodePieces() {
	t.pieces = make([]string, len(t.config.Tokens))
	for id, text := range t.config.Tokens {
		t.pieces[id] = text
		if t.Kind(id) == Normal {
			t.pieces[id] = fromByteText(text)
		}
	}
	if t.config.WholeWords {
		t.words = make(map[string]int32, len(t.pieces))
		for id, piece := range t.pieces {
			if t.Kind(id) == Normal {
				t.words[piece] = int32(id)
			}
		}
	}
}

// Options says how text is encoded.
type Options struct {
	Special bool // control tokens written in the text ("<|im_end|>") are those tokens, not their letters
	BOS     bool // start with the BOS token, where the model's file says that prompts do
}

// Encode gives the ids of a text.
func (t *Tokenizer) Encode(text string, o Options) ([]int, error) {
	if t == nil {
		return nil, ErrNoVocabulary
	}
	e := encoder{t: t, ids: make([]int, 0, len(text)/3+2)}
	if o.BOS && t.config.AddBOS {
		e.ids = append(e.ids, t.config.BOS)
	}
	special := &t.always
	if o.Special {
		special = &t.marked
	}
	for at := 0; at < len(text); {
		from, to, id := special.next(text, at)
		for at < from {
			end := at + t.split(text[at:from])
			if unknown := e.word(text[at:end]); unknown >= 0 {
				at += unknown
				return nil,
					fmt.Errorf("byte %d of the text is %#02x, and the vocabulary has no token for it: leave it out, or give token ids with gpuscope run --ids", at, text[at])
			}
			at = end
		}
		if id != None {
			e.ids = append(e.ids, id)
		}
		at = to
	}
	return e.ids, nil
}

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
	if id, ok := t.ids[text]; ok {
		return int(id), true
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

// IsEnd says whether generation ends at this token: EOS, end of turn or end of message.
func (t *Tokenizer) IsEnd(id int) bool {
	if !t.Valid(id) {
		return false
	}
	for _, end := range t.config.Ends {
		if id == end {
			return true
		}
	}
	return id == t.config.EOS
}

// AddBOS says whether the model's file wants prompts to start with BOS.
func (t *Tokenizer) AddBOS() bool { return t != nil && t.config.AddBOS }
