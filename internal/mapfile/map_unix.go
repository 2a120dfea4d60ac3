//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package mapfile

import (
	"os"
	"syscall"
)

// doNotWait is a flag with which opening waits for nothing.
const doNotWait = syscall.O_NONBLOCK

// mapFile gives the bytes of a file that is not empty. Some file systems cannot map.
func mapFile(file *os.File, size int) ([]byte, error) {
	return syscall.Mmap(int(file.Fd()), 0, size, syscall.PROT_READ, syscall.MAP_SHARED)
}

func unmap(data []byte) error { return syscall.Munmap(data) }

// hasRoom says whether there is memory for so many bytes. Where a file cannot be mapped the address space may
// be limited, and a Go program ends without a word of its own where an allocation fails.
func hasRoom(size int) error {
	const slack = 128 << 20 // for all else, and what the heap grows by
	room, err := syscall.Mmap(-1, 0, size+slack, syscall.PROT_NONE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		return err
	}
	return unmap(room)
}
