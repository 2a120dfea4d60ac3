// Package raise ends the run of a chat template with an error that names the line.
package raise

import (
	"fmt"

	"gpuscope/internal/printable"
)

// failure is an error on its way to Parse or Render.
type failure struct {
	line int
	text string
}

// At ends what is being done.
func At(line int, format string, args ...any) {
	panic(failure{line, fmt.Sprintf(format, args...)})
}

// Guard makes an error of a failure.
func Guard(name string, err *error) {
	switch f := recover().(type) {
	case nil:
	case failure:
		*err = fmt.Errorf("%s: chat template, line %d: %s", name, f.line, printable.Short(f.text, 300))
	default:
		panic(f)
	}
}
