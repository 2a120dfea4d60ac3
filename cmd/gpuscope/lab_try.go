package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"gpuscope/cmd/gpuscope/cli"
	"gpuscope/internal/printable"
	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	screen "gpuscope/tui/command"
	"gpuscope/tui/widget"
)

func labTryCommand(p *program) *cli.Command {
	return &cli.Command{
		Name: "lab try", Operand: "FILE.wgsl [MODEL]",
		Doc: "compare the speed and the output of an edited kernel with the original",
		More: `FILE.wgsl is an edited source of a kernel of MODEL. gpuscope graph --kernel NAME prints the original source. The first line
of the file names the kernel. The command runs a prompt and one decode step of MODEL. It then runs the kernel and the edited
source alternately, on the inputs of one dispatch and in the whole step. It prints a verdict: faster, slower, equal, wrong, not-measured (the
step does not run the kernel, or the device has no timestamps), or refused (the source does not compile or does not fit).
The exit status is 1 for the verdicts wrong and refused. docs/guide/lab.md describes --format json, with a script that tunes
a constant.`,
		Examples: []cli.Example{
			{
				"gpuscope lab try lab/sdpa_decode.wgsl model.gguf",
				"is the edited source right, and is it faster?",
			},
			{
				"gpuscope lab try lab/sdpa_decode.wgsl model.gguf --depth 2048 --format json",
				"the same with 2,048 positions in the cache, as JSON for a script",
			},
		},
		Setup: func(flags *pflag.FlagSet) cli.Action {
			l := labTry{p: p, tokens: 32}
			flags.Var(&l.tokens, "pp", "read a prompt of `N` token ids before the decode step")
			flags.Var(&l.depth, "depth", "first read `N` other tokens, so that the prompt of --pp starts at position N")
			l.phase = cli.ChoiceFlag(flags, "step", "try the kernel in the `STEP`", labAuto,
				string(trace.Decode), string(trace.Prefill))
			flags.VarP(&l.rounds, "rounds", "r", "run both kernels `N` times (default: as often as 3 s permit)")
			l.format = cli.FormatFlag(flags, "text", "json")
			l.model = declareModelFlags(flags, "off", "step", "block", "dispatch")
			return func(ctx context.Context, operands []string) error {
				if len(operands) == 0 || operands[0] == "" {
					return cli.Usagef("want the file of a kernel source: FILE.wgsl")
				}
				l.file = operands[0]
				err := cmp.Or(l.format.Check(), l.phase.Check(), l.model.validate(operands[1:]))
				if err != nil {
					return err
				}
				return l.run(ctx)
			}
		},
	}
}

// labAuto is the value of --step that selects the decode step, or the prompt if the decode step does not
// run the kernel.
const labAuto = "auto"

// labTry holds the arguments of one lab try command.
type labTry struct {
	p                     *program
	file                  string
	tokens, depth, rounds cli.Positive
	phase, format         *cli.Choice
	model                 *modelOptions
}

// labRefused is the verdict on a source that does not compile or does not fit the kernel.
const labRefused session.Verdict = "refused"

// labSchema is the name and version of the JSON of lab try.
const labSchema = "gpuscope.lab/1"

// labResult is what lab try prints as JSON. docs/guide/lab.md documents it, and scripts rely on its fields.
type labResult struct {
	Schema  string          `json:"schema"`
	File    string          `json:"file"`
	Kernel  string          `json:"kernel"`           // name of the original kernel
	Verdict session.Verdict `json:"verdict"`          // or labRefused
	Reason  string          `json:"reason,omitempty"` // unless the times say it all
	// Line and Column are the position of the error in the source, counted from 1.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`

	Device     string           `json:"device,omitempty"`
	Phase      string           `json:"phase,omitempty"` // of the step: prefill or decode
	Tokens     int              `json:"tokens,omitempty"`
	Position   int              `json:"position,omitempty"`
	Dispatch   string           `json:"dispatch,omitempty"`   // the dispatch that was compared
	Dispatches int              `json:"dispatches,omitempty"` // dispatches of the step that run the kernel
	Outputs    []labOutput      `json:"outputs,omitempty"`
	Error      *labError        `json:"error,omitempty"`    // against the float64 reference
	Isolated   *session.InTurns `json:"isolated,omitempty"` // times of the isolated dispatch
	InStep     *session.InTurns `json:"in_step,omitempty"`  // times of the whole step
}

// labOutput compares what the two kernels write to one value.
type labOutput struct {
	Value     string       `json:"value"`
	Elements  int          `json:"elements"`
	Differ    int          `json:"differ"`    // elements that differ
	Unwritten int          `json:"unwritten"` // elements that only the original writes
	MaxAbs    trace.Number `json:"max_abs"`   // largest absolute difference
}

// labError is the error of the edited kernel against the float64 reference on the same inputs.
type labError struct {
	MaxAbs trace.Number `json:"max_abs"`
	SNRdB  trace.Number `json:"snr_db"`
	Share  trace.Number `json:"share"` // largest error / tolerance; above 1 the output is wrong
}

