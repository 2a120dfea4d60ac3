package memory

import (
	"cmp"
	"math"
	"slices"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
)

// Tenant is a value that has memory, with the time of its use. First and Last are the positions of the
// first and the last dispatch that touch the value or an alias of it. First and Last are -1 if no dispatch
// touches the value.
type Tenant struct {
	Value       *trace.Value
	First, Last int
	Live        int64 // live bytes at the step
	FusedAway   bool  // no dispatch of the step writes the value, because its consumers compute it
}

// Shares reports whether the value shares a memory slot with other values over time.
func (n *Tenant) Shares() bool {
	v := n.Value
	return v.Slot != nil && v.AliasOf == nil && (v.Role == trace.RoleIntermediate ||
		v.Role == trace.RoleScratch) &&
		analyze.NotStored(v) == ""
}

// Tenancy lists which values hold memory in a step.
type Tenancy struct {
	X       *analyze.Index
	Step    int
	Order   []trace.DispatchID // dispatches in order of submission; without a step, all of the graph
	Tenants []Tenant           // indexed by value
	Slots   map[int][]*Tenant  // values of each slot, in order of first use
	Numbers []int              // slot numbers, ascending
}

// Of computes which values hold memory in a step. step may be -1 for the graph at its maximum shape.
func Of(x *analyze.Index, step int) *Tenancy {
	g := &x.Trace.Graph
	t := &Tenancy{X: x, Step: step, Tenants: make([]Tenant, len(g.Values)), Slots: map[int][]*Tenant{}}
	for i := range g.Values {
		v := &g.Values[i]
		t.Tenants[i] = Tenant{Value: v, First: -1, Last: -1, Live: v.Bytes}
		if step >= 0 {
			t.Tenants[i].Live = liveBytes(x, step, v)
		}
	}
	add := func(id trace.DispatchID, touched []trace.ValueID) {
		at := len(t.Order)
		t.Order = append(t.Order, id)
		for _, v := range touched {
			n := &t.Tenants[x.Root(v)]
			if n.First < 0 {
				n.First = at
			}
			n.Last = at
		}
	}
	if step >= 0 {
		for _, l := range x.Planned(step) {
			reads, writes := x.Touches(l.Plan)
			add(l.ID, slices.Concat(reads, writes))
		}
		if len(t.Order) > 0 {
			t.findFusedAway()
		}
	} else {
		for i := range g.Dispatches {
			d := &g.Dispatches[i]
			add(d.ID, slices.Concat(d.Reads, d.Writes))
		}
	}
	for i := range t.Tenants {
		n := &t.Tenants[i]
		if !n.Shares() {
			continue
		}
		if step >= 0 && n.First < 0 {
			n.Live = 0 // the routes of this step do not use the value
		}
		s := *n.Value.Slot
		if t.Slots[s] == nil {
			t.Numbers = append(t.Numbers, s)
		}
		t.Slots[s] = append(t.Slots[s], n)
	}
	slices.Sort(t.Numbers)
	for _, list := range t.Slots {
		slices.SortStableFunc(list, func(a, b *Tenant) int { // unused values have First = -1 and come last
			return cmp.Compare(uint(a.First), uint(b.First))
		})
	}
	return t
}

// findFusedAway marks the values that the step does not write: intermediates that dispatches write only in
// other steps, and views of such intermediates.
func (t *Tenancy) findFusedAway() {
	x, g := t.X, &t.X.Trace.Graph
	for i := range g.Dispatches {
		for _, v := range g.Dispatches[i].Writes {
			n := &t.Tenants[x.Root(v)]
			n.FusedAway = n.First < 0 && n.Value.Role == trace.RoleIntermediate
		}
	}
	for i := range t.Tenants {
		t.Tenants[i].FusedAway = t.Tenants[x.Root(trace.ValueID(i))].FusedAway
	}
}

// FusedAway is the text of a table cell for a value that the step does not compute because it is fused
// away.
const FusedAway = "fused away"

// liveBytes returns the bytes that a value needs at the live shape of a step, rounded up to words of 4
// bytes.
func liveBytes(x *analyze.Index, step int, v *trace.Value) int64 {
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
	// The result is limited to the value's size, because dims read from a file may be arbitrarily large.
	return int64(min(float64(v.Bytes), 4*words))
}

// Holding is a part of the device memory: a slot, or the separate buffers of one role.
type Holding struct {
	Key, Label string
	Parent     int
	Values     int
	Allocated  int64
	Live       int64
	Largest    *trace.Value // the largest value, which determines the size of a slot
	Peak       *Tenant      // the tenant of Largest
}

// Add adds a value to the holding. If shared is true, the values share memory, so the size of the holding
// is the largest of their sizes, else the sum.
func (h *Holding) Add(n *Tenant, shared bool) {
	h.Values++
	if shared {
		h.Allocated, h.Live = max(h.Allocated, n.Value.Bytes), max(h.Live, n.Live)
	} else {
		h.Allocated, h.Live = h.Allocated+n.Value.Bytes, h.Live+n.Live
	}
	if h.Largest == nil || n.Value.Bytes > h.Largest.Bytes {
		h.Largest, h.Peak = n.Value, n
	}
}
