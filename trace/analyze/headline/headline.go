package headline

import (
	"context"
	"slices"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/costs"
)

// Basis is what rows are ranked by.
type Basis int

// The possible bases.
const (
	Nothing  Basis = iota // no times of dispatches are known
	Isolated              // times of dispatches that were timed in isolation
	Costs                 // measured costs
)

// Reason says why rows are not ranked by measured costs.
type Reason int

// The reasons.
const (
	NoReason       Reason = iota // rows are ranked by costs
	NoCosts                      // no costs were measured
	OtherWork                    // costs were measured only on other routes or shapes
	FewRounds                    // too few rounds were measured to know the errors of the costs
	NotSignificant               // no cost of a single row exceeds its error
	NoSaving                     // costs exceed their errors, but no potential saving does
	FewRows                      // the rows with costs have less than half of the time of the step
)

// Row is a row of a step: one dispatch of a layer, in all layers that contain it.
type Row struct {
	At   int    // index in DispatchTree.Grouped
	Name string // such as "mlp.gate+up" (see Name)
	// Dispatches lists the dispatches of the row, in all layers.
	Dispatches []trace.DispatchID
	// NS is the cost in a step, or the sum of the isolated times. ErrorNS is the error (±) of a cost.
	NS, ErrorNS float64
	// Share is NS as a fraction of the GPU time of the step in which costs were measured, or as a fraction of
	// the sum of all isolated times.
	Share float64
	// SaveNS is the modelled potential saving in ns: what the row would save at the measured ceilings of the
	// device. SaveKnown is false if no ceilings were measured.
	SaveNS    float64
	SaveKnown bool
	// Twice is the modelled rate if the row were twice as fast. AtLimit is the modelled rate if the row
	// reached the ceilings of the device. Each is 0 if not known.
	Twice, AtLimit float64
}

// TwiceBeyondCeilings reports whether the ceilings of the device do not allow the row to be twice as fast, so
// that the rate Twice cannot be reached. It is false if one of the two rates is not known.
func (r *Row) TwiceBeyondCeilings() bool { return r.AtLimit > 0 && r.AtLimit < r.Twice }

// Idle is the time of a step in which the GPU waits for the CPU, in ns, and its error (±).
type Idle struct {
	NS, ErrorNS int64
	Rate        float64 // modelled rate without idle time; 0 if not known
}

// Headline says what to fix first in the steps of a selection.
type Headline struct {
	Selection analyze.Selection
	Pace      Pace
	Rate      float64 // measured rate of untimed steps in Pace.Unit(); 0 if not known
	Basis     Basis
	Why       Reason
	// Group is the group with the largest significant cost (see LargestGroup). It is only set if Why is
	// NotSignificant, and nil if no group has a significant cost either.
	Group *costs.Row
	// First is the row to fix first. It is nil if no row has a time.
	First *Row
	// Idle is set if the GPU waits for the CPU longer than First could save. The idle time is then what to
	// fix first.
	Idle *Idle
	// CostStep is the index (Step.Index) of the step in which costs were measured. Rounds is the largest
	// number of rounds in which any of these costs was measured. Both are only set if costs were measured.
	CostStep, Rounds int
	// WholeNS is the time of which Row.Share is a fraction.
	WholeNS float64
}

// Of returns the headline of a selection. `selection` must not be empty.
func Of(ctx context.Context, x *analyze.Index, selection analyze.Selection) (*Headline, error) {
	t, err := x.DispatchTree(ctx, analyze.Options{Selection: selection, Grouping: analyze.GroupLayer})
	if err != nil {
		return nil, err
	}
	return OfTree(t), nil
}

// Steps returns the selection whose headline stands for the whole run: the decode steps of a language model,
// or the executions of a program. If there are none, it is the last step. The selection of a trace without
// steps is empty.
func Steps(x *analyze.Index) analyze.Selection {
	for _, phase := range []trace.Phase{trace.Decode, trace.Execute} {
		if s := x.Phase(phase); len(s.Steps) > 0 {
			return s
		}
	}
	if n := len(x.Trace.Steps); n > 0 {
		return x.Step(n - 1)
	}
	return analyze.Selection{}
}

// OfTree returns the headline of dispatches that are grouped by layer.
func OfTree(t *analyze.DispatchTree) *Headline {
	h := &Headline{Selection: t.Selection, Pace: PaceOf(t.Index, t.Selection)}
	h.Rate, _ = h.Pace.Rate()
	if t.Costs != nil {
		h.CostStep = t.Costs.Step.Index
		for i := range t.Costs.Step.Costs {
			h.Rounds = max(h.Rounds, t.Costs.Step.Costs[i].N)
		}
	}
	first, _, idle := First(t)
	if h.Why = whyNot(t, first); h.Why == NoReason {
		h.Basis, h.Idle = Costs, idle
		h.First, h.WholeNS = h.costRow(t, first), wholeNS(t)
		return h
	}
	if h.Why == NotSignificant {
		h.Group = LargestGroup(t)
	}
	if h.First = h.isolatedRow(t); h.First != nil {
		h.Basis = Isolated
		h.Idle = longIdle(&h.Pace, h.Pace.Saved(h.First.Share/2, h.WholeNS))
	}
	return h
}

