// Package quiet keeps Bubble Tea v1 from querying the terminal while the program starts. The initialization
// of Bubble Tea asks for the background color and waits up to five seconds for the terminal's answer.
// Bubble Tea does not ask if TERM is "dumb", so this package sets TERM to "dumb" until Restore is called.
//
// This package must be initialized before Bubble Tea. Among the packages whose imports are all initialized,
// Go next initializes the one whose import path sorts first. This package imports only os. Bubble Tea
// imports os/signal, and the path of this package sorts before os/signal. A test in cmd/gpuscope checks the
// order.
package quiet

import "os"

var name, set = os.LookupEnv("TERM")

func init() { _ = os.Setenv("TERM", "dumb") } // cannot fail with this name

// Restore sets TERM back to its original value. Package tui calls Restore during its initialization, after
// Bubble Tea.
func Restore() {
	if set {
		_ = os.Setenv("TERM", name)
	} else {
		_ = os.Unsetenv("TERM")
	}
}
