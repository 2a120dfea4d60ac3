package inspect

import (
	"context"
	"fmt"
	"math"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/table"
)

// PlanDiff is how a dispatch's plan differs from another.
type PlanDiff struct {
	Grid, Route, Params bool
	Text                bool // another text of the same kernel
	New, Gone           bool // there is no other; there is none any more
}

// DiffPlans compares two plans of one dispatch; nil is a step in which it did not run.
func DiffPlans(from, to *trace.Plan) PlanDiff {
	d := diffLaunches(from, to)
	if from != nil && to != nil {
		d.Params, d.Text = from.Params != to.Params, from.Kernel != to.Kernel && !d.Route
	}
	return d
}

// diffLaunches is how two plans launch otherwise, without what takes longer to be compared.
func diffLaunches(from, to *trace.Plan) PlanDiff {
	if from == nil || to == nil {
		return PlanDiff{New: from == nil && to != nil, Gone: from != nil && to == nil}
	}
	return PlanDiff{Grid: from.Workgroups != to.Workgroups, Route: rerouted(from, to)}
}

// launchesOtherwise says whether one plan launches otherwise than another.
func launchesOtherwise(a, b *trace.Plan) bool { return diffLaunches(a, b).Any() }

// Any says whether anything differs.
func (d PlanDiff) Any() bool { return d != PlanDiff{} }

// regrids says whether it is more than params or a kernel's text that differs.
func (d PlanDiff) regrids() bool { return d.Grid || d.Route || d.New || d.Gone }

func (d PlanDiff) or(e PlanDiff) PlanDiff {
	return PlanDiff{
		Grid: d.Grid || e.Grid, Route: d.Route || e.Route, Params: d.Params || e.Params,
		Text: d.Text || e.Text, New: d.New || e.New, Gone: d.Gone || e.Gone,
	}
}

// String has a letter for each: g grid, r route, k text of the kernel, p params, + new, - gone.
func (d PlanDiff) String() string {
	var b strings.Builder
	for _, m := range []struct {
		on   bool
		mark byte
	}{{d.New, '+'}, {d.Gone, '-'}, {d.Grid, 'g'}, {d.Route, 'r'}, {d.Text, 'k'}, {d.Params, 'p'}} {
		if m.on {
			b.WriteByte(m.mark)
		}
	}
	return b.String()
}

// Delta is a dispatch, or several, against a base step.
type Delta struct {
	PlanDiff
	From *trace.Plan // of the base; nil where it did not run there, and of several dispatches
	// Timed says that both sides have repeats enough to be compared. TimeNS is then the time less BaseNS, and
	// Equal that it is within max(2 quanta, IQR), or the range of the samples where they are too few for an
	// IQR.
	Timed          bool
	TimeNS, BaseNS float64
	Equal          bool
}

// percent is the difference in time as a part of the base's: "-12%".
func (d Delta) percent() string {
	share := 100 * d.TimeNS / d.BaseNS
	if math.Abs(share) < 9.95 {
		return fmt.Sprintf("%+.1f%%", share)
	}
	return fmt.Sprintf("%+.0f%%", share)
}

// decimals are those of a difference in µs: as many as the larger of the figures has that it is one of.
func (d Delta) decimals(most int) int {
	return table.MicrosDecimals(max(d.BaseNS, d.BaseNS+d.TimeNS)/1e3, most)
}

// differenceCell is a difference of ns as it is written in µs, or = where it is none that can be told.
func differenceCell(ns float64, decimals int, equal bool) table.Cell {
	cell := table.Cell{Text: fmt.Sprintf("%+.*f", decimals, ns/1e3), Number: ns / 1e3, Has: true}
	if equal {
		cell.Text, cell.Mark = markNone, markNone
	}
	return cell
}

// deltaCell is the Δ of a row: how its plans differ, "48→96" of grids, "r batch8→gemv" of routes, "k
// own→3fa21b07" of texts of the kernel, p where it is the params alone, a letter each where they differ in
// several ways; and the difference in time. Both grids are what is said in any room.
func (t *DispatchTable) deltaCell(r *DispatchRow) table.Cell {
	d := r.Delta
	plan, same := t.same(r, func(l *Launch) string {
		return planDiffText(l.Delta.PlanDiff, l.Delta.From, l.Plan)
	})
	short := ""
	switch {
	case r.gone != nil:
		return table.Text("-")
	case !same || r.Group && d.regrids():
		plan = d.PlanDiff.String()
		short = plan
	case plan == "" && d.Params:
		plan = "p"
	case d.Grid && !d.New:
		if l := t.Launch(r); d.Route {
			short = gridDiffText(l.Delta.From, l.Plan) + " r"
		} else {
			short = gridDiffText(l.Delta.From, l.Plan)
		}
	case d.Route && !d.New:
		short = "r"
	case d.Text:
		short = "k"
	}
	switch {
	case !d.Timed:
	case d.Equal:
		plan = strings.TrimSpace(plan + " =")
	default:
		plan = strings.TrimSpace(plan + " " + d.percent())
	}
	return table.Cell{Text: plan, Short: short}
}

