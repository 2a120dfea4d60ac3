package tokenizer_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"gpuscope/internal/wordingtest"
	"gpuscope/text/tokenizer"
)

// object is a JSON object under construction.
type object = map[string]any

// tinyJSON returns a tokenizer.json with the letters a to d, the space sign, bytes and three merges.
func tinyJSON() object {
	vocab := object{"<unk>": 0, "<s>": 1, "</s>": 2}
	for i, text := range []string{"▁", "a", "b", "c", "d", "ab", "▁ab", "abc", "Ġ", "!", "Ġa"} {
		vocab[text] = 3 + i
	}
	return object{
		"added_tokens": []object{
			{"id": 0, "content": "<unk>", "special": true},
			{"id": 1, "content": "<s>", "special": true},
			{"id": 2, "content": "</s>", "special": true},
		},
		"normalizer": nil, "pre_tokenizer": nil, "post_processor": nil,
		"model": object{
			"type": "BPE", "vocab": vocab, "unk_token": "<unk>",
			"merges": []any{"a b", "▁ ab", "ab c", "Ġ a"},
		},
	}
}

// parseJSON makes a tokenizer from tinyJSON with changes. A key of changes is a key of the file, or of its
// model if it begins with "model.".
func parseJSON(t testing.TB, changes object) (*tokenizer.Tokenizer, error) {
	t.Helper()
	file := tinyJSON()
	for key, value := range changes {
		if inner, ok := strings.CutPrefix(key, "model."); ok {
			file["model"].(object)[inner] = value
		} else {
			file[key] = value
		}
	}
	data, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	c, err := tokenizer.ParseJSON(data, "tiny.json")
	if err != nil {
		return nil, err
	}
	return tokenizer.NewBPE(c)
}

// spelled returns the tokens of a text, as the vocabulary writes them.
func spelled(t testing.TB, tok *tokenizer.Tokenizer, text string, o tokenizer.Options) string {
	t.Helper()
	ids, err := tok.Encode(text, o)
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, id := range ids {
		words = append(words, tok.Token(id))
	}
	return strings.Join(words, " ")
}

func added(content string, flags ...string) []object {
	a := object{"id": 20, "content": content}
	for _, f := range flags {
		a[f] = true
	}
	return []object{a}
}

func sequence(of string, parts ...object) object { return object{"type": "Sequence", of: parts} }

var (
	prefix    = object{"type": "Prepend", "prepend": "▁"}
	signs     = object{"type": "Replace", "pattern": object{"String": " "}, "content": "▁"}
	llama2    = sequence("normalizers", prefix, signs)
	byteLevel = object{"type": "ByteLevel", "add_prefix_space": false, "use_regex": true}
)

