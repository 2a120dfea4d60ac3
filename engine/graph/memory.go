package graph

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"gpuscope/engine/gpu"
)

// Every value on the device has memory for its maximum size. A live tensor is stored at the start of its
// memory. Inputs, outputs and State have their own buffers. Constants are packed into a few buffers.
// Intermediates and scratch tensors share allocation slots if their lifetimes do not overlap and if sharing
// adds no barrier to a step. Each slot is a buffer. "Memory" in docs/internals/engine.md explains the rules,
// the compute passes and the two layouts.

// defaultPassBytes is the default limit of Builder.PassBytes, in bytes.
const defaultPassBytes = 16 << 20

// barriersPerPass is the number of barriers (2 to 5 µs each) that take as long as beginning a compute pass.
const barriersPerPass = 6

// Layout is an assignment of memory to values.
type Layout struct {
	Slots  []int64 // size of each allocation slot in bytes
	slot   []int   // by value: its slot; -1 if it has its own buffer or no memory
	passes []int   // by dispatch: its compute pass
	fits   []int64 // by value: largest size that this layout has room for, in bytes
	Base   int     // buffer number of slot 0
	late   int     // number of values that reuse a slot although this adds a barrier
}

// planMemory computes the graph's layouts. It returns an error if a value is too large for the device. A
// compute pass with up to passBytes of new memory is never split.
func (g *Graph) planMemory(passBytes int64) error {
	sizes := make([]int64, len(g.Values))
	for i := range g.Values {
		val := &g.Values[i]
		if val.Kind == SymInt || val.Alias != None || val.Role == Fused {
			continue
		}
		if err := g.checkSize(val); err != nil {
			return err
		}
		sizes[i] = val.Bytes
	}
	if large := g.layOut(sizes, passBytes); large.free() {
		return nil
	}
	if sizes = g.smallest(); sizes != nil {
		g.layOut(sizes, math.MaxInt64)
	}
	return nil
}

// layOut computes a layout for values of the given sizes in bytes and adds it to the graph.
func (g *Graph) layOut(sizes []int64, passBytes int64) *Layout {
	p := Layout{
		slot: make([]int, len(g.Values)), passes: make([]int, len(g.Dispatches)), fits: sizes,
		Base: g.buffers(),
	}
	byFirst := make([]ValueID, 0, len(g.Values))
	for i := range g.Values {
		val := &g.Values[i]
		p.slot[i] = -1
		if (val.Role == Intermediate || val.Role == Scratch) && val.Kind == Tensor && val.Alias == None &&
			val.Producer >= 0 {
			byFirst = append(byFirst, ValueID(i))
		}
	}
	u := g.usage(p.passes)
	slices.SortStableFunc(byFirst,
		func(a, b ValueID) int { return cmp.Compare(u.lives[a].first, u.lives[b].first) })
	limit := max(passBytes, u.peak(&p, byFirst))
	if g.divide(&p, u, byFirst, limit) {
		u = g.usage(p.passes)
	}
	last := []int{} // by slot: last dispatch that uses the slot so far
	for _, v := range byFirst {
		life, size := &u.lives[v], sizes[v]
		take := func(barrier bool) int {
			best := -1
			for s := range p.Slots {
				free := last[s] < life.first &&
					(barrier || last[s] < 0 || p.passes[last[s]] < p.passes[life.first])
				if free && (best < 0 || fit(p.Slots[s], size) < fit(p.Slots[best], size)) {
					best = s
				}
			}
			return best
		}
		best := take(life.mayFollow)
		if best < 0 && g.late(life, size, limit) {
			if best = take(true); best >= 0 {
				p.late++
			}
		}
		if best < 0 {
			best = len(p.Slots)
			p.Slots, last = append(p.Slots, 0), append(last, 0)
		}
		p.Slots[best] = max(p.Slots[best], size)
		p.slot[v], last[best] = best, life.last
	}
	for i := range g.Values {
		if a := g.Values[i].Alias; a != None {
			p.slot[i] = p.slot[a]
		}
	}
	g.Layouts = append(g.Layouts, p)
	g.FirstOwn = g.buffers()
	return &g.Layouts[len(g.Layouts)-1]
}

// free reports whether the layout adds no time to a step. This is the case if all dispatches are in one
// compute pass and no barrier is added.
func (p *Layout) free() bool {
	return p.late == 0 && (len(p.passes) == 0 || p.passes[len(p.passes)-1] == 0)
}

// late reports whether a layout should add a barrier before the first use of a value, so that the value can
// reuse memory. `limit` is the limit of Builder.PassBytes, in bytes.
func (g *Graph) late(l *lifetime, size, limit int64) bool {
	return !l.mayFollow && l.last >= 0 && g.Dispatches[l.first].free && size > limit/barriersPerPass
}

