package model

import (
	"context"
	"slices"
	"strings"
	"testing"

	"gpuscope/engine/gpu/fake"
	"gpuscope/model/run"
	"gpuscope/model/sample"
	"gpuscope/session"
)

// drawing returns a session that samples from eight equally likely letters. They are the letter of the
// position and those that follow it.
func drawing(t *testing.T, seed uint32) *rig {
	return newRig(t, Options{Sampling: sample.Sampling{
		Temperature: 1, TopK: 8, TopP: 1, RepeatPenalty: 1, Seed: seed,
	}})
}

func (r *rig) given() []int {
	var list []int
	for _, tok := range r.mirror.Text.Given {
		list = append(list, tok.ID)
	}
	return list
}

// Sampling depends only on the seed and the position. A text continues in the same way however it reached a
// position.
func TestSampledTextIsReproducible(t *testing.T) {
	ways := map[string][]session.Command{
		"in one go": {promptOf(9), {Kind: session.Run, N: 12}},
		"the prompt in pieces": {
			{Kind: session.Prompt, Tokens: ids(9), Chunks: []int{4, 1}}, {Kind: session.Run, N: 12},
		},
		"back and on": {
			promptOf(9),
			{Kind: session.Run, N: 12},
			{Kind: session.Previous},
			{Kind: session.Previous},
			{Kind: session.Previous},
			{Kind: session.Run, N: 3},
		},
		"repeated on the way": {
			promptOf(9), {Kind: session.Run, N: 5}, {Kind: session.Repeat, N: 2}, {Kind: session.Run, N: 7},
		},
	}
	var want []int
	for _, way := range []string{"in one go", "the prompt in pieces", "back and on", "repeated on the way"} {
		r := drawing(t, 7)
		for _, c := range ways[way] {
			r.do(c)
		}
		if want == nil {
			want = r.given()
		}
		if got := r.given(); !slices.Equal(got, want) {
			t.Errorf("%s: %v, in one go %v", way, got, want)
		}
		for _, e := range r.mirror.Trace.Events {
			if strings.Contains(e.Text, "gave token") {
				t.Errorf("%s: %s", way, e.Text)
			}
		}
	}
	if letters := slices.Compact(slices.Sorted(slices.Values(want))); len(letters) < 4 {
		t.Errorf("%v: fewer than 4 different letters", want)
	}
	other := drawing(t, 8)
	other.do(promptOf(9))
	other.do(session.Command{Kind: session.Run, N: 12})
	if slices.Equal(other.given(), want) {
		t.Errorf("another seed gives the same: %v", want)
	}
}

func TestAnEngineThatGoesOnDrawsTheSame(t *testing.T) {
	r := drawing(t, 7)
	r.do(promptOf(9))
	r.do(session.Command{Kind: session.Run, N: 5})
	m := r.mirror
	left := m.Left()
	m.Continue()
	next := newRigAt(t, r.s.m.options, tiny(), fake.Options{NoLog: true}, m)
	next.reply(session.Command{Kind: session.Resume, Left: left})
	for _, e := range next.mirror.Trace.Events {
		if strings.Contains(e.Text, "another token") {
			t.Error(e.Text)
		}
	}
	next.do(session.Command{Kind: session.Run, N: 6})
	whole := drawing(t, 7)
	whole.do(promptOf(9))
	whole.do(session.Command{Kind: session.Run, N: 11})
	if got, want := next.given(), whole.given(); !slices.Equal(got, want) {
		t.Errorf("%v, without a restart %v", got, want)
	}
}

func TestAStepSaysHowItsTokenWasDrawn(t *testing.T) {
	r := drawing(t, 7)
	r.do(session.Command{Kind: session.Prompt, Tokens: ids(9), Chunks: []int{8}})
	steps := r.mirror.Trace.Steps
	if len(steps) != 2 || steps[0].Sampling != nil || len(steps[1].Top) != 0 ||
		steps[1].Sampling["temperature"] != 1.0 || steps[1].Sampling["top_k"] != 8.0 ||
		steps[1].Sampling["seed"] != 7.0 {
		t.Errorf("%+v, %+v", steps[0].Sampling, steps[1].Sampling)
	}
	greedy := newRig(t, Options{})
	greedy.do(promptOf(3))
	if s := greedy.mirror.Trace.Steps[0].Sampling; s != nil {
		t.Errorf("a greedy step: %v", s)
	}
}

// A penalty looks back over the prompt and the generated tokens, up to the position of the step.
func TestRecentTokensAreThoseBeforeAPosition(t *testing.T) {
	text := run.Transcript{IDs: []int{1, 2, 3, 4}, Turns: []run.Turn{
		{Position: 0, Tokens: []int{1, 2, 3}},
		{Position: 3, Tokens: []int{4}, Gives: true, Token: 50},
		{Position: 4, Tokens: []int{50}, Gives: true, Token: 51},
		{Position: 5, Tokens: []int{51}, Gives: true, Token: 52},
	}}
	for _, test := range []struct {
		position, n int
		want        []int
	}{
		{4, 2, []int{3, 4}},
		{4, 9, []int{1, 2, 3, 4}},
		{6, 3, []int{4, 50, 51}},
		{6, -1, []int{1, 2, 3, 4, 50, 51}},
		{7, 1, []int{52}},
	} {
		if got := text.Recent(test.position, test.n); !slices.Equal(got, test.want) {
			t.Errorf("last %d before %d: %v, want %v", test.n, test.position, got, test.want)
		}
	}
}

// A penalty that needs all logits reads them, and the session continues.
func TestPenaltyWithFewCandidatesReadsAllLogits(t *testing.T) {
	r := newRig(t, Options{Sampling: sample.Sampling{TopP: 1, RepeatPenalty: 2, RepeatLastN: -1}})
	r.logit = 1 // all equal, so penalised tokens rank below the tokens that were not read
	r.token = func(int, []int) int { return 'A' }
	if err := r.try(context.Background(), promptOf(60)); err != nil {
		t.Fatal(err)
	}
	if s := r.mirror.Trace.Steps[0]; s.Token == nil || s.Sampling["repeat_penalty"] != 2.0 {
		t.Errorf("token %v, sampling %v", s.Token, s.Sampling)
	}
}
