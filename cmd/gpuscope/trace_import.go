package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"gpuscope/internal/printable"
	"gpuscope/model/source"
	"gpuscope/trace"
	"gpuscope/trace/importer"
)

func traceImportCommand() *command {
	return &command{
		name: "trace import", operand: "FILE",
		doc: "make a trace from the profile of another engine",
		more: `FILE is ` + importer.Formats() + `. MODEL is the
model that was profiled. The rows of FILE are joined with the operators of MODEL, in order. The trace has the times of the
other engine, and the operators as they are in MODEL. Compare it with a run of gpuscope as a baseline: with the key B in the
full-screen program, or with trace show --base (docs/guide/import.md).`,
		examples: []example{
			{"gpuscope trace import executorch.txt --model llama.pte -o executorch.json", "the times of ExecuTorch's own runtime, as a trace"},
			{"gpuscope executorch.json", "open them in the full-screen program"},
		},
		setup: func(p *program, flags *pflag.FlagSet) action {
			var o source.Options
			var out string
			flags.StringVar(&o.Path, "model", "", "join the profile with the operators of model `FILE`, an ExecuTorch program (.pte)")
			flags.StringVar(&o.Method, "method", "",
				"use method `NAME` of the program (default forward, or the only method that reads tokens)")
			flags.StringArrayVar(&o.Data, "data", nil,
				"read weights of the program from the .ptd `FILE` (may be repeated)")
			flags.StringVarP(&out, "output", "o", "", "write the trace to `FILE` (default standard output, as JSON)")
			return func(_ context.Context, operands []string) error {
				switch {
				case len(operands) == 0 || operands[0] == "":
					return usagef("no profile was given")
				case o.Path == "":
					return usagef("--model: give the program that was profiled")
				}
				t, err := importProfile(operands[0], o)
				if err != nil {
					return err
				}
				t.Producer, t.Created = producer(), time.Now().UTC().Format(time.RFC3339)
				t.Command = append([]string{"gpuscope"}, p.asTyped()...)
				if out == "" {
					return trace.Write(p.stdout, t)
				}
				if err := trace.WriteFile(out, t); err != nil {
					if errors.Is(err, trace.ErrForm) {
						return usageError{err.Error()}
					}
					return err
				}
				_, err = io.WriteString(p.stdout, printable.Clean(out)+": "+holds(t))
				return err
			}
		},
	}
}

// importProfile reads the profile of a model.
func importProfile(path string, o source.Options) (*trace.Trace, error) {
	m, err := source.Open(o)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	var run importer.Run
	if run.Ops, err = m.Operators(); err != nil {
		return nil, err
	}
	m.Describe(&run.Model)
	run.Model.Source = filepath.Base(o.Path)
	run.Model.Name = run.Model.Source
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t, err := importer.Read(f, run)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}
