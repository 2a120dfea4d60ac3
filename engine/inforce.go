package engine

import "gpuscope/trace"

// InForce describes how a dispatch is launched at the current shapes.
type InForce struct {
	Dispatch   trace.DispatchID
	Kernel     string
	Route      string
	Workgroups [3]int
}

// InForce appends to `list`, in order of submission, the dispatches that run at the current shapes.
func (x *Executor) InForce(list []InForce) []InForce {
	for _, id := range x.live.Active() {
		d := &x.g.Dispatches[id]
		o, p := &x.g.Ops[d.Op], &x.live.Plans[d.Op]
		list = append(list, InForce{
			id, x.g.KernelNames[o.Use(d.Slot, p.Route).Kernel], o.RouteName(p.Route),
			p.Launches[d.Slot].Grid.Counts(),
		})
	}
	return list
}
