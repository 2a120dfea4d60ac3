package tokenizer

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// familyText has what the rules of today's families treat differently: combining marks, capitals inside
// words, contractions of capitals, slashes before a line break, a script with vowel signs, and numbers.
const familyText = "e\u0301te\u0301 helloWorld THE'LL x/y//\n हिन्दी 2026:"

// families lists split rules with the words of familyText. The words are those that Python's module regex
// finds with the pattern of a published tokenizer.json.
var families = map[string][]string{
	"qwen2": { // Qwen 3, and the other families of 2025 that use its rule
		"e", "\u0301te", "\u0301", " helloWorld", " THE", "'LL", " x", "/y", "//\n", " ह", "िन", "्द", "ी", " ", "2", "0",
		"2", "6", ":",
	},
	"qwen35": { // Qwen 3.5 to 3.8
		"e\u0301te\u0301", " helloWorld", " THE", "'LL", " x", "/y", "//\n", " हिन्दी", " ", "2", "0", "2", "6", ":",
	},
	"gpt-4o": { // gpt-oss
		"e\u0301te\u0301", " hello", "World", " THE'LL", " x", "/y", "//\n", " हिन्दी", " ", "202", "6", ":",
	},
	"tekken": { // Ministral 3
		"e\u0301te\u0301", " hello", "World", " THE", "'LL", " x", "/y", "//\n", " हिन्दी", " ", "2", "0", "2", "6", ":",
	},
}

func TestFamiliesSplitAsTheirPatternsDo(t *testing.T) {
	t.Parallel()
	for name, want := range families {
		steps, err := SplitRule(name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, wordsOf(t, steps, familyText)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// A folder of these families has a tokenizer.json with the pattern and a ByteLevel component.
func TestFoldersOfFamiliesSplitAsFilesDo(t *testing.T) {
	t.Parallel()
	for name, want := range families {
		rule, err := findSplit(name)
		if err != nil {
			t.Fatal(err)
		}
		type object = map[string]any
		vocab := object{}
		for b := range 256 {
			vocab[ByteText(byte(b))] = b
		}
		split := object{
			"type": "Split", "pattern": object{"Regex": rule.patterns[0]}, "behavior": "Isolated",
			"invert": false,
		}
		bytes := object{
			"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false,
		}
		data, err := json.Marshal(object{
			"pre_tokenizer": object{"type": "Sequence", "pretokenizers": []object{split, bytes}},
			"model":         object{"type": "BPE", "vocab": vocab, "merges": []string{}},
			"decoder":       object{"type": "ByteLevel"},
		})
		if err != nil {
			t.Fatal(err)
		}
		c, err := ParseJSON(data, name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, wordsOf(t, c.Cut, familyText)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func wordsOf(t *testing.T, steps []Step, text string) (words []string) {
	t.Helper()
	if err := walk(steps, piece{text: text}, func(w string) error {
		words = append(words, w)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return words
}

// A tokenizer.json of Gemma 4 writes spaces as ▁ before it merges characters. Bytes without a character are
// tokens such as <0xC3>.
func TestFolderOfGemma4MergesCharacters(t *testing.T) {
	t.Parallel()
	type object = map[string]any
	data, err := json.Marshal(object{
		"added_tokens": []object{
			{"id": 0, "content": "<bos>", "special": true}, {"id": 1, "content": "<|turn>", "special": true},
		},
		"normalizer": object{"type": "Replace", "pattern": object{"String": " "}, "content": "▁"},
		"pre_tokenizer": object{
			"type": "Split", "pattern": object{"String": " "}, "behavior": "MergedWithPrevious",
			"invert": false,
		},
		"decoder": object{"type": "Sequence", "decoders": []object{
			{"type": "Replace", "pattern": object{"String": "▁"}, "content": " "},
			{"type": "ByteFallback"},
			{"type": "Fuse"},
		}},
		"model": object{
			"type": "BPE", "byte_fallback": true, "fuse_unk": true, "unk_token": "<unk>",
			"vocab": object{
				"<bos>": 0, "<|turn>": 1, "<unk>": 2, "▁": 3, "a": 4, "b": 5, "ab": 6, "▁ab": 7, "\n": 8,
				"<0xC3>": 9, "<0xBC>": 10,
			},
			"merges": [][]string{{"a", "b"}, {"▁", "ab"}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := ParseJSON(data, "gemma4")
	if err != nil {
		t.Fatal(err)
	}
	tok, err := NewBPE(c)
	if err != nil {
		t.Fatal(err)
	}
	const text = "<|turn>ab ab\nü ab"
	ids, err := tok.Encode(text, Options{Special: true})
	if diff := cmp.Diff([]int{1, 6, 7, 8, 9, 10, 7}, ids); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if got := tok.Decode(ids); got != text {
		t.Errorf("decoded as %q, want %q", got, text)
	}
}
