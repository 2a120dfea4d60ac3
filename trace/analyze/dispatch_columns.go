package analyze

import (
	"math"
)

// Grids are the least and the most workgroups of the dispatches of a row that ran.
func (t *DispatchTree) Grids(r *DispatchRow) (least, most int64) {
	least = math.MaxInt64
	for _, u := range r.Units {
		for _, i := range u {
			least = min(least, Product(t.Launches[i].Least))
			most = max(most, Product(t.Launches[i].Most))
		}
	}
	return least, most
}
