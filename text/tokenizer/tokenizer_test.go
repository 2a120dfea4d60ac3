package tokenizer_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gpuscope/internal/wordingtest"
	"gpuscope/model/checkpoint/gguf"
	"gpuscope/model/checkpoint/gguf/gguftest"
	"gpuscope/text/tokenizer"
)

// rule returns a known split rule.
func rule(name string) []tokenizer.Step {
	steps, err := tokenizer.SplitRule(name)
	if err != nil {
		panic(err)
	}
	return steps
}

// small has all bytes, a few merges, and special tokens: some overlap, one contains a space, and one is plain
// text.
func small() tokenizer.Config {
	c := tokenizer.Config{
		Cut: rule("gpt-2"), Alphabet: true, BOS: 0, EOS: 1, Unknown: tokenizer.None, Before: []int{0},
	}
	add := func(kind tokenizer.Kind, texts ...string) {
		for _, text := range texts {
			c.Tokens = append(c.Tokens, text)
			c.Kinds = append(c.Kinds, kind)
		}
	}
	add(tokenizer.Control, "<s>", "</s>", "<|a|>", "<|a|><|b|>", "<a b>")
	add(tokenizer.UserDefined, "Ġ!", "==")
	for b := range 256 {
		add(tokenizer.Normal, tokenizer.ByteText(byte(b)))
	}
	for _, merge := range []string{"a a", "aa aa", "Ġ a", "a b", "b c", "Ã ©", "ab c", "Ġa bc"} {
		left, right, _ := strings.Cut(merge, " ")
		c.Merges = append(c.Merges, [2]string{left, right})
		add(tokenizer.Normal, left+right)
	}
	return c
}

func mustNew(t testing.TB, c tokenizer.Config) *tokenizer.Tokenizer {
	t.Helper()
	tok, err := tokenizer.NewBPE(c)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// texts returns the vocabulary's text for each id.
func texts(c tokenizer.Config, ids []int) (out []string) {
	for _, id := range ids {
		out = append(out, c.Tokens[id])
	}
	return out
}

func TestEncode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text    string
		options tokenizer.Options
		want    []string
	}{
		"nothing":                       {"", tokenizer.Options{}, nil},
		"BOS alone":                     {"", tokenizer.Options{BOS: true}, []string{"<s>"}},
		"lowest rank first":             {"abc", tokenizer.Options{}, []string{"abc"}},
		"leftmost of equal rank":        {"aaaaa", tokenizer.Options{}, []string{"aaaa", "a"}},
		"seven in fours, twos and ones": {"aaaaaaa", tokenizer.Options{}, []string{"aaaa", "aa", "a"}},
		"words end merges":              {"a a", tokenizer.Options{}, []string{"a", "Ġa"}},
		"rank over length":              {" aab", tokenizer.Options{}, []string{"Ġ", "aa", "b"}},
		"character of two bytes":        {"é", tokenizer.Options{}, []string{"Ã©"}},
		"half a character":              {"\xc3", tokenizer.Options{}, []string{"Ã"}},
		"control token as letters":      {"<s>", tokenizer.Options{}, []string{"<", "s", ">"}},
		"control token": {
			"x<s>y",
			tokenizer.Options{Special: true},
			[]string{"x", "<s>", "y"},
		},
		"longest control token": {
			"<|a|><|b|><|a|>",
			tokenizer.Options{Special: true},
			[]string{"<|a|><|b|>", "<|a|>"},
		},
		"control token with a space": {"<a b>", tokenizer.Options{Special: true}, []string{"<a b>"}},
		"unfinished control token": {
			"<|a|",
			tokenizer.Options{Special: true},
			[]string{"<", "|", "a", "|"},
		},
		"user-defined token always":        {"a==b", tokenizer.Options{}, []string{"a", "==", "b"}},
		"user-defined tokens are no bytes": {"Ġ! !", tokenizer.Options{}, []string{"Ġ!", "Ġ", "!"}},
		"special token ends a word": {
			"a  <s>b",
			tokenizer.Options{Special: true},
			[]string{"a", "Ġ", "Ġ", "<s>", "b"},
		},
		"BOS written and asked for": {
			"<s>",
			tokenizer.Options{Special: true, BOS: true},
			[]string{"<s>", "<s>"},
		},
		"merges do not reach over specials": {"a==a", tokenizer.Options{}, []string{"a", "==", "a"}},
	} {
		config := small()
		ids, err := mustNew(t, config).Encode(c.text, c.options)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if diff := cmp.Diff(c.want, texts(config, ids)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestWholeWordsAreTheirTokens(t *testing.T) {
	t.Parallel()
	config := small()
	config.Tokens = append(config.Tokens, "Ġaab")
	config.Kinds = append(config.Kinds, tokenizer.Normal)
	for _, c := range []struct {
		whole bool
		want  []string
	}{{false, []string{"Ġ", "aa", "b"}}, {true, []string{"Ġaab"}}} {
		config.WholeWords = c.whole
		ids, err := mustNew(t, config).Encode(" aab", tokenizer.Options{})
		if diff := cmp.Diff(c.want, texts(config, ids)); err != nil || diff != "" {
			t.Errorf("%v: %v %s", c.whole, err, diff)
		}
	}
}

// TestMergesAreThoseOfTheDefinition compares the merges with a slow version of the definition: join the
// leftmost pair of the lowest rank until there is none.
func TestMergesAreThoseOfTheDefinition(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const alphabet = "abc"
		config := tokenizer.Config{
			Cut: rule("gpt-2"), Alphabet: true,
			BOS: tokenizer.None, EOS: tokenizer.None, Unknown: tokenizer.None,
			Tokens: strings.Split(alphabet, ""),
		}
		ranks := map[[2]string]int{}
		for range rapid.IntRange(0, 30).Draw(t, "merges") {
			m := [2]string{
				rapid.SampledFrom(config.Tokens).Draw(t, "left"),
				rapid.SampledFrom(config.Tokens).Draw(t, "right"),
			}
			if _, ok := ranks[m]; ok {
				continue
			}
			ranks[m] = len(config.Merges)
			config.Merges = append(config.Merges, m)
			if !slices.Contains(config.Tokens, m[0]+m[1]) {
				config.Tokens = append(config.Tokens, m[0]+m[1])
			}
		}
		word := rapid.StringOfN(rapid.RuneFrom([]rune(alphabet)), 1, 60, -1).Draw(t, "word")
		want := strings.Split(word, "")
		for {
			best, at := math.MaxInt, 0
			for i := range len(want) - 1 {
				if rank, ok := ranks[[2]string{want[i], want[i+1]}]; ok && rank < best {
					best, at = rank, i
				}
			}
			if best == math.MaxInt {
				break
			}
			want = slices.Replace(want, at, at+2, want[at]+want[at+1])
		}
		tok, err := tokenizer.NewBPE(config)
		if err != nil {
			t.Fatal(err)
		}
		ids, err := tok.Encode(word, tokenizer.Options{})
		if diff := cmp.Diff(want, texts(config, ids)); err != nil || diff != "" {
			t.Fatalf("%v %s", err, diff)
		}
	})
}

