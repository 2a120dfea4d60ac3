package engine

import (
	"bytes"
	"fmt"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/trace"
)

// paramsArena is the uniform buffer that holds the params of all dispatch slots. Each slot has a block at the
// device's uniform alignment, and the host keeps a shadow copy of the buffer. A step uploads the changed
// params with at most one write, which covers the range from the first changed block to the last. SymInts
// change with every token. The blocks of operators that read SymInts are therefore placed together at the
// front, which keeps the written range short.
//
// Dispatches are called alike if they run the same kernels and have the same initial params. For example,
// an operator that every layer of a model contains has one dispatch per layer, and these dispatches are
// usually alike. In a group of dispatches that are alike, a dispatch reads the params block of the first
// one if both have equal params. Otherwise it reads its own block. Because blocks are shared in this way, a
// step reads only a few of them. Sharing blocks saves time: when a submit first reads a block, the GPU
// fetches the block from memory, and the dispatch waits for the fetch.
type paramsArena struct {
	buffer gpu.Buffer
	shadow []byte
	blocks []paramsBlock // params block of each dispatch, by dispatch id
	lo, hi int           // range of bytes in `shadow` that is not uploaded yet; empty if lo >= hi
}

// paramsBlock is the position of a dispatch's params in the arena, in bytes.
type paramsBlock struct {
	begin, size int
	first       trace.DispatchID // first of the dispatches that are alike; may be this one
}

// likeness is a map key that is equal for two dispatches if they are alike (see paramsArena).
type likeness struct {
	kernels [graph.MaxRoutes]*graph.Kernel // kernel of each route
	params  string                         // initial params
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

// take stores the params of an operator's plan in shadow, the host's copy of the buffer.
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

// read returns the dispatch whose params block dispatch `id` uses. This is the first dispatch that is alike,
// if both still have equal params. Otherwise it is dispatch `id` itself.
func (a *paramsArena) read(id trace.DispatchID) trace.DispatchID {
	first := a.blocks[id].first
	if bytes.Equal(a.bytes(first), a.bytes(id)) {
		return first
	}
	return id
}

// bytes returns the host's copy of a dispatch's params block.
func (a *paramsArena) bytes(id trace.DispatchID) []byte {
	b := &a.blocks[id]
	return a.shadow[b.begin : b.begin+b.size]
}

// upload writes the changed range of `shadow` to the device and returns the number of bytes written. If the
// upload fails, the range stays marked as changed.
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
