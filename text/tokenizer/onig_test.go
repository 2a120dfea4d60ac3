package tokenizer

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// patternWords lists patterns, texts, and the words into which Hugging Face's tokenizers splits them.
var patternWords = []struct {
	pattern, text string
	words         []string
}{
	{`[a[bc]]+`, "abcd", []string{"abc", "d"}},
	{`[^a[bc]]`, "abcd", []string{"abc", "d"}},
	{`[a[^b]]`, "abc", []string{"a", "b", "c"}},
	{` ?[^(\s|[.,!?…])]+`, "Hi, you… [x] a|b", []string{"Hi", ",", " you", "…", " [x]", " a", "|", "b"}},
	{`[a-z&&[^aeiou]]+`, "abcdefgh", []string{"a", "bcd", "e", "fgh"}},
	{`[^a-d&&b-z]`, "abcdef", []string{"a", "bcd", "e", "f"}},
	{`[a-z&&b-y&&c-x]+`, "abcxyz", []string{"ab", "cx", "yz"}},
	{`[\p{L}&&[^\p{Han}]]+`, "漢字abc漢", []string{"漢字", "abc", "漢"}},
	{`[[:alpha:]&&[^a]]`, "ab1", []string{"a", "b", "1"}},
	{`[-a]`, "a-b", []string{"a", "-", "b"}},
	{`[a-c-e]`, "abcde-", []string{"a", "b", "c", "d", "e", "-"}},
	{`[--a]+`, "-.ab", []string{"-.a", "b"}},
	{`[]a]`, "a]b", []string{"a", "]", "b"}},
	{`[[a-c]-z]`, "abz-", []string{"a", "b", "z", "-"}},
	{`a++a`, "aaa", []string{"aaa"}},
	{`a?+a`, "aaa", []string{"aa", "a"}},
	{`a*+b`, "aab", []string{"aab"}},
	{`[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+|\s++`, "a1234 don't  x", []string{"a", "1234", " don", "'t", "  ", "x"}},
	{`a{3}+`, "aaaaaaaa", []string{"aaaaaa", "aa"}},
	{`a{2,3}+a`, "aaaaaaaa", []string{"aaaaaaa", "a"}},
	{`a{2}?`, "aaaaa", []string{"aa", "aa", "a"}},
	{`a{1,2}?`, "aaa", []string{"a", "a", "a"}},
	{`a{,2}`, "aaa", []string{"aa", "a"}},
	{`a{,}`, "a{,}", []string{"a{,}"}},
	{`a{x}`, "a{x}b", []string{"a{x}", "b"}},
	{`a**`, "baab", []string{"b", "aa", "b"}},
	{`(?>a+)b`, "aab", []string{"aab"}},
	{`(?:a|ab)c`, "abc", []string{"abc"}},
	{`[[:^alpha:]]`, "a1 b", []string{"a", "1", " ", "b"}},
	{`[[:punct:]]`, "a$.é", []string{"a", "$", ".", "é"}},
	{`[[:word:]]+|\w`, "a²", []string{"a", "²"}},
	{`\p{^L}`, "a1", []string{"a", "1"}},
	{`\P{^L}`, "a1", []string{"a", "1"}},
	{`\p{ L }`, "a1", []string{"a", "1"}},
	{`\p{other_letter}`, "漢a", []string{"漢", "a"}},
	{`\p{Any}`, "a", []string{"a"}},
	{`\h+`, "afg0", []string{"af", "g", "0"}},
	{`\H`, "ag0", []string{"a", "g", "0"}},
	{`[\h&&[^a]]`, "af", []string{"a", "f"}},
	{`\R`, "a\r\nb\n\rc\u2028d\u0085e\u000bf", []string{"a", "\r\n", "b", "\n", "\r", "c", "\u2028", "d", "\u0085", "e", "\u000b", "f"}},
	{`\X`, "e\u0301👩🏽\u200d🚀🇩🇪🇫\r\n\nक्षिa\u200db각각", []string{"e\u0301", "👩🏽\u200d🚀", "🇩🇪", "🇫", "\r\n", "\n", "क्", "षि", "a\u200d", "b", "각", "각"}},
	{`\N`, "a\nN", []string{"a", "\n", "N"}},
	{`\O`, "a\n", []string{"a", "\n"}},
	{`(?i:ſk)`, "Sk ſK", []string{"Sk", " ", "ſK"}},
	{`(?i)é`, "ÉéE", []string{"É", "é", "E"}},
	{`(?i)σ`, "Σςσ", []string{"Σ", "ς", "σ"}},
	{`(?i)\p{Lu}`, "aA", []string{"a", "A"}},
	{`(?i)[\p{Lu}]`, "aA", []string{"a", "A"}},
	{`(?i)[^a-z]+`, "aZſK9", []string{"aZſK", "9"}},
	{`a(?i)b|c`, "aB C aC c", []string{"aB", " C ", "aC", " c"}},
	{`(?i-i:a)b`, "abAb", []string{"ab", "Ab"}},
	{`(?m:a.)|.`, "a\nb", []string{"a\n", "b"}},
	{`a.`, "a\na!", []string{"a\n", "a!"}},
	{"(?x) a b # c\n | \\d", "ab 1", []string{"ab", " ", "1"}},
	{`(?#x)a`, "ba", []string{"b", "a"}},
	{`(?<n>a)b`, "ab", []string{"ab"}},
	{`^.`, "ab\ncd\n", []string{"a", "b\n", "c", "d\n"}},
	{`.$`, "ab\ncd\n", []string{"a", "b", "\nc", "d", "\n"}},
	{`\Z`, "a\nb\n", []string{"a\nb", "\n"}},
	{`\Aa`, "aa", []string{"a", "a"}},
	{`\Gx`, "xxax", []string{"x", "x", "ax"}},
	{`\b`, "ab cé_1", []string{"ab", " ", "cé_1"}},
	{`\B`, "abc d", []string{"a", "b", "c d"}},
	{`(?=b)`, "abab", []string{"a", "ba", "b"}},
	{`(?<=a|bc)x`, "axbcxx", []string{"a", "x", "bc", "x", "x"}},
	{`(?<!a)b`, "bab", []string{"b", "ab"}},
	{`(?=(\d{3})+(?!\d))`, "1234567", []string{"1", "234", "567"}},
	{`(?<=\p{Ll})(?=\p{Lu})`, "aBcD", []string{"a", "Bc", "D"}},
	{`a*`, "baab", []string{"b", "aa", "b"}},
	{``, "ab", []string{"a", "b"}},
	{`a|`, "ba", []string{"b", "a"}},
	{`\x41\x{42}\u0043\104`, "ABCD", []string{"ABCD"}},
	{`\t\e\cA`, "\t\u001b\u0001", []string{"\t\u001b\u0001"}},
	{`[\b]`, "a\bb", []string{"a", "\b", "b"}},
	{`\i\é\-`, "ié-", []string{"ié-"}},
}

