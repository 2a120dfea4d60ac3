package tui

import (
	"io"

	tea "github.com/charmbracelet/bubbletea"

	"gpuscope/tui/tty"
)

// A shell stops and continues its jobs with signals, and expects a job to restore the terminal before the job
// stops. After the suspend key or a stop signal, the program restores the terminal and stops; when it is
// continued, it sets the terminal up again. SIGSTOP stops the program before it can restore the terminal.
// When the program continues after SIGSTOP, it therefore restores the terminal and sets it up again.

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

// leaveTerminal restores the terminal, calls `meanwhile`, and sets the terminal up again. The screen becomes
// the holder of the terminal before the setup begins, so that no signal is lost.
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

// meantime adapts a function to Bubble Tea's Exec, which restores the terminal while the function runs.
type meantime func()

func (f meantime) Run() error { f(); return nil }

func (meantime) SetStdin(io.Reader)  {}
func (meantime) SetStdout(io.Writer) {}
func (meantime) SetStderr(io.Writer) {}
