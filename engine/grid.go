package engine

import (
	"math/bits"

	"gpuscope/trace"
)

// Grid is the workgroup count of a dispatch, and how much of it the live shape needs.
type Grid struct {
	X, Y, Z uint32
	// Groups is how many workgroups have work; X*Y*Z may be more where a count was folded into two
	// dimensions.
	Groups int64
	// Idle counts the lanes of those workgroups that have none.
	Idle int64
	// terms are what Groups was made of, by the rule: the product of their quotients, each rounded up, and of
	// workgroups that stride at most as many as one dimension takes.
	rule  gridRule
	terms [maxTerms]term
}

// Workgroups is X*Y*Z.
func (g Grid) Workgroups() int64 { return int64(g.X) * int64(g.Y) * int64(g.Z) }

// term is a count of the live shape, and how much of it a workgroup takes.
type term struct{ value, per int64 }

const maxTerms = 3

// gridRule is how a grid follows from a live shape.
type gridRule uint8

const (
	noRule gridRule = iota
	ruleThreads
	ruleRows
	ruleBlocks
	ruleTiles
	ruleStride
	gridRules
)

// ruleTerms are the rules as a trace has them, with what their terms count.
var ruleTerms = [gridRules]struct {
	name  string
	terms []string
}{
	ruleThreads: {"linear", []string{"n"}},
	ruleRows:    {"rows", []string{"rows"}},
	ruleBlocks:  {"rows", []string{"cols", "rows"}},
	ruleTiles:   {"tiles", []string{"cols", "rows", "z"}},
	ruleStride:  {"grid_stride", []string{"n"}},
}

// describe is the arithmetic of the grid as a trace has it: last, which is not to be changed, where that says
// the same.
func (g *Grid) describe(last *trace.Grid) *trace.Grid {
	rule := &ruleTerms[g.rule]
	if rule.name == "" {
		return nil
	}
	if last != nil && last.Rule == rule.name && len(last.Terms) == len(rule.terms) {
		same := true
		for i, t := range last.Terms {
			same = same && t == g.term(i)
		}
		if same {
			return last
		}
	}
	d := &trace.Grid{Rule: rule.name, Terms: make([]trace.Term, len(rule.terms))}
	for i := range d.Terms {
		d.Terms[i] = g.term(i)
	}
	return d
}

func (g *Grid) term(i int) trace.Term {
	return trace.Term{Name: ruleTerms[g.rule].terms[i], Value: g.terms[i].value, Per: g.terms[i].per}
}

// The helpers below are the only arithmetic from element counts to grids. They compute in 64 bits, record an
// error in the planner where the device cannot run the grid, and then return the zero Grid.
//
// A kernel finds its place from the builtins alone, so that any fold works: a thread kernel by
// gid.x + gid.y*(num_workgroups.x*workgroup_size), a group kernel by wid.x + wid.y*num_workgroups.x.

// Threads is a grid of one thread for each of n elements, in groups of lanes, folded into x and y where it
// must.
func (p *Planner) Threads(n, lanes int) Grid {
	groups := int64(divUp(n, lanes))
	return p.flat("rows", groups, groups*int64(lanes)-int64(n), ruleThreads, term{int64(n), int64(lanes)})
}

// Rows is a grid of one workgroup for each of n rows (heads, splits, ...), folded where it must. Of the lanes
// of each group busy have work.
func (p *Planner) Rows(n, lanes, busy int) Grid {
	return p.flat("rows", int64(n), int64(n)*int64(lanes-min(busy, lanes)), ruleRows, term{int64(n), 1})
}

// Blocks is a grid of one workgroup for each block of colsPer columns and rowsPer rows of a result, folded
// where it must. Of the lanes of each group busy have work.
func (p *Planner) Blocks(cols, colsPer, rows, rowsPer, lanes, busy int) Grid {
	groups := int64(divUp(cols, colsPer)) * int64(divUp(rows, rowsPer))
	return p.flat("rows", groups, groups*int64(lanes-min(busy, lanes)), ruleBlocks,
		term{int64(cols), int64(colsPer)}, term{int64(rows), int64(rowsPer)})
}

// Tiles is a grid of x = ceil(cols/tileCols) by y = ceil(rows/tileRows) workgroups by z, each of lanes that
// share a tile evenly.
func (p *Planner) Tiles(cols, tileCols, rows, tileRows, z, lanes int) Grid {
	x, y := int64(divUp(cols, tileCols)), int64(divUp(rows, tileRows))
	groups := x * y * int64(z)
	// A lane's share of a tile is tileCols*tileRows/lanes outputs.
	outputs := int64(cols) * int64(rows) * int64(z)
	busy := (outputs*int64(lanes) + int64(tileCols)*int64(tileRows) - 1) / (int64(tileCols) * int64(tileRows))
	return p.grid("tiles", Grid{
		Groups: groups, Idle: groups*int64(lanes) - busy, rule: ruleTiles, terms: [maxTerms]term{
			{int64(cols), int64(tileCols)}, {int64(rows), int64(tileRows)}, {int64(z), 1},
		},
	}, x, y, int64(z))
}

// Stride is a grid of at most as many workgroups as one dimension takes, each of which strides over the n
// pieces of work.
func (p *Planner) Stride(n int) Grid {
	x := min(int64(n), int64(p.Limits().MaxWorkgroups))
	g := Grid{Groups: x, rule: ruleStride}
	g.terms[0] = term{int64(n), 1}
	return p.grid("grid-stride groups", g, x, 1, 1)
}

// flat is a grid of one dimension, folded into two where it must.
func (p *Planner) flat(what string, groups, idle int64, rule gridRule, terms ...term) Grid {
	x, y := fold(groups, int64(p.Limits().MaxWorkgroups))
	g := Grid{Groups: groups, Idle: idle, rule: rule}
	copy(g.terms[:], terms)
	return p.grid(what, g, x, y, 1)
}

func (p *Planner) grid(what string, g Grid, x, y, z int64) Grid {
	limit := int64(p.Limits().MaxWorkgroups)
	if x < 1 || y < 1 || z < 1 || x > limit || y > limit || z > limit {
		p.Errorf("%s: a grid of %d x %d x %d workgroups, the device takes 1 to %d in each dimension", what, x,
			y, z, limit)
		return Grid{}
	}
	g.X, g.Y, g.Z = uint32(x), uint32(y), uint32(z)
	return g
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
