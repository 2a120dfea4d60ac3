package graph

import (
	"gpuscope/engine/graph/grid"
	"gpuscope/trace"
)

// The methods below create grids with the device's limit for workgroups per dimension. If a grid exceeds the
// limit, they record an error in the planner and return the zero Grid.

// Vectors calls grid.Vectors with the device's limit.
func (p *Planner) Vectors(n, each, lanes int) grid.Grid {
	return p.grid(grid.Vectors(p.limits.MaxWorkgroups, n, each, lanes))
}

// Rows calls grid.Rows with the device's limit.
func (p *Planner) Rows(lanes, busy int, terms ...trace.Term) grid.Grid {
	return p.grid(grid.Rows(p.limits.MaxWorkgroups, lanes, busy, terms...))
}

// Tiles calls grid.Tiles with the device's limit.
func (p *Planner) Tiles(lanes int, cols, rows trace.Term, rest ...trace.Term) grid.Grid {
	return p.grid(grid.Tiles(p.limits.MaxWorkgroups, lanes, cols, rows, rest...))
}

// Stride calls grid.Stride with the device's limit.
func (p *Planner) Stride(n int) grid.Grid { return p.grid(grid.Stride(p.limits.MaxWorkgroups, n)) }

func (p *Planner) grid(g grid.Grid, err error) grid.Grid {
	if err != nil {
		p.Errorf("%w", err)
	}
	return g
}
