package vulkan

import (
	"fmt"
	"slices"
)

// Writes returns the indices of the values that an operator writes. These are the output, or its elements if
// the output is a list, and the arguments that the operator updates in place.
func (g *Graph) Writes(op *Operator) []int {
	var ids []int
	for k, id := range op.Args {
		if op.writes(k) {
			ids = g.flatten(ids, id)
		}
	}
	return ids
}

// Updates returns the indices of the values that an operator updates in place.
func (g *Graph) Updates(op *Operator) []int {
	var ids []int
	for k, id := range op.Args[:max(len(op.Args)-1, 0)] {
		if op.writes(k) {
			ids = g.flatten(ids, id)
		}
	}
	return ids
}

// Reads returns the indices of the tensors and SymInts that an operator reads, in argument order.
func (g *Graph) Reads(op *Operator) []int {
	var ids []int
	updated := schemas[op.Name].updated()
	for k, id := range op.Args {
		if k < len(op.Args)-1 || slices.Contains(updated, k) {
			ids = g.flatten(ids, id)
		}
	}
	return slices.DeleteFunc(ids, func(id int) bool {
		switch g.Values[id].(type) {
		case *Tensor, SymInt:
			return false
		}
		return true
	})
}

func (op *Operator) writes(k int) bool {
	return k == len(op.Args)-1 || slices.Contains(schemas[op.Name].updated(), k)
}

// flatten appends the value id to ids. If the value is a list, flatten appends the elements of the list
// instead. It does not expand lists inside of lists, because these do not occur.
func (g *Graph) flatten(ids []int, id int) []int {
	if list, ok := g.Values[id].(ValueList); ok {
		return append(ids, list...)
	}
	return append(ids, id)
}

// Mutable returns the indices of the tensors that are initialized from a constant and written by operators,
// such as KV caches. Each of these tensors has separate memory, even if several are initialized from the same
// constant.
func (g *Graph) Mutable() []int {
	var ids []int
	for i := range g.Operators {
		for _, id := range g.Writes(&g.Operators[i]) {
			if t, ok := g.Values[id].(*Tensor); ok && t.Constant >= 0 {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Object is a piece of memory that several tensors use in turn. The exporter plans which tensors use it.
type Object struct {
	ID     int
	Bytes  int64 // size of the largest tensor in bytes
	Values []int // indices of the tensors in Graph.Values
}

// Objects returns the exporter's memory plan, sorted by ID. It omits constants, and it omits tensors that do
// not share memory.
func (g *Graph) Objects() []Object {
	byID := map[int]*Object{}
	for id, v := range g.Values {
		t, ok := v.(*Tensor)
		if !ok || t.Object < 0 || t.Constant >= 0 {
			continue
		}
		o := byID[t.Object]
		if o == nil {
			o = &Object{ID: t.Object}
			byID[t.Object] = o
		}
		o.Bytes, o.Values = max(o.Bytes, t.Bytes()), append(o.Values, id)
	}
	objects := make([]Object, 0, len(byID))
	for _, o := range byID {
		objects = append(objects, *o)
	}
	slices.SortFunc(objects, func(a, b Object) int { return a.ID - b.ID })
	return objects
}

// Split splits the arguments of a delegate call into the inputs and the outputs of the graph. It returns an
// error if the number of arguments does not match.
func (g *Graph) Split(args []int) (inputs, outputs []int, err error) {
	if n := len(g.Inputs); len(args) == n+len(g.Outputs) {
		return args[:n], args[n:], nil
	}
	return nil, nil, fmt.Errorf(
		"a delegate call has %d arguments, but its graph has %d inputs and %d outputs",
		len(args), len(g.Inputs), len(g.Outputs))
}
