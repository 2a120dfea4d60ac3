package tui

import (
	"slices"
	"strings"
	"testing"

	"gpuscope/tui/command"
	"gpuscope/tui/view"
	"gpuscope/tui/view/all"
)

func TestNoKeyHasTwoActions(t *testing.T) {
	t.Parallel()
	if err := CheckKeys(nil); err != nil {
		t.Error(err)
	}
}

func TestConfiguredKeysAreChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		keys map[string][]string
		want string // prefix of the error, "" for no error
	}{
		{"other keys", map[string][]string{"token": {"f6", "f5"}, "last view": {}}, ""},
		{"swapped", map[string][]string{"token": {"S"}, "back": {"s"}}, ""},
		{"key of another action", map[string][]string{"token": {"q"}}, `keys of "token": "q" is also the key of "quit"`},
		{"key that moves the cursor", map[string][]string{"why": {"j"}}, `keys of "why": "j" is also the key of "down"`},
		{"unknown", map[string][]string{"tokn": {"n"}}, `keys of "tokn": no such command`},
		{"other name of tab", map[string][]string{"why": {"ctrl+i"}}, `keys of "why": terminals send "ctrl+i" as tab`},
		{"no key", map[string][]string{"why": {"ww"}}, `keys of "why": "ww" is not a key`},
		{"ctrl+c removed", map[string][]string{"cancel": {"f1"}}, `keys of "cancel": `},
	} {
		err := CheckKeys(c.keys)
		if ok := err == nil && c.want == "" ||
			err != nil && c.want != "" && strings.HasPrefix(err.Error(), c.want); !ok {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestUserKeysWorkAndAreShown(t *testing.T) {
	t.Cleanup(func() { command.Table = withViews() })
	var err error
	if command.Table, err = bound(map[string][]string{"Log": {"J"}, "help": {}}); err != nil {
		t.Fatal(err)
	}
	d := drive(t, 80, 24, llama, nil, Options{}).press("0").sees("[2 Dispatches]").press("J").sees("[J Log]")
	d.reads("bottom").press(":").typed("help").press("enter").sees("J").reads("overTitle")
}

// Terminals send these keys as tab, enter, escape or backspace, or tmux intercepts them.
func TestNoActionHasAKeyThatTerminalsKeep(t *testing.T) {
	for i := range command.Table {
		for _, k := range command.Table[i].Keys {
			if slices.Contains([]string{
				"ctrl+i", "ctrl+m", "ctrl+[", "ctrl+h", "ctrl+j", "ctrl+k", "ctrl+l",
				"ctrl+b", "ctrl+a",
			}, k) {
				t.Errorf("%s is bound to %s", k, command.Table[i].Name)
			}
		}
	}
}

func TestEveryActionSaysWhatItDoes(t *testing.T) {
	d := drive(t, 80, 24, llama, nil, Options{})
	for i := range command.Table {
		r := &command.Table[i]
		onScreen := strings.HasSuffix(r.Doc, ".") && len(r.In) > 0
		if r.Name == "" || !onScreen && r.Plain.Word == "" {
			t.Errorf("command %v %q is incomplete", r.Keys, r.Name)
		}
		done := false
		rows := slices.Clone(all.Views)
		for _, row := range all.Inner {
			rows = append(rows, *row)
		}
		for _, row := range rows {
			if act := view.ActionOf(row.New(hosting{d.app}, d.app.log).Actions(), r.Name); act != nil {
				done = done || act.Run != nil
			}
		}
		if done = done || d.app.deeds[r.Name].Run != nil; onScreen && !done {
			t.Errorf("no action implements %q", r.Name)
		}
	}
}

func TestADisabledActionSaysWhy(t *testing.T) {
	t.Parallel()
	d := drive(t, 80, 24, llama, nil, Options{})
	d.press("R").reads("bottom")
	if d.press("?", "pgdown"); !strings.Contains(d.squeezed(), "(not now: ") {
		t.Errorf("the help does not say why R is disabled:\n%s", d.screen())
	}
}

func TestKeyOfOtherViewsNamesThem(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, llama, nil, Options{}).press("0", "C")
	d.reads("bottom")
	d.press("c").reads("bottom")
	d.press("4", "j", "c").sees("Graph › Neighbourhood")
	d.press("a").reads("bottom")
}
