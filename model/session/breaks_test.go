package session

import (
	"errors"
	"strings"
	"testing"
)

func TestBreaksAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"kernel gemv", "op attn.q", "grid", "grid fd_split", "route", "route linear", "nan", "time 1.5",
		"position 640",
	} {
		b, err := ParseBreak("  " + text + " ")
		if err != nil || b.String() != text {
			t.Errorf("%q is read as %q, %v", text, b, err)
		}
	}
	for text, want := range map[string]string{
		"":             `breakpoint "": want kernel PATTERN, op PATTERN, grid [OP]`,
		"jump 3":       `breakpoint "jump"`,
		"kernel":       "want kernel PATTERN",
		"nan x":        `nan takes nothing, not "x"`,
		"time":         "want time TIMES",
		"time 1":       "over 1",
		"time NaN":     "over 1",
		"time +Inf":    "over 1",
		"position 0":   "from 1 on",
		"position -3":  "from 1 on",
		"position 1e3": "from 1 on",
		"route re:(":   "breakpoint route: error parsing regexp: missing closing )",

		"op " + strings.Repeat("x", 201): "a pattern of 201 bytes, want at most 200",
	} {
		_, err := ParseBreak(text)
		if !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %q", text, err, want)
		}
	}
}

func FuzzParseBreak(f *testing.F) {
	for _, seed := range []string{"kernel gemv", "time 3", "position 9", "nan", "grid", "op \xff", "time 1e400"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		b, err := ParseBreak(text)
		if err != nil {
			return
		}
		if again, err := ParseBreak(b.String()); err != nil || again != b {
			t.Errorf("%q is %+v, and then %+v, %v", text, b, again, err)
		}
	})
}
