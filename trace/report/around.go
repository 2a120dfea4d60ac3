package report

import (
	"fmt"
	"slices"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/graphtree"
	"gpuscope/trace/analyze/memory"
	"gpuscope/trace/table"
)

// Around returns the producers of an operator, the producers of these, and so on, up to a distance of `far`
// operators. If `consumers` is set, it returns the consumers instead. The shapes and levels in the result are
// from the given step. A step of -1 means the graph at its largest shapes.
func Around(x *analyze.Index, step int, op trace.OpID, far int, consumers bool) []analyze.Neighbour {
	return neighbours(memory.Of(x, step), op, far, consumers)
}

func neighbours(t *memory.Tenancy, op trace.OpID, far int, consumers bool) []analyze.Neighbour {
	x, g := t.X, &t.X.Trace.Graph
	o := &g.Ops[op]
	values := slices.Concat(o.Inputs, o.State)
	next := func(v trace.ValueID) []trace.OpID { return slices.Concat(x.Producers(v), x.Makers(v)) }
	if consumers {
		values, next = slices.Concat(o.Outputs, o.Makes, o.State), x.Consumers
	}
	var list []analyze.Neighbour
	for _, v := range values {
		edge := LiveText(t, v)
		found := false
		for _, id := range slices.Concat(next(v), x.Holders(v)) {
			if id == op || consumers != (id > op) {
				continue // for State, operators before op are producers and those after op are consumers
			}
			n := x.Neighbour(t.Step, id)
			n.Label = analyze.Within(n.Label, o)
			n.Value, n.Edge, found = v, edge, true
			if far > 1 {
				n.Far = neighbours(t, id, far-1, consumers)
			}
			list = append(list, n)
		}
		if role := g.Values[v].Role; !found && (!consumers || role == trace.RoleOutput) {
			name := analyze.Within(g.Values[v].Name, o)
			list = append(list, analyze.Neighbour{
				Value: v, Label: name, Kind: string(role), Level: -1,
				Edge: edge,
			})
		}
	}
	return list
}

// OperatorLines describes an operator in words: its kind, its inputs and outputs, and its dispatches in a
// step. A step of -1 means that no step is shown, so no dispatches are described.
func OperatorLines(x *analyze.Index, step int, op trace.OpID) []string {
	g := &x.Trace.Graph
	o := &g.Ops[op]
	head := fmt.Sprintf("op %d · %s", o.ID, o.Kind)
	if o.Layer != nil {
		head += fmt.Sprintf(" · layer %d %s", *o.Layer, o.Block)
	}
	if o.SourceID != nil {
		head += fmt.Sprintf(" · id %d in the model file", *o.SourceID)
	}
	lines, mem := []string{head}, memory.Of(x, step)
	if len(o.Parts) > 0 {
		lines = append(lines, "made of "+strings.Join(o.Parts, " + "))
	}
	for _, list := range []struct {
		word   string
		values []trace.ValueID
	}{{"in   ", o.Inputs}, {"state", o.State}, {"out  ", o.Outputs}, {"makes", o.Makes}} {
		for _, v := range list.values {
			lines = append(lines, list.word+" "+valueText(mem, v))
		}
	}
	if step < 0 {
		return lines
	}
	ran := false
	for _, l := range x.LaunchesOf(step) {
		if l.Op.ID != op {
			continue
		}
		ran = true
		text := fmt.Sprintf("d%d %s · grid %s", l.ID, l.Plan.Kernel, table.Grid(l.Plan.Workgroups))
		if l.Plan.Route != "" {
			text += " · route " + strings.TrimSuffix(l.Plan.Route+": "+l.Plan.Reason, ": ")
		}
		if l.Level >= 0 {
			text += fmt.Sprintf(" · level %d", l.Level)
		}
		if l.Time.Measured() {
			text += " · isolated " + microseconds(l.Time, x.Trace.Clock.QuantumNS).Text + " µs"
		}
		lines = append(lines, text)
	}
	if !ran {
		lines = append(lines, "runs no dispatch in this step")
	}
	return lines
}

// valueText describes a value in one line: name, type, live and largest shape, size, memory.
func valueText(t *memory.Tenancy, id trace.ValueID) string {
	x, v := t.X, &t.X.Trace.Graph.Values[id]
	live, most := LiveText(t, id), Bounds(x, v)
	text := fmt.Sprintf("%s: %s %s", v.Name, analyze.TypeOf(v), live)
	if v.Kind == "symint" {
		return fmt.Sprintf("%s: integer %s, %s", v.Name, live, most)
	}
	if words := Shape(x, id, v.MaxDims); v.Matrix != nil && analyze.NotStored(v) == "" && words != most {
		text += fmt.Sprintf(" as %s %s", v.DType, words)
	}
	if live != most {
		text += ", at most " + most
	}
	if v.AliasOf == nil && analyze.NotStored(v) == "" {
		text += ", " + table.Memory(v.Bytes)
	}
	return strings.TrimRight(text+", "+string(v.Role)+" "+graphtree.MemoryOf(v), " ")
}

// ValueLines describes a value in words: its type and shape, its producers and consumers, and the values
// that share its memory.
func ValueLines(x *analyze.Index, step int, id trace.ValueID) []string {
	g := &x.Trace.Graph
	v := &g.Values[id]
	lines := []string{fmt.Sprintf("value %d · %s", id, strings.TrimSpace(v.Kind+" "+v.DType))}
	if v.SourceID != nil {
		lines[0] += fmt.Sprintf(" · id %d in the model file", *v.SourceID)
	}
	mem := memory.Of(x, step)
	lines = append(lines, valueText(mem, id))
	names := func(word string, ids []trace.OpID) {
		if len(ids) == 0 {
			return
		}
		const most = 6
		words := make([]string, 0, most)
		for _, o := range ids[:min(len(ids), most)] {
			words = append(words, g.Ops[o].Name)
		}
		if len(ids) > most {
			words = append(words, fmt.Sprintf("%d more", len(ids)-most))
		}
		lines = append(lines, word+" "+strings.Join(words, ", "))
	}
	names("written by", x.Producers(id))
	names("can be fused into", x.Makers(id))
	names("read by", x.Consumers(id))
	if why := analyze.NotStored(v); why != "" {
		return append(lines, "never in memory: "+why)
	}
	if mem.Tenants[id].FusedAway {
		lines = append(lines, "not computed in this step: fused into its reader")
	}
	if v.Slot == nil {
		return lines
	}
	var turns []string
	for _, n := range mem.Slots[*v.Slot] {
		if step >= 0 && n.First < 0 {
			continue
		}
		name := n.Value.Name
		if n.Value.ID == id {
			name = "this value"
		}
		turns = append(turns, name)
		if len(turns) == 8 {
			turns = append(turns, "…")
			break
		}
	}
	if len(turns) > 1 {
		lines = append(lines, fmt.Sprintf("slot %d is shared by: %s", *v.Slot, strings.Join(turns, ", ")))
	}
	return lines
}
