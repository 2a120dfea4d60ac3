//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package gguf

import (
	"os"
	"syscall"
)

// readable gives the file's bytes, and whether they are mapped and must be given back by unmap.
func readable(file *os.File, size int) (data []byte, mapped bool, err error) {
	if size == 0 {
		return nil, false, nil // an empty mapping is an error of the system call
	}
	data, err = syscall.Mmap(int(file.Fd()), 0, size, syscall.PROT_READ, syscall.MAP_SHARED)
	if err == nil {
		return data, true, nil
	}
	// Some file systems cannot map.
	data, err = readAll(file, size)
	return data, false, err
}

func unmap(data []byte) error { return syscall.Munmap(data) }
