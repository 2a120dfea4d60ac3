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

// At returns the value of the integer in the step that p plans.
func (a Int) At(p *graph.Planner) int {
	if a.IsSym {
		return p.Int(a.sym)
	}
	return a.Fixed
}

// In returns the value of the integer in the step that the float64 reference computes.
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

// Set returns a corner entry that gives the integer the value n. Callers append this entry to a corner. For a
// fixed integer the result is nil.
func (a Int) Set(n int) graph.Corner {
	if !a.IsSym {
		return nil
	}
	return graph.Corner{{Value: a.sym, Int: int64(n)}}
}

// Operands returns the ids of an operator's inputs: first the tensors, then the SymInts from which `ints` are
// read. It lists each SymInt once.
func Operands(tensors []graph.ValueID, ints ...Int) []graph.ValueID {
	for _, a := range ints {
		if a.IsSym && !slices.Contains(tensors, a.sym) {
			tensors = append(tensors, a.sym)
		}
	}
	return tensors
}

// Attr returns the integer as an attribute of a Spec: its fixed value, or "symint" if its value is read from
// a SymInt.
func (a Int) Attr() any {
	if a.IsSym {
		return "symint"
	}
	return a.Fixed
}
