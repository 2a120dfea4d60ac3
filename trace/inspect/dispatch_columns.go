package inspect

import (
	"math"
)

// grids are the least and the most workgroups of the dispatches of a row that ran.
func (t *DispatchTree) grids(r *DispatchRow) (least, most int64) {
	least = math.MaxInt64
	for _, u := range r.Units {
		for _, i := range u {
			least = min(least, product(t.Launches[i].Least))
			most = max(most, product(t.Launches[i].Most))
		}
	}
	return least, most
}
