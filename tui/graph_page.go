package tui

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/inspect"
	"gpuscope/trace/table"
	"gpuscope/tui/command"
	"gpuscope/tui/widget"
)

// graphPage is view 4: operators, values and memory, one list at a time. Neighbourhoods and values open over
// it.
type graphPage struct {
	basics
	host  host
	lists []listPage // of graphLists
	at    int
	fold  inspect.Fold
	mark  int // of inspect.GraphWeights: by what operators are marked
}

// graphLists are the tables that the page shows, and what a title calls them.
var graphLists = []struct{ table, name string }{
	{"graph", "Operators"}, {"values", "Values"}, {"memory", "Memory"}, {"tenants", "Slots"},
}

// operatorList is the place of the operators among them, slotList that of the slots.
const operatorList, slotList = 0, 3

func newGraphPage(h host, _ *widget.Log) View {
	p := &graphPage{host: h}
	for _, l := range graphLists {
		p.lists = append(p.lists, listOf(l.table))
	}
	tree := &p.lists[operatorList].rows
	tree.SortKeys = []widget.SortKey{{Letter: "c", Column: "cost_us"}, {Letter: "u", Column: "us"}, {Letter: "w", Column: "waste"}}
	tree.KinOf = firstOperator
	tree.GiveUp = []string{"role", "source", "id", "parts", "dispatches", "live", "kind"}
	return p
}

// kinship is what a row of the tree is, whatever the fold: its first operator, or a value of it.
type kinship struct {
	op    trace.OpID
	edge  string
	value trace.ValueID
}

func firstOperator(t *table.Table, row int) any {
	n := &t.From.(*inspect.GraphTable).Nodes[row]
	if n.Group || len(n.Ops) == 0 || len(n.Ops[0]) == 0 {
		return nil
	}
	return kinship{n.Ops[0][0], n.Edge, n.Value}
}

// graphLook is how a person looks at the graph.
type graphLook struct {
	at, mark int
	fold     inspect.Fold
}

// look is what undo gives back.
func (p *graphPage) look() any { return graphLook{p.at, p.mark, p.fold} }

func (p *graphPage) restore(s any) {
	l := s.(graphLook)
	p.at, p.mark, p.fold = l.at, l.mark, l.fold
}

func (p *graphPage) list() *listPage { return &p.lists[p.at] }

func (p *graphPage) takes() inspect.Takes { return p.list().takes() }

// graphKey is what a list is of.
type graphKey struct {
	listKey
	mark int
}

func (p *graphPage) load(j *widget.Jobs, s snapshot, _ int) {
	l := p.list()
	if s.trace == nil {
		l.rows.Unload(j)
		return
	}
	o := inspect.Options{Fold: p.fold}
	if s.step >= 0 {
		o = s.options(l.from.Takes, p.fold)
	}
	mark, tree := inspect.GraphWeights[p.mark], p.at == operatorList
	key := graphKey{listKey{s.version, p.fold}, p.mark}
	l.rows.Load(j, key, s, s.running, func(ctx context.Context) (*table.Table, error) {
		t, err := l.from.Of(ctx, s.index, o)
		if err != nil || !tree {
			return t, err
		}
		return t.From.(*inspect.GraphTable).Weighed(mark), nil
	})
}

func (p *graphPage) pane() *widget.TablePane { return p.list().pane() }
func (p *graphPage) move(m widget.Motion)    { p.list().move(m) }
func (p *graphPage) filter() *filter         { return p.list().filter() }
func (p *graphPage) copied() string          { return p.list().copied() }

func (p *graphPage) actions() []command.Action {
	return append(p.list().actions(), []command.Action{
		{Name: "fold", Run: p.refold},
		{Name: "why", Run: func() {
			t, explains := p.why()
			explain(p.host, p.pane(), t, explains)
		}},
		{Name: "producers", Run: func() { p.near(false) }},
		{Name: "consumers", Run: func() { p.near(true) }},
		{Name: "list", Run: p.nextList},
		{Name: "mark by", Run: p.reweigh},
	}...)
}

func (p *graphPage) detailed() bool { return true }

// nextList shows another list.
func (p *graphPage) nextList() { p.at = (p.at + 1) % len(p.lists) }

// refold folds operators by layer, by kind, or not at all: an operator may have several kernels.
func (p *graphPage) refold() {
	if p.at != operatorList {
		p.host.Remark("fold: only operators fold")
		return
	}
	folds := []inspect.Fold{inspect.FoldLayer, inspect.FoldOp, inspect.FoldNone}
	p.fold = folds[(slices.Index(folds, p.fold)+1)%len(folds)]
}

// reweigh marks operators by another quantity.
func (p *graphPage) reweigh() {
	if p.at != operatorList {
		p.host.Remark("mark by: only operators are marked")
		return
	}
	p.mark = (p.mark + 1) % len(inspect.GraphWeights)
}

func (p *graphPage) title(w int) []table.Part {
	l := p.list()
	name := graphLists[p.at].name
	parts := []table.Part{{Rank: 0, Text: name}}
	t := l.rows.Table
	if t == nil {
		return parts
	}
	if p.at == operatorList {
		marked := "marked by " + inspect.GraphWeights[p.mark].Doc
		if t.Column("weight") < 0 {
			marked += ": no row has any"
		}
		parts = append(parts, table.Part{Rank: 3, Text: marked})
	}
	parts = append(parts, l.rows.Own(w)...)
	if len(t.Title) > 0 {
		parts = append(parts, t.Title[0].Parts...)
	}
	return append(parts, l.rows.Alike(w)...)
}

