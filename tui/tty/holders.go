// Package tty is the program's terminal: whether its background is dark, frames that are shown at once, and
// the signals by which a shell stops and continues the program.
package tty

// What a signal of job control means to the event loop.
type (
	// SuspendMsg says that a signal asks the program to stop.
	SuspendMsg struct{}
	// RetakeMsg says that another program has had the terminal, or has it, without its being given back.
	RetakeMsg struct{}
)

// Holders of the terminal.
const (
	HeldByScreen int32 = iota
	HeldByShell        // from the moment a signal asks for it
	HeldByEditor
)

// NewJobControl is the program as a job of its shell, which nobody has signalled yet.
func NewJobControl() *JobControl { return &JobControl{} }
