package model

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"gpuscope/engine"
	"gpuscope/engine/gpu/fake"
	"gpuscope/internal/wordingtest"
	"gpuscope/model/stepping"
	"gpuscope/session"
	"gpuscope/trace"
)

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
	e := events[len(events)-1]
	if e.Step != 0 || e.Kind != "repeat" {
		t.Errorf("event %v", e)
	}
	wordingtest.New(t).Text("token 122 instead of 102", e.Text)
}

func TestObserverHasBothMedians(t *testing.T) {
	r := newRig(t, Options{})
	r.do(promptOf(5))
	r.do(session.Command{Kind: session.Next})
	r.do(session.Command{Kind: session.Observe})
	r.wantStand(`step 1, position 6, "fg"`)
	o := r.mirror.Trace.Observer
	if o == nil || o.N != stepping.ObserveRuns {
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
	golden := wordingtest.New(t)
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
		t.Errorf("a device without timestamps has timing level %s", got)
	}
	for _, c := range []session.Command{
		{Kind: session.Timing, Level: "step"},
		{Kind: session.Repeat},
		{Kind: session.Observe},
	} {
		err := without.try(context.Background(), c)
		if !errors.Is(err, session.ErrUsage) {
			t.Errorf("%s without timestamps: %v", c.Kind, err)
		}
		golden.Error(string(c.Kind)+" without timestamps", err)
	}
}

func TestBlockTimingCoversEachPartOfALayer(t *testing.T) {
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

// The next step cannot start before the token of this one is known, so the step's time includes sampling.
func TestWallTimeOfAStepIncludesSampling(t *testing.T) {
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
			t.Errorf("step %d took %d ns to sample (%v)", i, sample, sampled)
		}
		if total < sum {
			t.Errorf("step %d took %d ns, its parts %d", i, total, sum)
		}
	}
}
