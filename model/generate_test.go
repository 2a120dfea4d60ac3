package model

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gpuscope/engine"
	"gpuscope/engine/gpu/fake"
	"gpuscope/internal/wordingtest"
	"gpuscope/model/run"
	"gpuscope/model/sample"
	"gpuscope/model/stepping"
	"gpuscope/session"
)

// tokensFrom generates n tokens after a prompt, either with one Step call per token or with Generate.
func tokensFrom(r *run.Runner, t *testing.T, prompt []int, n int, timing engine.Timing,
	how string,
) []run.Picked {
	t.Helper()
	ctx := context.Background()
	first, err := r.Step(ctx, 0, prompt, true, nil, timing)
	if err != nil {
		t.Fatal(err)
	}
	list, alone := []run.Picked{first}, n
	if how != "one by one" {
		alone = 1 // steps can be prepared only after a step like them has run
	}
	for range alone {
		at, last := len(prompt)+len(list)-1, list[len(list)-1]
		out, err := r.Step(ctx, at, []int{last.Token}, true, nil, timing)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, out)
	}
	if alone == n {
		return list
	}
	if !r.Exec.CanPrepare(timing) {
		t.Fatal("steps cannot be prepared")
	}
	g := run.Generation{
		Position: len(prompt) + 1, Token: list[1].Token, Steps: n - 1,
		Timing: timing, Pipelined: how == "pipelined",
		Gave: func(out run.Picked, _ stepping.Snapshot) (bool, error) {
			list = append(list, out)
			return true, nil
		},
	}
	if err := r.Generate(ctx, &g); err != nil {
		t.Fatal(err)
	}
	return list
}

// kernels returns the names of the kernels of the current step.
func kernels(r *run.Runner) (names []string) {
	live := r.Exec.Live()
	for _, id := range live.Active() {
		_, k := live.Launch(id)
		names = append(names, r.Net.Graph.KernelName(k))
	}
	return names
}

// Tokens and logits are bit-identical at each timing level, and whether steps run one by one, are prepared
// while the previous step runs, or are also submitted early. The prompts cover the first positions and two
// positions where attention changes to a split route. The splits are then combined by the following matrix
// products or by a separate dispatch.
func TestPipeliningKeepsTheTokens(t *testing.T) {
	for _, test := range []struct {
		prompt int
		kernel string // attention kernel at the last position
	}{{5, "sdpa_decode"}, {120, "sdpa_decode_split"}, {2040, "sdpa_fd_split"}} {
		if testing.Short() && test.prompt > 1000 {
			continue // the race detector needs only the goroutines, which are the same for a short prompt
		}
		t.Run(test.kernel, func(t *testing.T) {
			file := tiny()
			file.Set("llama.context_length", 2100)
			r := onDevice(t, Options{Path: write(t, file.Bytes()), TopLogits: 8, MaxChunk: 2048})
			const n = 24
			prompt := ids(test.prompt)
			want := tokensFrom(r, t, prompt, n, engine.TimingOff, "one by one")
			if len(want) != n+1 || len(want[0].Top) != 8 {
				t.Fatalf("%d tokens, %d candidates", len(want), len(want[0].Top))
			}
			if ran := kernels(r); !slices.Contains(ran, test.kernel) {
				t.Errorf("kernels %v, want %s", ran, test.kernel)
			}
			for _, level := range []engine.Timing{
				engine.TimingOff, engine.TimingStep, engine.TimingBlock, engine.TimingDispatch,
			} {
				for _, how := range []string{"one by one", "stepped", "pipelined"} {
					if level > engine.TimingStep && how != "one by one" ||
						level > engine.TimingOff && !r.Timed() {
						continue
					}
					got := tokensFrom(r, t, prompt, n, level, how)
					if d := cmp.Diff(want, got, cmp.AllowUnexported(run.Picked{})); d != "" {
						t.Errorf("%s at %s:\n%s", how, level, d)
					}
				}
			}
		})
	}
}

