// Package grid computes the workgroup counts of a dispatch from a live shape. A Grid also stores how the
// counts were computed, for example from the numbers of rows and tiles, so that reports can show this.
package grid

import (
	"fmt"
	"math/bits"
	"slices"

	"gpuscope/trace"
)

// Grid holds the workgroup counts of a dispatch, the number of workgroups that have work, and the number of
// idle lanes.
type Grid struct {
	X, Y, Z uint32
	// Groups is the number of workgroups that have work. X*Y*Z may be larger, if a count was too large for x
	// and was distributed over x and y (see Fold).
	Groups int64
	// Idle is the number of lanes without work in the workgroups that have work.
	Idle int64
	// Terms are the numbers whose product is Groups, and Rule names the way in which the grid is computed
	// from them. Terms without a name are unused.
	Rule  string
	Terms [MaxTerms]trace.Term
}

// Workgroups returns the total number of workgroups, X*Y*Z.
func (g Grid) Workgroups() int64 { return int64(g.X) * int64(g.Y) * int64(g.Z) }

// Cover enlarges g so that it has at least as many workgroups as `other`. If the grids are tiled, each
// dimension of g grows to at least that of `other`. Grids that are not tiled may be folded (see Fold), so
// their dimensions cannot be compared. In that case g takes the counts of `other` if `other` has more
// workgroups.
func (g *Grid) Cover(other Grid) {
	switch {
	case other.Rule == Tiled:
		g.X, g.Y, g.Z = max(g.X, other.X), max(g.Y, other.Y), max(g.Z, other.Z)
	case other.Workgroups() > g.Workgroups():
		g.X, g.Y, g.Z = other.X, other.Y, other.Z
	}
}

const (
	MaxTerms = 3       // maximum number of terms of a grid
	Tiled    = "tiles" // rule of the grids made by Tiles, which are not folded
)

// Each returns a term with n items and one workgroup for each.
func Each(name string, n int) trace.Term { return Split(name, n, 1) }

// Split returns a term with n items. Each workgroup handles `per` of them.
func Split(name string, n, per int) trace.Term {
	return trace.Term{Name: name, Value: int64(n), Per: int64(per)}
}

// RowsOf returns a term with n elements in rows of the given width, and one workgroup per row.
func RowsOf(n, width int) trace.Term { return Split("elements", n, width) }

// Describe returns the grid's rule and terms in trace format. If `last` has the same rule and terms,
// Describe returns `last` itself instead of a copy, so the caller must not change the result.
func (g *Grid) Describe(last *trace.Grid) *trace.Grid {
	if g.Rule == "" {
		return nil
	}
	n := 0
	for n < MaxTerms && g.Terms[n].Name != "" {
		n++
	}
	if last != nil && last.Rule == g.Rule && slices.Equal(last.Terms, g.Terms[:n]) {
		return last
	}
	return &trace.Grid{Rule: g.Rule, Terms: slices.Clone(g.Terms[:n])}
}

// Counts returns the workgroup counts in x, y and z.
func (g Grid) Counts() [3]int { return [3]int{int(g.X), int(g.Y), int(g.Z)} }

// Only the functions below compute grids from element counts. They compute in 64 bits and return an error if
// a grid exceeds limit, the device's maximum number of workgroups per dimension.
//
// Kernels compute their position only from WGSL builtins, so they work with folded and unfolded grids. A
// kernel with one thread per item uses gid.x + gid.y*(num_workgroups.x*workgroup_size). A kernel with one
// workgroup per item uses wid.x + wid.y*num_workgroups.x.

// Vectors returns a grid for n elements. `each` is the number of elements for each thread, and `lanes` is the
// number of threads in a workgroup. The grid is folded into x and y if x alone is too small.
func Vectors(limit uint32, n, each, lanes int) (Grid, error) {
	threads := divUp(n, each)
	groups := divUp(threads, lanes)
	return flat(limit, "linear", int64(groups)*int64(lanes)-int64(threads), Split("elements", n, each*lanes))
}

// Rows returns a grid with one workgroup for each item, for example each row of each head. The number of
// items is the product of the terms. The grid is folded into x and y if x alone is too small. In each
// workgroup, `busy` lanes have work.
func Rows(limit uint32, lanes, busy int, terms ...trace.Term) (Grid, error) {
	return flat(limit, "rows", GroupsOf(terms)*int64(lanes-min(busy, lanes)), terms...)
}

// Tiles returns a grid with one workgroup per tile: x counts column tiles, y counts row tiles, and z is the
// product of the other terms. The lanes of a workgroup share the outputs of a tile evenly.
func Tiles(limit uint32, lanes int, cols, rows trace.Term, rest ...trace.Term) (Grid, error) {
	x, y, z := cols.Groups(), rows.Groups(), GroupsOf(rest)
	groups := x * y * z
	// Each lane computes tile/lanes outputs.
	outputs, tile := cols.Value*rows.Value*z, cols.Per*rows.Per
	busy := (outputs*int64(lanes) + tile - 1) / tile
	g := Grid{Groups: groups, Idle: groups*int64(lanes) - busy, Rule: Tiled}
	g.Terms[0], g.Terms[1] = cols, rows
	copy(g.Terms[2:], rest)
	return g.sized(limit, Tiled, x, y, z)
}

// Stride returns a one-dimensional grid for n items. It has one workgroup per item, up to the device limit.
// If there are more items than workgroups, each workgroup loops over items with the grid size as its
// stride.
func Stride(limit uint32, n int) (Grid, error) {
	x := min(int64(n), int64(limit))
	g := Grid{Groups: x, Rule: "grid_stride"}
	g.Terms[0] = Each("n", n)
	return g.sized(limit, "grid-stride groups", x, 1, 1)
}

// flat returns a one-dimensional grid, folded into two dimensions if x alone is too small.
func flat(limit uint32, rule string, idle int64, terms ...trace.Term) (Grid, error) {
	g := Grid{Groups: GroupsOf(terms), Idle: idle, Rule: rule}
	copy(g.Terms[:], terms)
	x, y := Fold(g.Groups, int64(limit))
	return g.sized(limit, "rows", x, y, 1)
}

func (g Grid) sized(limit uint32, what string, x, y, z int64) (Grid, error) {
	most := int64(limit)
	if x < 1 || y < 1 || z < 1 || x > most || y > most || z > most {
		return Grid{}, fmt.Errorf("%s: grid has %d x %d x %d workgroups; the device allows 1 to %d per dimension",
			what, x, y, z, limit)
	}
	g.X, g.Y, g.Z = uint32(x), uint32(y), uint32(z)
	return g, nil
}

// GroupsOf returns the number of workgroups for the terms, which is the product of their group counts.
func GroupsOf(terms []trace.Term) int64 {
	n := int64(1)
	for i := range terms {
		n *= terms[i].Groups()
	}
	return n
}

// Fold distributes n workgroups over two dimensions of nearly equal size if n exceeds `limit`. The folded
// grid has fewer than 2*sqrt(n) idle workgroups. If x were set to the limit instead, almost 2n workgroups
// could be launched.
func Fold(n, limit int64) (x, y int64) {
	if n <= limit {
		return n, 1
	}
	x = min(sqrtUp(n), limit)
	return x, (n + x - 1) / x
}

// sqrtUp returns the smallest r with r*r >= n.
func sqrtUp(n int64) int64 {
	r := int64(1) << ((bits.Len64(uint64(n)) + 1) / 2)
	for { // Newton's method; r starts above the root
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
