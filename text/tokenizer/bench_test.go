package tokenizer_test

import (
	"strings"
	"testing"

	"gpuscope/model/checkpoint/gguf"
	"gpuscope/text/tokenizer"
)

const mebibyte = 1 << 20

// BenchmarkEncode encodes 1 MiB with a byte-level vocabulary (SmolLM2's) and a SentencePiece vocabulary. The
// texts are prose, one endless word, and white space.
func BenchmarkEncode(b *testing.B) {
	for name, file := range map[string]string{
		"bytes": "smollm2-135m-instruct-q4_1.gguf", "characters": "tokenizers/llama-spm.gguf",
	} {
		b.Run(name, func(b *testing.B) { encodeAll(b, open(b, file)) })
	}
}

func encodeAll(b *testing.B, tok *tokenizer.Tokenizer) {
	const prose = "There was once a woman who wished for a very little child; but she did not know where she should procure one. In 1835 she said: \"I'll pay!\"\n\n"
	for _, c := range []struct{ name, part string }{
		{"prose", prose},
		{"word", "therewasonceawomanwhowishedforaverylittlechildbutshedidnotknow"},
		{"same", "a"},
		{"spaces", " "},
		{"marks", "<"},
	} {
		text := strings.Repeat(c.part, mebibyte/len(c.part))
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := tok.Encode(text, tokenizer.Options{Special: true}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkNew reads a vocabulary of 49,152 tokens.
func BenchmarkNew(b *testing.B) {
	f, err := gguf.Open(sharedModel(b, "smollm2-135m-instruct-q4_1.gguf"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	for b.Loop() {
		if _, err := tokenizer.New(f); err != nil {
			b.Fatal(err)
		}
	}
}
