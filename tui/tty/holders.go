// Package tty handles the program's terminal: the color of its background, frames that are shown at once,
// and the signals with which a shell stops and continues the program.
package tty

// Messages that job-control signals cause in the event loop.
type (
	// SuspendMsg reports that a signal asks the program to stop.
	SuspendMsg struct{}
	// RetakeMsg reports that the program was stopped before it could restore the terminal, and was just
	// continued. Another program has used the terminal in the meantime, or is still using it.
	RetakeMsg struct{}
)

// Values of JobControl.Holder: the program that has the terminal.
const (
	HeldByScreen int32 = iota
	HeldByShell        // from the moment a signal asks the program to hand the terminal to the shell
	HeldByEditor
)

// NewJobControl returns the job control of a program that has received no signal yet.
func NewJobControl() *JobControl { return &JobControl{} }
