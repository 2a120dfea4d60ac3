package main

import (
	"errors"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/internal/printable"
	"gpuscope/model/checkpoint/pte"
	"gpuscope/model/checkpoint/pte/describe"
	runner "gpuscope/model/program"
)

// addPlans plans the methods of a program for the limits that every device has.
func addPlans(f *pte.File, info *describe.Info) {
	for i := range info.Methods {
		if len(info.Methods[i].Instructions) > 0 {
			info.Methods[i].Plan = planOf(f, f.Methods[i])
		}
	}
}

// planOf plans a method and lists which tensors of its delegate share memory. It reads no weights.
func planOf(f *pte.File, of *pte.Method) *describe.Plan {
	const device = "WebGPU's default limits"
	m, err := runner.Build(f, of.Name, gpu.DefaultLimits(), runner.Options{})
	if err != nil {
		if inner := errors.Unwrap(err); inner != nil { // without the names of the file and the method
			err = inner
		}
		return &describe.Plan{Device: device, Refused: printable.Short(err.Error(), longestReason)}
	}
	g := m.Graph
	p := &describe.Plan{
		Device: device, Operators: g.NumOps(), Dispatches: g.NumDispatches(), Bytes: g.AllocatedBytes(),
		Layouts: make([]describe.Layout, len(g.Layouts)), Fused: []int{}, Own: []int{},
	}
	ids := map[graph.ValueID][]int{} // tensors of the file by value of the graph
	for id := range m.NumValues() {
		v := m.Value(id)
		if v == graph.None {
			continue
		}
		switch role := g.Value(v).Role; {
		case role == graph.Fused:
			p.Fused = append(p.Fused, id)
		case role != graph.Constant && g.HasOwn(v):
			p.Own = append(p.Own, id)
		}
		ids[v] = append(ids[v], id)
	}
	for i := range g.Layouts {
		l := &g.Layouts[i]
		for _, n := range l.Slots {
			p.Layouts[i].Slots = append(p.Layouts[i].Slots, describe.Slot{Bytes: n, Values: []int{}})
		}
		for v := range g.NumValues() {
			id := graph.ValueID(v)
			at := g.Memory(l, id) - l.Base
			switch {
			case at < 0 || at >= len(l.Slots):
			case len(ids[id]) > 0:
				p.Layouts[i].Slots[at].Values = append(p.Layouts[i].Slots[at].Values, ids[id]...)
			default:
				p.Layouts[i].Slots[at].Others++
			}
		}
	}
	return p
}
