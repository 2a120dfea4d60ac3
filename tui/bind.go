package tui

import (
	"gpuscope/tui/command"
	"gpuscope/tui/view"
	"gpuscope/tui/view/all"
)

// ActionNames returns the action names that are valid keys of Options.Keys.
func ActionNames() []string {
	var names []string
	for _, a := range withViews() {
		if len(a.In) > 0 {
			names = append(names, a.Name)
		}
	}
	return names
}

// KeyError reports invalid keys of a command in the user's settings.
type KeyError = command.KeyError

// SettingsExample is an example settings file. docs/reference/keys.md shows it.
const SettingsExample = command.SettingsExample

// CheckKeys checks key bindings that replace the defaults: a map from action names to keys. It returns a
// *KeyError if an action or a key is unknown, or if two actions have the same key in the same place.
func CheckKeys(keys map[string][]string) error {
	_, err := bound(keys)
	return err
}

// bound returns the table of commands with the given key bindings in place of the defaults.
func bound(keys map[string][]string) ([]command.Row, error) {
	places := []command.Where{overText}
	add := func(row *view.Row) {
		in := []command.Place{command.Moving, command.InViews, command.Anywhere}
		places = append(places, command.Where{In: in, Offers: row.Offers})
	}
	for i := range all.Views {
		add(&all.Views[i])
	}
	for _, row := range all.Inner {
		add(row)
	}
	return command.Bind(withViews(), places, keys)
}
