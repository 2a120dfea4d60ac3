package analyze

import (
	"fmt"
	"slices"
	"strings"

	"gpuscope/trace"
)

// Neighbour is an operator near another, or a value that no operator gives or takes: an input or output of
// the graph, a constant, State.
type Neighbour struct {
	Op    *trace.Op // nil: only the value
	Value trace.ValueID
	Label string
	Kind  string // of the operator; of a value its role
	Level int    // -1: not known
	Edge  string // live shape of the value between it and the one that it was found from
	Far   []Neighbour
}

// Holders are the operators that have a value as State.
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

// Within is a name without the layer where that is the operator's own.
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

// Node is an operator as a neighbour of nobody.
func (x *Index) Node(step int, op trace.OpID) Neighbour {
	n := x.Neighbour(step, op)
	n.Label = Within(n.Label, n.Op)
	return n
}

// Neighbour describes an operator by itself, with its level in a step; step is -1 for none.
func (x *Index) Neighbour(step int, id trace.OpID) Neighbour {
	o := &x.Trace.Graph.Ops[id]
	n := Neighbour{Op: o, Value: -1, Label: o.Name, Kind: o.Kind, Level: -1}
	if step >= 0 {
		n.Level = x.levelOf(step, id)
	}
	return n
}

// levelOf is the level of the first dispatch of an operator at a step, -1 where it has none.
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

// Written is a dispatch that writes the memory of a value, and the value that it writes.
type Written struct {
	Dispatch trace.DispatchID
	Value    trace.ValueID
}

// Writes are, in the order of a step, the dispatches that write the memory that a value has: its own, and
// those of the values that share its slot.
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
