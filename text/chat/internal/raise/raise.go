// Package raise reports errors of chat templates with their line. It uses panics that Guard converts to
// errors.
package raise

import (
	"fmt"

	"gpuscope/internal/printable"
)

// failure is the value of a panic that reports an error.
type failure struct {
	line int
	text string
}

// At aborts parsing or rendering with an error at a line of the template.
func At(line int, format string, args ...any) {
	panic(failure{line, fmt.Sprintf(format, args...)})
}

// Guard must be deferred. It recovers from a panic of At and stores the error in `err`. Other panics
// continue.
func Guard(name string, err *error) {
	switch f := recover().(type) {
	case nil:
	case failure:
		*err = fmt.Errorf("%s: chat template, line %d: %s", name, f.line, printable.Short(f.text, 300))
	default:
		panic(f)
	}
}
