//go:build !unix

package tty

import "os"

// ask returns "" because this system offers no way to wait for an answer with a time limit.
func ask(*os.File, *os.File, string) string { return "" }
