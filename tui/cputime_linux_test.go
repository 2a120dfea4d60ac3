package tui

import (
	"syscall"
	"time"
)

// cpuTime is the processor's time that this thread has had.
func cpuTime() (time.Duration, bool) {
	const thisThread = 1 // RUSAGE_THREAD
	var u syscall.Rusage
	if err := syscall.Getrusage(thisThread, &u); err != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}
