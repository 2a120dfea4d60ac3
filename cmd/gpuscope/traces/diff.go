package traces

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"gpuscope/cmd/gpuscope/cli"
	"gpuscope/internal/printable"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/diff"
	"gpuscope/trace/analyze/diff/expr"
	"gpuscope/trace/report/comparison"
	"gpuscope/trace/table"
)

func diffCommand(e *cli.Env) *cli.Command {
	return &cli.Command{
		Name: "trace diff", Operand: "A B",
		Doc: "compare two recorded traces",
		More: `A is the baseline. The steps of B are compared with those of A: the plan of each dispatch (grid, route, kernel source,
params), its isolated time, and the times of kernels, operators, layers and whole steps. Dispatches are joined by id if the
graphs are the same, else by operator and kernel, else in order. A difference of times is significant if it exceeds the
variation of the steps and the usual difference between two runs of the same program (docs/guide/diff.md). Times of dispatches need
traces recorded with --timing dispatch, or with --profile both or --profile alone. A and B may be the same file, to compare its steps.

--fail-if takes METRIC>VALUE or METRIC<VALUE. METRIC is one of ` + expr.Metrics + `. VALUE is a percentage (+5%), a difference (+20us),
or a limit for B alone (20us). The exit status is 1 if a condition holds. Percentages and differences count only
if they are significant. If there are too few times to know, as for the single step of a prompt, the condition cannot fail, and
standard error says so.`,
		Examples: []cli.Example{
			{"gpuscope trace diff before.json after.json", "what changed in the decode steps"},
			{"gpuscope trace diff before.json after.json --steps prefill --all", "every dispatch of the prompt"},
			{"gpuscope trace diff run.json run.json --base-steps 3-10 --steps 20-27", "steps of one run"},
			{
				"gpuscope trace diff before.json after.json --fail-if 'decode.p50>+5%' --format markdown -o comment.md",
				"a CI check that also writes a pull request comment",
			},
		},
		Setup: func(flags *pflag.FlagSet) cli.Action {
			c := comparing{e: e}
			flags.StringVar(&c.steps, "steps", "", "compare these `STEPS` of B: "+analyze.SelectionWords+
				" (default decode; if one of the traces has no decode steps, prefill, execute or last)")
			flags.StringVar(&c.baseSteps, "base-steps", "",
				"compare them with these `STEPS` of A (default the same as --steps)")
			flags.StringArrayVar(&c.failIf, "fail-if", nil,
				"exit with status 1 if `CONDITION` holds; percentages and differences count only if they are significant (may be repeated)")
			flags.BoolVar(&c.all, "all", false, "also list dispatches and groups that do not differ")
			flags.StringVarP(&c.out, "output", "o", "",
				"write the result to `FILE` (default standard output)")
			flags.Var((*cli.Positive)(&c.width), "width",
				"leave out columns that do not fit in a width of `N` characters (default: the width of the terminal; without a terminal, all columns are printed)")
			format := cli.FormatFlag(flags, "text", "markdown", "json", "csv")
			return func(ctx context.Context, operands []string) error {
				if err := format.Check(); err != nil {
					return err
				}
				c.format = format.Value
				return c.run(ctx, operands)
			}
		},
	}
}

// comparing holds the arguments of one trace diff command.
type comparing struct {
	e                             *cli.Env
	steps, baseSteps, out, format string
	failIf                        []string
	all                           bool
	width                         int
}

// ErrCondition is wrapped by the error of trace diff if a condition of --fail-if makes it fail.
var ErrCondition = errors.New("fail-if condition met")

