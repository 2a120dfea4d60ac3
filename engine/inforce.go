package engine

import "gpuscope/trace"

// InForce is what a dispatch of the live shapes is submitted with.
type InForce struct {
	Dispatch   trace.DispatchID
	Kernel     string
	Route      string
	Workgroups [3]int
}

// InForce appends the dispatches of the shapes in force to a list, in order of submission.
func (x *Executor) InForce(list []InForce) []InForce {
	for _, id := range x.live.Active() {
		d := &x.g.dispatches[id]
		o, p := &x.g.ops[d.op], &x.live.plans[d.op]
		list = append(list, InForce{
			id, x.g.names[o.use(d.slot, p.route).Kernel], o.routeName(p.route),
			p.launches[d.slot].Grid.counts(),
		})
	}
	return list
}
