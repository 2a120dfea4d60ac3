package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/spf13/pflag"

	"gpuscope/internal/printable"
	"gpuscope/trace"
	"gpuscope/tui"
)

// Exit statuses.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
	exitBug    = 2 // the exit status of a Go program after a panic
)

// command is a subcommand.
type command struct {
	name     string // "" for the command without a name; two words for commands such as "trace show"
	operand  string // operands in the usage line: "[MODEL]"; a final ellipsis allows any number
	doc      string // one-line description
	more     string // further help text, may be empty
	examples []example
	hidden   bool // not shown in the help
	screen   bool // handles signals itself, to restore the terminal
	// setup declares the flags and returns the action, which runs after the flags are parsed.
	setup func(p *program, flags *pflag.FlagSet) action
}

// action executes a command. The exit status is 2 for a usageError and 1 for any other error.
type action func(ctx context.Context, operands []string) error

type example struct{ line, doc string }

// commands returns all commands in the order of the help.
func commands() []*command {
	return []*command{
		rootCommand(), runCommand(), verifyCommand(), benchCommand(), graphCommand(), tokenizeCommand(),
		traceShowCommand(), traceWhyCommand(), traceCheckCommand(), traceImportCommand(),
		traceConvertCommand(), devicesCommand(), versionCommand(),
		traceCommand(), engineCommand(),
	}
}

// usageError reports a wrong command line.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

// saidError is an error that the user has already seen. It is not printed again.
type saidError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Sprintf(format, args...)} }

// main runs the command in `args` and returns the exit status.
func (p *program) main(ctx context.Context, args []string) int {
	p.args = args
	defer p.cleanOutput()()
	c, args, err := pick(args)
	if err != nil {
		return p.report(ctx, c, err)
	}
	if p.heed != nil && !c.screen {
		ctx = p.heed(ctx)
	}
	return p.report(ctx, c, p.run(ctx, c, args))
}

// report prints a command's error unless it is nil, and returns the exit status.
func (p *program) report(ctx context.Context, c *command, err error) int {
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, syscall.EPIPE):
		return exitDone // the process that reads the output, such as head, closed the pipe on purpose
	}
	name := "gpuscope"
	if c.name != "" && !c.hidden {
		name += " " + c.name
	}
	if bug, ok := errors.AsType[*tui.Panic](err); ok { // the screen has already been closed
		fmt.Fprintf(p.stderr, "%s\n%s: %s\n", bytes.TrimSpace(bug.Stack), name, oneLine(err))
		return exitBug
	}
	if _, ok := errors.AsType[saidError](err); ok {
		return exitFailed
	}
	var usage usageError
	if errors.As(err, &usage) {
		fmt.Fprintf(p.stderr, "%s: %s (%s -h shows how)\n", name, oneLine(err), name)
		return exitUsage
	}
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, context.Canceled) {
		err = fmt.Errorf("stopped by %w", cause)
	}
	fmt.Fprintf(p.stderr, "%s: %s\n", name, oneLine(err))
	return exitFailed
}

// cleanOutput makes standard error remove control characters, because names and texts of models and traces
// may contain terminal escape sequences. It does the same for standard output if that is a terminal. Any
// other standard output gets the original bytes. The caller must call end after the last write.
func (p *program) cleanOutput() (end func()) {
	err := printable.NewWriter(p.stderr)
	p.stderr = err
	end = func() { _ = err.Flush() }
	if p.watched {
		out := printable.NewWriter(p.stdout)
		p.stdout = out
		end = func() { _, _ = out.Flush(), err.Flush() }
	}
	return end
}

// maxErrorLine is the maximum length in characters of an error message, without the command's name.
const maxErrorLine = 340