// deltaColumns are what changed against the base.
func (t *DispatchTable) deltaColumns() []table.Column {
	decimals := table.DecimalsOfUS(t.Index.Trace.Clock.QuantumNS)
	us := func(of func(Delta) float64, sign string) func(int) table.Cell {
		return t.ran(func(r *DispatchRow) table.Cell {
			if !r.Delta.Timed {
				return table.Cell{}
			}
			c := table.Number(of(r.Delta)/1e3, r.Delta.decimals(decimals))
			if c.Number > 0 {
				c.Text = sign + c.Text
			}
			return c
		})
	}
	cost := t.Base.costsBeside(t.Costs).deltaCostColumn(200,
		func(row int) *RowCost { return t.Folded[row].Cost })
	return []table.Column{
		cost, table.Marks(cost),
		{
			Name: "delta", Title: "Δ", Width: 80,
			Doc: "against the base: + new, - gone, grid from→to, r route, k another text of the kernel, p params " +
				"alone (of a heading a letter each), % of Σµs, = no difference in time",
			Of: table.By(t.Folded)(t.deltaCell),
		},
		{
			Name: "base_us", Title: "Σµs base", Unit: "us", Is: table.Measured, Right: true, Width: 200,
			Doc: "GPU time of the same dispatches in a step of the base",
			Of:  us(func(d Delta) float64 { return d.BaseNS }, ""),
		},
		{
			Name: "delta_us", Title: "Δµs", Unit: "us", Is: table.Measured, Right: true, Width: 200,
			Doc: "Σµs less that of the base",
			Of:  us(func(d Delta) float64 { return d.TimeNS }, "+"),
		},
	}
}

// deltaOf compares a launch with the same dispatch of a base step. Times of single runs are not compared: one
// sample says nothing of its spread.
func deltaOf(now, base *Launch, resolutionNS float64, sameClock bool) Delta {
	if base == nil {
		return Delta{PlanDiff: PlanDiff{New: true}}
	}
	d := Delta{PlanDiff: DiffPlans(base.Plan, now.Plan), From: base.Plan}
	if sameClock && now.Time.N > 1 && base.Time.N > 1 {
		d.Timed, d.TimeNS, d.BaseNS = true, now.Time.Median-base.Time.Median, base.Time.Median
		d.Equal = math.Abs(d.TimeNS) <= max(resolutionNS, now.Time.noise(), base.Time.noise())
	}
	return d
}

// Base is what tables compare with; it may belong to another trace.
type Base struct {
	Index *Index
	Scope Scope
}

// Other is the part of a title that says of which other model, or device, a base of this run is: what differs
// then is no change. It says nothing where both have the same.
func (x *Index) Other(base *Index) table.Part {
	var what, which []string
	now, then := x.Trace, base.Trace
	is, was := &now.Model, &then.Model
	if was.Name != is.Name || was.Parameters != is.Parameters || was.Quantization != is.Quantization {
		what, which = append(what, "model"), append(which, strings.TrimSpace(was.Name+" "+was.Quantization))
	}
	if is, was := &now.Device, &then.Device; was.Name != is.Name || was.Backend != is.Backend {
		what, which = append(what, "device"), append(which, was.Name)
	}
	if what == nil {
		return table.Part{}
	}
	return table.Part{
		Text:  "another " + strings.Join(what, " and ") + ": " + strings.Join(which, " on "),
		Short: "other " + strings.Join(what, ", "),
	}
}

// resolutionNS is the least difference that the clocks of a run and of the base can tell; b may be nil.
func (b *Base) resolutionNS(x *Index) float64 {
	if b == nil {
		return resolutionNS(x.Trace)
	}
	return max(resolutionNS(x.Trace), resolutionNS(b.Index.Trace))
}

