// Package quiet keeps Bubble Tea v1 from querying the terminal while the program starts. Bubble Tea asks for
// the background color when it is initialized. It does so in every program that links it, and it waits five
// seconds if the terminal does not answer. It does not ask if TERM is "dumb", so this package sets TERM to
// "dumb" until Restore is called.
//
// This works because of the order in which Go initializes packages: by import path, as soon as all imports
// of a package are initialized. This package imports only os, and its path sorts before os/signal, which
// Bubble Tea imports. A test in cmd/gpuscope checks the order.
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
