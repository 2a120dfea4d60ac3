package traces

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"gpuscope/cmd/gpuscope/cli"
	"gpuscope/internal/printable"
	"gpuscope/trace"
	_ "gpuscope/trace/export" // registers the formats that can only be written
	"gpuscope/trace/export/chromecheck"
	"gpuscope/trace/redact"
	"gpuscope/trace/table"
)

func checkCommand(e *cli.Env) *cli.Command {
	return &cli.Command{
		Name: "trace check", Operand: "FILE",
		Doc: "check that a file is a valid trace",
		More: `Checks that every id, size and keyword is valid. A recording that was cut short is valid if all its complete
records are valid. The exit status is 1 for an invalid trace and for a file that is not a trace.

A file in Chrome JSON, from any program, is checked for what trace viewers need: exact times, slices that are
nested or 1 ns apart, complete arrows, positive ids, escaped names. Each violation is one line.`,
		Examples: []cli.Example{
			{"gpuscope trace check run.jsonl.partial", "check the recording of a run that was killed"},
			{"gpuscope trace check other.ct.json", "check that trace viewers show a Chrome JSON file as it was meant"},
		},
		Setup: func(_ *pflag.FlagSet) cli.Action {
			return func(_ context.Context, operands []string) error {
				if len(operands) > 0 && chromecheck.IsChrome(operands[0]) {
					return checkChrome(e.Stdout, operands[0])
				}
				t, err := readTrace(operands)
				switch {
				case errors.Is(err, trace.ErrWriteOnly) && formatName(operands[0]) == "chrome":
					return checkChrome(e.Stdout, operands[0]) // which finds what is missing in it
				case err != nil:
					return err
				}
				_, err = io.WriteString(e.Stdout, printable.Clean(operands[0])+": ok, "+holds(t))
				return err
			}
		},
	}
}

// maxViolations is the number of violations that are printed.
const maxViolations = 1000

// errViolations is the error for a file in Chrome JSON that violates a rule of package chromecheck.
var errViolations = errors.New("trace viewers would show parts of the file incorrectly or not at all")

// checkChrome checks a file in Chrome JSON, and prints each violation on a line.
func checkChrome(out io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriter(out)
	printed := 0
	sum, err := chromecheck.Check(f, func(v chromecheck.Violation) {
		if printed++; printed <= maxViolations {
			fmt.Fprintln(w, printable.Clean(v.String()))
		}
	})
	name := printable.Clean(path)
	if err == nil && sum.Violations == 0 {
		fmt.Fprintf(w, "%s: ok, Chrome JSON: %s, %s on %s, %s\n", name, table.Plural(sum.Events, "event"),
			table.Plural(sum.Slices, "slice"), table.Plural(sum.Threads, "thread"),
			table.Plural(sum.Flows, "arrow"))
	}
	if more := printed - maxViolations; more > 0 {
		fmt.Fprintf(w, "and %d more\n", more)
	}
	if failed := w.Flush(); err == nil {
		err = failed
	}
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	case sum.Violations > 0:
		return fmt.Errorf("%s: %s: %w", name, table.Plural(sum.Violations, "violation"), errViolations)
	}
	return nil
}

// readTrace reads the trace file that is the first operand.
func readTrace(operands []string) (*trace.Trace, error) {
	if len(operands) == 0 || operands[0] == "" {
		return nil, cli.Usagef("no trace file was given")
	}
	return trace.ReadFile(operands[0])
}

// holds returns a text that says what a trace contains, and whether the recording was cut short.
func holds(t *trace.Trace) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, %s, %s, %s\n", printable.Clean(t.Schema), table.Plural(len(t.Steps), "step"),
		table.Plural(len(t.Plans), "plan"), table.Plural(len(t.Graph.Dispatches), "dispatch"),
		table.Plural(len(t.Events), "event"))
	if t.DroppedSteps > 0 {
		fmt.Fprintf(&b, "the recording lacks the first %s of the run\n", table.Plural(t.DroppedSteps, "step"))
	}
	for _, e := range t.Events {
		if e.Kind == trace.EventCut || e.Kind == trace.EventLeftOut {
			fmt.Fprintln(&b, printable.Clean(e.Text))
		}
	}
	return b.String()
}

