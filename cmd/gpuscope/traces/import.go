package traces

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"gpuscope/cmd/gpuscope/cli"
	"gpuscope/internal/printable"
	"gpuscope/model/source"
	"gpuscope/trace"
	"gpuscope/trace/importer"
	"gpuscope/trace/table"
)

func importCommand(e *cli.Env, by trace.Producer) *cli.Command {
	return &cli.Command{
		Name: "trace import", Operand: "FILE",
		Doc: "make a trace from the profile of another engine",
		More: `FILE is one of these, possibly compressed with gzip or zstd:

` + profileList() + `

MODEL is the model that was profiled. Rows of FILE are joined with the operators of MODEL by tensor name, by operator id, by
operation and shape, or in order; the output says how. Rows that cannot be joined, and all rows without --model, keep the
names of FILE. Compare the trace with a run of gpuscope as a baseline: with the key B in the full-screen program, or with
trace show --base (docs/guide/import.md).`,
		Examples: []cli.Example{
			{"gpuscope trace import executorch.txt --model llama.pte -o executorch.json", "the times of ExecuTorch's own runtime, as a trace"},
			{"gpuscope executorch.json", "open the imported times in the full-screen program"},
			{
				"gpuscope trace import llama.log --model model.gguf -o llama.json",
				"the times of llama.cpp on the same GGUF file",
			},
			{
				"gpuscope trace show run.json --table classes --steps decode --base llama.json",
				"where the other engine is faster, and by how much",
			},
		},
		Setup: func(flags *pflag.FlagSet) cli.Action {
			var o source.Options
			var out string
			flags.StringVar(&o.Path, "model", "", "join the profile with the operators of model `FILE` (GGUF, Hugging Face folder or .pte)")
			flags.StringVar(&o.Method, "method", "",
				"use method `NAME` of the program (default: the method forward or, if there is none, the only method that reads tokens)")
			flags.StringArrayVar(&o.Data, "data", nil,
				"read weights of the program from the .ptd `FILE` (may be repeated)")
			flags.StringVarP(&out, "output", "o", "", "write the trace to `FILE` (default standard output, as JSON)")
			return func(_ context.Context, operands []string) error {
				switch {
				case len(operands) == 0 || operands[0] == "":
					return cli.Usagef("no profile was given")
				case o.Path == "" && (o.Method != "" || len(o.Data) > 0):
					return cli.Usagef("--method and --data need --model")
				}
				if err := cli.CheckOutput(out, append(o.Data, operands[0], o.Path)...); err != nil {
					return err
				}
				t, err := importProfile(operands[0], o)
				if err != nil {
					return err
				}
				joined := func(d trace.Dispatch) bool { return d.Joined != trace.JoinedNot }
				if o.Path != "" && !slices.ContainsFunc(t.Graph.Dispatches, joined) {
					fmt.Fprintf(e.Stderr, "gpuscope trace import: no row of %s fits an operator of %s. "+
						"Is it the model that was profiled?\n", printable.Clean(operands[0]),
						printable.Clean(o.Path))
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
				_, err = io.WriteString(e.Stdout, printable.Clean(out)+": "+holds(t)+joins(t))
				return err
			}
		},
	}
}

// profileList returns the formats of profiles, one line for each: name and description.
func profileList() string {
	var lines []string
	for _, f := range importer.Formats() {
		lines = append(lines, fmt.Sprintf("  %-22s  %s", f[0], f[1]))
	}
	return strings.Join(lines, "\n")
}

// joins returns a text that says how many rows of the profile were joined with operators. It has one line
// for each method by which rows were joined, and a line for the rows that were not joined.
func joins(t *trace.Trace) string {
	rows := map[trace.Joined]int{}
	for i := range t.Steps {
		for _, d := range t.Steps[i].Dispatches {
			rows[t.Graph.Dispatches[t.Plans[d.Plan].Dispatch].Joined]++
		}
	}
	var b strings.Builder
	for _, by := range trace.Joins {
		switch n := rows[by]; {
		case n == 0:
		case by == trace.JoinedNot:
			fmt.Fprintf(&b, "%s of the profile not joined with an operator of a model\n", table.Plural(n, "row"))
		default:
			fmt.Fprintf(&b, "%s joined by %s\n", table.Plural(n, "row"), by)
		}
	}
	return b.String()
}

// importProfile reads a profile. If no model is given, all names in the trace come from the profile.
func importProfile(path string, o source.Options) (*trace.Trace, error) {
	var run importer.Run
	if o.Path != "" {
		if err := readOperators(&run, o); err != nil {
			return nil, err
		}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t, err := importer.Read(f, run)
	if err != nil {
		if errors.Is(err, importer.ErrFormat) {
			err = fmt.Errorf("%w (gpuscope trace import -h describes them)", err)
		}
		err = fmt.Errorf("%s: %w", printable.Short(path, 120), err)
		if _, ok := errors.AsType[*importer.Mismatch](err); ok && o.Path == "" {
			return nil, cli.Usagef("--model: the format of %s joins rows in the order of the operators. "+
				"Give the program that was profiled", printable.Short(path, 120))
		}
		return nil, err
	}
	return t, nil
}

// readOperators reads the operators of the model that was profiled.
func readOperators(run *importer.Run, o source.Options) error {
	m, err := source.Open(o)
	if err != nil {
		return err
	}
	defer m.Close()
	if run.Ops, run.Values, err = m.Operators(); err != nil {
		return err
	}
	m.Describe(&run.Model)
	run.Model.Source = filepath.Base(o.Path)
	run.Model.Name = cmp.Or(run.Model.Name, run.Model.Source)
	return nil
}
