// Package graph is the view Graph: operators, values and memory. It also has the screens that Graph opens:
// the neighbourhood of an operator, and the elements of a value.
package graph

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/experts"
	"gpuscope/trace/analyze/graphtree"
	"gpuscope/trace/report"
	choices "gpuscope/trace/report/experts"
	"gpuscope/trace/report/outline"
	"gpuscope/trace/report/storage"
	"gpuscope/trace/table"
	"gpuscope/tui/command"
	"gpuscope/tui/view"
	"gpuscope/tui/view/rowchart"
	"gpuscope/tui/widget"
)

// Page is view 4. It shows one list at a time: the operators, the values or the memory. The
// Neighbourhood and Value screens open on top of this page.
type Page struct {
	view.Basics
	host  view.Host
	lists []view.ListPage // one page for each of graphLists
	at    int
	fold  analyze.Grouping
	mark  int // index in graphtree.GraphWeights of the quantity by which operators are marked
	chart rowchart.Pane
}

// graphLists lists the tables that the page shows, with their names in the title.
var graphLists = []struct{ table, name string }{
	{"graph", "Operators"},
	{"values", "Values"},
	{"memory", "Memory"},
	{"tenants", "Slots"},
	{"experts", "Experts"},
}

// Indices in graphLists.
const operatorList, slotList, expertList = 0, 3, 4

// New returns the view Graph.
func New(h view.Host) *Page {
	p := &Page{host: h}
	for _, l := range graphLists {
		p.lists = append(p.lists, view.ListOf(l.table))
	}
	tree := &p.lists[operatorList].Rows
	tree.SortKeys = []widget.SortKey{{Letter: "c", Column: "cost_us"}, {Letter: "u", Column: "us"}, {Letter: "m", Column: "sum_us"}, {Letter: "w", Column: "waste"}}
	tree.KinOf = firstOperator
	tree.GiveUp = []string{"role", "source", "node", "parts", "dispatches", "live", "kind"}
	return p
}

// kinship identifies a row of the tree, so that the row is found again after the grouping has changed. `op`
// is the first operator of the row. If the row is a value below an operator, `value` is this value, and
// `edge` says how the operator uses it.
type kinship struct {
	op    trace.OpID
	edge  string
	value trace.ValueID
}

func firstOperator(t *table.Table, row int) any {
	n := &t.From.(*outline.GraphTable).Nodes[row]
	if n.Group || len(n.Ops) == 0 || len(n.Ops[0]) == 0 {
		return nil
	}
	return kinship{n.Ops[0][0], n.Edge, n.Value}
}

// graphLook is the part of the page's state that undo restores.
type graphLook struct {
	at, mark int
	fold     analyze.Grouping
}

// Look returns what undo restores: the list, the grouping and the marked quantity.
func (p *Page) Look() any { return graphLook{p.at, p.mark, p.fold} }

func (p *Page) Restore(s any) {
	l := s.(graphLook)
	p.at, p.mark, p.fold = l.at, l.mark, l.fold
}

func (p *Page) list() *view.ListPage { return &p.lists[p.at] }

func (p *Page) Takes() report.Takes { return p.list().Takes() }

// graphKey identifies the contents of a list.
type graphKey struct {
	view.ListKey
	mark int
}

func (p *Page) Load(j *widget.Jobs, s view.Snapshot, _ int) {
	l := p.list()
	if s.Trace == nil {
		l.Rows.Unload(j)
		return
	}
	o := analyze.Options{Grouping: p.fold}
	if s.Step >= 0 {
		o = s.Options(l.From.Takes, p.fold)
		l.Rows.Form = s.FormOf(l.From.Takes, p.fold)
	}
	mark, tree := graphtree.GraphWeights[p.mark], p.at == operatorList
	key := graphKey{view.ListKey{Version: s.Version, Fold: p.fold}, p.mark}
	l.Rows.Load(j, key, s, s.Running, func(ctx context.Context) (*table.Table, error) {
		t, err := l.From.Of(ctx, s.Index, o)
		if err != nil || !tree {
			return t, err
		}
		return t.From.(*outline.GraphTable).Weighed(mark), nil
	})
	if l.Rows.Table == nil {
		return
	}
	if t, ok := l.Rows.Table.From.(*outline.GraphTable); ok {
		p.chart.Load(j, &l.Rows, t.Index, t.Selection, func(row int) rowchart.Row { return charted(t, row) })
	}
}

