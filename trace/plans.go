package trace

import (
	"slices"
	"strconv"
	"strings"
)

// Part is a named set of a step's dispatches, such as one or more rows of a table. The cost of a part is
// the time that the step saves when the dispatches of the part are skipped.
type Part struct {
	Name       string       `json:"name"`
	Dispatches []DispatchID `json:"dispatches"` // in rising order
}

// SetKey returns a map key for a set of ids. Two lists with the same ids in any order have the same key.
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

// Same reports whether two plans are equal apart from their ids and dispatches.
func (p *Plan) Same(q *Plan) bool {
	x := *p
	x.ID, x.Dispatch, x.Grid, x.Unknown = q.ID, q.Dispatch, q.Grid, q.Unknown
	return x == *q && p.Unknown == q.Unknown && p.Grid.same(q.Grid)
}

func (g *Grid) same(h *Grid) bool {
	return g == h || g != nil && h != nil && g.Rule == h.Rule && slices.Equal(g.Terms, h.Terms)
}

// SameKernel reports whether two plans run the same kernel by the same route. An edited kernel is a
// different kernel here, unlike in Reroutes.
func (p *Plan) SameKernel(q *Plan) bool { return p.Kernel == q.Kernel && p.Route == q.Route }

// SameWork reports whether two plans run the same kernel on the same grid with the same modelled work. Their
// parameters may differ.
func (p *Plan) SameWork(q *Plan) bool {
	return p.Kernel == q.Kernel && p.Workgroups == q.Workgroups && p.NeededGroups == q.NeededGroups &&
		p.Bytes == q.Bytes && p.FLOPs == q.FLOPs
}

// Reroutes reports whether the dispatch uses a different route or kernel in q than in p. A nil plan means
// that the dispatch did not run. An edited kernel counts as the kernel that it replaces.
func (p *Plan) Reroutes(q *Plan) bool {
	if p == nil || q == nil {
		return p != q
	}
	return p.Route != q.Route || p.Kernel != q.Kernel && OwnKernel(p.Kernel) != OwnKernel(q.Kernel)
}
