package inspect

import (
	"context"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/trace"
	"gpuscope/trace/table"
)

// Part is a part of a step with its name: a row of Dispatches, or several that are taken together. Its cost
// is measured by leaving it out.
type Part struct {
	Name       string
	Dispatches []trace.DispatchID // rising
}

// CostParts are the parts of a step whose costs say what there is to know: the rows of Dispatches folded by
// layer, those that hold others among them, and the kernels and kinds of operators that are none of these.
// What stands in several rows costs something else than they do in sum, so it is left out by itself.
func (x *Index) CostParts(ctx context.Context, step int) ([]Part, error) {
	var parts []Part
	seen := map[string]bool{}
	for _, fold := range []Fold{FoldLayer, FoldKernel, FoldOp} {
		t, err := x.Dispatches(ctx, Options{Scope: x.Step(step), Fold: fold})
		if err != nil {
			return nil, err
		}
		var rows []int
		for i := range t.Folded {
			if p := t.Folded[i].Parent; p < 0 || t.Folded[p].Open {
				rows = append(rows, i)
			}
		}
		for _, p := range t.Parts(rows) {
			if key := setKey(p.Dispatches); !seen[key] {
				seen[key] = true
				parts = append(parts, p)
			}
		}
	}
	return parts, nil
}

// Parts are the dispatches of some rows; what several rows stand for is there once. In a scope of several
// steps they are those that ran in its last.
func (t *DispatchTable) Parts(rows []int) []Part {
	ran := map[trace.DispatchID]bool{}
	for _, id := range t.Index.ran(t.Scope.Last()) {
		ran[id] = true
	}
	var parts []Part
	seen := map[string]bool{}
	for _, row := range rows {
		p := Part{Name: t.Name(row), Dispatches: t.dispatches(&t.Folded[row], ran)}
		if key := setKey(p.Dispatches); len(p.Dispatches) > 0 && !seen[key] {
			seen[key] = true
			parts = append(parts, p)
		}
	}
	return parts
}

// Together is several parts as one.
func Together(parts []Part) Part {
	var all Part
	var names []string
	for _, p := range parts {
		names = append(names, p.Name)
		all.Dispatches = append(all.Dispatches, p.Dispatches...)
	}
	all.Name = strings.Join(names, " + ")
	slices.Sort(all.Dispatches)
	all.Dispatches = slices.Compact(all.Dispatches)
	return all
}

// Named is the part that several names stand for together: rows of the step folded by layer, by their names
// with their block or without ("attn.norm", "norm", "attn"), kinds of operators, or kernels. A * in a name
// stands for any letters.
func (x *Index) Named(ctx context.Context, step int, names []string) (Part, error) {
	t, err := x.Dispatches(ctx, Options{Scope: x.Step(step), Fold: FoldLayer})
	if err != nil {
		return Part{}, err
	}
	var parts []Part
	for _, name := range names {
		one := Part{Name: name}
		for i := range t.Folded {
			if is, err := t.called(i, name); err != nil {
				return Part{}, fmt.Errorf("%q is no name: %w", printable.Short(name, 40), err)
			} else if is {
				one.Dispatches = append(one.Dispatches, t.dispatches(&t.Folded[i], nil)...)
			}
		}
		if one.Dispatches == nil {
			return Part{}, fmt.Errorf("no row of the step is called %q; there are %s",
				printable.Short(name, 40), t.names())
		}
		parts = append(parts, one)
	}
	return Together(parts), nil
}

// called says whether a name is that of a row, or of what all its dispatches have in common.
func (t *DispatchTable) called(row int, name string) (is bool, err error) {
	r, first := &t.Folded[row], t.Launch(&t.Folded[row])
	has := []string{t.Name(row), r.Label}
	if !r.Group && r.Equal {
		has = append(has, first.Op.Kind, first.Plan.Kernel)
	}
	for _, h := range has {
		if is, err = path.Match(name, h); is || err != nil {
			break
		}
	}
	return is, err
}

// names lists the rows that are open at first.
func (t *DispatchTable) names() string {
	var names []string
	for i := range t.Folded {
		if p := t.Folded[i].Parent; p < 0 || t.Folded[p].Open {
			names = append(names, t.Name(i))
		}
	}
	return strings.Join(names, ", ")
}

// Name is a row's name with the block that it stands in: "attn.q".
func (t *DispatchTable) Name(row int) string {
	r := &t.Folded[row]
	if r.Parent < 0 || r.Group {
		return r.Label
	}
	if p := &t.Folded[r.Parent]; p.Group && p.Depth > 0 {
		return p.Label + "." + r.Label
	}
	return r.Label
}

