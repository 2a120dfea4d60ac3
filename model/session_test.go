package model

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/fake"
	"gpuscope/model/gguf/gguftest"
	"gpuscope/model/session"
	"gpuscope/trace"
)

func TestPromptStepBackAndOnGivesTheSameText(t *testing.T) {
	r := newRig(t, Options{})
	r.wantStand(`step -1, position 0, ""`)
	r.do(promptOf(5))
	r.wantStand(`step 0, position 5, "f"`)
	r.do(session.Command{Kind: session.Next})
	r.do(session.Command{Kind: session.Run, N: 3})
	r.wantStand(`step 4, position 9, "fghij"`)
	r.do(session.Command{Kind: session.Previous})
	r.do(session.Command{Kind: session.Previous})
	r.wantStand(`step 2, position 7, "fgh"`)
	r.do(session.Command{Kind: session.Run, N: 2})
	r.wantStand(`step 6, position 9, "fghij"`)
	if got := r.mirror.Trace.Steps; got[5].Position != 7 || !slices.Equal(got[5].Tokens, []int{'h'}) ||
		got[5].Phase != "decode" || *got[5].Token != 'i' {
		t.Errorf("the step after two steps back: position %d, tokens %v, %s", got[5].Position, got[5].Tokens,
			got[5].Phase)
	}
	for range 5 {
		r.do(session.Command{Kind: session.Previous})
	}
	r.wantStand(`step -1, position 0, ""`)
	r.do(session.Command{Kind: session.Next}) // the prompt again
	r.wantStand(`step 7, position 5, "f"`)
	r.do(session.Command{Kind: session.Reset})
	r.wantStand(`step -1, position 0, ""`)
	if err := r.try(context.Background(), session.Command{Kind: session.Next}); !errors.Is(err,
		session.ErrUsage) {
		t.Errorf("a step without a prompt: %v", err)
	}
}

func TestPromptIsTakenInByChunks(t *testing.T) {
	for _, test := range []struct {
		name      string
		tokens    int
		max       int
		chunks    []int
		want      []int
		positions []int
	}{
		{"as large as can be", 40, 16, nil, []int{16, 16, 8}, []int{0, 16, 32}},
		{"exactly", 32, 16, nil, []int{16, 16}, []int{0, 16}},
		{"as asked for", 48, 48, []int{40, 1, 7}, []int{40, 1, 7}, []int{0, 40, 41}},
		{"the last one repeats", 9, 16, []int{3, 2}, []int{3, 2, 2, 2}, []int{0, 3, 5, 7}},
		{"more than the prompt", 5, 16, []int{3, 9, 1}, []int{3, 2}, []int{0, 3}},
		{"one token", 1, 16, nil, []int{1}, []int{0}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, Options{MaxChunk: test.max})
			c := promptOf(test.tokens)
			c.Chunks = test.chunks
			r.do(c)
			var sizes, positions []int
			for i, s := range r.mirror.Trace.Steps {
				sizes, positions = append(sizes, len(s.Tokens)), append(positions, s.Position)
				if s.Phase != "prefill" || (s.Token != nil) != (i == len(test.want)-1) {
					t.Errorf("step %d: %s, gives a token: %v", i, s.Phase, s.Token != nil)
				}
			}
			if d := cmp.Diff(test.want, sizes); d != "" {
				t.Error("sizes", d)
			}
			if d := cmp.Diff(test.positions, positions); d != "" {
				t.Error("positions", d)
			}
			if p := r.mirror.State.Position; p != test.tokens {
				t.Errorf("position %d, want %d", p, test.tokens)
			}
		})
	}
}

