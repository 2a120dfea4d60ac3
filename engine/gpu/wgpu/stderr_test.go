//go:build cgo && unix

package wgpu

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"
)

// captureStderr leads descriptor 2 to w until restore is called: native code writes to it behind Go's back.
// The text of a crash also reaches the real descriptor 2. w is written from another goroutine, and no more
// once restore has returned.
func captureStderr(w io.Writer) (restore func(), err error) {
	saved, err := unix.FcntlInt(2, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("capture stderr: %w", err)
	}
	real := os.NewFile(uintptr(saved), "stderr")
	from, to, err := os.Pipe()
	if err != nil {
		real.Close()
		return nil, fmt.Errorf("capture stderr: %w", err)
	}
	if err := unix.Dup2(int(to.Fd()), 2); err != nil {
		real.Close()
		from.Close()
		to.Close()
		return nil, fmt.Errorf("capture stderr: %w", err)
	}
	to.Close()
	_ = debug.SetCrashOutput(real, debug.CrashOptions{}) // without it a crash is silent, not wrong
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer from.Close()
		if _, err := io.Copy(w, from); err != nil {
			_, _ = io.Copy(io.Discard, from) // a full pipe would block native code
		}
	}()
	return func() {
		_ = debug.SetCrashOutput(nil, debug.CrashOptions{})
		_ = unix.Dup2(saved, 2) // both descriptors are open
		// The last writer is gone, unless a child process has inherited descriptor 2: do not wait for that
		// one.
		_ = from.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		<-done
		real.Close()
	}, nil
}
