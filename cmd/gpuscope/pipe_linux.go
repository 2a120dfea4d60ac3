package main

import (
	"io"
	"syscall"

	"golang.org/x/sys/unix"
)

// widen lets a pipe hold as many bytes as Linux gives everybody, and says how many it holds; 0 where that
// cannot be said.
func widen(pipe io.Reader) (room int) {
	file, ok := pipe.(syscall.Conn)
	if !ok {
		return 0
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return 0
	}
	err = raw.Control(func(fd uintptr) {
		_, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, 1<<20) // refused where the user has many pipes
		room, _ = unix.FcntlInt(fd, unix.F_GETPIPE_SZ, 0)
	})
	if err != nil {
		return 0
	}
	return max(0, room)
}
