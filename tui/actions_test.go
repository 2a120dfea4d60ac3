package tui

import (
	"slices"
	"strings"
	"testing"

	"gpuscope/tui/tuitest"
)

func TestNoKeyHasTwoActions(t *testing.T) {
	a := bare(t, Options{}).app
	places := []place{{in: []scope{overlays, moving, anywhere}}}
	for i := range views {
		a.current = i
		places = append(places, a.place())
	}
	for i, at := range places {
		owner := map[string]string{}
		for _, a := range here(at, false) {
			for _, k := range a.keys {
				if other, ok := owner[k]; ok {
					t.Errorf("at place %d key %s means %s and %s", i, k, other, a.name)
				}
				owner[k] = a.name
			}
		}
	}
}

// Terminals send these for tab, enter, escape and backspace, or tmux takes them.
func TestNoActionHasAKeyThatTerminalsKeep(t *testing.T) {
	for i := range actions {
		for _, k := range actions[i].keys {
			if slices.Contains([]string{
				"ctrl+i", "ctrl+m", "ctrl+[", "ctrl+h", "ctrl+j", "ctrl+k", "ctrl+l",
				"ctrl+b", "ctrl+a",
			}, k) {
				t.Errorf("%s is bound to %s", k, actions[i].name)
			}
		}
	}
}

func TestEveryActionSaysWhatItDoes(t *testing.T) {
	for i := range actions {
		if a := &actions[i]; a.name == "" || !strings.HasSuffix(a.doc, ".") || len(a.in) == 0 ||
			a.run == nil {
			t.Errorf("action %v %q is not whole", a.keys, a.name)
		}
	}
}

// Whatever is pressed wherever, nothing panics and the frame stays whole.
func TestEveryKeyIsSafeEverywhere(t *testing.T) {
	begin := map[string]func() *driver{
		"session":        func() *driver { return live(t, 80, 24) },
		"before a step":  func() *driver { return drive(t, 80, 24, llama, &tuitest.Script{}, Options{}) },
		"trace":          func() *driver { return drive(t, 80, 24, llama, nil, Options{}) },
		"nothing opened": func() *driver { return bare(t, Options{Width: 80, Height: 24}) },
	}
	for name, open := range begin {
		for _, view := range viewKeys() {
			d := open().press(view)
			for i := range actions {
				for _, k := range actions[i].keys {
					if k == "ctrl+z" || k == "q" || k == "ctrl+c" {
						continue
					}
					d.touch(k)
					if k == "space" {
						d.touch(k) // a run would go on
					}
					d.settle()
					if n := strings.Count(d.app.View(), "\n"); n != 23 {
						t.Fatalf("%s, view %s: after %s there are %d lines", name, view, k, n+1)
					}
					d.press("esc", "esc", view)
				}
			}
		}
	}
}

func TestADisabledActionSaysWhy(t *testing.T) {
	d := drive(t, 80, 24, llama, nil, Options{})
	d.press("R").sees("repeat: this is a recorded trace")
	d.press("?", "pgdown").sees("not now: this is a recorded trace")
}
