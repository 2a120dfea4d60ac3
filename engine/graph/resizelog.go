package graph

import (
	"time"

	"gpuscope/engine/graph/grid"
	"gpuscope/trace"
)

// ResizeLog is the log of one Propagate, with a record for each run of an operator's plan. The next Propagate
// overwrites the log, so Shapes.Take makes a copy.
type ResizeLog struct {
	Order    Order
	NS       int64 // duration of the Propagate in ns
	untimed  bool  // the log comes from Tracer.replan, so it has no times
	passes   []loggedPass
	hooks    []loggedHook // runs of operators' plans
	dirty    []ValueID
	triggers []ValueID
	changes  []loggedChange
	ints     []int // new live shapes of the values in `changes`
	plans    []loggedPlan
	params   []byte // params of the plans
}

// The records below refer to elements of the lists in a ResizeLog. Each record has a range of elements, and
// stores the index at which this range ends. The range begins where the range of the previous record ends.
type loggedPass struct{ dirtyEnd, hookStart, hookEnd, changeStart int }

type loggedHook struct {
	op                             OpID
	ns                             int64
	noop, glitch, deferred         bool
	triggerEnd, changeEnd, planEnd int
}

// loggedChange is the new live shape of a value. The Tracer knows the previous shape from earlier records.
type loggedChange struct {
	value  ValueID
	absent bool // the step does not compute the value
	end    int  // end of the shape in ResizeLog.ints
}

// loggedPlan is the new plan of a dispatch.
type loggedPlan struct {
	dispatch trace.DispatchID
	to       launchRecord
}

// launchRecord holds those fields of a Launch that are part of trace records.
type launchRecord struct {
	active       bool
	route        int
	reason       Reason
	grid         grid.Grid
	needed       [3]uint32
	bytes, flops int64
	experts      trace.ExpertTiles
	paramsEnd    int // index in the list of params at which this launch's params end
}

// Passes returns how many passes the Propagate made: 0 if no input had changed.
func (l *ResizeLog) Passes() int { return len(l.passes) }

func (l *ResizeLog) begin(o Order) {
	*l = ResizeLog{
		Order: o, passes: l.passes[:0], hooks: l.hooks[:0], dirty: l.dirty[:0], triggers: l.triggers[:0],
		changes: l.changes[:0], ints: l.ints[:0], plans: l.plans[:0],
		params: l.params[:0],
	}
}

// pass begins the log of a pass. The values in `dirty` triggered the pass.
func (l *ResizeLog) pass(dirty []ValueID) {
	l.dirty = append(l.dirty, dirty...)
	l.passes = append(l.passes,
		loggedPass{
			dirtyEnd: len(l.dirty), hookStart: len(l.hooks), hookEnd: len(l.hooks),
			changeStart: len(l.changes),
		})
}

// changedInPass returns the values that the last pass changed. These values trigger the next pass.
func (l *ResizeLog) changedInPass() []ValueID {
	start := len(l.dirty)
	for _, c := range l.changes[l.passes[len(l.passes)-1].changeStart:] {
		l.dirty = append(l.dirty, c.value)
	}
	list := l.dirty[start:]
	l.dirty = l.dirty[:start]
	return list
}

// hook begins the record of a run of an operator's plan. It returns the index of this record.
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

// record returns the record of a slot's launch. It also appends the launch's params to `params` and returns
// the result.
func (p *Plan) record(slot int, params []byte) (launchRecord, []byte) {
	l := &p.Launches[slot]
	r := launchRecord{active: l.Active}
	if l.Active {
		r = launchRecord{
			true, p.Route, p.Reason, l.Grid, l.Needed, l.Bytes, l.FLOPs, l.Experts,
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
