// Package tty handles the program's terminal: the colour of its background, frames that are shown at once,
// and the signals with which a shell stops and continues the program.
package tty

// Messages that job-control signals cause in the event loop.
type (
	// SuspendMsg reports that a signal asks the program to stop.
	SuspendMsg struct{}
	// RetakeMsg reports that the program was stopped and continued without a chance to restore the
	// terminal. Another program has used the terminal in the meantime, or still uses it.
	RetakeMsg struct{}
)

// Programs that can have the terminal.
const (
	HeldByScreen int32 = iota
	HeldByShell        // from the moment a signal asks to give the terminal to the shell
	HeldByEditor
)

// NewJobControl returns the job control of a program that has received no signal yet.
func NewJobControl() *JobControl { return &JobControl{} }
