package printable

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestCleanShowsWhatATerminalWouldObey(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, clean, text, styled string }{
		{"", "", "", ""},
		{"layers.0.attn.q", "layers.0.attn.q", "layers.0.attn.q", "layers.0.attn.q"},
		{"日本語 é 🙂", "日本語 é 🙂", "日本語 é 🙂", "日本語 é 🙂"},
		{"a\nb\tc", "a⏎b⇥c", "a\nb\tc", "a⏎b⇥c"},
		{"a\r\nb", "a·⏎b", "a·\nb", "a·⏎b"},
		{"\x1b]52;c;aGk=\x07", "·]52;c;aGk=·", "·]52;c;aGk=·", "·]52;c;aGk=·"},
		{"\x1b[2Jx", "·[2Jx", "·[2Jx", "·[2Jx"},
		{"\x1b[1;38:5:9mx\x1b[0m", "·[1;38:5:9mx·[0m", "·[1;38:5:9mx·[0m", "\x1b[1;38:5:9mx\x1b[0m"},
		{"\x1b[1", "·[1", "·[1", "·[1"},
		{"\u009b2J\u009d0;title\u009c", "·2J·0;title·", "·2J·0;title·", "·2J·0;title·"},
		{"\u202eabc\u202c\u2066d\u2069", "·abc··d·", "·abc··d·", "·abc··d·"},
		{"a\u200bb\ufeffc\u2060d\u00ade", "a·b·c·d·e", "a·b·c·d·e", "a·b·c·d·e"},
		{"क\u094d\u200dष", "क\u094d·ष", "क\u094d\u200dष", "क\u094d·ष"},
		{"a\u2028b\u2029c\x7f", "a·b·c·", "a·b·c·", "a·b·c·"},
		{"\xff\xc3", "\ufffd\ufffd", "\ufffd\ufffd", "\ufffd\ufffd"},
		{"\U000e0041\u034f\u3164x", "···x", "···x", "···x"},
	} {
		for name, got := range map[string][2]string{
			"Clean": {Clean(c.in), c.clean}, "Text": {Text(c.in), c.text}, "Styled": {Styled(c.in), c.styled},
		} {
			if got[0] != got[1] {
				t.Errorf("%s(%q) = %q, want %q", name, c.in, got[0], got[1])
			}
		}
	}
}

func TestLoneMarkIsDrawnOnADottedCircle(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"\u0301": "◌\u0301", "\u093fa": "◌\u093fa", "\U0001f3ff": "◌\U0001f3ff", "\ufe0f": "◌\ufe0f",
		"e\u0301": "e\u0301", "◌\u0301": "◌\u0301", "🙂": "🙂",
	} {
		if got := Clean(s); got != want {
			t.Errorf("%q is %q, want %q", s, got, want)
		}
	}
}

// anything generates text with everything that may occur: letters, control characters, marks and invalid
// bytes.
func anything() *rapid.Generator[string] {
	const some = "ab .é語🙂\x1b[]0123;m\n\t\r\x07\u009b\u202e\u200b\u200d\u2028\ufeff"
	runes := rapid.RuneFrom([]rune(some), unicode.Cf)
	return rapid.Custom(func(t *rapid.T) string {
		s := rapid.StringOf(runes).Draw(t, "text")
		return s[rapid.IntRange(0, len(s)).Draw(t, "from"):]
	})
}

func TestNothingHiddenStays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := anything().Draw(t, "s")
		for _, got := range []string{Clean(s), Short(s, 9)} {
			if strings.ContainsFunc(got, hidden) || !utf8.ValidString(got) {
				t.Fatalf("%q became %q", s, got)
			}
		}
		if Clean(Clean(s)) != Clean(s) {
			t.Fatalf("%q is not clean after the first time", s)
		}
		if got := Text(s); strings.ContainsRune(got, 0x1b) || Text(got) != got {
			t.Fatalf("%q became %q", s, got)
		}
	})
}

// hidden's shortcuts for ranges without hidden characters agree with the tables of Unicode.
func TestHiddenIsWhatUnicodeSays(t *testing.T) {
	t.Parallel()
	for r := rune(0); r <= unicode.MaxRune; r++ {
		want := unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp,
			unicode.Other_Default_Ignorable_Code_Point)
		if hidden(r) != want {
			t.Fatalf("%U: hidden %t, want %t", r, !want, want)
		}
	}
}

func TestShortKeepsBothEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{
		{"short", 5, "short"},
		{"0123456789", 7, "0123…89"},
		{strings.Repeat("語", 100) + "end", 10, "語語語語語語…end"},
		{"a\n" + strings.Repeat("x", 50) + "\x1b", 4, "a⏎…·"},
		{"abcdef", 0, "ab…"},
		{strings.Repeat("x\x1b", 1<<20) + "z", 6, "x·x·…z"},
	} {
		if got := Short(c.in, c.n); got != c.want {
			t.Errorf("Short(%.20q, %d) = %q, want %q", c.in, c.n, got, c.want)
		}
	}
}

// The output does not depend on how the bytes are split into writes.
func TestWriterCleansAcrossWrites(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := anything().Draw(t, "s")
		var out bytes.Buffer
		w := NewWriter(&out)
		for rest := s; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			if got, err := fmt.Fprint(w, rest[:n]); got != n || err != nil {
				t.Fatalf("wrote %d of %d: %v", got, n, err)
			}
			rest = rest[n:]
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); got != Text(s) {
			t.Fatalf("%q was written as %q, want %q", s, got, Text(s))
		}
	})
}

type full struct{}

var errFull = errors.New("no space left")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWriterPassesErrorsOn(t *testing.T) {
	t.Parallel()
	if n, err := NewWriter(full{}).Write([]byte("abc")); n != 0 || !errors.Is(err, errFull) {
		t.Errorf("%d, %v", n, err)
	}
}

func BenchmarkStyledFrame(b *testing.B) {
	frame := strings.Repeat("\x1b[1m▌ 12\x1b[0m  layers.0.attn.q – 96×4 "+strings.Repeat("█▌⣿", 50), 60)
	b.SetBytes(int64(len(frame)))
	for b.Loop() {
		Styled(frame)
	}
}
