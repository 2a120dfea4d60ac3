package graph

import (
	"slices"

	"gpuscope/engine/graph/grid"
	"gpuscope/trace"
)

// These functions and types give tests access to internals.

// HookRun is a logged run of an operator's plan during a resize.
type HookRun struct {
	Pass                   int
	Op                     string
	Noop, Glitch, Deferred bool
	Triggers               []string
	Changed                []ValueID
	Plans                  []PlanRun
}

// PlanRun is a dispatch's launch before and after a run; nil if the dispatch was not active.
type PlanRun struct {
	Dispatch      trace.DispatchID
	Before, After *LaunchRun
}

// LaunchRun is a launch and its kernel.
type LaunchRun struct {
	Kernel string
	Grid   grid.Grid
	Params []byte
}

// Hooks returns the runs of the last propagation, before it is committed.
func (l *Live) Hooks() (list []HookRun) {
	log := &l.log
	launch := func(d trace.DispatchID, r launchRecord, params []byte) *LaunchRun {
		if !r.active {
			return nil
		}
		return &LaunchRun{l.G.KernelOf(d, r.route).Name, r.grid, params}
	}
	hook, trigger, change, plan, param := 0, 0, 0, 0, 0
	for pass, p := range log.passes {
		for ; hook < p.hookEnd; hook++ {
			h := &log.hooks[hook]
			run := HookRun{
				Pass: pass, Op: l.G.Ops[h.op].Name, Noop: h.noop, Glitch: h.glitch, Deferred: h.deferred,
			}
			for ; trigger < h.triggerEnd; trigger++ {
				run.Triggers = append(run.Triggers, l.G.Values[log.triggers[trigger]].Name)
			}
			for ; change < h.changeEnd; change++ {
				run.Changed = append(run.Changed, log.changes[change].value)
			}
			for ; plan < h.planEnd; plan++ {
				r := &log.plans[plan]
				before, params := l.Plans[h.op].record(l.G.Dispatches[r.dispatch].Slot, nil)
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

// NextDims returns the dims that the transaction sets for a value.
func (l *Live) NextDims(v ValueID) []int { return l.next.dims[v] }

// Unshared returns the number of levels if each value has its own memory, the same if they also run in one
// pass, and how many additional levels the layout is known to cost.
func (l *Live) Unshared() (apart, onePass, late int) {
	own := *l.G
	p := l.G.Layouts[l.Layout]
	p.slot, own.Layouts = slices.Repeat([]int{-1}, len(own.Values)), []Layout{p}
	l.G, l.Layout, l.relist = &own, 0, true
	apart = len(l.Levels())
	own.Layouts[0].passes, l.relist = make([]int, len(own.Dispatches)), true
	return apart, len(l.Levels()), p.late
}

// SharesMemory reports whether a value is an alias that shares the memory of its source.
func (g *Graph) SharesMemory(v ValueID) bool {
	p, of := &g.Layouts[0], g.Values[v].Alias
	return of != None && g.Memory(p, v) == g.Memory(p, of)
}

// Slots returns the number of memory slots that values share.
func (g *Graph) Slots() int { return len(g.Layouts[0].Slots) }

// SlotsOf returns for each layout the slots of all values. -1 means that a value has its own memory.
func (g *Graph) SlotsOf() (list [][]int) {
	for i := range g.Layouts {
		list = append(list, g.Layouts[i].slot)
	}
	return list
}

// Touches returns the values whose memory a dispatch reads or writes.
func (g *Graph) Touches(d trace.DispatchID) (roots []ValueID) {
	for _, v := range slices.Concat(g.Dispatches[d].reads, g.Dispatches[d].Writes) {
		roots = append(roots, g.Root(v))
	}
	return roots
}

// RouteAsked returns the route that was requested for an operator, and whether it is mandatory.
func (g *Graph) RouteAsked(id OpID) (route int, must bool) {
	return g.Ops[id].request.route, g.Ops[id].request.must
}

// Replace replaces an operator's implementation and returns the previous one.
func (g *Graph) Replace(id OpID, impl Operator) Operator {
	was := g.Ops[id].impl
	g.Ops[id].impl = impl
	return was
}