// charted returns what the chart below the list of operators needs to know about a row.
func charted(t *outline.GraphTable, row int) rowchart.Row {
	n := &t.Nodes[row]
	c := rowchart.Row{Name: n.Label}
	if n.Edge != "" {
		return c
	}
	for _, unit := range n.Ops {
		var ids []trace.DispatchID
		ns := 0.0
		for _, op := range unit {
			for _, l := range t.W.ByOp[op] {
				ids, ns = append(ids, l.ID), ns+l.Time.Median
			}
		}
		if ids != nil {
			c.Units, c.Each = append(c.Units, ids), append(c.Each, ns)
		}
	}
	if !n.Measured {
		c.Each = nil
	}
	return c
}

func (p *Page) Pane() *widget.TablePane { return p.list().Pane() }
func (p *Page) Move(m widget.Motion)    { p.list().Move(m) }
func (p *Page) Filter() *view.Filter    { return p.list().Filter() }
func (p *Page) Copied() string          { return p.list().Copied() }

func (p *Page) Actions() []command.Action {
	return append(p.list().Actions(), []command.Action{
		{Name: "group by", Run: p.refold},
		{Name: "why", Run: func() {
			t, explains := p.why()
			view.Explain(p.host, p.Pane(), t, explains)
		}},
		{Name: "producers", Run: func() { p.near(false) }},
		{Name: "consumers", Run: func() { p.near(true) }},
		{Name: "list", Run: p.nextList},
		{Name: "mark by", Run: p.reweigh},
	}...)
}

func (p *Page) Detailed() bool { return true }

// nextList shows the next list. The list of experts exists only for models with routers.
func (p *Page) nextList() {
	shown := p.list().Snapshot().Trace
	p.at = (p.at + 1) % len(p.lists)
	if p.at == expertList && (shown == nil || !experts.Has(shown)) {
		p.at = operatorList
	}
}

// refold changes the grouping of operators: by layer, by kind or not at all. There is no grouping by kernel,
// because an operator may have several kernels.
func (p *Page) refold() {
	if p.at != operatorList {
		p.host.Remark("group by: only the list of operators can be grouped")
		return
	}
	folds := []analyze.Grouping{analyze.GroupLayer, analyze.GroupOp, analyze.GroupNone}
	p.fold = folds[(slices.Index(folds, p.fold)+1)%len(folds)]
}

// reweigh switches to the next quantity by which operators are marked.
func (p *Page) reweigh() {
	if p.at != operatorList {
		p.host.Remark("mark by: only the list of operators can be colored")
		return
	}
	p.mark = (p.mark + 1) % len(graphtree.GraphWeights)
}

func (p *Page) Title(w int) []table.Segment {
	l := p.list()
	name := graphLists[p.at].name
	parts := []table.Segment{{Rank: 0, Text: name}}
	t := l.Rows.Table
	if t == nil {
		return parts
	}
	if p.at == operatorList {
		w := graphtree.GraphWeights[p.mark]
		marked := "marked by " + w.Doc
		if t.Column("weight") < 0 && !(w.Column == "sum_us" && t.From.(*outline.GraphTable).Timed()) {
			marked += ": no data"
		}
		parts = append(parts, table.Segment{Rank: 3, Text: marked})
	}
	parts = append(parts, l.Rows.Own(w)...)
	if len(t.Title) > 0 {
		parts = append(parts, t.Title[0].Segments...)
	}
	return append(parts, l.Rows.Alike(w)...)
}

func (p *Page) Render(t *widget.Theme, g widget.Glyphs, w, h int, focused bool) []string {
	none := "This list of the graph is empty."
	if p.at == slotList {
		none = "No value shares memory with another."
	}
	lines := p.list().Draw(t, w, h, focused, none)
	if p.at == operatorList && p.Pane().Screen >= widget.SideWidth {
		lines = append(lines, p.chart.Draw(t, g, w, h-len(lines))...)
	}
	return lines
}

// picked is the operator or the value of a row. Some rows have neither.
type picked struct {
	op    *trace.Op
	value trace.ValueID // -1: none
	node  *graphtree.GraphNode
}

func (p *Page) picked() picked {
	l, none := p.list(), picked{value: -1}
	r := l.Rows.Current()
	if l.Rows.Table == nil || r < 0 {
		return none
	}
	if t, ok := l.Rows.Table.From.(*outline.GraphTable); ok {
		n := &t.Nodes[r]
		if n.Edge != "" {
			return picked{t.Op(r), n.Value, n}
		}
		return picked{t.Op(r), -1, n}
	}
	if id, err := strconv.Atoi(strings.TrimPrefix(l.Rows.Table.Rows[r].Key, "v")); err == nil {
		none.value = trace.ValueID(id)
	}
	return none
}

