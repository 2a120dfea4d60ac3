package engine

import (
	"time"

	"gpuscope/trace"
)

// ResizeLog is the record of one propagation, run by run. Its memory is used again by the next; Trace copies
// it out.
type ResizeLog struct {
	Order    Order
	NS       int64
	passes   []loggedPass
	hooks    []loggedHook
	dirty    []ValueID
	triggers []ValueID
	changes  []loggedChange
	ints     []int // dims of changes, before and after
	plans    []loggedPlan
}

// Each record below begins where the one before it ends in the lists it points into.
type loggedPass struct{ dirtyEnd, hookStart, hookEnd, changeStart int }

type loggedHook struct {
	op                             OpID
	ns                             int64
	noop, glitch, deferred         bool
	triggerEnd, changeEnd, planEnd int
}

type loggedChange struct {
	value   ValueID
	fromEnd int // of ints
	toEnd   int
}

// loggedPlan is the change of one dispatch's plan.
type loggedPlan struct {
	dispatch      trace.DispatchID
	before, after loggedLaunch
}

type loggedLaunch struct {
	Launch
	route  int
	reason Reason
}

func (l *ResizeLog) begin(o Order) {
	*l = ResizeLog{
		Order: o, passes: l.passes[:0], hooks: l.hooks[:0], dirty: l.dirty[:0], triggers: l.triggers[:0],
		changes: l.changes[:0], ints: l.ints[:0], plans: l.plans[:0],
	}
}

// pass begins a pass that the dirty values cause.
func (l *ResizeLog) pass(dirty []ValueID) {
	l.dirty = append(l.dirty, dirty...)
	l.passes = append(l.passes,
		loggedPass{
			dirtyEnd: len(l.dirty), hookStart: len(l.hooks), hookEnd: len(l.hooks),
			changeStart: len(l.changes),
		})
}

// changedInPass are the values that the last pass changed, each once: what makes the next pass.
func (l *ResizeLog) changedInPass() []ValueID {
	start := len(l.dirty)
	for _, c := range l.changes[l.passes[len(l.passes)-1].changeStart:] {
		l.dirty = append(l.dirty, c.value)
	}
	list := l.dirty[start:]
	l.dirty = l.dirty[:start]
	return list
}

// hook begins a run of an operator's plan and returns its index.
func (l *ResizeLog) hook(o OpID) int {
	l.hooks = append(l.hooks, loggedHook{op: o})
	return len(l.hooks) - 1
}

func (l *ResizeLog) end(hook int, start time.Time) {
	h := &l.hooks[hook]
	h.ns = time.Since(start).Nanoseconds()
	h.triggerEnd, h.changeEnd, h.planEnd = len(l.triggers), len(l.changes), len(l.plans)
	l.passes[len(l.passes)-1].hookEnd = len(l.hooks)
}

func (l *ResizeLog) changeDims(v ValueID, from, to []int) {
	l.ints = append(l.ints, from...)
	fromEnd := len(l.ints)
	l.ints = append(l.ints, to...)
	l.changes = append(l.changes, loggedChange{v, fromEnd, len(l.ints)})
}

func (l *ResizeLog) changeInt(v ValueID, from, to int64) {
	l.ints = append(l.ints, int(from), int(to))
	l.changes = append(l.changes, loggedChange{v, len(l.ints) - 1, len(l.ints)})
}

func (l *ResizeLog) plan(d trace.DispatchID, before, after *plan, slot int) {
	l.plans = append(l.plans, loggedPlan{
		d,
		loggedLaunch{before.launches[slot], before.route, before.reason},
		loggedLaunch{after.launches[slot], after.route, after.reason},
	})
}

// PlanIDs gives a logged plan its id in the trace.
type planIDs func(trace.DispatchID, *loggedLaunch) *trace.PlanID

// trace copies the log into the form a trace has. before and after give the two sides of every change of a
// plan, in order.
func (l *ResizeLog) trace(before, after planIDs) trace.Resize {
	r := trace.Resize{Order: l.Order.String(), NS: trace.Measured(l.NS)}
	var at struct{ dirty, hook, trigger, change, plan, int int }
	for i, p := range l.passes {
		tp := trace.Pass{
			Index: i, Dirty: append([]ValueID{}, l.dirty[at.dirty:p.dirtyEnd]...),
			Hooks: []trace.Hook{},
		}
		at.dirty = p.dirtyEnd
		for ; at.hook < p.hookEnd; at.hook++ {
			h := &l.hooks[at.hook]
			th := trace.Hook{
				Op: h.op, Triggers: append([]ValueID{}, l.triggers[at.trigger:h.triggerEnd]...),
				NS: trace.Measured(h.ns), Noop: h.noop, Glitch: h.glitch, Deferred: h.deferred,
			}
			at.trigger = h.triggerEnd
			for ; at.change < h.changeEnd; at.change++ {
				c := l.changes[at.change]
				th.Changed = append(th.Changed, trace.Change{
					Value: c.value, From: append([]int{}, l.ints[at.int:c.fromEnd]...),
					To: append([]int{}, l.ints[c.fromEnd:c.toEnd]...),
				})
				at.int = c.toEnd
			}
			for ; at.plan < h.planEnd; at.plan++ {
				p := &l.plans[at.plan]
				th.Plans = append(th.Plans,
					trace.PlanChange{From: before(p.dispatch, &p.before), To: after(p.dispatch, &p.after)})
			}
			tp.Hooks = append(tp.Hooks, th)
		}
		r.Passes = append(r.Passes, tp)
	}
	return r
}
