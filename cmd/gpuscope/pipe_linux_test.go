package main

import (
	"errors"
	"io"
	"os"
	"testing"
	"time"
)

// A pipe holds as many bytes as widen reports, so a write of that size does not block.
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
		t.Fatalf("the pipe has room for %d bytes", room)
	}
	if err := w.SetWriteDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if n, err := w.Write(make([]byte, room)); err != nil {
		t.Errorf("%d bytes of %d: %v", n, room, err)
	}
	if room := widen(nil); room != 0 {
		t.Errorf("a nil reader has room for %d bytes", room)
	}
}

// A pipe that the Go runtime does not poll can be read to its end like any other pipe.
func TestUnwatchedPipe(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	x, ok := unwatched(r).(*os.File)
	if !ok {
		t.Fatal("unwatched did not return an *os.File")
	}
	if err := x.SetReadDeadline(time.Now()); !errors.Is(err, os.ErrNoDeadline) {
		t.Errorf("the runtime still polls the pipe: %v", err)
	}
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("read of the original pipe: %v", err)
	}
	go func() {
		_, _ = io.WriteString(w, "all ")
		time.Sleep(10 * time.Millisecond) // until the reader blocks
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
		t.Errorf("read of a closed pipe: %v", err)
	}
}
