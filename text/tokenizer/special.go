package tokenizer

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// SpecialTokens holds the texts of a vocabulary's special tokens under their names in chat templates.
type SpecialTokens struct {
	Named map[string]string // by variable name in a template, such as "pad_token"
	Extra []string          // tokens without a name, such as additional_special_tokens
}

// extraKeys lists the keys of special tokens that have no fixed role. The value of such a key is a list of
// texts, or an object that maps names to texts.
var extraKeys = []string{
	"additional_special_tokens", "extra_special_tokens", "model_specific_special_tokens",
}

// specialTokens collects the special tokens of several files. Later files override earlier files.
func specialTokens(files ...*settings) SpecialTokens {
	s := SpecialTokens{Named: map[string]string{}}
	for _, f := range files {
		s.add(f.keys)
	}
	return s
}

// add stores the tokens of all keys in `keys` whose name ends in _token, and of the keys in extraKeys. It
// skips a value that is not a token, such as a boolean option.
func (s *SpecialTokens) add(keys map[string]json.RawMessage) {
	named := func(keys map[string]json.RawMessage) {
		for key, value := range keys {
			if text, ok := tokenText(value); ok {
				s.Named[key] = text
			}
		}
	}
	for _, key := range extraKeys {
		var list []json.RawMessage
		var byName map[string]json.RawMessage
		if json.Unmarshal(keys[key], &byName) == nil {
			named(byName)
		}
		if json.Unmarshal(keys[key], &list) == nil && list != nil {
			s.Extra = nil
			for _, value := range list {
				if text, ok := tokenText(value); ok {
					s.Extra = append(s.Extra, text)
				}
			}
		}
	}
	fixed := maps.Clone(keys)
	maps.DeleteFunc(fixed, func(key string, _ json.RawMessage) bool {
		return !strings.HasSuffix(key, "_token")
	})
	named(fixed)
}

// tokenText returns the text of a token that is stored as a string or as an object with a content field.
func tokenText(value json.RawMessage) (string, bool) {
	var name tokenName
	if len(value) == 0 || json.Unmarshal(value, &name) != nil || name == "" {
		return "", false
	}
	return string(name), true
}

// specialKeys maps template variables to the GGUF keys of the token ids. The misspelled key of the
// separator is GGUF's own.
var specialKeys = []struct{ name, key string }{
	{"bos_token", keyBOS},
	{"eos_token", keyEOS},
	{"unk_token", keyUnknown},
	{"sep_token", "tokenizer.ggml.separator_token_id"},
	{"sep_token", "tokenizer.ggml.seperator_token_id"},
	{"pad_token", "tokenizer.ggml.padding_token_id"},
	{"cls_token", "tokenizer.ggml.cls_token_id"},
	{"mask_token", "tokenizer.ggml.mask_token_id"},
}

// specialTokensOf returns the special tokens that a GGUF file names by id.
func specialTokensOf(f Metadata, tokens []string) SpecialTokens {
	s := SpecialTokens{Named: map[string]string{}}
	for _, k := range specialKeys {
		if !f.Has(k.key) {
			continue
		}
		if id, err := f.Uint(k.key); err == nil && id < uint64(len(tokens)) {
			s.Named[k.name] = tokens[id]
		}
	}
	return s
}

// SpecialTokens returns the special tokens for chat templates. BOS and EOS are the tokens that the Tokenizer
// uses, even if files name other tokens.
func (t *Tokenizer) SpecialTokens() SpecialTokens {
	if t == nil {
		return SpecialTokens{}
	}
	s := SpecialTokens{Named: map[string]string{}, Extra: slices.Clone(t.config.Special.Extra)}
	maps.Copy(s.Named, t.config.Special.Named)
	for name, id := range map[string]int{"bos_token": t.config.BOS, "eos_token": t.config.EOS} {
		if text := t.Token(id); text != "" {
			s.Named[name] = text
		}
	}
	return s
}