// formatList returns the formats in which a trace can be written, one line for each: suffix, name and
// purpose.
func formatList() string {
	var b strings.Builder
	line := func(suffix, name, doc string) {
		fmt.Fprintln(&b, strings.TrimRight(fmt.Sprintf("  %-21s %-14s %s", suffix, name, doc), " "))
	}
	b.WriteString("These formats keep the whole trace, and gpuscope can open them again:\n\n")
	line("suffix", "name for --to", "")
	for _, f := range trace.Formats() {
		line(f.Suffix, f.Name, f.Doc)
	}
	b.WriteString("\nThese formats are for other programs. gpuscope cannot open them again:\n\n")
	for _, e := range trace.Exports() {
		line(e.Suffix, e.Name, e.Doc)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func convertCommand(e *cli.Env) *cli.Command {
	return &cli.Command{
		Name: "trace convert", Operand: "FILE [NEW]",
		Doc: "write a recorded trace in another format",
		More: `If NEW exists, it is replaced when the new file is complete. A folder is replaced only if
gpuscope wrote all files in it. NEW cannot be FILE itself. The suffix of NEW, or --to, chooses
the format. Without a suffix, NEW is written as .json. If NEW ends in .gz or .zst, the file is
compressed. docs/reference/exports.md says what each format keeps.

` + formatList(),
		Examples: []cli.Example{
			{"gpuscope trace convert run.jsonl.partial run.json.gz", "make a complete, compressed trace from a recording that was cut short"},
			{"gpuscope trace convert run.json run.ct.json", "show the run in Perfetto: open run.ct.json at https://ui.perfetto.dev"},
			{"gpuscope trace convert run.json shared.json.gz --no-text", "a trace to give away, without the prompt and the generated text"},
			{"gpuscope trace convert run.json --to parquet -o run17", "write Parquet tables to a folder with the name run17"},
		},
		Setup: func(flags *pflag.FlagSet) cli.Action {
			var out, format string
			flags.StringVarP(&out, "output", "o", "", "write to `FILE`; the same as the argument NEW")
			without := flags.Bool("no-text", false,
				"leave the prompt, the generated text and all token ids out of the new file")
			flags.StringVar(&format, "to", "", "write the format `NAME` (default: the format of the suffix)")
			var names []string
			for _, f := range trace.Formats() {
				names = append(names, f.Name)
			}
			for _, e := range trace.Exports() {
				names = append(names, e.Name)
			}
			cli.SetWords(flags, "to", names...)
			return func(_ context.Context, operands []string) error {
				switch {
				case len(operands) == 2 && out == "":
					out = operands[1]
				case len(operands) == 2:
					return cli.Usagef("the new file is named twice: by -o and as an argument")
				case out == "":
					return cli.Usagef("want two arguments: a trace and the name of the new file")
				}
				return convert(operands, out, format, *without)
			}
		},
	}
}

// convert writes a trace to the file `out`, without its texts if noText is set. `format` is the name of the
// format. If it is "", the suffix of `out` determines the format.
func convert(operands []string, out, format string, noText bool) error {
	write := trace.WriteFile
	if format != "" {
		f, err := trace.FormatNamed(format)
		if err != nil {
			return cli.Usage(err.Error())
		}
		write = func(path string, t *trace.Trace) error { return trace.WriteFileAs(path, f, t) }
	}
	t, err := readTrace(operands)
	if err != nil {
		return err
	}
	if err := cli.CheckOutput(out, operands[0]); err != nil {
		return err
	}
	if noText {
		t = redact.Trace(t)
	}
	err = write(out, t)
	if errors.Is(err, trace.ErrForm) {
		return cli.Usage(err.Error())
	}
	return err
}

// sameFile reports whether two paths name one file, so that its trace is read once and counts as one run.
func sameFile(a, b string) bool {
	x, err1 := os.Stat(a)
	y, err2 := os.Stat(b)
	return a == b || err1 == nil && err2 == nil && os.SameFile(x, y)
}

// formatName returns the name of the format of a file, which its suffix says, or "".
func formatName(path string) string {
	f, _, err := trace.FormatOf(path)
	if err != nil {
		return ""
	}
	return f.Name
}
