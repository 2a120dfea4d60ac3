package model

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gpuscope/engine/gpu/fake"
	"gpuscope/internal/wordingtest"
	"gpuscope/model/checkpoint/gguf/gguftest"
	"gpuscope/session"
)

func TestTextEndsWithTheContext(t *testing.T) {
	golden := wordingtest.New(t)
	r := newRig(t, Options{})
	r.do(promptOf(tinyContext - 2))
	r.do(session.Command{Kind: session.Run})
	if st := r.mirror.State; st.Position != tinyContext || !st.Ended || len(r.mirror.Text.Given) != 3 {
		t.Errorf("position %d, ended %v, %d tokens", st.Position, st.Ended, len(r.mirror.Text.Given))
	}
	err := r.try(context.Background(), session.Command{Kind: session.Next})
	if !errors.Is(err, session.ErrUsage) {
		t.Errorf("a step past the context: %v", err)
	}
	golden.Error("a step past the context", err)
	r.do(session.Command{Kind: session.Previous})
	if st := r.mirror.State; st.Position != tinyContext-1 || st.Ended {
		t.Errorf("a step back: position %d, ended %v", st.Position, st.Ended)
	}
	r.do(session.Command{Kind: session.Next})
	r.do(promptOf(tinyContext)) // a prompt may fill the context
	if st := r.mirror.State; st.Position != tinyContext || !st.Ended || len(r.mirror.Text.Given) != 1 {
		t.Errorf("a prompt that fills the context: position %d, ended %v", st.Position, st.Ended)
	}
}

func TestTextEndsWithTheEndToken(t *testing.T) {
	end := func(position int, tokens []int) int {
		if position == 7 {
			return tinyEnd
		}
		return letters(position, tokens)
	}
	r := newRig(t, Options{})
	r.token = end
	r.do(promptOf(5))
	r.do(session.Command{Kind: session.Run, N: 10})
	r.wantStand(`step 3, position 8, "fgh"`)
	if !r.mirror.State.Ended {
		t.Error("the text has not ended")
	}
	if err := r.try(context.Background(), session.Command{Kind: session.Next}); !errors.Is(err,
		session.ErrUsage) {
		t.Errorf("a step past the end: %v", err)
	}
	on := newRig(t, Options{IgnoreEOS: true})
	on.token = end
	on.do(promptOf(5))
	on.do(session.Command{Kind: session.Run, N: 5})
	on.wantStand(`step 5, position 10, "fghjk"`)
}

func TestTextStartsWithTheFilesToken(t *testing.T) {
	r := newRig(t, Options{})
	r.do(session.Command{Kind: session.Prompt, Text: "Hi"})
	if got := r.mirror.Trace.Steps[0].Tokens; !slices.Equal(got, []int{tinyEnd, 'H', 'i'}) {
		t.Errorf("a text was encoded as %v", got)
	}
	r.do(session.Command{Kind: session.Prompt, Tokens: []int{'H', 'i'}})
	if got := r.mirror.Trace.Steps[1].Tokens; !slices.Equal(got, []int{'H', 'i'}) {
		t.Errorf("ids were encoded as %v", got)
	}
	plain := newRigOn(t, Options{}, withoutBOS(), fake.Options{})
	plain.do(session.Command{Kind: session.Prompt, Text: "Hi"})
	if got := plain.mirror.Trace.Steps[0].Tokens; !slices.Equal(got, []int{'H', 'i'}) {
		t.Errorf("a text for a file without BOS was encoded as %v", got)
	}
}

func TestCharactersComeWhole(t *testing.T) {
	r := newRig(t, Options{})
	out := []byte("aé€b")
	r.token = func(position int, tokens []int) int { return int(out[position+len(tokens)-1]) }
	r.do(promptOf(1))
	r.do(session.Command{Kind: session.Run, N: len(out) - 1})
	var texts []string
	for _, s := range r.mirror.Trace.Steps {
		texts = append(texts, s.Text)
	}
	if d := cmp.Diff([]string{"a", "", "é", "", "", "€", "b"}, texts); d != "" {
		t.Error(d)
	}
	for range 3 { // step back into the middle of the last character
		r.do(session.Command{Kind: session.Previous})
	}
	r.wantStand(`step 3, position 4, "aé"`)
	r.do(session.Command{Kind: session.Run, N: 3})
	r.wantStand(`step 9, position 7, "aé€b"`)
}

// A token that is generated at the last position does not fit into the context, but is still returned.
func TestLastPositionOfTheContextGivesAToken(t *testing.T) {
	r := newRig(t, Options{TopLogits: 2})
	c := promptOf(tinyContext)
	c.N = 1
	r.do(c)
	r.wantStand(`step 0, position 64, "m"`)
	if st := r.mirror.State; !st.Ended || len(r.mirror.Trace.Steps[0].Top) != 2 {
		t.Errorf("ended %v, candidates %v", st.Ended, r.mirror.Trace.Steps[0].Top)
	}
	if err := r.try(context.Background(), session.Command{Kind: session.Next}); !errors.Is(err,
		session.ErrUsage) {
		t.Errorf("a step after the last position: %v", err)
	}
	c = promptOf(tinyContext - 4)
	c.N = 5
	r.do(c)
	r.do(session.Command{Kind: session.Run, N: c.N - 1})
	if st := r.mirror.State; st.Given != c.N || st.Position != tinyContext {
		t.Errorf("%d tokens up to position %d, want %d up to %d", st.Given, st.Position, c.N, tinyContext)
	}
}

