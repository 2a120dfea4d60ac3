package graphtree

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/tree"
)

// GraphTree is the graph as a tree. Each node has its numbers in a selection of steps.
type GraphTree struct {
	Index     *analyze.Index
	Selection analyze.Selection // without steps in the selection, nodes have no times
	Baseline  *analyze.Baseline // nil to compare with nothing
	Nodes     []GraphNode
	// Tree holds a copy of the tree.Row of each node. Only in these copies is the field Apart set, which is
	// the name of the node in tables without headings.
	Tree []tree.Row
	W    *Weights
	// Sum stands for all dispatches of both sides. It is nil without a baseline that the user chose.
	Sum      *GraphNode
	Grouping analyze.Grouping
	// ByCost reports that shares are computed from costs. As in the table of dispatches, this is the case
	// if the rows whose cost has a known error take at least half of the isolated time.
	ByCost bool
}

// GraphNode is a node of the tree: an operator, equal operators of several layers, a heading, or a value of
// an operator.
type GraphNode struct {
	tree.Row
	Label string
	// Ops holds the operators of the node, in one list for each layer. If the node is a value, Ops holds the
	// operator below which the value is shown.
	Ops [][]trace.OpID
	// Value and Edge are set if the node is a value below an operator. Edge says how the operator uses the
	// value: "in", "state", "out" or "makes".
	Value trace.ValueID
	Edge  string

	Dispatches []trace.DispatchID // the dispatches of the node's operators that ran in the selection
	// NS is the time in ns of the dispatches in one step. It was measured in isolation or as the time of
	// whole blocks.
	NS       float64
	Measured bool // every dispatch of the node was measured
	Share    float64
	// Each is the time of one dispatch: the median over the node's operators. It is not measured if an
	// operator of the node has several dispatches.
	Each     analyze.Stats
	Groups   int64   // number of workgroups launched
	Waste    int64   // number of launched workgroups without work
	ErrorDB  float64 // lowest signal-to-noise ratio of the dispatches in dB
	HasError bool
	Cost     *analyze.RowCost // time saved by skipping exactly these dispatches; nil if not measured
	// Other is a launch of the node that ran differently when the cost was measured, or nil. If Other is set,
	// Cost is nil.
	Other *analyze.Launch
	Costs *analyze.StepCosts // if Other is set: the measured costs
	// Delta compares the time with the baseline. The plan differences in Delta are not set.
	Delta analyze.Delta
}

