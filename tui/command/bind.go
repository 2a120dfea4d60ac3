package command

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// KeyError reports invalid keys of an action in the user's settings.
type KeyError struct {
	Action string
	Reason string
}

func (e *KeyError) Error() string { return fmt.Sprintf("keys of %q: %s", e.Action, e.Reason) }

// sentAs maps a key, such as ctrl+i, to the key that terminals report instead, such as tab.
var sentAs = map[string]string{
	"ctrl+i": "tab", "ctrl+m": "enter", "ctrl+[": "esc", "ctrl+h": "backspace", " ": "space",
}

// Bind returns a copy of the table with other keys: `keys` maps command names to keys. It returns a *KeyError
// if a command or a key is unknown, or if two commands have the same key in one of the places.
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
			return nil, &KeyError{name, "the keys must include ctrl+c, which always quits"}
		}
		for _, k := range keys[name] {
			if as, ok := sentAs[k]; ok {
				return nil, &KeyError{name, fmt.Sprintf("terminals send %q as %s; use that name", k, as)}
			}
			if !isKey(k) {
				return nil, &KeyError{name, fmt.Sprintf("%.20q is not a key: use a character, or a name such as "+
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

// shared returns a key that both commands have in one of the places, or "" if there is none.
func shared(a, b *Row, places []Where) string {
	for _, key := range a.Keys {
		if slices.Contains(b.Keys, key) && meet(a, b, places) {
			return key
		}
	}
	return ""
}

// meet reports whether both commands work in at least one of the places.
func meet(a, b *Row, places []Where) bool {
	return slices.ContainsFunc(places, func(at Where) bool { return a.Holds(at) && b.Holds(at) })
}

// namedKeys are the keys that do not type a character.
var namedKeys = strings.Fields("up down left right home end pgup pgdown tab enter esc space backspace delete insert")

// isKey reports whether name is the name of a key that a terminal can send.
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

// renamed maps former names of commands, which settings files may still use, to the current names.
var renamed = map[string]string{
	"scope": "selection", "scope back": "previous selection", "base": "baseline", "base trace": "baseline trace",
	"fold": "group by", "step before": "previous step", "step after": "next step",
	"event before": "previous event", "match before": "previous match", "found before": "previous found",
}
