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

// captureStderr redirects descriptor 2 to w until restore is called, because native code writes to it
// directly. The text of a crash also reaches the real descriptor 2. Another goroutine writes to w; it has
// ended when restore returns.
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
	_ = debug.SetCrashOutput(real, debug.CrashOptions{}) // if this fails, a crash prints nothing
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
		// The last writer is closed, unless a child process inherited descriptor 2. Do not wait for the
		// child.
		_ = from.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		<-done
		real.Close()
	}, nil
}
