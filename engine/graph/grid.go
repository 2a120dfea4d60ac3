package graph

import (
	"gpuscope/engine/graph/grid"
	"gpuscope/trace"
)

// The methods below make grids for the device's limit. If the device cannot run a grid they record an error
// in the planner and return the zero Grid.

// Vectors is grid.Vectors.
func (p *Planner) Vectors(n, each, lanes int) grid.Grid {
	return p.grid(grid.Vectors(p.limits.MaxWorkgroups, n, each, lanes))
}

// Rows is grid.Rows.
func (p *Planner) Rows(lanes, busy int, terms ...trace.Term) grid.Grid {
	return p.grid(grid.Rows(p.limits.MaxWorkgroups, lanes, busy, terms...))
}

// Tiles is grid.Tiles.
func (p *Planner) Tiles(lanes int, cols, rows trace.Term, rest ...trace.Term) grid.Grid {
	return p.grid(grid.Tiles(p.limits.MaxWorkgroups, lanes, cols, rows, rest...))
}

// Stride is grid.Stride.
func (p *Planner) Stride(n int) grid.Grid { return p.grid(grid.Stride(p.limits.MaxWorkgroups, n)) }

func (p *Planner) grid(g grid.Grid, err error) grid.Grid {
	if err != nil {
		p.Errorf("%w", err)
	}
	return g
}
