// Package grid has the arithmetic from the counts of a live shape to the workgroups of a dispatch. A grid is
// made of terms (elements, rows, tiles), so that it can say how it follows from the shape.
package grid

import (
	"fmt"
	"math/bits"
	"slices"

	"gpuscope/trace"
)

// Grid is the workgroup count of a dispatch, and how much of it the live shape needs.
type Grid struct {
	X, Y, Z uint32
	// Groups is how many workgroups have work. X*Y*Z may be larger if a count was folded into two dimensions.
	Groups int64
	// Idle counts the lanes of those workgroups that have no work.
	Idle int64
	// Terms are the factors of Groups, and Rule says how they are combined. Unnamed terms are unused.
	Rule  string
	Terms [MaxTerms]trace.Term
}

// Workgroups is X*Y*Z.
func (g Grid) Workgroups() int64 { return int64(g.X) * int64(g.Y) * int64(g.Z) }

// Cover enlarges g so that it has room for other's workgroups. Tiled grids grow in each dimension; of folded
// grids the larger one is taken.
func (g *Grid) Cover(other Grid) {
	switch {
	case other.Rule == Tiled:
		g.X, g.Y, g.Z = max(g.X, other.X), max(g.Y, other.Y), max(g.Z, other.Z)
	case other.Workgroups() > g.Workgroups():
		g.X, g.Y, g.Z = other.X, other.Y, other.Z
	}
}

const (
	MaxTerms = 3
	Tiled    = "tiles" // the rule of grids that are not folded
)

// Each is a count with one item per workgroup.
func Each(name string, n int) trace.Term { return Split(name, n, 1) }

// Split is a count with per items per workgroup.
func Split(name string, n, per int) trace.Term {
	return trace.Term{Name: name, Value: int64(n), Per: int64(per)}
}

// RowsOf is n elements in rows of width, one row per workgroup.
func RowsOf(n, width int) trace.Term { return Split("elements", n, width) }

// Describe is the grid's arithmetic in trace format. It returns last, which must not be changed, if that says
// the same.
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

// Counts is the grid's workgroups in x, y and z.
func (g Grid) Counts() [3]int { return [3]int{int(g.X), int(g.Y), int(g.Z)} }

// The functions below are the only arithmetic from element counts to grids. They compute in 64 bits; limit is
// the device's largest number of workgroups per dimension. A grid beyond it is an error.
//
// Kernels compute their position from builtins alone, so that any folding works: a thread kernel by gid.x +
// gid.y*(num_workgroups.x*workgroup_size), a group kernel by wid.x + wid.y*num_workgroups.x.

// Vectors is a grid with one thread per each elements of n, in workgroups of lanes threads. It is folded into
// x and y if x alone is too small.
func Vectors(limit uint32, n, each, lanes int) (Grid, error) {
	threads := divUp(n, each)
	groups := divUp(threads, lanes)
	return flat(limit, "linear", int64(groups)*int64(lanes)-int64(threads), Split("elements", n, each*lanes))
}

// Rows is a grid of one workgroup for each row, head or block: the product of the terms, folded if x alone is
// too small. busy of the lanes of each workgroup have work.
func Rows(limit uint32, lanes, busy int, terms ...trace.Term) (Grid, error) {
	return flat(limit, "rows", GroupsOf(terms)*int64(lanes-min(busy, lanes)), terms...)
}

// Tiles is a grid of column tiles x row tiles x the product of rest, whose workgroups of lanes threads share
// each tile evenly.
func Tiles(limit uint32, lanes int, cols, rows trace.Term, rest ...trace.Term) (Grid, error) {
	x, y, z := cols.Groups(), rows.Groups(), GroupsOf(rest)
	groups := x * y * z
	// A lane computes tile/lanes outputs.
	outputs, tile := cols.Value*rows.Value*z, cols.Per*rows.Per
	busy := (outputs*int64(lanes) + tile - 1) / tile
	g := Grid{Groups: groups, Idle: groups*int64(lanes) - busy, Rule: Tiled}
	g.Terms[0], g.Terms[1] = cols, rows
	copy(g.Terms[2:], rest)
	return g.sized(limit, Tiled, x, y, z)
}

// Stride is a grid of up to as many workgroups as fit one dimension, each of which loops over the n pieces of
// work with the grid as its stride.
func Stride(limit uint32, n int) (Grid, error) {
	x := min(int64(n), int64(limit))
	g := Grid{Groups: x, Rule: "grid_stride"}
	g.Terms[0] = Each("n", n)
	return g.sized(limit, "grid-stride groups", x, 1, 1)
}

// flat is a one-dimensional grid, folded into two if x alone is too small.
func flat(limit uint32, rule string, idle int64, terms ...trace.Term) (Grid, error) {
	g := Grid{Groups: GroupsOf(terms), Idle: idle, Rule: rule}
	copy(g.Terms[:], terms)
	x, y := Fold(g.Groups, int64(limit))
	return g.sized(limit, "rows", x, y, 1)
}

func (g Grid) sized(limit uint32, what string, x, y, z int64) (Grid, error) {
	most := int64(limit)
	if x < 1 || y < 1 || z < 1 || x > most || y > most || z > most {
		return Grid{}, fmt.Errorf("%s: a grid of %d x %d x %d workgroups; device limit is 1 to %d per dimension",
			what, x, y, z, limit)
	}
	g.X, g.Y, g.Z = uint32(x), uint32(y), uint32(z)
	return g, nil
}

// GroupsOf is the number of workgroups for the terms.
func GroupsOf(terms []trace.Term) int64 {
	n := int64(1)
	for i := range terms {
		n *= terms[i].Groups()
	}
	return n
}

// Fold distributes n workgroups over two dimensions, nearly square. The folded grid has fewer than 2*sqrt(n)
// idle workgroups; filling x to the limit first could launch almost 2n.
func Fold(n, limit int64) (x, y int64) {
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
