//go:build !race

package model

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gpuscope/engine"
	"gpuscope/internal/wordingtest"
	"gpuscope/model/arch"
	"gpuscope/model/run"
	"gpuscope/model/stepping"
	"gpuscope/model/verify"
	"gpuscope/ops/reference"
	"gpuscope/session"
	"gpuscope/trace"
)

// gapsOf returns the errors of a step by the names of their dispatches.
func gapsOf(s *live, tr *trace.Trace, step int) map[string]*trace.NumericError {
	gaps := map[string]*trace.NumericError{}
	for _, d := range tr.Steps[step].Dispatches {
		if d.Error != nil {
			gaps[s.Watch.Name(tr.Plans[d.Plan].Dispatch)] = d.Error
		}
	}
	return gaps
}

// The reference run follows a text that the device processed in different chunks, that was edited, and that
// was stepped back.
func TestTheReferenceRunFollowsTheText(t *testing.T) {
	golden := wordingtest.New(t)
	s, end := deviceSession(t, Options{Path: write(t, tiny().Bytes()), IgnoreEOS: true, HalfKV: true})
	do := func(c session.Command) {
		t.Helper()
		if _, err := s.Do(context.Background(), c); err != nil {
			t.Fatal(err)
		}
	}
	step := func(i int) *int { return &i }
	do(session.Command{Kind: session.Prompt, Tokens: ids(9), Chunks: []int{5, 1}})
	do(session.Command{Kind: session.Run, N: 3})
	do(session.Command{Kind: session.Verify})                // the last step, at position 11
	do(session.Command{Kind: session.Verify, Step: step(1)}) // a step of the prompt
	do(session.Command{Kind: session.Edit, N: 4, Tokens: []int{'x', 'y'}})
	do(session.Command{Kind: session.Verify})
	one := []trace.Part{{Dispatches: []trace.DispatchID{3}}}
	do(session.Command{Kind: session.Verify, Parts: one})
	tr := end()
	golden.Text("dispatch 3", tr.Events[len(tr.Events)-1].Text)
	for _, i := range []int{1, 7, 8} {
		gaps := gapsOf(s, tr, i)
		if len(gaps) < 20 {
			t.Fatalf("step %d: %d dispatches were compared", i, len(gaps))
		}
		for name, g := range gaps {
			far := float64(g.MaxAbs)
			if g.Run != nil {
				far = float64(g.Run.MaxAbs)
			}
			if !(g.Share <= 1) || far > 2e-2 || g.NotFinite > 0 { // the cache is f16
				t.Errorf("step %d: %s has error %+v, along the reference run %+v", i, name, *g, g.Run)
			}
		}
	}
	if got := gapsOf(s, tr, 2); len(got) > 0 {
		t.Errorf("step 2 has %d errors, although it was not verified", len(got))
	}
}

// counted fails the test unless the numbers in a text are the wanted ones. It returns the text with N in
// place of each number.
func counted(t *testing.T, text string, want ...int) string {
	t.Helper()
	number := regexp.MustCompile(`\d+`)
	var wanted []string
	for _, n := range want {
		wanted = append(wanted, strconv.Itoa(n))
	}
	if got := number.FindAllString(text, -1); !slices.Equal(got, wanted) {
		t.Errorf("%q has the numbers %q, want %q", text, got, wanted)
	}
	return number.ReplaceAllString(text, "N")
}

