package trace

import "slices"

// CopyAt returns the copy bandwidth for a working set of the given size, in bytes per second. It uses the
// measurement of the smallest working set that is at least as large. If there is
// none, it uses the largest working set. It returns 0 if no bandwidth was measured.
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

// Best combines two measurements of a device: for each figure it returns the higher rate or the shorter
// time. FillWorkgroups comes from the measurement with the higher FLOP rate.
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

// shorter returns the shorter of two times. If only one time was measured, shorter returns that time.
func shorter(a, b Time) Time {
	m, ok := a.NS()
	if n, also := b.NS(); !ok || also && n < m {
		return b
	}
	return a
}

// Roofs returns two lower bounds of a duration, in ns: the time to move the bytes at the copy bandwidth,
// and the time to compute the FLOPs at the FLOP rate. A bound is 0 if its rate is unknown. The size of the
// working set selects the copy bandwidth; the bytes are a part of the working set.
func (c *Ceilings) Roofs(bytes, flops, set float64) (mem, fp float64) {
	if rate := c.CopyAt(int64(set)); rate > 0 {
		mem = bytes * 1e9 / rate
	}
	if c.FlopsPerS > 0 {
		fp = flops * 1e9 / c.FlopsPerS
	}
	return mem, fp
}
