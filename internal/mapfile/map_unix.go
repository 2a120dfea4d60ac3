//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package mapfile

import (
	"os"
	"syscall"
)

// doNotWait is a flag for opening a file without blocking.
const doNotWait = syscall.O_NONBLOCK

// mapFile maps a non-empty file into memory. It returns an error if the file system does not support mapping.
func mapFile(file *os.File, size int) ([]byte, error) {
	return syscall.Mmap(int(file.Fd()), 0, size, syscall.PROT_READ, syscall.MAP_SHARED)
}

func unmap(data []byte) error { return syscall.Munmap(data) }

// hasRoom returns an error if `size` bytes cannot be allocated. It is called before reading from a file that
// could not be mapped. The mapping may have failed because the address space is limited, and a Go program
// crashes when an allocation fails.
func hasRoom(size int) error {
	const slack = 128 << 20 // for other memory and for growth of the heap
	room, err := syscall.Mmap(-1, 0, size+slack, syscall.PROT_NONE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		return err
	}
	return unmap(room)
}
