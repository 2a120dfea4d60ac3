package program

import (
	"fmt"
	"slices"

	"gpuscope/model/checkpoint/pte"
	"gpuscope/model/checkpoint/pte/vulkan"
)

// merging is the state of merge, which joins the delegates that a method calls into one graph.
type merging struct {
	m   *Method
	all *vulkan.Graph
	// args lists the values of the method that are passed to the inputs of the graph.
	args     []int
	computed map[int]int         // value of the method -> value of the graph that contains its last result
	inputs   map[int]int         // value of the method -> input of the graph
	origin   map[int]int         // value of the method -> value that the host copied to it
	keys     map[string]int      // key of a constant -> index in all.Constants
	states   map[int]map[int]int // delegate -> mutable value of the delegate -> value of the graph
	first    map[int]int         // delegate -> index of its first constant in all.Constants
	next     uint32              // id in the graph for operator 0 of the next delegate
}

// mostMerged is the maximum number of values in the merged graph. Each call of a delegate adds all values
// of the delegate, so without this maximum a small file with many calls could cause a lot of work.
const mostMerged = 1 << 20

// merge joins the delegates that the method calls into one graph. `graphs` has the graph of each delegate.
// The ids of values, constants and operators continue from delegate to delegate. A value that one delegate
// computes and another reads stays on the device.
func (m *Method) merge(graphs []*vulkan.Graph) error {
	g := &merging{
		m: m, all: &vulkan.Graph{}, computed: map[int]int{}, inputs: map[int]int{}, origin: map[int]int{},
		keys: map[string]int{}, states: map[int]map[int]int{}, first: map[int]int{},
	}
	copies := m.copies
	m.copies = nil
	for k, call := range m.calls {
		if err := g.add(call, graphs[call.Target]); err != nil {
			return fmt.Errorf("delegate call %d: %w", k, err)
		}
		for _, c := range copies {
			if c.calls == k+1 {
				g.copy(c)
			}
		}
	}
	var results []int
	for _, outer := range m.method.Outputs {
		id, ok := g.computed[outer]
		if !ok || slices.Contains(results, outer) {
			continue
		}
		if at := slices.Index(g.all.Outputs, id); at >= 0 {
			m.copies = append(m.copies, hostCopy{from: results[at], to: outer})
			continue
		}
		g.all.Outputs, results = append(g.all.Outputs, id), append(results, outer)
	}
	call := *m.calls[0]
	call.Args = append(g.args, results...)
	m.source, m.call = g.all, &call
	return nil
}

// copy applies a copy on the host, so that later calls read the copied value.
func (g *merging) copy(c hostCopy) {
	if id, ok := g.computed[c.from]; ok {
		g.computed[c.to] = id
		return
	}
	from, ok := g.origin[c.from]
	if !ok {
		from = c.from
	}
	delete(g.computed, c.to)
	g.origin[c.to] = from
	g.m.copies = append(g.m.copies, hostCopy{from: from, to: c.to})
}

// add adds the graph of a delegate for a call of the method.
func (g *merging) add(call *pte.Instruction, from *vulkan.Graph) error {
	args, results, err := from.Split(call.Args)
	if err != nil {
		return err
	}
	ids := make([]int, len(from.Values)) // values of the graph, by value of the delegate
	base := len(g.all.Values)
	if base+len(ids) > mostMerged {
		return fmt.Errorf("the delegates up to this call have %d values in all; the maximum is %d",
			base+len(ids), mostMerged)
	}
	for id := range ids {
		ids[id] = base + id
	}
	again := g.states[call.Target]
	if again == nil {
		g.states[call.Target] = map[int]int{}
		for _, id := range from.Mutable() {
			g.states[call.Target][id] = ids[id]
		}
	}
	for id, state := range again {
		ids[id] = state // all calls of a delegate change the same buffer
	}
	for i, id := range from.Inputs {
		if err := g.input(from, id, args[i], ids); err != nil {
			return err
		}
	}
	constants := g.constants(call.Target, from)
	for _, v := range from.Values {
		g.all.Values = append(g.all.Values, moved(v, ids, constants))
	}
	next := g.next
	for i := range from.Operators {
		op := &from.Operators[i]
		g.all.Operators = append(g.all.Operators, vulkan.Operator{
			ID: next + op.ID, Name: op.Name, Args: movedIDs(op.Args, ids),
		})
		g.next = max(g.next, next+op.ID+1)
	}
	for i, id := range from.Outputs {
		g.computed[results[i]] = ids[id]
	}
	return nil
}

// input sets ids[id] to the value of the merged graph that the delegate reads as its input `id`. `outer` is
// the value of the method that the call passes for this input.
func (g *merging) input(from *vulkan.Graph, id, outer int, ids []int) error {
	t := from.Values[id].(*vulkan.Tensor) // vulkan.Parse has checked that inputs are tensors
	if at, ok := g.computed[outer]; ok {
		other, ok := g.all.Values[at].(*vulkan.Tensor)
		if !ok || other.Type != t.Type || !slices.Equal(other.Dims, t.Dims) {
			return fmt.Errorf("the delegate reads value %d of the method as %s, but an earlier delegate computes it as %s",
				outer, describeValue(t), describeValue(g.all.Values[at]))
		}
		ids[id] = at
		return nil
	}
	if source, ok := g.origin[outer]; ok {
		outer = source
	}
	if at, ok := g.inputs[outer]; ok {
		other := g.all.Values[at].(*vulkan.Tensor)
		if other.Type == t.Type && slices.Equal(other.Dims, t.Dims) {
			ids[id] = at
			return nil
		}
	}
	g.inputs[outer] = ids[id]
	g.all.Inputs, g.args = append(g.all.Inputs, ids[id]), append(g.args, outer)
	return nil
}

// constants adds the constants of a delegate and returns their indices in the graph. Constants with equal
// keys get the same index. If the method calls a delegate several times, all calls get the same indices.
func (g *merging) constants(delegate int, from *vulkan.Graph) []int {
	first, again := g.first[delegate]
	if !again {
		first = len(g.all.Constants)
		g.first[delegate] = first
		g.all.Constants = append(g.all.Constants, from.Constants...)
	}
	list := make([]int, len(from.Constants))
	for i := range from.Constants {
		list[i] = first + i
		if key := from.Constants[i].Key; key != "" {
			if at, ok := g.keys[key]; ok {
				list[i] = at
			}
			g.keys[key] = list[i]
		}
	}
	return list
}

// moved returns a delegate's value with ids of the merged graph instead of ids of the delegate.
func moved(v vulkan.Value, ids, constants []int) vulkan.Value {
	switch v := v.(type) {
	case vulkan.ValueList:
		return vulkan.ValueList(movedIDs(v, ids))
	case *vulkan.Tensor:
		if v.Constant >= 0 {
			t := *v
			t.Constant = constants[v.Constant]
			return &t
		}
	}
	return v
}

func movedIDs(list, ids []int) []int {
	out := make([]int, len(list))
	for i, id := range list {
		out[i] = ids[id]
	}
	return out
}
