package session

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
)

// served runs Serve with pipes that the test controls. It returns after the model was opened.
func served(t *testing.T, do doing) (ask func(request) error, messages *wireReader, end func()) {
	requestsR, requestsW := io.Pipe()
	messagesR, messagesW := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- Serve(t.Context(), requestsR, messagesW, opened(newScripted(do)))
		messagesW.Close()
	}()
	messages = newWireReader(messagesR)
	if err := messages.greeted(); err != nil {
		t.Fatal(err)
	}
	for m := (message{}); m.Answer == nil; { // until the model is open
		if err := receive(messages, &m); err != nil {
			t.Fatal(err)
		}
	}
	ask = func(q request) error {
		b, err := wireBytes(&q)
		if err == nil {
			_, err = requestsW.Write(b)
		}
		return err
	}
	return ask, messages, func() {
		requestsW.Close()
		go io.Copy(io.Discard, messagesR)
		if err := <-done; err != nil {
			t.Error("serve:", err)
		}
	}
}

func TestCommandsRunInTheOrderOfTheirRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n = 100
		var order []int
		do := func(_ context.Context, c Command, _ func(Event)) (Reply, error) {
			order = append(order, c.N)
			return Reply{Position: c.N}, nil
		}
		ask, messages, end := served(t, do)
		go func() {
			for i := 1; i <= n; i++ {
				_ = ask(request{ID: i, Do: &Command{Kind: Run, N: i}})
			}
		}()
		for next := 1; next <= n; {
			var m message
			if err := receive(messages, &m); err != nil {
				t.Fatal(err)
			}
			if a := m.Answer; a != nil && a.ID > 0 {
				if a.ID != next || a.Reply.Position != next {
					t.Fatalf("answer %d with position %d, want %d next", a.ID, a.Reply.Position, next)
				}
				next++
			}
		}
		end()
		for i, got := range order {
			if got != i+1 {
				t.Fatalf("order %v", order)
			}
		}
	})
}

// The front end reads nothing for a while, one command runs and others wait. The reader must still accept
// cancels, both of the running command and of a waiting one.
func TestACancelIsHeardWhateverWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ended := map[int]error{}
		do := func(ctx context.Context, c Command, emit func(Event)) (Reply, error) {
			if c.N == 1 {
				for ctx.Err() == nil {
					emit(Event{Log: &Log{Text: "busy"}})
				}
			}
			ended[c.N] = ctx.Err()
			return Reply{}, ctx.Err()
		}
		ask, messages, end := served(t, do)
		for i := 1; i <= 3; i++ { // each ask returns once the reader accepts it
			if err := ask(request{ID: i, Do: &Command{Kind: Run, N: i}}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait() // nothing reads, so the first command waits for room
		for _, id := range []int{2, 1} {
			if err := ask(request{ID: id, Cancel: true}); err != nil {
				t.Fatal(err)
			}
		}
		errs := map[int]error{}
		for len(errs) < 3 {
			var m message
			if err := receive(messages, &m); err != nil {
				t.Fatal(err)
			}
			if a := m.Answer; a != nil && a.ID > 0 {
				errs[a.ID] = a.Error.asError()
			}
		}
		end()
		if !errors.Is(errs[1], context.Canceled) || !errors.Is(errs[2], context.Canceled) || errs[3] != nil {
			t.Errorf("answers %v, want the first two cancelled", errs)
		}
		if _, begun := ended[2]; begun || ended[3] != nil {
			t.Errorf("commands ended with %v, want the second one never started", ended)
		}
	})
}

func TestEndOfTheFrontEndIsAlwaysNoticed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := 0
		ask, _, end := served(t, func(ctx context.Context, _ Command, emit func(Event)) (Reply, error) {
			begun++
			for ctx.Err() == nil {
				emit(Event{Log: &Log{Text: "busy"}})
			}
			return Reply{}, ctx.Err()
		})
		go func() {
			for i := 1; i <= 50; i++ {
				_ = ask(request{ID: i, Do: &Command{Kind: Run}})
			}
		}()
		synctest.Wait() // nothing reads the messages
		end()
		if begun != 1 {
			t.Errorf("%d commands were started, want only the one that ran", begun)
		}
	})
}