func TestIDsOutsideTheVocabularyAreHarmless(t *testing.T) {
	t.Parallel()
	tok := mustNew(t, small())
	for _, id := range []int{-1, math.MinInt, tok.VocabSize(), math.MaxInt} {
		if tok.Valid(id) || tok.Bytes(id) != nil || tok.Kind(id) != tokenizer.Undefined || tok.IsEnd(id) {
			t.Errorf("%d is accepted as a token", id)
		}
		if got := tok.Decode([]int{id}) + tok.Stream().Push(id); got != "\uFFFD\uFFFD" {
			t.Errorf("%d decodes as %q", id, got)
		}
	}
}

func TestNilTokenizerHasNoTokens(t *testing.T) {
	t.Parallel()
	var tok *tokenizer.Tokenizer
	if _, err := tok.Encode("a", tokenizer.Options{}); !errors.Is(err, tokenizer.ErrNoVocabulary) {
		t.Errorf("got %v", err)
	}
	if tok.VocabSize() != 0 || tok.Valid(0) || tok.BOS() != tokenizer.None || tok.EOS() != tokenizer.None ||
		tok.AddBOS() || tok.IsEnd(0) || tok.Bytes(0) != nil {
		t.Error("a nil tokenizer reports tokens")
	}
	if got := tok.Decode([]int{7}) + tok.Stream().Push(7); got != "\uFFFD\uFFFD" {
		t.Errorf("got %q", got)
	}
	if _, ok := tok.ID("a"); ok {
		t.Error("a nil tokenizer found a token")
	}
}

