package engine

import (
	"slices"

	"gpuscope/trace"
)

// What tests look at that is nobody else's business.

// HookRun is a run of an operator's plan as a resize logged it.
type HookRun struct {
	Pass                   int
	Op                     string
	Noop, Glitch, Deferred bool
	Triggers               []string
	Changed                []ValueID
	Plans                  []PlanRun
}

// PlanRun is what a dispatch was launched with before and after a run; nil where it was not in use.
type PlanRun struct {
	Dispatch      trace.DispatchID
	Before, After *LaunchRun
}

// LaunchRun is a launch with its kernel.
type LaunchRun struct {
	Kernel string
	Grid   Grid
	Params []byte
}

// Hooks are the runs of the last propagation, before it is committed.
func (l *Live) Hooks() (list []HookRun) {
	log := &l.log
	launch := func(d trace.DispatchID, r launchRecord, params []byte) *LaunchRun {
		if !r.active {
			return nil
		}
		return &LaunchRun{l.g.kernelOf(d, r.route).Name, r.grid, params}
	}
	hook, trigger, change, plan, param := 0, 0, 0, 0, 0
	for pass, p := range log.passes {
		for ; hook < p.hookEnd; hook++ {
			h := &log.hooks[hook]
			run := HookRun{
				Pass: pass, Op: l.g.ops[h.op].name, Noop: h.noop, Glitch: h.glitch, Deferred: h.deferred,
			}
			for ; trigger < h.triggerEnd; trigger++ {
				run.Triggers = append(run.Triggers, l.g.values[log.triggers[trigger]].name)
			}
			for ; change < h.changeEnd; change++ {
				run.Changed = append(run.Changed, log.changes[change].value)
			}
			for ; plan < h.planEnd; plan++ {
				r := &log.plans[plan]
				before, params := l.plans[h.op].record(l.g.dispatches[r.dispatch].slot, nil)
				run.Plans = append(run.Plans, PlanRun{
					r.dispatch, launch(r.dispatch, before, params),
					launch(r.dispatch, r.to, log.params[param:r.to.paramsEnd]),
				})
				param = r.to.paramsEnd
			}
			list = append(list, run)
		}
	}
	return list
}

// NextDims are the dims that the transaction gives a value.
func (l *Live) NextDims(v ValueID) []int { return l.next.dims[v] }

// Unshared counts the levels where each value has memory of its own, and where these run in one pass too, and
// how many more the layout is known to cost.
func (l *Live) Unshared() (apart, onePass, late int) {
	own := *l.g
	p := l.g.layouts[l.layout]
	p.slot, own.layouts = slices.Repeat([]int{-1}, len(own.values)), []layout{p}
	l.g, l.layout, l.routesMove = &own, 0, true
	apart = len(l.Levels())
	own.layouts[0].passes, l.routesMove = make([]int, len(own.dispatches)), true
	return apart, len(l.Levels()), p.late
}

// SharesMemory reports whether a value is an alias, and is in the memory of what it is one of.
func (g *Graph) SharesMemory(v ValueID) bool {
	p, of := &g.layouts[0], g.values[v].alias
	return of != None && g.memory(p, v) == g.memory(p, of)
}

// Slots is the number of slots that values share.
func (g *Graph) Slots() int { return len(g.layouts[0].slots) }

// SlotsOf are, for each layout, the slots of all values, -1 for memory of its own.
func (g *Graph) SlotsOf() (list [][]int) {
	for i := range g.layouts {
		list = append(list, g.layouts[i].slot)
	}
	return list
}

// Touches are the values that a dispatch reads and writes, by whose memory they are in.
func (g *Graph) Touches(d trace.DispatchID) (roots []ValueID) {
	for _, v := range slices.Concat(g.dispatches[d].reads, g.dispatches[d].writes) {
		roots = append(roots, g.root(v))
	}
	return roots
}

// RouteAsked is the route that was asked of an operator and whether it must be taken.
func (g *Graph) RouteAsked(id OpID) (route int, must bool) {
	return g.ops[id].request.route, g.ops[id].request.must
}

// Replace has another implementation stand in for an operator's, and returns the former.
func (g *Graph) Replace(id OpID, impl Operator) Operator {
	was := g.ops[id].impl
	g.ops[id].impl = impl
	return was
}
