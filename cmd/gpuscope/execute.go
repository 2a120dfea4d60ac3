package main

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

	"github.com/spf13/pflag"

	"gpuscope/cmd/gpuscope/cli"
	"gpuscope/internal/npy"
	"gpuscope/internal/printable"
	"gpuscope/model/checkpoint/pte"
	"gpuscope/model/executions"
	runner "gpuscope/model/program"
	"gpuscope/model/program/suite"
	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/table"
)

// inputOptions holds the flags of a run that executes a method of an ExecuTorch program.
type inputOptions struct {
	files     []string // .npy files, one for each input
	live      []string // INPUT.DIM=N
	outputDir string   // folder for the outputs; "" to write none
}

func declareInputs(flags *pflag.FlagSet) *inputOptions {
	o := &inputOptions{}
	flags.StringArrayVar(&o.files, "input", nil,
		"execute a method of an ExecuTorch program with the array in the .npy `FILE` as its next input "+
			"(repeat it for each input; default random inputs, see --seed and --live)")
	flags.StringArrayVar(&o.live, "live", nil,
		"if --input is not used: give dim DIM of input INPUT the size N, `INPUT.DIM=N`; both are numbered from 0 "+
			"(may be repeated; default the upper bounds)")
	flags.StringVar(&o.outputDir, "output-dir", "",
		"write the outputs of the last execution to out0.npy, out1.npy, ... in the folder `DIR`, "+
			"which is created")
	return o
}

// given returns the first flag that requests the execution of a method, or "".
func (o *inputOptions) given() string {
	switch {
	case len(o.files) > 0:
		return "--input"
	case len(o.live) > 0:
		return "--live"
	case o.outputDir != "":
		return "--output-dir"
	}
	return ""
}

// executionFlags lists the flags of run that apply to the execution of a method.
var executionFlags = []string{
	"input", "live", "output-dir", "seed", "tokens", "method", "data", "device", "timing", "propagation",
	"route", "shaders", "static", "check", "fuse", "profile", "cost", "break", "trace", "steps",
	"trace-limit", noText, "format",
}

// executes reports whether the run executes a method instead of generating text. It does if a flag requests
// this, or if the model is an ExecuTorch program that is not a language model.
func (r *run) executes(operands []string) (bool, error) {
	asked := r.inputs.given()
	path, err := findModel(operands)
	switch {
	case err != nil || path == "" && asked == "":
		return false, err
	case path == "" || !pte.IsProgram(path):
		if asked != "" {
			return false, cli.Usagef("%s is for ExecuTorch programs, but %s is not one", asked,
				printable.Short(cmp.Or(path, "the embedded model"), 200))
		}
		return false, nil
	case asked != "":
		return true, nil
	}
	r.model.path = path
	return executesMethod(r.model)
}

// executesMethod reports whether the model is an ExecuTorch program that is not a language model.
func executesMethod(o *modelOptions) (bool, error) {
	if o.path == "" || !pte.IsProgram(o.path) {
		return false, nil
	}
	return executions.Applies(o.path, o.method, o.dataFiles)
}

// openExecutions opens an ExecuTorch program as a session of executions. It computes most options from the
// flags in `o`. The caller sets only the options that are not in `o`, and passes them in `own`.
func (p *program) openExecutions(ctx context.Context, o *modelOptions, own executions.Options,
	emit func(session.Event),
) (*executions.Session, error) {
	from, err := p.forModel(o)
	if err != nil {
		return nil, err
	}
	own.Path, own.Method, own.Data = o.path, o.method, o.dataFiles
	own.Driver, own.Device, own.Timing, own.Shaders = from.Driver, from.Device, from.Timing, from.Shaders
	own.Build = runner.Options{Fuse: from.Fuse, Routes: from.Routes, Live: from.Live, Check: from.Check}
	own.Seed, own.Cache = uint64(o.sampling.Seed), from.Cache
	own.Producer, own.Command = from.Producer, from.Command
	return executions.Open(ctx, own, emit)
}

