package tty

import (
	"fmt"
	"os"
	"testing"
)

func TestBackgroundIsDarkUnlessTheAnswerIsLight(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]bool{
		"":                                    true,
		"\x1b[?62;22c":                        true,
		"\x1b]11;rgb:0000/0000/0000\x1b\\":    true,
		"\x1b]11;rgb:ffff/ffff/ffff\x07":      false,
		"q\x1b]11;rgb:fd/f6/e3\x1b\\\x1b[?c":  false,
		"\x1b]11;rgb:002b/0036/0000\x07":      true,
		"\x1b]11;rgb:0000/ffff/0000\x07":      false, // green is bright
		"\x1b]11;rgb:0000/0000/ffff\x07":      true,  // blue is not
		"\x1b]11;rgb:ff/ff\x07":               true,
		"\x1b]11;rgb:fffffffffffffffff/0/0\a": true,
	} {
		if got := isDark(answer); got != want {
			t.Errorf("answer %q: dark %v, want %v", answer, got, want)
		}
	}
}

func TestLateAnswersAreNoKeys(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString("a\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\\x1b[?64;1;2cb\x1b[A"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	buf := make([]byte, 100)
	told := ""
	in := Input{r, func(dark bool) { told += fmt.Sprint(dark) }}
	if n, err := in.Read(buf); err != nil || string(buf[:n]) != "ab\x1b[A" || told != "true" {
		t.Errorf("%q, %v, dark: %q", buf[:n], err, told)
	}
}
