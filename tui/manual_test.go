package tui

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"gpuscope/tui/command"
	"gpuscope/tui/tuitest"
)

// answers lists the texts on the screen that answer each question of the manual, in the order of the manual.
var answers = [][]string{
	{"26 rows share ", "~save "},
	{"by kernel", "share↓", "all 23 warm decode steps"},
	{"Why layers.1.attn.sdpa.split", "⌈context 65 / 64⌉", "changes next at"},
	{"Δ prefill: 291 grid, 112 route", "42→1"},
	{"together"},
	{"µs isolated · median of", "in 30 repeats"},
	{"pass 0: 308 operators", "attn.norm ×16"},
	{"decode slows down", "attn.sdpa.split: 100 %"},
	{"the route first changes at 2 tokens: bicol 1 · steel 2"},
	{"s23 pos 64: sdpa.split 32 → 64"},
	{"first divergence: dispatch "},
	{"wrote "},
}

var (
	recipe = regexp.MustCompile(`(?m)^\| [^|]+\? \| (.+) \| .+ \|$|^\| [^|]+\. \| (.+) \| .+ \|$`)
	// a key, text that is typed, or the name of a column
	pressed = regexp.MustCompile("`([^`]+)`|\\*([^*]+)\\*|(\\S+)")
)

// The keys in the manual answer each of its questions with at most ten presses.
func TestTheManualsKeysAnswerItsQuestions(t *testing.T) {
	b, err := os.ReadFile("../docs/guide/manual.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	recipes := recipe.FindAllStringSubmatch(string(b), -1)
	if len(recipes) != len(answers) {
		t.Fatalf("%d recipes, %d answers", len(recipes), len(answers))
	}
	for i, r := range recipes {
		if testing.Short() && i%4 > 0 {
			continue // one of four, as in some
		}
		d := drive(t, 120, 40, pictured(), &tuitest.Script{}, Options{Prompt: "Once upon a time"})
		for range 23 {
			d.press("s")
		}
		words := pressed.FindAllStringSubmatch(r[1]+r[2], -1)
		if len(words) == 0 || len(words) > 10 {
			t.Errorf("%s: %d presses", r[0], len(words))
		}
		for _, word := range words {
			switch {
			case word[1] != "":
				d.press(word[1])
			case word[2] != "":
				d.typed(word[2])
			default:
				letter := regexp.MustCompile(`\s(\S) ` + word[3] + ` `).FindStringSubmatch(d.screen())
				if letter == nil {
					t.Fatalf("%s: no column %s to sort by:\n%s", r[0], word[3], d.screen())
				}
				d.press(letter[1])
			}
		}
		for _, text := range answers[i] {
			if !strings.Contains(d.screen(), text) {
				t.Errorf("%s: the screen has no %q:\n%s", r[0], text, d.screen())
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
		if m[1] == "~" || m[1] == "–" || m[1] == "=" || m[1] == "+" {
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
