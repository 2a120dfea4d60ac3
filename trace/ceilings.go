package trace

import "slices"

// CopyAt returns the copy bandwidth for a working set of this size, in bytes per second. It uses the smallest
// measured working set that has at least this size. If all measured working sets are smaller, it uses the
// largest. If no bandwidth was measured, it returns 0.
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

// Best combines two measurements of the same device. For each number, it uses the better measurement: the
// higher rate or the shorter time. FillWorkgroups comes from the measurement with the higher FLOP rate.
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

// Roofs returns two lower limits of a dispatch's time, in ns. `mem` is the time to move `bytes` bytes at the
// copy bandwidth. `fp` is the time to compute `flops` FLOPs at the FLOP rate. Each is 0 if its rate is not
// known. `set` is the size of the working set in bytes, on which the copy bandwidth depends.
func (c *Ceilings) Roofs(bytes, flops, set float64) (mem, fp float64) {
	if rate := c.CopyAt(int64(set)); rate > 0 {
		mem = bytes * 1e9 / rate
	}
	if c.FlopsPerS > 0 {
		fp = flops * 1e9 / c.FlopsPerS
	}
	return mem, fp
}
