package session

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"gpuscope/trace/tracetest"
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
		"nan x":        `"x"`,
		"time":         "want time TIMES",
		"time 1":       "breakpoint time ",
		"time NaN":     "breakpoint time ",
		"time +Inf":    "breakpoint time ",
		"position 0":   "breakpoint position ",
		"position -3":  "breakpoint position ",
		"position 1e3": "breakpoint position ",
		"route re:(":   "breakpoint route: error parsing regexp",

		"op " + strings.Repeat("x", 201): "201",
	} {
		_, err := ParseBreak(text)
		if !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %q", text, err, want)
		}
	}
}

func TestABreakIsOfWhatAModelHas(t *testing.T) {
	t.Parallel()
	tr := tracetest.Llama(2, 1)
	kernel, last := tr.Graph.Kernels[0].Name, tr.Model.Dims["context"]
	for text, want := range map[string]string{
		"op attn.q": "", "op layers.1.": "", "grid": "", "route": "", "nan": "", "time 3": "",
		"kernel " + kernel: "", fmt.Sprintf("position %d", last): "",
		"op " + tr.Graph.Ops[0].Kind: "", "op re:^layers.0": "",

		"op zzz":    "op zzz: ",
		"grid zzz":  "grid zzz: ",
		"route zzz": "route zzz: ",

		"kernel attn.q":                    "kernel attn.q: ",
		fmt.Sprintf("position %d", last+1): fmt.Sprint(last),
	} {
		b, err := ParseBreak(text)
		if err == nil {
			err = b.CheckIn(tr)
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
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
