package command

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

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

// Bind is a table with other keys, by the names of commands: a *KeyError where a command is not known, a key
// is none, or two commands would have one key at one of the places.
func Bind(table []Row, places []Where, keys map[string][]string) ([]Row, error) {
	list := slices.Clone(table)
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		found := false
		now := cmp.Or(renamed[name], name)
		for i := range list {
			if list[i].Name == now && len(list[i].In) > 0 {
				found, list[i].Keys = true, keys[name]
			}
		}
		if !found {
			return nil, &KeyError{name, "no such command"}
		}
		if name == "cancel" && !slices.Contains(keys[name], "ctrl+c") {
			return nil, &KeyError{name, "ctrl+c must be one of them: it always quits"}
		}
		for _, k := range keys[name] {
			if as, ok := sentAs[k]; ok {
				return nil, &KeyError{name, fmt.Sprintf("terminals send %q as %s: use that", k, as)}
			}
			if !isKey(k) {
				return nil, &KeyError{name, fmt.Sprintf("%.20q is not a key: want a character, or a name such as "+
					"enter, space, pgup, f5, ctrl+r or alt+x", k)}
			}
		}
	}
	for i := range list {
		for k := range list[:i] {
			if key := shared(&list[i], &list[k], places); key != "" {
				a, b := list[i].Name, list[k].Name
				if _, ok := keys[a]; !ok {
					a, b = b, a
				}
				return nil, &KeyError{a, fmt.Sprintf("%q is also the key of %q", key, b)}
			}
		}
	}
	return list, nil
}

// shared is a key that two actions have in one place, "" where there is none.
func shared(a, b *Row, places []Where) string {
	for _, key := range a.Keys {
		if slices.Contains(b.Keys, key) && meet(a, b, places) {
			return key
		}
	}
	return ""
}

// meet says whether there is a place where both commands work.
func meet(a, b *Row, places []Where) bool {
	return slices.ContainsFunc(places, func(at Where) bool { return a.Holds(at) && b.Holds(at) })
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

// renamed are commands by the names that they had before: files of settings may still use them.
var renamed = map[string]string{
	"scope": "selection", "scope back": "previous selection", "base": "baseline", "base trace": "baseline trace",
	"fold": "group by", "step before": "previous step", "step after": "next step",
	"event before": "previous event", "match before": "previous match", "found before": "previous found",
}
