package tokenizer_test

import (
	"encoding/json"
	"strings"
	"testing"

	"gpuscope/text/tokenizer"
)

// FuzzRoundTrip checks that no byte is lost, with every split rule, with and without special tokens.
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
					t.Fatalf("%q is decoded as %q", text, got)
				}
			}
		}
	})
}

// FuzzJSON checks that no tokenizer.json causes a crash, and that an accepted file encodes text.
func FuzzJSON(f *testing.F) {
	for _, changes := range []object{
		{},
		{"normalizer": llama2, "model.byte_fallback": true},
		{"pre_tokenizer": byteLevel, "added_tokens": added("bc", "lstrip", "rstrip", "single_word", "normalized")},
		{"pre_tokenizer": object{"type": "Split", "pattern": object{"Regex": "a+|\\s"}, "behavior": "Contiguous"}},
		{"normalizer": object{"type": "NFKC"}, "post_processor": object{"type": "Sequence"}},
		{"pre_tokenizer": sequence("pretokenizers", byteLevel, object{"type": "Digits"},
			object{"type": "Metaspace", "replacement": "▁"})},
		{"pre_tokenizer": split(`[a[^b]&&[[:alpha:]\p{^Han}]]++|\X{2}?|(?i:'s|\R)?+|(?<=a)\b(?!\h{1,2}+)`)},
		{"pre_tokenizer": split(`(?x-m) (?<n>\w*?) # \n | [^]\x{4e00}-\u9fff\W]`)},
		{"pre_tokenizer": sequence("pretokenizers", object{"type": "UnicodeScripts"},
			object{"type": "FixedLength", "length": 2},
			object{"type": "BertPreTokenizer"}, object{"type": "Punctuation", "behavior": "MergedWithNext"},
			object{"type": "CharDelimiterSplit", "delimiter": "c"}, object{"type": "Whitespace"})},
		{"normalizer": sequence("normalizers",
			object{"type": "BertNormalizer", "clean_text": true, "lowercase": true},
			object{"type": "Nmt"}, object{"type": "Strip", "strip_left": true},
			object{"type": "StripAccents"},
			object{"type": "Replace", "pattern": object{"Regex": "a*"}, "content": "xy"})},
		{"decoder": object{"type": "ByteLevel"}, "added_tokens": added(" ", "lstrip", "rstrip")},
	} {
		file := tinyJSON()
		for key, value := range changes {
			file[key] = value
		}
		data, err := json.Marshal(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		config, err := tokenizer.ParseJSON(data, "fuzz.json")
		tryEncoding(t, config, err)
	})
}

// split is a pre-tokenizer that splits by a pattern.
func split(pattern string) object {
	return object{"type": "Split", "pattern": object{"Regex": pattern}, "behavior": "Isolated"}
}

// FuzzModel checks that no SentencePiece model causes a crash.
func FuzzModel(f *testing.F) {
	f.Add([]byte(tinyModel(bpe(), nil)))
	f.Add([]byte(tinyModel(bpe().number(35, 1), message{}.number(3, 0).number(4, 0))))
	f.Add([]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, data []byte) {
		config, err := tokenizer.ParseModel(data, "fuzz.model")
		tryEncoding(t, config, err)
	})
}

// tryEncoding encodes with a vocabulary that was read. If it was refused, it checks the error.
func tryEncoding(t *testing.T, config tokenizer.Config, err error) {
	t.Helper()
	var tok *tokenizer.Tokenizer
	if err == nil {
		tok, err = tokenizer.NewBPE(config)
	}
	if err != nil {
		if err.Error() == "" || len(err.Error()) > 2000 {
			t.Fatalf("an error of %d bytes", len(err.Error()))
		}
		return
	}
	for _, text := range []string{"", "ab  abc<s>\u2581bc \xff\u00e9!", strings.Repeat("ab ", 50)} {
		ids, err := tok.Encode(text, tokenizer.Options{Special: true, BOS: true})
		for _, id := range ids {
			if err == nil && !tok.Valid(id) {
				t.Fatalf("%q has invalid token %d", text, id)
			}
		}
		if len(ids) > 1<<16 {
			t.Fatalf("%q has %d tokens", text, len(ids))
		}
		tok.Text(ids, true)
	}
}
