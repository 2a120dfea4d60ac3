package model

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/fake"
	"gpuscope/session"
	"gpuscope/trace"
)

func TestSteppingBackAndForthKeepsTheText(t *testing.T) {
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
		got[5].Phase != trace.Decode || *got[5].Token != 'i' {
		t.Errorf("the step after two steps back: position %d, tokens %v, %s", got[5].Position, got[5].Tokens,
			got[5].Phase)
	}
	for range 5 {
		r.do(session.Command{Kind: session.Previous})
	}
	r.wantStand(`step -1, position 0, ""`)
	r.do(session.Command{Kind: session.Next}) // runs the prompt again
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
				if s.Phase != trace.Prefill || (s.Token != nil) != (i == len(test.want)-1) {
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
	r.do(session.Command{Kind: session.Next}) // all plans of this step are already in the trace
	if d := cmp.Diff([]string{"running", "step", "state"}, kinds()); d != "" {
		t.Error("next again", d)
	}
}

// recordKinds names the kinds of records that an event adds to the trace.
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
	r.wantStand(`step 4, position 9, "fghij"`) // the step in flight was still read back
	r.do(session.Command{Kind: session.Run, N: 2})
	r.wantStand(`step 6, position 11, "fghijkl"`)
	if err := r.try(ctx, session.Command{Kind: session.Next}); !errors.Is(err, context.Canceled) {
		t.Errorf("a command with a context that was already cancelled: %v", err)
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

func TestFailedStepKeepsThePosition(t *testing.T) {
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
		t.Errorf("Close returned %v", err)
	}
	r.mayBeLost = true
}

// A lost device is reported once, whatever command is running and whatever cleanup would follow.
func TestLostDeviceIsReportedOnce(t *testing.T) {
	for _, c := range []session.Command{
		{Kind: session.Run, N: 9},
		{Kind: session.Cost, N: 3, Parts: []trace.Part{{Name: "q", Dispatches: []trace.DispatchID{2}}}},
		{Kind: session.Repeat, N: 9},
		{Kind: session.Verify},
		{Kind: session.Lab},
	} {
		for after := range 12 {
			r := newRig(t, Options{Fuse: normsRun})
			r.do(promptOf(5))
			r.do(session.Command{Kind: session.Next})
			if c.Kind == session.Lab {
				c.Edit = r.edited("rms_norm")
			}
			waits := 0
			r.dev.Fault = func(call fake.Call) error {
				if call.Kind == fake.Wait {
					if waits++; waits > after {
						r.dev.Lose("pulled out")
					}
				}
				return nil
			}
			err := r.try(context.Background(), c)
			if errors.Is(err, gpu.ErrDeviceLost) && strings.Count(err.Error(), "device lost") != 1 {
				t.Errorf("%s, lost after %d waits: %v", c.Kind, after, err)
			}
			if err != nil {
				<-r.done
			}
			r.mayBeLost = true
		}
	}
}

func TestCloseInTheMiddleOfARun(t *testing.T) {
	r := newRig(t, Options{IgnoreEOS: true})
	r.do(promptOf(1))
	started := make(chan struct{})
	r.token = func(position int, tokens []int) int {
		if position == 3 {
			close(started)
			<-r.s.Closing()
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

// The events are read only after Close has started, as when a trace is still being written to a file. All
// events up to the last reported step must arrive and be consistent.
func TestClosedSessionLosesNoEvents(t *testing.T) {
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
		t.Error("no step was reported")
	}
}

// All events of a run that ended before Close arrive, whenever they are read.
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
