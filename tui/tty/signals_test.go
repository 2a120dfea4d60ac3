//go:build unix

package tty

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestManySignalsOfOneKindDisplaceNoOther(t *testing.T) {
	t.Parallel()
	signals, stop := Notify(unix.SIGURG, unix.SIGWINCH)
	for range 100 {
		if err := unix.Kill(unix.Getpid(), unix.SIGURG); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond) // the system combines signals that arrive at once
	}
	if err := unix.Kill(unix.Getpid(), unix.SIGWINCH); err != nil {
		t.Fatal(err)
	}
	for seen := false; !seen; {
		select {
		case s := <-signals:
			seen = s == unix.SIGWINCH
		case <-time.After(time.Minute):
			t.Fatal("SIGWINCH was lost")
		}
	}
	stop()
	stop()
}