func TestStreamHoldsUnfinishedCharactersBack(t *testing.T) {
	t.Parallel()
	tok := mustNew(t, small())
	for name, c := range map[string]struct {
		bytes string
		want  []string // after each byte, and at the end
	}{
		"letters":             {"ab", []string{"a", "b", ""}},
		"two bytes":           {"é!", []string{"", "é", "!", ""}},
		"four bytes":          {"🙂", []string{"", "", "", "🙂", ""}},
		"unfinished at end":   {"a\xf0\x9f\x99", []string{"a", "", "", "", "\xf0\x9f\x99"}},
		"broken off":          {"\xf0\x9fa", []string{"", "", "\xf0\x9fa", ""}},
		"no start":            {"\x80\xff", []string{"\x80", "\xff", ""}},
		"one after the other": {"\xe4\xe4\xbd\xa0", []string{"", "\xe4", "", "你", ""}},
		"surrogate":           {"\xed\xa0\x80", []string{"", "\xed\xa0", "\x80", ""}},
	} {
		s := tok.Stream()
		var got []string
		for i := range len(c.bytes) {
			id, _ := tok.ID(tokenizer.ByteText(c.bytes[i]))
			got = append(got, s.Push(id))
		}
		got = append(got, s.Flush())
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestStreamGivesWhatDecodeGives(t *testing.T) {
	t.Parallel()
	tok := mustNew(t, small())
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOf(rapid.IntRange(-1, tok.VocabSize())).Draw(t, "ids")
		var text strings.Builder
		s := tok.Stream()
		for _, id := range ids {
			text.WriteString(s.Push(id))
		}
		text.WriteString(s.Flush())
		if got, want := text.String(), tok.Decode(ids); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}

func TestStreamedTextIsValidAtEveryToken(t *testing.T) {
	t.Parallel()
	tok := mustNew(t, small())
	rapid.Check(t, func(t *rapid.T) {
		ids, err := tok.Encode(rapid.String().Draw(t, "text"), tokenizer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s := tok.Stream()
		for _, id := range ids {
			if piece := s.Push(id); !utf8.ValidString(piece) {
				t.Fatalf("token %d is decoded as %q", id, piece)
			}
		}
		if rest := s.Flush(); rest != "" {
			t.Fatalf("Flush returned %q", rest)
		}
	})
}

func TestWrongVocabularyIsAnError(t *testing.T) {
	t.Parallel()
	messages := wordingtest.New(t)
	for name, c := range map[string]struct {
		change func(*tokenizer.Config)
	}{
		"no tokens": {func(c *tokenizer.Config) { c.Tokens = nil }},
		"types missing": {
			func(c *tokenizer.Config) { c.Kinds = c.Kinds[1:] },
		},
		"BOS outside": {
			func(c *tokenizer.Config) { c.BOS = 271 },
		},
		"EOS negative": {func(c *tokenizer.Config) { c.EOS = -2 }},
		"BOS wanted": {
			func(c *tokenizer.Config) { c.Before = []int{tokenizer.None} },
		},
		"merge of nothing": {
			func(c *tokenizer.Config) { c.Merges = append(c.Merges, [2]string{"x", "y"}) },
		},
	} {
		config := small()
		c.change(&config)
		_, err := tokenizer.NewBPE(config)
		messages.Error(name, err)
	}
}

func TestVocabularyOfAFile(t *testing.T) {
	t.Parallel()
	messages := wordingtest.New(t)
	for name, c := range map[string]struct {
		set map[string]any // keys added to a byte vocabulary

		is error
	}{
		"none": {
			map[string]any{"tokenizer.ggml.model": "none"}, tokenizer.ErrNoVocabulary,
		},
		"no_vocab": {
			map[string]any{"tokenizer.ggml.model": "no_vocab"}, tokenizer.ErrNoVocabulary,
		},
		"other model": {
			map[string]any{"tokenizer.ggml.model": "bert"}, tokenizer.ErrUnsupported,
		},
		"other split": {
			map[string]any{"tokenizer.ggml.pre": "kimi-k2"}, tokenizer.ErrUnsupported,
		},
		"model of no text": {
			map[string]any{"tokenizer.ggml.model": 1}, nil,
		},
		"types of text": {
			map[string]any{"tokenizer.ggml.token_type": []string{"a"}}, nil,
		},
		"types missing": {
			map[string]any{"tokenizer.ggml.token_type": []int32{1}}, nil,
		},
		"merge of one": {
			map[string]any{"tokenizer.ggml.merges": []string{"ab"}}, nil,
		},
	} {
		b := gguftest.New()
		b.ByteTokenizer(260)
		for key, value := range c.set {
			b.Set(key, value)
		}
		_, err := tokenizer.New(parse(t, b))
		if messages.Error(name, err); err == nil || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: got %v, want %v", name, err, c.is)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: more than one line: %v", name, err)
		}
	}
	if _, err := tokenizer.New(parse(t, gguftest.New())); !errors.Is(err, tokenizer.ErrNoVocabulary) {
		t.Errorf("no keys: %v", err)
	}
}

func TestBeginAndEndTokensOfAFile(t *testing.T) {
	t.Parallel()
	b := gguftest.New()
	b.ByteTokenizer(260)
	b.Set("tokenizer.ggml.eot_token_id", 5)
	b.Set("tokenizer.ggml.eom_token_id", uint32(math.MaxUint32)) // none
	tok, err := tokenizer.New(parse(t, b))
	if err != nil {
		t.Fatal(err)
	}
	var ends []int
	for id := range tok.VocabSize() {
		if tok.IsEnd(id) {
			ends = append(ends, id)
		}
	}
	if diff := cmp.Diff([]int{0, 5}, ends); diff != "" || tok.BOS() != 0 || tok.EOS() != 0 || !tok.AddBOS() {
		t.Errorf("%s BOS %d EOS %d", diff, tok.BOS(), tok.EOS())
	}
	ids, err := tok.Encode("Hi", tokenizer.Options{BOS: true})
	if diff := cmp.Diff([]int{0, 1 + 'H', 1 + 'i'}, ids); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}

// TestSplitRuleDecidesWhatFilesLeaveOut checks the defaults of Llama 3's rule: BOS before prompts, and words
// that are single tokens.
func TestSplitRuleDecidesWhatFilesLeaveOut(t *testing.T) {
	t.Parallel()
	for pre, want := range map[string]bool{
		"gpt-2": false, "smollm": false, "qwen2": false, "llama-bpe": true,
		"llama3": true,
	} {
		b := gguftest.New()
		b.Tokenizer(pre, []string{"<s>", "a"}, []int32{3, 1}, []string{})
		b.Set("tokenizer.ggml.bos_token_id", 0)
		c, err := tokenizer.Read(parse(t, b))
		if err != nil || (len(c.Before) > 0) != want || c.WholeWords != want {
			t.Errorf("%s: AddBOS %v, WholeWords %v, %v", pre, c.Before, c.WholeWords, err)
		}
	}
}

// A vocabulary of Gemma 4 has merges of characters, spaces as ▁, tokens for bytes, and no prefix. Line breaks
// are words of their own, although a merge of this vocabulary would join one with a letter.
func TestGemma4VocabularyMergesCharacters(t *testing.T) {
	t.Parallel()
	tokens := []string{"<pad>", "<eos>", "<bos>", "<unk>", "<|turn>", "<|\"|>"}
	kinds := []int32{3, 3, 3, 2, 3, 4}
	for _, token := range []string{
		"▁", "a", "b", "é", "\n", "▁a", "▁▁", "ab", "▁ab", "\n\n", "b\n", "aé",
	} {
		tokens, kinds = append(tokens, token), append(kinds, 1)
	}
	for b := range 256 {
		tokens, kinds = append(tokens, fmt.Sprintf("<0x%02X>", b)), append(kinds, 6)
	}
	b := gguftest.New()
	b.Tokenizer("gemma4", tokens, kinds, []string{"▁ ▁", "▁ a", "a b", "▁a b", "\n \n", "b \n", "a é"})
	b.Set("tokenizer.ggml.model", "gemma4")
	for key, id := range map[string]int{"bos": 2, "eos": 1, "unknown": 3} {
		b.Set("tokenizer.ggml."+key+"_token_id", uint32(id))
	}
	b.Set("tokenizer.ggml.add_bos_token", true)
	b.Set("tokenizer.ggml.add_space_prefix", false)
	tok, err := tokenizer.New(parse(t, b))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"ab":                 "ab",
		" ab  ab":            "▁ab ▁▁ ab",
		"aé":                 "aé",
		"ab\n\nab":           "ab \n\n ab",
		"b\n":                "b \n",
		"ü":                  "<0xC3> <0xBC>",
		"<|turn>ab<|\"|> ab": "<|turn> ab <|\"|> ▁ab",
	} {
		if got := spelled(t, tok, text, tokenizer.Options{Special: true}); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		ids, err := tok.Encode(text, tokenizer.Options{Special: true})
		if back := tok.Decode(ids); err != nil || back != text {
			t.Errorf("%q: decoded as %q, %v", text, back, err)
		}
	}
	ids, err := tok.Encode("ab", tokenizer.Options{BOS: true})
	if err != nil || len(ids) != 2 || ids[0] != 2 {
		t.Errorf("with BOS: %v, %v", ids, err)
	}
}

func TestEveryKindHasAName(t *testing.T) {
	t.Parallel()
	if got := tokenizer.UserDefined.String() + " " + tokenizer.Byte.String() + " " +
		tokenizer.Kind(9).String(); got != "user-defined byte kind 9" {
		t.Error(got)
	}
}

func parse(t testing.TB, b *gguftest.Builder) *gguf.File {
	t.Helper()
	f, err := gguf.Parse(b.Bytes(), "tiny.gguf")
	if err != nil {
		t.Fatal(err)
	}
	return f
}
