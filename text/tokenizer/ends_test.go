package tokenizer_test

import (
	"slices"
	"testing"

	"gpuscope/model/checkpoint/gguf/gguftest"
	"gpuscope/text/tokenizer"
)

// In addition to the tokens that the file declares, tokens with certain names end a text, whatever their
// type. The exceptions are those of llama.cpp.
func TestEndsByNameFollowLlamaCpp(t *testing.T) {
	t.Parallel()
	const stated = "a"
	for name, c := range map[string]struct {
		tokens []string
		keys   map[string]any
		want   []string
	}{
		"chat":            {[]string{"<|im_start|>", "<|im_end|>", "<|endoftext|>"}, nil, []string{"<|im_end|>", "<|endoftext|>"}},
		"Llama 3":         {[]string{"<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"}, nil, []string{"<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"}},
		"gpt-oss":         {[]string{"<|end|>", "<|return|>", "<|call|>"}, nil, []string{"<|return|>", "<|call|>"}},
		"half of gpt-oss": {[]string{"<|end|>", "<|return|>"}, nil, []string{"<|end|>", "<|return|>"}},
		"solar":           {[]string{"<|end|>", "<|calls|>", "<|flush|>"}, nil, []string{"<|calls|>", "<|flush|>"}},
		"Gemma 4":         {[]string{"</s>", "<turn|>", "<|tool_response>"}, nil, []string{"<turn|>", "<|tool_response>"}},
		"fill in":         {[]string{"<|fim_pad|>", "<|file_sep|>", "<|fim_prefix|>"}, nil, []string{"<|fim_pad|>", "<|file_sep|>"}},
		"fill in by key": {
			[]string{"<|fim_pad|>", "x"},
			map[string]any{"tokenizer.ggml.fim_pad_token_id": 2},
			[]string{"x"},
		},
	} {
		for _, kind := range []tokenizer.Kind{tokenizer.Normal, tokenizer.Control, tokenizer.UserDefined} {
			tokens := append([]string{stated}, c.tokens...)
			kinds := slices.Repeat([]int32{int32(kind)}, len(tokens))
			b := gguftest.New()
			b.Tokenizer("gpt-2", tokens, kinds, []string{})
			b.Set("tokenizer.ggml.eos_token_id", 0)
			for key, value := range c.keys {
				b.Set(key, value)
			}
			tok, err := tokenizer.New(parse(t, b))
			if err != nil {
				t.Fatal(err)
			}
			got := []string{}
			for _, e := range tok.Ends() {
				got = append(got, e.Text)
				if !tok.IsEnd(e.ID) {
					t.Errorf("%s: %s does not end a text", name, e.Text)
				}
			}
			if want := append([]string{stated}, c.want...); !slices.Equal(got, want) {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
	}
}
