package engine

import (
	"fmt"

	"gpuscope/engine/gpu"
)

// Memory. Every value that lives on the device has a buffer at its maximum size; a live tensor is a contiguous prefix of it. Inputs, outputs,
// constants and State have buffers of their own. Intermediates and scratch share allocation slots by lifetime, one buffer each.
//
// A slot passes from value a to value b only where every operator that touches a is an ancestor, by data, of the operator that makes b. Then
// each route from a's readers to b's writer holds a true dependency, so the sharing adds no barrier, whatever routes are in
// use; and no operator finds two of its arguments in one buffer.

// bitset is a set of operators.
type bitset []uint64

func newBitset(n int) bitset    { return make(bitset, (n+63)/64) }
func (s bitset) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s bitset) remove(i int)   { s[i/64] &^= 1 << (i % 64) }
func (s bitset) has(i int) bool { return s[i/64]>>(i%64)&1 != 0 }
func (s bitset) union(other bitset) {
	for i, w := range other {
		s[i] |= w
	}
}
func (s bitset) within(o bitset) bool {
	for i, w := range s {
		if w&^o[i] != 0 {
			return false
		}
	}
	return true
}

// planMemory gives every value its slot, and refuses what the device cannot hold.
func (g *Graph) planMemory() error {
	users := g.users()
	ancestors := g.ancestors(users)
	last := []ValueID{} // by slot: the value that had it last
	for i := range g.values {
		v := ValueID(i)
		val := &g.values[v]
		if val.kind == symInt || val.alias != None {
			continue
		}
		if err := g.checkSize(val); err != nil {
			return err
		}
		if val.role != Intermediate && val.role != Scratch || val.producer < 0 {
			continue
		}
		best := -1
		for s := range g.slots {
			if users[last[s]].within(ancestors[val.producer]) && (best < 0 || fit(g.slots[s], val.bytes) < fit(g.slots[best], val.bytes)) {
				best = s
			}
		}
		if best < 0 {
			best = len(g.slots)
			g.slots, last = append(g.slots, 0), append(last, v)
		}
		g.slots[best] = max(g.slots[best], val.bytes)
		val.slot, last[best] = best, v
	}
	for i := range g.values {
		if val := &g.values[i]; val.alias != None {
			val.slot = g.values[val.alias].slot
		}
	}
	return nil
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

// touched are the values that an operator's dispatches read or write, without those that only its plan looks at. An aliased operator
// dispatches nothing and passes its input on.
func (g *Graph) touched(o *op) []ValueID {
	if o.aliased {
		return []ValueID{o.spec.Inputs[0], o.spec.Outputs[0]}
	}
	var list []ValueID
	for _, slot := range o.spec.Slots {
		for _, use := range slot.Uses {
			list = append(list, use.Bind...)
		}
	}
	return list
}

// users are, by value, the operators whose dispatches touch its memory, aliases included.
func (g *Graph) users() []bitset {
	users := make([]bitset, len(g.values))
	for i := range g.values {
		users[i] = newBitset(len(g.ops))
		if p := g.values[i].producer; p >= 0 {
			users[i].add(int(p))
		}
	}
	for i := range g.ops {
		for _, v := range g.touched(&g.ops[i]) {
			users[g.root(v)].add(i)
		}
	}
	return users
}

// ancestors are, by operator, the operators whose dispatches some dispatch of it must wait for in any case: those that its tensors come from. A
// SymInt crosses no barrier, and does not count.
func (g *Graph) ancestors(users []bitset) []bitset {
	ancestors := make([]bitset, len(g.ops))
	for i := range g.ops {
		ancestors[i] = newBitset(len(g.ops))
		for _, v := range g.touched(&g.ops[i]) {
			val := &g.values[v]
			switch {
			case val.role == State:
				for p := range i {
					if users[v].has(p) {
						ancestors[i].add(p)
						ancestors[i].union(ancestors[p])
					}
				}
			case val.producer >= 0 && int(val.producer) != i:
				ancestors[i].add(int(val.producer))
				ancestors[i].union(ancestors[val.producer])
			}
		}
	}
	return ancestors
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
