package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"gpuscope/cmd/gpuscope/cli"
	"gpuscope/internal/printable"
	"gpuscope/model"
	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/record"
	"gpuscope/trace/report/deviation"
	"gpuscope/trace/table"
)

func verifyCommand(p *program) *cli.Command {
	return &cli.Command{
		Name: "verify", Operand: "[MODEL]",
		Doc: "compare every dispatch of some steps with float64 references, or run test cases",
		More: `Reads a prompt and decodes some tokens, then runs each step again and compares the output of every dispatch with two
float64 references. The first reference starts from the inputs that the dispatch had on the device, so it shows the kernel's
own error. The second one computes the whole text in float64, so it also shows the error of the inputs. The tolerance of
each operator follows from the arithmetic of its kernels. Equal layers share a row. The exit status is 1 if a dispatch
exceeds its tolerance, or produces NaN or Inf. docs/guide/verify.md explains the numbers, and when they are misleading.
With --suite, runs the ExecuTorch programs of a folder and compares their outputs with the expected ones, which the
folder's manifest.json lists (docs/guide/verify.md has the format). The exit status is 1 if a case fails.`,
		Examples: []cli.Example{
			{"gpuscope verify", "verify a prompt and one decode step of the embedded model"},
			{`gpuscope verify model.gguf -p "The" -n 8 --all`, "verify eight decode steps, and print one row per dispatch"},
			{"gpuscope verify --route linear_q4gsw=tile64 --ids 0,47,11", "verify another route, on these token ids"},
			{"gpuscope verify model.gguf --trace gaps.json --format json", "print the errors as JSON, and record a trace to open with gpuscope"},
			{"gpuscope verify --suite cases --filter rms_norm", "from the folder named cases, run the test cases that have rms_norm in their names"},
		},
		Setup: func(flags *pflag.FlagSet) cli.Action {
			v := verification{p: p}
			flags.StringVarP(&v.prompt, "prompt", "p", defaultPrompt,
				"prompt `TEXT`; starts with the BOS token if the model's file requires BOS")
			flags.IntSliceVar(&v.ids, "ids", nil, "use the token ids `0,47,..` as the prompt instead of a text")
			flags.IntSliceVar(&v.chunks, "chunks", nil,
				"read the prompt in steps of `40,1,7` tokens; all further steps have the last number of tokens (default: steps as large as possible)")
			flags.IntVarP(&v.steps, "steps", "n", 1, "verify `N` decode steps after the prompt")
			flags.Var((*cli.Positive)(&v.budget), "budget",
				"spend at most `N` GFLOP on each of the two references of a step; if the second one needs more, skip it; if "+
					"the first one needs more, compare only samples of large operators (default 100)")
			flags.BoolVar(&v.all, "all", false, "also print one row per dispatch")
			flags.StringVar(&v.tracePath, "trace", "",
				"record the steps with their errors to `FILE`: "+traceNames)
			flags.BoolVar(&v.noText, noText, false,
				"with --trace, leave the prompt, the generated text and all token ids out of the trace")
			folder := flags.String("suite", "",
				"run the test cases of the folder `DIR` instead of a model: programs with inputs and expected outputs")
			filter := flags.String("filter", "",
				"with --suite, run only the cases whose name, operator or tier contains `TEXT`")
			v.format = cli.FormatFlag(flags, "text", "json")
			v.model = declareModelFlags(flags, "off", "step", "block", "dispatch")
			return func(ctx context.Context, operands []string) error {
				switch {
				case flags.Changed("suite"):
					return p.verifySuite(ctx, flags, operands, &suiteRun{*folder, *filter, v.format, v.model})
				case flags.Changed("filter"):
					return cli.Usagef("--filter: needs --suite")
				}
				if flags.Changed("prompt") && flags.Changed("ids") {
					return cli.Usagef("-p and --ids cannot be combined: give only one of them")
				}
				if flags.Changed("trace") && v.tracePath == "" {
					return cli.Usagef(`--trace "": want the name of a file`)
				}
				if v.noText && v.tracePath == "" {
					return errNoRecording
				}
				if err := checkTracePath(v.tracePath, flags); err != nil {
					return err
				}
				v.given = flags.Changed("prompt") || flags.Changed("ids")
				if err := v.validate(operands); err != nil {
					return err
				}
				if executes, err := executesMethod(v.model); err != nil {
					return err
				} else if executes {
					return cli.Usagef("%s is not a language model. To compare the outputs of programs, use --suite",
						printable.Short(v.model.path, 200))
				}
				return v.run(ctx)
			}
		},
	}
}

// verification holds the arguments of one verify command.
type verification struct {
	p             *program
	prompt        string
	ids, chunks   []int // token ids that replace the prompt text, if given
	given         bool  // a prompt or ids were given
	steps, budget int
	all           bool
	tracePath     string
	noText        bool
	format        *cli.Choice
	model         *modelOptions
}