func TestOrderOfEvents(t *testing.T) {
	r := newRig(t, Options{})
	kinds := func() (list []string) {
		for _, e := range r.events {
			kind := "other"
			switch {
			case e.Progress != nil:
				kind = e.Progress.Phase
			case e.Log != nil:
				continue
			case e.Opened != nil:
				kind = "opened"
			case e.State != nil && e.State.Running:
				kind = "running"
			case e.State != nil:
				kind = "state"
			case e.Records != nil:
				kind = recordKinds(e.Records)
			}
			if len(list) == 0 || list[len(list)-1] != kind {
				list = append(list, kind)
			}
		}
		return list
	}
	if d := cmp.Diff([]string{
		"read model", "open device", "build graph", "upload weights", "compile kernels",
		"opened", "state",
	}, kinds()); d != "" {
		t.Error("opening", d)
	}
	r.do(promptOf(3))
	if d := cmp.Diff([]string{"prompt", "running", "plans and step", "state"}, kinds()); d != "" {
		t.Error("prompt", d)
	}
	r.do(session.Command{Kind: session.Next})
	if d := cmp.Diff([]string{"running", "plans and step", "state"}, kinds()); d != "" {
		t.Error("next", d)
	}
	r.do(session.Command{Kind: session.Previous})
	r.do(session.Command{Kind: session.Next}) // all its plans are known
	if d := cmp.Diff([]string{"running", "step", "state"}, kinds()); d != "" {
		t.Error("next again", d)
	}
}

// recordKinds names what an event brings to the trace.
func recordKinds(list []trace.Record) string {
	kind := ""
	for _, r := range list {
		switch {
		case r.Plan != nil:
			kind = "plans and "
		case r.Step != nil:
			return kind + "step"
		case r.Clock != nil:
			return kind + "clock"
		case r.Event != nil:
			return kind + r.Event.Kind
		default:
			return "other"
		}
	}
	return kind + "no step"
}

func TestHeaderSaysWhatRuns(t *testing.T) {
	r := newRig(t, Options{})
	h := r.mirror.Trace
	if h.Model.Name != "tiny" || h.Model.Layers != tinyLayers || h.Model.Quantization != "Q4_0" ||
		h.Model.Source != "tiny.gguf" {
		t.Errorf("model %+v", h.Model)
	}
	if h.Device.Backend != "fake" || len(h.Graph.Dispatches) == 0 || h.Clock.NSPerTick != 1 {
		t.Errorf("device %+v, %d dispatches, clock %+v", h.Device, len(h.Graph.Dispatches), h.Clock)
	}
	for _, o := range h.Graph.Ops {
		if o.Name == "layers.1.mlp.gate" && o.Kind == "linear_q4gsw" && *o.Layer == 1 && o.Block == "mlp" {
			return
		}
	}
	t.Error("the graph has no linear_q4gsw layers.1.mlp.gate in layer 1, block mlp")
}

func TestCancelledRunKeepsItsTokens(t *testing.T) {
	r := newRig(t, Options{})
	r.do(promptOf(5))
	ctx, cancel := context.WithCancel(context.Background())
	r.token = func(position int, tokens []int) int {
		if position == 8 {
			cancel()
		}
		return letters(position, tokens)
	}
	if err := r.try(ctx, session.Command{Kind: session.Run, N: 40}); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want context.Canceled", err)
	}
	r.wantStand(`step 4, position 9, "fghij"`) // the step that was under way was read back
	r.do(session.Command{Kind: session.Run, N: 2})
	r.wantStand(`step 6, position 11, "fghijkl"`)
	if err := r.try(ctx, session.Command{Kind: session.Next}); !errors.Is(err, context.Canceled) {
		t.Errorf("a command that was cancelled before: %v", err)
	}
	r.wantStand(`step 6, position 11, "fghijkl"`)
}

func TestCancelledPromptGoesOnWithNext(t *testing.T) {
	r := newRig(t, Options{MaxChunk: 4})
	ctx, cancel := context.WithCancel(context.Background())
	submits := 0
	r.dev.Fault = func(c fake.Call) error {
		if c.Kind == fake.Submit {
			if submits++; submits == 2 {
				cancel()
			}
		}
		return nil
	}
	if err := r.try(ctx, promptOf(10)); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want context.Canceled", err)
	}
	r.wantStand(`step 1, position 8, ""`)
	r.do(session.Command{Kind: session.Run, N: 1})
	r.wantStand(`step 3, position 11, "kl"`)
}

