//go:build unix

package tty

import (
	"os"
	"os/signal"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// JobControl is the program as a shell's job.
type JobControl struct {
	// A shell would continue the program after a stop. Where there is none (the program is the first of its
	// session) the system itself keeps the signals that stop from stopping it.
	Job       bool
	Holder    atomic.Int32 // of the terminal
	tty       int
	returned  time.Time       // from the last stop in the background; only hear uses it
	continued chan struct{}   // SIGCONT was heard while a shell had the terminal
	Ended     <-chan struct{} // closed when the program is to leave
}

// Control begins to hear the signals of job control. They go to a channel, of which each is given to hear.
// SIGTTOU keeps its default action: a program that hears it and sets the mode of a terminal in the background
// is sent it for ever.
func (j *JobControl) Control(tty *os.File, signals chan<- os.Signal) {
	session, err := unix.Getsid(0)
	j.Job = err == nil && session != unix.Getpgrp()
	j.tty, j.continued = int(tty.Fd()), make(chan struct{}, 1)
	signal.Notify(signals, unix.SIGCONT)
	if j.Job {
		signal.Notify(signals, unix.SIGTSTP, unix.SIGTTIN)
	}
}

// Hear says whether a signal is one of job control, and what it means to the event loop, if anything.
func (j *JobControl) Hear(sig os.Signal) (m any, ours bool) {
	stops := sig == unix.SIGTSTP || sig == unix.SIGTTIN
	switch {
	case stops && j.background(): // the terminal was taken away, and a read of it would be signalled for ever
		_ = unix.Kill(0, unix.SIGSTOP) // a process may signal its group
		j.returned = time.Now()
		return nil, true
	case stops && time.Since(j.returned) < continuedWithin:
		return nil, true // the read was signalled more than once before the stop
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
	case stops && j.Holder.Load() == HeldByEditor: // which has restored the terminal, and stops as well
		_ = unix.Kill(unix.Getpid(), unix.SIGSTOP) // a process may signal itself
	case !stops && j.Holder.Load() == HeldByShell:
		select {
		case j.continued <- struct{}{}:
		default:
		}
	}
	return nil, true
}

// Stop stops the program and all of its process group, the engine among them, as ctrl+z does where the
// terminal makes a signal of it. It returns when the program has been continued in the foreground.
func (j *JobControl) Stop() {
	j.send(unix.SIGSTOP)
	j.AwaitForeground()
}

// AwaitForeground stops the program for as long as the terminal belongs to another process group. Afterwards
// all of the own group run, whichever of them the shell continued.
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

// continuedWithin is how long SIGCONT is waited for after a signal that brings it, while the program runs.
const continuedWithin = time.Second

// send sends a signal to the process group and returns when SIGCONT was heard after it.
func (j *JobControl) send(sig unix.Signal) {
	select {
	case <-j.continued: // by a signal before
	default:
	}
	_ = unix.Kill(0, sig) // a process may signal its group
	select {
	case <-j.continued:
	case <-time.After(continuedWithin):
	}
}
