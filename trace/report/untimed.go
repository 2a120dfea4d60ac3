package report

import "gpuscope/trace/analyze"

// Divided reports whether the wall time is to be divided into GPU time and the rest. The wall time of a
// single run is always divided if both parts are known. The median of repeats is divided only if the rest is
// larger than its error.
func Divided(u *analyze.Untimed) bool {
	wait, off, known := u.Waits()
	return u.Split() && (u.From == "" || known && wait > off)
}
