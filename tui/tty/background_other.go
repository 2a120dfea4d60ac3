//go:build !unix

package tty

import "os"

// ask has no way to wait for an answer only so long.
func ask(*os.File, *os.File, string) string { return "" }
