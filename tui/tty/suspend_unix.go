//go:build unix

package tty

import (
	"os"
	"os/signal"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// JobControl handles the program's role as a job of a shell.
type JobControl struct {
	// Job reports whether a shell would continue the program after a stop. If no shell would (the program
	// is the first of its session), the system itself keeps stop signals from stopping the program.
	Job       bool
	Holder    atomic.Int32 // the program that has the terminal
	tty       int
	returned  time.Time       // end of the last time the program was stopped in the background; for Hear
	continued chan struct{}   // receives a value when SIGCONT arrives while a shell has the terminal
	Ended     <-chan struct{} // closed when the program must quit
}

// Control starts to receive job-control signals on the channel. The receiver must pass each signal to
// Hear. SIGTTOU keeps its default action: if a program in the background catches SIGTTOU and sets the
// terminal mode, it receives SIGTTOU again and again.
func (j *JobControl) Control(tty *os.File, signals chan<- os.Signal) {
	session, err := unix.Getsid(0)
	j.Job = err == nil && session != unix.Getpgrp()
	j.tty, j.continued = int(tty.Fd()), make(chan struct{}, 1)
	signal.Notify(signals, unix.SIGCONT)
	if j.Job {
		signal.Notify(signals, unix.SIGTSTP, unix.SIGTTIN)
	}
}

// Hear reports whether a signal is a job-control signal. It also returns the message for the event loop,
// or nil if there is none.
func (j *JobControl) Hear(sig os.Signal) (m any, ours bool) {
	stops := sig == unix.SIGTSTP || sig == unix.SIGTTIN
	switch {
	case stops && j.background(): // in the background every read of the terminal raises SIGTTIN again
		_ = unix.Kill(0, unix.SIGSTOP) // cannot fail: a process may signal its own group
		j.returned = time.Now()
		return nil, true
	case stops && time.Since(j.returned) < continuedWithin:
		return nil, true // the read raised SIGTTIN more than once before the stop
	case stops:
		m = SuspendMsg{}
	case sig == unix.SIGCONT:
		m = RetakeMsg{}
	default:
		return nil, false
	}
	if j.Holder.CompareAndSwap(HeldByScreen, HeldByShell) {
		return m, true
	}
	switch {
	case stops && j.Holder.Load() == HeldByEditor: // the editor has restored the terminal and stops as well
		_ = unix.Kill(unix.Getpid(), unix.SIGSTOP) // cannot fail: a process may signal itself
	case !stops && j.Holder.Load() == HeldByShell:
		select {
		case j.continued <- struct{}{}:
		default:
		}
	}
	return nil, true
}

// Stop stops the whole process group, including the engine, as ctrl+z does when the terminal turns it into
// a signal. It returns when the program has been continued in the foreground.
func (j *JobControl) Stop() {
	j.send(unix.SIGSTOP)
	j.AwaitForeground()
}

// AwaitForeground stops the program as long as the terminal belongs to another process group. Afterwards it
// continues the whole process group, even if the shell continued only some of the processes.
func (j *JobControl) AwaitForeground() {
	defer j.send(unix.SIGCONT)
	for j.background() {
		select {
		case <-j.Ended:
			return
		default:
			j.send(unix.SIGSTOP)
		}
	}
}

func (j *JobControl) background() bool {
	group, err := unix.IoctlGetInt(j.tty, unix.TIOCGPGRP)
	return err == nil && group != unix.Getpgrp()
}

// continuedWithin is how long send waits for SIGCONT while the program keeps running.
const continuedWithin = time.Second

// send sends a signal to the process group and returns after SIGCONT has arrived.
func (j *JobControl) send(sig unix.Signal) {
	select {
	case <-j.continued: // discard the SIGCONT of an earlier signal
	default:
	}
	_ = unix.Kill(0, sig) // cannot fail: a process may signal its own group
	select {
	case <-j.continued:
	case <-time.After(continuedWithin):
	}
}
