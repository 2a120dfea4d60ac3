// Package replays contains the command gpuscope replay, which runs a captured dispatch.
package replays

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/spf13/pflag"

	"gpuscope/cmd/gpuscope/cli"
	"gpuscope/engine/gpu"
	"gpuscope/internal/printable"
	"gpuscope/model/capture"
	"gpuscope/model/stepping"
	"gpuscope/session"
	"gpuscope/trace/table"
)

// Command returns the command. Devices come from the driver.
func Command(e *cli.Env, driver gpu.Driver) *cli.Command {
	return &cli.Command{
		Name: "replay", Operand: "DIR",
		Doc: "run a captured dispatch on a device, check its output, and time it",
		More: `DIR is a folder that gpuscope capture wrote. The command runs the dispatch once, compares what it writes with the
expected contents, and then times it. An output is wrong if an element differs from the expected one by more than the
tolerance: a share of the largest expected element of the same binding. Integers must be equal. The verdict is equal, close
(the outputs differ, but within the tolerance), wrong, or refused (the source does not compile, or does not fit). The exit
status is 1 for the verdicts wrong and refused. docs/guide/capture.md describes --format json.`,
		Examples: []cli.Example{
			{"gpuscope replay capture-layers.0.attn.q", "does this device compute the same, and how fast?"},
			{"gpuscope replay capture-layers.0.attn.q --device llvmpipe", "the same on another adapter"},
			{"gpuscope replay capture-layers.0.attn.q --kernel edited.wgsl", "run another source on the same inputs"},
		},
		Setup: func(flags *pflag.FlagSet) cli.Action {
			r := replaying{env: e, driver: driver, runs: capture.DefaultRuns, most: capture.DefaultMaxBytes}
			flags.StringVar(&r.kernel, "kernel", "",
				"run the source `FILE`.wgsl, which has the same bindings, params and workgroup size")
			flags.StringVar(&r.device, "device", "",
				"run on adapter `N|NAME`, its number or a part of its name (default the best adapter, see gpuscope devices)")
			flags.VarP(&r.runs, "rounds", "r", "time `N` runs")
			flags.Float64Var(&r.tolerance, "tolerance", capture.DefaultTolerance,
				"accept differences of up to `T` times the largest expected element")
			flags.Var(&r.most, "max-bytes", "fail if the arrays of the capture exceed `N` bytes in total")
			r.format = cli.FormatFlag(flags, "text", "json")
			return func(ctx context.Context, operands []string) error {
				switch {
				case len(operands) == 0 || operands[0] == "":
					return cli.Usagef("want the folder of a captured dispatch")
				case !(r.tolerance >= 0) || math.IsInf(r.tolerance, 0):
					return cli.Usagef("--tolerance %v: want a finite number of at least 0", r.tolerance)
				}
				if err := r.format.Check(); err != nil {
					return err
				}
				return r.run(ctx, operands[0])
			}
		},
	}
}

// replaying holds the arguments of one replay command.
type replaying struct {
	env            *cli.Env
	driver         gpu.Driver
	kernel, device string
	runs, most     cli.Positive
	tolerance      float64
	format         *cli.Choice
}

// Verdicts of a replay. They are values of result.Verdict.
const (
	equal   = "equal"
	within  = "close"
	wrong   = "wrong"
	refused = "refused"
)

// schema is the name and version of the JSON of replay.
const schema = "gpuscope.replay/1"

// result is what replay prints as JSON. docs/guide/capture.md documents it, and scripts rely on its fields.
type result struct {
	Schema  string `json:"schema"`
	Capture string `json:"capture"` // the folder
	Verdict string `json:"verdict"` // equal, close, wrong or refused
	Reason  string `json:"reason,omitempty"`
	// Line and Column are the position of the error in the source, counted from 1.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`

	Dispatch   string           `json:"dispatch"`
	Kernel     string           `json:"kernel"`                // name of the captured kernel
	KernelFile string           `json:"kernel_file,omitempty"` // the source that ran in its place
	CapturedOn string           `json:"captured_on"`           // device
	Device     string           `json:"device"`                // device of the replay
	Tolerance  float64          `json:"tolerance"`
	Outputs    []capture.Output `json:"outputs,omitempty"`
	Runs       int              `json:"runs,omitempty"`
	Time       *session.Spread  `json:"time,omitempty"` // GPU time of a run in ns
	// Bytes is the modelled memory traffic or, where it is unknown, the size of the bindings.
	Bytes  int64   `json:"bytes"`
	BytesS float64 `json:"bytes_per_s,omitempty"` // Bytes / median time
}