func (c *comparing) run(ctx context.Context, operands []string) error {
	if len(operands) < 2 {
		return cli.Usagef("want two arguments: the trace of the baseline and the trace to compare with it")
	}
	if err := cli.CheckOutput(c.out, operands...); err != nil {
		return err
	}
	conditions := make([]expr.Condition, len(c.failIf))
	for i, text := range c.failIf {
		var err error
		if conditions[i], err = expr.Parse(text); err != nil {
			return cli.Usage("--fail-if: " + err.Error())
		}
	}
	d, err := c.compare(ctx, operands[0], operands[1])
	if err != nil {
		return err
	}
	results := make([]expr.Result, len(conditions))
	var failed []string
	for i := range conditions {
		if results[i], err = conditions[i].Eval(d); err != nil {
			return fmt.Errorf("--fail-if: %w", err)
		}
		if results[i].Failed() {
			failed = append(failed, comparison.Condition(&results[i]))
		}
		if r := &results[i]; r.NotJudged != "" {
			fmt.Fprintf(c.e.Stderr, "gpuscope trace diff: --fail-if %s cannot fail: %s. To make it work, %s.\n",
				printable.Clean(r.Condition.Text), r.NotJudged, r.Remedy)
		}
	}
	var b bytes.Buffer
	if err := c.write(ctx, &b, d, results); err != nil {
		return err
	}
	if c.out == "" {
		_, err = c.e.Stdout.Write(b.Bytes())
	} else {
		err = cli.WriteFile(c.out, b.Bytes())
	}
	if err != nil {
		return err
	}
	if failed != nil {
		return fmt.Errorf("%w: %s", ErrCondition, strings.Join(failed, "; "))
	}
	return nil
}

// compare reads two traces and compares the selected steps.
func (c *comparing) compare(ctx context.Context, base, now string) (*diff.Diff, error) {
	var sides [2]diff.Side
	for i, path := range []string{base, now} {
		t, err := readTrace([]string{path})
		if err != nil {
			return nil, err
		}
		if len(t.Steps) == 0 {
			return nil, fmt.Errorf("%s has no steps to compare", printable.Clean(path))
		}
		sides[i] = diff.Side{Index: analyze.NewIndex(t), Name: filepath.Base(path)}
		if sameFile(base, now) {
			sides[1] = sides[0]
			break
		}
	}
	return c.compareSides(ctx, sides)
}

// compareSides compares the selected steps of two traces. It sets the selections of the sides.
func (c *comparing) compareSides(ctx context.Context, sides [2]diff.Side) (*diff.Diff, error) {
	words := []string{c.baseSteps, c.steps}
	if words[1] == "" {
		words[1] = defaultSteps(sides[0].Index, sides[1].Index)
	}
	if words[0] == "" {
		words[0] = words[1]
	}
	for i, flag := range []string{"--base-steps", "--steps"} {
		var err error
		if sides[i].Selection, err = sides[i].Index.ParseSelection(words[i]); err != nil {
			switch {
			case c.baseSteps == "" && c.steps == "":
				return nil, err
			case c.baseSteps == "":
				flag = "--steps"
			}
			return nil, cli.Usagef("%s: %s: %v", flag, sides[i].Name, err)
		}
	}
	return diff.Of(ctx, sides[0], sides[1])
}

// defaultSteps returns which steps to compare by default: "decode", "prefill" or "execute", whichever is the
// first in this list of which both traces have steps. If they have no phase in common, it returns "last".
func defaultSteps(a, b *analyze.Index) string {
	for _, phase := range []trace.Phase{trace.Decode, trace.Prefill, trace.Execute} {
		if len(a.Phase(phase).Steps) > 0 && len(b.Phase(phase).Steps) > 0 {
			return string(phase)
		}
	}
	return "last"
}

func (c *comparing) write(ctx context.Context, w io.Writer, d *diff.Diff, results []expr.Result) error {
	switch c.format {
	case "json":
		return cli.WriteJSON(w, comparison.JSONOf(d, results))
	case "markdown":
		return comparison.Markdown(ctx, w, d, results, c.all)
	}
	t := comparison.Of(d, c.all)
	rows, err := t.Select(ctx, table.Selection{})
	if err != nil {
		return err
	}
	width := c.width
	if width == 0 && c.out == "" {
		width = c.e.Columns
	}
	if err := t.Print(ctx, w, c.format, rows, width); err != nil {
		return err
	}
	if c.format == "text" {
		for i := range results {
			fmt.Fprintln(w, comparison.Condition(&results[i]))
		}
	}
	return nil
}
