package tokenizer

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gpuscope/internal/wordingtest"
)

// oracle returns a function that splits a text into words with a pattern.
func oracle(t testing.TB, pattern string) func(string) []string {
	t.Helper()
	re, err := compile(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return func(text string) (words []string) {
		parts, err := re.find(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range parts {
			words = append(words, text[p.from:p.to])
		}
		return words
	}
}

func (next scanner) all(text string) (words []string) {
	_ = next.cut(text, func(from, to int) error {
		words = append(words, text[from:to])
		return nil
	})
	return words
}

// scanned lists the patterns that have a scanner, by short names.
var scanned = map[string]string{
	"gpt-2": gpt2Pattern, "numbers": numberPattern, "llama-bpe": llama3Pattern, "qwen2": qwen2Pattern,
}

func TestScannersDoWhatThePatternsSay(t *testing.T) {
	t.Parallel()
	// Two characters of each class that the rules distinguish.
	parts := []string{
		" ", "  ", "\t", "\n", "\r", "\r\n", "\u00a0", "\u2003", "\u0085", "\u3000", "\v", "a", "B", "s", "t",
		"S", "T", "ll", "'", "'s", "'S", "'re", "'VE", "'lL", "'d", "'M", "’s",
		"ſ", "'ſ", "é", "e\u0301", "字", "ß", "ᾳ", "ǅ", "1", "22", "333", "4444", "٣", "½", "Ⅷ", "四", "²", ".",
		",", "!?", "-", "_", "$", "+", "🙂", "\u200b", "\ufeff", "\ufffd", "\x00", "\u0301",
	}
	for name, pattern := range scanned {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, scan := oracle(t, pattern), scanners[pattern]
			for _, a := range parts {
				for _, b := range parts {
					for _, c := range []string{"", " ", "\n", "s", "1"} {
						text := a + b + c
						if got, want := scan.all(text), want(text); !slices.Equal(got, want) {
							t.Fatalf("%q: got %q, want %q", text, got, want)
						}
					}
				}
			}
			rapid.Check(t, func(t *rapid.T) {
				text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 40).Draw(t, "parts"), "") +
					rapid.String().Draw(t, "more")
				if diff := cmp.Diff(want(text), scan.all(text)); diff != "" {
					t.Fatalf("%q: %s", text, diff)
				}
			})
		})
	}
}

func TestScannersAgreeOnEveryCharacter(t *testing.T) {
	t.Parallel()
	for name, pattern := range scanned {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, scan := oracle(t, pattern), scanners[pattern]
			for from := rune(0); from <= unicode.MaxRune; from += 64 {
				var text strings.Builder
				for r := from; r < from+64; r++ {
					if utf8.ValidRune(r) && (r < 0x3400 || r%16 == 0) { // only sample the large planes
						text.WriteString("a")
						text.WriteRune(r)
						text.WriteString("7 ")
					}
				}
				if diff := cmp.Diff(want(text.String()), scan.all(text.String())); diff != "" {
					t.Fatalf("from %U: %s", from, diff)
				}
			}
		})
	}
}

