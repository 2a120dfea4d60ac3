package main

import (
	"context"

	"github.com/spf13/pflag"
)

func rootCommand() *command {
	return &command{
		operand: "[MODEL]",
		doc:     "gpuscope profiles language models on WebGPU and shows their graphs.",
		examples: []example{
			{"gpuscope devices", "what there is to run on"},
		},
		setup: func(_ *program, _ *pflag.FlagSet) action {
			return func(_ context.Context, operands []string) error {
				if _, err := findModel(operands); err != nil {
					return err
				}
				return usagef("give a command")
			}
		},
	}
}
