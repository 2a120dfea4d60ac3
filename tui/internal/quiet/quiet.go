// Package quiet keeps Bubble Tea v1 from questioning the terminal while the program starts. Bubble Tea asks
// for the background colour as it is initialised, in every command that links it, and waits five seconds for
// a terminal that does not answer. It does not ask a terminal that calls itself dumb: so TERM says so until
// Restore.
//
// This works because of the order in which Go initialises packages: the first by import path whose imports
// are ready. This one needs os alone and stands before os/signal, without which Bubble Tea is not ready. A
// test in cmd/gpuscope holds it to that.
package quiet

import "os"

var name, set = os.LookupEnv("TERM")

func init() { _ = os.Setenv("TERM", "dumb") } // it cannot fail with this name

// Restore gives TERM back. Package tui calls it as it is initialised, after Bubble Tea.
func Restore() {
	if set {
		_ = os.Setenv("TERM", name)
	} else {
		_ = os.Unsetenv("TERM")
	}
}