func TestEveryPatternHoldsTheWholeText(t *testing.T) {
	t.Parallel()
	if len(scanned) != len(scanners) {
		t.Errorf("%d scanners, %d of them compared with their patterns", len(scanners), len(scanned))
	}
	const text = "I'm HTTPServer, don'T wait...  tres años 1234567 ½ \r\n\n\t if x:\n    y--\xff /a/b\n 中文かな한국어 e\u0301🙂"
	for _, rule := range splits {
		var words []string
		for _, scan := range []bool{true, false} { // with scanners, and with patterns only
			var got []string
			steps := rule.steps()
			if !scan {
				steps = nil
				for _, p := range rule.patterns {
					step, err := Cut("(?:"+p+")", Isolated, false)
					if err != nil {
						t.Fatal(err)
					}
					steps = append(steps, step)
				}
			}
			if err := walk(steps, piece{text: text}, func(w string) error {
				got = append(got, w)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if strings.Join(got, "") != text || len(got) < 14 {
				t.Errorf("%s: %q", rule.names[0], got)
			}
			if !scan && !slices.Equal(got, words) {
				t.Errorf("%s: %s", rule.names[0], cmp.Diff(words, got))
			}
			words = got
		}
	}
}

func TestWordsOfRulesWithoutAScanner(t *testing.T) {
	t.Parallel()
	const text = "HTTPServer's 1234 don't\n 中文!"
	for rule, want := range map[string][]string{
		"gpt-4o":      {"HTTPServer's", " ", "123", "4", " don't", "\n", " 中文", "!"},
		"tekken":      {"HTTPServer", "'s", " ", "1", "2", "3", "4", " don", "'t", "\n", " 中文", "!"},
		"deepseek-v3": {"HTTPServer", "'s", " ", "123", "4", " don", "'t", "\n", " ", "中文", "!"},
		"falcon":      {"HTTPServer", "'", "s", " ", "123", "4", " don", "'", "t", "\n", " 中文", "!"},
		"viking":      {"HTTPServer's", " ", "1", "2", "3", "4", " don't", "\n", " 中文", "!"},
	} {
		steps, err := SplitRule(rule)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		err = walk(steps, piece{text: text}, func(w string) error {
			got = append(got, w)
			return nil
		})
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", rule, err, diff)
		}
	}
}

func TestBehavioursOfCuts(t *testing.T) {
	t.Parallel()
	for b, want := range map[Behaviour][]string{
		Isolated:           {"a", "-", "-", "b", "-"},
		Removed:            {"a", "b"},
		MergedWithPrevious: {"a-", "-", "b-"},
		MergedWithNext:     {"a", "-", "-b", "-"},
		Contiguous:         {"a", "--", "b", "-"},
	} {
		for _, invert := range []bool{false, true} {
			pattern := "-"
			if invert {
				pattern = "[ab]"
			}
			step, err := Cut(pattern, b, invert)
			if err != nil {
				t.Fatal(err)
			}
			if invert && b != Removed && b != Isolated { // each letter is one match here too
				continue
			}
			var got []string
			_ = walk([]Step{step}, piece{text: "a--b-"}, func(w string) error {
				got = append(got, w)
				return nil
			})
			if invert && b == Isolated {
				want = []string{"a", "--", "b", "-"}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s invert %v: %s", b, invert, diff)
			}
		}
	}
	if _, err := Cut("-", "Dropped", false); !errors.Is(err, ErrUnsupported) {
		t.Errorf("got %v", err)
	}
}

func TestPatternsMeanWhatOnigurumaMakesOfThem(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string][]string{
		`a$`: {"a", "\nb", "a"}, `[]a]+`: {"a", "\nb", "a"}, `[^]a]+`: {"a", "\nb", "a"}, `\[&&|b`: {"a\n", "b", "a"},
	} {
		step, err := Cut(pattern, Isolated, false)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		_ = walk([]Step{step}, piece{text: "a\nba"}, func(word string) error {
			got = append(got, word)
			return nil
		})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", pattern, diff)
		}
	}
}

func TestPatternThatTakesTooLongIsAnError(t *testing.T) {
	t.Parallel()
	step, err := Cut(`(?:a|aa)+b`, Isolated, false)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := NewBPE(Config{
		Name: "a.json", Tokens: []string{"a"}, Alphabet: true, Cut: []Step{step},
		BOS: None, EOS: None, Unknown: None,
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = tok.Encode(strings.Repeat("a", 60)+"c", Options{})
	wordingtest.New(t).Error("61 bytes", err)
}

func TestInvalidBytesAreSymbols(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"gpt-2", "smollm", "llama-bpe", "qwen2", "gpt-4o"} {
		steps, err := SplitRule(name)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		err = walk(steps, piece{text: "ab\xff\xc3! \x801"}, func(w string) error {
			got = append(got, w)
			return nil
		})
		if diff := cmp.Diff([]string{"ab", "\xff\xc3!", " \x80", "1"}, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
}

func TestSplitRuleThatIsNotKnownIsNamed(t *testing.T) {
	t.Parallel()
	_, err := SplitRule("kimi-k2")
	if !errors.Is(err, ErrUnsupported) {
		t.Errorf("got %v", err)
	}
	wordingtest.New(t).Error("kimi-k2", err)
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
		if got, ok := fromByteText(ByteText(byte(b))); !ok || got != string([]byte{byte(b)}) {
			t.Errorf("%#02x is decoded as %q", b, got)
		}
	}
	if got, ok := fromByteText("<|im start|>"); ok || got != "<|im start|>" {
		t.Errorf("a text outside the alphabet is changed to %q", got)
	}
}
