package tokenizer_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gpuscope/internal/wordingtest"
	"gpuscope/model/checkpoint/gguf"
	"gpuscope/text/tokenizer"
)

// sharedModel returns the path of a file among the test models.
func sharedModel(t testing.TB, name string) string {
	t.Helper()
	return shared(t, "models", name)
}

// shared returns the path of a file in the shared test data.
func shared(t testing.TB, folder, name string) string {
	t.Helper()
	path := filepath.Join("..", "..", "..", "shared", folder, name)
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the test data are missing: %v", err)
		}
		t.Skipf("the test data are missing: %v", err)
	}
	return path
}

func open(t testing.TB, name string) *tokenizer.Tokenizer {
	t.Helper()
	path := sharedModel(t, name)
	if !gguf.Is(path) {
		tok, err := tokenizer.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		return tok
	}
	file, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.New(file)
	if err = errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	return tok
}

func readJSON(t testing.TB, name string, into any) {
	t.Helper()
	data, err := os.ReadFile(sharedModel(t, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

// TestReferenceLibraryGivesTheSameIDs reads each vocabulary in each of its file formats. The goldens have no
// BOS. With a byte-level vocabulary they have U+FFFD where ours have the invalid bytes.
func TestReferenceLibraryGivesTheSameIDs(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]string{
		"gpt-2": ".tokenizer.json", "smollm": ".tokenizer.json", "llama-bpe": ".tokenizer.json",
		"qwen2": ".tokenizer.json", "llama-spm": ".tokenizer.model",
	} {
		var cases []struct {
			Text  *string
			Bytes []byte `json:"bytes_base64"`
			IDs   []int
		}
		readJSON(t, filepath.Join("tokenizers", name+".golden.json"), &cases)
		for _, form := range []string{".gguf", other} {
			t.Run(name+form, func(t *testing.T) {
				t.Parallel()
				tok := open(t, filepath.Join("tokenizers", name+form))
				valid := 0
				for _, c := range cases {
					text := string(c.Bytes)
					if c.Text != nil {
						text = *c.Text
					}
					ids, err := tok.Encode(text, tokenizer.Options{Special: true})
					if err != nil {
						t.Errorf("%q: %v", text, err)
						continue
					}
					if got := tok.Text(ids, true); got != text {
						t.Errorf("%q is decoded as %q", text, got)
					}
					if !utf8.ValidString(text) && name != "llama-spm" {
						continue
					}
					valid++
					if diff := cmp.Diff(c.IDs, ids, cmpopts.EquateEmpty()); diff != "" {
						t.Errorf("%q: %s", text, diff)
					}
				}
				if len(cases) != 160 || valid < 140 {
					t.Errorf("%d cases, %d of them compared", len(cases), valid)
				}
			})
		}
	}
}

func TestPromptsOfTheGoldenModels(t *testing.T) {
	t.Parallel()
	for model, golden := range map[string]string{
		"demo.gguf":                       "demo-golden.json",
		"smollm2-135m-instruct-q4_1.gguf": "smollm2-golden.json",
	} {
		tok := open(t, model)
		var file struct {
			Cases []struct {
				Prompt       string
				PromptTokens []int `json:"prompt_tokens"`
				NewTokens    []int `json:"new_tokens"`
				Text         string
			}
		}
		readJSON(t, golden, &file)
		if len(file.Cases) != 3 {
			t.Errorf("%s: %d cases, want 3", golden, len(file.Cases))
		}
		for _, c := range file.Cases {
			// The demo's file asks for BOS and SmolLM2's does not, and the goldens match that.
			ids, err := tok.Encode(c.Prompt, tokenizer.Options{Special: true, BOS: true})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.PromptTokens, ids); diff != "" {
				t.Errorf("%s: %q: %s", golden, c.Prompt, diff)
			}
			if c.Text != "" && tok.Decode(c.NewTokens) != c.Text {
				t.Errorf("%s: got %q, want %q", golden, tok.Decode(c.NewTokens), c.Text)
			}
		}
	}
}

func TestSpecialTokensOfTheGoldenModels(t *testing.T) {
	t.Parallel()
	demo, smol := open(t, "demo.gguf"), open(t, "smollm2-135m-instruct-q4_1.gguf")
	type facts struct {
		Size, BOS, EOS int
		AddBOS         bool
		Kind           tokenizer.Kind
	}
	of := func(t *tokenizer.Tokenizer) facts {
		return facts{t.VocabSize(), t.BOS(), t.EOS(), t.AddBOS(), t.Kind(0)}
	}
	if diff := cmp.Diff(facts{4096, 0, 0, true, tokenizer.Control}, of(demo)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(facts{49152, 1, 2, false, tokenizer.Control}, of(smol)); diff != "" {
		t.Error(diff)
	}
	if id, ok := smol.ID("<|im_end|>"); !ok || id != 2 || !smol.IsEnd(id) || !smol.IsEnd(0) || smol.IsEnd(1) {
		t.Errorf("<|im_end|> is %d, %v", id, ok)
	}
}

// TestByteThatThePublishedVocabularyLacks checks that the error names the byte and that the byte is not
// dropped.
func TestByteThatThePublishedVocabularyLacks(t *testing.T) {
	t.Parallel()
	smol := open(t, "smollm2-135m-instruct-q4_1.gguf")
	_, err := smol.Encode("end of\x04", tokenizer.Options{})
	if !wordingtest.Mentions(err, "6 0x04") {
		t.Errorf("got %v", err)
	}
}

func TestFoldersSayTheirSpecialTokens(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"llama3", "qwen2", "qwen3", "gemma3", "phi3"} {
		folder, file := open(t, filepath.Join("arch", name)), open(t, filepath.Join("arch", name, "tokenizer.json"))
		for _, tok := range []*tokenizer.Tokenizer{folder, file} {
			if tok.VocabSize() != 3000 || tok.BOS() != 0 || tok.EOS() != 2 || tok.AddBOS() {
				t.Errorf("%s: %d tokens, BOS %d EOS %d, %v", name, tok.VocabSize(), tok.BOS(), tok.EOS(),
					tok.AddBOS())
			}
		}
	}
}