func (r *replaying) run(ctx context.Context, dir string) error {
	c, err := capture.Read(dir, int64(r.most))
	if err != nil {
		return err
	}
	o := capture.ReplayOptions{Runs: int(r.runs), Tolerance: r.tolerance, File: r.kernel}
	if r.kernel != "" {
		if o.Source, err = session.ReadKernelText(r.kernel); err != nil {
			return err
		}
		if o.Source == "" {
			return fmt.Errorf("%s: the file is empty", r.kernel)
		}
	}
	dev, _, err := stepping.OpenDevice(r.driver, r.device)
	if err != nil {
		if errors.Is(err, session.ErrUsage) {
			return cli.Usage(err.Error())
		}
		return err
	}
	defer dev.Release()
	got, err := c.Replay(ctx, dev, o)
	out := &result{
		Schema: schema, Capture: dir, Dispatch: c.Dispatch.Name, Kernel: c.Kernel.Name, KernelFile: r.kernel,
		CapturedOn: c.Device.Name, Device: dev.Info().Name, Tolerance: r.tolerance,
		Bytes: cmp.Or(c.ModelledBytes, c.BindingBytes()),
	}
	if source, ok := errors.AsType[*session.SourceError](err); ok {
		out.Verdict, out.Reason, out.Line, out.Column = refused, source.Text, source.Line, source.Column
		return r.print(out)
	}
	if err != nil {
		return err
	}
	out.Outputs, out.Time, out.Runs = got.Outputs, got.Times, got.Runs
	if out.Time != nil && out.Time.NS > 0 {
		out.BytesS = float64(out.Bytes) * 1e9 / float64(out.Time.NS)
	}
	switch {
	case got.Wrong():
		out.Verdict = wrong
	case got.Differ() > 0:
		out.Verdict = within
	default:
		out.Verdict = equal
	}
	return r.print(out)
}

func (r *replaying) print(out *result) error {
	if r.format.Value == "json" {
		if err := cli.WriteJSON(r.env.Stdout, out); err != nil {
			return err
		}
	} else {
		for _, line := range out.lines() {
			if _, err := fmt.Fprintln(r.env.Stdout, printable.Clean(line)); err != nil {
				return err
			}
		}
	}
	if out.Verdict == wrong || out.Verdict == refused {
		return cli.Reported(errors.New(out.Verdict))
	}
	return nil
}

// most describes the largest difference of an output.
func most(o *capture.Output) string {
	switch v := float64(o.MaxAbs); {
	case math.IsNaN(v):
		return fmt.Sprintf("element %d is NaN on one side only", o.Element)
	case math.IsInf(v, 0):
		return fmt.Sprintf("element %d by infinity", o.Element)
	default:
		return fmt.Sprintf("by %.3g at most (element %d)", v, o.Element)
	}
}

// lines returns the result as text.
func (out *result) lines() []string {
	kernel := "kernel " + out.Kernel
	if out.KernelFile != "" {
		kernel = out.KernelFile + " in place of " + kernel
	}
	verdict := out.Verdict
	if out.Line > 0 {
		verdict += fmt.Sprintf(" at %d:%d", out.Line, out.Column)
	}
	if out.Reason != "" {
		verdict += ": " + out.Reason
	}
	lines := []string{
		fmt.Sprintf("%s: %s", out.Dispatch, verdict),
		fmt.Sprintf("%s on %s; captured on %s", kernel, out.Device, out.CapturedOn),
	}
	for i := range out.Outputs {
		o := &out.Outputs[i]
		line := fmt.Sprintf("%s: all %s elements are as expected", o.Binding, table.Integer(o.Elements))
		if o.Differ > 0 {
			line = fmt.Sprintf("%s: %s of %s elements differ, %s; the largest expected element is %.3g",
				o.Binding, table.Integer(o.Differ), table.Integer(o.Elements), most(o), float64(o.Largest))
		}
		if o.Exceed > 0 {
			line += fmt.Sprintf("; %s exceed the tolerance of %g", table.Integer(o.Exceed), out.Tolerance)
		}
		if o.NaN > 0 {
			line += fmt.Sprintf("; %s are NaN", table.Integer(o.NaN))
		}
		lines = append(lines, line)
	}
	switch t := out.Time; {
	case t != nil:
		us := func(ns int64) float64 { return float64(ns) / 1e3 }
		lines = append(lines, fmt.Sprintf("GPU time %.1f µs (quartiles %.1f and %.1f, %s), %.3g GB/s for %s",
			us(t.NS), us(t.Q1NS), us(t.Q3NS), table.Plural(out.Runs, "run"), out.BytesS/1e9,
			table.Memory(out.Bytes)))
	case out.Verdict != refused:
		lines = append(lines, "GPU time not measured: the device has no timestamps")
	}
	return lines
}
