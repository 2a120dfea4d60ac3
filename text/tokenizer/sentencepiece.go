package tokenizer

import (
	"encoding/binary"
	"fmt"
	"math"

	"gpuscope/internal/printable"
)

// ParseModel parses a SentencePiece model (tokenizer.model), a ModelProto of sentencepiece_model.proto. It
// supports BPE models without a table of text replacements. For any other model, the error names the
// unsupported feature and wraps ErrUnsupported.
func ParseModel(data []byte, name string) (Config, error) {
	m := spModel{
		kind: spUnigram, prefix: true, squeeze: true, escape: true, unknown: 0, bos: 1, eos: 2,
	}
	err := fields(data, func(f field) error {
		switch f.number {
		case 1:
			return m.piece(f.bytes)
		case 2:
			return fields(f.bytes, m.trainer)
		case 3:
			return fields(f.bytes, m.normalizer)
		}
		return nil
	})
	if err != nil {
		return Config{}, fmt.Errorf("%s: not a valid SentencePiece model: %w. Download the file again",
			name, err)
	}
	c, err := m.config(name)
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

// Values of TrainerSpec.ModelType.
const (
	spUnigram = 1
	spBPE     = 2
)

var spKinds = map[int]string{spUnigram: "unigram", spBPE: "BPE", 3: "word", 4: "char"}

// spKindOf maps the values of SentencePiece.Type to kinds of tokens.
var spKindOf = map[uint64]Kind{1: Normal, 2: Unknown, 3: Control, 4: UserDefined, 5: Unused, 6: Byte}

// spModel holds the parts of a SentencePiece model that this package uses.
type spModel struct {
	tokens            []string
	scores            []float32
	kinds             []Kind
	kind              int
	fallback, suffix  bool
	unknown, bos, eos int
	rules             string // name of the normalizer
	rewrites          bool   // the normalizer has a table of text replacements
	// These fields state how the model treats spaces. prefix inserts a space before each text. squeeze
	// removes spaces at both ends and shortens runs of spaces. escape writes spaces as ▁.
	prefix, squeeze, escape bool
}

func (m *spModel) piece(data []byte) error {
	text, score, kind := "", float32(0), uint64(1)
	err := fields(data, func(f field) error {
		switch f.number {
		case 1:
			text = string(f.bytes)
		case 2:
			score = math.Float32frombits(uint32(f.value))
		case 3:
			kind = f.value
		}
		return nil
	})
	if len(m.tokens) == maxTokens {
		return fmt.Errorf("more than %d pieces", maxTokens)
	}
	if _, ok := spKindOf[kind]; !ok && err == nil {
		return fmt.Errorf("piece %d has type %d, but the type must be 1 to 6", len(m.tokens), kind)
	}
	m.tokens, m.scores = append(m.tokens, text), append(m.scores, score)
	m.kinds = append(m.kinds, spKindOf[kind])
	return err
}

func (m *spModel) trainer(f field) error {
	switch f.number {
	case 3:
		m.kind = int(f.value)
	case 24:
		m.suffix = f.value != 0
	case 35:
		m.fallback = f.value != 0
	case 40:
		m.unknown = f.id()
	case 41:
		m.bos = f.id()
	case 42:
		m.eos = f.id()
	}
	return nil
}

func (m *spModel) normalizer(f field) error {
	switch f.number {
	case 1:
		m.rules = string(f.bytes)
	case 2:
		m.rewrites = len(f.bytes) > 0
	case 3:
		m.prefix = f.value != 0
	case 4:
		m.squeeze = f.value != 0
	case 5:
		m.escape = f.value != 0
	}
	return nil
}

func (m *spModel) config(name string) (Config, error) {
	switch {
	case len(m.tokens) == 0:
		return Config{}, fmt.Errorf("not a SentencePiece model: it has no pieces")
	case m.kind != spBPE:
		return Config{},
			fmt.Errorf("a SentencePiece model of type %d (%s) is not supported yet, only BPE: %w",
				m.kind, spKinds[m.kind], ErrUnsupported)
	case m.rewrites:
		return Config{}, fmt.Errorf("the normalizer %q of the SentencePiece model is not supported yet; only identity is supported: %w",
			printable.Short(m.rules, 40), ErrUnsupported)
	case m.suffix || !m.escape:
		return Config{}, fmt.Errorf("a SentencePiece model is supported only if it puts spaces before words and writes them as %s: %w",
			spaceSign, ErrUnsupported)
	}
	c := Config{
		Name: name, Tokens: m.tokens, Scores: m.scores, Kinds: m.kinds, Characters: true, Space: spaceSign,
		ByteFallback: m.fallback, Unknown: m.unknown, FuseUnknown: true,
		Normal: spaceSteps(m.squeeze, m.prefix), Added: addedByKind(m.tokens, m.kinds),
	}
	c.BOS, c.EOS = c.within(m.bos, "bos_id"), c.within(m.eos, "eos_id")
	for i := range c.Added { // the texts of pieces are already normalized
		c.Added[i].Normalized = !c.Added[i].Special
	}
	if c.BOS != None { // the file does not state this, but Llama 2, Mistral and Gemma need BOS
		c.Before = []int{c.BOS}
	}
	return c, nil
}

// field is one field of a protobuf message. Its wire type decides whether value or bytes is set.
type field struct {
	number uint64
	value  uint64 // content of a varint or a number of fixed size
	bytes  []byte // content of a length-delimited field
}

// id returns the field as a token id, or None if the value is negative.
func (f field) id() int {
	if f.value > math.MaxInt32 {
		return None
	}
	return int(f.value)
}

// fields calls each() for every field of a message.
func fields(data []byte, each func(field) error) error {
	for at := 0; at < len(data); {
		var f field
		tag, n := binary.Uvarint(data[at:])
		if n <= 0 {
			return fmt.Errorf("the message has no valid field tag at byte %d", at)
		}
		at += n
		f.number = tag >> 3
		width := 0
		switch tag & 7 {
		case 0:
			f.value, width = binary.Uvarint(data[at:])
		case 1:
			if width = 8; len(data)-at >= width {
				f.value = binary.LittleEndian.Uint64(data[at:])
			}
		case 2:
			size, n := binary.Uvarint(data[at:])
			if n <= 0 || size > uint64(len(data)-at-n) {
				return fmt.Errorf("field %d at byte %d is longer than the message of %d bytes", f.number,
					at, len(data))
			}
			f.bytes, width = data[at+n:at+n+int(size)], n+int(size)
		case 5:
			if width = 4; len(data)-at >= width {
				f.value = uint64(binary.LittleEndian.Uint32(data[at:]))
			}
		default:
			return fmt.Errorf("field %d at byte %d has the unknown wire type %d", f.number, at, tag&7)
		}
		if width <= 0 || width > len(data)-at {
			return fmt.Errorf("field %d at byte %d is truncated", f.number, at)
		}
		if err := each(f); err != nil {
			return err
		}
		at += width
	}
	return nil
}
