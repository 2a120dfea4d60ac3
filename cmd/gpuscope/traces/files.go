package traces

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"gpuscope/cmd/gpuscope/cli"
	"gpuscope/internal/printable"
	"gpuscope/trace"
	_ "gpuscope/trace/export" // registers the formats that can only be written
	"gpuscope/trace/table"
)

func checkCommand(e *cli.Env) *cli.Command {
	return &cli.Command{
		Name: "trace check", Operand: "FILE",
		Doc: "check that a file is a valid trace",
		More: `Checks that every id, size and keyword is valid. A recording that was cut short is valid if all its complete
records are valid. The exit status is 1 for an invalid trace and for a file that is not a trace.`,
		Examples: []cli.Example{
			{"gpuscope trace check run.jsonl.partial", "check the recording of a run that was killed"},
		},
		Setup: func(_ *pflag.FlagSet) cli.Action {
			return func(_ context.Context, operands []string) error {
				t, err := readTrace(operands)
				if err != nil {
					return err
				}
				_, err = io.WriteString(e.Stdout, printable.Clean(operands[0])+": ok, "+holds(t))
				return err
			}
		},
	}
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
		if e.Kind == trace.EventCut {
			fmt.Fprintln(&b, printable.Clean(e.Text))
		}
	}
	return b.String()
}

// formatList returns the formats in which a trace can be written, one line for each: suffix and purpose.
func formatList() string {
	var b strings.Builder
	line := func(suffix, doc string) { fmt.Fprintf(&b, "  %-21s %s\n", suffix, doc) }
	for _, f := range trace.Formats() {
		line(f.Suffix, f.Doc)
	}
	b.WriteString("\nThese formats are for other programs. gpuscope cannot open them again:\n\n")
	for _, e := range trace.Exports() {
		line(e.Suffix, e.Doc)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func convertCommand(e *cli.Env) *cli.Command {
	return &cli.Command{
		Name: "trace convert", Operand: "FILE NEW",
		Doc: "write a recorded trace in another format",
		More: "If NEW exists, it is replaced when the new file is complete. The suffix of NEW chooses the\n" +
			"format. With .gz at the end, the file is compressed.\n\n" + formatList(),
		Examples: []cli.Example{
			{"gpuscope trace convert run.jsonl.partial run.json.gz", "convert a recording that was cut short to a complete, compressed trace"},
		},
		Setup: func(_ *pflag.FlagSet) cli.Action {
			return func(_ context.Context, operands []string) error {
				if len(operands) < 2 {
					return cli.Usagef("want two arguments: a trace and the name of the new file")
				}
				t, err := readTrace(operands)
				if err != nil {
					return err
				}
				err = trace.WriteFile(operands[1], t)
				if errors.Is(err, trace.ErrForm) {
					return cli.Usage(err.Error())
				}
				return err
			}
		},
	}
}
