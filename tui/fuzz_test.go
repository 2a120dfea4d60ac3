package tui

import (
	"fmt"
	"slices"
	"testing"

	tea "github.com/charmbracelet/bubbletea"
	"pgregory.net/rapid"

	"gpuscope/trace"
	"gpuscope/trace/tracetest"
	"gpuscope/tui/command"
	"gpuscope/tui/tuitest"
)

// situations returns the states in which a user can find the program.
func situations(t *testing.T, r *rapid.T) map[string]func(w, h int) *driver {
	small := tracetest.Llama(2, 6)
	hostile := tracetest.Hostile(tracetest.Llama(2, 6))
	noSteps := *small
	noSteps.Steps = nil
	shows := func(recorded *trace.Trace) func(w, h int) *driver {
		return func(w, h int) *driver { return drive(t, w, h, recorded, nil, Options{}) }
	}
	plays := func(recorded *trace.Trace, prompt string) func(w, h int) *driver {
		return func(w, h int) *driver {
			return drive(t, w, h, recorded, &tuitest.Script{}, Options{Prompt: prompt})
		}
	}
	return map[string]func(w, h int) *driver{
		"loading":         func(w, h int) *driver { return bare(t, Options{Width: w, Height: h}) },
		"an empty trace":  shows(&trace.Trace{}),
		"no steps":        shows(&noSteps),
		"a trace":         shows(small),
		"a hostile trace": shows(hostile),
		"a random trace":  func(w, h int) *driver { return shows(tracetest.Random(r))(w, h) },
		"before a step":   plays(small, ""),
		"a session":       plays(small, "once"),
		"a hostile model": plays(hostile, tracetest.HostileText),
		"a lost engine": func(w, h int) *driver {
			d := plays(small, "once")(w, h)
			d.update(endedMsg{command.ErrEnded})
			return d
		},
	}
}

// Keys, clicks and resizes come in any order while jobs are running. Nothing panics, every frame fills its
// screen exactly, no text of a model controls the terminal, and ctrl+c quits.
func TestAnyKeysInAnyOrderDoNoHarm(t *testing.T) {
	t.Chdir(t.TempDir()) // exports go there
	var names []string
	for name := range situations(t, nil) {
		names = append(names, name)
	}
	slices.Sort(names)
	keys := append(safeKeys(), "q", "ctrl+c")
	rapid.Check(t, func(r *rapid.T) {
		w, h := rapid.IntRange(1, 210).Draw(r, "w"), rapid.IntRange(1, 62).Draw(r, "h")
		name := rapid.SampledFrom(names).Draw(r, "before")
		d := situations(t, r)[name](w, h)
		check := func(after string) {
			if flaw := d.flaw(); flaw != "" {
				r.Fatalf("%s: after %s at %dx%d %s", name, after, w, h, flaw)
			}
		}
		check("the start")
		for range rapid.IntRange(1, 25).Draw(r, "n") {
			said := ""
			switch rapid.IntRange(0, 9).Draw(r, "what") {
			case 0:
				w, h = rapid.IntRange(1, 210).Draw(r, "w"), rapid.IntRange(1, 62).Draw(r, "h")
				d.update(tea.WindowSizeMsg{Width: w, Height: h})
				said = "a new size"
			case 1:
				m := tea.MouseMsg{
					X: rapid.IntRange(-1, w).Draw(r, "x"), Y: rapid.IntRange(-1, h).Draw(r, "y"),
					Action: tea.MouseActionPress,
					Button: tea.MouseButton(rapid.IntRange(1, 5).Draw(r, "button")),
				}
				d.update(m)
				said = fmt.Sprintf("mouse %+v", m)
			case 2:
				text := rapid.SampledFrom([]string{"norm", "us:>1", "re:[", "x:", "日本\u0301", "\x1b]52;c;aa\a", " "}).
					Draw(r, "text")
				d.update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(text), Paste: true})
				said = "pasted " + text
			default:
				k := rapid.SampledFrom(keys).Draw(r, "key")
				d.touch(k)
				said = k
			}
			check(said)
			if rapid.Bool().Draw(r, "wait") && d.app.job == nil {
				d.settle()
				check(said + ", after all jobs")
			}
		}
		d.touch("ctrl+c")
		d.touch("ctrl+c")
		if !d.app.leaving {
			r.Fatalf("%s: ctrl+c twice does not quit", name)
		}
		d.app.runner.Cancel()
	})
}
