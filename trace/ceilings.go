package trace

import "slices"

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

// Best is the better of two measurements of a device, figure by figure: the higher rate and the shorter time.
// How many workgroups fill it comes with the FLOP rate.
func (c *Ceilings) Best(o *Ceilings) *Ceilings {
	best := *c
	best.CopyBytesPerS = slices.Clone(c.CopyBytesPerS)
	for _, r := range o.CopyBytesPerS {
		i := slices.IndexFunc(best.CopyBytesPerS, func(b CopyRate) bool { return b.Bytes == r.Bytes })
		if i < 0 {
			best.CopyBytesPerS = append(best.CopyBytesPerS, r)
			continue
		}
		best.CopyBytesPerS[i].PerS = max(best.CopyBytesPerS[i].PerS, r.PerS)
	}
	if o.FlopsPerS > c.FlopsPerS {
		best.FlopsPerS, best.FillWorkgroups = o.FlopsPerS, o.FillWorkgroups
	}
	best.DispatchNS = shorter(c.DispatchNS, o.DispatchNS)
	best.TimedPassNS = shorter(c.TimedPassNS, o.TimedPassNS)
	best.N = max(c.N, o.N)
	return &best
}

// shorter is the lesser of two times, of which one or both may not have been measured.
func shorter(a, b Time) Time {
	m, ok := a.NS()
	if n, also := b.NS(); !ok || also && n < m {
		return b
	}
	return a
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
