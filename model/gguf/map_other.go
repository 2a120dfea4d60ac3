//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package gguf

import "os"

// readable gives the file's bytes, read into memory.
func readable(file *os.File, size int) (data []byte, mapped bool, err error) {
	data, err = readAll(file, size)
	return data, false, err
}

func unmap([]byte) error { return nil }
