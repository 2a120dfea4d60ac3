package vulkan

import (
	"fmt"
	"slices"
)

// Writes are the values that an operator writes: its output, or the elements of it where that is a list, and
// the arguments that it updates in place.
func (g *Graph) Writes(op *Operator) []int {
	var ids []int
	for k, id := range op.Args {
		if op.writes(k) {
			ids = g.flatten(ids, id)
		}
	}
	return ids
}

// Reads are the tensors and SymInts that an operator reads, in the order of its arguments.
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

// flatten adds a value to ids, or what it lists. Lists of lists do not occur: an inner one is a value.
func (g *Graph) flatten(ids []int, id int) []int {
	if list, ok := g.Values[id].(ValueList); ok {
		return append(ids, list...)
	}
	return append(ids, id)
}

// Mutable are the tensors that begin with the bytes of a constant and that operators write, KV caches for
// one. Each has memory of its own, though several may begin with the same bytes.
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

// Object is memory that the exporter planned for several tensors, in turns.
type Object struct {
	ID     int
	Bytes  int64 // of the largest
	Values []int
}

// Objects is the exporter's memory plan. Tensors that are constants or have memory of their own are not in
// it.
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

// Split gives the inputs and the outputs among the arguments of a delegate call.
func (g *Graph) Split(args []int) (inputs, outputs []int, err error) {
	if n := len(g.Inputs); len(args) == n+len(g.Outputs) {
		return args[:n], args[n:], nil
	}
	return nil, nil, fmt.Errorf("a delegate call has %d arguments, and its graph %d inputs and %d outputs",
		len(args), len(g.Inputs), len(g.Outputs))
}
