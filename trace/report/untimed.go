package report

import "gpuscope/trace/analyze"

// Divided reports whether the wall time is to be divided into GPU time and the rest. The parts of a single
// run add up. Medians of repeats are divided only if the rest is larger than its error.
func Divided(u *analyze.Untimed) bool {
	wait, off, known := u.Waits()
	return u.Split() && (u.From == "" || known && wait > off)
}
