// Package cli is the frame of the command line: commands with their flags, help and errors. It knows nothing
// of what the commands do. Package main lists the commands and chooses the exit statuses.
package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/pflag"

	"gpuscope/internal/printable"
)

// Env is the part of the environment that every command uses. Tests replace it.
type Env struct {
	Args           []string // arguments of the process, without the name of the program
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Status         io.Writer // for a progress line: standard error if it is a terminal, else nil
	Terminal       bool      // standard input and standard output are both terminals
	Watched        bool      // standard output is a terminal, so a person reads it
	Columns        int       // width of the terminal of standard output; 0 without a terminal
}

// Command is a subcommand.
type Command struct {
	Name     string // "" for the command without a name; two words for commands such as "trace show"
	Operand  string // operands in the usage line: "[MODEL]"; a final ellipsis allows any number
	Doc      string // one-line description
	More     string // further help text, may be empty
	Examples []Example
	Hidden   bool // not shown in the help
	Screen   bool // handles signals itself, to restore the terminal
	// Setup declares the flags and returns the action, which runs after the flags are parsed.
	Setup func(flags *pflag.FlagSet) Action
	// Surplus is called if there are too many operands. It returns an error that is more helpful than the
	// general one. If Surplus is nil or returns nil, the user sees the general error.
	Surplus func(operands []string) error
}

// Action executes a command. The exit status is 2 for a UsageError and 1 for any other error.
type Action func(ctx context.Context, operands []string) error

// Example is a command line that the help shows, and a text that says what it does.
type Example [2]string

// Commands lists the commands of the program in the order of the help. The first of them has no name.
type Commands []*Command

// UsageError reports a wrong command line.
type UsageError struct{ Text string }

func (e UsageError) Error() string { return e.Text }

// ReportedError is an error that the user has already seen. It is not printed again.
type ReportedError struct{ error }

// Reported marks an error as one that the user has already seen.
func Reported(err error) error { return ReportedError{err} }

// Usage returns a UsageError with this text.
func Usage(text string) error { return UsageError{text} }

// Usagef returns a UsageError with a formatted text.
func Usagef(format string, args ...any) error { return UsageError{fmt.Sprintf(format, args...)} }

// MaxErrorLine is the maximum length in characters of an error message, without the command's name.
const MaxErrorLine = 340

// OneLine joins the lines of an error message to one line. Messages of compilers and native libraries have
// several lines.
func OneLine(err error) string {
	lines := strings.Split(err.Error(), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	text := strings.Join(slices.DeleteFunc(lines, func(s string) bool { return s == "" }), "; ")
	return printable.Short(text, MaxErrorLine)
}

// Pick returns the command whose name is in the first arguments, and the arguments after the name. If the
// first arguments contain no name, it returns the command without a name and all arguments.
func (all Commands) Pick(args []string) (c *Command, rest []string, err error) {
	if len(args) > 0 && args[0] == "help" {
		return all.pickHelp(args[1:])
	}
	for words := min(2, len(args)); words > 0; words-- {
		if c := all.Named(args[:words]...); c != nil {
			return c, args[words:], nil
		}
	}
	return all[0], args, nil
}

// pickHelp converts "help WORDS" to the named command with the flag -h.
func (all Commands) pickHelp(words []string) (c *Command, rest []string, err error) {
	c = all[0]
	switch {
	case len(words) > 0 && all.Named(words...) != nil:
		c = all.Named(words...)
	case len(words) > 1:
		return c, nil, Usagef("help: unexpected argument %q", words[1])
	case len(words) == 1:
		return c, nil, Usagef("help: no command %q%s", words[0], Suggest(words[0], all.Names(), ""))
	}
	return c, []string{"-h"}, nil
}

// Named returns the command with this name, or nil.
func (all Commands) Named(words ...string) *Command {
	for _, c := range all {
		if c.Name != "" && c.Name == strings.Join(words, " ") {
			return c
		}
	}
	return nil
}

// Names returns the names of the commands that users may type.
func (all Commands) Names() []string {
	var names []string
	for _, c := range all {
		if c.Name != "" && !c.Hidden {
			names = append(names, c.Name)
		}
	}
	return names
}

// Subcommands returns the second words of the commands with this first word.
func (all Commands) Subcommands(first string) []string {
	var words []string
	for _, c := range all {
		if rest, ok := strings.CutPrefix(c.Name, first+" "); ok {
			words = append(words, rest)
		}
	}
	return words
}

// Flags returns the flags of a command, including the flag for help.
func (c *Command) Flags() *pflag.FlagSet {
	flags, _, _ := c.setUp()
	return flags
}

// setUp declares the flags of a command.
func (c *Command) setUp() (flags *pflag.FlagSet, act Action, help *bool) {
	flags = pflag.NewFlagSet(c.Name, pflag.ContinueOnError)
	flags.SortFlags = false
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	act = c.Setup(flags)
	return flags, act, flags.BoolP("help", "h", false, "show this help")
}

// Run parses the flags of a command and executes it, or prints its help.
func (all Commands) Run(ctx context.Context, e *Env, c *Command, args []string) error {
	flags, act, help := c.setUp()
	if err := flags.Parse(args); err != nil {
		return FlagError(err, flags)
	}
	if *help {
		return all.help(e, c, flags)
	}
	most, more := len(strings.Fields(c.Operand)), strings.HasSuffix(c.Operand, "…")
	if flags.NArg() > most && !more {
		if c.Surplus != nil {
			if err := c.Surplus(flags.Args()); err != nil {
				return err
			}
		}
		return Usagef("unexpected argument %q", flags.Arg(most))
	}
	return act(ctx, flags.Args())
}

// help prints a command's help.
func (all Commands) help(e *Env, c *Command, flags *pflag.FlagSet) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n\n  %s\n", c.Doc, c.UsageLine())
	if c.More != "" {
		fmt.Fprintf(&b, "\n%s\n", c.More)
	}
	if within := all.Subcommands(c.Name); c.Name == "" || len(within) > 0 {
		b.WriteString("\nCommands:\n")
		t := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
		for _, other := range all {
			if other.Name != "" && !other.Hidden && strings.HasPrefix(other.Name, c.Name) {
				fmt.Fprintf(t, "  %s\t%s\n", strings.TrimSpace("gpuscope "+other.Name+" "+other.Operand),
					other.Doc)
			}
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	fmt.Fprintf(&b, "\nFlags:\n%s", flags.FlagUsages())
	if len(c.Examples) > 0 {
		b.WriteString("\nExamples:\n")
		for _, e := range c.Examples {
			fmt.Fprintf(&b, "  %s\n      %s\n", e[0], e[1])
		}
	}
	_, err := e.Stdout.Write(b.Bytes())
	return err
}

// UsageLine returns the usage line of the help.
func (c *Command) UsageLine() string {
	return strings.Join(slices.DeleteFunc([]string{"gpuscope", c.Name, "[flags]", c.Operand},
		func(s string) bool { return s == "" }), " ")
}