// clockMoved says that the canary ran at another speed in a scope than at the base.
func (b *Base) clockMoved(x *Index, s Scope) bool {
	return b.speedMoved(x, x.canary(s), b.Index.canary(b.Scope))
}

// speedMoved compares two speeds of the canary, of a run and of the base's, each in proportion to what it
// took on its own run's warm device. It does not know where one of both is 0: none ran.
func (b *Base) speedMoved(x *Index, now, before float64) bool {
	ns, ok := x.Trace.Clock.CanaryNS.NS()
	if base, both := b.Index.Trace.Clock.CanaryNS.NS(); ok && both && ns > 0 && base > 0 {
		now, before = now/float64(ns), before/float64(base)
	}
	return now > 0 && before > 0 && math.Abs(now/before-1) > trace.ClockMoved
}

// comparison is the launches of a scope beside those of a base.
type comparison struct {
	of                  []*Launch // of the base, for each; nil for what did not run there
	gone                []*Launch
	byOrder, clockMoved bool
	total               float64 // ns of the base
}

// compare sets the Delta of every launch of a scope.
func (b *Base) compare(ctx context.Context, x *Index, scope Scope, launches []Launch) (comparison, error) {
	then, err := b.Index.launches(ctx, b.Scope)
	if err != nil {
		return comparison{}, err
	}
	c := comparison{clockMoved: b.clockMoved(x, scope), total: total(then)}
	c.of, c.gone, c.byOrder = join(launches, then)
	for i := range launches {
		launches[i].Delta = deltaOf(&launches[i], c.of[i], b.resolutionNS(x), !c.clockMoved)
	}
	return c, nil
}

// baseCosts are the costs of a base beside those of a step.
type baseCosts struct {
	*StepCosts
	x    *Index
	base *Base
}

// costsBeside are the costs of a base that can be compared with those of a step; nil where there are none, or
// the clock moved between both. b may be nil.
func (b *Base) costsBeside(now *StepCosts) *baseCosts {
	if b == nil || now == nil {
		return nil
	}
	c := b.Index.costs(b.Scope)
	if c == nil || c.Step == now.Step || now.Step.Whole != nil && c.Step.Whole != nil &&
		b.speedMoved(now.x, now.Step.Whole.Canary, c.Step.Whole.Canary) {
		return nil
	}
	return &baseCosts{c, now.x, b}
}

// delta is a cost less that of the same dispatches at the base: = where that is within the scatter of both,
// ? where that of one is not known, nothing where they were not left out there.
func (c *baseCosts) delta(now *RowCost) table.Cell {
	if c == nil || now == nil {
		return table.Cell{}
	}
	then := c.of(now.Dispatches)
	if then == nil || c.base.Index != c.x && !c.same(now.Dispatches) {
		return table.Cell{}
	}
	by := float64(now.NS - then.NS)
	cell := differenceCell(by, 1,
		math.Abs(by) <= max(c.base.resolutionNS(c.x), 2*now.SpreadNS, 2*then.SpreadNS))
	if !now.Spread || !then.Spread {
		cell.Text, cell.Mark = markUnknown, markUnknown
	}
	return cell
}

// same says that dispatches are those of the same names in the base's graph.
func (c *baseCosts) same(ids []trace.DispatchID) bool {
	for _, id := range ids {
		if int(id) >= len(c.base.Index.Trace.Graph.Dispatches) || c.base.Index.Name(id) != c.x.Name(id) {
			return false
		}
	}
	return true
}

// deltaCostColumn is the difference of costs in a table whose rows have some.
func (c *baseCosts) deltaCostColumn(width int, of func(row int) *RowCost) table.Column {
	return table.Column{
		Name: "delta_cost_us", Title: "Δcost", Unit: "us", Is: table.Measured, Right: true, Width: width,
		Doc: "cost less that of the base, where that was measured; = within the quartiles of both, ? where the ± of " +
			"one is not known",
		Of: func(row int) table.Cell { return c.delta(of(row)) },
	}
}

// join finds for every launch the one of the base that is the same dispatch: by id where the graphs agree on
// what the id is, in another graph by the names of operator and slot; of several the one of the same work.
// Where they have no dispatch in common they are joined by order. What is gone is there once, as the last
// step that had it ran it.
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
			gone, found[base[i].ID] = append(gone, &base[i]), true
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
		if trace.OwnKernel(c.Plan.Kernel) == trace.OwnKernel(l.Plan.Kernel) && c.Tokens == l.Tokens {
			return c
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[len(list)-1]
}