// The bytes of an incomplete character are in no token's text, but the state reports them.
func TestUnfinishedCharacterIsReported(t *testing.T) {
	r := newRig(t, Options{})
	bytes := []byte("é€")
	r.token = func(position int, tokens []int) int { return int(bytes[(position+len(tokens))%len(bytes)]) }
	for n, want := range []string{"", "\xe2", "\xe2\x82", ""} { // the text starts at byte 1 of é
		r.do(session.Command{Kind: session.Reset})
		r.do(promptOf(1))
		if n > 0 {
			r.do(session.Command{Kind: session.Run, N: n})
		}
		if got := r.mirror.State.Unfinished; got != want {
			t.Errorf("after %d tokens %q is unfinished, want %q", n+1, got, want)
		}
	}
	r.do(session.Command{Kind: session.Previous})
	if got := r.mirror.State.Unfinished; got != "\xe2\x82" {
		t.Errorf("after a step back %q is unfinished", got)
	}
}

func TestModelWithoutVocabularyRunsOnIDs(t *testing.T) {
	golden := wordingtest.New(t)
	b := tiny()
	b.Set("tokenizer.ggml.model", "none")
	r := newRigOn(t, Options{}, b, fake.Options{})
	err := r.try(context.Background(), session.Command{Kind: session.Prompt, Text: "Hi"})
	if !errors.Is(err, session.ErrUsage) {
		t.Errorf("a text: %v", err)
	}
	golden.Text("a text", inFolder(err, filepath.Dir(r.s.m.options.Path)))
	r.do(session.Command{Kind: session.Prompt, Text: "5, 6,7"})
	if got := r.mirror.Text.Prompt; len(got) != 3 || got[1].ID != 6 {
		t.Errorf("typed ids: tokens %v", got)
	}
	r.do(promptOf(5))
	r.do(session.Command{Kind: session.Run, N: 2})
	r.wantStand(`step 3, position 7, ""`)
	if got := r.mirror.Text.Given; len(got) != 3 || got[0].ID != 'f' {
		t.Errorf("tokens %v", got)
	}
}

func TestTokenOutsideOfTheVocabularyFailsTheStep(t *testing.T) {
	golden := wordingtest.New(t)
	r := newRig(t, Options{})
	r.token = func(int, []int) int { return tinyVocab }
	err := r.try(context.Background(), promptOf(5))
	if errors.Is(err, session.ErrUsage) {
		t.Errorf("error %v", err)
	}
	golden.Error("an id past the last", err)
	r.wantStand(`step -1, position 0, ""`)
}

func withoutBOS() *gguftest.Builder {
	b := tiny()
	b.Set("tokenizer.ggml.add_bos_token", false)
	return b
}

func TestCandidatesCarryTheirText(t *testing.T) {
	r := newRig(t, Options{TopLogits: 3})
	r.do(promptOf(3))
	var got []string
	for _, c := range r.mirror.Trace.Steps[0].Top {
		got = append(got, c.Text)
	}
	if d := cmp.Diff([]string{"d", "e", "f"}, got); d != "" {
		t.Error(d)
	}
}

// No token can follow logits that are not finite. The step is still reported, the text ends, and the error
// names the location.
func TestNaNLogitsEndTheTextWithMessage(t *testing.T) {
	golden := wordingtest.New(t)
	for _, candidates := range []int{0, 3} {
		r := newRig(t, Options{TopLogits: candidates, IgnoreEOS: true})
		r.do(promptOf(5))
		r.do(session.Command{Kind: session.Next})
		for _, damage := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			r.logit = float32(damage)
			err := r.try(context.Background(), session.Command{Kind: session.Run, N: 3})
			if err == nil || errors.Is(err, session.ErrUsage) {
				t.Fatalf("error %v", err)
			}
			name := fmt.Sprintf("%v of %d candidates", damage, candidates)
			golden.Error(name, err)
			tr, st := r.mirror.Trace, r.mirror.State
			last := tr.Steps[len(tr.Steps)-1]
			if st.Position != 7 || !st.Ended || st.Given != 2 || last.Token != nil ||
				len(last.Top) != candidates {
				t.Errorf("position %d, ended %v, %d tokens, step %+v", st.Position, st.Ended, st.Given, last)
			}
			if n := len(tr.Events); n == 0 || tr.Events[n-1].Step != last.Index {
				t.Errorf("the trace's events are %v", tr.Events)
			} else {
				golden.Text(name+", event", tr.Events[n-1].Text)
			}
			err = r.try(context.Background(), session.Command{Kind: session.Next})
			if !errors.Is(err, session.ErrUsage) {
				t.Errorf("the next step: %v", err)
			}
			golden.Error(name+", the next step", err)
			r.logit = 0
			r.do(session.Command{Kind: session.Previous})
			r.do(session.Command{Kind: session.Next})
			r.do(session.Command{Kind: session.Previous})
			r.wantStand(`step 1, position 6, "fg"`)
		}
	}
}

func TestAModelTakesTheVocabularyOfAnotherFile(t *testing.T) {
	t.Parallel()
	vocabulary := func(size int) string {
		b := gguftest.New()
		b.ByteTokenizer(size)
		return write(t, b.Bytes())
	}
	for _, size := range []int{300, 4096, 4097} { // the embedding has 4096 rows
		m, err := Read(Options{Tokenizer: vocabulary(size)})
		if err != nil {
			t.Fatal(err)
		}
		ids, err := m.encode(session.Command{Text: "Hi"}, true)
		if diff := cmp.Diff([]int{0, 1 + 'H', 1 + 'i'}, ids); err != nil || diff != "" {
			t.Errorf("%d tokens: %v %s", size, err, diff)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	broken := filepath.Join(t.TempDir(), "tokenizer.json")
	if err := os.WriteFile(broken, []byte(`{"model": {`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"none.json", broken} {
		if _, err := Read(Options{Tokenizer: path}); err == nil {
			t.Errorf("%s was accepted", path)
		}
	}
}
