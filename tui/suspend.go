package tui

import (
	"io"

	tea "github.com/charmbracelet/bubbletea"

	"gpuscope/tui/tty"
)

// A shell stops and continues its jobs with signals. It expects that a job restores the terminal before it
// stops. When the user presses the suspend key, or when a signal asks the program to stop, the program
// restores the terminal and stops. When it is continued, it sets the terminal up again. A program cannot
// react to SIGSTOP before it stops. The shell uses the terminal while the program is stopped. After SIGSTOP,
// the program therefore goes through the same sequence as soon as it runs again.

// resumedMsg reports that the program has the terminal again.
type resumedMsg struct{}

// suspend stops the program until the shell continues it.
func (a *App) suspend() {
	if !a.shell.Job {
		a.remark("cannot suspend: there is no shell to resume the program")
		return
	}
	a.leaveTerminal(a.shell.Stop)
}

// leaveTerminal restores the terminal, calls `meanwhile`, and sets the terminal up again. The screen counts
// as the holder of the terminal as soon as the setup begins, so that no signal is lost.
func (a *App) leaveTerminal(meanwhile func()) {
	a.shell.Holder.Store(tty.HeldByShell)
	run := func() {
		meanwhile()
		a.shell.Holder.Store(tty.HeldByScreen)
	}
	a.cmds = append(a.cmds, tea.Exec(meantime(run), func(err error) tea.Msg {
		if err != nil { // run was not called
			a.shell.Holder.Store(tty.HeldByScreen)
		}
		return resumedMsg{}
	}))
}

// meantime is a function in the form that Bubble Tea's Exec needs. Bubble Tea restores the terminal while the
// function runs.
type meantime func()

func (f meantime) Run() error { f(); return nil }

func (meantime) SetStdin(io.Reader)  {}
func (meantime) SetStdout(io.Writer) {}
func (meantime) SetStderr(io.Writer) {}
