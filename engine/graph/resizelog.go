package graph

import (
	"time"

	"gpuscope/engine/graph/grid"
	"gpuscope/trace"
)

// ResizeLog is the record of one Propagate, run by run. The next one reuses its memory; Shapes.Take copies
// it.
type ResizeLog struct {
	Order    Order
	NS       int64
	untimed  bool // its times were not measured
	passes   []loggedPass
	hooks    []loggedHook
	dirty    []ValueID
	triggers []ValueID
	changes  []loggedChange
	ints     []int // live shapes after changes
	plans    []loggedPlan
	params   []byte // of plans
}

// The records below use parts of shared lists. Each part begins where the previous record's part ends.
type loggedPass struct{ dirtyEnd, hookStart, hookEnd, changeStart int }

type loggedHook struct {
	op                             OpID
	ns                             int64
	noop, glitch, deferred         bool
	triggerEnd, changeEnd, planEnd int
}

// loggedChange is a value's new live shape. The previous one is known from the previous record.
type loggedChange struct {
	value  ValueID
	absent bool // the step does not compute it
	end    int  // of ints
}

// loggedPlan is a dispatch whose plan changed.
type loggedPlan struct {
	dispatch trace.DispatchID
	to       launchRecord
}

// launchRecord is the part of a Launch that records need.
type launchRecord struct {
	active       bool
	route        int
	reason       Reason
	grid         grid.Grid
	needed       [3]uint32
	bytes, flops int64
	paramsEnd    int // end in the list of params
}

// Passes is the number of passes of the Propagate, 0 if nothing was dirty.
func (l *ResizeLog) Passes() int { return len(l.passes) }

func (l *ResizeLog) begin(o Order) {
	*l = ResizeLog{
		Order: o, passes: l.passes[:0], hooks: l.hooks[:0], dirty: l.dirty[:0], triggers: l.triggers[:0],
		changes: l.changes[:0], ints: l.ints[:0], plans: l.plans[:0],
		params: l.params[:0],
	}
}

// pass begins a pass that the dirty values trigger.
func (l *ResizeLog) pass(dirty []ValueID) {
	l.dirty = append(l.dirty, dirty...)
	l.passes = append(l.passes,
		loggedPass{
			dirtyEnd: len(l.dirty), hookStart: len(l.hooks), hookEnd: len(l.hooks),
			changeStart: len(l.changes),
		})
}

// changedInPass are the values that the last pass changed, each once. They trigger the next pass.
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

func (l *ResizeLog) changeDims(v ValueID, to []int, absent bool) {
	if !absent {
		l.ints = append(l.ints, to...)
	}
	l.changes = append(l.changes, loggedChange{v, absent, len(l.ints)})
}

func (l *ResizeLog) changeInt(v ValueID, to int64) {
	l.ints = append(l.ints, int(to))
	l.changes = append(l.changes, loggedChange{v, false, len(l.ints)})
}

func (l *ResizeLog) plan(d trace.DispatchID, after *Plan, slot int) {
	var to launchRecord
	to, l.params = after.record(slot, l.params)
	l.plans = append(l.plans, loggedPlan{d, to})
}

// record is a slot's launch, with its params appended to a list.
func (p *Plan) record(slot int, params []byte) (launchRecord, []byte) {
	l := &p.Launches[slot]
	r := launchRecord{active: l.Active}
	if l.Active {
		r = launchRecord{
			true, p.Route, p.Reason, l.Grid, l.Needed, l.Bytes, l.FLOPs,
			len(params) + len(l.Params.Bytes()),
		}
		params = append(params, l.Params.Bytes()...)
	}
	r.paramsEnd = len(params)
	return r, params
}

// copyFrom makes l a deep copy of m, reusing l's memory.
func (l *ResizeLog) copyFrom(m *ResizeLog) {
	*l = ResizeLog{
		Order: m.Order, NS: m.NS, untimed: m.untimed, passes: append(l.passes[:0], m.passes...),
		hooks: append(l.hooks[:0], m.hooks...), dirty: append(l.dirty[:0], m.dirty...),
		triggers: append(l.triggers[:0], m.triggers...), changes: append(l.changes[:0], m.changes...),
		ints: append(l.ints[:0], m.ints...), plans: append(l.plans[:0], m.plans...),
		params: append(l.params[:0], m.params...),
	}
}
