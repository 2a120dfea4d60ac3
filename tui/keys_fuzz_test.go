package tui

import (
	"fmt"
	"math/rand/v2"
	"testing"

	tea "github.com/charmbracelet/bubbletea"

	"gpuscope/session"
	"gpuscope/trace/tracetest"
	"gpuscope/tui/command"
	"gpuscope/tui/tuitest"
)

// presses is the number of keys pressed in each situation of TestThousandsOfKeysDoNoHarm.
const presses = 8000

// TestThousandsOfKeysDoNoHarm presses thousands of keys, in the same order in every run: on a session, while
// a model loads, and on a trace. Nothing panics, every frame fills its screen, esc closes whatever was
// opened, and ctrl+c quits in every state.
func TestThousandsOfKeysDoNoHarm(t *testing.T) {
	t.Chdir(t.TempDir()) // exports go there
	small := tracetest.Llama(2, 12)
	wanted := presses
	if testing.Short() {
		wanted /= 8
	}
	for i, name := range []string{"a session", "while it loads", "a trace"} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(24_000, uint64(i)))
			f := &keyFuzz{t: t, random: r, keys: everyKey()}
			for f.pressed < wanted {
				switch name {
				case "a session":
					f.d = drive(t, 80, 24, small, &tuitest.Script{}, Options{Prompt: "once"})
				case "a trace":
					f.d = drive(t, 80, 24, small, nil, Options{})
				default:
					f.d = bare(t, Options{Width: 80, Height: 24})
					f.opens = r.IntN(600)
				}
				f.w, f.h = 80, 24
				f.round(500)
			}
		})
	}
}

// everyKey returns the keys of all commands, all printable keys and the keys for editing.
func everyKey() []string {
	var keys []string
	for i := range command.Table {
		keys = append(keys, command.Table[i].Keys...)
	}
	for c := '!'; c <= '~'; c++ {
		keys = append(keys, string(c))
	}
	return append(keys, "enter", "enter", "enter", "esc", "esc", "backspace", "delete", "space", "up", "down",
		"left", "right", "tab", "ctrl+u", "ctrl+w")
}

// keyFuzz presses keys at random.
type keyFuzz struct {
	t       *testing.T
	random  *rand.Rand
	keys    []string
	d       *driver
	w, h    int
	opens   int // the number of presses after which the model is loaded
	pressed int
	last    []string
}

// round presses n keys, or fewer if the program quits. Then it closes whatever is open.
func (f *keyFuzz) round(n int) {
	d := f.d
	for i := range n {
		f.pressed++
		f.last = append(f.last, f.one(i))
		f.check()
		if d.app.leaving {
			d.app.runner.Cancel()
			return
		}
		if f.random.IntN(4) == 0 {
			d.settle()
		} else {
			d.events()
		}
	}
	d.update(tea.WindowSizeMsg{Width: 80, Height: 24})
	d.settle()
	for range 10 {
		d.touch("esc")
	}
	d.settle()
	a := d.app
	if a.question != nil || a.dialog != nil || a.over != nil || a.failure != "" || a.inDetail ||
		a.job != nil || a.queued != nil {
		f.t.Fatalf("after %q and 10 esc, something is open:\n%s", f.last[max(0, len(f.last)-30):], d.screen())
	}
	if d.app.mirror.Trace != nil {
		if d.press("?"); a.over == nil {
			f.t.Fatalf("? does not open the help:\n%s", d.screen())
		}
	}
	d.touch("ctrl+c")
	d.touch("ctrl+c")
	if !d.app.leaving {
		f.t.Fatal("ctrl+c twice does not quit")
	}
	d.app.runner.Cancel()
}

// one performs one random action and returns its description.
func (f *keyFuzz) one(i int) string {
	d, r := f.d, f.random
	if d.session == nil && f.opens > 0 && d.app.mirror.Trace == nil {
		if i == f.opens {
			d.session = tuitest.Play(tracetest.Llama(1, 4), tuitest.Script{})
			d.update(openedMsg{session: d.session})
			return "opened"
		}
		if r.IntN(10) == 0 {
			p := session.Progress{Phase: "upload weights", Done: i, Total: r.IntN(1000)}
			d.update(eventsMsg{{Progress: &p}})
			return "progress"
		}
	}
	switch r.IntN(60) {
	case 0:
		f.w, f.h = 1+r.IntN(220), 1+r.IntN(64)
		d.update(tea.WindowSizeMsg{Width: f.w, Height: f.h})
		return fmt.Sprintf("%dx%d", f.w, f.h)
	case 1, 2:
		m := tea.MouseMsg{
			X: r.IntN(f.w+2) - 1, Y: r.IntN(f.h+2) - 1, Action: tea.MouseActionPress,
			Button: tea.MouseButton(1 + r.IntN(5)),
		}
		d.update(m)
		return fmt.Sprintf("mouse %+v", m)
	case 3:
		texts := []string{
			"norm", "us:>1", "re:[", "日本\u0301", "\x1b]52;c;aa\a", "d 3", "45", "time 2", "kernel g",
		}
		text := texts[r.IntN(len(texts))]
		d.update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(text), Paste: true})
		return "pasted " + text
	}
	k := f.keys[r.IntN(len(f.keys))]
	if (k == "q" || k == "ctrl+c") && r.IntN(8) > 0 { // quit less often
		k = "j"
	}
	d.touch(k)
	return k
}

func (f *keyFuzz) check() {
	if flaw := f.d.flaw(); flaw != "" {
		f.t.Fatalf("after %q at %dx%d %s", f.last[max(0, len(f.last)-30):], f.w, f.h, flaw)
	}
}
