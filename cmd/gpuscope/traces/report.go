package traces

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/pflag"

	"gpuscope/cmd/gpuscope/cli"
	"gpuscope/internal/printable"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/diff"
	"gpuscope/trace/report/html"
)

func reportCommand(e *cli.Env) *cli.Command {
	return &cli.Command{
		Name: "trace report", Operand: "FILE [BASE]",
		Doc: "write a report of a recorded trace as one HTML page",
		More: `The page shows what to fix first and how much faster the model would then be, a timeline with zoom, the roofline, costs,
growth with the position, waste, and tables that sort and filter. It is one file that loads nothing from the network, so it
can be sent and archived. With the trace BASE, the page also compares FILE with BASE.`,
		Examples: []cli.Example{
			{"gpuscope trace report run.json -o run.html", "write the page to run.html"},
			{"gpuscope trace report after.json before.json -o after.html", "also show what changed since before.json"},
		},
		Setup: func(flags *pflag.FlagSet) cli.Action {
			out := flags.StringP("output", "o", "", "write the page to `FILE` (default standard output)")
			return func(ctx context.Context, operands []string) error {
				if err := cli.CheckOutput(*out, operands...); err != nil {
					return err
				}
				t, err := readTrace(operands)
				if err != nil {
					return err
				}
				x, o := analyze.NewIndex(t), html.Options{Name: filepath.Base(operands[0])}
				if len(operands) > 1 {
					if o.Diff, err = reportDiff(ctx, x, operands[0], operands[1]); err != nil {
						return err
					}
				}
				var page bytes.Buffer
				if err := html.Write(ctx, &page, x, o); err != nil {
					return err
				}
				if *out == "" {
					_, err = page.WriteTo(e.Stdout)
					return err
				}
				return cli.WriteFile(*out, page.Bytes())
			}
		},
	}
}

// reportDiff compares a trace with the trace in a file, as trace diff does. `name` is the file name of x.
func reportDiff(ctx context.Context, x *analyze.Index, name, base string) (*diff.Diff, error) {
	against := x
	if !sameFile(base, name) {
		t, err := readTrace([]string{base})
		if err != nil {
			return nil, err
		}
		against = analyze.NewIndex(t)
	}
	for path, of := range map[string]*analyze.Index{name: x, base: against} {
		if len(of.Trace.Steps) == 0 {
			return nil, fmt.Errorf("%s has no steps to compare", printable.Clean(path))
		}
	}
	return new(comparing).compareSides(ctx, [2]diff.Side{
		{Index: against, Name: filepath.Base(base)},
		{Index: x, Name: filepath.Base(name)},
	})
}
