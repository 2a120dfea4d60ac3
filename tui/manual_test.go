package tui

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/tracetest"
	"gpuscope/tui/command"
	"gpuscope/tui/tuitest"
)

// answers lists the texts on the screen that answer each question of the manual, in the order of the manual.
var answers = [][]string{
	{"26 rows share ", "~save "},
	{"by kernel", "share↓", "all 23 warm decode steps"},
	{"Why layers.1.attn.sdpa.split", "⌈context 65 / 64⌉", "next change"},
	{"Δ prefill: 291 grid, 112 route", "42→1"},
	{"Dynamic grids: ", "Δµs↑", "baseline", "total"},
	{"together"},
	{"µs isolated · median of", "in 30 repeats"},
	{"pass 0: 308 operators", "attn.norm ×16"},
	{"decode slows down", "attn.sdpa.split: 100 %"},
	{"the route first changes at 2 tokens: bicol 1 · steel 2"},
	{"s23 pos 64: sdpa.split 32 → 64"},
	{"first divergence: dispatch "},
	{"GPU idle before it: ", "CPU meanwhile: "},
	{"Roofline", "FLOP/byte", "bound"},
	{"wrote "},
}

// Each question of the help, when it is chosen, shows its answer after at most ten presses.
func TestAChosenQuestionIsAnswered(t *testing.T) {
	t.Chdir(t.TempDir())
	static := tracetest.Llama(16, 24)
	static.Static = true
	if err := trace.WriteFile("static.json", static); err != nil { // another setting
		t.Fatal(err)
	}
	if len(command.Questions) != len(answers) {
		t.Fatalf("%d questions, %d answers", len(command.Questions), len(answers))
	}
	for i := range command.Questions {
		if testing.Short() && i%4 > 0 {
			continue // one of four, as in some
		}
		q := &command.Questions[i]
		if n := len(strings.Fields(command.Keyed(q.Do))); n == 0 || n > 10 {
			t.Errorf("%s: %d presses", q.Ask, n)
		}
		d := drive(t, 120, 40, pictured(), &tuitest.Script{}, Options{Prompt: "Once upon a time"})
		for range 23 {
			d.press("s")
		}
		d.press("2", "H")
		for range i {
			d.press("down")
		}
		d.press("enter")
		for _, text := range answers[i] {
			if !strings.Contains(d.screen(), text) {
				t.Errorf("%s: the screen has no %q:\n%s", q.Ask, text, d.screen())
			}
		}
	}
}

// Every key that the manual names exists in the program.
func TestTheManualsKeysExist(t *testing.T) {
	b, err := os.ReadFile("../docs/guide/manual.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, a := range command.Table {
		for _, k := range a.Keys {
			known[k] = true
		}
	}
	n := 0
	keys := regexp.MustCompile("`([^` ]|enter|esc|space|tab|up|down|ctrl\\+.)`")
	for _, m := range keys.FindAllStringSubmatch(string(b), -1) {
		if strings.Contains("~–=+░▒█", m[1]) {
			continue // symbols in tables
		}
		if n++; !known[m[1]] {
			t.Errorf("%s is not a key", m[0])
		}
	}
	if n < 60 {
		t.Errorf("%d keys found, want at least 60", n)
	}
}
