package main

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"gpuscope/internal/printable"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
)

func traceWhyCommand() *command {
	return &command{
		name: "trace why", operand: "FILE DISPATCH",
		doc: "explain the grid of a dispatch",
		more: `DISPATCH is an id or a name from the tables. If several dispatches have this name, such as q in each layer, the command
takes the first of them that ran. It prints what the key w shows on the screen: how the grid is computed, what caused its
last change, the shortest path to the inputs, and the steps in which the grid changed. If the dispatch does not run in the
step, it prints since which step, and which dispatches run instead. For a value, it lists the operators that a change of
the value can re-plan.`,
		examples: []example{
			{"gpuscope trace why run.json 37", "the grid of dispatch 37 in the last step"},
			{"gpuscope trace why run.json attn.q --steps 1", "the grid of attn.q in the first layer, step 1"},
			{"gpuscope trace why run.json tokens", "the operators that a change of the number of tokens can re-plan"},
		},
		setup: func(p *program, flags *pflag.FlagSet) action {
			steps := flags.String("steps", "last", "explain the grid in step `N`; if N selects several steps, in the last of them")
			return func(_ context.Context, operands []string) error {
				if len(operands) < 2 {
					return usagef("want two arguments: a trace, and the id or name of a dispatch")
				}
				t, err := readTrace(operands)
				if err != nil {
					return err
				}
				x := analyze.NewIndex(t)
				scope, err := x.ParseSelection(*steps)
				if err != nil {
					return usageError{"--steps: " + err.Error()}
				}
				lines, err := report.Explain(x, scope.Steps[len(scope.Steps)-1], operands[1])
				if err != nil {
					return usageError{err.Error()}
				}
				for _, l := range lines {
					fmt.Fprintln(p.stdout, printable.Clean(l))
				}
				return nil
			}
		},
	}
}