// ran are the dispatches of a step.
func (x *Index) ran(step int) []trace.DispatchID {
	s := &x.Trace.Steps[step]
	ids := make([]trace.DispatchID, len(s.Dispatches))
	for i := range s.Dispatches {
		ids[i] = x.Trace.Plans[s.Dispatches[i].Plan].Dispatch
	}
	return ids
}

// dispatches are those of a row that are in a set, all without one, each once and rising.
func (t *DispatchTable) dispatches(r *DispatchRow, of map[trace.DispatchID]bool) []trace.DispatchID {
	var ids []trace.DispatchID
	for _, u := range r.Units {
		for _, i := range u {
			if id := t.Launches[i].ID; of == nil || of[id] {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// RowCost is what a row costs a step.
type RowCost struct {
	*trace.Cost
	// LeastNS is what its bytes and FLOPs take at measured rates, modelled. Floor says whether there are such
	// rates.
	LeastNS float64
	Floor   bool
	Share   float64 // of the whole step; 0 where that was not measured
	// SpreadNS is what it may be off by, as costSpread has it. Spread says whether there are runs enough.
	SpreadNS float64
	Spread   bool
	// None says that the cost is within its ±, or what the clock can tell: it is not different from 0.
	None bool
}

// SaveNS is what is left of the cost over what the device can do the row's work in, and never below 0: in a
// row that takes no longer, or costs nothing that can be told, there is nothing to save. False where that is
// not known.
func (c *RowCost) SaveNS() (ns float64, ok bool) {
	if c.None {
		return 0, c.Floor
	}
	return max(0, float64(c.NS)-c.LeastNS), c.Floor
}

// fewRounds have quartiles that may be close together by chance.
const fewRounds = 16

// costSpread is what a cost may be off by: half the distance between its quartiles. Of fewer than fewRounds
// it is two standard errors of a median of so many, by the distance of its own quartiles or that of the whole
// runs', whichever is larger: where rows are left out once each, the lucky one must not seem to stand out.
func costSpread(c *trace.Cost, w *trace.Whole) (ns float64, ok bool) {
	iqr := 0.0
	if c.N >= enough {
		iqr, ok = float64(c.Q3NS-c.Q1NS), true
	}
	if c.N >= fewRounds {
		return iqr / 2, true
	}
	if w != nil && w.N >= enough {
		iqr, ok = max(iqr, float64(w.Q3NS-w.Q1NS)), true
	}
	return 2 * iqr / math.Sqrt(float64(max(c.N, 1))), ok // a standard error is 0.93 IQR / √n
}

// worth is what there is to save, and where that is not known the cost, which is the most there is; and which
// of them it is.
func (c *RowCost) worth() (ns float64, what string) {
	if save, ok := c.SaveNS(); ok {
		return save, "~save"
	}
	return float64(c.NS), "cost"
}

// noSave says why nothing is known of what there is to save on a device; "" where it is.
func noSave(d *trace.Device) string {
	switch {
	case d.Software():
		return "software device: no ~save, compare ratios only"
	case d.Ceilings == nil:
		return "no ~save: no ceilings measured"
	}
	return ""
}

// CostOrder is the column by which rows with costs are best ordered: what there is to save, and where that is
// not known the cost.
func (x *Index) CostOrder() string {
	if noSave(&x.Trace.Device) == "" {
		return "save_us"
	}
	return "cost_us"
}

// StepCosts are the costs of a step by what was left out.
type StepCosts struct {
	Step *trace.Step
	x    *Index
	sets map[string]*RowCost
	ran  map[trace.DispatchID]bool
}

// Of is the cost of some dispatches, rising, left out together; nil where that was not measured.
func (c *StepCosts) Of(ids []trace.DispatchID) *RowCost { return c.sets[setKey(ids)] }

// costs are those of the last step of a scope that has some, nil where none has.
func (x *Index) costs(s Scope) *StepCosts {
	for i := len(s.Steps) - 1; i >= 0; i-- {
		if step := s.Steps[i]; len(x.Trace.Steps[step].Costs) > 0 {
			return x.costsOf(step)
		}
	}
	return nil
}

func (x *Index) costsOf(step int) *StepCosts {
	s := &x.Trace.Steps[step]
	c := &StepCosts{Step: s, x: x, sets: map[string]*RowCost{}, ran: map[trace.DispatchID]bool{}}
	plans := make(map[trace.DispatchID]*trace.Plan, len(s.Dispatches))
	streamed := x.streamed(s)
	for i := range s.Dispatches {
		p := &x.Trace.Plans[s.Dispatches[i].Plan]
		plans[p.Dispatch], c.ran[p.Dispatch] = p, true
	}
	d := &x.Trace.Device
	judged := noSave(d) == ""
	for i := range s.Costs {
		r := &RowCost{Cost: &s.Costs[i], Floor: judged}
		for _, id := range r.Dispatches {
			if p := plans[id]; p != nil && judged {
				r.LeastNS += roofNS(d.Ceilings, float64(p.Bytes), float64(p.FLOPs), streamed)
			}
		}
		r.SpreadNS, r.Spread = costSpread(r.Cost, s.Whole)
		r.None = r.Spread && math.Abs(float64(r.NS)) <= max(r.SpreadNS, resolutionNS(x.Trace))
		if s.Whole != nil && s.Whole.NS > 0 {
			r.Share = float64(r.NS) / float64(s.Whole.NS)
		}
		c.sets[setKey(r.Dispatches)] = r
	}
	return c
}

// cover is rows that stand for every dispatch of a step once, and the sum of their costs.
type cover struct {
	ns   float64
	rows []int
}

// cover covers the step by measured rows: by the finest there are, or by those that hold nothing but rows
// (attention, the rest of a layer, what comes before and after). False where they do not cover it.
func (t *DispatchTable) cover(finest bool) (c cover, ok bool) {
	children := t.children()
	var of func(row int) (cover, bool)
	all := func(rows []int) (c cover, ok bool) {
		for _, row := range rows {
			inside, ok := of(row)
			if !ok {
				return cover{}, false
			}
			c.ns, c.rows = c.ns+inside.ns, append(c.rows, inside.rows...)
		}
		return c, len(rows) > 0
	}
	of = func(row int) (cover, bool) {
		r := &t.Folded[row]
		heading := func(k int) bool { return t.Folded[k].Group }
		if r.Cost == nil || r.Group && (finest || slices.ContainsFunc(children[row], heading)) {
			if c, ok := all(children[row]); ok {
				return c, true
			}
		}
		if r.Cost == nil {
			return cover{}, false
		}
		return cover{float64(r.Cost.NS), []int{row}}, true
	}
	var top []int
	for i := range t.Folded {
		if t.Folded[i].Parent < 0 {
			top = append(top, i)
		}
	}
	return all(top)
}

// children are the rows in each row.
func (t *DispatchTable) children() [][]int {
	children := make([][]int, len(t.Folded))
	for i := range t.Folded {
		if p := t.Folded[i].Parent; p >= 0 {
			children[p] = append(children[p], i)
		}
	}
	return children
}

// SharedNS is the whole step less the finest costs that cover it: what rows overlap by and wait for together.
// False where no costs cover it.
func (t *DispatchTable) SharedNS() (ns float64, ok bool) {
	if t.Costs == nil || t.Costs.Step.Whole == nil {
		return 0, false
	}
	c, ok := t.cover(true)
	return float64(t.Costs.Step.Whole.NS) - c.ns, ok
}

// SharedLine says what it means that rows share less than nothing; "" where they do not.
func (t *DispatchTable) SharedLine() string {
	ns, ok := t.SharedNS()
	if !ok || ns >= 0 {
		return ""
	}
	return fmt.Sprintf("shared %s µs: the costs add up to more than the step, for a wait that goes with either of "+
		"two rows is in the cost of both", short(ns))
}

// part says in a title whose costs these are and what the rows share.
func (c *StepCosts) part(t *DispatchTable) table.Part {
	at := fmt.Sprintf("cost at s%d", c.Step.Index)
	text, shared := at+", "+trace.Rounds(c.Step.Costs), ""
	if by := clockMovedBy(c.Step.Whole); by > trace.ClockMoved {
		text += fmt.Sprintf(", clock moved %.0f %%", 100*by)
	}
	if ns, ok := t.SharedNS(); ok {
		shared = fmt.Sprintf(", shared %s µs", short(ns))
	}
	return table.Part{Rank: 1, Text: text + shared, Short: at + shared}
}

// clockMovedBy is by how much the clock was faster in the faster rounds of a step's costs than in the slower
// ones, by the canary; 0 where none ran.
func clockMovedBy(w *trace.Whole) float64 {
	if w == nil || w.CanaryQ1 <= 0 {
		return 0
	}
	return w.CanaryQ3/w.CanaryQ1 - 1
}

// CostLine says in words what a row costs, for all that it stands for and for each of them; "" where that was
// not measured.
func (t *DispatchTable) CostLine(r *DispatchRow) string {
	c := r.Cost
	if c == nil {
		return ""
	}
	line := fmt.Sprintf("cost %.1f µs a step", float64(c.NS)/1e3)
	if c.Spread {
		line += " ± " + short(c.SpreadNS)
	}
	line += fmt.Sprintf(" (n=%d)", c.N)
	if c.None {
		line += ", not different from 0"
	}
	if n := len(r.Units); n > 1 {
		line += fmt.Sprintf(", %.1f each", float64(c.NS)/1e3/float64(n))
		if r.Time.Measured() {
			line += fmt.Sprintf("; alone %.1f", r.Time.Median/1e3)
		}
	} else if r.Summed {
		line += fmt.Sprintf("; alone %.1f", r.SumNS/1e3)
	}
	if save, ok := c.SaveNS(); ok && c.LeastNS > 0 && !c.None {
		line += fmt.Sprintf(" · ~save %s: its bytes and FLOPs take ~%s at the least", short(save),
			short(c.LeastNS))
	}
	return line
}

// short writes ns as µs with as many digits as a measured difference has.
func short(ns float64) string {
	us := ns / 1e3
	if us > -10 && us < 10 {
		return fmt.Sprintf("%.1f", us)
	}
	return fmt.Sprintf("%.0f", us)
}

func shortCell(ns float64) table.Cell {
	return table.Cell{Text: short(ns), Number: ns / 1e3, Has: true}
}

// costColumns are what rows cost and what there is to save: by leaving them out where that was measured, else
// by their times alone.
func (t *DispatchTable) costColumns() []table.Column {
	at := t.ran
	cost := func(of func(*RowCost) table.Cell) func(int) table.Cell {
		return at(func(r *DispatchRow) table.Cell {
			if r.Cost == nil {
				return table.Missing()
			}
			return of(r.Cost)
		})
	}
	width := 80 // of ~lost, which stands in for what was not measured
	columns := costColumns(t.Index, cost)
	if t.costed {
		width = 200
	} else {
		for i := range columns {
			columns[i].Width = table.Unseen
		}
	}
	return append(columns, table.Column{
		Name: "lost_us", Title: "~lost", Unit: "us", Is: table.Modelled, Right: true, Width: width,
		Doc: "modelled: time alone over what the device could do the row in",
		Of: at(func(r *DispatchRow) table.Cell {
			if r.LostNS == 0 {
				return table.Cell{}
			}
			return table.Number(r.LostNS/1e3, 0)
		}),
	})
}

// costCell is a cost in any table.
func (x *Index) costCell(c *RowCost) table.Cell {
	cell := table.Microseconds(float64(c.NS)/1e3, min(1, table.DecimalsOfUS(x.Trace.Clock.QuantumNS)))
	if c.None {
		cell.Text = "= " + cell.Text
	}
	return cell
}

// costColumns are the columns of costs, in any table that has some.
func costColumns(x *Index, cost func(func(*RowCost) table.Cell) func(int) table.Cell) []table.Column {
	save := 110
	if noSave(&x.Trace.Device) != "" {
		save = table.Unseen // the title says why there is none
	}
	return []table.Column{
		{
			Name: "cost_us", Title: "cost", Unit: "us", Is: table.Measured, Right: true, Width: 80,
			Doc: "what the untimed step takes less without the row: trimmed mean of the rounds, on a software device " +
				"their median; = within its ±, not different from 0",
			Of: cost(x.costCell),
		},
		{
			Name: "cost_spread_us", Title: "±", Unit: "us", Is: table.Measured, Right: true, Width: 110,
			Doc: "half the distance between the quartiles of the cost; of fewer than 16 rounds two standard errors",
			Of: cost(func(c *RowCost) table.Cell {
				if !c.Spread {
					return table.Missing()
				}
				return shortCell(c.SpreadNS)
			}),
		},
		{
			Name: "save_us", Title: "~save", Unit: "us", Is: table.Modelled, Right: true, Width: save,
			Doc: "modelled: cost over what its bytes and FLOPs take at measured rates; = where it costs nothing",
			Of: cost(func(c *RowCost) table.Cell {
				ns, ok := c.SaveNS()
				switch {
				case !ok:
					return table.Missing()
				case c.None:
					return table.Cell{Text: "=", Has: true}
				}
				return shortCell(ns)
			}),
		},
	}
}

// judgeCosts finds whether a row of the table has a cost, how many of those that hold no others have none,
// and whether the rest make up most of what was timed alone: rows are told apart by one kind of number. In
// another fold than the one that was measured there may be few.
func (t *DispatchTable) judgeCosts() {
	var with, all float64
	for i := range t.Folded {
		r := &t.Folded[i]
		t.costed = t.costed || r.Cost != nil
		if r.Group || r.Parent >= 0 && !t.Folded[r.Parent].Group || len(r.Units) == 0 {
			continue
		}
		t.parts++
		if all += r.SumNS; r.Cost != nil {
			with += r.SumNS
		} else {
			t.uncosted++
		}
	}
	t.byCost = t.costed && with >= all/2
}

// costPart says in a title what shares are of, and that there are rows without a cost: they cost something
// all the same.
func (t *DispatchTable) costPart() table.Part {
	part := table.Part{Rank: 3, Text: "share by cost"} // as the columns of costs suggest
	switch {
	case !t.costed && t.Costs != nil:
		return table.Say(3, "of these rows no cost was measured")
	case !t.costed:
		return table.Part{}
	case !t.byCost:
		part.Text = "share of " + sumName
	case t.uncosted == 0:
		return part
	}
	without := fmt.Sprintf("%s: %d of %d", part.Text, t.uncosted, t.parts)
	return table.Part{Rank: 0, Text: without + " rows have no cost", Short: without + " no cost"}
}

// fixFirst names the row that there is most to save in, where rows are told apart by costs, and how
// much of the step that is: by ~save, and where that is not known by the cost, which is the most there is.
// What is within the ± of its row is not named: the next measurement would name another.
func (t *DispatchTable) fixFirst() table.Part {
	if !t.byCost {
		return table.Part{}
	}
	first, most, what := t.most()
	if first < 0 {
		return t.Undecided()
	}
	name := t.Name(first)
	said := table.Say(0, "fix first %s: %s %s µs", name, what, short(most))
	if c := t.Folded[first].Cost; c.Share > 0 {
		said.Text += fmt.Sprintf(" (%.0f %%)", 100*c.Share*most/float64(c.NS))
	}
	said.Short = "fix first " + name
	return said
}

// most is the row that there is most to save in, and by which figure; -1 where none stands out.
func (t *DispatchTable) most() (first int, most float64, what string) {
	first = -1
	for i := range t.Folded {
		r := &t.Folded[i]
		if r.Group || r.Cost == nil || !r.Cost.Spread || r.Parent >= 0 && !t.Folded[r.Parent].Group {
			continue
		}
		ns, by := r.Cost.worth()
		if !r.Cost.None && ns > max(most, r.Cost.SpreadNS) {
			first, most, what = i, ns, by
		}
	}
	return first, most, what
}

// Undecided says in a title that none of the rows that have costs can be named as what to fix first.
func (t *DispatchTable) Undecided() table.Part {
	yet := ""
	if t.FewRounds() {
		yet = " yet"
	}
	said := table.Say(0, "nothing stands out of the scatter of %s%s", trace.Rounds(t.Costs.Step.Costs), yet)
	said.Short = "nothing stands out" + yet
	return said
}

// FewRounds says that a row has a cost of which more rounds say more: its ± becomes smaller with each.
func (t *DispatchTable) FewRounds() bool {
	few := func(r DispatchRow) bool { return r.Cost != nil && r.Cost.N < fewRounds }
	return slices.ContainsFunc(t.Folded, few)
}

// Uncosted is how many rows have no cost, where others have one, of this fold or of another.
func (t *DispatchTable) Uncosted() int {
	if t.Costs == nil {
		return 0
	}
	return t.uncosted
}

// Costed says whether a row has a cost.
func (t *DispatchTable) Costed() bool { return t.costed }

// ByCost says that shares are of costs.
func (t *DispatchTable) ByCost() bool { return t.byCost }

// share is a row's part of the step.
func (t *DispatchTable) share(r *DispatchRow) table.Cell {
	switch {
	case t.byCost && r.Cost == nil:
		return table.Missing()
	case t.byCost:
		return table.Number(100*r.Cost.Share, 1)
	case r.Share == 0:
		return table.Cell{}
	}
	return table.Number(100*r.Share, 1)
}