func TestPatternsCutAsOnigurumaDoes(t *testing.T) {
	t.Parallel()
	for _, c := range patternWords {
		step, err := Cut(c.pattern, Isolated, false)
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		var words []string
		err = walk([]Step{step}, piece{text: c.text}, func(word string) error {
			words = append(words, word)
			return nil
		})
		if diff := cmp.Diff(c.words, words); err != nil || diff != "" {
			t.Errorf("%s in %q: %v %s", c.pattern, c.text, err, diff)
		}
	}
}

func TestUnsupportedPatternsNameConstructAndPosition(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]PatternError{
		`a(b)\1`:           {Construct: `\1`, At: 4},
		`(?<n>a)\k<n>`:     {Construct: `\k`, At: 7},
		`a\Kb`:             {Construct: `\K`, At: 1},
		`b(?~ab)`:          {Construct: `(?~`, At: 1},
		`(?W:\w)`:          {Construct: `(?W`, At: 0},
		`x(?(1)a|b)`:       {Construct: `(?(`, At: 1},
		`a\p{Emoji}`:       {Construct: `\p{Emoji}`, At: 1},
		`[a[:foo:]]`:       {Construct: `[:foo:]`, At: 2},
		`[\w-z]`:           {Construct: `\w-`, At: 1},
		`[a-\d]`:           {Construct: `a-\d`, At: 1},
		`[z-a]`:            {Construct: `z-a`, At: 1},
		`ab)`:              {Construct: `)`, At: 2},
		`a(b`:              {Construct: `(b`, At: 1},
		`+a`:               {Construct: `+`, At: 0},
		`a{100001}`:        {Construct: `{100001}`, At: 1},
		`a{2,1}`:           {Construct: `{2,1}`, At: 1},
		`(?i:xss)`:         {Construct: `s`, At: 6},
		`(?i)ß`:            {Construct: `ß`, At: 4},
		`(?i)f(?:i)`:       {Construct: `(?:i)`, At: 5},
		`(?i)[aß]`:         {Construct: `[aß]`, At: 4},
		`\u41`:             {Construct: `\u41`, At: 0},
		`\M-a`:             {Construct: `\M`, At: 0},
		"a\xff":            {Construct: "\xff", At: 1},
		`a[b`:              {Construct: "", At: 3},
		`(?<a(b)c>d)`:      {Construct: `(?<a(`, At: 0},
		`[^&&[[:alpha:]-z`: {Construct: `[:alpha:]-`, At: 5},
	} {
		_, err := Cut(pattern, Isolated, false)
		got, ok := errors.AsType[*PatternError](err)
		if !ok || got.Construct != want.Construct || got.At != want.At || got.Pattern != pattern ||
			!errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: got %#v", pattern, err)
		}
	}
}

