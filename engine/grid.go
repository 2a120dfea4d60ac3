package engine

import "math/bits"

// Grid is the workgroup count of a dispatch, and how much of it the live shape needs.
type Grid struct {
	X, Y, Z uint32
	// Groups is how many workgroups have work; X*Y*Z may be more where a count was folded into two
	// dimensions.
	Groups int64
	// Idle counts the lanes of those workgroups that have none.
	Idle int64
}

// Workgroups is X*Y*Z.
func (g Grid) Workgroups() int64 { return int64(g.X) * int64(g.Y) * int64(g.Z) }

// The helpers below are the only arithmetic from element counts to grids. They compute in 64 bits, record an
// error in the planner where the device cannot run the grid, and then return the zero Grid.
//
// A kernel finds its place from the builtins alone, so that any fold works: a thread kernel by
// gid.x + gid.y*(num_workgroups.x*workgroup_size), a group kernel by wid.x + wid.y*num_workgroups.x.

// Threads is a grid of one thread for each of n elements, in groups of lanes, folded into x and y where it
// must.
func (p *Planner) Threads(n, lanes int) Grid {
	g := p.Rows(divUp(n, lanes), lanes, lanes)
	g.Idle = g.Groups*int64(lanes) - int64(n)
	return g
}

// Rows is a grid of one workgroup for each of n rows (heads, splits, ...), folded where it must. Of the lanes
// of each group busy have work.
func (p *Planner) Rows(n, lanes, busy int) Grid {
	x, y := fold(int64(n), int64(p.Limits().MaxWorkgroups))
	return p.grid("rows", int64(n), x, y, 1, int64(n)*int64(lanes-min(busy, lanes)))
}

// Tiles is a grid of x = ceil(cols/tileCols) by y = ceil(rows/tileRows) workgroups by z, each of lanes that
// share a tile evenly.
func (p *Planner) Tiles(cols, tileCols, rows, tileRows, z, lanes int) Grid {
	x, y := int64(divUp(cols, tileCols)), int64(divUp(rows, tileRows))
	groups := x * y * int64(z)
	// A lane's share of a tile is tileCols*tileRows/lanes outputs.
	outputs := int64(cols) * int64(rows) * int64(z)
	busy := (outputs*int64(lanes) + int64(tileCols)*int64(tileRows) - 1) / (int64(tileCols) * int64(tileRows))
	return p.grid("tiles", groups, x, y, int64(z), groups*int64(lanes)-busy)
}

// Stride is a grid of at most as many workgroups as one dimension takes, each of which strides over the n
// pieces of work.
func (p *Planner) Stride(n int) Grid {
	x := min(int64(n), int64(p.Limits().MaxWorkgroups))
	return p.grid("grid-stride groups", x, x, 1, 1, 0)
}

func (p *Planner) grid(what string, groups, x, y, z, idle int64) Grid {
	limit := int64(p.Limits().MaxWorkgroups)
	if x < 1 || y < 1 || z < 1 || x > limit || y > limit || z > limit {
		p.Errorf("%s: a grid of %d x %d x %d workgroups, the device takes 1 to %d in each dimension", what, x,
			y, z, limit)
		return Grid{}
	}
	return Grid{X: uint32(x), Y: uint32(y), Z: uint32(z), Groups: groups, Idle: idle}
}

// fold spreads n workgroups over two dimensions, nearly square: less than 2*sqrt(n) of them launch for
// nothing, where filling x first could launch almost twice as many as needed.
func fold(n, limit int64) (x, y int64) {
	if n <= limit {
		return n, 1
	}
	x = min(sqrtUp(n), limit)
	return x, (n + x - 1) / x
}

// sqrtUp is the smallest r with r*r >= n.
func sqrtUp(n int64) int64 {
	r := int64(1) << ((bits.Len64(uint64(n)) + 1) / 2)
	for { // Newton from above
		next := (r + n/r) / 2
		if next >= r {
			break
		}
		r = next
	}
	if r*r < n {
		r++
	}
	return r
}

func divUp(n, d int) int { return n/d + min(n%d, 1) }
