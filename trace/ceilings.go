package trace

// CopyAt is the copy rate at a working set of so many bytes, in bytes a second: the one measured at the
// smallest size that holds it, or at the largest size; 0 where none was measured.
func (c *Ceilings) CopyAt(bytes int64) float64 {
	var best CopyRate
	for _, r := range c.CopyBytesPerS {
		fits, bestFits := r.Bytes >= bytes, best.Bytes >= bytes
		switch {
		case best.PerS == 0, fits && !bestFits, fits && bestFits && r.Bytes < best.Bytes, !fits &&
			!bestFits && r.Bytes > best.Bytes:
			best = r
		}
	}
	return best.PerS
}
