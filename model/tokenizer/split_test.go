package tokenizer

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// oracle cuts a text into words with the rule's regular expression.
func oracle(t testing.TB, rule splitRule) func(string) []string {
	t.Helper()
	// The engine folds case by lower-casing, Unicode folds the long s to s.
	pattern := strings.Replace(rule.pattern, `(?i:'s|`, `(?i:'s|'ſ|`, 1)
	re := regexp2.MustCompile(pattern, regexp2.None)
	match := func(text string) (words []string) {
		m, err := re.FindStringMatch(text)
		for m != nil && err == nil {
			words = append(words, m.String())
			m, err = re.FindNextMatch(m)
		}
		if err != nil {
			t.Fatal(err)
		}
		return words
	}
	if !rule.isolate {
		return match
	}
	return func(text string) (words []string) {
		for text != "" {
			i := strings.IndexFunc(text, unicode.IsNumber)
			if i < 0 {
				return append(words, match(text)...)
			}
			_, n := utf8.DecodeRuneInString(text[i:])
			words = append(append(words, match(text[:i])...), text[i:i+n])
			text = text[i+n:]
		}
		return words
	}
}

func (r splitRule) all(text string) (words []string) {
	for text != "" {
		n := r.next(text)
		words = append(words, text[:n])
		text = text[n:]
	}
	return words
}

func TestScannersDoWhatThePatternsSay(t *testing.T) {
	t.Parallel()
	// Characters that the rules treat apart, in twos of each class.
	parts := []string{
		" ", "  ", "\t", "\n", "\r", "\r\n", "\u00a0", "\u2003", "\u0085", "\u3000", "\v", "a", "B", "s", "t",
		"S", "T", "ll", "'", "'s", "'S", "'re", "'VE", "'lL", "'d", "'M", "’s",
		"ſ", "'ſ", "é", "e\u0301", "字", "ß", "ᾳ", "ǅ", "1", "22", "333", "4444", "٣", "½", "Ⅷ", "四", "²", ".",
		",", "!?", "-", "_", "$", "+", "🙂", "\u200b", "\ufeff", "\ufffd", "\x00", "\u0301",
	}
	for _, rule := range splits {
		t.Run(rule.names[0], func(t *testing.T) {
			t.Parallel()
			want := oracle(t, rule)
			for _, a := range parts {
				for _, b := range parts {
					for _, c := range []string{"", " ", "\n", "s", "1"} {
						text := a + b + c
						if got, want := rule.all(text), want(text); !slices.Equal(got, want) {
							t.Fatalf("%q: got %q, want %q", text, got, want)
						}
					}
				}
			}
			rapid.Check(t, func(t *rapid.T) {
				text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 40).Draw(t, "parts"), "") +
					rapid.String().Draw(t, "more")
				if diff := cmp.Diff(want(text), rule.all(text)); diff != "" {
					t.Fatalf("%q: %s", text, diff)
				}
			})
		})
	}
}

func TestScannersAgreeOnEveryCharacter(t *testing.T) {
	t.Parallel()
	for _, rule := range splits {
		t.Run(rule.names[0], func(t *testing.T) {
			t.Parallel()
			want := oracle(t, rule)
			for from := rune(0); from <= unicode.MaxRune; from += 64 {
				var text strings.Builder
				for r := from; r < from+64; r++ {
					if utf8.ValidRune(r) && (r < 0x3400 || r%16 == 0) { // large planes by samples
						text.WriteString("a")
						text.WriteRune(r)
						text.WriteString("7 ")
					}
				}
				if diff := cmp.Diff(want(text.String()), rule.all(text.String())); diff != "" {
					t.Fatalf("from %U: %s", from, diff)
				}
			}
		})
	}
}

func TestInvalidBytesAreSymbols(t *testing.T) {
	t.Parallel()
	for _, rule := range splits {
		if diff := cmp.Diff([]string{"ab", "\xff\xc3!", " \x80", "1"},
			rule.all("ab\xff\xc3! \x801")); diff != "" {
			t.Errorf("%s: %s", rule.names[0], diff)
		}
	}
}

func TestSplitRuleThatIsNotKnownIsNamed(t *testing.T) {
	t.Parallel()
	_, err := findSplit("tekken")
	want := `split rule "tekken" is not supported yet (gpt-2, smollm, llama-bpe, qwen2 are): give the prompt as token ids with gpuscope run --ids`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestByteAlphabetIsGPT2s(t *testing.T) {
	t.Parallel()
	for b, want := range map[byte]string{
		' ': "Ġ", '\n': "Ċ", '\t': "ĉ", 0: "Ā", '!': "!", '~': "~",
		0x7f: "ġ", 0xa0: "ł", 0xa1: "¡", 0xad: "Ń", 0xff: "ÿ",
	} {
		if got := ByteText(b); got != want {
			t.Errorf("%#02x: got %s, want %s", b, got, want)
		}
	}
	for b := range 256 {
		if got := fromByteText(ByteText(byte(b))); got != string([]byte{byte(b)}) {
			t.Errorf("%#02x comes back as %q", b, got)
		}
	}
	if got := fromByteText("<|im start|>"); got != "<|im start|>" {
		t.Errorf("a text outside the alphabet becomes %q", got)
	}
}
