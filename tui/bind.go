package tui

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gpuscope/tui/command"
	"gpuscope/tui/view"
)

// ActionNames are the names by which Options.Keys speaks of actions.
func ActionNames() []string {
	var names []string
	for _, a := range withViews() {
		if len(a.In) > 0 {
			names = append(names, a.Name)
		}
	}
	return names
}

// KeyError says which action cannot have the keys that it was to have.
type KeyError struct {
	Action string
	Reason string
}

func (e *KeyError) Error() string { return fmt.Sprintf("keys of %q: %s", e.Action, e.Reason) }

// sentAs are keys that a terminal does not tell from others.
var sentAs = map[string]string{
	"ctrl+i": "tab", "ctrl+m": "enter", "ctrl+[": "esc", "ctrl+h": "backspace", " ": "space",
}

// CheckKeys says whether keys (by the names of actions) can take the place of those that the actions have: a
// *KeyError where an action is not known, a key is none, or two actions would have one key in one place.
func CheckKeys(keys map[string][]string) error {
	_, err := bound(keys)
	return err
}

// bound is the table of actions with other keys.
func bound(keys map[string][]string) ([]command.Row, error) {
	list := withViews()
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		found := false
		for i := range list {
			if list[i].Name == name && len(list[i].In) > 0 {
				found, list[i].Keys = true, keys[name]
			}
		}
		if !found {
			return nil, &KeyError{name, "there is no such action"}
		}
		if name == "cancel" && !slices.Contains(keys[name], "ctrl+c") {
			return nil, &KeyError{name, "want ctrl+c among them: it is how one always gets out"}
		}
		for _, k := range keys[name] {
			if as, ok := sentAs[k]; ok {
				return nil, &KeyError{name, fmt.Sprintf("%q is what a terminal sends as %s: say that", k, as)}
			}
			if !isKey(k) {
				return nil, &KeyError{name, fmt.Sprintf("%.20q is no key: want a character, or a name such as "+
					"enter, space, pgup, f5, ctrl+r or alt+x", k)}
			}
		}
	}
	for i := range list {
		for k := range list[:i] {
			if key := shared(&list[i], &list[k]); key != "" {
				a, b := list[i].Name, list[k].Name
				if _, ok := keys[a]; !ok {
					a, b = b, a
				}
				return nil, &KeyError{a, fmt.Sprintf("%q is the key of %q as well", key, b)}
			}
		}
	}
	return list, nil
}

// shared is a key that two actions have in one place, "" where there is none.
func shared(a, b *command.Row) string {
	for _, key := range a.Keys {
		if slices.Contains(b.Keys, key) && meet(a, b) {
			return key
		}
	}
	return ""
}

// meet says whether there is a place where both commands work.
func meet(a, b *command.Row) bool {
	for i := range view.Views {
		at := command.Where{
			In:     []command.Place{command.Moving, command.InViews, command.Anywhere},
			Offers: view.Views[i].Offers,
		}
		if a.Holds(at) && b.Holds(at) {
			return true
		}
	}
	return a.Holds(overText) && b.Holds(overText)
}

// namedKeys are keys that print nothing.
var namedKeys = strings.Fields("up down left right home end pgup pgdown tab enter esc space backspace delete insert")

// isKey says whether a terminal can send a key of that name.
func isKey(name string) bool {
	if n := []rune(name); len(n) == 1 {
		return n[0] > ' '
	}
	for _, with := range []string{"alt+", "ctrl+", "shift+"} {
		if rest, ok := strings.CutPrefix(name, with); ok {
			return isKey(rest)
		}
	}
	var f int
	if n, err := fmt.Sscanf(name, "f%d", &f); n == 1 && err == nil {
		return f >= 1 && f <= 20 && name == fmt.Sprintf("f%d", f)
	}
	return slices.Contains(namedKeys, name)
}

// SettingsExample is a file of settings, as docs/keys.md shows it.
const SettingsExample = `# gpuscope/config.toml, in $XDG_CONFIG_HOME or ~/.config (macOS: ~/Library/Application Support)

theme = "high-contrast" # any long flag of "gpuscope -h", without its dashes
glyphs = "braille"
no-mouse = true
timing = "step"

[keys]                 # an action's name = its key, or keys; [] for none
token = ["f10", "s"]
"last view" = "ctrl+o"
`

const settingsDoc = "Other keys, and defaults for the flags of the screen, are taken from a file; a flag that is " +
	"typed comes\nbefore `GPUSCOPE_FLAG` of the environment (`GPUSCOPE_THEME=dark`), and that before the file. What " +
	"the file\nnames and this version does not know is a warning in the log; two actions with one key in one place " +
	"are\nan error.\n\n```toml\n" + SettingsExample + "```\n"