// smallest returns the size of every value in bytes when the inputs have their smallest dims and the SymInts
// their largest values. Each size is rounded up to a multiple of chunk, because some kernels read several
// words at once. smallest returns nil if an operator rejects these shapes.
func (g *Graph) smallest() []int64 {
	const chunk = 256
	l, err := NewLive(g, LiveOptions{})
	for _, v := range g.inputs {
		val := &g.Values[v]
		switch {
		case err != nil:
			return nil
		case val.Kind == SymInt:
			err = l.SetInt(v, val.Hi)
		default:
			host := make([]int64, Numel(val.minDims))
			copy(host, val.firstHost)
			err = cmp.Or(l.SetDims(v, val.minDims...), l.SetHost(v, host))
		}
	}
	if err != nil || l.Propagate() != nil {
		return nil
	}
	l.Commit()
	sizes := make([]int64, len(g.Values))
	l.eachLive(func(v ValueID, bytes int64) { sizes[v] = max(1, (bytes+chunk-1)/chunk) * chunk })
	return sizes
}

// divide splits the dispatches into compute passes with about `limit` bytes of new memory each (see
// Builder.PassBytes). It reports whether there is more than one pass.
func (g *Graph) divide(p *Layout, u *usage, byFirst []ValueID, limit int64) bool {
	starts := g.passStarts(u)
	var fresh, atBest int64
	pass, best, next := 0, -1, 0
	for i := range g.Dispatches {
		if starts[i] > 0 && fresh >= limit/2 && (best < 0 || starts[i] >= starts[best]) {
			best, atBest = i, fresh
		}
		for ; next < len(byFirst) && u.lives[byFirst[next]].first <= i; next++ {
			if v := byFirst[next]; !u.lives[v].mayFollow && !g.late(&u.lives[v], p.fits[v], limit) {
				fresh += p.fits[v]
			}
		}
		p.passes[i] = pass
		if fresh <= limit || best < 0 {
			continue
		}
		pass++
		for j := best; j <= i; j++ {
			p.passes[j] = pass
		}
		fresh, best = fresh-atBest, -1
	}
	return pass > 0
}

// passStarts returns, for each dispatch, how many barriers are merged into one if a compute pass begins at
// this dispatch. The number is 0 if the dispatch has a route on which it has no barrier of its own.
func (g *Graph) passStarts(u *usage) []int {
	always := func(i int) bool {
		routes := uint64(0)
		for _, c := range g.Ops[g.Dispatches[i].Op].corner {
			routes |= 1 << c.Route
		}
		return routes&^u.waits[i] == 0
	}
	starts := make([]int, len(g.Dispatches))
	for i := len(starts) - 1; i >= 0; i-- {
		if !always(i) {
			continue
		}
		starts[i] = 1
		if i+1 < len(starts) && g.Dispatches[i+1].Level == g.Dispatches[i].Level {
			starts[i] += starts[i+1]
		}
	}
	return starts
}

// fit returns how badly a value fits a slot: the absolute difference of their sizes. 0 is a perfect fit.
func fit(have, want int64) int64 { return max(have-want, want-have) }

// checkSize returns an error if a value is too large for a buffer or a storage binding of the device.
func (g *Graph) checkSize(v *Value) error {
	limit, what := g.Limits.MaxStorageBinding, "storage binding"
	if g.Limits.MaxBufferSize < limit {
		limit, what = g.Limits.MaxBufferSize, "buffer"
	}
	if uint64(v.Bytes) > limit {
		return fmt.Errorf("the %s %s, with dims %v of %s, has %d bytes, but the device limit for a %s is %d bytes: %w",
			v.Role, v.Name, v.MaxDims, v.DType, v.Bytes, what, limit, gpu.ErrUnsupported)
	}
	return nil
}

// lifetime is the range of dispatches during which a value must stay in memory, whatever routes are used.
type lifetime struct {
	first, last int // index, in submission order, of the first and last dispatch that uses the value
	readers     []launchOn
	// mayFollow is true if the value can reuse a slot without an additional barrier. This holds if each
	// dispatch that may be the first to use the value has a barrier in any case.
	mayFollow bool
}

// launchOn is a dispatch slot together with a route of its operator.
type launchOn struct{ dispatch, route int }

// usage holds the lifetime of each value, and the dispatches that have a barrier in any case.
type usage struct {
	lives []lifetime // by root value
	// waits holds a set of routes for each dispatch, as bits. On these routes the dispatch has a barrier,
	// because it is the first to read a value that was written in the same compute pass.
	waits []uint64
}