// Sampled tokens are the same too. Each one passes through the host.
func TestPipeliningKeepsSampledTokens(t *testing.T) {
	by := sample.Sampling{Temperature: 1.5, TopK: 20, TopP: 1, RepeatPenalty: 1, Seed: 3}
	r := onDevice(t, Options{Path: write(t, tiny().Bytes()), Sampling: by})
	want := tokensFrom(r, t, ids(5), 16, engine.TimingOff, "one by one")
	got := tokensFrom(r, t, ids(5), 16, engine.TimingOff, "stepped")
	if d := cmp.Diff(want, got, cmp.AllowUnexported(run.Picked{})); d != "" {
		t.Error(d)
	}
	if r.Pipelines() {
		t.Error("a sampled token is not known on the device, so steps must not be pipelined")
	}
}

// wearing is a context that is cancelled after a number of calls of Err.
type wearing struct {
	context.Context
	left int
}

func (w *wearing) Err() error {
	if w.left--; w.left < 0 {
		return context.Canceled
	}
	return nil
}

// If a run is cancelled at any moment, each step that has run is still reported.
func TestACancelDropsNoStep(t *testing.T) {
	for left := range 40 {
		if testing.Short() && left%4 > 0 {
			continue // the race detector needs few moments, because the goroutines are the same
		}
		r := newRigOn(t, Options{}, tiny(), fake.Options{})
		r.do(promptOf(5))
		r.dev.ResetCounts()
		told, submits := 0, 0
		g := run.Generation{Position: 5, Token: 'f', Steps: 8, Gave: func(run.Picked, stepping.Snapshot) (
			bool,
			error,
		) {
			told++
			return true, nil
		}}
		err := r.s.runner.Generate(&wearing{context.Background(), left}, &g)
		for _, c := range r.dev.Log {
			if c.Kind == fake.Submit {
				submits++
			}
		}
		if told != submits || (err == nil) != (told == 8) || err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled after %d checks: %d of %d steps were reported: %v", left, told, submits, err)
		}
		r.s.Forget()
	}
}

// overlaps reports whether a step was submitted before an earlier step was waited for.
func overlaps(log []fake.Call) bool {
	flying := 0
	for _, c := range log {
		switch c.Kind {
		case fake.Submit:
			if flying++; flying > 1 {
				return true
			}
		case fake.Wait:
			flying = 0
		}
	}
	return false
}

// A run submits steps before it has read the previous ones only if that loses nothing. The text, the steps
// and the commands that are possible afterwards stay the same.
func TestARunIsPipelinedWhereNothingIsLost(t *testing.T) {
	for name, c := range map[string]struct {
		o         Options
		run       session.Command
		pipelined bool
	}{
		"asked for":     {Options{Pipelined: true}, session.Command{N: 6}, true},
		"to a position": {Options{Pipelined: true}, session.Command{Until: 12}, true},
		"timed by the step": {
			Options{Pipelined: true, Timing: engine.TimingStep}, session.Command{N: 6}, true,
		},
		"not asked for": {Options{}, session.Command{N: 6}, false},
		"timed by dispatch": {
			Options{Pipelined: true, Timing: engine.TimingDispatch}, session.Command{N: 6}, false,
		},
		"checked":    {Options{Pipelined: true, Check: true}, session.Command{N: 6}, false},
		"candidates": {Options{Pipelined: true, TopLogits: 3}, session.Command{N: 6}, false},
		"drawn": {
			Options{Pipelined: true, Sampling: sample.Sampling{
				Temperature: 1, TopK: 1, TopP: 1,
				RepeatPenalty: 1,
			}},
			session.Command{N: 6},
			false,
		},
		"breakpoints": {
			Options{Pipelined: true},
			session.Command{N: 6, Breaks: []session.Break{{On: "position", Of: "40"}}},
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRigOn(t, c.o, tiny(), fake.Options{})
			r.do(promptOf(6))
			c.run.Kind = session.Run
			r.dev.ResetCounts()
			r.do(c.run)
			if got := overlaps(r.dev.Log); got != c.pipelined {
				t.Errorf("pipelined: %t", got)
			}
			r.wantStand(`step 6, position 12, "ghijklm"`)
			r.do(session.Command{Kind: session.Previous})
			r.do(session.Command{Kind: session.Next})
			r.wantStand(`step 7, position 12, "ghijklm"`)
			r.do(session.Command{Kind: session.Run, N: 2})
			r.wantStand(`step 9, position 14, "ghijklmno"`)
		})
	}
}

