package command

import "strings"

// KeysDoc returns the text of docs/reference/keys.md, built from the table of commands. The function
// `offering` returns the names of the views that offer a command. The list `mouse` holds the mouse actions
// and their meanings.
func KeysDoc(offering func(name string) []string, mouse [][2]string) string {
	var b strings.Builder
	b.WriteString("# Keys\n\nMade from the table in `tui/command/table.go` by " +
		"`go test ./tui -run KeysDoc -update`. Do not edit.\n\n" +
		"While you type a line of text (prompt, filter, file name), every printable key adds to the line; " +
		"`enter`\naccepts the line, `esc` discards it.\n\n" + settingsDoc)
	section := func(name string, list []*Row) {
		b.WriteString("\n## " + name + "\n\n| key | action | what it does |\n| --- | --- | --- |\n")
		for _, a := range list {
			keys := make([]string, len(a.Keys))
			for i, k := range a.Keys {
				keys[i] = "`" + k + "`"
				if k == "`" {
					keys[i] = "`` ` ``"
				}
			}
			b.WriteString("| " + strings.Join(keys, " ") + " | " + a.Name + " | " + keyedIn(a.Doc) + " |\n")
		}
	}
	section(InViews.String(), Under(InViews, General))
	for _, of := range Headings {
		list := Under(InViews, func(heading string) bool { return heading == of })
		names := offering(list[0].Name)
		section(of+" ("+strings.Join(names, ", ")+")", list)
	}
	for _, p := range []Place{Moving, Overlays, Anywhere} {
		section(p.String(), Under(p, General))
	}
	b.WriteString("\n## Mouse\n\n| mouse | what it does |\n| --- | --- |\n")
	for _, m := range mouse {
		b.WriteString("| " + m[0] + " | " + m[1] + " |\n")
	}
	return b.String()
}

// SettingsExample is an example settings file. docs/reference/keys.md shows it.
const SettingsExample = `# gpuscope/config.toml, in $XDG_CONFIG_HOME or ~/.config (macOS: ~/Library/Application Support)

theme = "high-contrast" # any long flag of "gpuscope -h", without its dashes
glyphs = "braille"
no-mouse = true
timing = "step"

[keys]                 # name of an action = its key, or a list of keys; [] for no key
token = ["f10", "s"]
"last view" = "ctrl+o"
`

const settingsDoc = "A settings file can change the keys and the defaults of the screen's flags. A flag on the command " +
	"line\noverrides the environment variable `GPUSCOPE_FLAG` (`GPUSCOPE_THEME=dark`), which overrides the file. " +
	"A name\nin the file that this version does not know causes a warning in the log. It is an error if " +
	"two actions have\nthe same key in the same place.\n\n```toml\n" + SettingsExample + "```\n"