// A dispatch that only writes scratch memory for the next dispatch of its operator has no reference. The
// report counts it as not checked.
func TestUncheckedDispatchesAreCounted(t *testing.T) {
	golden := wordingtest.New(t)
	routes := map[string]string{"sdpa_with_kv_cache": "materialized"}
	s, end := deviceSession(t, Options{Path: write(t, tiny().Bytes()), Routes: routes})
	do := func(c session.Command) {
		t.Helper()
		if _, err := s.Do(context.Background(), c); err != nil {
			t.Fatal(err)
		}
	}
	do(session.Command{Kind: session.Prompt, Tokens: ids(5)})
	do(session.Command{Kind: session.Verify})
	var scratch []trace.DispatchID
	for _, id := range s.runner.Exec.Live().Active() {
		if d := s.Watch.Graph.Dispatches[id]; slices.Contains([]string{"rope", "qk", "softmax"}, d.Label) {
			scratch = append(scratch, id)
		}
	}
	do(session.Command{Kind: session.Verify, Parts: []trace.Part{{Dispatches: scratch[:1]}}})
	tr := end()
	var said []string
	for _, e := range tr.Events {
		if e.Kind == "verify" {
			said = append(said, e.Text)
		}
	}
	last := &tr.Steps[len(tr.Steps)-1]
	if len(scratch) < 2 || len(said) != 2 {
		t.Fatalf("%d dispatches write scratch memory, %q", len(scratch), said)
	}
	golden.Text("all", counted(t, said[0], len(last.Dispatches)-len(scratch), len(scratch)))
	golden.Text("a part", counted(t, said[1], 2, 1))
}

// countdown is a context that is cancelled after n calls of Err.
type countdown struct {
	context.Context
	n int
}

func (c *countdown) Err() error {
	if c.n--; c.n < 0 {
		return context.Canceled
	}
	return nil
}

// An interrupted verification reports the results so far, and nothing about the dispatches that it did not
// reach.
func TestInterruptedVerificationReportsItsResults(t *testing.T) {
	golden := wordingtest.New(t)
	routes := map[string]string{"sdpa_with_kv_cache": "materialized"} // not all dispatches have a reference
	s, end := deviceSession(t, Options{Path: write(t, tiny().Bytes()), Routes: routes})
	ctx := t.Context()
	if _, err := s.Do(ctx, session.Command{Kind: session.Prompt, Tokens: ids(5)}); err != nil {
		t.Fatal(err)
	}
	last := s.text.Last()
	if err := s.verify(&countdown{ctx, 25}, last, nil, 1e12); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	tr := end()
	held := len(gapsOf(s, tr, 0))
	if all := len(tr.Steps[0].Dispatches); held < 5 || held > all-5 {
		t.Errorf("%d of %d dispatches were compared with their reference", held, all)
	}
	said := tr.Events[len(tr.Events)-1]
	if said.Kind != "verify" {
		t.Errorf("the last event is %s: %s", said.Kind, said.Text)
	}
	golden.Text("stopped early", counted(t, said.Text, held))
}

// NaN in the weights is not a kernel's fault, because its reference computes NaN too. The step can be
// verified although it gave no token.
func TestNaNInWeightsIsLocated(t *testing.T) {
	file := tiny()
	file.Change("blk.1.ffn_norm.weight", func(data []byte) {
		binary.LittleEndian.PutUint32(data[4*7:], math.Float32bits(float32(math.NaN())))
	})
	s, end := deviceSession(t, Options{Path: write(t, file.Bytes())})
	ctx := context.Background()
	if _, err := s.Do(ctx, session.Command{Kind: session.Prompt, Tokens: ids(3)}); err == nil {
		t.Error("the step gave a token")
	}
	if _, err := s.Do(ctx, session.Command{Kind: session.Verify}); err != nil {
		t.Fatal(err)
	}
	tr := end()
	gaps := gapsOf(s, tr, 0)
	for _, d := range tr.Steps[0].Dispatches { // in order of submission
		name := s.Watch.Name(tr.Plans[d.Plan].Dispatch)
		if d.Error == nil || d.Error.NotFinite == 0 {
			continue
		}
		if name != "layers.1.attn.o+add" || d.Error.NotFinite != 1 || !(d.Error.Share <= 1) {
			t.Errorf("the first dispatch with NaN is %s: %+v", name, *d.Error)
		}
		break
	}
	if g := gaps["lm_head"]; g == nil || g.NotFinite != tinyVocab {
		t.Errorf("lm_head: %+v", g)
	}
}

