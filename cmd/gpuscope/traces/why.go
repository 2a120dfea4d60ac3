package traces

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"gpuscope/cmd/gpuscope/cli"
	"gpuscope/internal/printable"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
)

func whyCommand(e *cli.Env) *cli.Command {
	return &cli.Command{
		Name: "trace why", Operand: "FILE DISPATCH",
		Doc: "explain the grid of a dispatch",
		More: `DISPATCH is an id or a name from the tables. If several dispatches have this name, such as q in each layer, the command
takes the first of them that ran. It prints what the key w shows on the screen: how the grid is computed, what caused its
last change, the shortest path to the inputs, and the steps in which the grid changed. If the dispatch does not run in the
step, the output shows since which step it has not run, and which dispatches run instead. For a value, the command lists the operators that can be
re-planned when the value changes.`,
		Examples: []cli.Example{
			{"gpuscope trace why run.json 37", "the grid of dispatch 37 in the last step"},
			{"gpuscope trace why run.json attn.q --steps 1", "the grid of attn.q in the first layer, step 1"},
			{"gpuscope trace why run.json tokens", "the operators that are re-planned when the number of tokens changes"},
		},
		Setup: func(flags *pflag.FlagSet) cli.Action {
			steps := flags.String("steps", "last", "explain the grid in step `N`; if N selects several steps, in the last of them")
			return func(_ context.Context, operands []string) error {
				if len(operands) < 2 {
					return cli.Usagef("want two arguments: a trace, and the id or name of a dispatch")
				}
				t, err := readTrace(operands)
				if err != nil {
					return err
				}
				x := analyze.NewIndex(t)
				scope, err := x.ParseSelection(*steps)
				if err != nil {
					return cli.Usage("--steps: " + err.Error())
				}
				lines, err := report.Explain(x, scope.Steps[len(scope.Steps)-1], operands[1])
				if err != nil {
					return cli.Usage(err.Error())
				}
				for _, l := range lines {
					fmt.Fprintln(e.Stdout, printable.Clean(l))
				}
				return nil
			}
		},
	}
}