// Open opens the selected value. For a slot in the list of memory, it shows which values use the slot.
func (p *Page) Open() bool {
	if v := p.picked().value; v >= 0 {
		OpenValue(p.host, v, p.list().Snapshot())
		return true
	}
	key := p.list().Rows.Key
	if graphLists[p.at].table == "memory" && strings.HasPrefix(key, "slot") && key != "slots" {
		p.at = slotList
		p.list().Rows.TurnTo(key)
		return true
	}
	return p.list().Open()
}

// near is the action that opens the neighbourhood of the selected operator. For a value, it opens the
// neighbourhood of an operator that writes or reads the value.
func (p *Page) near(consumers bool) {
	got, s := p.picked(), p.list().Snapshot()
	op := got.op
	if op == nil && got.value >= 0 && s.Index != nil {
		of := s.Index.Producers(got.value)
		if len(of) == 0 {
			of = s.Index.Consumers(got.value)
		}
		if len(of) > 0 {
			op = &s.Trace.Graph.Ops[of[0]]
		}
	}
	if op == nil {
		p.host.Remark("select an operator, or a value that an operator reads or writes")
		return
	}
	p.host.Push(&NearRow, newNearPage(p.host, op.ID, consumers))
}

func (p *Page) Detail() *view.Detail {
	l, got := p.list(), p.picked()
	s, key := l.Snapshot(), l.Rows.Key
	switch {
	case s.Index == nil:
		return &view.Detail{}
	case got.value >= 0:
		return &view.Detail{
			Of: key, Title: s.Trace.Graph.Values[got.value].Name,
			Lines: func(ctx context.Context) ([]string, error) {
				lines := report.ValueLines(s.Index, s.Step, got.value)
				return append(lines, numbersWhere(s.Trace, s.Recorded)), ctx.Err()
			},
		}
	case got.op != nil && !got.node.Group:
		return &view.Detail{Of: key, Title: got.op.Name, Lines: func(ctx context.Context) ([]string, error) {
			lines := standsFor(got.node)
			return append(lines, report.OperatorLines(s.Index, s.Step, got.op.ID)...), ctx.Err()
		}}
	case p.at == expertList && key != "":
		t, row := l.Rows.Table.From.(*choices.Routers), l.Rows.Current()
		return &view.Detail{Of: key, Title: t.Label(row), Lines: func(ctx context.Context) ([]string, error) {
			return t.Lines(s.Index, row), ctx.Err()
		}}
	case graphLists[p.at].table == "memory" && key != "":
		return &view.Detail{Of: key, Title: key, Lines: func(ctx context.Context) ([]string, error) {
			return storage.HoldingLines(s.Index, s.Step, key), ctx.Err()
		}}
	case got.node != nil:
		return &view.Detail{
			Of: key, Title: got.node.Label,
			Lines: func(ctx context.Context) ([]string, error) {
				return standsFor(got.node), ctx.Err()
			},
		}
	}
	return &view.Detail{}
}

// standsFor returns detail lines about a row: its cost and, for several operators, the numbers of operators
// and dispatches.
func standsFor(n *graphtree.GraphNode) (lines []string) {
	ops := 0
	for _, unit := range n.Ops {
		ops += len(unit)
	}
	if ops > 1 {
		lines = append(lines, widget.Joined(", ", widget.Plural(ops, "operator"), widget.Plural(len(n.Dispatches), "dispatch")))
	}
	switch {
	case n.Cost != nil:
		lines = append(lines, "cost "+n.Cost.CostText())
	case outline.NoCost(n) != "":
		lines = append(lines, "cost unknown: "+outline.NoCost(n))
	}
	if ops > 1 && !n.Group {
		lines = append(lines, "The first of the operators in this row:")
	}
	return lines
}

// noNumbers is the message in place of a value's numbers if steps are only planned.
const noNumbers = "No numbers: without a device, steps are only planned."

// numbersWhere tells the user how to see the elements of a value.
func numbersWhere(t *trace.Trace, isTrace bool) string {
	switch {
	case t.Device.None():
		return noNumbers
	case isTrace:
		return "A trace does not contain tensor values. Run the model to see them."
	}
	return command.Keyed("Press {open} to show the numbers of this value.")
}

// why returns the text that explains the grid of the selected operator, or of the first operator in the row.
// For a value, the text lists the operators that may be re-planned when the value changes.
func (p *Page) why() (view.Text, bool) {
	got, s := p.picked(), p.list().Snapshot()
	switch {
	case got.value >= 0:
		return view.WhatWakes(s, got.value), true
	case got.node == nil || s.Step < 0:
		return view.Text{}, false
	}
	ops := slices.Concat(got.node.Ops...)
	if len(ops) == 0 {
		return view.Text{}, false
	}
	return view.WhyOperator(s, ops[0], view.FirstOf(len(ops)))
}
