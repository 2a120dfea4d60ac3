package trace

import (
	"slices"
	"strconv"
	"strings"
)

// Part is a set of a step's dispatches with a name. It can be one or several rows of a table. The cost of a
// part is the time that a step saves if these dispatches are skipped.
type Part struct {
	Name       string       `json:"name"`
	Dispatches []DispatchID `json:"dispatches"` // in rising order
	// Rival is set if the part is a row that may be the one to fix first. LeastNS is the shortest time in ns
	// in which the device could do the work of the part; 0 if not known.
	Rival   bool  `json:"rival,omitempty"`
	LeastNS int64 `json:"least_ns,omitempty"`
}

// SetKey returns a text that identifies a set of ids and can be the key of a map. The order of the ids in the
// list does not matter.
func SetKey[ID ~int32](ids []ID) string {
	if !slices.IsSorted(ids) {
		ids = slices.Sorted(slices.Values(ids))
	}
	var b strings.Builder
	for _, id := range ids {
		b.WriteString(strconv.Itoa(int(id)))
		b.WriteByte(' ')
	}
	return b.String()
}

// Same reports whether two plans are equal in everything but the id and the dispatch.
func (p *Plan) Same(q *Plan) bool {
	x := *p
	x.ID, x.Dispatch, x.Grid, x.Unknown = q.ID, q.Dispatch, q.Grid, q.Unknown
	return x == *q && p.Unknown == q.Unknown && p.Grid.same(q.Grid)
}

func (g *Grid) same(h *Grid) bool {
	return g == h || g != nil && h != nil && g.Rule == h.Rule && slices.Equal(g.Terms, h.Terms)
}

// SameKernel reports whether two plans have the same kernel and the same route. SameKernel distinguishes an
// edited kernel from the original. Reroutes does not.
func (p *Plan) SameKernel(q *Plan) bool { return p.Kernel == q.Kernel && p.Route == q.Route }

// SameWork reports whether two plans have the same kernel, the same grid and the same modelled work. Their
// params may differ.
func (p *Plan) SameWork(q *Plan) bool {
	return p.Kernel == q.Kernel && p.Workgroups == q.Workgroups && p.NeededGroups == q.NeededGroups &&
		p.Bytes == q.Bytes && p.FLOPs == q.FLOPs
}

// Reroutes reports whether the route or the kernel of a dispatch changes from plan p to plan q. A plan is nil
// if the dispatch does not run. An edited kernel is considered the same as the kernel that it replaces.
func (p *Plan) Reroutes(q *Plan) bool {
	if p == nil || q == nil {
		return p != q
	}
	return p.Route != q.Route || p.Kernel != q.Kernel && OwnKernel(p.Kernel) != OwnKernel(q.Kernel)
}