// The host reads the GPU times of several steps at once. Each step is still reported in order and with its
// own time, wherever the run ends.
func TestRunReportsEachStepWithItsTime(t *testing.T) {
	for _, pipelined := range []bool{false, true} {
		r := newRigOn(t, Options{Pipelined: pipelined, Timing: engine.TimingStep}, tiny(), fake.Options{})
		r.dev.Duration = func(string, uint32, uint32, uint32) int64 { return 1000 }
		r.do(promptOf(5))
		const n = 20
		r.do(session.Command{Kind: session.Run, N: n})
		r.do(session.Command{Kind: session.Next})
		steps := r.mirror.Trace.Steps
		if len(steps) != n+2 {
			t.Fatalf("%d steps", len(steps))
		}
		for i, s := range steps {
			if s.GPU == nil {
				t.Fatalf("pipelined %t: step %d has no time", pipelined, i)
			}
			span, ok := s.GPU.SpanNS.NS()
			if s.Index != i || !ok || span != int64(1000*len(s.Dispatches)) {
				t.Errorf("pipelined %t: step %d is reported as %d, took %d ns", pipelined, i, s.Index, span)
			}
		}
	}
}

// A run learns of the end of a text one step late. It discards the extra step, which must not affect any
// later command.
func TestStepAfterTheEndIsDiscarded(t *testing.T) {
	for _, pipelined := range []bool{false, true} {
		r := newRigOn(t, Options{Pipelined: pipelined}, tiny(), fake.Options{})
		r.do(promptOf(5))
		r.token = func(position int, tokens []int) int {
			if position == 8 {
				return tinyEnd
			}
			return letters(position, tokens)
		}
		r.do(session.Command{Kind: session.Run, N: 20})
		r.wantStand(`step 4, position 9, "fghi"`)
		if st := r.mirror.State; !st.Ended || len(r.mirror.Trace.Steps) != 5 {
			t.Errorf("%+v with %d steps", st, len(r.mirror.Trace.Steps))
		}
		r.token = letters
		r.do(session.Command{Kind: session.Previous})
		r.wantStand(`step 3, position 8, "fghi"`)
		r.do(session.Command{Kind: session.Run, N: 3})
		r.wantStand(`step 7, position 11, "fghijkl"`)
		for i, s := range r.mirror.Trace.Steps {
			if s.Index != i || len(s.Dispatches) == 0 {
				t.Errorf("pipelined %t: step %d is %d with %d dispatches", pipelined, i, s.Index,
					len(s.Dispatches))
			}
		}
	}
}

// Logits that are not finite end a run at the step that computed them. The error names that step, although
// another step ran after it.
func TestDamagedLogitsEndAPipelinedRun(t *testing.T) {
	golden := wordingtest.New(t)
	r := newRigOn(t, Options{Pipelined: true}, tiny(), fake.Options{NoLog: true})
	r.do(promptOf(5))
	r.token = func(position int, tokens []int) int {
		if position == 8 {
			r.logit = float32(math.NaN())
		}
		return letters(position, tokens)
	}
	err := r.try(context.Background(), session.Command{Kind: session.Run, N: 20})
	if err == nil || !errors.Is(err, r.s.text.Fault) {
		t.Fatalf("error %v, want the text's fault %v", err, r.s.text.Fault)
	}
	golden.Error("NaN at position 8", err)
	r.logit, r.token = 0, letters
	r.do(session.Command{Kind: session.Previous})
	r.do(session.Command{Kind: session.Run, N: 2})
	r.wantStand(`step 6, position 10, "fghijk"`)
}
