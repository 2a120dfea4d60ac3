package tokenizer_test

import (
	"maps"
	"slices"
	"testing"

	"gpuscope/model/checkpoint/gguf/gguftest"
	"gpuscope/text/tokenizer"
)

func TestSpecialTokensOfAFolderHaveTheirNames(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"special_tokens_map.json": `{"pad_token": "old", "mask_token": {"content": "<mask>"}}`,
		"tokenizer_config.json": `{"bos_token": "<s>", "pad_token": "<pad>", "add_bos_token": false, "unk_token": null,
			"additional_special_tokens": ["<a>", {"content": "<b>"}],
			"extra_special_tokens": {"image_token": "<image>"}}`,
	})
	tok, err := tokenizer.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := tok.SpecialTokens()
	want := map[string]string{"bos_token": "<s>", "pad_token": "<pad>", "mask_token": "<mask>", "image_token": "<image>"}
	if !maps.Equal(got.Named, want) || !slices.Equal(got.Extra, []string{"<a>", "<b>"}) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestSpecialTokensOfGGUFHaveTheirNames(t *testing.T) {
	t.Parallel()
	b := gguftest.New()
	b.Set("tokenizer.ggml.model", "llama")
	b.Set("tokenizer.ggml.tokens", []string{"<unk>", "<s>", "</s>", "<pad>", "<sep>"})
	b.Set("tokenizer.ggml.scores", make([]float32, 5))
	b.Set("tokenizer.ggml.unknown_token_id", uint32(0))
	b.Set("tokenizer.ggml.padding_token_id", uint32(3))
	b.Set("tokenizer.ggml.seperator_token_id", uint32(4))
	b.Set("tokenizer.ggml.mask_token_id", uint32(99)) // outside the vocabulary
	tok, err := tokenizer.New(parse(t, b))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>", "sep_token": "<sep>",
	}
	if got := tok.SpecialTokens(); !maps.Equal(got.Named, want) || got.Extra != nil {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestTextThatContinuesHasNoFirstSpace(t *testing.T) {
	t.Parallel()
	config, err := tokenizer.ParseModel(tinyModel(bpe(), nil), "tiny")
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.NewBPE(config)
	if err != nil {
		t.Fatal(err)
	}
	for continues, want := range map[bool]string{false: " ab", true: "ab"} {
		ids, err := tok.Encode("ab", tokenizer.Options{Continues: continues})
		if got := tok.Decode(ids); got != want || err != nil {
			t.Errorf("continues %v: %q, %v, want %q", continues, got, err, want)
		}
	}
}