// oneLine joins the lines of an error message to one line. Messages of compilers and native libraries have
// several lines.
func oneLine(err error) string {
	lines := strings.Split(err.Error(), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	text := strings.Join(slices.DeleteFunc(lines, func(s string) bool { return s == "" }), "; ")
	return printable.Short(text, maxErrorLine)
}

// pick returns the command that the first arguments name, and the arguments after its name. If they name no
// command, it returns the command without a name and all arguments.
func pick(args []string) (c *command, rest []string, err error) {
	if len(args) > 0 && args[0] == "help" {
		return pickHelp(args[1:])
	}
	for words := min(2, len(args)); words > 0; words-- {
		if c := named(args[:words]...); c != nil {
			return c, args[words:], nil
		}
	}
	return rootCommand(), args, nil
}

// pickHelp converts "help WORDS" to the named command with the flag -h.
func pickHelp(words []string) (c *command, rest []string, err error) {
	c = rootCommand()
	switch {
	case len(words) > 0 && named(words...) != nil:
		c = named(words...)
	case len(words) > 1:
		return c, nil, usagef("help: unexpected argument %q", words[1])
	case len(words) == 1:
		return c, nil, usagef("help: no command %q%s", words[0], suggest(words[0], commandNames(), ""))
	}
	return c, []string{"-h"}, nil
}

// named returns the command with this name, or nil.
func named(words ...string) *command {
	for _, c := range commands() {
		if c.name != "" && c.name == strings.Join(words, " ") {
			return c
		}
	}
	return nil
}

func (p *program) run(ctx context.Context, c *command, args []string) error {
	flags := pflag.NewFlagSet(c.name, pflag.ContinueOnError)
	flags.SortFlags = false
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	act := c.setup(p, flags)
	help := flags.BoolP("help", "h", false, "show this help")
	if err := flags.Parse(args); err != nil {
		return flagError(err, flags)
	}
	if *help {
		return p.help(c, flags)
	}
	most, more := len(strings.Fields(c.operand)), strings.HasSuffix(c.operand, "…")
	if flags.NArg() > most && !more {
		first, err := findModel(flags.Args())
		switch {
		case c.name == "" && err != nil:
			return err // the first word may be a misspelled command
		case c.name == "" && trace.IsTrace(first):
			return usagef("unexpected argument %q%s", flags.Arg(most), comparing)
		}
		return usagef("unexpected argument %q", flags.Arg(most))
	}
	return act(ctx, flags.Args())
}

// flagError describes an error of pflag in one line.
func flagError(err error, flags *pflag.FlagSet) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		var names []string
		flags.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		name := unknown.GetSpecifiedName()
		if short := unknown.GetSpecifiedShortnames(); short != "" {
			return usagef("no flag -%s%s", name, suggest(name, names, "--"))
		}
		return usagef("no flag --%s%s", name, suggest(name, names, "--"))
	}
	var missing *pflag.ValueRequiredError
	if errors.As(err, &missing) {
		return usagef("%s needs a value", flagName(missing.GetFlag()))
	}
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		f := invalid.GetFlag()
		return usagef("%s %q: want %s", flagName(f), invalid.GetValue(), wanted[f.Value.Type()])
	}
	return usageError{err.Error()}
}

// wanted says, for each flag type, which values a flag of this type accepts.
var wanted = map[string]string{
	"int": "a whole number", "intSlice": "whole numbers separated by commas", "bool": "true or false",
	"uint64":   "a whole number, 0 or more",
	"positive": "a whole number, 1 or more",
	"float64":  "a number", "string": "text", "uint32": "a whole number from 0 to 4294967295",
}

// positive is the value of a flag that must be an integer of at least 1. It is 0 if the flag is not given.
type positive int

func (n *positive) String() string { return strconv.Itoa(int(*n)) }
func (n *positive) Type() string   { return "positive" }

func (n *positive) Set(s string) error {
	v, err := strconv.Atoi(s)
	if err == nil && v < 1 {
		err = strconv.ErrRange
	}
	*n = positive(v)
	return err
}

func flagName(f *pflag.Flag) string {
	if f.Shorthand != "" {
		return "-" + f.Shorthand
	}
	return "--" + f.Name
}

// suggest returns "; did you mean X?" if a name is close to the word. A name is close if it starts with the
// word, or is the word with the prefix "no-". A name is also close if its edit distance is at most 2 and at
// most half the length of the word.
func suggest(word string, names []string, prefix string) string {
	best, least := "", 3
	for _, n := range names {
		d := distance(word, n)
		if strings.HasPrefix(n, word) || n == "no-"+word {
			d = 1
		}
		if d < least && 2*d <= len(word) {
			best, least = n, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s%s?", prefix, best)
}

// distance returns the optimal string alignment distance: the smallest number of edits that turns a into b.
// An edit inserts, deletes or replaces a byte, or swaps two neighbouring bytes.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			replace := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			rows[i][j] = min(replace, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

// help prints a command's help.
func (p *program) help(c *command, flags *pflag.FlagSet) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n\n  %s\n", c.doc, usageLine(c))
	if c.more != "" {
		fmt.Fprintf(&b, "\n%s\n", c.more)
	}
	if within := subcommands(c.name); c.name == "" || len(within) > 0 {
		b.WriteString("\nCommands:\n")
		t := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
		for _, other := range commands() {
			if other.name != "" && !other.hidden && strings.HasPrefix(other.name, c.name) {
				fmt.Fprintf(t, "  %s\t%s\n", strings.TrimSpace("gpuscope "+other.name+" "+other.operand),
					other.doc)
			}
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	fmt.Fprintf(&b, "\nFlags:\n%s", flags.FlagUsages())
	if len(c.examples) > 0 {
		b.WriteString("\nExamples:\n")
		for _, e := range c.examples {
			fmt.Fprintf(&b, "  %s\n      %s\n", e.line, e.doc)
		}
	}
	_, err := p.stdout.Write(b.Bytes())
	return err
}

func usageLine(c *command) string {
	return strings.Join(slices.DeleteFunc([]string{"gpuscope", c.name, "[flags]", c.operand},
		func(s string) bool { return s == "" }), " ")
}

// commandNames returns the names of the commands that users may type.
func commandNames() []string {
	var names []string
	for _, c := range commands() {
		if c.name != "" && !c.hidden {
			names = append(names, c.name)
		}
	}
	return names
}
