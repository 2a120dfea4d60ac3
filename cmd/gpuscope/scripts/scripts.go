// Package scripts describes the command line to other programs: "gpuscope completion" prints completion
// scripts for shells, and "gpuscope man" prints a manual page. Both are generated from the table of commands
// and their flags.
package scripts

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"gpuscope/cmd/gpuscope/cli"
	"gpuscope/internal/printable"
)

// Commands returns the commands of this package. `all` returns all commands of the program. version and date
// (2006-01-02, or "" if not known) are printed in the manual page.
func Commands(e *cli.Env, all func() cli.Commands, version, date string) cli.Commands {
	return cli.Commands{completionCommand(e, all), manCommand(e, all, version, date)}
}

// printers holds the function that writes the completion script of each shell.
var printers = []struct {
	shell string
	write func(cli.Commands) string
}{{"bash", bash}, {"zsh", zsh}, {"fish", fish}}

func completionCommand(e *cli.Env, all func() cli.Commands) *cli.Command {
	var shells []string
	for _, s := range printers {
		shells = append(shells, s.shell)
	}
	return &cli.Command{
		Name: "completion", Operand: strings.Join(shells, "|"),
		Doc: "print the completion script of a shell, for commands, flags, values and file names",
		More: `bash: add the line  source <(gpuscope completion bash)  to ~/.bashrc.
zsh:  write the script to a file _gpuscope in a folder of $fpath.
fish: write the script to ~/.config/fish/completions/gpuscope.fish.
Print the script again after an update of gpuscope: it lists the flags of this version.`,
		Examples: []cli.Example{
			{"gpuscope completion bash > gpuscope.bash", "a script for bash"},
			{"gpuscope completion zsh > _gpuscope", "a script for zsh"},
			{"gpuscope completion fish > gpuscope.fish", "a script for fish"},
		},
		Setup: func(*pflag.FlagSet) cli.Action {
			return func(_ context.Context, operands []string) error {
				name := ""
				if len(operands) > 0 {
					name = operands[0]
				}
				for _, s := range printers {
					if s.shell == name {
						_, err := io.WriteString(e.Stdout, s.write(all()))
						return err
					}
				}
				return cli.Usagef("shell %q: want %s", printable.Short(name, 40), printable.Choice(shells))
			}
		},
	}
}

// takes is the kind of value that a flag or an operand accepts.
type takes int

const (
	nothing takes = iota // no value
	text                 // nothing to complete
	words                // some of a list of words
	file
	folder
)

// option describes a flag for the completion scripts.
type option struct {
	long, short string // without dashes; short may be empty
	takes       takes
	words       []string
	value       string // name of the value, such as LEVEL
	doc         string // description in one short sentence
	repeats     bool   // the flag may be repeated
}

// names returns the flag as users type it: --long, and -s if there is a short form.
func (o *option) names() []string {
	if o.short == "" {
		return []string{"--" + o.long}
	}
	return []string{"--" + o.long, "-" + o.short}
}

// command describes a command for the completion scripts.
type command struct {
	name     string // "" for the command without a name
	doc      string
	options  []option
	operands takes
	words    []string // words of the operand
}

// describe returns the commands that users may type, the one without a name first.
func describe(all cli.Commands) (list []command) {
	for _, c := range all {
		if c.Hidden {
			continue
		}
		d := command{name: c.Name, doc: c.Doc}
		switch {
		case c.Operand == "":
			d.operands = nothing
		case strings.ToUpper(c.Operand) != c.Operand: // words to choose from
			d.operands, d.words = words, strings.Split(c.Operand, "|")
		case c.Operand == "DIR":
			d.operands = folder
		default:
			d.operands = file
		}
		c.Flags().VisitAll(func(f *pflag.Flag) { d.options = append(d.options, describeFlag(f)) })
		list = append(list, d)
	}
	return list
}

func describeFlag(f *pflag.Flag) option {
	o := option{long: f.Name, short: f.Shorthand, words: cli.Words(f)}
	o.value, o.doc = pflag.UnquoteUsage(f)
	o.doc = brief(o.doc)
	o.repeats = f.Value.Type() == "stringArray"
	switch {
	case f.NoOptDefVal != "":
		o.takes = nothing
	case len(o.words) > 0:
		o.takes = words
	case o.value == "FILE":
		o.takes = file
	case o.value == "DIR":
		o.takes = folder
	default:
		o.takes = text
	}
	return o
}

// brief shortens a description to its first clause.
func brief(doc string) string {
	for _, end := range []string{"; ", ": ", " (", ", such as "} {
		doc, _, _ = strings.Cut(doc, end)
	}
	const most = 80
	if r := []rune(doc); len(r) > most {
		doc = string(r[:most])
		doc = doc[:max(strings.LastIndexByte(doc, ' '), 1)] + " …"
	}
	return doc
}

// first describes a word that can begin a command line: the name of a command, or the first word of commands
// whose names have two words.
type first struct {
	word, doc string
	second    []command // commands of two words that begin with this word
}

// firsts returns all possible first words.
func firsts(list []command) (out []first) {
	for _, c := range list {
		if c.name == "" {
			continue
		}
		word, _, two := strings.Cut(c.name, " ")
		i := slices.IndexFunc(out, func(f first) bool { return f.word == word })
		if i < 0 {
			i = len(out)
			out = append(out, first{word: word, doc: c.doc})
		}
		if two {
			out[i].second = append(out[i].second, c)
		}
	}
	for i := range out {
		var names []string
		for _, c := range out[i].second {
			names = append(names, secondWord(c))
		}
		if len(names) > 0 {
			out[i].doc = "commands " + strings.Join(names, ", ")
		}
	}
	return append(out, first{word: "help", doc: "help for a command"})
}

func secondWord(c command) string {
	_, second, _ := strings.Cut(c.name, " ")
	return cmp.Or(second, c.name)
}

// commandWords returns the words that follow the name of the program: all first words.
func commandWords(list []first) (out []string) {
	for _, f := range list {
		out = append(out, f.word)
	}
	return out
}

// flagWords returns all flags of a command as users type them.
func (c *command) flagWords() (out []string) {
	for i := range c.options {
		out = append(out, c.options[i].names()...)
	}
	return out
}
