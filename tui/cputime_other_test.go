//go:build !linux

package tui

import "time"

// cpuTime reports that the CPU time of a thread is not available on this system.
func cpuTime() (time.Duration, bool) { return 0, false }