func TestFailedStepLeavesThePositionAndTheNextOneWorks(t *testing.T) {
	fault := errors.New("injected")
	for _, kind := range []fake.Kind{
		fake.Write, fake.Begin, fake.BeginPass, fake.EndPass, fake.CopyOut,
		fake.Submit, fake.Wait, fake.Read,
	} {
		t.Run(kind.String(), func(t *testing.T) {
			r := newRig(t, Options{})
			r.do(promptOf(5))
			r.do(session.Command{Kind: session.Next})
			r.dev.FailNth(kind, 1, fault)
			if err := r.try(context.Background(), session.Command{Kind: session.Run, N: 3}); !errors.Is(err,
				fault) || errors.Is(err, session.ErrUsage) {
				t.Fatalf("error %v, want the device's", err)
			}
			r.wantStand(`step 1, position 6, "fg"`)
			r.do(session.Command{Kind: session.Run, N: 3})
			r.wantStand(`step 4, position 9, "fghij"`)
		})
	}
}

func TestLostDeviceEndsTheSession(t *testing.T) {
	r := newRig(t, Options{})
	r.do(promptOf(5))
	r.dev.Lose("pulled out")
	if err := r.try(context.Background(), session.Command{Kind: session.Next}); !errors.Is(err,
		gpu.ErrDeviceLost) {
		t.Errorf("error %v, want ErrDeviceLost", err)
	}
	<-r.done // the events have ended
	if _, err := r.s.Do(context.Background(), session.Command{Kind: session.Next}); !errors.Is(err,
		session.ErrClosed) || !errors.Is(err, gpu.ErrDeviceLost) {
		t.Errorf("a command after the loss: %v", err)
	}
	if err := r.s.Close(); !errors.Is(err, gpu.ErrDeviceLost) {
		t.Errorf("Close says %v", err)
	}
	r.s.lost = nil // for the rig
}