// If a step is too large, only samples of its elements are compared. Each sample must be within tolerance as
// with a full comparison.
func TestSamplesAreWithinToleranceAsAllElementsAre(t *testing.T) {
	r := onDevice(t, Options{})
	s := &live{runner: r, Session: &stepping.Session{Watch: stepping.NewWatch(r.Net.Graph.Describe())}}
	s.reference = &referenceRun{x: reference.NewInterpreter(r.Net.Graph)}
	turn := &run.Turn{Tokens: promptIDs(40, 3)}
	if _, err := r.Step(context.Background(), 0, turn.Tokens, false, nil, engine.TimingOff); err != nil {
		t.Fatal(err)
	}
	v := newVerification(s, turn, nil)
	v.part, v.bounded = 0.02, true
	if err := v.run(context.Background(), func(string, int, int) error { return nil }); err != nil {
		t.Fatal(err)
	}
	sampled := 0
	for _, g := range v.gaps {
		if !(g.Gap.Share <= 1) {
			t.Errorf("%s: %+v", s.Watch.Name(g.Dispatch), g.Gap)
		}
		if g.Gap.Compared < g.Gap.Elements {
			sampled++
		}
	}
	if len(v.gaps) < 60 || sampled < 40 {
		t.Errorf("%d dispatches were compared, %d by samples", len(v.gaps), sampled)
	}
}

// Attention can end in different routes, some of which write splits in place of the result. Each is compared
// with its own reference, whatever the previous step wrote.
func TestEachWayThatAttentionEndsIsWithinTolerance(t *testing.T) {
	for _, a := range []*arch.Architecture{&arch.Llama, &arch.Gemma3} {
		file := tinyWide(a, 128)
		file.Set(a.Name+".context_length", 2100)
		r := onDevice(t, Options{Path: write(t, file.Bytes()), MaxChunk: 2048})
		s := &live{runner: r, Session: &stepping.Session{Watch: stepping.NewWatch(r.Net.Graph.Describe())}}
		s.reference = &referenceRun{x: reference.NewInterpreter(r.Net.Graph)}
		position := 0
		for _, tokens := range []int{60, 1, 90, 1, 5, 1, 1895, 1} {
			turn := &run.Turn{Position: position, Tokens: ids(tokens)}
			if _, err := r.Step(context.Background(), position, turn.Tokens, false, nil,
				engine.TimingOff); err != nil {
				t.Fatal(err)
			}
			for _, part := range []float64{1, 0.1} {
				v := newVerification(s, turn, nil)
				v.part = part
				silent := func(string, int, int) error { return nil }
				if err := v.run(context.Background(), silent); err != nil {
					t.Fatalf("%s, %d tokens at %d: %v", a.Name, tokens, position, err)
				}
				if len(v.gaps) < 8 {
					t.Errorf("%s, %d tokens at %d: %d dispatches were compared", a.Name, tokens, position,
						len(v.gaps))
				}
				for _, g := range v.gaps {
					if !(g.Gap.Share <= 1) {
						t.Errorf("%s, %d tokens at %d: %s: %+v", a.Name, tokens, position,
							s.Watch.Name(g.Dispatch), g.Gap)
					}
				}
			}
			position += tokens
		}
	}
}

func TestSamplesAreReproducibleAndReachBothEnds(t *testing.T) {
	for _, n := range []int{1, 2, 7, 64, 1000} {
		for _, k := range []int{1, 2, 5, 63, 1000} {
			places := verify.Spread("layers.0.attn.q", n, k)
			if k >= n {
				if places != nil {
					t.Errorf("%d of %d: %v", k, n, places)
				}
				continue
			}
			ends := places[0] == 0 && (k == 1 || places[k-1] == n-1)
			if !ends || len(places) != k || !slices.IsSorted(places) ||
				len(slices.Compact(slices.Clone(places))) != k ||
				!slices.Equal(places, verify.Spread("layers.0.attn.q", n, k)) {
				t.Errorf("%d of %d: %v", k, n, places)
			}
		}
	}
}