// programRun is a run that executes a method.
type programRun struct {
	run     *run
	options executions.Options
	session *executions.Session
	cases   *executions.Cases // test cases of a .bpte file; empty if the user gave inputs
	files   []string          // names of the inputs
	written []string          // files with the outputs
}

// execute checks the flags and runs the method.
func (r *run) execute(ctx context.Context, p *program, flags *pflag.FlagSet, operands []string) error {
	var other string
	flags.Visit(func(f *pflag.Flag) {
		if !slices.Contains(executionFlags, f.Name) && other == "" {
			other = cli.FlagName(f)
		}
	})
	if other != "" {
		if asked := r.inputs.given(); asked != "" {
			return cli.Usagef("%s and %s cannot be combined: %[1]s is for language models", other, asked)
		}
		return cli.Usagef("%s is for language models, but %s is not one", other,
			printable.Short(operands[0], 200))
	}
	if r.model.device == trace.NoDevice {
		return cli.Usagef("run needs a device, so --device none cannot be used. To show the program, " +
			"use gpuscope graph")
	}
	x := &programRun{run: r, files: r.inputs.files, cases: &executions.Cases{}}
	if err := x.prepare(operands[0]); err != nil {
		return err
	}
	if !flags.Changed("tokens") {
		r.tokens = max(1, len(x.cases.Inputs))
	}
	if r.tokens < 1 {
		return cli.Usagef("-n %d: want 1 execution or more", r.tokens)
	}
	r.prompt, r.byText, r.program = "", true, x
	r.profiling.asked = flags.Changed("profile") || flags.Changed("cost")
	if err := cmp.Or(r.trace.check(flags), r.validate(operands)); err != nil {
		return err
	}
	if err := r.run(ctx, p); err != nil {
		return err
	}
	return x.cases.Failed()
}

// prepare reads the inputs.
func (x *programRun) prepare(path string) error {
	o := x.run.inputs
	var err error
	if x.options.Live, err = runner.ParseLiveDims(strings.Join(o.live, ",")); err != nil {
		return cli.Usagef("--live: %v", err)
	}
	if len(o.files) > 0 && len(o.live) > 0 {
		return cli.Usagef("--live and --input cannot be combined: the arrays determine the shapes")
	}
	if len(o.files) > 0 {
		var inputs []*npy.Array
		for _, name := range o.files {
			a, err := npy.Read(name)
			if err != nil {
				return err
			}
			inputs = append(inputs, a)
		}
		x.options.Inputs = [][]*npy.Array{inputs}
		return checkOutputDir(o.outputDir, o.files)
	}
	if len(o.live) > 0 {
		return nil
	}
	return x.readCases(path)
}

// checkOutputDir returns an error if an output in the folder would overwrite one of the inputs.
func checkOutputDir(dir string, inputs []string) error {
	entries, _ := os.ReadDir(dir) // if the folder does not exist, there is nothing to overwrite
	for _, e := range entries {
		n := 0
		if _, err := fmt.Sscanf(e.Name(), "out%d.npy", &n); err != nil {
			continue
		}
		if err := cli.CheckOutput(filepath.Join(dir, e.Name()), inputs...); err != nil {
			return err
		}
	}
	return nil
}

