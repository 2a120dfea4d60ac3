package graph

import (
	"cmp"
	"math"
	"slices"

	"gpuscope/engine/gpu"
	"gpuscope/trace"
)

// A level consists of the dispatches between two barriers. The native WebGPU library inserts a barrier before
// a dispatch that uses a buffer differently from its last use. The graph knows the buffers of each dispatch,
// so levels are computed without a device. "Levels" in docs/internals/engine.md explains what they are used
// for.

// findLevels appends the dispatch slots of all operators to g.Dispatches and computes the level of each.
func (g *Graph) findLevels() {
	h := hazards{g: g, writers: make([][]int, len(g.Values)), readers: make([][]int, len(g.Values))}
	for i := range g.Ops {
		o := &g.Ops[i]
		if o.Aliased {
			continue
		}
		for s := range o.Spec.Slots {
			d := g.newDispatch(o, s)
			if d.routes == 0 {
				continue // no corner uses this slot
			}
			d.Level = h.place(len(g.Dispatches), &d)
			g.Dispatches = append(g.Dispatches, d)
		}
	}
	g.delay(&h)
}

// order sorts the dispatch slots by level. The result is the order of submission.
func (g *Graph) order() {
	slices.SortStableFunc(g.Dispatches, func(a, b dispatch) int { return cmp.Compare(a.Level, b.Level) })
	for i := range g.Ops {
		o := &g.Ops[i]
		o.Dispatches = make([]trace.DispatchID, len(o.Spec.Slots))
		for s := range o.Dispatches {
			o.Dispatches[s] = -1
		}
	}
	for i := range g.Dispatches {
		d := &g.Dispatches[i]
		g.Ops[d.Op].Dispatches[d.Slot] = trace.DispatchID(i)
	}
}

func (g *Graph) newDispatch(o *Op, slot int) dispatch {
	d := dispatch{Op: o.ID, Slot: slot}
	for c := range o.corner {
		if o.corner[c].Launches[slot].Active {
			d.routes |= 1 << o.corner[c].Route
		}
	}
	for _, use := range o.Spec.Slots[slot].Uses {
		if use.Kernel == nil {
			continue
		}
		for i, bind := range use.Bind {
			v, storage := bind.Value, &use.Kernel.Storage[i]
			if storage.Access == gpu.ReadWrite && !slices.Contains(d.Writes, v) {
				d.Writes = append(d.Writes, v)
			}
			if (storage.reads() || g.Values[v].Role == State) &&
				!slices.Contains(d.reads, v) {
				d.reads = append(d.reads, v)
			}
		}
	}
	for _, v := range o.Spec.Inputs {
		d.SymInts = d.SymInts || g.Values[v].Kind == SymInt
	}
	return d
}

// hazards finds the dispatches that each dispatch slot must follow. For each value it records the last writer
// and the readers since that write. Two slots of the same operator never conflict if no route uses both of
// them.
type hazards struct {
	g                *Graph
	placed           []*dispatch
	writers, readers [][]int // by root value: indices in `placed`
	before           [][]int // by dispatch: other dispatches that must run before it
}

// place adds the next dispatch slot. It returns the slot's level, which follows from the slots placed before.
func (h *hazards) place(id int, d *dispatch) int {
	level := 0
	var before []int
	after := func(others []int) {
		for _, i := range others {
			if o := h.placed[i]; o.Op != d.Op || o.routes&d.routes != 0 {
				level = max(level, o.Level+1)
				before = append(before, i)
			}
		}
	}
	for _, v := range d.reads {
		after(h.writers[h.g.Root(v)])
	}
	for _, v := range d.Writes {
		after(h.writers[h.g.Root(v)])
		after(h.readers[h.g.Root(v)])
	}
	for _, v := range d.Writes {
		r := h.g.Root(v)
		apart := func(i int) bool { return h.placed[i].Op != d.Op || h.placed[i].routes&d.routes != 0 }
		h.writers[r] = append(slices.DeleteFunc(h.writers[r], apart), id)
		h.readers[r] = slices.DeleteFunc(h.readers[r], apart)
	}
	for _, v := range d.reads {
		h.readers[h.g.Root(v)] = append(h.readers[h.g.Root(v)], id)
	}
	placed := *d
	placed.Level = level
	h.placed = append(h.placed, &placed)
	h.before = append(h.before, before)
	return level
}

// delay moves each free dispatch to the level just before the first dispatch that depends on it. A free
// dispatch does not write State. It reads only inputs, constants and the results of other free dispatches.
//
// Some free dispatches read a result that has several readers. For example, each layer may copy a slice of
// the same mask. Such a dispatch is moved only if the shared result is the only computed value that it
// reads. The dispatch needs a barrier, because it waits for the shared result. If the dispatch runs later,
// another reader of the result needs this barrier instead, so the number of barriers stays the same.
func (g *Graph) delay(h *hazards) {
	readers := make([]int, len(g.Values))
	for i := range g.Dispatches {
		for _, v := range g.Dispatches[i].reads {
			readers[g.Root(v)]++
		}
	}
	latest := make([]int, len(g.Dispatches))
	for i := range g.Dispatches {
		d := &g.Dispatches[i]
		latest[i], d.free = math.MaxInt, true
		for _, b := range h.before[i] {
			d.free = d.free && g.Dispatches[b].free
		}
		made, shared := 0, false
		// `held` is the number of bytes of computed inputs that the dispatch needs. An input with n readers
		// counts with 1/n of its size. `gives` is the size of the outputs in bytes. A delay keeps the inputs
		// in memory longer, so it pays only if `held` does not exceed `gives`.
		var held, gives int64
		for _, v := range d.reads {
			val, n := &g.Values[g.Root(v)], readers[g.Root(v)]
			if val.Producer >= 0 {
				made, shared = made+1, shared || n > 1
				held += val.Bytes / int64(n)
			}
			d.free = d.free && val.Role != State
		}
		for _, v := range d.Writes {
			d.free = d.free && g.Values[v].Role != State
			gives += g.Values[v].Bytes
		}
		d.free = d.free && held <= gives && (made <= 1 || !shared)
	}
	for i := len(latest) - 1; i >= 0; i-- {
		d := &g.Dispatches[i]
		if d.free && latest[i] != math.MaxInt {
			d.Level = latest[i]
		}
		for _, b := range h.before[i] {
			latest[b] = min(latest[b], d.Level-1)
		}
	}
}
