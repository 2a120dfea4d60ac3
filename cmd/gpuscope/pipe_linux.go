package main

import (
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// widen enlarges the buffer of a pipe to the maximum that Linux allows unprivileged users. It returns the
// capacity in bytes, or 0 if the capacity is unknown.
func widen(pipe io.Reader) (room int) {
	control(pipe, func(fd int) {
		_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, 1<<20) // fails if the user has too many pipes
		room, _ = unix.FcntlInt(uintptr(fd), unix.F_GETPIPE_SZ, 0)
	})
	return max(0, room)
}

// unwatched duplicates a pipe, closes the original and returns the duplicate, which the Go runtime does not
// poll. This saves wake-ups: Linux wakes the process for every write to a polled pipe, even if nobody is
// reading. A read from the duplicate blocks a thread instead. If unwatched cannot make a duplicate, it
// returns the given pipe.
func unwatched(pipe io.ReadCloser) io.ReadCloser {
	again := -1
	control(pipe, func(fd int) {
		again, _ = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	})
	if again < 0 {
		return pipe
	}
	if err := unix.SetNonblock(again, false); err != nil {
		_ = unix.Close(again)
		return pipe
	}
	_ = pipe.Close()
	return os.NewFile(uintptr(again), "messages")
}

// control calls f with the file descriptor of a pipe. It does nothing if the pipe is closed or has no
// descriptor.
func control(pipe io.Reader, f func(fd int)) {
	file, ok := pipe.(syscall.Conn)
	if !ok {
		return
	}
	if raw, err := file.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { f(int(fd)) })
	}
}
