package tui

import (
	"syscall"
	"time"
	"unsafe"
)

// cpuTime returns the CPU time of this thread. getrusage would be less precise, because it counts whole
// ticks.
func cpuTime() (time.Duration, bool) {
	const thisThread = 3 // CLOCK_THREAD_CPUTIME_ID
	var t syscall.Timespec
	_, _, err := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, thisThread, uintptr(unsafe.Pointer(&t)), 0)
	return time.Duration(t.Nano()), err == 0
}
