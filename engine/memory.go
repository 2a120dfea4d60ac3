package engine

import (
	"cmp"
	"fmt"
	"slices"

	"gpuscope/engine/gpu"
)

// Memory. Every value that lives on the device has a buffer at its maximum size; a live tensor is a contiguous prefix of it. Inputs, outputs,
// constants and State have buffers of their own. Intermediates and scratch share allocation slots by lifetime, one buffer each.
//
// A value may have a slot after another when the last dispatch slot that touches the other, on any route, is submitted before the first that writes it; and
// only if all that write it have a barrier before them in any case, since writing a buffer that the pass has used before puts one there. So sharing adds no
// barrier. What is written without one, the second of two projections side by side, has memory that nothing used before.

// planMemory gives every value its slot, and refuses what the device cannot hold.
func (g *Graph) planMemory() error {
	for i := range g.values {
		if val := &g.values[i]; val.kind == tensor && val.alias == None {
			if err := g.checkSize(val); err != nil {
				return err
			}
		}
	}
	var last []int // by slot: the last dispatch that touches what has it now
	for _, u := range g.uses() {
		val, best := &g.values[u.value], -1
		for s := range g.slots {
			if u.waits && last[s] < u.first && (best < 0 || fit(g.slots[s], val.bytes) < fit(g.slots[best], val.bytes)) {
				best = s
			}
		}
		if best < 0 {
			best = len(g.slots)
			g.slots, last = append(g.slots, 0), append(last, 0)
		}
		g.slots[best] = max(g.slots[best], val.bytes)
		val.slot, last[best] = best, u.last
	}
	for i := range g.values {
		if val := &g.values[i]; val.alias != None {
			val.slot = g.values[val.alias].slot
		}
	}
	return nil
}

// use is the life of an intermediate or of scratch: the first and the last dispatch slot that touch it.
type use struct {
	value       ValueID
	first, last int
	waits       bool // every dispatch slot that writes it has a barrier of its own
}

// uses are the lives of all values that may share memory, in order of submission. What no dispatch touches has none.
func (g *Graph) uses() []use {
	waits := g.waits()
	lives := make([]use, len(g.values))
	var list []use
	for i := range g.dispatches {
		d := &g.dispatches[i]
		for _, v := range slices.Concat(d.reads, d.writes) {
			r := g.root(v)
			if lives[r] == (use{}) {
				lives[r] = use{value: r, first: i, waits: true}
			}
			lives[r].last = i
		}
		for _, v := range d.writes {
			lives[g.root(v)].waits = lives[g.root(v)].waits && waits[i]
		}
	}
	for i := range lives {
		if val := &g.values[i]; lives[i] != (use{}) && (val.role == Intermediate || val.role == Scratch) {
			list = append(list, lives[i])
		}
	}
	slices.SortStableFunc(list, func(a, b use) int { return cmp.Compare(a.first, b.first) })
	return list
}

// fit is how badly a value of want bytes fits a slot of have: the bytes that one of them exceeds the other by.
func fit(have, want int64) int64 { return max(have-want, want-have) }

func (g *Graph) checkSize(v *value) error {
	limit, what := g.limits.MaxStorageBinding, "storage binding"
	if g.limits.MaxBufferSize < limit {
		limit, what = g.limits.MaxBufferSize, "buffer"
	}
	if uint64(v.bytes) > limit {
		return fmt.Errorf("%s %s %v %s needs %d bytes, the device's largest %s is %d: %w", v.role, v.name, v.maxDims, v.dtype, v.bytes, what, limit, gpu.ErrUnsupported)
	}
	return nil
}

// memory is a number for the buffer that a value lives in, the same for values that share one.
func (g *Graph) memory(v ValueID) int {
	if s := g.values[v].slot; s >= 0 {
		return s
	}
	return len(g.slots) + int(g.root(v))
}

// AllocatedBytes is the device memory the graph takes, by what it is for, params not counted.
func (g *Graph) AllocatedBytes() map[string]int64 {
	m := map[string]int64{}
	for i := range g.values {
		if val := &g.values[i]; val.kind == tensor && val.slot < 0 && val.alias == None {
			m[val.role.String()] += val.bytes
		}
	}
	for _, n := range g.slots {
		m["shared"] += n
	}
	return m
}