// First returns the row of a tree with the largest potential saving, and this saving in ns. If savings are
// not known, it uses costs. If no row is significant or too few costs were measured, the row is -1. `idle` is
// not nil if the GPU idles longer in the untimed step than the row could save.
func First(t *analyze.DispatchTree) (row int, most float64, idle *Idle) {
	if !t.MostCosted {
		return -1, 0, nil
	}
	if row, most, _ = t.Most(); row < 0 {
		return -1, 0, nil
	}
	pace := PaceOf(t.Index, t.Selection)
	return row, most, longIdle(&pace, most)
}

// longIdle returns the idle time of the GPU in a step if it is significant and longer than `most` ns.
func longIdle(p *Pace, most float64) *Idle {
	if ns, off, ok := p.Waits(); ok && ns > off && float64(ns) > most {
		i := &Idle{NS: ns, ErrorNS: off}
		i.Rate, _ = p.Faster(float64(ns))
		return i
	}
	return nil
}

// whyNot returns the reason why the rows of a tree are not ranked by costs. `first` is the row that First
// returned.
func whyNot(t *analyze.DispatchTree, first int) Reason {
	known := func(r analyze.DispatchRow) bool { return r.Cost != nil && !r.Cost.Few() }
	switch {
	case t.Costs == nil:
		return NoCosts
	case !t.AnyCost && t.OtherWork > 0:
		return OtherWork
	case !t.AnyCost:
		return NoCosts
	case !slices.ContainsFunc(t.Grouped, known):
		return FewRounds
	case !t.MostCosted:
		return FewRows
	case first < 0 && AnySignificant(t):
		return NoSaving
	case first < 0:
		return NotSignificant
	}
	return NoReason
}

// AnySignificant reports whether the cost of a row is significantly larger than 0. Headings are not rows.
func AnySignificant(t *analyze.DispatchTree) bool {
	for i := range t.Grouped {
		if (t.Single(i) || t.Grouped[i].Joint) && aboveNoise(t.Grouped[i].Cost) {
			return true
		}
	}
	return false
}

// LargestGroup returns the row of the table of groups (see costs.Groups) with the largest cost among those
// whose cost is significantly larger than 0. It returns nil if there is none.
func LargestGroup(t *analyze.DispatchTree) *costs.Row {
	var largest *costs.Row
	for _, r := range costs.Groups(t) {
		if aboveNoise(r.Cost) && (largest == nil || r.Cost.NS > largest.Cost.NS) {
			largest = &r
		}
	}
	return largest
}

// aboveNoise reports whether a cost was measured and is significantly larger than 0.
func aboveNoise(c *analyze.RowCost) bool { return c.Known() && c.Significant() && c.NS > 0 }

func wholeNS(t *analyze.DispatchTree) float64 {
	if w := t.Costs.Step.Whole; w != nil {
		return float64(w.NS)
	}
	return 0
}

// costRow returns a row with a measured cost.
func (h *Headline) costRow(t *analyze.DispatchTree, at int) *Row {
	c, whole := t.Grouped[at].Cost, wholeNS(t)
	r := &Row{
		At: at, Name: Name(t, at), Dispatches: dispatches(t, at), NS: float64(c.NS), ErrorNS: c.ErrorNS,
		Share: c.Share,
	}
	r.SaveNS, r.SaveKnown = c.SaveNS()
	r.Twice, _ = h.Pace.Twice(c, t.Costs.Step.Whole)
	if r.SaveKnown && r.NS > 0 {
		r.AtLimit, _ = h.Pace.Faster(h.Pace.Saved(r.Share*r.SaveNS/r.NS, whole))
	}
	return r
}

// isolatedRow returns the row with the largest excess of its isolated time over the shortest possible time.
// If the excess is not known, it is the row with the longest isolated time. It returns nil if no row was
// timed.
func (h *Headline) isolatedRow(t *analyze.DispatchTree) *Row {
	at := -1
	better := func(a, b *analyze.DispatchRow) bool {
		if a.ExcessNS != b.ExcessNS {
			return a.ExcessNS > b.ExcessNS
		}
		return a.SumNS > b.SumNS
	}
	for i := range t.Grouped {
		r := &t.Grouped[i]
		if !t.Single(i) || r.Gone() || !r.Summed {
			continue
		}
		if h.WholeNS += r.SumNS; at < 0 || better(r, &t.Grouped[at]) {
			at = i
		}
	}
	if at < 0 {
		return nil
	}
	r := &t.Grouped[at]
	row := &Row{At: at, Name: Name(t, at), Dispatches: dispatches(t, at), NS: r.SumNS, Share: r.Share}
	row.SaveNS, row.SaveKnown = r.ExcessNS, r.ExcessNS > 0
	if row.Share > 0 {
		row.Twice, _ = h.Pace.Faster(h.Pace.Saved(row.Share/2, row.NS/row.Share))
	}
	return row
}

// Name returns the name of a row as the tables of costs show it, such as "mlp.gate+up". If layers differ, a
// row does not contain all of them, and its name includes its layers: "layers 1–2 mlp.gate+up". The name of
// concurrent rows does not include the suffix analyze.AtOnce.
func Name(t *analyze.DispatchTree, row int) string {
	return strings.TrimSuffix(costs.NameApart(t, row), analyze.AtOnce)
}

func dispatches(t *analyze.DispatchTree, at int) (ids []trace.DispatchID) {
	for _, unit := range t.Grouped[at].Units {
		for _, i := range unit {
			ids = append(ids, t.Launches[i].ID)
		}
	}
	return ids
}