// Of computes the graph with the numbers of a selection, compared with a baseline if there is one.
func Of(ctx context.Context, x *analyze.Index, o analyze.Options) (*GraphTree, error) {
	whole := o.Selection
	o = o.Routed(x)
	t := &GraphTree{Index: x, Selection: o.Selection, Baseline: o.Baseline}
	w, err := weigh(ctx, x, o, whole)
	if err != nil {
		return nil, err
	}
	b, fold := treeBuilder{t: t, w: w}, o.Grouping
	if fold == analyze.GroupKernel {
		fold = analyze.GroupOp
	}
	if fold == analyze.GroupOp {
		b.byKind()
	} else {
		b.byLayer(fold == analyze.GroupLayer)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t.Tree = make([]tree.Row, len(t.Nodes))
	for i := range t.Nodes {
		t.Tree[i] = t.Nodes[i].Row
	}
	tree.NameApart(t.Tree, func(row int) string { return t.Nodes[row].Label })
	t.W, t.Grouping, t.ByCost = w, fold, t.byCost()
	if o.Baseline.Chosen() && len(o.Selection.Steps) > 0 {
		t.Sum = w.sumAll(x.Trace.Graph.Ops)
	}
	return t, nil
}

// Timed reports whether nodes have times.
func (t *GraphTree) Timed() bool { return t.W.Total > 0 || t.W.Blocks != nil }

func (t *GraphTree) byCost() bool {
	var known, all float64
	for i := range t.Nodes {
		n := &t.Nodes[i]
		if n.Edge != "" || n.Group || n.Parent >= 0 && !t.Nodes[n.Parent].Group {
			continue
		}
		if all += n.NS; n.Cost != nil && n.Cost.ErrorKnown {
			known += n.NS
		}
	}
	return known > 0 && known >= all/2
}

// Weights holds the numbers of the operators in a selection.
type Weights struct {
	ByOp   map[trace.OpID][]*analyze.Launch
	steps  float64
	Total  float64             // time of a step in ns; 0 if a dispatch was not measured
	Blocks *analyze.BlockTimes // nil if the step was not timed by blocks
	costs  *analyze.StepCosts  // nil if no costs were measured
	// These fields are set if there is a baseline. counterparts returns those of some launches. gone holds
	// the launches that ran only at the baseline. baseSteps is the number of baseline steps. judge reports
	// whether two times differ significantly.
	counterparts  func([]*analyze.Launch) analyze.Counterparts
	gone          []*analyze.Launch
	goneOf        map[trace.OpID][]*analyze.Launch   // those of operators that are in the graph
	goneIn        func(*GraphNode) []*analyze.Launch // the others, by heading
	baseSteps     float64
	judge         func(nowNS, baselineNS float64, now, then []*analyze.Launch) bool
	ClockMoved    bool
	Single        bool // some dispatch has only one time in the selection or at the baseline
	BaselineCosts *analyze.BaselineCosts
}

// weigh computes the weights of all operators in a selection. If its steps have no costs, weigh uses the
// costs of steps that took other routes: `whole` is the selection including those steps.
func weigh(ctx context.Context, x *analyze.Index, o analyze.Options, whole analyze.Selection) (*Weights,
	error,
) {
	selection := o.Selection
	w := &Weights{ByOp: map[trace.OpID][]*analyze.Launch{}, steps: float64(len(selection.Steps))}
	if len(selection.Steps) == 0 {
		return w, ctx.Err()
	}
	launches, err := x.Launches(ctx, selection)
	if err != nil {
		return nil, err
	}
	w.Blocks, w.costs = x.BlockTimes(selection), x.Costs(selection, whole)
	if o.Baseline != nil {
		c, err := o.Baseline.Compare(ctx, x, selection, launches)
		if err != nil {
			return nil, err
		}
		w.counterparts, w.baseSteps = c.Counterparts, float64(len(o.Baseline.Selection.Steps))
		single := func(l *analyze.Launch) bool { return l.Time.N == 1 }
		for _, p := range c.Pieces {
			w.Single = w.Single || len(p.Now) > 0 && slices.ContainsFunc(slices.Concat(p.Now, p.Base), single)
		}
		w.judge, w.ClockMoved, w.gone = c.Differ, c.ClockMoved, c.Gone
		w.goneOf, w.goneIn = goneOf(x, o.Baseline.Index, c.Gone)
		w.BaselineCosts = o.Baseline.CostsBeside(w.costs)
	}
	measured := true
	for i := range launches {
		l := &launches[i]
		w.ByOp[l.Op.ID] = append(w.ByOp[l.Op.ID], l)
		measured = measured && l.Time.Measured()
		w.Total += l.Time.Median * float64(l.Runs) / w.steps
	}
	if !measured {
		w.Total = 0
	}
	return w, nil
}

// goneOf divides launches that ran only at the baseline. If the graph has an operator of the same name, `of`
// has them by this operator. Otherwise `in` returns them for the heading of their part, layer or block.
func goneOf(x, baseline *analyze.Index, gone []*analyze.Launch) (of map[trace.OpID][]*analyze.Launch,
	in func(*GraphNode) []*analyze.Launch,
) {
	ids := map[string]trace.OpID{}
	for i := range x.Trace.Graph.Ops {
		ids[x.Trace.Graph.Ops[i].Name] = x.Trace.Graph.Ops[i].ID
	}
	of = map[trace.OpID][]*analyze.Launch{}
	var rest []*analyze.Launch
	for _, l := range gone {
		if id, ok := ids[l.Op.Name]; ok {
			of[id] = append(of[id], l)
		} else {
			rest = append(rest, l)
		}
	}
	return of, func(n *GraphNode) (list []*analyze.Launch) {
		if !n.Group || rest == nil {
			return nil
		}
		for _, unit := range n.Ops {
			if len(unit) == 0 { // of a graph without operators
				continue
			}
			first := &x.Trace.Graph.Ops[unit[0]]
			for _, l := range rest {
				switch at := l.Op.Layer; {
				case (at == nil) != (first.Layer == nil):
				case at == nil && baseline.Graph.Layers.Part(l.Op) == n.Key,
					at != nil && *at == *first.Layer && (n.Parent < 0 || l.Op.Block == first.Block):
					list = append(list, l)
				}
			}
		}
		return list
	}
}

// sum computes the numbers of a node from the numbers of the node's operators.
func (w *Weights) sum(n *GraphNode) {
	n.Measured, n.ErrorDB = true, math.Inf(1)
	var launches, gone []*analyze.Launch
	sets := make([][]int, len(n.Ops)) // indices of dispatches in the step
	for i, unit := range n.Ops {
		for _, id := range unit {
			gone = append(gone, w.goneOf[id]...)
			for _, l := range w.ByOp[id] {
				launches, sets[i] = append(launches, l), append(sets[i], l.Index)
				if k := len(n.Dispatches); k == 0 || n.Dispatches[k-1] != l.ID {
					n.Dispatches = append(n.Dispatches, l.ID)
				}
				n.Measured = n.Measured && l.Time.Measured()
				n.NS += l.Time.Median * float64(l.Runs) / w.steps
				n.Groups += analyze.Product(l.Plan.Workgroups)
				n.Waste += analyze.Product(l.Plan.Workgroups) - l.Plan.NeededGroups
				if l.Gap != nil {
					n.HasError = true
					if db := float64(l.Gap.SNRdB); !(n.ErrorDB <= db) {
						n.ErrorDB = db
					}
				}
			}
		}
	}
	n.Measured = n.Measured && len(n.Dispatches) > 0
	several := func(set []int) bool { return len(set) != 1 }
	if n.Measured && !n.Group && !slices.ContainsFunc(sets, several) {
		var each []float64
		for _, l := range launches {
			each = append(each, l.Time.Median)
		}
		n.Each = analyze.StatsOf(each)
	}
	switch {
	case w.Total > 0:
		n.Share = n.NS / w.Total
	case !n.Measured:
		_, n.NS, n.Share, n.Measured = w.Blocks.Of(sets)
	}
	cost, other := w.costs.Beside(launches)
	n.Cost, n.Other, n.Costs = cost, other, w.costs
	if w.goneIn != nil {
		gone = append(gone, w.goneIn(n)...)
	}
	if w.counterparts != nil && !w.ClockMoved && len(launches)+len(gone) > 0 {
		of := w.counterparts(launches)
		w.compare(n, launches, slices.Concat(of.Launches, gone), of.SameWork(n.Group))
	}
}

// compare sets the Delta of a node from its launches in the selection and at the baseline. Their
// times are only compared if `sameWork` is set.
func (w *Weights) compare(n *GraphNode, now, then []*analyze.Launch, sameWork bool) {
	d := &n.Delta
	unmeasured := func(l *analyze.Launch) bool { return !l.Time.Measured() }
	single := func(l *analyze.Launch) bool { return l.Time.N < 2 }
	if slices.ContainsFunc(then, unmeasured) {
		return
	}
	for _, l := range then {
		d.BaselineNS += l.Time.Median * float64(l.Runs) / w.baseSteps
	}
	d.HasBaseline = len(then) > 0
	if d.Measured = sameWork && !slices.ContainsFunc(now, unmeasured); !d.Measured {
		return
	}
	d.TimeNS = n.NS - d.BaselineNS
	d.Timed = len(now) > 0 && len(then) > 0 && !slices.ContainsFunc(slices.Concat(now, then), single)
	if d.Timed {
		d.Equal = !w.judge(n.NS, d.BaselineNS, now, then)
	}
}

// sumAll returns a node that stands for all dispatches of both sides. Its label states how many dispatches
// ran only at the baseline, and its Delta includes their times. `ops` are all operators of the graph.
func (w *Weights) sumAll(ops []trace.Op) *GraphNode {
	all := make([]trace.OpID, len(ops))
	for i := range all {
		all[i] = ops[i].ID
	}
	n := &GraphNode{
		Row:   tree.Row{Key: "total", Parent: -1, Group: true},
		Label: "total", Ops: [][]trace.OpID{all},
	}
	w.sum(n)
	if !n.Delta.HasBaseline && !n.Delta.Measured {
		return n
	}
	if len(w.gone) > 0 {
		n.Label += fmt.Sprintf(" with %d only in the baseline", len(w.gone))
	}
	var now []*analyze.Launch
	for _, id := range all {
		now = append(now, w.ByOp[id]...)
	}
	n.Delta = analyze.Delta{}
	w.compare(n, now, slices.Concat(w.counterparts(now).Launches, w.gone), true)
	return n
}

// treeBuilder builds the tree by adding nodes in pre-order.
type treeBuilder struct {
	t *GraphTree
	w *Weights
}

func (b *treeBuilder) add(parent int, key, label string, ops [][]trace.OpID, group, open bool) int {
	n := GraphNode{
		Row:   tree.Row{Key: key, Parent: parent, Group: group, Open: open},
		Label: label, Ops: ops,
	}
	if parent >= 0 {
		n.Depth = b.t.Nodes[parent].Depth + 1
	}
	b.w.sum(&n)
	b.t.Nodes = append(b.t.Nodes, n)
	return len(b.t.Nodes) - 1
}

// operator adds an operator with its values.
func (b *treeBuilder) operator(parent int, key, label string, id trace.OpID) {
	row := b.add(parent, key, label, [][]trace.OpID{{id}}, false, false)
	g := &b.t.Index.Trace.Graph
	o := &g.Ops[id]
	for _, list := range []struct {
		edge   string
		values []trace.ValueID
	}{{"in", o.Inputs}, {"state", o.State}, {"out", o.Outputs}, {"makes", o.Makes}} {
		for i, v := range list.values {
			b.t.Nodes = append(b.t.Nodes, GraphNode{
				Row: tree.Row{
					Key:    fmt.Sprintf("%s/%s%d", key, list.edge, i),
					Parent: row, Depth: b.t.Nodes[row].Depth + 1,
				},
				Label: g.Values[v].Name, Ops: [][]trace.OpID{{id}}, Value: v, Edge: list.edge,
			})
		}
	}
}

// several adds one node for several operators: the same operator of equal layers, or all operators of one
// kind. Each operator gets a child node. If there is only one operator, it gets a node without children.
func (b *treeBuilder) several(parent int, key, label string, ids []trace.OpID) {
	g := &b.t.Index.Trace.Graph
	if len(ids) == 1 {
		b.operator(parent, key, label, ids[0])
		return
	}
	units := make([][]trace.OpID, len(ids))
	for i, id := range ids {
		units[i] = []trace.OpID{id}
	}
	row := b.add(parent, key, fmt.Sprintf("%s ×%d", label, len(ids)), units, false, false)
	for _, id := range ids {
		name := g.Ops[id].Name
		if parent >= 0 { // below a heading, the operators belong to equal layers
			name = analyze.LayerName(*g.Ops[id].Layer)
		}
		b.operator(row, opKey(id), name, id)
	}
}

func opKey(id trace.OpID) string { return fmt.Sprintf("op%d", id) }

func (b *treeBuilder) byKind() {
	g := &b.t.Index.Trace.Graph
	var order []string
	members := map[string][]trace.OpID{}
	for i := range g.Ops {
		k := g.Ops[i].Kind
		if members[k] == nil {
			order = append(order, k)
		}
		members[k] = append(members[k], trace.OpID(i))
	}
	for _, k := range order {
		if len(members[k]) == 1 {
			b.operator(-1, opKey(members[k][0]), g.Ops[members[k][0]].Name, members[k][0])
			continue
		}
		b.several(-1, "kind:"+k, k, members[k])
	}
}

// byLayer adds the prologue, the layers and the epilogue. If `folded` is set, equal layers share one node.
func (b *treeBuilder) byLayer(folded bool) {
	g := &b.t.Index.Trace.Graph
	parts := map[string][]trace.OpID{}
	layers := map[int][]trace.OpID{}
	var order []int
	for i := range g.Ops {
		o := &g.Ops[i]
		if o.Layer == nil {
			part := b.t.Index.Graph.Layers.Part(o)
			parts[part] = append(parts[part], o.ID)
			continue
		}
		if layers[*o.Layer] == nil {
			order = append(order, *o.Layer)
		}
		layers[*o.Layer] = append(layers[*o.Layer], o.ID)
	}
	slices.Sort(order)
	b.part("prologue", parts["prologue"])
	var groups [][]int
	index := map[string]int{}
	for _, n := range order {
		shape := fmt.Sprint(n)
		if folded {
			shape = b.shape(layers[n])
		}
		k, there := index[shape]
		if !there {
			k = len(groups)
			index[shape] = k
			groups = append(groups, nil)
		}
		groups[k] = append(groups[k], n)
	}
	for _, equal := range groups {
		b.layers(equal, layers)
	}
	b.part("epilogue", parts["epilogue"])
	for _, id := range parts[""] {
		b.operator(-1, opKey(id), g.Ops[id].ShortName(), id)
	}
}

// shape returns a text that is the same for equal layers: the operators, and the kernels and grids with
// which they run. As in the table of dispatches, layers that run the same way are equal. In the last layer,
// operators can be fused with the selection of the last token; this makes no difference if something ran.
// If nothing ran, the text also contains the parts of fused operators.
func (b *treeBuilder) shape(ids []trace.OpID) string {
	g := &b.t.Index.Trace.Graph
	var s strings.Builder
	for _, id := range ids {
		o := &g.Ops[id]
		fmt.Fprintf(&s, "%s\x00%s\x00%s\n", o.Block, o.ShortName(), o.Kind)
		for _, part := range o.Parts {
			if len(b.w.ByOp) == 0 {
				fmt.Fprintf(&s, "\x00%s\n", analyze.Within(part, o))
			}
		}
		for _, l := range b.w.ByOp[id] {
			fmt.Fprintf(&s, "%s\x00%v\n", l.Plan.Kernel, l.Plan.Workgroups)
		}
	}
	return s.String()
}

func (b *treeBuilder) part(name string, ids []trace.OpID) {
	if len(ids) == 0 {
		return
	}
	row := b.add(-1, name, name, [][]trace.OpID{ids}, true, true)
	for _, id := range ids {
		b.operator(row, opKey(id), b.t.Index.Trace.Graph.Ops[id].ShortName(), id)
	}
}

// layers adds the nodes of a set of equal layers: a node for each block and, below it, its operators.
func (b *treeBuilder) layers(equal []int, of map[int][]trace.OpID) {
	g := &b.t.Index.Trace.Graph
	units := make([][]trace.OpID, len(equal))
	for k, n := range equal {
		units[k] = of[n]
	}
	key, label := fmt.Sprintf("layer%d", equal[0]), "layer "+printable.Ranges(equal)
	if len(equal) > 1 {
		label = fmt.Sprintf("layers %s ×%d", printable.Ranges(equal), len(equal))
	}
	row := b.add(-1, key, label, units, true, len(equal) > 1 || equal[0] == 0)
	for _, in := range analyze.BlocksOf(units, func(id trace.OpID) string { return g.Ops[id].Block }) {
		parent := row
		if in.Block != "" {
			parent = b.add(row, key+"/"+in.Block, in.Block, in.Layers, true, true)
		}
		for _, ids := range in.Places {
			rowKey := opKey(ids[0])
			if len(ids) > 1 {
				rowKey = key + "/" + rowKey
			}
			b.several(parent, rowKey, g.Ops[ids[0]].ShortName(), ids)
		}
	}
}

// Op returns the first operator of a node, and nil for a heading.
func (t *GraphTree) Op(row int) *trace.Op {
	n := &t.Nodes[row]
	if n.Group || len(n.Ops) == 0 || len(n.Ops[0]) == 0 {
		return nil
	}
	return &t.Index.Trace.Graph.Ops[n.Ops[0][0]]
}

// Step returns the last step of the selection, whose shapes are shown, or -1 if no step is selected.
func (t *GraphTree) Step() int {
	if len(t.Selection.Steps) == 0 {
		return -1
	}
	return t.Selection.Last()
}