// readCases reads the test cases of a .bpte file.
func (x *programRun) readCases(path string) (err error) {
	f, err := pte.Open(path, x.run.model.dataFiles...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	name, err := executions.MethodOf(f, x.run.model.method)
	if err != nil {
		return asUsage(err)
	}
	if x.cases, err = executions.ReadCases(f, name); err != nil || len(x.cases.Inputs) == 0 {
		return err
	}
	x.options.Inputs, x.options.Ran = x.cases.Inputs, x.cases.Compare
	return nil
}

func (x *programRun) open(ctx context.Context, p *program, emit func(session.Event)) (session.Session,
	error,
) {
	var err error
	if x.session, err = p.openExecutions(ctx, x.run.model, x.options, emit); err != nil {
		return nil, err
	}
	return x.session, nil
}

// writeOutputs writes the outputs of the last execution, all of them or none.
func (x *programRun) writeOutputs() (err error) {
	dir := x.run.inputs.outputDir
	if dir == "" {
		return nil
	}
	x.written, err = npy.WriteFiles(dir, "out", x.session.Outputs())
	return err
}

// print prints the inputs and outputs of the last execution.
func (x *programRun) print(w io.Writer) {
	m, outputs := x.session.Method(), x.session.Outputs()
	fmt.Fprintf(w, "method %s\n", printable.Short(m.Name(), 80))
	for i, a := range x.session.Inputs(x.run.tokens - 1) {
		fmt.Fprintf(w, "input %d   %s %s  %s\n", i, m.Inputs()[i].Type, printable.Dims(a.Dims), x.source(i))
	}
	for i, a := range outputs {
		to := ""
		if i < len(x.written) {
			to = "  " + printable.Clean(x.written[i])
		}
		fmt.Fprintf(w, "output %d  %s %s%s\n", i, m.Outputs()[i].Type, printable.Dims(a.Dims), to)
	}
	if e := x.cases.Worst; e != nil {
		fmt.Fprintf(w, "%s: worst error %.3g, which is %.3g times the tolerance\n",
			table.Plural(len(x.cases.Inputs), "test case"), float64(e.AbsError), float64(e.OfTolerance))
	}
}

// source says where input i comes from.
func (x *programRun) source(i int) string {
	switch {
	case i < len(x.files):
		return printable.Clean(x.files[i])
	case len(x.cases.Inputs) > 0:
		return fmt.Sprintf("test case %d", (x.run.tokens-1)%len(x.cases.Inputs))
	}
	return fmt.Sprintf("random, seed %d", x.run.model.sampling.Seed)
}

// executionResult is the JSON object that --format json prints for a program.
type executionResult struct {
	Method     string          `json:"method"`
	Inputs     []arrayResult   `json:"inputs"`
	Outputs    []arrayResult   `json:"outputs"`
	Executions []executionStep `json:"executions"`
	// Worst is the element with the largest error relative to its tolerance, if the file has test cases.
	Worst *suite.Worst `json:"worst,omitempty"`
	// Hit is the event of the breakpoint that ended the run.
	Hit *trace.Event `json:"hit,omitempty"`
	// Costs holds the measured costs of parts of the last step, as in a trace.
	Costs *trace.Costs `json:"costs,omitempty"`
}

type arrayResult struct {
	Type string `json:"dtype"`
	Dims []int  `json:"shape"`
	File string `json:"file,omitempty"`
}

type executionStep struct {
	WallNS trace.Time `json:"wall_ns,omitzero"`
	GPUNS  trace.Time `json:"gpu_ns,omitzero"`
	Cold   bool       `json:"cold,omitempty"`
}

func (x *programRun) result(o *output) executionResult {
	m := x.session.Method()
	res := executionResult{
		Method: m.Name(), Worst: x.cases.Worst, Hit: o.hit, Executions: []executionStep{},
		Inputs: []arrayResult{}, Outputs: []arrayResult{}, Costs: o.costs(),
	}
	for i, a := range x.session.Inputs(x.run.tokens - 1) {
		r := arrayResult{Type: m.Inputs()[i].Type.String(), Dims: a.Dims}
		if i < len(x.files) {
			r.File = x.files[i]
		}
		res.Inputs = append(res.Inputs, r)
	}
	for i, a := range x.session.Outputs() {
		r := arrayResult{Type: m.Outputs()[i].Type.String(), Dims: a.Dims}
		if i < len(x.written) {
			r.File = x.written[i]
		}
		res.Outputs = append(res.Outputs, r)
	}
	for i := range o.steps {
		res.Executions = append(res.Executions, o.steps[i].execution)
	}
	return res
}
