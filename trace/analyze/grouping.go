package analyze

import (
	"fmt"
	"slices"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/trace"
	"gpuscope/trace/tree"
)

// Grouping says which dispatches of a step share a row.
type Grouping int

// The groupings.
const (
	GroupLayer  Grouping = iota // by prologue, layer, block and epilogue; equal layers share rows
	GroupOp                     // by kind of operator
	GroupKernel                 // by kernel
	GroupNone                   // every dispatch, in order of submission
)

var groupingNames = [...]string{GroupLayer: "layer", GroupOp: "op", GroupKernel: "kernel", GroupNone: "none"}

// String returns the name of the grouping.
func (f Grouping) String() string { return groupingNames[f] }

// GroupingNames returns the names of all groupings.
func GroupingNames() []string { return groupingNames[:] }

// ParseGrouping parses the name of a grouping.
func ParseGrouping(s string) (Grouping, error) {
	if i := slices.Index(groupingNames[:], s); i >= 0 {
		return Grouping(i), nil
	}
	return 0, fmt.Errorf("unknown grouping %q; expected %s", s, strings.Join(groupingNames[:], ", "))
}

// place is a row of the table of dispatches before its numbers are computed. The field `units` becomes
// DispatchRow.Units. The row of a single dispatch, of the prologue or of the epilogue has one unit.
type place struct {
	tree.Row
	label string
	units [][]int
	gone  []*Launch // dispatches of the row that ran only at the baseline
}

// grouper builds the list of places in pre-order.
type grouper struct {
	x        *Index
	launches []Launch
	// tokens holds, for each dispatch, the token counts of its launches. It is nil if the selection has only
	// one step.
	tokens map[trace.DispatchID][]int
	places []place
	// gone holds the dispatches that ran only at the baseline and that have no row yet.
	gone     []*Launch
	baseline *Index
}

func newGrouper(t *DispatchTree) *grouper {
	f := &grouper{x: t.Index, launches: t.Launches, gone: t.Gone}
	if t.Baseline != nil {
		f.baseline = t.Baseline.Index
	}
	if _, one := t.Selection.One(); one {
		return f // in one step, each dispatch runs only once
	}
	f.tokens = make(map[trace.DispatchID][]int, len(f.launches))
	for i := range f.launches {
		f.tokens[f.launches[i].ID] = append(f.tokens[f.launches[i].ID], f.launches[i].Tokens)
	}
	return f
}

func (f *grouper) add(parent int, key, label string, units [][]int, group, open bool) int {
	p := place{Row: tree.Row{Key: key, Parent: parent, Group: group, Open: open}, label: label, units: units}
	if parent >= 0 {
		p.Depth = f.places[parent].Depth + 1
		f.places[parent].Children = true
	}
	f.places = append(f.places, p)
	return len(f.places) - 1
}

func (f *grouper) leaf(parent int, label string, i int) {
	f.add(parent, f.key(i), label, [][]int{{i}}, false, false)
}

// key returns a text that identifies a launch: the dispatch id. If the dispatch did different work in
// different steps, the text also contains the launch's token count, kernel and route.
func (f *grouper) key(i int) string {
	l := &f.launches[i]
	if len(f.tokens[l.ID]) < 2 {
		return fmt.Sprintf("d%d", l.ID)
	}
	return fmt.Sprintf("d%d:%d:%s:%s", l.ID, l.Tokens, l.Plan.Kernel, l.Plan.Route)
}

// marked returns the name of a launch. If the dispatch ran with different token counts in the selection, the
// token count of the launch follows the name.
func (f *grouper) marked(name string, i int) string {
	l := &f.launches[i]
	for _, n := range f.tokens[l.ID] {
		if n != l.Tokens {
			return fmt.Sprintf("%s M=%d", name, l.Tokens)
		}
	}
	return name
}

func (f *grouper) label(i int) string {
	return f.marked(Label(f.launches[i].Op, f.launches[i].Dispatch), i)
}

func (f *grouper) name(i int) string { return f.marked(f.x.Name(f.launches[i].ID), i) }

