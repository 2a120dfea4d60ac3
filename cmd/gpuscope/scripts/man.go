package scripts

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"gpuscope/cmd/gpuscope/cli"
)

func manCommand(e *cli.Env, all func() cli.Commands, version, date string) *cli.Command {
	return &cli.Command{
		Name: "man",
		Doc:  "print the manual page, for the program man",
		Examples: []cli.Example{
			{"gpuscope man > gpuscope.1", "write the manual page to a file for \"man ./gpuscope.1\""},
		},
		Setup: func(*pflag.FlagSet) cli.Action {
			return func(context.Context, []string) error {
				_, err := io.WriteString(e.Stdout, page(all(), version, date))
				return err
			}
		},
	}
}

// page returns the manual page in the macros of man(7).
func page(all cli.Commands, version, date string) string {
	var b strings.Builder
	root := all[0]
	fmt.Fprintf(&b, ".\\\" printed by: gpuscope man\n.TH GPUSCOPE 1 %s %s\n", roffQuoted(date),
		roffQuoted("gpuscope "+version))
	b.WriteString(".SH NAME\ngpuscope \\- profile language models on WebGPU and inspect their graphs\n.SH SYNOPSIS\n")
	first := true
	for _, c := range all {
		if c.Hidden {
			continue
		}
		if !first {
			b.WriteString(".br\n")
		}
		first = false
		fmt.Fprintf(&b, ".B %s\n", roff(strings.TrimSpace("gpuscope "+c.Name)))
		if rest := strings.TrimSpace("[flags] " + c.Operand); rest != "" {
			b.WriteString(roff(rest) + "\n")
		}
	}
	b.WriteString(".SH DESCRIPTION\n" + filled(root.Doc))
	paragraphs(&b, root.More)
	section(&b, ".SH OPTIONS", root)
	b.WriteString(".SH COMMANDS\n")
	for _, c := range all[1:] {
		if c.Hidden {
			continue
		}
		fmt.Fprintf(&b, ".SS %s\n%s", roffQuoted("gpuscope "+c.Name), filled(sentence(c.Doc)+"."))
		fmt.Fprintf(&b, ".PP\n.B %s\n", roff(c.UsageLine()))
		paragraphs(&b, c.More)
		section(&b, ".PP\n.B Options", c)
		examples(&b, ".PP\n.B Examples", c)
	}
	b.WriteString(`.SH EXIT STATUS
.TP
.B 0
Success.
.TP
.B 1
Failure: an error, an error of a kernel over its tolerance (verify), or a
condition of \-\-fail\-if that holds (trace diff).
.TP
.B 2
Wrong usage of the command line, the settings file or an environment variable.
`)
	b.WriteString(`.SH ENVIRONMENT
.TP
.B GPUSCOPE_FLAG
Default for a flag of the command without a name: GPUSCOPE_THEME for \-\-theme.
Dashes become underscores.
.TP
.B XDG_CONFIG_HOME, XDG_CACHE_HOME
On Linux, the folders of the settings file (gpuscope/config.toml) and of cached
device measurements. The defaults are ~/.config and ~/.cache.
.TP
.B TERM
With the value dumb, the full screen is not used, as with \-\-plain.
`)
	examples(&b, ".SH EXAMPLES", root)
	return b.String()
}

// sentence returns a text with a capital first letter and without a final period.
func sentence(s string) string {
	s = strings.TrimSuffix(s, ".")
	return strings.ToUpper(s[:1]) + s[1:]
}

// section prints the flags of a command.
func section(b *strings.Builder, title string, c *cli.Command) {
	b.WriteString(title + "\n")
	c.Flags().VisitAll(func(f *pflag.Flag) {
		value, doc := pflag.UnquoteUsage(f)
		b.WriteString(".TP\n.B ")
		if f.Shorthand != "" {
			b.WriteString(roff("-"+f.Shorthand) + ", ")
		}
		b.WriteString(roff("--" + f.Name))
		if value != "" {
			b.WriteString(" " + roff(value))
		}
		said := sentence(doc)
		if d := f.DefValue; d != "" && d != "false" && d != "0" && d != "[]" && !strings.Contains(doc, "(default") {
			said += " (default " + d + ")"
		}
		b.WriteString("\n" + filled(said+"."))
	})
}

// examples prints the examples of a command.
func examples(b *strings.Builder, title string, c *cli.Command) {
	if len(c.Examples) == 0 {
		return
	}
	b.WriteString(title + "\n")
	for _, e := range c.Examples {
		fmt.Fprintf(b, ".TP\n.B %s\n%s", roff(e[0]), filled(sentence(e[1])+"."))
	}
}

// paragraphs prints a text from the help of a command. Blank lines separate paragraphs. If a line of a
// paragraph begins with a space or contains two spaces in a row, the paragraph is printed as it is.
func paragraphs(b *strings.Builder, text string) {
	if text == "" {
		return
	}
	for part := range strings.SplitSeq(text, "\n\n") {
		lines := strings.Split(part, "\n")
		asIs := false
		for _, l := range lines {
			asIs = asIs || strings.HasPrefix(l, " ") || strings.Contains(strings.TrimSpace(l), "  ")
		}
		if !asIs {
			b.WriteString(".PP\n" + filled(part))
			continue
		}
		b.WriteString(".PP\n.nf\n")
		for _, l := range lines {
			b.WriteString(roff(l) + "\n")
		}
		b.WriteString(".fi\n")
	}
}

// filled breaks a text into lines of at most 80 bytes. A longer word gets a line of its own. The program
// that shows the page joins the lines and breaks them again for the width of its screen.
func filled(s string) string {
	var b strings.Builder
	line := ""
	for _, word := range strings.Fields(s) {
		if line != "" && len(roff(line+" "+word)) > 80 {
			b.WriteString(roff(line) + "\n")
			line = ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return b.String() + roff(line) + "\n"
}

// roff escapes a line of text.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}

// roffQuoted returns an argument of a macro in quotation marks.
func roffQuoted(s string) string { return `"` + strings.ReplaceAll(roff(s), `"`, `\(dq`) + `"` }
