//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package gguf

import (
	"os"
	"syscall"
)

// mapFile gives the bytes of a file that is not empty. Some file systems cannot map.
func mapFile(file *os.File, size int) ([]byte, error) {
	return syscall.Mmap(int(file.Fd()), 0, size, syscall.PROT_READ, syscall.MAP_SHARED)
}

func unmap(data []byte) error { return syscall.Munmap(data) }
