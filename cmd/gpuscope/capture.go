package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/spf13/pflag"

	"gpuscope/cmd/gpuscope/cli"
	"gpuscope/internal/printable"
	"gpuscope/model/capture"
	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/table"
)

func captureCommand(p *program) *cli.Command {
	return &cli.Command{
		Name: "capture", Operand: "[MODEL]",
		Doc: "write one dispatch of a step to a folder, to run it without the model",
		More: `The command runs a prompt and one decode step of MODEL, and writes a dispatch of that step to a folder: the WGSL of its
kernel, its params and grid, the contents of its bindings before and after it, and the device. gpuscope replay runs the folder
on any device. DISPATCH is an id, a name such as attn.q, or a kernel, as in gpuscope trace why. If several dispatches match,
the command captures the first of them that runs. docs/guide/capture.md has more.`,
		Examples: []cli.Example{
			{"gpuscope capture model.gguf --at attn.q", "the query projection of the first layer, in a decode step"},
			{
				"gpuscope capture model.gguf --at layers.3.attn.rope+sdpa.decode --depth 2048 -o slow",
				"attention of layer 3 with 2,048 positions in the cache",
			},
			{"gpuscope capture --at 0 --step prefill --pp 64", "dispatch 0 of a prompt of 64 tokens"},
		},
		Setup: func(flags *pflag.FlagSet) cli.Action {
			c := capturing{p: p, tokens: 32, most: capture.DefaultMaxBytes}
			flags.StringVar(&c.at, "at", "", "capture the dispatch with this id or name: `DISPATCH`")
			flags.StringVarP(&c.dir, "output", "o", "", "write the folder `DIR` (default capture-NAME)")
			flags.Var(&c.tokens, "pp", "read a prompt of `N` token ids before the decode step")
			flags.Var(&c.depth, "depth", "first read `N` other tokens, so that the prompt of --pp starts at position N")
			c.phase = cli.ChoiceFlag(flags, "step", "capture the dispatch in the `STEP`",
				string(trace.Decode), string(trace.Prefill))
			flags.Var(&c.most, "max-bytes", "fail if the arrays of the capture exceed `N` bytes in total")
			c.model = declareModelFlags(flags, "off", "step", "block", "dispatch")
			return func(ctx context.Context, operands []string) error {
				if c.at == "" {
					return cli.Usagef("--at: want the id or name of a dispatch")
				}
				if err := cmp.Or(c.phase.Check(), c.model.validate(operands)); err != nil {
					return err
				}
				return c.run(ctx)
			}
		},
	}
}

// capturing holds the arguments of one capture command.
type capturing struct {
	p                   *program
	at, dir             string
	tokens, depth, most cli.Positive
	phase               *cli.Choice
	model               *modelOptions
}

// run opens the model, runs the steps and writes the folder.
func (c *capturing) run(ctx context.Context) error {
	progress := newProgress(c.p)
	s, err := c.p.open(ctx, c.model, progress.opening)
	if err != nil {
		progress.done()
		return asUsage(err)
	}
	m := &followed{applied: make(chan struct{}, 1)}
	var draining sync.WaitGroup
	draining.Go(func() { m.follow(s, progress.show) })
	got, err := c.capture(ctx, s, m)
	err = errors.Join(err, s.Close())
	draining.Wait()
	progress.done()
	if err != nil {
		return asUsage(err)
	}
	_, err = fmt.Fprintf(c.p.Stdout, "%s: dispatch %s, kernel %s, %d bindings, %s\n",
		printable.Clean(got.Dir), printable.Clean(got.Dispatch), printable.Clean(got.Kernel),
		got.Bindings, table.Memory(got.Bytes))
	return err
}

