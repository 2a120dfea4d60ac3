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

func TestABreakIsOfWhatAModelHas(t *testing.T) {
	t.Parallel()
	tr := tracetest.Llama(2, 1)
	kernel, last := tr.Graph.Kernels[0].Name, tr.Model.Dims["context"]
	for text, want := range map[string]string{
		"op attn.q": "", "op layers.1.": "", "grid": "", "route": "", "nan": "", "time 3": "",
		"kernel " + kernel: "", fmt.Sprintf("position %d", last): "",
		"op " + tr.Graph.Ops[0].Kind: "", "op re:^layers.0": "",

		"op zzz":    "breakpoint op zzz: the graph has no such operator",
		"grid zzz":  "breakpoint grid zzz: the graph has no such operator",
		"route zzz": "breakpoint route zzz: the graph has no such operator",

		"kernel attn.q":                    "breakpoint kernel attn.q: the graph has no such kernel",
		fmt.Sprintf("position %d", last+1): fmt.Sprintf("the context has positions 1 to %d", last),
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
