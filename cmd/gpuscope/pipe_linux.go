package main

import (
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// widen lets a pipe hold as many bytes as Linux gives everybody, and says how many it holds; 0 where that
// cannot be said.
func widen(pipe io.Reader) (room int) {
	control(pipe, func(fd int) {
		_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, 1<<20) // refused where the user has many pipes
		room, _ = unix.FcntlInt(uintptr(fd), unix.F_GETPIPE_SZ, 0)
	})
	return max(0, room)
}

// unwatched is an end of the same pipe that Go does not watch: to wait for it takes a thread, but for each
// write to one that is watched Linux wakes the process, whether anybody reads or not. The one that was given
// is closed; it is returned where there can be no other.
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

// control calls f with the descriptor of a pipe, unless it is closed or none.
func control(pipe io.Reader, f func(fd int)) {
	file, ok := pipe.(syscall.Conn)
	if !ok {
		return
	}
	if raw, err := file.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { f(int(fd)) })
	}
}