func TestTextEndsWithTheContext(t *testing.T) {
	r := newRig(t, Options{})
	r.do(promptOf(tinyContext - 2))
	r.do(session.Command{Kind: session.Run})
	if st := r.mirror.State; st.Position != tinyContext || !st.Ended || len(r.mirror.Text.Given) != 3 {
		t.Errorf("position %d, ended %v, %d tokens", st.Position, st.Ended, len(r.mirror.Text.Given))
	}
	err := r.try(context.Background(), session.Command{Kind: session.Next})
	if !errors.Is(err, session.ErrUsage) || !strings.Contains(err.Error(), "the context is full: 64 of 64") {
		t.Errorf("a step past the context: %v", err)
	}
	r.do(session.Command{Kind: session.Previous})
	if st := r.mirror.State; st.Position != tinyContext-1 || st.Ended {
		t.Errorf("a step back: position %d, ended %v", st.Position, st.Ended)
	}
	r.do(session.Command{Kind: session.Next})
	r.do(promptOf(tinyContext)) // a prompt may fill it
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

func TestTextStartsWithTheTokenThatTheFileWants(t *testing.T) {
	r := newRig(t, Options{})
	r.do(session.Command{Kind: session.Prompt, Text: "Hi"})
	if got := r.mirror.Trace.Steps[0].Tokens; !slices.Equal(got, []int{tinyEnd, 'H', 'i'}) {
		t.Errorf("a text became %v", got)
	}
	r.do(session.Command{Kind: session.Prompt, Tokens: []int{'H', 'i'}})
	if got := r.mirror.Trace.Steps[1].Tokens; !slices.Equal(got, []int{'H', 'i'}) {
		t.Errorf("ids became %v", got)
	}
	plain := newRigOn(t, Options{}, withoutBOS(), fake.Options{})
	plain.do(session.Command{Kind: session.Prompt, Text: "Hi"})
	if got := plain.mirror.Trace.Steps[0].Tokens; !slices.Equal(got, []int{'H', 'i'}) {
		t.Errorf("a text of a file that wants no token before it became %v", got)
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
	for range 3 { // into the middle of the last character
		r.do(session.Command{Kind: session.Previous})
	}
	r.wantStand(`step 3, position 4, "aé"`)
	r.do(session.Command{Kind: session.Run, N: 3})
	r.wantStand(`step 9, position 7, "aé€b"`)
}

func TestRepeatAddsSamplesToTheStep(t *testing.T) {
	r := newRig(t, Options{Timing: engine.TimingDispatch})
	r.do(promptOf(5))
	r.do(session.Command{Kind: session.Run, N: 3})
	r.do(session.Command{Kind: session.Previous})
	r.do(session.Command{Kind: session.Repeat, N: 4})
	r.wantStand(`step 2, position 7, "fgh"`)
	for i, s := range r.mirror.Trace.Steps {
		want := 0
		if i == 2 {
			want = 4
		}
		for _, d := range s.Dispatches {
			if len(d.Samples) != want || want > 0 && slices.Min(d.Samples) != 1000 {
				t.Fatalf("step %d has samples %v, want %d of 1000 ns", i, d.Samples, want)
			}
		}
	}
	r.do(session.Command{Kind: session.Next})
	r.wantStand(`step 4, position 8, "fghi"`)
}

func TestRepeatThatGivesAnotherTokenIsNoted(t *testing.T) {
	r := newRig(t, Options{})
	r.do(promptOf(5))
	r.token = func(int, []int) int { return 'z' }
	r.do(session.Command{Kind: session.Repeat, N: 1})
	events := r.mirror.Trace.Events
	if e := events[len(events)-1]; e.Step != 0 || e.Kind != "repeat" ||
		e.Text != "repeated once; gave token 122, the step itself token 102" {
		t.Errorf("event %v", e)
	}
}

func TestObserverHasBothMedians(t *testing.T) {
	r := newRig(t, Options{})
	r.do(promptOf(5))
	r.do(session.Command{Kind: session.Next})
	r.do(session.Command{Kind: session.Observe})
	r.wantStand(`step 1, position 6, "fg"`)
	o := r.mirror.Trace.Observer
	if o == nil || o.N != observeRuns {
		t.Fatalf("observer %+v", o)
	}
	for _, ns := range []int64{first(o.UntimedNS.NS()), first(o.TimedNS.NS()), first(o.BeforeNS.NS())} {
		if ns <= 0 {
			t.Errorf("observer %+v", o)
		}
	}
	step := r.mirror.Trace.Steps[1]
	if ns, _ := o.SpanNS.NS(); o.Step == nil || *o.Step != 1 || ns != int64(1000*len(step.Dispatches)) {
		t.Errorf("observer %+v: at step 1 the GPU takes a microsecond for each of %d dispatches", o,
			len(step.Dispatches))
	}
	r.do(session.Command{Kind: session.Next})
	r.wantStand(`step 2, position 7, "fgh"`)
}

func first(ns int64, _ bool) int64 { return ns }

func TestTimingLevelIsTheSteps(t *testing.T) {
	r := newRig(t, Options{})
	r.do(promptOf(5))
	for _, level := range trace.TimingLevels {
		r.do(session.Command{Kind: session.Timing, Level: level})
		r.do(session.Command{Kind: session.Next})
		steps := r.mirror.Trace.Steps
		if got := steps[len(steps)-1].Timing; got != level || r.mirror.State.Timing != level {
			t.Errorf("timing %s, want %s", got, level)
		}
	}
	without := newRigOn(t, Options{Timing: engine.TimingDispatch}, tiny(), fake.Options{NoTimestamps: true})
	without.do(promptOf(5))
	if got := without.mirror.State.Timing; got != "off" {
		t.Errorf("a device without timestamps is timed at %s", got)
	}
	for _, c := range []session.Command{
		{Kind: session.Timing, Level: "step"},
		{Kind: session.Repeat},
		{Kind: session.Observe},
	} {
		if err := without.try(context.Background(), c); !errors.Is(err, session.ErrUsage) ||
			!strings.Contains(err.Error(), "no timestamps") {
			t.Errorf("%s without timestamps: %v", c.Kind, err)
		}
	}
}

func TestStepTimedByBlocksHasOneForEachPartOfALayer(t *testing.T) {
	r := newRig(t, Options{Timing: engine.TimingBlock})
	r.dev.PassNS = 5000
	r.do(promptOf(5))
	r.do(session.Command{Kind: session.Next})
	s := &r.mirror.Trace.Steps[1]
	var names []string
	sum := int64(0)
	for _, b := range s.Blocks {
		names = append(names, b.Name)
		want := int64(5000 + 1000*b.Dispatches)
		if ns, _ := b.GPUNS.NS(); ns != want {
			t.Errorf("block %s of %d dispatches in one pass takes %d ns, want %d", b.Name, b.Dispatches, ns,
				want)
		}
		sum += want
	}
	got := strings.Join(names, " ")
	if want := "layers.0.attn layers.0.mlp layers.1.attn layers.1.mlp"; !strings.Contains(got, want) ||
		s.CPU.Passes != len(names) {
		t.Errorf("%d passes, blocks %s; want %s among them", s.CPU.Passes, got, want)
	}
	if ns, _ := s.GPU.BusyNS.NS(); ns != sum {
		t.Errorf("the GPU was busy for %d ns, its blocks take %d", ns, sum)
	}
	if err := r.mirror.Trace.Check(); err != nil {
		t.Error(err)
	}
}

func TestWrongUseIsRefusedBeforeAnythingRuns(t *testing.T) {
	r := newRig(t, Options{MaxChunk: 16})
	r.do(promptOf(5))
	r.do(session.Command{Kind: session.Next})
	runs := r.dev.Count(fake.Submit)
	for _, test := range []struct {
		c    session.Command
		want string
	}{
		{session.Command{Kind: session.Prompt}, "the prompt is empty"},
		{promptOf(65), "the prompt has 65 tokens, the context holds 64"},
		{
			session.Command{Kind: session.Prompt, Text: strings.Repeat("x", 64)},
			"the prompt has 65 tokens, the context holds 64",
		},
		{
			session.Command{Kind: session.Prompt, Tokens: ids(60), N: 6},
			"the prompt has 60 tokens and 6 are to follow, the context holds 64",
		},
		{
			session.Command{Kind: session.Prompt, Tokens: ids(60), N: math.MaxInt},
			"the prompt has 60 tokens and 9223372036854775807 are to follow, the context holds 64",
		},
		{
			session.Command{Kind: session.Prompt, Tokens: []int{1, 257}},
			"token 1 of the prompt is 257, the vocabulary has ids 0 to 256",
		},
		{session.Command{Kind: session.Prompt, Tokens: []int{-1}}, "token 0 of the prompt is -1"},
		{session.Command{Kind: session.Prompt, Text: "x", Tokens: []int{1}}, "not both"},
		{
			session.Command{Kind: session.Prompt, Tokens: ids(5), Chunks: []int{17}},
			"chunk 0 is 17 tokens, want 1 to 16",
		},
		{session.Command{Kind: session.Prompt, Tokens: ids(5), Chunks: []int{3, 0}}, "chunk 1 is 0 tokens"},
		{session.Command{Kind: session.Run, N: -1}, "run: a count of -1"},
		{session.Command{Kind: session.Timing, Level: "often"}, `timing level "often"`},
		{session.Command{Kind: "jump"}, `command "jump": want one of prompt, next, run`},
		{session.Command{Kind: session.Next, N: 3}, "next: it takes no n"},
		{session.Command{Kind: session.Run, Text: "x"}, "run: it takes no text"},
		{session.Command{Kind: session.Timing, Level: "off", Chunks: []int{1}}, "timing: it takes no chunks"},
	} {
		err := r.try(context.Background(), test.c)
		if !errors.Is(err, session.ErrUsage) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v, want %q", test.c, err, test.want)
		}
		if len(r.events) != 0 {
			t.Errorf("%+v: caused %d events", test.c, len(r.events))
		}
	}
	if n := r.dev.Count(fake.Submit); n != runs {
		t.Errorf("%d submits", n-runs)
	}
	r.wantStand(`step 1, position 6, "fg"`)
	fresh := newRig(t, Options{})
	for _, kind := range []session.CommandKind{
		session.Next, session.Run, session.Previous, session.Repeat,
		session.Observe,
	} {
		if err := fresh.try(context.Background(), session.Command{Kind: kind}); !errors.Is(err,
			session.ErrUsage) {
			t.Errorf("%s before a prompt: %v", kind, err)
		}
	}
}

// A token that comes out at the last position has no place to go in, and is given all the same.
func TestTheLastPositionOfTheContextGivesAToken(t *testing.T) {
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
		t.Errorf("a step behind the last position: %v", err)
	}
	c = promptOf(tinyContext - 4)
	c.N = 5
	r.do(c)
	r.do(session.Command{Kind: session.Run, N: c.N - 1})
	if st := r.mirror.State; st.Given != c.N || st.Position != tinyContext {
		t.Errorf("%d tokens up to position %d, want %d up to %d", st.Given, st.Position, c.N, tinyContext)
	}
}

