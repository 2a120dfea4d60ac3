package engine

import "gpuscope/engine/gpu"

// rates are what a byte and a FLOP of modelled work take, in ns of wall time. They say how long a step will
// keep the GPU, so that a long one is submitted in parts. A decode step moves bytes and a prefill computes:
// each teaches the rate that its time is made of. The last step of its kind counts, since clocks move.
type rates struct {
	perByte, perFLOP float64 // 0: not known
	// balance is how many FLOPs a device is taken to do in the time of a byte. A step of more of them to the
	// byte computes, another one moves bytes, and a rate that no step has taught follows from the other.
	balance float64
}

// balances are rough: between a GPU's peaks lie 10 to 100 FLOPs to the byte.
const (
	balanceGPU = 32
	balanceCPU = 8
)

// newRates knows nothing of a GPU: its first step is one submit. Software is slow enough for a guess.
func newRates(t gpu.AdapterType) rates {
	if t == gpu.CPU {
		return rates{perByte: 1, perFLOP: 1, balance: balanceCPU}
	}
	return rates{balance: balanceGPU}
}

// expect is how many ns some work will take; 0 where nothing is known.
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

// learn takes in that a step of so much work took ns.
func (r *rates) learn(bytes, flops int64, ns float64) {
	b, f := float64(bytes), float64(flops)
	if f > b*r.balance {
		r.perFLOP = rest(ns, b*r.perByte) / f
		if b > 0 {
			r.perByte = min(r.perByte, ns/b) // it did these, too, in that time
		}
	} else if b > 0 {
		r.perByte = rest(ns, f*r.perFLOP) / b
		if f > 0 {
			r.perFLOP = min(r.perFLOP, ns/f)
		}
	}
}

// rest is what is left of a step's time for the work it is made of, half of it at least.
func rest(ns, other float64) float64 { return max(ns-other, ns/2) }
