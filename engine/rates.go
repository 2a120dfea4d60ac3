package engine

import "gpuscope/engine/gpu"

// rates holds the estimated wall time in ns for each byte and each FLOP of modeled work. The estimates
// predict how long a step will keep the GPU busy, so that a long step is submitted in parts. A decode step
// mainly moves bytes, so it mainly updates perByte. A prefill step mainly computes, so it mainly updates
// perFLOP. An update replaces the old estimate and does not average over steps, because clocks change.
type rates struct {
	perByte, perFLOP float64 // 0 if unknown
	// balance is an assumed ratio of the two rates: how many FLOPs a device computes in the time in which it
	// moves one byte. A step that needs more FLOPs per byte counts as compute-bound. Any other step counts as
	// memory-bound. If only one rate has been measured, the other is derived from it with this ratio.
	balance float64
}

// The balance values are rough: the peak rates of GPUs correspond to 10 to 100 FLOPs per byte.
const (
	balanceGPU = 32
	balanceCPU = 8
)

// newRates returns the initial rates. For a GPU they are unknown, so the first step is not split into several
// submits. A software device is so slow that its first step must be split, so its rates start with a guess.
func newRates(t gpu.AdapterType) rates {
	if t == gpu.CPU {
		return rates{perByte: 1, perFLOP: 1, balance: balanceCPU}
	}
	return rates{balance: balanceGPU}
}

// expect returns the expected time of the given work in ns, or 0 if no rate is known.
func (r *rates) expect(bytes, flops int64) float64 {
	perByte, perFLOP := r.perByte, r.perFLOP
	if perByte == 0 {
		perByte = perFLOP * r.balance
	}
	if perFLOP == 0 {
		perFLOP = perByte / r.balance
	}
	return float64(bytes)*perByte + float64(flops)*perFLOP
}

// learn updates the rates with the measured time of a step, in ns.
func (r *rates) learn(bytes, flops int64, ns float64) {
	b, f := float64(bytes), float64(flops)
	if f > b*r.balance {
		r.perFLOP = rest(ns, b*r.perByte) / f
		if b > 0 {
			r.perByte = min(r.perByte, ns/b) // the step moved all bytes within ns, so this is an upper bound
		}
	} else if b > 0 {
		r.perByte = rest(ns, f*r.perFLOP) / b
		if f > 0 {
			r.perFLOP = min(r.perFLOP, ns/f)
		}
	}
}

// rest returns how much of the time `ns` of a step is attributed to the dominant kind of work. This is `ns`
// minus `other`, the time of the other kind of work, but at least half of `ns`.
func rest(ns, other float64) float64 { return max(ns-other, ns/2) }
