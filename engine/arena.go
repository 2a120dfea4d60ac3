package engine

import (
	"fmt"

	"gpuscope/engine/gpu"
)

// paramsArena is the one uniform buffer that holds the params of every dispatch slot, each at the device's
// alignment, with a shadow on the host. A step writes at most once, from the first to the last slot that
// changed: slots whose operators read SymInts, which change with every token, are placed together at the
// front to keep that range short.
type paramsArena struct {
	buffer  gpu.Buffer
	shadow  []byte
	offsets []int // by dispatch
	lo, hi  int   // range of shadow that the device does not have; empty if lo >= hi
}

func (a *paramsArena) make(dev gpu.Device, g *Graph) error {
	align := max(16, int(dev.Info().Limits.UniformAlignment))
	a.offsets = make([]int, len(g.dispatches))
	size := 0
	for _, symInts := range []bool{true, false} {
		for i := range g.dispatches {
			d := &g.dispatches[i]
			if d.symInts != symInts {
				continue
			}
			largest := 0
			for _, use := range g.ops[d.op].spec.Slots[d.slot].Uses {
				if use.Kernel != nil {
					largest = max(largest, use.Kernel.paramsBytes())
				}
			}
			a.offsets[i] = size
			size += (largest + align - 1) / align * align
		}
	}
	if size == 0 {
		return nil
	}
	a.shadow = make([]byte, size)
	a.lo, a.hi = size, 0
	var err error
	if a.buffer, err = dev.NewBuffer("params", uint64(size), gpu.Uniform); err != nil {
		return fmt.Errorf("allocate params: %w", err)
	}
	return nil
}

// take puts the params of an operator's plan into the shadow.
func (a *paramsArena) take(o *op, p *plan) {
	for s := range p.launches {
		if d := o.dispatches[s]; d >= 0 && p.launches[s].active {
			a.set(a.offsets[d], &p.launches[s])
		}
	}
}

func (a *paramsArena) set(at int, l *Launch) {
	data := l.Params.Bytes()
	if string(a.shadow[at:at+len(data)]) == string(data) {
		return
	}
	copy(a.shadow[at:], data)
	a.lo, a.hi = min(a.lo, at), max(a.hi, at+(len(data)+15)/16*16)
}

// upload brings the device up to date and returns how many bytes it wrote. On an error the range stays to be
// written.
func (a *paramsArena) upload(dev gpu.Device) (int, error) {
	if a.lo >= a.hi {
		return 0, nil
	}
	n := a.hi - a.lo
	if err := dev.Write(a.buffer, uint64(a.lo), a.shadow[a.lo:a.hi]); err != nil {
		return 0, fmt.Errorf("upload params: %w", err)
	}
	a.lo, a.hi = len(a.shadow), 0
	return n, nil
}
