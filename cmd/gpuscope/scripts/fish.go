package scripts

import (
	"fmt"
	"strings"

	"gpuscope/cmd/gpuscope/cli"
)

// fish returns the completion script for fish.
func fish(all cli.Commands) string {
	list := describe(all)
	var b strings.Builder
	b.WriteString(`# Completion of gpuscope for fish, printed by: gpuscope completion fish

# Prints the command on the command line: one word, or two. Prints "-" if there is none.
function __gpuscope_command
    set -l given (commandline -opc)
    switch "$given[2]"
`)
	for _, f := range firsts(list) {
		if f.second != nil {
			fmt.Fprintf(&b, "        case %s\n            echo \"%[1]s $given[3]\"\n", f.word)
		} else {
			fmt.Fprintf(&b, "        case %s\n            echo %[1]s\n", f.word)
		}
	}
	b.WriteString(`        case '*'
            echo -
    end
end

function __gpuscope_in
    test "$(string trim -- (__gpuscope_command))" = "$argv"
end

function __gpuscope_first
    test (count (commandline -opc)) -eq 1
end

`)
	for _, f := range firsts(list) {
		fmt.Fprintf(&b, "complete -c gpuscope -n __gpuscope_first -a %s -d %s\n", f.word, fishQuote(f.doc))
		if f.word != "help" {
			fmt.Fprintf(&b, "complete -c gpuscope -n '__gpuscope_in help' -f -a %s\n", f.word)
		}
		for _, c := range f.second {
			fmt.Fprintf(&b, "complete -c gpuscope -n '__gpuscope_in %s' -f -a %s -d %s\n", f.word,
				secondWord(c), fishQuote(c.doc))
		}
	}
	for _, c := range list {
		name := c.name
		if name == "" {
			name = "-"
		}
		in := "complete -c gpuscope -n " + fishQuote("__gpuscope_in "+name)
		switch c.operands {
		case nothing:
			fmt.Fprintf(&b, "%s -f\n", in)
		case words:
			fmt.Fprintf(&b, "%s -f -a %s\n", in, fishQuote(strings.Join(c.words, " ")))
		case folder:
			fmt.Fprintf(&b, "%s -f -a '(__fish_complete_directories)'\n", in)
		}
		for i := range c.options {
			o := &c.options[i]
			fmt.Fprintf(&b, "%s -l %s", in, o.long)
			if o.short != "" {
				fmt.Fprintf(&b, " -s %s", o.short)
			}
			switch o.takes {
			case text:
				b.WriteString(" -x")
			case words:
				fmt.Fprintf(&b, " -x -a %s", fishQuote(strings.Join(o.words, " ")))
			case file:
				b.WriteString(" -r -F")
			case folder:
				b.WriteString(" -x -a '(__fish_complete_directories)'")
			}
			fmt.Fprintf(&b, " -d %s\n", fishQuote(o.doc))
		}
	}
	return b.String()
}

// fishQuote returns a word in single quotes for fish.
func fishQuote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}