// TestJSONSaysWhatBecomesOfText tests the parts of a tokenizer.json one by one. The expected tokens are those
// of the tokenizers library.
func TestJSONSaysWhatBecomesOfText(t *testing.T) {
	t.Parallel()
	metaspace := func(scheme string, split bool) object {
		return object{"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": split}
	}
	for name, c := range map[string]struct {
		changes object
		text    string
		want    string
	}{
		"merges":               {nil, "abcd", "abc d"},
		"merges as pairs":      {object{"model.merges": [][]string{{"a", "b"}}}, "abc", "ab c"},
		"unknown":              {nil, "axxb", "a <unk> <unk> b"},
		"unknown fused":        {object{"model.fuse_unk": true}, "axxb", "a <unk> b"},
		"prefix and signs":     {object{"normalizer": llama2}, "ab d", "▁ab ▁ d"},
		"prefix after special": {object{"normalizer": llama2}, "ab<s>ab", "▁ab <s> ▁ab"},
		"no prefix of nothing": {object{"normalizer": llama2}, "<s>", "<s>"},
		"metaspace first": {
			object{"pre_tokenizer": metaspace("first", false)}, "ab ab<s>ab", "▁ab ▁ab <s> ab",
		},
		"metaspace always": {object{"pre_tokenizer": metaspace("always", true)}, "ab<s>ab", "▁ab <s> ▁ab"},
		"metaspace has it": {object{"pre_tokenizer": metaspace("always", true)}, " ab", "▁ab"},
		"metaspace never":  {object{"pre_tokenizer": metaspace("never", true)}, "ab ab", "ab ▁ab"},
		"byte level":       {object{"pre_tokenizer": byteLevel}, "a ab!", "a Ġ ab !"},
		"space before":     {object{"pre_tokenizer": object{"type": "ByteLevel", "use_regex": true}}, "ab", "Ġ ab"},
		"digits": {
			object{"pre_tokenizer": object{"type": "Digits"}},
			"ab12",
			"ab <unk> <unk>",
		},
		"whole words":           {object{"model.ignore_merges": true, "model.merges": []string{}}, "abc", "abc"},
		"form":                  {object{"normalizer": object{"type": "NFKC"}}, "ａ", "a"},
		"split by a text":       {object{"pre_tokenizer": object{"type": "Split", "pattern": object{"String": "b"}, "behavior": "Removed"}}, "abd", "a d"},
		"split, merged":         {object{"pre_tokenizer": object{"type": "Split", "pattern": object{"String": "a"}, "behavior": "MergedWithPrevious"}}, "abab", "a b a b"},
		"added":                 {object{"added_tokens": added("bc")}, "abcd", "a bc d"},
		"added, normalized":     {object{"normalizer": llama2, "added_tokens": added("ab", "normalized")}, "abab", "ab ab"},
		"added, in normal form": {object{"normalizer": object{"type": "NFKC"}, "added_tokens": added("bc", "normalized")}, "aｂｃ", "a bc"},
		"added, spaces left":    {object{"added_tokens": added("bc", "lstrip")}, "a  bc d", "a bc <unk> d"},
		"added, spaces right": {
			object{"added_tokens": added("bc", "rstrip")},
			"a bc \n d",
			"a <unk> bc d",
		},
		"added, a word":          {object{"added_tokens": added("bc", "single_word")}, "bcbc bc", "b c b c <unk> bc"},
		"added, special":         {object{"added_tokens": added("bc", "special")}, "abcd", "a bc d"},
		"gaps":                   {object{"added_tokens": []object{{"id": 30, "content": "bc"}}}, "abc", "a bc"},
		"sequence in a sequence": {object{"normalizer": sequence("normalizers", sequence("normalizers", prefix), signs)}, "a b", "▁ a ▁ b"},
	} {
		tok, err := parseJSON(t, c.changes)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got := spelled(t, tok, c.text, tokenizer.Options{Special: true}); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// The error identifies the lost character even if another character shares its first byte.
func TestTheFirstLostCharacterIsPlaced(t *testing.T) {
	t.Parallel()
	tok, err := parseJSON(t, object{"model.unk_token": nil})
	if err != nil {
		t.Fatal(err)
	}
	ids, err := tok.Encode("aĠģb", tokenizer.Options{})
	want := tokenizer.LostError{At: len("aĠ"), Byte: "ģ"[0], Count: len("ģ")}
	if lost, ok := errors.AsType[*tokenizer.LostError](err); !ok || *lost != want || len(ids) != 3 {
		t.Errorf("%d tokens, %v, want %v", len(ids), err, &want)
	}
}

func TestJSONSaysWhatPromptsBeginAndEndWith(t *testing.T) {
	t.Parallel()
	piece := func(id string) object { return object{"SpecialToken": object{"id": id, "type_id": 0}} }
	text := object{"Sequence": object{"id": "A", "type_id": 0}}
	tokens := object{"<s>": object{"id": "<s>", "ids": []int{1}}, "</s>": object{
		"id":  "</s>",
		"ids": []int{2},
	}}
	for name, c := range map[string]struct {
		processor object
		want      string
	}{
		"nothing": {nil, "a"},
		"bytes":   {object{"type": "ByteLevel"}, "a"},
		"BOS": {
			object{
				"type": "TemplateProcessing", "single": []object{piece("<s>"), text},
				"special_tokens": tokens,
			},
			"<s> a",
		},
		"both": {
			sequence("processors", object{"type": "ByteLevel"}, object{
				"type": "TemplateProcessing", "single": []object{piece("<s>"), text, piece("</s>")}, "special_tokens": tokens,
			}),
			"<s> a </s>",
		},
		"RoBERTa": {
			object{"type": "RobertaProcessing", "sep": []any{"</s>", 2}, "cls": []any{"<s>", 1}},
			"<s> a </s>",
		},
	} {
		tok, err := parseJSON(t, object{"post_processor": c.processor})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got := spelled(t, tok, "a", tokenizer.Options{BOS: true}); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestWrongJSONIsNamed(t *testing.T) {
	t.Parallel()
	messages := wordingtest.New(t)
	grow := object{"type": "Replace", "pattern": object{"String": "a"}, "content": "aaaa"}
	for name, c := range map[string]struct {
		changes object

		is error
	}{
		"kind of model": {object{"model.type": "Unigram", "model.vocab": []any{}}, tokenizer.ErrUnsupported},
		"normalizer":    {object{"normalizer": object{"type": "Precompiled"}}, tokenizer.ErrUnsupported},
		"replacement of nothing": {
			object{"normalizer": object{"type": "Replace"}}, tokenizer.ErrUnsupported,
		},
		"pre-tokenizer": {
			object{"pre_tokenizer": object{"type": "Other"}}, tokenizer.ErrUnsupported,
		},
		"delimiter": {
			object{"pre_tokenizer": object{"type": "CharDelimiterSplit", "delimiter": "ab"}},
			tokenizer.ErrUnsupported,
		},
		"length": {
			object{"pre_tokenizer": object{"type": "FixedLength", "length": 0}},
			tokenizer.ErrUnsupported,
		},
		"metaspace": {
			object{"pre_tokenizer": object{"type": "Metaspace"}}, tokenizer.ErrUnsupported,
		},
		"decoder": {object{"decoder": object{"type": "CTC"}}, tokenizer.ErrUnsupported},
		"decoder that replaces": {
			object{"decoder": object{"type": "Replace", "pattern": object{"String": "a"}, "content": "b"}},
			tokenizer.ErrUnsupported,
		},
		"post-processor": {
			object{"post_processor": object{"type": "Other"}},
			tokenizer.ErrUnsupported,
		},
		"pattern": {object{"pre_tokenizer": object{"type": "Split", "pattern": object{"Regex": "(a"}, "behavior": "Isolated"}}, tokenizer.ErrUnsupported},
		"ends of words": {
			object{"model.end_of_word_suffix": "</w>"}, tokenizer.ErrUnsupported,
		},
		"dropout":      {object{"model.dropout": 0.1}, tokenizer.ErrUnsupported},
		"large id":     {object{"added_tokens": []object{{"id": 1 << 30, "content": "x"}}}, nil},
		"negative id":  {object{"model.vocab": object{"a": -1}}, nil},
		"one id twice": {object{"model.vocab": object{"a": 1, "b": 1}, "model.merges": []string{}}, nil},
		"merge of three": {
			object{"model.merges": []string{"a b c"}}, nil,
		},
		"merge of others": {object{"model.merges": []string{"a x"}}, nil},
		"no vocabulary":   {object{"model": object{}}, nil},
		"unknown token":   {object{"model.unk_token": "<none>"}, nil},
		"vocabulary": {
			object{"model.vocab": []string{"a"}}, nil,
		},
		"growth": {
			object{"normalizer": sequence("normalizers", grow, grow, grow, grow, grow, grow, grow, grow)},
			nil,
		},
		"steps": {
			object{"normalizer": sequence("normalizers", slices.Repeat([]object{{"type": "Prepend"}},
				65)...)}, nil,
		},
		"steps, before patterns are compiled": {
			object{"pre_tokenizer": sequence("pretokenizers", append(slices.Repeat([]object{{"type": "ByteLevel"}},
				22), object{"type": "Split", "behavior": "Isolated", "pattern": object{"Regex": "("}})...)},
			nil,
		},
		"objects": {
			object{"added_tokens": slices.Repeat([]object{{}}, 1<<17)}, nil,
		},
	} {
		_, err := parseJSON(t, c.changes)
		if messages.Error(name, err); c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: got %v, want %v", name, err, c.is)
		}
	}
	for _, data := range []string{"", "{", `{"model": 1}`, strings.Repeat(`{"normalizer":`, 20000)} {
		if _, err := tokenizer.ParseJSON([]byte(data), "x.json"); err == nil {
			t.Errorf("%.20q is accepted", data)
		}
	}
}

// TestSentencePieceAsJSONGivesEqualIDs writes a SentencePiece model as converters do, with a merge for each
// way to split a piece in two, and compares the ids with the goldens.
func TestSentencePieceAsJSONGivesEqualIDs(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(sharedModel(t, filepath.Join("tokenizers", "llama-spm.tokenizer.model")))
	if err != nil {
		t.Fatal(err)
	}
	c, err := tokenizer.ParseModel(data, "llama-spm")
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]int{}
	for id, text := range c.Tokens {
		ids[text] = id
	}
	type merge struct {
		parts []string
		score float32
	}
	var merges []merge
	for id, text := range c.Tokens {
		if c.Kinds[id] != tokenizer.Normal {
			continue
		}
		for i := range text {
			_, left := ids[text[:i]]
			if _, right := ids[text[i:]]; left && right {
				merges = append(merges, merge{[]string{text[:i], text[i:]}, c.Scores[id]})
			}
		}
	}
	slices.SortStableFunc(merges, func(a, b merge) int { return cmp.Compare(b.score, a.score) })
	var pairs [][]string
	for _, m := range merges {
		pairs = append(pairs, m.parts)
	}
	tok, err := parseJSON(t, object{
		"normalizer": llama2, "model.vocab": ids, "model.merges": pairs, "model.byte_fallback": true,
		"model.fuse_unk": true,
	})
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Text  *string
		Bytes []byte `json:"bytes_base64"`
		IDs   []int
	}
	readJSON(t, filepath.Join("tokenizers", "llama-spm.golden.json"), &cases)
	for _, golden := range cases {
		text := string(golden.Bytes)
		if golden.Text != nil {
			text = *golden.Text
		}
		got, err := tok.Encode(text, tokenizer.Options{Special: true})
		if err != nil || fmt.Sprint(got) != fmt.Sprint(golden.IDs) {
			t.Errorf("%q: %v %s", text, err, gocmp.Diff(golden.IDs, got))
		}
	}
}
