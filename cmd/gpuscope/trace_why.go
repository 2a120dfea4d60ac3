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
		doc: "say where the grid of a dispatch comes from",
		more: `DISPATCH is its number or its name, as the tables have them; of several that a name stands for, such as q of
all layers, it is the first that ran. It prints what w shows on the screen: the arithmetic of the grid, what
changed it, the shortest way back to the inputs, and in which steps it changed. Of a dispatch that does not run
in the step it says since when, and which have its work. Of a value it lists the operators that a change can
wake.`,
		examples: []example{
			{"gpuscope trace why run.json 37", "the grid of dispatch 37 in the last step"},
			{"gpuscope trace why run.json attn.q --steps 1", "of the first layer, in the first decode step"},
			{"gpuscope trace why run.json tokens", "what another number of tokens can wake"},
		},
		setup: func(p *program, flags *pflag.FlagSet) action {
			steps := flags.String("steps", "last", "in the step `N`, of several the last of them")
			return func(_ context.Context, operands []string) error {
				if len(operands) < 2 {
					return usagef("give a trace and a dispatch of it, by number or name")
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
