package inspect

import (
	"cmp"
	"math"
	"slices"

	"gpuscope/trace"
)

// Tenant is a value with memory, and when it is in use: the places of the first and the last dispatch that
// touch it or what is an alias of it, -1 where none does.
type Tenant struct {
	Value       *trace.Value
	First, Last int
	Live        int64 // bytes at the step
	Left        bool  // nothing writes it in the step: who takes it does without it
}

// shares says whether the value takes turns in a slot.
func (n *Tenant) shares() bool {
	v := n.Value
	return v.Slot != nil && v.AliasOf == nil && (v.Role == "intermediate" || v.Role == "scratch") &&
		Nowhere(v) == ""
}

// tenancy is who holds memory in a step.
type tenancy struct {
	x       *Index
	step    int
	order   []trace.DispatchID // that run; of no step all there are
	tenants []Tenant           // by value
	slots   map[int][]*Tenant  // in the order of the step
	numbers []int              // of slots, rising
}

// tenancy finds out who holds memory in a step, -1 for the graph at its largest.
func (x *Index) tenancy(step int) *tenancy {
	g := &x.Trace.Graph
	t := &tenancy{x: x, step: step, tenants: make([]Tenant, len(g.Values)), slots: map[int][]*Tenant{}}
	for i := range g.Values {
		v := &g.Values[i]
		t.tenants[i] = Tenant{Value: v, First: -1, Last: -1, Live: v.Bytes}
		if step >= 0 {
			t.tenants[i].Live = x.liveBytes(step, v)
		}
	}
	add := func(id trace.DispatchID, touched []trace.ValueID) {
		at := len(t.order)
		t.order = append(t.order, id)
		for _, v := range touched {
			n := &t.tenants[x.root(v)]
			if n.First < 0 {
				n.First = at
			}
			n.Last = at
		}
	}
	if step >= 0 {
		for _, l := range x.planned(step) {
			reads, writes := x.touches(l.Plan)
			add(l.ID, slices.Concat(reads, writes))
		}
		if len(t.order) > 0 {
			t.findLeft()
		}
	} else {
		for i := range g.Dispatches {
			d := &g.Dispatches[i]
			add(d.ID, slices.Concat(d.Reads, d.Writes))
		}
	}
	for i := range t.tenants {
		n := &t.tenants[i]
		if !n.shares() {
			continue
		}
		if step >= 0 && n.First < 0 {
			n.Live = 0 // the route in force has no use for it
		}
		s := *n.Value.Slot
		if t.slots[s] == nil {
			t.numbers = append(t.numbers, s)
		}
		t.slots[s] = append(t.slots[s], n)
	}
	slices.Sort(t.numbers)
	for _, list := range t.slots {
		slices.SortStableFunc(list, func(a, b *Tenant) int { // what is not in use stands last
			return cmp.Compare(uint(a.First), uint(b.First))
		})
	}
	return t
}

// findLeft finds what the step leaves: intermediates that dispatches of other steps write, and views of them.
func (t *tenancy) findLeft() {
	x, g := t.x, &t.x.Trace.Graph
	for i := range g.Dispatches {
		for _, v := range g.Dispatches[i].Writes {
			n := &t.tenants[x.root(v)]
			n.Left = n.First < 0 && n.Value.Role == "intermediate"
		}
	}
	for i := range t.tenants {
		t.tenants[i].Left = t.tenants[x.root(trace.ValueID(i))].Left
	}
}

// left is said of what the step leaves in place of what it has live.
const left = "left"

// liveBytes is what a value needs at the live shape of a step, in whole words.
func (x *Index) liveBytes(step int, v *trace.Value) int64 {
	elements := func(dims []int) float64 {
		n := 1.0
		for _, d := range dims {
			n *= float64(d)
		}
		return n
	}
	most, live := elements(v.MaxDims), x.Dims(step, v.ID)
	if v.Kind == "symint" || most == 0 || live == nil {
		return 0
	}
	words := math.Ceil(float64(v.Bytes) * elements(live) / most / 4)
	return int64(min(float64(v.Bytes), 4*words)) // a file may have dims of any size
}

// holding is a part of the memory: a role's own buffers, or a slot.
type holding struct {
	key, label string
	parent     int
	values     int
	allocated  int64
	live       int64
	largest    *trace.Value // that makes it so large
	peak       *Tenant      // of a slot
}

func (h *holding) add(n *Tenant, shared bool) {
	h.values++
	if shared {
		h.allocated, h.live = max(h.allocated, n.Value.Bytes), max(h.live, n.Live)
	} else {
		h.allocated, h.live = h.allocated+n.Value.Bytes, h.live+n.Live
	}
	if h.largest == nil || n.Value.Bytes > h.largest.Bytes {
		h.largest, h.peak = n.Value, n
	}
}
