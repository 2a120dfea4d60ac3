package kind

import (
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/ops/reference"
)

// Int is an integer argument that is fixed at build or follows a SymInt. The zero Int is the fixed 0.
type Int struct {
	Fixed int
	sym   graph.ValueID
	IsSym bool
}

// Fixed is an integer that never changes.
func Fixed(n int) Int { return Int{Fixed: n} }

// Sym is an integer that a SymInt gives.
func Sym(v graph.ValueID) Int { return Int{sym: v, IsSym: true} }

// At is the integer in a plan.
func (a Int) At(p *graph.Planner) int {
	if a.IsSym {
		return p.Int(a.sym)
	}
	return a.Fixed
}

// In is the integer in a reference.
func (a Int) In(r *reference.Ref) int {
	if a.IsSym {
		return r.Int(a.sym)
	}
	return a.Fixed
}

// Span is the range of the integer.
func (a Int) Span(r *graph.Ranges) (lo, hi int) {
	if !a.IsSym {
		return a.Fixed, a.Fixed
	}
	l, h := r.Int(a.sym)
	return int(l), int(h)
}

// Set is the integer in a corner, for appending: nothing where it is fixed.
func (a Int) Set(n int) graph.Corner {
	if !a.IsSym {
		return nil
	}
	return graph.Corner{{Value: a.sym, Int: int64(n)}}
}

// Operands are the arguments of an operator, each once: tensors, and those of the integers that are SymInts.
func Operands(tensors []graph.ValueID, ints ...Int) []graph.ValueID {
	for _, a := range ints {
		if a.IsSym && !slices.Contains(tensors, a.sym) {
			tensors = append(tensors, a.sym)
		}
	}
	return tensors
}

// Attr is the integer for people.
func (a Int) Attr() any {
	if a.IsSym {
		return "symint"
	}
	return a.Fixed
}