func TestPatternsAreBounded(t *testing.T) {
	t.Parallel()
	for name, pattern := range map[string]string{
		"length":    strings.Repeat("a", maxPattern+1),
		"groups":    strings.Repeat("(", maxPatternDepth+1),
		"classes":   strings.Repeat("[", maxPatternDepth+1) + "a",
		"rewritten": strings.Repeat(`\X`, 1000),
	} {
		if _, err := Cut(pattern, Isolated, false); err == nil || len(err.Error()) > 1000 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEngineSeesFewItemsInClasses(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{
		`[^\s\p{L}\p{N}]`:       `[^\p{L}\p{N}\p{Z}\u0009-\u000d\u0085]`,
		`[\p{L}&&[^\p{Han}]]`:   `[\p{L}-[\p{Han}]]`,
		`[\p{Lu}\p{L}\p{N}abc]`: `[\p{L}\p{N}]`,
		`[\p{L}\P{L}]`:          `[\s\S]`,
		`\P{L}`:                 `[^\p{L}]`,
		`[^\n]`:                 `[^\u000a]`,
		`[\p{Lu}\p{Lt}\p{M}x]`:  `[\p{M}\p{Lt}\p{Lu}x]`,
	} {
		got, _, err := rewritePattern(pattern)
		if err != nil || got != want {
			t.Errorf("%s: %v\n got %s\nwant %s", pattern, err, got, want)
		}
	}
}

func TestSetsOfCharacters(t *testing.T) {
	t.Parallel()
	a, b := chars(charRange{'a', 'f'}, charRange{'g', 'h'}, charRange{'x', 'z'}), only('c', 'y')
	if !slices.Equal(a, pairs('a', 'h', 'x', 'z')) || !slices.Equal(a.and(b), b) || !a.holds(b) ||
		b.holds(a) {
		t.Errorf("%v and %v", a, b)
	}
	if got := a.and(b.not()); !slices.Equal(got, pairs('a', 'b', 'd', 'h', 'x', 'x', 'z', 'z')) {
		t.Errorf("got %v", got)
	}
	if a.has('i') || !a.has('h') || a.has('w') || !a.not().has('w') || len(everything.not()) != 0 {
		t.Errorf("%v and %v", a, a.not())
	}
	if got := only('k').folded(); !slices.Equal(got, only('K', 'k', '\u212a')) {
		t.Errorf("got %v", got)
	}
}

// FuzzPatterns checks that a rewritten pattern compiles and that its parts cover the text.
func FuzzPatterns(f *testing.F) {
	for _, c := range patternWords {
		f.Add(c.pattern)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		e, err := compile(pattern)
		if err != nil {
			_, known := errors.AsType[*PatternError](err)
			if len(err.Error()) > 2000 || !known && len(pattern) <= maxPattern {
				t.Fatalf("%q: %v", pattern, err)
			}
			return
		}
		const text = "Ab 12\r\nß\xff👩🏽‍🚀"
		parts, err := e.find(text)
		to := 0
		for _, p := range parts {
			if p.from != to {
				t.Fatalf("%q: %v", pattern, parts)
			}
			to = p.to
		}
		if err == nil && to != len(text) {
			t.Fatalf("%q: %v", pattern, parts)
		}
	})
}
