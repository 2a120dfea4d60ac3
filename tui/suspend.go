package tui

import (
	"io"

	tea "github.com/charmbracelet/bubbletea"

	"gpuscope/tui/tty"
)

// A shell stops and continues its jobs by signals, and expects that a stopped job has left the terminal as it
// was. The screen does so for the key that suspends and for each signal that stops a job: it gives the
// terminal back, stops, and sets the terminal up again when it is continued. After a stop that no program can
// see (SIGSTOP) it does the same as soon as it runs again, since the shell has used the terminal since.

// resumedMsg says that the program has the terminal again.
type resumedMsg struct{}

// suspend stops the program until its shell continues it.
func (a *App) suspend() {
	if !a.shell.Job {
		a.remark("suspend: no shell can resume the program")
		return
	}
	a.leaveTerminal(a.shell.Stop)
}

// leaveTerminal gives the terminal back, does what is to be done meanwhile, and takes the terminal again.
func (a *App) leaveTerminal(meanwhile func()) {
	a.shell.Holder.Store(tty.HeldByShell)
	a.cmds = append(a.cmds, tea.Exec(meantime(meanwhile), func(error) tea.Msg {
		a.shell.Holder.Store(tty.HeldByScreen)
		return resumedMsg{}
	}))
}

// meantime is a function as Bubble Tea runs it while the terminal is given back.
type meantime func()

func (f meantime) Run() error { f(); return nil }

func (meantime) SetStdin(io.Reader)  {}
func (meantime) SetStdout(io.Writer) {}
func (meantime) SetStderr(io.Writer) {}