// layer returns the name of a launch, such as "L3", for a list of equal launches that differ only in the
// layer.
func (f *grouper) layer(i int) string {
	return f.marked(LayerName(*f.launches[i].Op.Layer), i)
}

// placed returns the name of a launch with a short name of its layer, such as "L3 attn.q".
func (f *grouper) placed(i int) string {
	name, o := f.name(i), f.launches[i].Op
	if o.Layer == nil {
		return name
	}
	return LayerName(*o.Layer) + " " + InLayer(name, *o.Layer)
}

// several adds one row for several launches, with a child row for each of them. The given function returns
// the label of a child row. If there is only one launch, it gets a row without children.
func (f *grouper) several(parent int, key, label string, launches []int, name func(i int) string) {
	if len(launches) == 1 {
		f.leaf(parent, label, launches[0])
		return
	}
	units := make([][]int, len(launches))
	for k, i := range launches {
		units[k] = []int{i}
	}
	row := f.add(parent, key, label, units, false, false)
	for _, i := range launches {
		f.leaf(row, name(i), i)
	}
}

// by adds a row for each group of launches for which `name` returns the same name. The groups are in order
// of first appearance.
func (f *grouper) by(prefix string, name func(*Launch) string) {
	var order []string
	members := map[string][]int{}
	for i := range f.launches {
		n := name(&f.launches[i])
		if members[n] == nil {
			order = append(order, n)
		}
		members[n] = append(members[n], i)
	}
	for _, n := range order {
		if len(members[n]) == 1 {
			f.leaf(-1, n, members[n][0])
			continue
		}
		f.several(-1, prefix+":"+n, n, members[n], f.placed)
	}
}

func (f *grouper) fold(by Grouping) []place {
	switch by {
	case GroupOp:
		f.by("op", func(l *Launch) string { return l.Op.Kind })
	case GroupKernel:
		f.by("kernel", func(l *Launch) string { return l.Plan.Kernel })
	case GroupNone:
		for i := range f.launches {
			f.leaf(-1, f.name(i), i)
		}
	default:
		f.byLayer()
	}
	if len(f.gone) > 0 {
		top := f.add(-1, "gone", "gone", nil, true, true)
		f.places[top].gone = f.gone
		f.addGone(top, f.gone, by != GroupNone)
	}
	return f.places
}

// goneFrom removes the dispatches for which `is` returns true from f.gone, and returns them.
func (f *grouper) goneFrom(is func(*Launch) bool) (list []*Launch) {
	var rest []*Launch
	for _, l := range f.gone {
		if is(l) {
			list = append(list, l)
		} else {
			rest = append(rest, l)
		}
	}
	f.gone = rest
	return list
}

// addGone adds rows for dispatches that ran only at the baseline. Dispatches of several layers share a row,
// if `fold` is set and they have the same name within the layer, the same kernel and the same grid. The row
// then has a child row for each layer.
func (f *grouper) addGone(parent int, gone []*Launch, fold bool) {
	var order []string
	alike := map[string][]*Launch{}
	for _, l := range gone {
		name := f.baseline.Name(l.ID)
		if fold && l.Op.Layer != nil {
			name = fmt.Sprintf("%s %s %v", InLayer(name, *l.Op.Layer), l.Plan.Kernel, l.Plan.Workgroups)
		}
		if alike[name] == nil {
			order = append(order, name)
		}
		alike[name] = append(alike[name], l)
	}
	row := func(parent int, key, label string, of ...*Launch) int {
		at := f.add(parent, key, label, nil, false, false)
		f.places[at].gone = of
		return at
	}
	for _, name := range order {
		list := alike[name]
		first := list[0]
		label, key := f.baseline.Name(first.ID), fmt.Sprintf("gone/d%d", first.ID)
		switch {
		case f.places[parent].Key != "gone":
			label = Label(first.Op, first.Dispatch)
		case fold && first.Op.Layer != nil:
			label = InLayer(label, *first.Op.Layer)
		}
		at := row(parent, key, label, list...)
		for _, l := range list {
			if len(list) == 1 {
				break
			}
			of := f.baseline.Name(l.ID)
			if l.Op.Layer != nil {
				of = LayerName(*l.Op.Layer)
			}
			row(at, fmt.Sprintf("%s/d%d", key, l.ID), of, l)
		}
	}
}