// Bytes that begin a character and do not end it are in no token's text, and are told all the same.
func TestUnfinishedCharacterIsTold(t *testing.T) {
	r := newRig(t, Options{})
	bytes := []byte("é€")
	r.token = func(position int, tokens []int) int { return int(bytes[(position+len(tokens))%len(bytes)]) }
	for n, want := range []string{"", "\xe2", "\xe2\x82", ""} { // the text begins at byte 1 of é
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
		t.Errorf("a step back %q is unfinished", got)
	}
}

// The next step cannot begin before the token of this one is known, so the time to find it is the step's.
func TestWallTimeOfAStepIncludesFindingItsToken(t *testing.T) {
	const takes = 20 * time.Millisecond
	r := newRig(t, Options{})
	r.token = func(position int, tokens []int) int {
		time.Sleep(takes)
		return letters(position, tokens)
	}
	c := promptOf(5)
	c.Chunks = []int{4}
	r.do(c)
	for i, s := range r.mirror.Trace.Steps {
		var sum int64
		c := &s.CPU
		for _, part := range []trace.Time{
			c.ResizeNS, c.UploadNS, c.EncodeNS, c.SubmitNS, c.WaitNS, c.SampleNS,
		} {
			ns, _ := part.NS()
			sum += ns
		}
		total, _ := c.TotalNS.NS()
		sample, sampled := c.SampleNS.NS()
		if gives := i == 1; gives != sampled || gives && sample < takes.Nanoseconds() {
			t.Errorf("step %d took %d ns to find its token (%v)", i, sample, sampled)
		}
		if total < sum {
			t.Errorf("step %d took %d ns, its parts %d", i, total, sum)
		}
	}
}

