package model

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gpuscope/engine/gpu/fake"
	"gpuscope/session"
	"gpuscope/trace"
)

// another is the rig of an engine that is started where that of r has gone, with the mirror of r.
func (r *rig) another(t *testing.T) *rig {
	t.Helper()
	m := r.mirror
	left := m.Left()
	m.Continue()
	next := newRigAt(t, Options{}, tiny(), fake.Options{NoLog: true}, m)
	next.reply(session.Command{Kind: session.Resume, Left: left})
	return next
}

// Steps that are set back, a text that keeps the beginning of another, pieces of a prompt: wherever an engine
// goes, the next one stands there, and goes on as it would have.
func TestAnEngineGoesOnWhereAnotherOneWas(t *testing.T) {
	none := cmpopts.EquateEmpty()
	step := session.Command{Kind: session.Next}
	back := session.Command{Kind: session.Previous}
	prompt := promptOf(7)
	prompt.Chunks = []int{3, 1}
	edit := func(keep int, tokens ...int) session.Command {
		return session.Command{Kind: session.Edit, N: keep, Tokens: tokens}
	}
	level := session.Command{Kind: session.Timing, Level: "step"}
	for name, test := range map[string]struct {
		before []session.Command
	}{
		"nothing":              {},
		"a prompt":             {before: []session.Command{prompt}},
		"a run":                {before: []session.Command{prompt, {Kind: session.Run, N: 5}}},
		"set back":             {before: []session.Command{prompt, step, step, step, back, back}},
		"set back and on":      {before: []session.Command{prompt, step, step, back, step, step}},
		"before the first":     {before: []session.Command{promptOf(2), back}},
		"another prompt":       {before: []session.Command{prompt, step, promptOf(4), step}},
		"an edited text":       {before: []session.Command{prompt, step, step, edit(5, 9, 8, 7), step}},
		"edited twice":         {before: []session.Command{prompt, step, edit(5, 9, 8), step, edit(6, 1, 2)}},
		"forgotten":            {before: []session.Command{prompt, step, {Kind: session.Reset}}},
		"level and chunk":      {before: []session.Command{level, {Kind: session.Chunk, N: 2}, promptOf(5)}},
		"to the context's end": {before: []session.Command{promptOf(5), {Kind: session.Run}}},
	} {
		t.Run(name, func(t *testing.T) {
			r, gone := newRig(t, Options{}), newRig(t, Options{})
			for _, c := range test.before {
				r.do(c)
				gone.do(c)
			}
			next := gone.another(t)
			if got, want := next.mirror.State, r.mirror.State; !cmp.Equal(got, want, none) {
				t.Error(cmp.Diff(want, got, none))
			}
			if got, want := next.mirror.Text, r.mirror.Text; !cmp.Equal(got, want, none) {
				t.Error(cmp.Diff(want, got, none))
			}
			got, want := next.s.text.Chunks, r.s.text.Chunks
			if len(next.s.text.Turns) > 0 && !slices.Equal(got, want) {
				t.Errorf("the prompt's steps have %v tokens, want %v", got, want)
			}
			n := len(r.mirror.Trace.Steps)
			for _, c := range []session.Command{step, step, {Kind: session.Repeat, N: 2}, back, step} {
				err, want := next.try(context.Background(), c), r.try(context.Background(), c)
				if (err == nil) != (want == nil) {
					t.Errorf("%s: %v, without a restart: %v", c.Kind, err, want)
				}
				if next.stand() != r.stand() {
					t.Errorf("%s: at %s, without a restart: %s", c.Kind, next.stand(), r.stand())
				}
			}
			if got, want := len(next.mirror.Trace.Steps), len(r.mirror.Trace.Steps); got != want {
				t.Errorf("%d steps, without a restart: %d", got, want)
			}
			if kinds := next.kinds(); !slices.ContainsFunc(kinds, func(k string) bool {
				return strings.HasPrefix(k, "engine_restarted ")
			}) {
				t.Errorf("after %d steps no event says that the engine was started again: %q", n, kinds)
			}
		})
	}
}

func TestAnotherTokenThanTheFirstTimeIsNotTaken(t *testing.T) {
	r := newRig(t, Options{})
	r.do(promptOf(5))
	r.do(session.Command{Kind: session.Run, N: 3})
	m := r.mirror
	left := m.Left()
	m.Continue()
	next := newRigAt(t, Options{}, tiny(), fake.Options{NoLog: true}, m)
	next.token = func(position int, tokens []int) int { return 'x' }
	next.reply(session.Command{Kind: session.Resume, Left: left})
	next.wantStand(r.stand())
	events := next.mirror.Trace.Events
	if says := events[len(events)-1].Text; !strings.Contains(says, "4 of them gave another token") {
		t.Errorf("%q", says)
	}
}

func TestWhatCannotHaveBeenLeftIsRefused(t *testing.T) {
	token := func(id int) *int { return &id }
	whole := func() *session.Left {
		return &session.Left{
			Last: &session.Shape{Step: 2, Position: 3, Tokens: 1}, Prompt: []int{
				1, 2,
				3,
			}, Timing: trace.TimingDispatch,
			Turns: []session.Turn{
				{Step: 0, Tokens: 2},
				{Step: 1, Tokens: 1, Token: token(5)},
				{Step: 2, Tokens: 1, Token: token(6)},
			},
		}
	}
	for want, spoil := range map[string]func(*session.Left){
		"":                                func(*session.Left) {},
		"invalid last step -1":            func(l *session.Left) { l.Last.Step = -1 },
		"with 1 tokens at position 64":    func(l *session.Left) { l.Last.Position = 64 },
		"with 99 tokens at":               func(l *session.Left) { l.Last.Tokens = 99 },
		"chunks of 999":                   func(l *session.Left) { l.Chunk = 999 },
		"timing level":                    func(l *session.Left) { l.Timing = "now" },
		"token 0 of the prompt has id -1": func(l *session.Left) { l.Prompt[0] = -1 },
		"but no prompt":                   func(l *session.Left) { l.Prompt = nil },
		"a step of 0 tokens":              func(l *session.Left) { l.Turns[1].Tokens = 0 },
		"a step of -2 tokens":             func(l *session.Left) { l.Kept = []int{-2} },
		"invalid step of 2 tokens at":     func(l *session.Left) { l.Turns[2].Tokens = 2 },
		"step 0 follows step 0":           func(l *session.Left) { l.Turns[1].Step = 0 },
		"step 2 follows step 1":           func(l *session.Left) { l.Last.Step = 1 },
		"has a token but must not":        func(l *session.Left) { l.Turns[0].Token = token(1) },
		"invalid token id 99999":          func(l *session.Left) { l.Turns[2].Token = token(99999) },
		"3 positions are kept":            func(l *session.Left) { l.Kept, l.Turns = []int{3}, nil },
	} {
		r := newRig(t, Options{})
		l := whole()
		spoil(l)
		r.mirror.Continue()
		_, err := r.s.Do(context.Background(), session.Command{Kind: session.Resume, Left: l})
		refused := errors.Is(err, session.ErrUsage) && strings.Contains(err.Error(), want)
		if err != nil && !refused || (err == nil) != (want == "") {
			t.Errorf("%q: %v", want, err)
		}
		_, err = r.s.Do(context.Background(), session.Command{Kind: session.Resume, Left: whole()})
		if (err == nil) != (want != "") {
			t.Errorf("%q, then what is right: %v", want, err)
		}
	}
}
