package graphtest

import "gpuscope/internal/wordingtest"

// Mentions reports whether an error contains the names and numbers in `facts`, in the same order. `facts` is
// a list separated by spaces. Tests use Mentions to check the facts of an error without depending on its
// wording.
func Mentions(err error, facts string) bool { return wordingtest.Mentions(err, facts) }
