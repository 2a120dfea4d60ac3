package kind

import (
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/ops/reference"
)

// Int is an integer argument of an operator. Its value is fixed when the graph is built, or it is read from a
// SymInt at each step. The zero Int has the fixed value 0.
type Int struct {
	Fixed int
	sym   graph.ValueID
	IsSym bool
}

// Fixed returns an Int whose value never changes.
func Fixed(n int) Int { return Int{Fixed: n} }

// Sym returns an Int whose value is read from the SymInt v at each step.
func Sym(v graph.ValueID) Int { return Int{sym: v, IsSym: true} }

// At returns the value of the integer while a step is planned.
func (a Int) At(p *graph.Planner) int {
	if a.IsSym {
		return p.Int(a.sym)
	}
	return a.Fixed
}

// In returns the value of the integer while the float64 reference runs.
func (a Int) In(r *reference.Ref) int {
	if a.IsSym {
		return r.Int(a.sym)
	}
	return a.Fixed
}

// Span returns the lowest and the highest value that the integer can have.
func (a Int) Span(r *graph.Ranges) (lo, hi int) {
	if !a.IsSym {
		return a.Fixed, a.Fixed
	}
	l, h := r.Int(a.sym)
	return int(l), int(h)
}

// Set returns the corner entry that sets the integer to n. Callers append the entry to a corner. The result
// is nil if the integer is fixed.
func (a Int) Set(n int) graph.Corner {
	if !a.IsSym {
		return nil
	}
	return graph.Corner{{Value: a.sym, Int: int64(n)}}
}

// Operands returns the input values of an operator: the tensors, then each SymInt among ints. No SymInt is
// listed twice.
func Operands(tensors []graph.ValueID, ints ...Int) []graph.ValueID {
	for _, a := range ints {
		if a.IsSym && !slices.Contains(tensors, a.sym) {
			tensors = append(tensors, a.sym)
		}
	}
	return tensors
}

// Attr returns the integer as an attribute of a Spec: its value, or "symint" if the integer follows a SymInt.
func (a Int) Attr() any {
	if a.IsSym {
		return "symint"
	}
	return a.Fixed
}
