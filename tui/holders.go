package tui

// What a signal of job control means to the event loop.
type (
	// suspendMsg says that a signal asks the program to stop.
	suspendMsg struct{}
	// retakeMsg says that another program has had the terminal, or has it, without its being given back.
	retakeMsg struct{}
)

// Holders of the terminal.
const (
	heldByScreen int32 = iota
	heldByShell        // from the moment a signal asks for it
	heldByEditor
)

// newJobControl is the program as a job of its shell, which nobody has signalled yet.
func newJobControl() *jobControl { return &jobControl{} }
