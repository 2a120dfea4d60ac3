package tokenizer_test

import (
	"strings"
	"testing"

	"gpuscope/model/tokenizer"
)

// FuzzRoundTrip holds that no byte is lost, by any split rule, with and without special tokens.
func FuzzRoundTrip(f *testing.F) {
	for _, text := range []string{
		"", "Once upon a time", "aaaa a  aa\n\n", "\xff\xc3\x28 é 🙂",
		"<s>a</s><|a|><|b|>== Ġ!", "it'S 1234 \t\r\n", strings.Repeat("ab", 300),
	} {
		f.Add(text)
	}
	var tokenizers []*tokenizer.Tokenizer
	for _, split := range []string{"gpt-2", "smollm", "llama-bpe", "qwen2", "gpt-4o"} {
		config := small()
		config.Cut = rule(split)
		config.WholeWords = split == "llama-bpe"
		tokenizers = append(tokenizers, mustNew(f, config))
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, tok := range tokenizers {
			for _, special := range []bool{false, true} {
				ids, err := tok.Encode(text, tokenizer.Options{Special: special})
				if err != nil {
					t.Fatal(err)
				}
				if got := tok.Decode(ids); got != text {
					t.Fatalf("%q comes back as %q", text, got)
				}
			}
		}
	})
}
