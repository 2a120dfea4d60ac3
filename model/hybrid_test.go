//go:build !race

package model

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"gpuscope/engine/gpu/gputest"
	"gpuscope/session"
	"gpuscope/trace"
)

// hybrids returns the names of the tiny models with recurrent layers: all of them, or with -short those
// without experts.
func hybrids() []string {
	if testing.Short() {
		return []string{"lfm2", "qwen3_5"}
	}
	return []string{"lfm2", "qwen3_5", "qwen3_5_moe"}
}

func hybrid(name string) Options {
	return Options{
		Path: filepath.Join("..", "..", "shared", "models", "arch2", name), IgnoreEOS: true, TopLogits: 3,
	}
}

// A text of a hybrid model is stepped back and continued a thousand times, at random. Every step gives the
// same bits as when it first ran.
func TestBackAndForthOverAHybridModelGivesTheSameTokens(t *testing.T) {
	dev := gputest.Open(t)
	for _, name := range hybrids() {
		t.Run(name, func(t *testing.T) {
			moves := 1000
			if testing.Short() {
				moves = 100
			}
			r, random := openOn(t, dev, hybrid(name)), rand.New(rand.NewPCG(1, 2))
			r.do(session.Command{Kind: session.Prompt, Tokens: ids(20), Chunks: []int{7, 1, 4}})
			const most = 60
			steps := len(r.mirror.Trace.Steps)
			for done := 0; done < moves; {
				n := min(1+random.IntN(12), moves-done)
				if back := steps > 0 && (random.IntN(2) == 0 || steps > most); back {
					n = min(n, steps)
					for range n {
						r.do(session.Command{Kind: session.Previous})
					}
					steps -= n
				} else {
					for range n {
						r.do(session.Command{Kind: session.Next})
					}
					steps += n
				}
				done += n
			}
			first := map[int]trace.Step{}
			tr := r.end()
			for _, s := range tr.Steps {
				was, ran := first[s.Position]
				if !ran {
					first[s.Position] = s
					continue
				}
				same := len(was.Top) == len(s.Top) && slices.Equal(was.Tokens, s.Tokens)
				for i := range s.Top {
					same = same && s.Top[i].ID == was.Top[i].ID && s.Top[i].Logit == was.Top[i].Logit
				}
				if !same {
					t.Fatalf("step %d at position %d read %v and gives %v, but %v and %v the first time",
						s.Index, s.Position, s.Tokens, s.Top, was.Tokens, was.Top)
				}
			}
			events := map[string]int{}
			for _, e := range tr.Events {
				events[e.Kind]++
			}
			if back, replayed := events["set_back"], events["replayed"]; replayed == 0 || replayed >= back/2 {
				t.Errorf("%d of %d steps back ran steps again; want some, but less than half", replayed, back)
			}
		})
	}
}