// run opens the model, runs the steps and the comparison, and prints the result.
func (l *labTry) run(ctx context.Context) error {
	text, err := session.ReadKernelText(l.file)
	if err != nil {
		return err
	}
	edit := &session.KernelEdit{Kernel: session.KernelOf(text), Text: text}
	if edit.Kernel == "" {
		edit.Kernel = strings.TrimSuffix(filepath.Base(l.file), session.KernelSuffix)
	}
	progress := newProgress(l.p)
	s, err := l.p.open(ctx, l.model, progress.opening)
	if err != nil {
		progress.done()
		return asUsage(err)
	}
	var mirror session.Mirror
	var broken error
	var draining sync.WaitGroup
	draining.Go(func() {
		for e := range s.Events() {
			progress.show(e)
			broken = cmp.Or(broken, mirror.Apply(e))
		}
	})
	tried, err := l.try(ctx, s, edit)
	err = errors.Join(err, s.Close())
	draining.Wait()
	progress.done()
	if err = cmp.Or(broken, err); mirror.Trace == nil {
		return asUsage(err)
	}
	x := analyze.NewIndex(mirror.Trace)
	out, err := l.result(x, edit.Kernel, tried, err)
	if err != nil {
		return asUsage(err)
	}
	return l.print(x, out, tried)
}

// try runs the prompt and a decode step, and compares the kernels in the step that runs the kernel.
func (l *labTry) try(ctx context.Context, s session.Session, edit *session.KernelEdit) (*session.Tried,
	error,
) {
	reply, err := s.Do(ctx, promptCommand(int(l.depth), int(l.tokens)))
	if err != nil {
		return nil, err
	}
	steps := []int{reply.Step}
	if l.phase.Value != string(trace.Prefill) {
		next, err := s.Do(ctx, session.Command{Kind: session.Next})
		if err != nil {
			return nil, err
		}
		steps = []int{next.Step}
		if l.phase.Value == labAuto {
			steps = append(steps, reply.Step)
		}
	}
	var tried *session.Tried
	for _, step := range steps {
		c := session.Command{Kind: session.Lab, Edit: edit, Step: &step, N: int(l.rounds)}
		reply, err := s.Do(ctx, c)
		if err != nil {
			return nil, err
		}
		if tried = reply.Tried; tried.Dispatch != nil {
			break
		}
	}
	return tried, nil
}

// result returns the result to print. If err is nil, this is the result of the comparison `t`. If err is a
// *session.SourceError, the result says that the source was refused and why. result returns any other error.
func (l *labTry) result(x *analyze.Index, kernel string, t *session.Tried, err error) (*labResult, error) {
	out := &labResult{
		Schema: labSchema, File: l.file, Kernel: kernel, Device: x.Trace.Device.Name,
	}
	if source, ok := errors.AsType[*session.SourceError](err); ok {
		out.Verdict, out.Reason, out.Line, out.Column = labRefused, source.Text, source.Line, source.Column
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	for i := range x.Trace.Steps {
		if s := &x.Trace.Steps[i]; s.Index == t.Step {
			out.Phase, out.Tokens, out.Position = string(s.Phase), len(s.Tokens), s.Position
		}
	}
	out.Dispatches, out.Isolated, out.InStep = t.Dispatches, t.Alone, t.Whole
	if t.Dispatch != nil {
		out.Dispatch = x.Name(*t.Dispatch)
	}
	for i := range t.Outputs {
		o := &t.Outputs[i]
		out.Outputs = append(out.Outputs, labOutput{
			x.Trace.Graph.Values[o.Value].Name, o.Elements, o.Differ, o.Unwritten, o.MaxAbs,
		})
	}
	if t.Gap != nil {
		out.Error = &labError{t.Gap.MaxAbs, t.Gap.SNRdB, t.Gap.Share}
	}
	out.Verdict, out.Reason = t.Verdict(), reasonOf(t)
	return out, nil
}

// reasonOf returns why a compared kernel got its verdict, or "" if the measured times are the reason.
func reasonOf(t *session.Tried) string {
	switch v := t.Verdict(); {
	case v == session.VerdictWrong:
		return t.Wrong()
	case t.Dispatch == nil:
		return "the step does not run the kernel"
	case v == session.VerdictUntimed:
		return "the device has no timestamps"
	case v == session.VerdictEqual && t.Whole.N < session.FewestTurns:
		return fmt.Sprintf("too few rounds to know a difference: %d. Use -r %d or more",
			t.Whole.N, session.FewestTurns)
	}
	return ""
}

// sgr maps each paint of a verdict to the parameters of an SGR escape sequence, which selects one of the
// terminal's own colors or bold.
var sgr = map[widget.Paint]string{
	widget.Good: "1;32", widget.Warn: "1;33", widget.Bad: "1;31", widget.Strong: "1",
}

func (l *labTry) print(x *analyze.Index, out *labResult, t *session.Tried) error {
	if l.format.Value == "json" {
		if err := cli.WriteJSON(l.p.Stdout, out); err != nil {
			return err
		}
	} else {
		place := ""
		if out.Line > 0 {
			place = fmt.Sprintf(" at %d:%d", out.Line, out.Column)
		}
		verdict := fmt.Sprintf("%s %s%s: %s", widget.MarkFail, labRefused, place, out.Reason)
		paint := widget.Bad
		var lines []string
		if t != nil {
			verdict, paint = screen.TriedVerdict(x, t)
			if out.Verdict == session.VerdictEqual && out.Reason != "" {
				verdict = "= equal: " + out.Reason
			}
			lines = screen.TriedLines(x, t)
		}
		if err := l.p.PrintStyled(out.Kernel+": "+verdict, sgr[paint]); err != nil {
			return err
		}
		for _, line := range lines {
			if _, err := fmt.Fprintln(l.p.Stdout, printable.Clean(line)); err != nil {
				return err
			}
		}
	}
	if out.Verdict == session.VerdictWrong || out.Verdict == labRefused {
		return cli.Reported(errors.New(string(out.Verdict)))
	}
	return nil
}