func TestModelWithoutVocabularyRunsOnIDs(t *testing.T) {
	b := tiny()
	b.Set("tokenizer.ggml.model", "none")
	r := newRigOn(t, Options{}, b, fake.Options{})
	if err := r.try(context.Background(), session.Command{Kind: session.Prompt, Text: "Hi"}); !errors.Is(err,
		session.ErrUsage) || !strings.Contains(err.Error(), "with gpuscope run --ids") {
		t.Errorf("a text: %v", err)
	}
	r.do(promptOf(5))
	r.do(session.Command{Kind: session.Run, N: 2})
	r.wantStand(`step 2, position 7, ""`)
	if got := r.mirror.Text.Given; len(got) != 3 || got[0].ID != 'f' {
		t.Errorf("tokens %v", got)
	}
}

func TestTokenOutsideOfTheVocabularyFailsTheStep(t *testing.T) {
	r := newRig(t, Options{})
	r.token = func(int, []int) int { return tinyVocab }
	err := r.try(context.Background(), promptOf(5))
	if err == nil || errors.Is(err, session.ErrUsage) ||
		!strings.Contains(err.Error(), "the device gave token 257 of a vocabulary of 257") {
		t.Errorf("error %v", err)
	}
	r.wantStand(`step -1, position 0, ""`)
}