// Commands that run a step of a hybrid model again leave the text as it was: it goes on as a text that
// nothing else happened to.
func TestCommandsLeaveTheStateOfAHybridModel(t *testing.T) {
	dev := gputest.Open(t)
	for _, name := range hybrids() {
		t.Run(name, func(t *testing.T) {
			prompt := session.Command{Kind: session.Prompt, Tokens: ids(20), Chunks: []int{9, 1}}
			run := session.Command{Kind: session.Run, N: 6}
			fresh := openOn(t, dev, hybrid(name))
			for _, c := range []session.Command{prompt, run, run} {
				fresh.do(c)
			}
			want := producedBy(fresh.end())

			r := openOn(t, dev, hybrid(name))
			r.do(prompt)
			r.do(run)
			of := func(step int) *int { return &step }
			g := &r.mirror.Trace.Graph
			conv := opOf(t, g, "causal_conv1d")
			at := slices.IndexFunc(g.Dispatches, func(d trace.Dispatch) bool { return d.Op == *conv })
			for _, c := range []session.Command{
				{Kind: session.Repeat, N: 2},
				{Kind: session.Repeat, N: 1, Step: of(0)},
				{Kind: session.Observe},
				{Kind: session.Cost, N: 1, Parts: []trace.Part{
					{Name: "conv", Dispatches: []trace.DispatchID{trace.DispatchID(at)}},
				}},
				{Kind: session.Look, At: &session.LookAt{
					Value: g.Ops[*conv].Outputs[0], Step: of(3), Count: 4,
				}},
				{Kind: session.Verify},
				{Kind: session.Verify, Step: of(1)},
				{Kind: session.Upto, N: at},
				{Kind: session.Next},
				{Kind: session.Previous},
				{Kind: session.Next},
				{Kind: session.Lab, N: 1, Edit: &session.KernelEdit{Kernel: "causal_conv1d"}},
				{Kind: session.Lab, N: 1, Edit: &session.KernelEdit{Kernel: "gated_delta_rule_decode"}},
				{Kind: session.TimeOp, Op: conv, Lengths: []int{5}, N: 1},
				run,
			} {
				if c.Edit == nil {
					r.do(c)
					continue
				}
				has := func(k trace.Kernel) bool { return k.Name == c.Edit.Kernel }
				if !slices.ContainsFunc(g.Kernels, has) {
					continue
				}
				// The edit of the delta rule gives other last digits.
				before, after := "\n", "\n// the same\n"
				if c.Edit.Kernel == "gated_delta_rule_decode" {
					before, after = "exp(-gate)", "exp(-gate) * 1.0000002"
				}
				c.Edit.Text = kernelText(t, g, c.Edit.Kernel, before, after)
				reply, err := r.s.Do(t.Context(), c)
				if err != nil {
					t.Fatal(err)
				}
				if tried := reply.Tried; tried.Wrong() != "" || tried.Whole == nil {
					t.Errorf("%s: %q, %+v", c.Edit.Kernel, tried.Wrong(), tried)
				}
			}
			tr := r.end()
			if got := producedBy(tr); !slices.Equal(got, want) {
				t.Errorf("tokens %v, want %v", got, want)
			}
			compared := 0
			for _, s := range tr.Steps {
				for _, d := range s.Dispatches {
					if g := d.Error; g != nil {
						compared++
						if !(g.Share <= 1) || g.NotFinite > 0 || g.Run == nil || !(g.Run.MaxAbs < 1e-2) {
							t.Errorf("step %d, dispatch %d: error %+v, along the reference run %+v", s.Index,
								tr.Plans[d.Plan].Dispatch, *g, g.Run)
						}
					}
				}
			}
			if compared < 40 {
				t.Errorf("only %d dispatches were compared", compared)
			}
		})
	}
}

// An edit keeps the first tokens of a text. Their state is restored, although no step of the text ended
// there.
func TestEditOfAHybridModelContinuesFromTheKeptTokens(t *testing.T) {
	dev := gputest.Open(t)
	for _, name := range hybrids() {
		t.Run(name, func(t *testing.T) {
			const kept = 13
			added := []int{5, 77, 301}
			r := openOn(t, dev, hybrid(name))
			r.do(session.Command{Kind: session.Prompt, Tokens: ids(30), Chunks: []int{9}})
			r.do(session.Command{Kind: session.Run, N: 3})
			r.do(session.Command{Kind: session.Edit, N: kept, Tokens: added})
			edited := r.end()
			r = openOn(t, dev, hybrid(name))
			r.do(session.Command{Kind: session.Prompt, Tokens: slices.Concat(ids(30)[:kept], added)})
			fresh := r.end()
			got, want := edited.Steps[len(edited.Steps)-1], fresh.Steps[len(fresh.Steps)-1]
			for i := range want.Top {
				if off := math.Abs(got.Top[i].Logit - want.Top[i].Logit); !(off < 1e-3) {
					t.Errorf("candidate %d is %+v, want %+v", i, got.Top[i], want.Top[i])
				}
			}
		})
	}
}

// producedBy returns the tokens of a text by position: those of the last step at each position.
func producedBy(tr *trace.Trace) (tokens []int) {
	at := map[int]int{}
	last := 0
	for _, s := range tr.Steps {
		if s.Token != nil {
			at[s.Position], last = *s.Token, max(last, s.Position)
		}
	}
	for p := range last + 1 {
		if token, ok := at[p]; ok {
			tokens = append(tokens, token)
		}
	}
	return tokens
}

// opOf returns the first operator of a kind.
func opOf(t *testing.T, g *trace.Graph, kind string) *trace.OpID {
	t.Helper()
	for i := range g.Ops {
		if g.Ops[i].Kind == kind {
			return &g.Ops[i].ID
		}
	}
	t.Fatalf("the graph has no operator of kind %s", kind)
	return nil
}
