package main

import (
	"errors"
	"io"
	"os"
	"testing"
	"time"
)

// A pipe holds as much as is said of it: whoever writes so much waits for nobody.
func TestAPipeHoldsWhatItHasRoomFor(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	room := widen(r)
	if room < 1<<16 {
		t.Fatalf("it has room for %d bytes", room)
	}
	if err := w.SetWriteDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if n, err := w.Write(make([]byte, room)); err != nil {
		t.Errorf("%d bytes of %d: %v", n, room, err)
	}
	if room := widen(nil); room != 0 {
		t.Errorf("none has room for %d bytes", room)
	}
}

// What nobody watches is read like any pipe, to its end.
func TestUnwatchedPipe(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	x, ok := unwatched(r).(*os.File)
	if !ok {
		t.Fatal("it is no file")
	}
	if err := x.SetReadDeadline(time.Now()); !errors.Is(err, os.ErrNoDeadline) {
		t.Errorf("it can be waited for without a thread: %v", err)
	}
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the end that was watched: %v", err)
	}
	go func() {
		_, _ = io.WriteString(w, "all ")
		time.Sleep(10 * time.Millisecond) // the reader waits
		_, _ = io.WriteString(w, "of it")
		_ = w.Close()
	}()
	if b, err := io.ReadAll(x); string(b) != "all of it" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
	if _, err := unwatched(r).Read(make([]byte, 1)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a pipe that is closed: %v", err)
	}
}
