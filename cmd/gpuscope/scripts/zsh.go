package scripts

import (
	"fmt"
	"strings"

	"gpuscope/cmd/gpuscope/cli"
)

// zsh returns the completion script for zsh.
func zsh(all cli.Commands) string {
	list := describe(all)
	var b strings.Builder
	b.WriteString(`#compdef gpuscope
# Completion of gpuscope for zsh, printed by: gpuscope completion zsh

_gpuscope() {
    local -a commands
    local name=
    commands=(
`)
	for _, f := range firsts(list) {
		fmt.Fprintf(&b, "        %s\n", quote(f.word+":"+f.doc))
	}
	b.WriteString("    )\n    if (( CURRENT > 2 )); then\n        case $words[2] in\n")
	for _, f := range firsts(list) {
		switch {
		case f.second != nil:
			fmt.Fprintf(&b, `        %s)
            if (( CURRENT == 3 )); then
                commands=(
`, f.word)
			for _, c := range f.second {
				fmt.Fprintf(&b, "                    %s\n", quote(secondWord(c)+":"+c.doc))
			}
			fmt.Fprintf(&b, `                )
                _describe -t commands command commands
                return
            fi
            name="%s $words[3]"
            words=("${(@)words[2,-1]}")
            (( CURRENT-- )) ;;
`, f.word)
		case f.word == "help":
			b.WriteString("        help)\n            _describe -t commands command commands\n            return ;;\n")
		default:
			fmt.Fprintf(&b, "        %s) name=%[1]s ;;\n", f.word)
		}
	}
	b.WriteString(`        esac
        if [[ -n $name ]]; then
            words=("${(@)words[2,-1]}")
            (( CURRENT-- ))
        fi
    fi
    case $name in
`)
	for _, c := range list {
		if c.name == "" {
			b.WriteString(`    '')
        if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then
            _describe -t commands command commands
            _files
            return
        fi
`)
		} else {
			fmt.Fprintf(&b, "    %s)\n", quote(c.name))
		}
		b.WriteString("        _arguments -s")
		for i := range c.options {
			for _, spec := range zshSpecs(&c.options[i]) {
				b.WriteString(" \\\n            " + quote(spec))
			}
		}
		if spec := zshAction(c.operands, c.words); c.operands != nothing {
			b.WriteString(" \\\n            " + quote("*:argument:"+spec))
		}
		b.WriteString(" ;;\n")
	}
	b.WriteString("    esac\n}\n\n_gpuscope \"$@\"\n")
	return b.String()
}

// zshSpecs describes a flag to the zsh function _arguments. It returns one argument for each name.
func zshSpecs(o *option) (specs []string) {
	names := o.names()
	for _, name := range names {
		spec := "(" + strings.Join(names, " ") + ")" + name
		if o.repeats {
			spec = "*" + name
		}
		if o.takes != nothing && strings.HasPrefix(name, "--") {
			spec += "="
		} else if o.takes != nothing {
			spec += "+"
		}
		spec += "[" + zshText(o.doc) + "]"
		if o.takes != nothing {
			spec += ":" + zshText(o.value) + ":" + zshAction(o.takes, o.words)
		}
		specs = append(specs, spec)
	}
	return specs
}

// zshAction returns the action of _arguments that completes a value.
func zshAction(t takes, list []string) string {
	switch t {
	case words:
		return "(" + zshText(strings.Join(list, " ")) + ")"
	case file:
		return "_files"
	case folder:
		return "_files -/"
	}
	return " " // nothing to complete
}

// zshText escapes the characters that have a special meaning in an argument of _arguments.
func zshText(s string) string {
	return strings.NewReplacer(`\`, `\\`, `[`, `\[`, `]`, `\]`, `:`, `\:`).Replace(s)
}