func (p *graphPage) render(t *widget.Theme, _ widget.Glyphs, w, h int, focused bool) []string {
	none := "The graph has none."
	if p.at == slotList {
		none = "No value shares memory with another."
	}
	return p.list().draw(t, w, h, focused, none)
}

// picked is what a row stands for: an operator, a value, or neither.
type picked struct {
	op    *trace.Op
	value trace.ValueID // -1: none
	node  *inspect.GraphNode
}

func (p *graphPage) picked() picked {
	l, none := p.list(), picked{value: -1}
	r := l.rows.Current()
	if l.rows.Table == nil || r < 0 {
		return none
	}
	if t, ok := l.rows.Table.From.(*inspect.GraphTable); ok {
		n := &t.Nodes[r]
		if n.Edge != "" {
			return picked{t.Op(r), n.Value, n}
		}
		return picked{t.Op(r), -1, n}
	}
	if id, err := strconv.Atoi(strings.TrimPrefix(l.rows.Table.Rows[r].Key, "v")); err == nil {
		none.value = trace.ValueID(id)
	}
	return none
}

// open opens a value; of a slot in the list of memory it shows who has it.
func (p *graphPage) open() bool {
	if v := p.picked().value; v >= 0 {
		openValue(p.host, v, p.list().at())
		return true
	}
	key := p.list().rows.Key
	if graphLists[p.at].table == "memory" && strings.HasPrefix(key, "slot") && key != "slots" {
		p.at = slotList
		p.list().rows.TurnTo(key)
		return true
	}
	return p.list().open()
}

// near shows the neighbourhood of the operator under the cursor, of a value that of one which gives or takes
// it.
func (p *graphPage) near(consumers bool) {
	got, s := p.picked(), p.list().at()
	op := got.op
	if op == nil && got.value >= 0 && s.index != nil {
		of := s.index.Producers(got.value)
		if len(of) == 0 {
			of = s.index.Consumers(got.value)
		}
		if len(of) > 0 {
			op = &s.trace.Graph.Ops[of[0]]
		}
	}
	if op == nil {
		p.host.Remark("select an operator or a value that one gives or takes")
		return
	}
	p.host.Push(&nearRow, newNearPage(p.host, op.ID, consumers))
}

func (p *graphPage) detail() *detail {
	l, got := p.list(), p.picked()
	s, key := l.at(), l.rows.Key
	switch {
	case s.index == nil:
		return &detail{}
	case got.value >= 0:
		return &detail{key, s.trace.Graph.Values[got.value].Name, func(ctx context.Context) ([]string, error) {
			lines := s.index.ValueLines(s.step, got.value)
			return append(lines, numbersWhere(s.trace, s.recorded)), ctx.Err()
		}}
	case got.op != nil && !got.node.Group:
		return &detail{key, got.op.Name, func(ctx context.Context) ([]string, error) {
			lines := standsFor(got.node)
			return append(lines, s.index.OperatorLines(s.step, got.op.ID)...), ctx.Err()
		}}
	case graphLists[p.at].table == "memory" && key != "":
		return &detail{key, key, func(ctx context.Context) ([]string, error) {
			return s.index.HoldingLines(s.step, key), ctx.Err()
		}}
	case got.node != nil:
		return &detail{key, got.node.Label, func(ctx context.Context) ([]string, error) {
			return standsFor(got.node), ctx.Err()
		}}
	}
	return &detail{}
}

// standsFor says what a row costs, and of more than one operator what it has in it.
func standsFor(n *inspect.GraphNode) (lines []string) {
	ops := 0
	for _, unit := range n.Ops {
		ops += len(unit)
	}
	if ops > 1 {
		lines = append(lines, widget.Joined(", ", widget.Plural(ops, "operator"), widget.Plural(len(n.Dispatches), "dispatch")))
	}
	switch {
	case n.Cost != nil:
		lines = append(lines, "cost "+n.Cost.Says())
	case n.NoCost != "":
		lines = append(lines, "cost not known: "+n.NoCost)
	}
	if ops > 1 && !n.Group {
		lines = append(lines, "the first of them:")
	}
	return lines
}

// noNumbers is why a value has none where steps are planned.
const noNumbers = "It has no numbers: there is no device, and nothing runs."

// numbersWhere says how the numbers of a trace's values are to be seen.
func numbersWhere(t *trace.Trace, isTrace bool) string {
	switch {
	case t.Device.None():
		return noNumbers
	case isTrace:
		return "Its numbers are not in a trace: they need a running model."
	}
	return command.Keyed("{open} shows its numbers")
}

// why explains the operator, or the first of those that the row stands for, or lists what a value reaches.
func (p *graphPage) why() (text, bool) {
	got, s := p.picked(), p.list().at()
	switch {
	case got.value >= 0:
		return whatWakes(s, got.value), true
	case got.node == nil || s.step < 0:
		return text{}, false
	}
	ops := slices.Concat(got.node.Ops...)
	if len(ops) == 0 {
		return text{}, false
	}
	return whyOperator(s, ops[0], firstOf(len(ops)))
}
