package graph

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"gpuscope/engine/gpu"
)

// Memory. Every value that lives on the device has memory for its maximum size; a live tensor is a
// contiguous prefix of it. Inputs, outputs and State have buffers of their own, but outputs that come to the
// host together; constants lie one after another in a few. Intermediates and scratch share allocation
// slots by lifetime, one buffer each.
//
// A slot passes from one value to the next when the last dispatch that touches the one comes, in order of
// submission, before the first that touches the other. The new content needs a barrier before it, and sharing
// must not add one, whatever routes are in use. There are two places where it does not:
//
//   - A dispatch that has a barrier in any case: one that is the first to read what another wrote.
//   - A dispatch that meets the slot for the first time in its compute pass. All that a pass meets first is
//     joined into the one barrier that stands before the pass.
//
// Of dispatches side by side only one has a barrier of its own, so what the others write is new memory: it
// adds up, layer by layer. Therefore a step is cut into passes wherever so much has come together as the
// graph needs in any case (divide), and memory does not grow with depth. A pass begins at a dispatch that has
// a barrier anyway, if possible one that has neighbours with barriers of their own: these become one.
//
// Beginning a pass takes about 25 µs on a fast GPU: nothing in the step of a long prompt, too much in that of
// one token, for which the memory would not be needed. So a graph that is cut has a second layout: slots for
// the smallest inputs, which are small enough to be shared in one pass. A step takes it where all that is
// live fits (Live.Commit).
//
// What nothing computed holds back (dispatch.free), such as a slice of a mask for each layer, never has a
// barrier, wherever it stands: a layer has a write more than it has barriers, so each layer takes new memory,
// or has a barrier more. Where its values are large the barrier costs less than the passes that would take
// them, and it gets one (Graph.late). A graph with such barriers has a second layout too.

// defaultPassBytes is the new memory that a pass may take whatever the graph needs.
const defaultPassBytes = 16 << 20

// barriersPerPass is how many barriers cost as much as the beginning of a pass: one takes 2 to 5 µs.
const barriersPerPass = 6

// Layout says where values live.
type Layout struct {
	Slots  []int64 // allocation slots: bytes
	slot   []int   // by value; -1: it has memory of its own, or none
	passes []int   // by dispatch: the compute pass it belongs to
	fits   []int64 // by value: the live bytes that there is room for
	Base   int     // the number of the first slot among the graph's buffers
	late   int     // values that are given a barrier for the slots that they take over
}

// planMemory makes the graph's layouts, and refuses what the device cannot hold. A pass may take passBytes
// bytes of new memory.
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
	last := []int{} // by slot: the last dispatch that touches the value that had it last
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

// free says whether sharing slots costs steps nothing: they have one compute pass, and no barrier more than
// they would have without.
func (p *Layout) free() bool {
	return p.late == 0 && (len(p.passes) == 0 || p.passes[len(p.passes)-1] == 0)
}

// late says whether a value gets a barrier for the memory it takes, where a pass may take limit bytes of new
// memory.
func (g *Graph) late(l *lifetime, size, limit int64) bool {
	return !l.mayFollow && l.last >= 0 && g.Dispatches[l.first].free && size > limit/barriersPerPass
}

// smallest has the bytes of every value where inputs are at their smallest and SymInts at their highest, in
// whole chunks, so that kernels which read several words at a time find them; nil where operators refuse
// that.
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

// divide cuts the dispatches into compute passes of limit bytes of new memory, and says whether it made more
// than one.
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

// passStarts says for each dispatch how many barriers would be one if a pass began with it: 0 where it has
// none of its own in every step.
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

// fit is how badly a value of want bytes fits a slot of have: the bytes that one of them exceeds the other
// by.
func fit(have, want int64) int64 { return max(have-want, want-have) }

func (g *Graph) checkSize(v *Value) error {
	limit, what := g.Limits.MaxStorageBinding, "storage binding"
	if g.Limits.MaxBufferSize < limit {
		limit, what = g.Limits.MaxBufferSize, "buffer"
	}
	if uint64(v.Bytes) > limit {
		return fmt.Errorf("%s %s %v %s needs %d bytes, the device's largest %s is %d: %w", v.Role, v.Name,
			v.MaxDims, v.DType, v.Bytes, what, limit, gpu.ErrUnsupported)
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

// usage is who touches what memory when, and where barriers stand in any case.
type usage struct {
	lives []lifetime // by root value
	// waits has the routes, by bit, on which a dispatch is the first to read what a dispatch of its pass
	// wrote: it has a barrier.
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
	// Routes on which something of its producer, or of what makes it, has touched it.
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

// peak is the most that values need at one time, so what no sharing can go below.
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

// readsFirst says whether none of the readers before comes first in a step: of what can run together.
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

// eachBinding calls f for the roots of what every dispatch slot binds, on each route that a corner takes, in
// order of submission.
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

// buffers is the number of slots of all layouts. Buffers are counted on from there, a number for each value.
func (g *Graph) buffers() (n int) {
	for i := range g.Layouts {
		n += len(g.Layouts[i].Slots)
	}
	return n
}

// Memory is a number for the buffer that a value lives in, the same for values that share one.
func (g *Graph) Memory(p *Layout, v ValueID) int {
	if s := p.slot[v]; s >= 0 {
		return p.Base + s
	}
	return g.FirstOwn + int(g.Root(v))
}

// HasOwn says whether a value has memory of its own.
func (g *Graph) HasOwn(v ValueID) bool {
	val := &g.Values[v]
	return val.Kind == Tensor && val.Alias == None && val.Role != Fused &&
		(len(g.Layouts) == 0 || g.Layouts[0].slot[v] < 0)
}

// SharedMemory is the key of AllocatedBytes for what intermediates share.
const SharedMemory = "shared"

// AllocatedBytes is the device memory the graph takes, by what it is for, params not counted.
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
