package model

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/engine/gpu/fake"
	"gpuscope/ops"
	"gpuscope/ops/reference"
	"gpuscope/session"
	"gpuscope/trace"
)

// expected is a simple model of a session: the position after each step of the text.
type expected struct {
	prompt int
	chunk  int
	ends   []int // position after each step
}

func (x *expected) position() int {
	if len(x.ends) == 0 {
		return 0
	}
	return x.ends[len(x.ends)-1]
}

// step returns the position after the next step.
func (x *expected) step() int {
	if p := x.position(); p < x.prompt {
		return min(p+x.chunk, x.prompt)
	}
	return x.position() + 1
}

// text returns the generated text. rig.token gives the letter of the position after the step.
func (x *expected) text() string {
	var text []byte
	for _, end := range x.ends {
		if end >= x.prompt {
			text = append(text, byte(letters(end, nil)))
		}
	}
	return string(text)
}

// After any sequence of commands, device faults and cancellations, the session is at the position that a
// simple model of it predicts.
func TestAnyCommandsLeaveTheSessionWhereReasoningSays(t *testing.T) {
	r := newRig(t, Options{MaxChunk: 16})
	rapid.Check(t, func(rt *rapid.T) {
		r.do(session.Command{Kind: session.Reset})
		x := expected{}
		check := func(what string) {
			var text string
			for _, token := range r.mirror.Text.Given {
				text += token.Text
			}
			if p := r.mirror.State.Position; p != x.position() || text != x.text() {
				rt.Fatalf("%s: at position %d with %q, want %d with %q", what, p, text, x.position(),
					x.text())
			}
		}
		do := func(c session.Command) error { return r.try(context.Background(), c) }
		advance := func(n int) {
			for x.prompt > 0 && x.position() < x.prompt {
				x.ends = append(x.ends, x.step())
			}
			for range n {
				if x.position() < tinyContext {
					x.ends = append(x.ends, x.step())
				}
			}
		}
		can := func() bool { return x.prompt > 0 && x.position() < tinyContext }
		refused := func(err error, allowed bool) {
			if allowed != (err == nil) || err != nil && !errors.Is(err, session.ErrUsage) {
				rt.Fatalf("error %v, allowed %v", err, allowed)
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"prompt": func(rt *rapid.T) {
				n, chunk := rapid.IntRange(1, tinyContext).Draw(rt, "tokens"),
					rapid.IntRange(1, 16).Draw(rt, "chunk")
				c := promptOf(n)
				c.Chunks = []int{chunk}
				refused(do(c), true)
				x = expected{prompt: n, chunk: chunk}
				advance(0)
			},
			"next": func(rt *rapid.T) {
				allowed := can()
				refused(do(session.Command{Kind: session.Next}), allowed)
				if allowed {
					x.ends = append(x.ends, x.step())
				}
			},
			"run": func(rt *rapid.T) {
				n, allowed := rapid.IntRange(0, 20).Draw(rt, "n"), can()
				refused(do(session.Command{Kind: session.Run, N: n}), allowed)
				if allowed && n == 0 { // run to the end of the context
					n = tinyContext
				}
				if allowed {
					advance(n)
				}
			},
			"previous": func(rt *rapid.T) {
				allowed := len(x.ends) > 0
				refused(do(session.Command{Kind: session.Previous}), allowed)
				if allowed {
					x.ends = x.ends[:len(x.ends)-1]
				}
			},
			"repeat": func(rt *rapid.T) {
				refused(do(session.Command{Kind: session.Repeat, N: 2}), len(x.ends) > 0)
			},
			"timing": func(rt *rapid.T) {
				refused(do(session.Command{
					Kind:  session.Timing,
					Level: rapid.SampledFrom([]trace.Timing{trace.TimingOff, trace.TimingStep, trace.TimingDispatch}).Draw(rt, "level"),
				}), true)
			},
			"fault": func(rt *rapid.T) {
				if !can() {
					return
				}
				fault := errors.New("injected")
				r.dev.FailNth(rapid.SampledFrom([]fake.Kind{
					fake.Write, fake.BeginPass, fake.EndPass,
					fake.Submit, fake.Wait,
				}).Draw(rt, "kind"), 1, fault)
				if err := do(session.Command{Kind: session.Next}); !errors.Is(err, fault) {
					rt.Fatalf("error %v, want the injected one", err)
				}
			},
			"cancel": func(rt *rapid.T) {
				if !can() {
					return
				}
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				steps := rapid.IntRange(1, 4).Draw(rt, "after")
				made := 0
				r.dev.Fault = func(c fake.Call) error {
					if c.Kind == fake.Submit && c.Label == "step" {
						if made++; made == steps {
							cancel()
						}
					}
					return nil
				}
				err := r.try(ctx, session.Command{Kind: session.Run})
				r.dev.Fault = nil
				for range made {
					x.ends = append(x.ends, x.step())
				}
				if err != nil && !errors.Is(err, context.Canceled) || err == nil && can() {
					rt.Fatalf("error %v after %d steps, at %d", err, made, x.position())
				}
			},
			"": func(*rapid.T) { check("then") },
		})
		r.dev.FailNth(fake.Submit, math.MaxInt32, nil)
	})
}

// With any set of fusion rules, every architecture computes the same logits as without fusion.
func TestAnyRulesKeepWhatAModelComputes(t *testing.T) {
	var files []string
	for _, a := range ggufArchitectures() {
		files = append(files, write(t, tinyWide(a, 128).Bytes()))
	}
	anyRulesKeep(t, files, []ruleStep{{5, 0}, {1, 5}, {3, 6}, {1, 9}})
}

type ruleStep struct{ tokens, pos int }

// anyRulesKeep runs steps of models in float64, with random sets of fusion rules and without fusion.
func anyRulesKeep(t *testing.T, files []string, steps []ruleStep) {
	logits := make([][][]float64, len(files))
	run := func(a int, fuse string) (got [][]float64, err error) {
		m, err := Read(Options{Path: files[a], Fuse: fuse})
		if err != nil {
			return nil, err
		}
		defer m.Close()
		n, err := m.build(deviceLimits())
		if err != nil {
			return nil, err
		}
		x := reference.NewInterpreter(n.Graph)
		for _, s := range steps {
			if _, err := broughtTo(n, s.tokens, s.pos); err != nil {
				return nil, err
			}
			if err := x.Step(n.Input(s.pos, ids(s.tokens)), nil); err != nil {
				return nil, err
			}
			got = append(got, x.Tensor(n.Logits).Data)
		}
		return got, nil
	}
	for i := range files {
		var err error
		if logits[i], err = run(i, "off"); err != nil {
			t.Fatal(err)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		a := rapid.IntRange(0, len(files)-1).Draw(rt, "architecture")
		var some []string
		for _, r := range ops.Fusions {
			if rapid.Bool().Draw(rt, r.Name) {
				some = append(some, r.Name)
			}
		}
		fuse := strings.Join(some, ",")
		all, err := run(a, fuse)
		if err != nil {
			rt.Fatalf("%s, --fuse %s: %v", files[a], fuse, err)
		}
		for i, got := range all {
			for j, want := range logits[a][i] {
				if math.Abs(got[j]-want) > 1e-9 {
					rt.Fatalf("%s, --fuse %s, %+v: logit %d is %v, want %v", files[a], fuse,
						steps[i], j, got[j], want)
				}
			}
		}
	})
}
