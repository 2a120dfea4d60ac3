package engine

import (
	"cmp"
	"fmt"
	"slices"

	"gpuscope/engine/gpu"
)

// Memory. Every value that lives on the device has a buffer at its maximum size; a live tensor is a
// contiguous prefix of it. Inputs, outputs, constants and State have buffers of their own. Intermediates and
// scratch share allocation slots by lifetime, one buffer each.
//
// A slot passes from one value to the next when the last dispatch that touches the one comes, in order of
// submission, before the first that touches the other. The new content needs a barrier before it, so the slot
// passes on only at a dispatch that has a barrier in any case: one that is the first to read what another
// wrote. Sharing then adds no barrier, whatever routes are in use.

// planMemory gives every value its slot, and refuses what the device cannot hold.
func (g *Graph) planMemory() error {
	lives := g.lifetimes()
	last := []int{} // by slot: the last dispatch that touches the value that had it last
	byFirst := make([]ValueID, 0, len(g.values))
	for i := range g.values {
		val := &g.values[i]
		if val.kind == symInt || val.alias != None || val.role == Fused {
			continue
		}
		if err := g.checkSize(val); err != nil {
			return err
		}
		if (val.role == Intermediate || val.role == Scratch) && val.producer >= 0 {
			byFirst = append(byFirst, ValueID(i))
		}
	}
	slices.SortStableFunc(byFirst,
		func(a, b ValueID) int { return cmp.Compare(lives[a].first, lives[b].first) })
	for _, v := range byFirst {
		val, life := &g.values[v], &lives[v]
		best := -1
		for s := range g.slots {
			if life.mayFollow && last[s] < life.first &&
				(best < 0 || fit(g.slots[s], val.bytes) < fit(g.slots[best], val.bytes)) {
				best = s
			}
		}
		if best < 0 {
			best = len(g.slots)
			g.slots, last = append(g.slots, 0), append(last, 0)
		}
		g.slots[best] = max(g.slots[best], val.bytes)
		val.slot, last[best] = best, life.last
	}
	for i := range g.values {
		if val := &g.values[i]; val.alias != None {
			val.slot = g.values[val.alias].slot
		}
	}
	return nil
}

// fit is how badly a value of want bytes fits a slot of have: the bytes that one of them exceeds the other
// by.
func fit(have, want int64) int64 { return max(have-want, want-have) }

func (g *Graph) checkSize(v *value) error {
	limit, what := g.limits.MaxStorageBinding, "storage binding"
	if g.limits.MaxBufferSize < limit {
		limit, what = g.limits.MaxBufferSize, "buffer"
	}
	if uint64(v.bytes) > limit {
		return fmt.Errorf("%s %s %v %s needs %d bytes, the device's largest %s is %d: %w", v.role, v.name,
			v.maxDims, v.dtype, v.bytes, what, limit, gpu.ErrUnsupported)
	}
	return nil
}

// lifetime is when a value's memory is in use, in dispatches in order of submission, over all routes.
type lifetime struct {
	first, last int // that touch it
	readers     []launchOn
	// mayFollow: every dispatch that can be the first to touch it has a barrier before it in any case, so it
	// may take over another's slot.
	mayFollow bool
}

// launchOn is a dispatch slot on a route of its operator.
type launchOn struct{ dispatch, route int }

// lifetimes are by root value.
func (g *Graph) lifetimes() []lifetime {
	lives := make([]lifetime, len(g.values))
	for i := range lives {
		lives[i] = lifetime{first: len(g.dispatches), last: -1, mayFollow: true}
	}
	g.eachBinding(func(at launchOn, root ValueID, a gpu.Access) {
		l := &lives[root]
		l.first, l.last = min(l.first, at.dispatch), max(l.last, at.dispatch)
		if a == gpu.Read {
			l.readers = append(l.readers, at)
		}
	})
	waits := map[launchOn]bool{} // it is the first to read what a dispatch wrote
	g.eachBinding(func(at launchOn, root ValueID, a gpu.Access) {
		if a == gpu.Read && g.values[root].producer >= 0 && g.readsFirst(lives[root].readers, at) {
			waits[at] = true
		}
	})
	type arrival struct {
		value ValueID
		route int
	}
	arrived := map[arrival]bool{}
	g.eachBinding(func(at launchOn, root ValueID, _ gpu.Access) {
		first := arrival{root, at.route}
		if g.dispatches[at.dispatch].op == g.values[root].producer && !arrived[first] {
			arrived[first] = true
			lives[root].mayFollow = lives[root].mayFollow && waits[at]
		}
	})
	return lives
}

// readsFirst says whether nothing reads a value before, of what can run in the same step.
func (g *Graph) readsFirst(readers []launchOn, at launchOn) bool {
	for _, r := range readers {
		if r.dispatch >= at.dispatch {
			break
		}
		if g.dispatches[r.dispatch].op != g.dispatches[at.dispatch].op || r.route == at.route {
			return false
		}
	}
	return true
}

// eachBinding calls f for the roots of what every dispatch slot binds, on each route that a corner takes, in
// order of submission.
func (g *Graph) eachBinding(f func(at launchOn, root ValueID, a gpu.Access)) {
	for i := range g.dispatches {
		d := &g.dispatches[i]
		for route := range maxRoutes {
			if d.routes>>route&1 == 0 {
				continue
			}
			use := g.ops[d.op].use(d.slot, route)
			for b, bind := range use.Bind {
				f(launchOn{i, route}, g.root(bind.Value), use.Kernel.Storage[b].Access)
			}
		}
	}
}

// memory is a number for the buffer that a value lives in, the same for values that share one.
func (g *Graph) memory(v ValueID) int {
	if s := g.values[v].slot; s >= 0 {
		return s
	}
	return len(g.slots) + int(g.root(v))
}

// sharedMemory is the key of AllocatedBytes for what intermediates share.
const sharedMemory = "shared"

// AllocatedBytes is the device memory the graph takes, by what it is for, params not counted.
func (g *Graph) AllocatedBytes() map[string]int64 {
	m := map[string]int64{}
	for i := range g.values {
		if val := &g.values[i]; val.kind == tensor && val.slot < 0 && val.alias == None && val.role != Fused {
			m[val.role.String()] += val.bytes
		}
	}
	for _, n := range g.slots {
		m[sharedMemory] += n
	}
	return m
}
