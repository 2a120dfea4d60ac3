package traces

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"gpuscope/cmd/gpuscope/cli"
	"gpuscope/internal/printable"
	"gpuscope/model/source"
	"gpuscope/trace"
	"gpuscope/trace/importer"
)

func importCommand(e *cli.Env, by trace.Producer) *cli.Command {
	return &cli.Command{
		Name: "trace import", Operand: "FILE",
		Doc: "make a trace from the profile of another engine",
		More: `FILE is ` + importer.Formats() + `. MODEL is the
model that was profiled. The rows of FILE are joined with the operators of MODEL, in order. The trace has the times of the
other engine, and the operators as they are in MODEL. Compare it with a run of gpuscope as a baseline: with the key B in the
full-screen program, or with trace show --base (docs/guide/import.md).`,
		Examples: []cli.Example{
			{"gpuscope trace import executorch.txt --model llama.pte -o executorch.json", "the times of ExecuTorch's own runtime, as a trace"},
			{"gpuscope executorch.json", "open them in the full-screen program"},
		},
		Setup: func(flags *pflag.FlagSet) cli.Action {
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
					return cli.Usagef("no profile was given")
				case o.Path == "":
					return cli.Usagef("--model: give the program that was profiled")
				}
				t, err := importProfile(operands[0], o)
				if err != nil {
					return err
				}
				t.Producer, t.Created = by, time.Now().UTC().Format(time.RFC3339)
				t.Command = append([]string{"gpuscope"}, e.Args...)
				if out == "" {
					return trace.Write(e.Stdout, t)
				}
				if err := trace.WriteFile(out, t); err != nil {
					if errors.Is(err, trace.ErrForm) {
						return cli.Usage(err.Error())
					}
					return err
				}
				_, err = io.WriteString(e.Stdout, printable.Clean(out)+": "+holds(t))
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
