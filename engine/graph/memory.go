package graph

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"gpuscope/engine/gpu"
)

// Memory. Every value on the device has memory for its maximum size; a live tensor is a contiguous prefix of
// it. Inputs, outputs and State have their own buffers, except that outputs that are read back together share
// one. Constants are packed into a few buffers. Intermediates and scratch share allocation slots by lifetime,
// one buffer per slot.
//
// A slot passes from one value to the next when the last dispatch that touches the first one is submitted
// before the first that touches the second. The new content needs a barrier before it, and sharing must not
// add a barrier, whatever routes are in use. That holds in two cases:
//
// (1) A dispatch that has a barrier anyway, because it is the first to read what another wrote.
//
// (2) A dispatch that uses the slot for the first time in its compute pass. Barriers for first uses in a pass
// are merged into the one barrier before the pass.
//
// Of dispatches on one level only one has its own barrier, so the others write new memory, which adds up
// layer by layer. Therefore a step is split into passes wherever the new memory reaches what the graph needs
// in any case (divide), and memory does not grow with depth. A pass begins at a dispatch that has a barrier
// anyway, if possible one whose neighbours have barriers too: these are merged.
//
// Beginning a pass takes about 25 µs on a fast GPU. That is nothing in the step of a long prompt, but too
// much for one token, which does not need the memory. So a graph that is split has a second layout, with
// slots for the smallest inputs, which are small enough to share in one pass. A step uses it if everything
// live fits (Live.Commit).
//
// A dispatch that depends on no computed value (dispatch.free), such as a slice of a mask for each layer,
// never has a barrier. A layer then has one more write than barriers, so each layer needs new memory or one
// more barrier. If its values are large, the barrier costs less than the extra passes, and it gets one
// (Graph.late). A graph with such barriers has a second layout too.

// defaultPassBytes is how much new memory a pass may always use.
const defaultPassBytes = 16 << 20

// barriersPerPass is how many barriers cost as much as beginning a pass: one takes 2 to 5 µs.
const barriersPerPass = 6

// Layout assigns memory to values.
type Layout struct {
	Slots  []int64 // allocation slots: bytes
	slot   []int   // by value; -1: its own memory, or none
	passes []int   // by dispatch: its compute pass
	fits   []int64 // by value: how many live bytes fit
	Base   int     // buffer number of the first slot
	late   int     // values that get an extra barrier for the slot they reuse
}

// planMemory makes the graph's layouts, and returns an error if the device cannot hold them. A pass may
// always use passBytes of new memory.
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

// layOut adds a layout for values of these sizes.
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
	last := []int{} // by slot: the last dispatch that touches its last value
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

// free reports whether sharing slots costs a step nothing: one compute pass, and no extra barriers.
func (p *Layout) free() bool {
	return p.late == 0 && (len(p.passes) == 0 || p.passes[len(p.passes)-1] == 0)
}

// late reports whether a value gets an extra barrier for the memory it reuses, if a pass may use limit bytes
// of new memory.
func (g *Graph) late(l *lifetime, size, limit int64) bool {
	return !l.mayFollow && l.last >= 0 && g.Dispatches[l.first].free && size > limit/barriersPerPass
}

// smallest has the size of every value in bytes with inputs at their smallest and SymInts at their highest,
// rounded up to whole chunks for kernels that read several words at once. It is nil if operators reject those
// shapes.
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

// divide splits the dispatches into compute passes of limit bytes of new memory, and reports whether there is
// more than one.
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

// passStarts is by dispatch the number of barriers that a pass beginning there would merge, 0 if the dispatch
// does not have its own barrier in every step.
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

// fit is how badly a value of want bytes fits a slot of have bytes: the difference.
func fit(have, want int64) int64 { return max(have-want, want-have) }

func (g *Graph) checkSize(v *Value) error {
	limit, what := g.Limits.MaxStorageBinding, "storage binding"
	if g.Limits.MaxBufferSize < limit {
		limit, what = g.Limits.MaxBufferSize, "buffer"
	}
	if uint64(v.Bytes) > limit {
		return fmt.Errorf("%s %s %v %s: %d bytes, device limit for a %s is %d: %w", v.Role, v.Name,
			v.MaxDims, v.DType, v.Bytes, what, limit, gpu.ErrUnsupported)
	}
	return nil
}

// lifetime is when a value's memory is in use, by index in submission order, over all routes.
type lifetime struct {
	first, last int // dispatches that touch it
	readers     []launchOn
	// mayFollow: every dispatch that can be the first to touch it has a barrier anyway, so it may reuse
	// another value's slot.
	mayFollow bool
}

// launchOn is a dispatch slot on a route of its operator.
type launchOn struct{ dispatch, route int }

// usage records which dispatches touch which memory, and where barriers are in any case.
type usage struct {
	lives []lifetime // by root value
	// waits is the bit set of routes on which a dispatch is the first to read a write of its pass, so that it
	// has a barrier.
	waits []uint64
}

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
	// Routes on which its producer, or what materializes it, has touched it.
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

// peak is the most memory that values need at one time: a lower bound for any sharing.
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

// readsFirst reports whether no earlier reader that can run together with this one comes first in a step.
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

// eachBinding calls f for the root of every bound value of every dispatch slot, on each route that a corner
// takes, in submission order.
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

// buffers is the number of slots of all layouts. Values with their own buffer are numbered from there.
func (g *Graph) buffers() (n int) {
	for i := range g.Layouts {
		n += len(g.Layouts[i].Slots)
	}
	return n
}

// Memory is the number of the buffer that holds a value.
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

// AllocatedBytes is the device memory of the graph in bytes, by purpose, without params.
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