// A deferred sum is compared with the reference of its own operator, and counts as a result of the dispatch
// that computes it.
func TestWhatAnotherMakesIsHeldToItsReference(t *testing.T) {
	path, _ := architectureFile(t, "gemma3")
	s, end := deviceSession(t, Options{Path: path, IgnoreEOS: true})
	for _, c := range []session.Command{
		{Kind: session.Prompt, Tokens: ids(9)}, {Kind: session.Run, N: 1}, {Kind: session.Verify},
	} {
		if _, err := s.Do(context.Background(), c); err != nil {
			t.Fatal(err)
		}
	}
	turn := s.text.Last()
	const sum, maker = "layers.5.mlp.post_norm+add", "layers.6.attn.q"
	i := slices.IndexFunc(s.Watch.Graph.Ops, func(o trace.Op) bool { return o.Name == sum })
	w := newVerification(s, turn, nil).byOp[i]
	if !w.compare || !w.runs || s.Watch.Name(w.last) != maker {
		t.Errorf("%s: %+v computed by %s, want it compared", sum, w, s.Watch.Name(w.last))
	}
	tr := end()
	if said := tr.Events[len(tr.Events)-1].Text; !strings.Contains(said, "are within their tolerance") {
		t.Error(said)
	}
	gaps := gapsOf(s, tr, len(tr.Steps)-1)
	if gaps[sum] != nil || gaps[maker] == nil {
		t.Errorf("errors of %s and %s: %+v and %+v", sum, maker, gaps[sum], gaps[maker])
	}
}

// A product that computes a deferred sum is compared with a reference that uses the step's actual inputs.
// Only the operator that computes a wrong sum is blamed, although all later sums depend on it.
func TestWrongSumBlamesOnlyItsOperator(t *testing.T) {
	path, _ := architectureFile(t, "gemma3")
	s, end := deviceSession(t, Options{Path: path, IgnoreEOS: true})
	g := s.runner.Net.Graph.Describe()
	const first = "layers.0.mlp.gate" // has a separate kernel, because the embedding is not interleaved
	op := slices.IndexFunc(g.Ops, func(o trace.Op) bool { return o.Name == first })
	slot := slices.IndexFunc(g.Dispatches, func(d trace.Dispatch) bool { return int(d.Op) == op })
	kernels := g.Dispatches[slot].Kernels
	i := slices.IndexFunc(kernels, func(k string) bool { return strings.Contains(k, "_gemv") })
	name := kernels[i]
	wrong := kernelText(t, &g, name, "made[place] = v;", "made[place] = 1.1 * v;")
	verifyWith(t, s, name, wrong)
	tr := end()
	for op, gap := range gapsOf(s, tr, len(tr.Steps)-1) {
		if is, want := !(gap.Share <= 1), op == first; is != want {
			t.Errorf("%s diverges: %v, want %v: %+v", op, is, want, gap)
		}
	}
}

// verifyWith verifies a decode step that ran with an edited kernel, after a step with the original kernel.
func verifyWith(t *testing.T, s *live, kernel, text string) {
	t.Helper()
	for _, c := range []session.Command{
		{Kind: session.Prompt, Tokens: ids(5)},
		{Kind: session.Run, N: 1},
		{Kind: session.Kernel, Edit: &session.KernelEdit{Kernel: kernel, Text: text}},
		{Kind: session.Run, N: 1},
		{Kind: session.Verify},
	} {
		if _, err := s.Do(context.Background(), c); err != nil {
			t.Fatalf("%s: %v", c.Kind, err)
		}
	}
}

