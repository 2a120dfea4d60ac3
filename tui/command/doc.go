package command

import "strings"

// KeysDoc returns the text of docs/reference/keys.md, built from the table of commands. offering returns
// the names of the views that offer a command; mouse lists the mouse actions.
func KeysDoc(offering func(name string) []string, mouse [][2]string) string {
	var b strings.Builder
	b.WriteString("# Keys\n\nMade from the table in `tui/command/table.go` by " +
		"`go test ./tui -run KeysDoc -update`. Do not edit.\n\n" +
		"While a line of text is being typed (prompt, filter, file name) it takes every printable key; " +
		"`enter`\ntakes the text, `esc` leaves it.\n\n" + settingsDoc)
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
			b.WriteString("| " + strings.Join(keys, " ") + " | " + a.Name + " | " + a.Doc + " |\n")
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

[keys]                 # an action's name = its key, or keys; [] for none
token = ["f10", "s"]
"last view" = "ctrl+o"
`

const settingsDoc = "Other keys, and defaults for the flags of the screen, are taken from a file; a flag that is " +
	"typed comes\nbefore `GPUSCOPE_FLAG` of the environment (`GPUSCOPE_THEME=dark`), and that before the file. What " +
	"the file\nnames and this version does not know is a warning in the log; two actions with one key in one place " +
	"are\nan error.\n\n```toml\n" + SettingsExample + "```\n"
