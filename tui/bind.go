package tui

import (
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

// KeyError says which command cannot have the keys that it was to have.
type KeyError = command.KeyError

// SettingsExample is a file of settings, as docs/reference/keys.md shows it.
const SettingsExample = command.SettingsExample

// CheckKeys says whether keys (by the names of actions) can take the place of those that the actions have: a
// *KeyError where an action is not known, a key is none, or two actions would have one key in one place.
func CheckKeys(keys map[string][]string) error {
	_, err := bound(keys)
	return err
}

// bound is the table of commands with other keys.
func bound(keys map[string][]string) ([]command.Row, error) {
	places := []command.Where{overText}
	for i := range view.Views {
		places = append(places, command.Where{
			In:     []command.Place{command.Moving, command.InViews, command.Anywhere},
			Offers: view.Views[i].Offers,
		})
	}
	return command.Bind(withViews(), places, keys)
}
