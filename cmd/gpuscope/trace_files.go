package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"gpuscope/internal/printable"
	"gpuscope/trace"
	_ "gpuscope/trace/export" // registers the write-only formats
	"gpuscope/trace/table"
)

func traceCheckCommand() *command {
	return &command{
		name: "trace check", operand: "FILE",
		doc: "say whether a file is a whole and sound trace",
		more: `Every id, size and word of it is checked. A recording that was cut is sound as far as it
goes; what is wrong, and a file that is no trace, is exit status 1.`,
		examples: []example{
			{"gpuscope trace check run.jsonl.partial", "what a run has left that was killed"},
		},
		setup: func(p *program, _ *pflag.FlagSet) action {
			return func(_ context.Context, operands []string) error {
				t, err := readTrace(operands)
				if err != nil {
					return err
				}
				_, err = io.WriteString(p.stdout, printable.Clean(operands[0])+": ok, "+holds(t))
				return err
			}
		},
	}
}

// readTrace reads the trace that a command line names first.
func readTrace(operands []string) (*trace.Trace, error) {
	if len(operands) == 0 || operands[0] == "" {
		return nil, usagef("which trace? give its file")
	}
	return trace.ReadFile(operands[0])
}

// holds says what is in a trace, and of its events what one has to know.
func holds(t *trace.Trace) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, %s, %s, %s\n", printable.Clean(t.Schema), table.Plural(len(t.Steps), "step"),
		table.Plural(len(t.Plans), "plan"), table.Plural(len(t.Graph.Dispatches), "dispatch"),
		table.Plural(len(t.Events), "event"))
	if t.DroppedSteps > 0 {
		fmt.Fprintf(&b, "%s before the first were dropped\n", table.Plural(t.DroppedSteps, "step"))
	}
	for _, e := range t.Events {
		if e.Kind == trace.EventCut {
			fmt.Fprintln(&b, printable.Clean(e.Text))
		}
	}
	return b.String()
}

func traceConvertCommand() *command {
	return &command{
		name: "trace convert", operand: "FILE NEW",
		doc: "write a recorded trace in another form",
		more: `The form is what the name of NEW ends in: ` + trace.FileNames() + `. What is there under that
name is replaced, when all of the new file has been written.`,
		examples: []example{
			{"gpuscope trace convert run.jsonl.partial run.json.gz", "a cut recording, whole and small"},
		},
		setup: func(p *program, _ *pflag.FlagSet) action {
			return func(_ context.Context, operands []string) error {
				if len(operands) < 2 {
					return usagef("give a trace and the name of the new file")
				}
				t, err := readTrace(operands)
				if err != nil {
					return err
				}
				err = trace.WriteFile(operands[1], t)
				if errors.Is(err, trace.ErrForm) {
					return usageError{err.Error()}
				}
				return err
			}
		},
	}
}
