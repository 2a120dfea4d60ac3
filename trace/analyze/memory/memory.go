package memory

import (
	"cmp"
	"math"
	"slices"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
)

// Tenant is a value that has memory. First and Last say when a step uses the value: they are the indices of
// the first and of the last dispatch that read or write the value or an alias of it. Both are -1 if no
// dispatch does this.
type Tenant struct {
	Value       *trace.Value
	First, Last int
	Live        int64 // bytes that the value needs in this step
	FusedAway   bool  // no dispatch of the step writes the value; its consumers compute it
}

// Shares reports whether the memory of the value is a slot, which other values use at other times.
func (n *Tenant) Shares() bool {
	v := n.Value
	return v.Slot != nil && v.AliasOf == nil && (v.Role == trace.RoleIntermediate ||
		v.Role == trace.RoleScratch) &&
		analyze.NotStored(v) == ""
}

// Tenancy lists the values that have memory in a step, and when they use it.
type Tenancy struct {
	X       *analyze.Index
	Step    int
	Order   []trace.DispatchID // dispatches of the step, or of the graph if Step is -1, in order
	Tenants []Tenant           // indexed by value
	Slots   map[int][]*Tenant  // for each slot number, the values of the slot in order of first use
	Numbers []int              // slot numbers, ascending
}

// Of returns the Tenancy of a step. If `step` is -1, Of returns the Tenancy of the whole graph at its maximum
// shape.
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
			n.Live = 0 // no dispatch of this step uses the value
		}
		s := *n.Value.Slot
		if t.Slots[s] == nil {
			t.Numbers = append(t.Numbers, s)
		}
		t.Slots[s] = append(t.Slots[s], n)
	}
	slices.Sort(t.Numbers)
	for _, list := range t.Slots {
		slices.SortStableFunc(list, func(a, b *Tenant) int { // for unused values, uint(-1) sorts last
			return cmp.Compare(uint(a.First), uint(b.First))
		})
	}
	return t
}

// findFusedAway sets FusedAway for the values that this step does not write although other steps may write
// them. It does so for intermediates and for views of them.
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

// FusedAway is the text of a table cell for a value that was fused away. The step does not compute such a
// value.
const FusedAway = "fused away"

// liveBytes returns the number of bytes that a value needs in a step. The number is a multiple of 4.
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
	// Dims read from a damaged file can be very large, so the result is at most the size of the value.
	return int64(min(float64(v.Bytes), 4*words))
}

// Holding is a part of the device memory: one slot, or all separate buffers of the same role.
type Holding struct {
	Key, Label string
	Parent     int
	Values     int
	Allocated  int64
	Live       int64
	Largest    *trace.Value // the largest value; a slot is as large as this value
	Peak       *Tenant      // the Tenant of the value Largest
}

// Add adds a value to the holding. The size of the holding is the sum of the sizes of its values. If `shared`
// is set, the values share memory, and the size of the holding is the largest of their sizes.
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
