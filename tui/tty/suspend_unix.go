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
	// Job reports whether the program is the job of a shell, which can continue the program after a stop.
	// The first program of a terminal session is not a job, and stop signals have no effect on this
	// program.
	Job       bool
	Holder    atomic.Int32 // the program that has the terminal
	tty       int
	returned  time.Time       // when the program was last continued after a stop in the background
	continued chan struct{}   // receives a value when SIGCONT arrives while a shell has the terminal
	Ended     <-chan struct{} // closed when the program has to quit
}

// Control sets the terminal of the job and returns the job-control signals to listen for. The caller must
// pass each signal that it receives to Hear. The list does not include SIGTTOU: a background program that
// catches SIGTTOU and sets the terminal mode receives SIGTTOU again and again.
func (j *JobControl) Control(tty *os.File) []os.Signal {
	session, err := unix.Getsid(0)
	j.Job = err == nil && session != unix.Getpgrp()
	j.tty, j.continued = int(tty.Fd()), make(chan struct{}, 1)
	if j.Job {
		return []os.Signal{unix.SIGCONT, unix.SIGTSTP, unix.SIGTTIN}
	}
	return []os.Signal{unix.SIGCONT}
}

// Hear handles a signal. `ours` is false if it is not a job-control signal. `m` is the message to send to the
// event loop, or nil if the signal needs no message.
func (j *JobControl) Hear(sig os.Signal) (m any, ours bool) {
	stops := sig == unix.SIGTSTP || sig == unix.SIGTTIN
	switch {
	case stops && j.background(): // stop, because each read of the terminal would raise SIGTTIN again
		stopHere()
		j.returned = time.Now()
		return nil, true
	case stops && time.Since(j.returned) < continuedWithin:
		return nil, true // an extra SIGTTIN, raised by the read before the stop
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
	case stops && j.Holder.Load() == HeldByEditor: // the editor restores the terminal and stops, too
		_ = unix.Kill(unix.Getpid(), unix.SIGSTOP) // cannot fail: a process may signal itself
	case !stops && j.Holder.Load() == HeldByShell:
		select {
		case j.continued <- struct{}{}:
		default:
		}
	}
	return nil, true
}

// stopHere stops the process group and returns after it was continued. The process may run on for a moment
// after it has sent itself the signal. If the next signal were handled in this moment, it could stop the
// program again after the shell has continued it.
func stopHere() {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, unix.SIGCONT)
	defer signal.Stop(continued)
	_ = unix.Kill(0, unix.SIGSTOP) // cannot fail: a process may signal its own group
	select {
	case <-continued:
	case <-time.After(continuedWithin):
	}
}

// Stop stops the whole process group, including the engine. It returns when the program has been continued in
// the foreground.
func (j *JobControl) Stop() {
	j.send(unix.SIGSTOP)
	j.AwaitForeground()
}

// AwaitForeground stops the program again and again until the terminal belongs to the program's process
// group. It then continues the whole process group, because the shell may have continued only some processes
// of the group.
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

// continuedWithin is how long send and stopHere wait for SIGCONT before they give up. It is also how long
// Hear ignores stop signals after the program was continued from a stop in the background.
const continuedWithin = time.Second

// send sends a signal that stops or continues the process group. It returns when SIGCONT has arrived, or
// after continuedWithin.
func (j *JobControl) send(sig unix.Signal) {
	select {
	case <-j.continued: // discard a SIGCONT that an earlier signal caused
	default:
	}
	_ = unix.Kill(0, sig) // cannot fail: a process may signal its own group
	select {
	case <-j.continued:
	case <-time.After(continuedWithin):
	}
}
