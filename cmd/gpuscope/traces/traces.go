// Package traces contains the commands that read recorded traces: gpuscope trace show, why, check, convert
// and so on. They need no GPU. One file has one command.
package traces

import (
	"context"

	"github.com/spf13/pflag"

	"gpuscope/cmd/gpuscope/cli"
	"gpuscope/internal/printable"
	"gpuscope/trace"
)

// Commands returns the trace commands in the order of the help. The parameter `by` is the program that new
// traces name as their producer.
func Commands(e *cli.Env, by trace.Producer) cli.Commands {
	all := cli.Commands{
		showCommand(e), diffCommand(e), whyCommand(e), reportCommand(e), checkCommand(e),
		importCommand(e, by), convertCommand(e),
	}
	return append(all, missingCommand(all.Subcommands("trace")))
}

// missingCommand reports the available commands if "trace" is used without a valid second word.
func missingCommand(known []string) *cli.Command {
	return &cli.Command{
		Name: "trace", Operand: "COMMAND …", Hidden: true,
		Doc: "inspect a recorded trace without a screen",
		Setup: func(*pflag.FlagSet) cli.Action {
			return func(_ context.Context, operands []string) error {
				if len(operands) == 0 {
					return cli.Usagef("trace: want a command: %s", printable.Choice(known))
				}
				return cli.Usagef("trace has no command %q: want %s%s", operands[0], printable.Choice(known),
					Elsewhere[operands[0]])
			}
		},
	}
}

// Elsewhere has a hint for each missing command that users may expect. The hint says which feature to use
// instead.
var Elsewhere = map[string]string{"compare": Comparing, "diff": Comparing}

// Comparing says how to compare two traces.
const Comparing = "; to compare two traces, use trace diff, or open one of them and press B"
