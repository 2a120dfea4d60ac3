package inspect

import (
	"fmt"
	"math"
	"strings"

	"gpuscope/trace"
)

// PlanDiff is how a dispatch's plan differs from another.
type PlanDiff struct {
	Grid, Route, Params bool
	New, Gone           bool // there is no other; there is none any more
}

// DiffPlans compares two plans of one dispatch; nil is a step in which it did not run.
func DiffPlans(from, to *trace.Plan) PlanDiff {
	switch {
	case from == nil && to == nil:
		return PlanDiff{}
	case from == nil:
		return PlanDiff{New: true}
	case to == nil:
		return PlanDiff{Gone: true}
	}
	return PlanDiff{
		Grid:   from.Workgroups != to.Workgroups,
		Route:  from.Kernel != to.Kernel || from.Route != to.Route,
		Params: from.Params != to.Params,
	}
}

// Any says whether anything differs.
func (d PlanDiff) Any() bool { return d != PlanDiff{} }

func (d PlanDiff) or(e PlanDiff) PlanDiff {
	return PlanDiff{
		Grid: d.Grid || e.Grid, Route: d.Route || e.Route, Params: d.Params || e.Params,
		New: d.New || e.New, Gone: d.Gone || e.Gone,
	}
}

// String has a letter for each: g grid, r route, p params, + new, - gone.
func (d PlanDiff) String() string {
	var b strings.Builder
	for _, m := range []struct {
		on   bool
		mark byte
	}{{d.New, '+'}, {d.Gone, '-'}, {d.Grid, 'g'}, {d.Route, 'r'}, {d.Params, 'p'}} {
		if m.on {
			b.WriteByte(m.mark)
		}
	}
	return b.String()
}

// Delta is a dispatch, or several, against a base step.
type Delta struct {
	PlanDiff
	// Timed says that both sides have repeats enough to be compared; TimeNS is then the difference, and Equal
	// that it is within max(2 quanta, IQR), or the range of the samples where they are too few for an IQR.
	Timed  bool
	TimeNS float64
	Equal  bool
}

// String is the text of the Δ column: "gp t+1.2", "=" where only times could differ and do not. Decimals are
// those of a µs.
func (d Delta) text(decimals int) string {
	out := d.PlanDiff.String()
	switch {
	case !d.Timed:
		return out
	case d.Equal && out == "":
		return "="
	case d.Equal:
		return out + " ="
	}
	return strings.TrimSpace(fmt.Sprintf("%s t%+.*f", out, decimals, d.TimeNS/1e3))
}

// deltaOf compares a launch with the same dispatch of a base step. Times of single runs are not compared: one
// sample says nothing of its spread.
func deltaOf(now, base *Launch, resolutionNS float64, sameClock bool) Delta {
	if base == nil {
		return Delta{PlanDiff: PlanDiff{New: true}}
	}
	d := Delta{PlanDiff: DiffPlans(base.Plan, now.Plan)}
	if sameClock && now.Time.N > 1 && base.Time.N > 1 {
		d.Timed, d.TimeNS = true, now.Time.Median-base.Time.Median
		d.Equal = math.Abs(d.TimeNS) <= max(resolutionNS, now.Time.noise(), base.Time.noise())
	}
	return d
}

// Base is what tables compare with; it may belong to another trace.
type Base struct {
	Index *Index
	Scope Scope
}

// clockMoved is the change of the canary's ratio beyond which times of two steps are not compared.
const clockMoved = 0.03

// join finds for every launch the one of the base that is the same dispatch: by id where the graphs agree on
// what the id is, in another graph by the names of operator and slot; of several the one of the same work.
// Where they have no dispatch in common they are joined by order.
func join(now, base []Launch) (of []*Launch, gone []*Launch, byOrder bool) {
	of = make([]*Launch, len(now))
	b := newBaseLaunches(base)
	found := make(map[trace.DispatchID]bool, len(now))
	for i := range now {
		if of[i] = b.find(&now[i]); of[i] != nil {
			found[of[i].ID] = true
		}
	}
	if len(found) == 0 && len(base) > 0 {
		for i := range min(len(now), len(base)) {
			of[i], found[base[i].ID] = &base[i], true
		}
		byOrder = len(now) > 0
	}
	for i := range base {
		if !found[base[i].ID] {
			gone = append(gone, &base[i])
		}
	}
	return of, gone, byOrder
}

// baseLaunches finds launches of a base.
type baseLaunches struct {
	byID   map[trace.DispatchID][]*Launch
	byName map[string][]*Launch
}

func newBaseLaunches(base []Launch) baseLaunches {
	b := baseLaunches{
		make(map[trace.DispatchID][]*Launch, len(base)), make(map[string][]*Launch, len(base)),
	}
	for i := range base {
		l := &base[i]
		b.byID[l.ID] = append(b.byID[l.ID], l)
		b.byName[l.slot()] = append(b.byName[l.slot()], l)
	}
	return b
}

// slot names a dispatch in its graph.
func (l *Launch) slot() string { return l.Op.Name + "\x00" + l.Dispatch.Label }

func (b baseLaunches) find(l *Launch) *Launch {
	list := b.byID[l.ID]
	if len(list) == 0 || list[0].slot() != l.slot() {
		list = b.byName[l.slot()]
	}
	for _, c := range list {
		if c.Plan.Kernel == l.Plan.Kernel && c.Tokens == l.Tokens {
			return c
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[len(list)-1]
}
