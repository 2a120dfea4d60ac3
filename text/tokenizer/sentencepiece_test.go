package tokenizer_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"gpuscope/internal/wordingtest"
	"gpuscope/text/tokenizer"
)

// message is a protobuf message under construction.
type message []byte

func (m message) number(field, value uint64) message {
	return binary.AppendUvarint(binary.AppendUvarint(m, field<<3), value)
}

func (m message) bytes(field uint64, data []byte) message {
	return append(binary.AppendUvarint(binary.AppendUvarint(m, field<<3|2), uint64(len(data))), data...)
}

func (m message) float(field uint64, value float32) message {
	return binary.LittleEndian.AppendUint32(binary.AppendUvarint(m, field<<3|5), math.Float32bits(value))
}

func (m message) piece(text string, score float32, kind tokenizer.Kind) message {
	numbers := map[tokenizer.Kind]uint64{
		tokenizer.Normal: 1, tokenizer.Unknown: 2, tokenizer.Control: 3, tokenizer.UserDefined: 4,
		tokenizer.Byte: 6,
	}
	return m.bytes(1, message{}.bytes(1, []byte(text)).float(2, score).number(3, numbers[kind]))
}

// tinyModel is a SentencePiece model of a few pieces. trainer and normalizer hold the settings that are not
// the default.
func tinyModel(trainer, normalizer message) message {
	var m message
	m = m.piece("<unk>", 0, tokenizer.Unknown).piece("<s>", 0, tokenizer.Control).piece("</s>", 0,
		tokenizer.Control)
	m = m.piece("ab", -1, tokenizer.Normal).piece("▁ab", -2, tokenizer.Normal).piece("bc", -3,
		tokenizer.Normal)
	for _, letter := range []string{"▁", "a", "b", "c"} {
		m = m.piece(letter, -9, tokenizer.Normal)
	}
	m = m.piece("<tag>", 0, tokenizer.UserDefined).piece("xy", -0.5, tokenizer.Normal)
	return m.bytes(2, trainer).bytes(3, normalizer)
}

func bpe() message { return message{}.number(3, 2) }

func TestSentencePieceModelSaysWhatBecomesOfText(t *testing.T) {
	t.Parallel()
	whole := message{}.number(4, 0) // keep white space unchanged
	for name, c := range map[string]struct {
		normalizer message
		text       string
		want       string
	}{
		"highest score first":      {whole, "abc", "▁ab c"},
		"spaces":                   {whole, " ab  ", "▁ ▁ab ▁ ▁"},
		"spaces squeezed":          {nil, "  ab   ab ", "▁ab ▁ab"},
		"nothing but spaces":       {nil, "   ", ""},
		"no prefix":                {message{}.number(3, 0), "ab", "ab"},
		"unknown, fused":           {whole, "azzb", "▁ a <unk> b"},
		"characters that are none": {whole, "xyx", "▁ xy <unk>"},
		"user-defined":             {whole, "ab<tag>ab", "▁ab <tag> ab"},
		"control":                  {whole, "ab<s>ab", "▁ab <s> ▁ab"},
	} {
		config, err := tokenizer.ParseModel(tinyModel(bpe(), c.normalizer), "tiny")
		if err != nil {
			t.Fatal(err)
		}
		tok, err := tokenizer.NewBPE(config)
		if err != nil {
			t.Fatal(err)
		}
		if got := spelled(t, tok, c.text, tokenizer.Options{Special: true}); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
		if got := spelled(t, tok, "", tokenizer.Options{BOS: true}); got != "<s>" {
			t.Errorf("%s: an empty prompt gives %q", name, got)
		}
	}
}

func TestWrongSentencePieceModelIsNamed(t *testing.T) {
	t.Parallel()
	golden := wordingtest.New(t)
	good := tinyModel(bpe(), nil)
	for name, c := range map[string]struct {
		data []byte
		is   error
	}{
		"unigram": {tinyModel(nil, nil), tokenizer.ErrUnsupported},
		"normaliser": {
			tinyModel(bpe(), message{}.bytes(1, []byte("nmt_nfkc")).bytes(2, []byte{1})),
			tokenizer.ErrUnsupported,
		},
		"suffixes":    {tinyModel(bpe().number(24, 1), nil), tokenizer.ErrUnsupported},
		"empty":       {nil, nil},
		"cut":         {good[:len(good)/2], nil},
		"no tag":      {[]byte{0x80}, nil},
		"long":        {[]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f}, nil},
		"wire type":   {[]byte{0x0f, 0}, nil},
		"many pieces": {bytes.Repeat([]byte{0x0a, 0}, 1<<22+1), nil},
		"broken off":  {[]byte{0x0d, 0}, nil},
		"type":        {message{}.bytes(1, message{}.number(3, 9)), nil},
		"unknown id":  {tinyModel(bpe().number(40, 99), nil), nil},
	} {
		config, err := tokenizer.ParseModel(c.data, "tiny")
		if err == nil {
			_, err = tokenizer.NewBPE(config)
		}
		if c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: %v, want %v", name, err, c.is)
		}
		golden.Error(name, err)
	}
	config, err := tokenizer.ParseModel(tinyModel(bpe().number(41, math.MaxUint64), nil), "tiny")
	if err != nil || config.BOS != tokenizer.None {
		t.Errorf("no BOS: %v, BOS %d", err, config.BOS)
	} else if _, err := tokenizer.NewBPE(config); err != nil {
		t.Errorf("no BOS: %v", err)
	}
}