// usage computes the lifetimes and barriers of the graph. `passes` is the compute pass of each dispatch.
func (g *Graph) usage(passes []int) *usage {
	u := &usage{make([]lifetime, len(g.Values)), make([]uint64, len(g.Dispatches))}
	for i := range u.lives {
		u.lives[i] = lifetime{first: len(g.Dispatches), last: -1, mayFollow: true}
	}
	g.eachBinding(func(at launchOn, root ValueID, a gpu.Access) {
		l := &u.lives[root]
		l.first, l.last = min(l.first, at.dispatch), max(l.last, at.dispatch)
		if a == gpu.Read && g.Values[root].Producer >= 0 {
			l.readers = append(l.readers, at)
		}
	})
	for root := range u.lives {
		l := &u.lives[root]
		for i, at := range l.readers {
			if passes[l.first] == passes[at.dispatch] && g.readsFirst(l.readers[:i], at) {
				u.waits[at.dispatch] |= 1 << at.route
			}
		}
	}
	// For each root value, `arrived` and `made` hold sets of routes, as bits. On the routes in `arrived`,
	// the loop has already visited a dispatch of the value's producer that binds the value. On the routes
	// in `made`, it has already visited a dispatch of the value's materializer that binds the value.
	arrived, made := make([]uint64, len(g.Values)), make([]uint64, len(g.Values))
	g.eachBinding(func(at launchOn, root ValueID, _ gpu.Access) {
		first := arrived
		switch g.Dispatches[at.dispatch].Op {
		case g.Values[root].Producer:
		case g.Values[root].materializer:
			first = made
		default:
			return
		}
		if first[root]>>at.route&1 == 0 {
			first[root] |= 1 << at.route
			l := &u.lives[root]
			l.mayFollow = l.mayFollow && u.waits[at.dispatch]>>at.route&1 != 0
		}
	})
	return u
}

// peak returns the largest total size of values that are in use at the same time. No layout can need less
// memory.
func (u *usage) peak(p *Layout, values []ValueID) (peak int64) {
	change := make([]int64, len(p.passes)+1)
	for _, v := range values {
		if l := &u.lives[v]; l.last >= 0 {
			change[l.first] += p.fits[v]
			change[l.last+1] -= p.fits[v]
		}
	}
	var n int64
	for _, c := range change {
		n += c
		peak = max(peak, n)
	}
	return peak
}

// readsFirst reports whether a dispatch on a route is the first reader of a value. `at` is this dispatch and
// route, and `before` lists the readers of the value in order of submission. A reader that is the same
// operator on another route does not count, because it does not run in the same step.
func (g *Graph) readsFirst(before []launchOn, at launchOn) bool {
	for _, r := range before {
		if r.dispatch == at.dispatch {
			break
		}
		if g.Dispatches[r.dispatch].Op != g.Dispatches[at.dispatch].Op || r.route == at.route {
			return false
		}
	}
	return true
}

// eachBinding calls f for each binding of each dispatch slot, in submission order. A slot is visited once for
// each route that a corner uses. root is the value that owns the memory of the bound value.
func (g *Graph) eachBinding(f func(at launchOn, root ValueID, a gpu.Access)) {
	for i := range g.Dispatches {
		d := &g.Dispatches[i]
		for routes := d.routes; routes != 0; routes &= routes - 1 {
			route := bits.TrailingZeros64(routes)
			use := g.Ops[d.Op].Use(d.Slot, route)
			for b, bind := range use.Bind {
				f(launchOn{i, route}, g.Root(bind.Value), use.Kernel.Storage[b].Access)
			}
		}
	}
}

// buffers returns the number of slots in all layouts together. It is also the first buffer number of values
// with their own buffer.
func (g *Graph) buffers() (n int) {
	for i := range g.Layouts {
		n += len(g.Layouts[i].Slots)
	}
	return n
}

// Memory returns the number of the buffer that holds a value in the given layout.
func (g *Graph) Memory(p *Layout, v ValueID) int {
	if s := p.slot[v]; s >= 0 {
		return p.Base + s
	}
	return g.FirstOwn + int(g.Root(v))
}

// HasOwn reports whether a value has its own buffer.
func (g *Graph) HasOwn(v ValueID) bool {
	val := &g.Values[v]
	return val.Kind == Tensor && val.Alias == None && val.Role != Fused &&
		(len(g.Layouts) == 0 || g.Layouts[0].slot[v] < 0)
}

// SharedMemory is the key of AllocatedBytes for memory that intermediates share.
const SharedMemory = "shared"

// AllocatedBytes returns the sizes of the parts of the graph's device memory in bytes, without params. The
// key SharedMemory has the size of the memory that intermediates share. Each other key is a role, with the
// total size of the values of this role that have their own buffers.
func (g *Graph) AllocatedBytes() map[string]int64 {
	m := map[string]int64{}
	for i := range g.Values {
		if val := &g.Values[i]; val.Kind == Tensor && g.HasOwn(ValueID(i)) {
			m[val.Role.String()] += val.Bytes
		}
	}
	for i := range g.Layouts {
		for _, n := range g.Layouts[i].Slots {
			m[SharedMemory] += n
		}
	}
	return m
}
