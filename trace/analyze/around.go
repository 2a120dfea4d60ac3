package analyze

import (
	"fmt"
	"slices"
	"strings"

	"gpuscope/trace"
)

// Neighbour is an operator that writes an input of another operator or reads one of its outputs. If there is
// no operator on the other side of a value, the value itself is the Neighbour. Such a value is an input or
// output of the graph, a constant, or state.
type Neighbour struct {
	Op    *trace.Op // nil for a value
	Value trace.ValueID
	Label string
	Kind  string // kind of the operator, or role of the value
	Level int    // -1 if not known
	Edge  string // shape, in this step, of the value that connects the two operators
	Far   []Neighbour
}

// Holders returns the operators that use a value as state. A KV cache, for example, is state. If the value is
// not state, Holders returns nil.
func (x *Index) Holders(v trace.ValueID) []trace.OpID {
	if x.Trace.Graph.Values[v].Role != trace.RoleState {
		return nil
	}
	var list []trace.OpID
	for i := range x.Trace.Graph.Ops {
		if slices.Contains(x.Trace.Graph.Ops[i].State, v) {
			list = append(list, trace.OpID(i))
		}
	}
	return list
}

// Within removes the layer prefix from a name if the prefix names the layer of the operator `o`. It keeps the
// prefix of any other layer.
func Within(name string, o *trace.Op) string {
	if o.Layer == nil {
		return name
	}
	at := strings.Index(o.Name, fmt.Sprintf("%d.", *o.Layer))
	if at < 0 {
		return name
	}
	return strings.TrimPrefix(name, o.Name[:at]+fmt.Sprintf("%d.", *o.Layer))
}

// Node describes an operator whose layer is already shown, so its label omits the layer.
func (x *Index) Node(step int, op trace.OpID) Neighbour {
	n := x.Neighbour(step, op)
	n.Label = Within(n.Label, n.Op)
	return n
}

// Neighbour returns an operator as a Neighbour, with its level in a step. If step is -1, the level is not
// known.
func (x *Index) Neighbour(step int, id trace.OpID) Neighbour {
	o := &x.Trace.Graph.Ops[id]
	n := Neighbour{Op: o, Value: -1, Label: o.Name, Kind: o.Kind, Level: -1}
	if step >= 0 {
		n.Level = x.levelOf(step, id)
	}
	return n
}

// levelOf returns the level of an operator's first dispatch in a step, or -1 if the dispatch has no level.
func (x *Index) levelOf(step int, op trace.OpID) int {
	starts, level := x.LevelStarts(step), -1
	s := &x.Trace.Steps[step]
	for i := range s.Dispatches {
		d := x.Trace.Plans[s.Dispatches[i].Plan].Dispatch
		if n, ok := starts[d]; ok {
			level = n
		}
		if x.Trace.Graph.Dispatches[d].Op == op {
			return level
		}
	}
	return -1
}

// Written is a dispatch and a value that this dispatch writes.
type Written struct {
	Dispatch trace.DispatchID
	Value    trace.ValueID
}

// Writes lists the dispatches of a step that write to the memory of a value, in order of submission. The list
// includes dispatches that write to other values in the same memory slot.
func (x *Index) Writes(step int, id trace.ValueID) []Written {
	g := &x.Trace.Graph
	id = x.Root(id)
	slot := g.Values[id].Slot
	var list []Written
	for _, l := range x.Planned(step) {
		_, writes := x.Touches(l.Plan)
		for _, v := range writes {
			v = x.Root(v)
			if s := g.Values[v].Slot; v == id || slot != nil && s != nil && *s == *slot {
				list = append(list, Written{l.ID, v})
				break
			}
		}
	}
	return list
}
