package tokenizer_test

import (
	"encoding/json"
	"errors"
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

// Special tokens that only the files beside a vocabulary name get the next ids in the order of transformers:
// those of added_tokens_decoder, BOS, EOS, then the others. They are found in a text before it is split.
func TestSpecialTokensThatTheVocabularyLacksAreAdded(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"tokenizer_config.json": `{"pad_token": "<pad>", "eos_token": "<e>",
		"mask_token": {"content": "<mask>"}, "additional_special_tokens": ["<turn>", "<pad>", "a"],
		"added_tokens_decoder": {"9000": {"content": "<far>"},
			"7": {"content": "<near>", "special": true}}}`})
	tok, err := tokenizer.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	added := []string{"<near>", "<far>", "<e>", "<pad>", "<mask>", "<turn>"}
	n := tok.VocabSize() - len(added)
	for i, text := range added {
		ids, err := tok.Encode("b"+text+"b", tokenizer.Options{Special: true})
		if at := slices.Index(ids, n+i); err != nil || at < 0 || tok.Token(n+i) != text || len(ids)-at > 2 {
			t.Errorf("%s: %v, %v, want token %d", text, ids, err, n+i)
		}
	}
	if got := len(tok.Warnings()); got != len(added) {
		t.Errorf("%d warnings, want one for each of the %d tokens: %q", got, len(added), tok.Warnings())
	}
}

// A tokenizer.json that cannot encode text keeps its tokens, so the ends of a text are known.
func TestVocabularyThatIsRefusedKeepsItsEnds(t *testing.T) {
	t.Parallel()
	whole, err := json.Marshal(tinyJSON())
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(f map[string]any){
		"a pre-tokenizer": func(f map[string]any) { f["pre_tokenizer"] = map[string]any{"type": "Whatever"} },
		"a pattern": func(f map[string]any) {
			f["normalizer"] = map[string]any{
				"type": "Replace", "pattern": map[string]any{"Regex": "(?<=a+)b("}, "content": "",
			}
		},
		"a model": func(f map[string]any) {
			f["model"] = map[string]any{"type": "Unigram", "vocab": []any{}}
		},
		"dropout":     func(f map[string]any) { f["model"].(map[string]any)["dropout"] = 0.1 },
		"unknown":     func(f map[string]any) { f["model"].(map[string]any)["unk_token"] = "<none>" },
		"a processor": func(f map[string]any) { f["post_processor"] = map[string]any{"type": "Whatever"} },
	} {
		var f map[string]any
		if err := json.Unmarshal(whole, &f); err != nil {
			t.Fatal(err)
		}
		change(f)
		f["added_tokens"] = []any{map[string]any{"id": 600, "content": "<end>", "special": true}}
		data, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		tok, err := tokenizer.Open(folder(t, map[string]string{
			"tokenizer.json": string(data), "tokenizer_config.json": `{"eos_token": "<end>"}`,
		}))
		var refused *tokenizer.RefusedError
		if !errors.As(err, &refused) {
			t.Errorf("%s: %v, want a RefusedError", name, err)
		}
		ends := tok.Ends()
		if !slices.ContainsFunc(ends, func(e tokenizer.End) bool { return e.ID == 600 }) {
			t.Errorf("%s: ends %v, want token 600", name, ends)
		}
	}
}
