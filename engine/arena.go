package engine

import (
	"bytes"
	"fmt"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/trace"
)

// paramsArena is the one uniform buffer that holds the params of every dispatch slot, each at the device's
// alignment, with a shadow on the host. A step writes at most once, from the first to the last slot that
// changed: slots whose operators read SymInts, which change with every token, are placed together at the
// front to keep that range short.
//
// A dispatch reads its own block only where it has to: while the first that is like it has the same params it
// reads those. Alike are dispatches of the same kernels that begin with the same params. The layers of a
// model are, so a step reads a few blocks and not as many as it has dispatches: a GPU takes each from memory
// when a submit first reads it, and the dispatch waits.
type paramsArena struct {
	buffer gpu.Buffer
	shadow []byte
	blocks []paramsBlock // by dispatch
	lo, hi int           // range of shadow that the device does not have; empty if lo >= hi
}

// paramsBlock is where the params of a dispatch lie, in bytes.
type paramsBlock struct {
	begin, size int
	first       trace.DispatchID // of those that are like it
}

// likeness is the same for dispatches that are alike.
type likeness struct {
	kernels [graph.MaxRoutes]*graph.Kernel // by route
	params  string                         // that they begin with
}

func (a *paramsArena) make(dev gpu.Device, g *graph.Graph, plans []graph.Plan) error {
	align := max(16, int(dev.Info().Limits.UniformAlignment))
	a.blocks = make([]paramsBlock, len(g.Dispatches))
	firsts := map[likeness]trace.DispatchID{}
	size := 0
	for _, symInts := range []bool{true, false} {
		for i := range g.Dispatches {
			d := &g.Dispatches[i]
			if d.SymInts != symInts {
				continue
			}
			b := paramsBlock{begin: size}
			like := likeness{params: string(plans[d.Op].Launches[d.Slot].Params.Bytes())}
			for r, use := range g.Ops[d.Op].Spec.Slots[d.Slot].Uses {
				if use.Kernel != nil {
					b.size, like.kernels[r] = max(b.size, use.Kernel.ParamsBytes()), use.Kernel
				}
			}
			if _, ok := firsts[like]; !ok {
				firsts[like] = trace.DispatchID(i)
			}
			b.first = firsts[like]
			a.blocks[i] = b
			size += (b.size + align - 1) / align * align
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
func (a *paramsArena) take(o *graph.Op, p *graph.Plan) {
	for s := range p.Launches {
		if d := o.Dispatches[s]; d >= 0 && p.Launches[s].Active {
			a.set(a.blocks[d].begin, &p.Launches[s])
		}
	}
}

func (a *paramsArena) set(at int, l *graph.Launch) {
	data := l.Params.Bytes()
	if string(a.shadow[at:at+len(data)]) == string(data) {
		return
	}
	copy(a.shadow[at:], data)
	a.lo, a.hi = min(a.lo, at), max(a.hi, at+(len(data)+15)/16*16)
}

// read is the dispatch whose block a dispatch reads: the first that is like it, or itself.
func (a *paramsArena) read(id trace.DispatchID) trace.DispatchID {
	first := a.blocks[id].first
	if bytes.Equal(a.bytes(first), a.bytes(id)) {
		return first
	}
	return id
}

// bytes are what lies in the block of a dispatch.
func (a *paramsArena) bytes(id trace.DispatchID) []byte {
	b := &a.blocks[id]
	return a.shadow[b.begin : b.begin+b.size]
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