func (v *verification) validate(operands []string) error {
	switch {
	case v.steps < 0:
		return cli.Usagef("-n %d: want 0 or more", v.steps)
	case v.model.device == trace.NoDevice:
		return cli.Usagef("--device none: verify needs a device; gpuscope devices lists them")
	case v.budget > model.MostVerifyGFLOP:
		return cli.Usagef("--budget %d: want at most %d GFLOP", v.budget, model.MostVerifyGFLOP)
	}
	if err := v.format.Check(); err != nil {
		return err
	}
	v.model.ignoreEOS = true // the user requested a number of steps
	return v.model.validate(operands)
}

// run opens the model, runs the steps, compares them with the references and prints the result. A command
// that is stopped still prints and records its results so far.
func (v *verification) run(ctx context.Context) error {
	recorder, err := v.p.record(ctx, v.tracePath, record.Options{NoText: v.noText})
	if err != nil {
		return err
	}
	progress := newProgress(v.p)
	s, err := v.p.open(ctx, v.model, progress.opening)
	if err != nil {
		progress.done()
		recorder.cancel()
		return asUsage(err)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var mirror session.Mirror
	var broken error // the first error of an event or a record
	var draining sync.WaitGroup
	draining.Go(func() {
		for e := range s.Events() {
			progress.show(e)
			err := errors.Join(mirror.Apply(e), recorder.take(e))
			if err != nil && broken == nil {
				broken = err
				stop()
			}
		}
	})
	err = errors.Join(v.verify(ctx, s), s.Close())
	draining.Wait()
	progress.done()
	if errors.Is(err, session.ErrUsage) {
		recorder.cancel()
	} else {
		broken = cmp.Or(recorder.close(), broken) // both errors may come from the same write
	}
	if broken != nil {
		return broken
	}
	if errors.Is(err, session.ErrUsage) || mirror.Trace == nil {
		return asUsage(err)
	}
	return errors.Join(err, v.print(context.WithoutCancel(ctx), mirror.Trace))
}

// defaultIDs is the prompt if none was given and the model cannot encode defaultPrompt.
var defaultIDs = []int{0, 1, 2, 3}

// verify runs the steps and compares each with the references. If the text cannot continue because its logits
// are not finite, verify compares the steps so far and then returns the error.
func (v *verification) verify(ctx context.Context, s session.Session) error {
	prompt := session.Command{Kind: session.Prompt, Chunks: v.chunks, N: v.steps + 1}
	if len(v.ids) > 0 {
		prompt.Tokens = v.ids
	} else {
		prompt.Text = v.prompt
	}
	reply, failed := s.Do(ctx, prompt)
	if !v.given && errors.Is(failed, session.ErrUsage) { // the vocabulary is broken or lacks these letters
		prompt.Text, prompt.Tokens = "", defaultIDs
		if ids, err := s.Do(ctx, prompt); err == nil {
			fmt.Fprintf(v.p.Stderr, "warn: using token ids %s, because the default prompt failed: %s\n",
				strings.Trim(fmt.Sprint(defaultIDs), "[]"), cli.OneLine(failed))
			reply, failed = ids, nil
		}
	}
	if failed == nil && v.steps > 0 {
		reply, failed = s.Do(ctx, session.Command{Kind: session.Run, N: v.steps})
	}
	if errors.Is(failed, session.ErrUsage) || ctx.Err() != nil {
		return failed
	}
	for step := range reply.Step + 1 {
		c := session.Command{Kind: session.Verify, Step: &step, N: v.budget}
		if _, err := s.Do(ctx, c); err != nil {
			return errors.Join(failed, fmt.Errorf("verify step %d: %w", step, err))
		}
	}
	return failed
}

// print prints the numeric errors. It returns an error if a dispatch exceeds its tolerance or produced NaN
// or Inf.
func (v *verification) print(ctx context.Context, t *trace.Trace) error {
	gaps, err := deviation.Of(ctx, analyze.NewIndex(t), analyze.Selection{})
	if err != nil {
		return err
	}
	rows, err := gaps.Select(ctx, table.Selection{All: v.all || v.format.Value == "json"})
	if err != nil {
		return err
	}
	if err := gaps.Print(ctx, v.p.Stdout, v.format.Value, rows, cmp.Or(v.p.Columns, 140)); err != nil {
		return err
	}
	switch {
	case gaps.Diverge > 0:
		return fmt.Errorf("%d of %d dispatches exceed their tolerance", gaps.Diverge, gaps.Compared)
	case gaps.NotFinite != nil:
		return errors.New("a dispatch produced NaN or Inf")
	}
	return nil
}
