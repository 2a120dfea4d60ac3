//go:build !unix

package tty

import "os"

// ask returns "": on this system, a read of the terminal cannot have a time limit.
func ask(*os.File, *os.File, string) string { return "" }
