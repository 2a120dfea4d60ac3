package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gpuscope/trace"
)

// doing is the Do function of a scripted session.
type doing = func(ctx context.Context, c Command, emit func(Event)) (Reply, error)

// scripted is a session whose Do is provided by the test.
type scripted struct {
	do     doing
	events chan Event
	closed chan struct{}
}

func newScripted(do doing) *scripted {
	return &scripted{do: do, events: make(chan Event, 16), closed: make(chan struct{})}
}

func (s *scripted) Do(ctx context.Context, c Command) (Reply, error) {
	return s.do(ctx, c, func(e Event) { s.events <- e })
}

func (s *scripted) Events() <-chan Event { return s.events }

func (s *scripted) Close() error {
	close(s.closed)
	close(s.events)
	return nil
}

// pipe serves the session that open returns, and connects to it. served receives Serve's error.
func pipe(open func(ctx context.Context, emit func(Event)) (Session, error)) (front Session,
	served chan error,
) {
	requestsR, requestsW := io.Pipe()
	messagesR, messagesW := io.Pipe()
	served = make(chan error, 1)
	go func() {
		err := Serve(context.Background(), requestsR, messagesW, open)
		messagesW.Close()
		served <- err
	}()
	return Connect(Peer{Messages: messagesR, Requests: requestsW}), served
}

func opened(s Session) func(context.Context, func(Event)) (Session, error) {
	return func(context.Context, func(Event)) (Session, error) { return s, nil }
}

func TestEventsOfACommandComeBeforeItReturns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		token := 7
		events := []Event{
			{Records: []trace.Record{
				{Plan: &trace.Plan{ID: 1, Kernel: "rms_norm", Workgroups: [3]int{1, 1, 1}}},
				{Step: &trace.Step{
					Index: 3, Phase: trace.Decode, Token: &token,
					Dispatches: []trace.StepDispatch{{Plan: 1, GPUNS: trace.Measured(0)}, {Plan: 1}},
				}},
			}},
			{State: &State{
				Position: 4, Begins: &Text{Prompt: []Token{{7, " \x00é"}}},
				Timing: trace.TimingDispatch,
			}},
		}
		var got Command
		gave := Reply{Step: 3, Position: 4, Steps: 1}
		back := newScripted(func(_ context.Context, c Command, emit func(Event)) (Reply, error) {
			got = c
			for _, e := range events {
				emit(e)
			}
			return gave, nil
		})
		front, served := pipe(opened(back))
		want := Command{Kind: Prompt, Text: "a\nb", Tokens: []int{1, 2}, N: 3, Level: "step"}
		reply, err := front.Do(t.Context(), want)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(gave, reply); diff != "" {
			t.Error("reply:", diff)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error("command:", diff)
		}
		for i, want := range events {
			select {
			case e := <-front.Events():
				if diff := cmp.Diff(want, e, cmpopts.EquateComparable(trace.Time{})); diff != "" {
					t.Errorf("event %d: %s", i, diff)
				}
			default:
				t.Fatalf("event %d was not there when Do returned", i)
			}
		}
		if err := front.Close(); err != nil {
			t.Error("close:", err)
		}
		if err := <-served; err != nil {
			t.Error("serve:", err)
		}
		<-back.closed
		if _, err := front.Do(t.Context(), want); !errors.Is(err, ErrClosed) {
			t.Error("after close:", err)
		}
	})
}

func TestCancelReachesTheCommandAndKeepsItsMeaning(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		started := make(chan struct{})
		do := func(ctx context.Context, c Command, _ func(Event)) (Reply, error) {
			if c.Kind == Next {
				return Reply{}, nil
			}
			close(started)
			<-ctx.Done()
			return Reply{Steps: 2}, fmt.Errorf("run stopped at position 5: %w", ctx.Err())
		}
		front, served := pipe(opened(newScripted(do)))
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-started; cancel() }()
		reply, err := front.Do(ctx, Command{Kind: Run})
		if !errors.Is(err, context.Canceled) || err.Error() != "run stopped at position 5: context canceled" {
			t.Errorf("cancelled command: error %v", err)
		}
		if reply.Steps != 2 {
			t.Errorf("reply of the cancelled command: %+v, want 2 steps", reply)
		}
		if _, err := front.Do(t.Context(), Command{Kind: Next}); err != nil {
			t.Error("the command after it:", err)
		}
		front.Close()
		<-served
	})
}

func TestCloseEndsACommandUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		started := make(chan struct{})
		do := func(ctx context.Context, _ Command, emit func(Event)) (Reply, error) {
			close(started)
			for ctx.Err() == nil {
				emit(Event{Log: &Log{Text: "busy"}}) // more than any buffer holds, and nothing reads it
			}
			return Reply{}, ctx.Err()
		}
		front, served := pipe(opened(newScripted(do)))
		result := make(chan error)
		go func() {
			_, err := front.Do(t.Context(), Command{Kind: Run})
			result <- err
		}()
		<-started
		if err := front.Close(); err != nil {
			t.Error("close:", err)
		}
		if err := <-result; err == nil {
			t.Error("the command returned no error")
		}
		if err := <-served; err != nil {
			t.Error("serve:", err)
		}
	})
}

func TestOpeningReportsProgressAndItsFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		front, served := pipe(func(_ context.Context, emit func(Event)) (Session, error) {
			emit(Event{Progress: &Progress{Phase: "read model", Done: 1, Total: 2}})
			return nil, errors.New("x.gguf: not a GGUF file")
		})
		if e := <-front.Events(); e.Progress == nil || e.Progress.Phase != "read model" {
			t.Errorf("first event: %+v", e)
		}
		if _, ok := <-front.Events(); ok {
			t.Error("an event after the failure")
		}
		err := front.Close()
		if err == nil || err.Error() != "x.gguf: not a GGUF file" || errors.Is(err, ErrLost) {
			t.Error("close:", err)
		}
		if _, err := front.Do(t.Context(), Command{Kind: Next}); !errors.Is(err, ErrClosed) ||
			!strings.Contains(err.Error(), "not a GGUF file") {
			t.Error("a command:", err)
		}
		if err := <-served; err == nil {
			t.Error("serve hides the failure")
		}
	})
}

func TestOpeningIsCancelledWhenTheFrontEndGoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		front, served := pipe(func(ctx context.Context, _ func(Event)) (Session, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		front.Close()
		if err := <-served; !errors.Is(err, context.Canceled) {
			t.Error("serve:", err)
		}
	})
}

func TestCrashedEngineIsReportedWithItsLastOutput(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		messagesR, messagesW := io.Pipe()
		requestsR, requestsW := io.Pipe()
		stderr := "one\n" + strings.Repeat("more\n", lastWords-1) +
			"thread panicked at 'mapped buffer'\nno newline at the end"
		front := Connect(Peer{
			Messages: messagesR, Requests: requestsW, Stderr: strings.NewReader(stderr),
			Wait: func() error { return errors.New("signal: aborted (core dumped)") },
		})
		go func() {
			buf := make([]byte, 100)
			_, _ = requestsR.Read(buf)
			requestsR.Close()
			messagesW.Close()
		}()
		_, err := front.Do(t.Context(), Command{Kind: Run})
		if !errors.Is(err, ErrClosed) || !errors.Is(err, ErrLost) {
			t.Fatal(err)
		}
		want := ErrClosed.Error() + ": " + ErrLost.Error() + ": signal: aborted (core dumped); its last output:\n  " +
			strings.Repeat("more\n  ", lastWords-2) +
			"thread panicked at 'mapped buffer'\n  no newline at the end"
		if err.Error() != want {
			t.Errorf("got error:\n%s\nwant:\n%s", err, want)
		}
		logged := 0
		for e := range front.Events() {
			if e.Log != nil {
				logged++
			}
		}
		if logged != lastWords+2 {
			t.Errorf("%d lines reached the log, want %d", logged, lastWords+2)
		}
		if front.Close() == nil {
			t.Error("close hides that the engine was lost")
		}
	})
}