// layer is one layer of a step with its launches.
type layer struct {
	number   int
	launches []int
	shape    string // same text if blocks, operators, kernels and grids are the same, in order
}

func (f *grouper) byLayer() {
	var prologue, epilogue, plain []int
	byNumber := map[int]*layer{}
	var layers []*layer
	for i := range f.launches {
		op := f.launches[i].Op
		switch f.x.Graph.Layers.Part(op) {
		case "prologue":
			prologue = append(prologue, i)
		case "epilogue":
			epilogue = append(epilogue, i)
		default:
			if op.Layer == nil {
				plain = append(plain, i)
				continue
			}
			l := byNumber[*op.Layer]
			if l == nil {
				l = &layer{number: *op.Layer}
				byNumber[l.number] = l
				layers = append(layers, l)
			}
			l.launches = append(l.launches, i)
		}
	}
	f.part("prologue", prologue)
	for _, equal := range f.equalLayers(layers) {
		f.layers(equal)
	}
	f.part("epilogue", epilogue)
	for _, i := range plain {
		f.leaf(-1, f.label(i), i)
	}
}

func (f *grouper) part(name string, launches []int) {
	if len(launches) == 0 {
		return
	}
	row := f.add(-1, name, name, [][]int{launches}, true, true)
	for _, i := range launches {
		f.leaf(row, f.label(i), i)
	}
	gone := f.goneFrom(func(l *Launch) bool { return f.baseline.Graph.Layers.Part(l.Op) == name })
	f.places[row].gone = gone
	f.addGone(row, gone, true)
}

// equalLayers divides layers into groups of equal shape. The groups are in order of their first layers.
func (f *grouper) equalLayers(layers []*layer) [][]*layer {
	slices.SortFunc(layers, func(a, b *layer) int { return a.number - b.number })
	var groups [][]*layer
	index := map[string]int{}
	for _, l := range layers {
		var b strings.Builder
		for _, i := range l.launches {
			n := &f.launches[i]
			fmt.Fprintf(&b, "%s\x00%s\x00%s\x00%v\n", n.Op.Block, f.label(i), n.Plan.Kernel,
				n.Plan.Workgroups)
		}
		l.shape = b.String()
		k, ok := index[l.shape]
		if !ok {
			k = len(groups)
			index[l.shape] = k
			groups = append(groups, nil)
		}
		groups[k] = append(groups[k], l)
	}
	return groups
}

// layers adds the rows for a set of equal layers: a row for each block and, below it, a row for each
// dispatch. The row of a dispatch represents the dispatch in all of these layers.
func (f *grouper) layers(equal []*layer) {
	var list []int
	units := make([][]int, len(equal))
	for k, l := range equal {
		list = append(list, l.number)
		units[k] = l.launches
	}
	key := fmt.Sprintf("layer%d", equal[0].number)
	label := "layer " + printable.Ranges(list)
	if len(list) > 1 {
		label = "layers " + printable.Ranges(list)
	}
	row := f.add(-1, key, label, units, true, true)
	here := func(l *Launch) bool { return l.Op.Layer != nil && slices.Contains(list, *l.Op.Layer) }
	for _, in := range BlocksOf(units, func(i int) string { return f.launches[i].Op.Block }) {
		parent := row
		if in.Block != "" {
			parent = f.add(row, key+"/"+in.Block, in.Block, in.Layers, true, true)
		}
		for _, members := range in.Places {
			first := members[0]
			of := fmt.Sprintf("%s/%s/%s", key, in.Block, f.key(first))
			f.several(parent, of, f.label(first), members, f.layer)
		}
		if in.Block != "" {
			inBlock := func(l *Launch) bool { return here(l) && l.Op.Block == in.Block }
			f.places[parent].gone = f.goneFrom(inBlock)
			f.addGone(parent, f.places[parent].gone, true)
			f.places[row].gone = append(f.places[row].gone, f.places[parent].gone...)
		}
	}
	rest := f.goneFrom(here)
	f.addGone(row, rest, true)
	f.places[row].gone = append(f.places[row].gone, rest...)
}
