package main

import (
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
