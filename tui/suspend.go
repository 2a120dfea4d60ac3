package tui

import (
	"io"

	tea "github.com/charmbracelet/bubbletea"

	"gpuscope/tui/tty"
)

// A shell stops and continues its jobs with signals, and it expects a stopped job to restore the terminal. On
// the suspend key, and on every signal that stops a job, the program restores the terminal, stops, and sets
// the terminal up again when it is continued. A program cannot see SIGSTOP coming. After SIGSTOP the program
// therefore goes through the same sequence as soon as it runs again, because the shell has used the terminal
// in the meantime.

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

// leaveTerminal restores the terminal, calls meanwhile, and sets the terminal up again.
func (a *App) leaveTerminal(meanwhile func()) {
	a.shell.Holder.Store(tty.HeldByShell)
	a.cmds = append(a.cmds, tea.Exec(meantime(meanwhile), func(error) tea.Msg {
		a.shell.Holder.Store(tty.HeldByScreen)
		return resumedMsg{}
	}))
}

// meantime adapts a function to the interface that Bubble Tea runs while the terminal is restored.
type meantime func()

func (f meantime) Run() error { f(); return nil }

func (meantime) SetStdin(io.Reader)  {}
func (meantime) SetStdout(io.Writer) {}
func (meantime) SetStderr(io.Writer) {}
