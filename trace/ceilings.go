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

// Roofs are in how many ns the copy rate lets so many bytes be moved, and the FLOP rate lets so many FLOPs be
// done; 0 where the rate is not known. The bytes are a part of a working set, which says how fast they come.
func (c *Ceilings) Roofs(bytes, flops, set float64) (mem, fp float64) {
	if rate := c.CopyAt(int64(set)); rate > 0 {
		mem = bytes * 1e9 / rate
	}
	if c.FlopsPerS > 0 {
		fp = flops * 1e9 / c.FlopsPerS
	}
	return mem, fp
}
