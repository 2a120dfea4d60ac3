package tui

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/exp/golden"

	"gpuscope/internal/wordingtest"
	"gpuscope/trace"
	"gpuscope/tui/command"
)

var sizes = [][2]int{{60, 16}, {80, 24}, {120, 40}, {200, 60}}

// TestViews shows every view at every size, on a recorded trace whose last step was repeated.
func TestViews(t *testing.T) {
	for _, view := range []struct {
		name string
		keys []string
	}{
		{"step", []string{"1"}},
		{"dispatches", []string{"2"}},
		{"dispatches-of-one-row", []string{"2", "j", "j", "j", "j", "j", "j", "enter", "j"}},
		{"resize", []string{"3"}},
		{"curves", []string{"5", "j"}},
		{"curves-of-lengths", []string{"5", "a", "j", "l", "l", "l"}},
		{"timeline", []string{"6"}},
		{"timeline-step", []string{"6", "left", "enter"}},
		{"timeline-dispatch", []string{"6", "down", "down", "+", "+", "+", "+", "right", "right"}},
		{"timeline-search", []string{"6", "/", "mlp.down", "enter", "+", "+", "+", "n"}},
		{"timeline-marked", []string{"6", "m", "left", "left", "left", "m"}},
		{"graph", []string{"4", "j", "j", "j", "j", "j", "j", "enter", "j"}},
		{"graph-memory", []string{"4", "a", "a"}},
		{"neighbourhood", []string{"4", "/", "sdpa", "enter", "j", "j", "p"}},
		{"log", []string{"0"}},
		{"help", []string{"2", "?"}},
		{"why", []string{"2", "/", "op:=down", "enter", "w"}},
		{"why-opened", []string{"2", "/", "op:=down", "enter", "w", "enter", "/", "norm", "enter", "n"}},
	} {
		for _, size := range some(sizes) {
			t.Run(fmt.Sprintf("%s-%dx%d", view.name, size[0], size[1]), func(t *testing.T) {
				d := drive(t, size[0], size[1], llama, nil, Options{})
				d.app.log.Add("info", "opened Llama-3.2-1B-Q4_0.gguf")
				d.app.log.Add("warn", "XDG_RUNTIME_DIR is invalid")
				d.press(view.keys...)
				golden.RequireEqual(t, d.screen()+"\n")
			})
		}
	}
}

// In a run with almost no measurements, unknown values are shown as – and never as 0.
func TestUnmeasuredIsNotZero(t *testing.T) {
	bare := *llama
	bare.Device.Ceilings, bare.Observer, bare.Clock = nil, nil, trace.Clock{}
	bare.Steps = slices.Clone(llama.Steps)
	for i := range bare.Steps {
		s := &bare.Steps[i]
		s.Timing, s.GPU, s.Canary, s.Top, s.Resize.NS = "off", nil, 0, nil, trace.Time{}
		s.CPU = trace.CPU{Passes: 1, Submits: 1, TotalNS: s.CPU.TotalNS}
		s.Dispatches = slices.Clone(s.Dispatches)
		for j := range s.Dispatches {
			s.Dispatches[j] = trace.StepDispatch{Plan: s.Dispatches[j].Plan}
		}
	}
	for _, view := range []string{"1", "2", "3", "5", "6"} {
		t.Run(view, func(t *testing.T) {
			golden.RequireEqual(t,
				drive(t, 80, 24, &bare, nil, Options{}).press(view, "j", "j", "j", "j", "j",
					"j").screen()+"\n")
		})
	}
}

// TestThemes shows one screen of each theme with its colours.
func TestThemes(t *testing.T) {
	for _, theme := range []string{"dark", "light", "high-contrast"} {
		t.Run(theme, func(t *testing.T) {
			d := drive(t, 80, 24, llama, nil, Options{Theme: theme, Color: "true"})
			golden.RequireEqual(t, d.press("2", "j").app.View()+"\n")
		})
	}
}

func TestASCIIHasNothingElse(t *testing.T) {
	d := drive(t, 200, 60, llama, nil, Options{Glyphs: "ascii"})
	for _, keys := range append(viewKeys(), "?", "esc 2 j j j j w", "esc :") {
		d.press(strings.Fields(keys)...)
		for _, r := range d.screen() {
			if r > 0x7e {
				t.Errorf("after %v the screen has %q:\n%s", keys, r, d.screen())
				break
			}
		}
	}
}

// No line is wider than the screen, and every frame has exactly as many lines as the screen.
func TestFramesFit(t *testing.T) {
	for _, w := range widths(minWidth, 260, 13) {
		for _, h := range []int{16, 24, 50} {
			d := drive(t, w, h, llama, nil, Options{})
			for _, key := range append(viewKeys(), "?", "esc", ":", "esc", "2", "z", "tab") {
				d.press(key)
				lines := strings.Split(d.app.View(), "\n")
				if len(lines) != h {
					t.Fatalf("%dx%d after %s: %d lines", w, h, key, len(lines))
				}
				for _, l := range lines {
					if ansi.StringWidth(l) > w {
						t.Fatalf("%dx%d after %s: %d cells in %q", w, h, key, ansi.StringWidth(l),
							ansi.Strip(l))
					}
				}
			}
		}
	}
}

func TestKeysDocIsFresh(t *testing.T) { fresh(t, "reference/keys.md", KeysDoc()) }

func TestGlossaryIsFresh(t *testing.T) { fresh(t, "guide/glossary.md", command.GlossaryDoc()) }

// The manual's table of questions is that of the dialog.
func TestQuestionsOfTheManualAreFresh(t *testing.T) {
	b, err := os.ReadFile("../docs/guide/manual.md")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(b), "<!-- questions -->\n")
	_, after, ok := strings.Cut(rest, "<!-- end of questions -->\n")
	if !ok {
		t.Fatal("the manual has no questions")
	}
	fresh(t, "guide/manual.md", before+"<!-- questions -->\n"+command.QuestionsDoc()+
		"<!-- end of questions -->\n"+after)
}

// fresh compares a generated page of the docs with want. With -update it rewrites the page.
func fresh(t *testing.T, page, want string) {
	t.Helper()
	path := filepath.Join("../docs", page)
	if wordingtest.Updating() {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != want {
		t.Errorf("%s is outdated: go test ./tui -run Fresh -update", path)
	}
}