func TestEnginePanicIsQuotedFromItsBeginning(t *testing.T) {
	t.Parallel()
	var w words
	for _, line := range []string{"warming up", "panic: index out of range [7]", "goroutine 1 [running]:"} {
		w.hear(line)
	}
	for i := range 100 {
		w.hear(fmt.Sprint("stack ", i))
	}
	if len(w.lines) != lastWords || w.lines[0] != "panic: index out of range [7]" {
		t.Errorf("quoted lines %q", w.lines)
	}
}

func TestEventsOfCommandsThatReturnedOutliveTheSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		do := func(_ context.Context, _ Command, emit func(Event)) (Reply, error) {
			for i := range 20 {
				emit(numbered(i))
			}
			return Reply{}, nil
		}
		front, _ := pipe(opened(newScripted(do)))
		for range 3 {
			if _, err := front.Do(t.Context(), Command{Kind: Run}); err != nil {
				t.Fatal(err)
			}
		}
		if err := front.Close(); err != nil {
			t.Fatal(err)
		}
		n := 0
		for e := range front.Events() {
			if e.Progress.Done != n%20 {
				t.Fatalf("event %d has number %d", n, e.Progress.Done)
			}
			n++
		}
		if n != 60 {
			t.Errorf("%d of 60 events arrived after the session closed", n)
		}
	})
}

// A plan must arrive even if another record of its event cannot be sent, because later steps refer to the
// plan.
func TestUnsendableEventDoesNotEndTheSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		do := func(_ context.Context, _ Command, emit func(Event)) (Reply, error) {
			emit(Event{Records: []trace.Record{
				{Plan: &trace.Plan{ID: 4}},
				{Ceilings: &trace.Ceilings{FlopsPerS: math.NaN()}},
			}})
			return Reply{}, nil
		}
		front, _ := pipe(opened(newScripted(do)))
		if _, err := front.Do(t.Context(), Command{Kind: Next}); err != nil {
			t.Fatal(err)
		}
		if e := <-front.Events(); len(e.Records) != 1 || e.Records[0].Plan == nil ||
			e.Records[0].Plan.ID != 4 {
			t.Errorf("got %+v instead of the plan", e)
		}
		if e := <-front.Events(); e.Log == nil || !strings.Contains(e.Log.Text, "NaN") {
			t.Errorf("got %+v instead of the message about the record", e)
		}
		front.Close()
	})
}

func TestAPeerThatSpeaksAnotherLanguageIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, requests := io.Pipe()
		front := Connect(Peer{
			Messages: strings.NewReader("hello\n" + strings.Repeat("x", 1<<17)),
			Requests: requests,
		})
		for range front.Events() {
		}
		if err := front.Close(); !errors.Is(err, ErrNotEngine) {
			t.Error(err)
		}
	})
}

// Messages that arrive quickly are read several at a time, as many as fit in the buffer. A message is read at
// once after a pause, and at once or soon after a question. A long message is read as fast as it arrives.
func TestReadingGathersWhatComesFast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		asked := make(chan struct{}, 1)
		g := newGathering(r, 2*leastRoom, asked)
		gather := 2 * gatherSoon
		read := func(sent, room int, want time.Duration) {
			t.Helper()
			go w.Write(make([]byte, sent))
			begun := time.Now()
			if n, err := g.Read(make([]byte, room)); n != sent || err != nil {
				t.Errorf("%d bytes of %d, %v", n, sent, err)
			}
			if took := time.Since(begun); took != want {
				t.Errorf("%d bytes took %v, want %v", sent, took, want)
			}
		}
		read(10, 100, 0)
		read(10, 100, gather)
		read(50, 100, gather)
		read(50, 100, 0)
		read(10, 100, 0)
		time.Sleep(gather)
		read(10, 100, 0)
		asked <- struct{}{}
		read(10, 100, 0)
		read(10, 100, gatherSoon)
		time.Sleep(answering)
		read(10, 100, 0)
		read(10, 100, gather)
	})
	for room, want := range map[int]time.Duration{0: gatherSoon, leastRoom: gatherSoon, 1 << 20: gatherMost} {
		if got := newGathering(nil, room, nil).gather; got != want {
			t.Errorf("with room for %d bytes: gathers for %v, want %v", room, got, want)
		}
	}
}
