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
	"gpuscope/internal/wordingtest"
	"gpuscope/session"
	"gpuscope/trace"
)

// another returns the rig of an engine that is started in place of r's, which has crashed. The new rig
// continues with r's mirror.
func (r *rig) another(t *testing.T) *rig {
	t.Helper()
	m := r.mirror
	left := m.Left()
	m.Continue()
	next := newRigAt(t, Options{}, tiny(), fake.Options{NoLog: true}, m)
	next.reply(session.Command{Kind: session.Resume, Left: left})
	return next
}

// The new engine is at the same position as the crashed one and continues in the same way. The cases include
// steps back, edited texts and prompts in chunks.
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
		"stepped back":         {before: []session.Command{prompt, step, step, step, back, back}},
		"stepped back and on":  {before: []session.Command{prompt, step, step, back, step, step}},
		"before the first":     {before: []session.Command{promptOf(2), back}},
		"another prompt":       {before: []session.Command{prompt, step, promptOf(4), step}},
		"an edited text":       {before: []session.Command{prompt, step, step, edit(5, 9, 8, 7), step}},
		"edited twice":         {before: []session.Command{prompt, step, edit(5, 9, 8), step, edit(6, 1, 2)}},
		"reset":                {before: []session.Command{prompt, step, {Kind: session.Reset}}},
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
				t.Errorf("after %d steps no event reports the restart of the engine: %q", n, kinds)
			}
		})
	}
}

func TestDifferentTokenInARepeatIsNotUsed(t *testing.T) {
	golden := wordingtest.New(t)
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
	golden.Text("event", events[len(events)-1].Text)
}

func TestWhatCannotHaveBeenLeftIsRefused(t *testing.T) {
	golden := wordingtest.New(t)
	const unspoilt = "as it was left"
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
	for name, spoil := range map[string]func(*session.Left){
		unspoilt:                           func(*session.Left) {},
		"a negative last step":             func(l *session.Left) { l.Last.Step = -1 },
		"a step past the context":          func(l *session.Left) { l.Last.Position = 64 },
		"a step of too many tokens":        func(l *session.Left) { l.Last.Tokens = 99 },
		"too large chunks":                 func(l *session.Left) { l.Chunk = 999 },
		"no such timing level":             func(l *session.Left) { l.Timing = "now" },
		"a negative id in the prompt":      func(l *session.Left) { l.Prompt[0] = -1 },
		"no prompt":                        func(l *session.Left) { l.Prompt = nil },
		"a step of no tokens":              func(l *session.Left) { l.Turns[1].Tokens = 0 },
		"a negative number of kept tokens": func(l *session.Left) { l.Kept = []int{-2} },
		"a decode step of two tokens":      func(l *session.Left) { l.Turns[2].Tokens = 2 },
		"a step twice":                     func(l *session.Left) { l.Turns[1].Step = 0 },
		"a step past the last":             func(l *session.Left) { l.Last.Step = 1 },
		"a token within the prompt":        func(l *session.Left) { l.Turns[0].Token = token(1) },
		"no such id":                       func(l *session.Left) { l.Turns[2].Token = token(99999) },
		"a whole prompt that is kept":      func(l *session.Left) { l.Kept, l.Turns = []int{3}, nil },
	} {
		r := newRig(t, Options{})
		l := whole()
		spoil(l)
		r.mirror.Continue()
		_, err := r.s.Do(context.Background(), session.Command{Kind: session.Resume, Left: l})
		if name != unspoilt {
			golden.Error(name, err)
		}
		if err != nil && !errors.Is(err, session.ErrUsage) || (err == nil) != (name == unspoilt) {
			t.Errorf("%s: %v", name, err)
		}
		_, err = r.s.Do(context.Background(), session.Command{Kind: session.Resume, Left: whole()})
		if (err == nil) != (name != unspoilt) {
			t.Errorf("%s, then a valid command: %v", name, err)
		}
	}
}
