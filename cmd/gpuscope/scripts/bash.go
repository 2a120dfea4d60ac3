package scripts

import (
	"fmt"
	"strings"

	"gpuscope/cmd/gpuscope/cli"
)

// bash returns the completion script for bash 3.2 and later.
func bash(all cli.Commands) string {
	list := describe(all)
	var b strings.Builder
	b.WriteString(`# Completion of gpuscope for bash, printed by: gpuscope completion bash

_gpuscope() {
    local current=${COMP_WORDS[COMP_CWORD]} flag=${COMP_WORDS[COMP_CWORD-1]}
    local name= kind= choices= flags= operands= line
    COMPREPLY=()
    # bash splits --flag=value into three words.
    if [[ $current == = ]]; then
        current=
    elif [[ $flag == = ]]; then
        flag=${COMP_WORDS[COMP_CWORD-2]}
    fi
    if (( COMP_CWORD > 1 )); then
        case ${COMP_WORDS[1]} in
`)
	for _, f := range firsts(list) {
		switch {
		case f.second != nil:
			var names []string
			for _, c := range f.second {
				names = append(names, secondWord(c))
			}
			fmt.Fprintf(&b, `        %s)
            if (( COMP_CWORD == 2 )); then
                name=%[1]s choices=%[2]s kind=words
            else
                name="%[1]s ${COMP_WORDS[2]}"
            fi ;;
`, f.word, quote(strings.Join(names, " ")))
		case f.word == "help":
			fmt.Fprintf(&b, "        help) name=help choices=%s kind=words ;;\n",
				quote(strings.Join(commandWords(firsts(list)[:len(firsts(list))-1]), " ")))
		default:
			fmt.Fprintf(&b, "        %s) name=%[1]s ;;\n", f.word)
		}
	}
	b.WriteString("        esac\n    fi\n    case $name in\n")
	for _, c := range list {
		fmt.Fprintf(&b, "    %s)\n        flags=%s operands=%s\n", quote(c.name),
			quote(strings.Join(c.flagWords(), " ")), bashKind(c.operands))
		if c.name == "" { // the first word may be a command or a file
			fmt.Fprintf(&b, "        (( COMP_CWORD == 1 )) && choices=%s\n",
				quote(strings.Join(commandWords(firsts(list)), " ")))
		}
		if c.operands == words {
			fmt.Fprintf(&b, "        choices=%s\n", quote(strings.Join(c.words, " ")))
		}
		b.WriteString("        case $flag in\n")
		for i := range c.options {
			o := &c.options[i]
			if o.takes == nothing {
				continue
			}
			fmt.Fprintf(&b, "        %s) kind=%s", strings.Join(o.names(), "|"), bashKind(o.takes))
			if o.takes == words {
				fmt.Fprintf(&b, " choices=%s", quote(strings.Join(o.words, " ")))
			}
			b.WriteString(" ;;\n")
		}
		b.WriteString("        esac ;;\n")
	}
	b.WriteString(`    esac
    if [[ -z $kind ]]; then
        if [[ $current == -* ]]; then
            kind=words choices=$flags
        else
            kind=$operands
            [[ $kind == file && -n $choices ]] && COMPREPLY=( $(compgen -W "$choices" -- "$current") )
        fi
    fi
    case $kind in
    words)
        COMPREPLY=( $(compgen -W "$choices" -- "$current") ) ;;
    file|folder)
        local action=-f
        [[ $kind == folder ]] && action=-d
        type compopt &> /dev/null && compopt -o filenames 2> /dev/null
        while IFS= read -r line; do
            COMPREPLY+=("$line")
        done < <(compgen $action -- "$current") ;;
    esac
}
complete -F _gpuscope gpuscope
`)
	return b.String()
}

func bashKind(t takes) string {
	return [...]string{nothing: "none", text: "none", words: "words", file: "file", folder: "folder"}[t]
}

// quote returns a word in single quotes for a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