// capture runs the prompt and the decode step, and captures the dispatch.
func (c *capturing) capture(ctx context.Context, s session.Session, m *followed) (*session.Captured, error) {
	prompt, err := s.Do(ctx, promptCommand(int(c.depth), int(c.tokens)))
	step, other := prompt, prompt
	next := session.Command{Kind: session.Next}
	if err == nil && c.phase.Value == string(trace.Decode) {
		step, err = s.Do(ctx, next)
	}
	if err != nil {
		return nil, err
	}
	to := &session.CaptureTo{Phase: trace.Phase(c.phase.Value), Dir: c.dir, MaxBytes: int64(c.most)}
	found := false
	err = m.when(ctx, step.Step, func(t *trace.Trace) error {
		x := analyze.NewIndex(t)
		if to.Dispatch, found = c.dispatch(x, step.Step); found {
			to.Dir = cmp.Or(to.Dir, capture.FolderName(x.Name(to.Dispatch)))
		}
		return nil
	})
	if err == nil && !found && c.phase.Value == string(trace.Prefill) {
		other, err = s.Do(ctx, next)
	}
	if err == nil && !found {
		err = m.when(ctx, max(step.Step, other.Step), func(t *trace.Trace) error {
			return c.absent(analyze.NewIndex(t), step.Step, other.Step)
		})
	}
	if err != nil {
		return nil, err
	}
	step, err = s.Do(ctx, session.Command{Kind: session.Capture, Step: &step.Step, Capture: to})
	return step.Captured, err
}

// dispatch returns the first dispatch that --at means and that runs in the step. The bool is false if there
// is none.
func (c *capturing) dispatch(x *analyze.Index, step int) (trace.DispatchID, bool) {
	ids := x.Meant(step, c.at)
	if len(ids) == 0 || x.PlanOf(step, ids[0]) == nil {
		return 0, false
	}
	return ids[0], true
}

// absent returns the error for a dispatch that does not run in the step to capture from. `other` is the step
// that the other value of --step selects.
func (c *capturing) absent(x *analyze.Index, step, other int) error {
	at, here, there, flag := printable.Short(c.at, 60), "decode step", "step of the prompt", trace.Prefill
	if c.phase.Value == string(trace.Prefill) {
		here, there, flag = there, here, trace.Decode
	}
	if _, runs := c.dispatch(x, other); runs {
		return cli.Usagef("--at %q: runs in the %s, but not in the %s: use --step %s", at, there, here, flag)
	}
	if len(x.Meant(step, c.at)) > 0 || slices.ContainsFunc(x.Trace.Graph.Dispatches,
		func(d trace.Dispatch) bool { return slices.Contains(d.Kernels, c.at) }) {
		return cli.Usagef("--at %q: runs neither in the %s nor in the %s; other values of --pp and --depth can "+
			"select steps in which it runs", at, here, there)
	}
	return cli.Usagef("--at %q: no dispatch has this id or name; gpuscope graph lists them", at)
}

// promptCommand returns the command that runs a prompt of depth+n arbitrary tokens. If depth is above 0,
// the prompt has two chunks: the first `depth` tokens, and the n tokens after them.
func promptCommand(depth, n int) session.Command {
	prompt := make([]int, depth+n)
	for i := range prompt {
		prompt[i] = i % 61 // any ids do: the work of a step does not depend on them
	}
	c := session.Command{Kind: session.Prompt, Tokens: prompt, N: 2}
	if depth > 0 {
		c.Chunks = []int{depth, n}
	}
	return c
}

// followed is a trace that grows with the events of a session.
type followed struct {
	mu      sync.Mutex // protects mirror and err
	mirror  session.Mirror
	err     error
	applied chan struct{} // has an element after an event was applied; closed at the end
}

// follow applies the events of a session until it ends.
func (f *followed) follow(s session.Session, show func(session.Event)) {
	defer close(f.applied)
	for e := range s.Events() {
		show(e)
		f.mu.Lock()
		f.err = cmp.Or(f.err, f.mirror.Apply(e))
		f.mu.Unlock()
		select {
		case f.applied <- struct{}{}:
		default:
		}
	}
}

// when waits until the trace contains the step with index `step`, and then calls `do` with the trace.
func (f *followed) when(ctx context.Context, step int, do func(*trace.Trace) error) error {
	for {
		f.mu.Lock()
		err := f.err
		if t := f.mirror.Trace; err == nil && t != nil && len(t.Steps) > 0 &&
			t.Steps[len(t.Steps)-1].Index >= step {
			err = do(t)
			f.mu.Unlock()
			return err
		}
		f.mu.Unlock()
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case _, open := <-f.applied:
			if !open {
				return session.ErrClosed
			}
		}
	}
}