// A product is compared using the step's actual inputs, whichever kernel computed them. Only the wrong kernel
// is blamed.
func TestStaticModeBlamesOnlyTheWrongKernel(t *testing.T) {
	file := tinyWide(&arch.Llama, 128)
	file.Set("llama.context_length", 2100)
	o := Options{Path: write(t, file.Bytes()), IgnoreEOS: true}
	o.Live.Static = true
	s, end := deviceSession(t, o)
	g := s.runner.Net.Graph.Describe()
	const kernel = "sdpa_fd_reduce.2" // writes attention in row-major layout, not interleaved
	wrong := kernelText(t, &g, kernel, "= o / total", "= 1.3 * o / total")
	verifyWith(t, s, kernel, wrong)
	tr := end()
	gaps := gapsOf(s, tr, len(tr.Steps)-1)
	for name, gap := range gaps {
		if is, want := !(gap.Share <= 1), strings.HasSuffix(name, ".fd_reduce"); is != want {
			t.Errorf("%s diverges: %v, want %v: %+v", name, is, want, gap)
		}
	}
	if gaps["layers.0.attn.rope+sdpa.fd_reduce"] == nil {
		t.Errorf("the wrong kernel has no error; compared were %v", slices.Sorted(maps.Keys(gaps)))
	}
}

// For one NaN, the step's error, the verification and the inspected value report the same index, whatever the
// value's memory layout. For several NaNs they report the first.
func TestOneNaNHasOneIndex(t *testing.T) {
	for _, nans := range [][]int{{5}, {40, 17, 5}} {
		s, end := deviceSession(t, Options{
			Path:      write(t, tinyWide(&arch.Llama, 128).Bytes()),
			IgnoreEOS: true,
		})
		g := s.runner.Net.Graph.Describe()
		const gateUp = "layers.0.mlp.gate+up+silu_mul"
		op := slices.IndexFunc(g.Ops, func(o trace.Op) bool { return o.Name == gateUp })
		slot := slices.IndexFunc(g.Dispatches, func(d trace.Dispatch) bool { return int(d.Op) == op })
		kernels := g.Dispatches[slot].Kernels
		gemv := slices.IndexFunc(kernels, func(k string) bool { return strings.Contains(k, "_gemv") })
		name := kernels[gemv]
		var is []string
		for _, at := range nans {
			is = append(is, fmt.Sprintf("column == %du", at))
		}
		wrong := kernelText(t, &g, name, "result = (v / (1.0 + exp(-v))) * up;",
			"result = select(up, bitcast<f32>(0x7fc00000u + column), "+strings.Join(is, " || ")+");")
		var failed error
		for _, c := range []session.Command{
			{Kind: session.Prompt, Tokens: ids(5)},
			{Kind: session.Kernel, Edit: &session.KernelEdit{Kernel: name, Text: wrong}},
			{Kind: session.Run, N: 1},
			{Kind: session.Verify},
		} {
			_, err := s.Do(context.Background(), c)
			if c.Kind == session.Run {
				failed = err
			} else if err != nil {
				t.Fatalf("%s: %v", c.Kind, err)
			}
		}
		tr := end()
		var gap *trace.NumericError
		for _, d := range tr.Steps[len(tr.Steps)-1].Dispatches {
			if d.Error != nil && d.Error.NotFinite > 0 {
				gap = d.Error
				break
			}
		}
		if gap == nil || gap.NotFinite != len(nans) || failed == nil {
			t.Fatalf("%v: numeric error %+v, error of the step %v", nans, gap, failed)
		}
		if s.runner.Net.Graph.Value(*gap.Value).Column == nil {
			t.Fatal("the value is not interleaved")
		}
		want := slices.Min(nans)
		if gap.Element != want || !strings.Contains(failed.Error(), fmt.Sprintf("element %d of", want)) {
			t.Errorf("%v: element %d in the numeric error, want %d; %v", nans, gap.Element, want, failed)
		}
	}
}