func TestCloseInTheMiddleOfARun(t *testing.T) {
	r := newRig(t, Options{IgnoreEOS: true})
	r.do(promptOf(1))
	started := make(chan struct{})
	r.token = func(position int, tokens []int) int {
		if position == 3 {
			close(started)
			<-r.s.closing.Done()
		}
		return letters(position, tokens)
	}
	done := make(chan error)
	go func() {
		_, err := r.s.Do(context.Background(), session.Command{Kind: session.Run})
		done <- err
	}()
	<-started
	if err := r.s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the run: %v", err)
	}
	if _, err := r.s.Do(context.Background(), session.Command{Kind: session.Next}); !errors.Is(err,
		session.ErrClosed) {
		t.Errorf("a command after Close: %v", err)
	}
}

// Nobody reads the events while the session closes, and somebody does afterwards, as a recording on its way
// to a file: what came before the end is there to the last step that was told, and hangs together.
func TestEventsOfASessionThatWasClosedHaveNoHole(t *testing.T) {
	driver := &fake.Driver{All: []fake.Options{{NoLog: true}}}
	opened, err := Open(context.Background(),
		Options{Path: write(t, tiny().Bytes()), Driver: driver, IgnoreEOS: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := opened.(*live)
	ended := make(chan error, 1)
	go func() {
		for {
			if _, err := s.Do(context.Background(), promptOf(1)); err != nil {
				ended <- err
				return
			}
			_, _ = s.Do(context.Background(), session.Command{Kind: session.Run, N: 50})
		}
	}()
	for len(s.Events()) < cap(s.Events()) {
		runtime.Gosched()
	}
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	var m session.Mirror
	for e := range s.Events() {
		if err := m.Apply(e); err != nil {
			t.Fatalf("after %d steps: %v", len(m.Trace.Steps), err)
		}
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	<-ended
	if len(m.Trace.Steps) == 0 {
		t.Error("no step was told")
	}
}

// A run that ended before Close is told to its end, whenever its events are read.
func TestEventsOfCommandsThatReturnedOutliveTheSession(t *testing.T) {
	driver := &fake.Driver{All: []fake.Options{{NoLog: true}}}
	s, err := Open(context.Background(), Options{Path: write(t, tiny().Bytes()), Driver: driver}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []session.Command{promptOf(1), {Kind: session.Run, N: 30}} {
		if _, err := s.Do(context.Background(), c); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var m session.Mirror
	for e := range s.Events() {
		if err := m.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(m.Trace.Steps); n != 31 || m.State.Running {
		t.Errorf("%d steps of 31, running %v at the end", n, m.State.Running)
	}
}

func TestEveryCommandHasARow(t *testing.T) {
	kinds := declaredKinds(t)
	for _, kind := range kinds {
		row, err := commandOf(session.Command{Kind: kind})
		if err != nil || row.doc == "" {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if len(kinds) != len(commands) || !slices.Contains(kinds, session.Tokenize) {
		t.Errorf("%d rows, the commands are %v", len(commands), kinds)
	}
	fieldsOf := reflect.TypeFor[session.Command]().NumField() - 1
	if len(fields) != fieldsOf {
		t.Errorf("%d fields of a command are checked, it has %d beside its kind", len(fields), fieldsOf)
	}
}

// declaredKinds are the constants of type session.CommandKind, as they stand in the source.
func declaredKinds(t *testing.T) (kinds []session.CommandKind) {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("session", "command.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			if of, ok := spec.Type.(*ast.Ident); ok && of.Name == "CommandKind" {
				kind, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				kinds = append(kinds, session.CommandKind(kind))
			}
		}
		return true
	})
	return kinds
}

func TestReplySaysWhatTheCommandDid(t *testing.T) {
	r := newRig(t, Options{MaxChunk: 4})
	do := func(ctx context.Context, c session.Command, want session.Reply) {
		t.Helper()
		got, _ := r.s.Do(ctx, c)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", c.Kind, d)
		}
	}
	all := context.Background()
	do(all, promptOf(10), session.Reply{Step: 2, Position: 10, Steps: 3})
	do(all, session.Command{Kind: session.Run, N: 5}, session.Reply{Step: 7, Position: 15, Steps: 5})
	do(all, session.Command{Kind: session.Previous}, session.Reply{Step: 6, Position: 14})
	do(all, session.Command{Kind: session.Repeat, N: 3}, session.Reply{Step: 6, Position: 14, Repeats: 3})
	two := []session.Part{{Name: "two", Dispatches: []trace.DispatchID{0, 1}}}
	do(all, session.Command{Kind: session.Cost, N: 7, Parts: two},
		session.Reply{Step: 6, Position: 14, Repeats: 7})
	do(all, session.Command{Kind: "jump"}, session.Reply{Step: 6, Position: 14})
	ctx, cancel := context.WithCancel(all)
	r.token = func(position int, tokens []int) int {
		if position == 16 {
			cancel()
		}
		return letters(position, tokens)
	}
	do(ctx, session.Command{Kind: session.Run}, session.Reply{Step: 10, Position: 17, Steps: 3})
	do(all, session.Command{Kind: session.Tokenize, Text: "Hi"}, session.Reply{
		Step: 10, Position: 17,
		Tokens: []session.Token{{ID: tinyEnd, Text: "<|end|>"}, {ID: 'H', Text: "H"}, {ID: 'i', Text: "i"}},
	})
	do(all, session.Command{Kind: session.Reset}, session.Reply{Step: -1})
}

func TestThousandsOfStepsInConstantMemory(t *testing.T) {
	r := newRig(t, Options{Timing: engine.TimingDispatch})
	header := r.mirror.Trace
	r.mirror = session.Mirror{Budget: 256 << 10}
	r.take(session.Event{Opened: header})
	heap := func(rounds int) uint64 {
		for range rounds {
			r.do(session.Command{Kind: session.Prompt, Tokens: ids(1)})
			r.do(session.Command{Kind: session.Run, N: 60})
			r.events = nil
		}
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap(3)
	after := heap(20)
	if grown := int64(after) - int64(before); grown > 200<<10 {
		t.Errorf("1,200 steps left %d bytes on the heap", grown)
	}
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

// Of logits that are no numbers no token follows: the step is told with what there is, the text ends, and it
// is an error that says where.
func TestLogitsThatAreNoNumbersEndTheTextInWords(t *testing.T) {
	for _, candidates := range []int{0, 3} {
		r := newRig(t, Options{TopLogits: candidates, IgnoreEOS: true})
		r.do(promptOf(5))
		r.do(session.Command{Kind: session.Next})
		for _, damage := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			r.logit = float32(damage)
			err := r.try(context.Background(), session.Command{Kind: session.Run, N: 3})
			want := fmt.Sprintf("at position 6 gives no token: the highest of its logits is %v", damage)
			if err == nil || errors.Is(err, session.ErrUsage) || !strings.Contains(err.Error(), want) {
				t.Fatalf("error %v, want %q", err, want)
			}
			tr, st := r.mirror.Trace, r.mirror.State
			last := tr.Steps[len(tr.Steps)-1]
			if st.Position != 7 || !st.Ended || st.Given != 2 || last.Token != nil ||
				len(last.Top) != candidates {
				t.Errorf("position %d, ended %v, %d tokens, step %+v", st.Position, st.Ended, st.Given, last)
			}
			if n := len(tr.Events); n == 0 || tr.Events[n-1].Step != last.Index ||
				!strings.Contains(tr.Events[n-1].Text, want) {
				t.Errorf("the trace's events are %v", tr.Events)
			}
			err = r.try(context.Background(), session.Command{Kind: session.Next})
			if !errors.Is(err, session.ErrUsage) || !strings.Contains(err.Error(), want) {
				t.Errorf("the next step: %v", err)
			}
			r.logit = 0
			r.do(session.Command{Kind: session.Previous})
			r.do(session.Command{Kind: session.Next})
			r.do(session.Command{Kind: session.Previous})
			r.wantStand(`step 1, position 6, "fg"`)
		}
	}
}
