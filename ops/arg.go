package ops

import (
	"slices"

	"gpuscope/engine/graph"
)

// Int is an integer argument that is fixed at build or follows a SymInt. The zero Int is the fixed 0.
type Int struct {
	fixed int
	sym   graph.ValueID
	isSym bool
}

// Fixed is an integer that never changes.
func Fixed(n int) Int { return Int{fixed: n} }

// Sym is an integer that a SymInt gives.
func Sym(v graph.ValueID) Int { return Int{sym: v, isSym: true} }

// at is the integer in a plan.
func (a Int) at(p *graph.Planner) int {
	if a.isSym {
		return p.Int(a.sym)
	}
	return a.fixed
}

// in is the integer in a reference.
func (a Int) in(r *Ref) int {
	if a.isSym {
		return r.Int(a.sym)
	}
	return a.fixed
}

// span is the range of the integer.
func (a Int) span(r *graph.Ranges) (lo, hi int) {
	if !a.isSym {
		return a.fixed, a.fixed
	}
	l, h := r.Int(a.sym)
	return int(l), int(h)
}

// set is the integer in a corner, for appending: nothing where it is fixed.
func (a Int) set(n int) graph.Corner {
	if !a.isSym {
		return nil
	}
	return graph.Corner{{Value: a.sym, Int: int64(n)}}
}

// args are the arguments of an operator, each once: tensors, and those of the integers that are SymInts.
func args(tensors []graph.ValueID, ints ...Int) []graph.ValueID {
	for _, a := range ints {
		if a.isSym && !slices.Contains(tensors, a.sym) {
			tensors = append(tensors, a.sym)
		}
	}
	return tensors
}

// attr is the integer for people.
func (a Int) attr() any {
	if a.isSym {
		return "symint"
	}
	return a.fixed
}
