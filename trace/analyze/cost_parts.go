package analyze

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/trace"
)

// NameError reports a name that matches no row.
type NameError struct {
	Name  string
	What  string // what is wrong with the name
	Known string // the names that exist, separated by commas; "" if a list would not help
}

func (e *NameError) Error() string {
	text := fmt.Sprintf("%q: %s", printable.Short(e.Name, 40), e.What)
	if e.Known != "" {
		text += "; known names: " + e.Known
	}
	return text
}

// CostParts returns the parts of a step whose costs are worth measuring. A part consists of the dispatches
// of one kernel, of one kind of operator, or of one row of the step grouped by layer. If several parts have
// the same dispatches, CostParts returns one of them. Each part is measured separately, because the cost of
// several parts together is not the sum of their costs.
func (x *Index) CostParts(ctx context.Context, step int) ([]trace.Part, error) {
	var parts []trace.Part
	seen := map[string]bool{}
	for _, fold := range []Grouping{GroupLayer, GroupKernel, GroupOp} {
		t, err := x.DispatchTree(ctx, Options{Selection: x.Step(step), Grouping: fold})
		if err != nil {
			return nil, err
		}
		for _, p := range t.OpenParts() {
			if key := trace.SetKey(p.Dispatches); !seen[key] {
				seen[key] = true
				p.Rival = p.Rival && fold == GroupLayer
				parts = append(parts, p)
			}
		}
	}
	return parts, nil
}

// OpenParts returns the parts to measure for the rows that are visible at first.
func (t *DispatchTree) OpenParts() []trace.Part { return t.CostParts(t.opened()) }

// opened returns the rows that are visible at first, before the user opens or closes rows.
func (t *DispatchTree) opened() (rows []int) {
	for i := range t.Grouped {
		if r := &t.Grouped[i]; !r.Joint && (r.Parent < 0 || t.Grouped[r.Parent].Open) {
			rows = append(rows, i)
		}
	}
	return rows
}

// CostParts returns the parts to measure for the given rows: each row, and each set of concurrent rows as one
// more part.
func (t *DispatchTree) CostParts(rows []int) []trace.Part {
	list := t.rowsAt(rows)
	for _, set := range t.joint() {
		if !slices.ContainsFunc(set, func(row int) bool { return !slices.Contains(rows, row) }) {
			list = append(list, t.join(set))
		}
	}
	return t.partsOf(list)
}

// Parts returns the dispatches of the given rows as parts, each part once. If several steps are selected,
// only dispatches of the last of these steps are included.
func (t *DispatchTree) Parts(rows []int) []trace.Part { return t.partsOf(t.rowsAt(rows)) }

func (t *DispatchTree) rowsAt(rows []int) []DispatchRow {
	list := make([]DispatchRow, len(rows))
	for i, row := range rows {
		list[i] = t.Grouped[row]
	}
	return list
}

func (t *DispatchTree) partsOf(rows []DispatchRow) []trace.Part {
	step := &t.Index.Trace.Steps[t.Selection.Last()]
	ran, d, set := t.Index.ran(step), &t.Index.Trace.Device, t.Index.streamed(step)
	var parts []trace.Part
	seen := map[string]bool{}
	for i := range rows {
		p := trace.Part{
			Name: t.NameOf(&rows[i]), Dispatches: t.dispatches(&rows[i], ran), Rival: t.rival(&rows[i]),
		}
		for _, id := range p.Dispatches {
			if NoSave(d) == "" {
				p.LeastNS += int64(roofNS(d.Ceilings, float64(ran[id].Bytes), float64(ran[id].FLOPs), set))
			}
		}
		if key := trace.SetKey(p.Dispatches); len(p.Dispatches) > 0 && !seen[key] {
			seen[key] = true
			parts = append(parts, p)
		}
	}
	return parts
}

// Together merges parts into one part.
func Together(parts []trace.Part) trace.Part {
	var all trace.Part
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

// Named returns the part of a step that a comma-separated list of names selects. A name is the name of a kind
// of operator, of a kernel, or of a row of the step grouped by layer. The row may be "attn.norm", "norm"
// without its block, or the block "attn" alone. A * in a name matches any characters.
func (x *Index) Named(ctx context.Context, step int, names string) (trace.Part, error) {
	t, err := x.DispatchTree(ctx, Options{Selection: x.Step(step), Grouping: GroupLayer})
	if err != nil {
		return trace.Part{}, err
	}
	var parts []trace.Part
	for name := range strings.SplitSeq(names, ",") {
		name = strings.TrimSpace(name)
		one := trace.Part{Name: name}
		for i := range t.Grouped {
			if is, err := t.answers(i, name); err != nil {
				return trace.Part{}, &NameError{name, err.Error(), ""}
			} else if is {
				one.Dispatches = append(one.Dispatches, t.dispatches(&t.Grouped[i], nil)...)
			}
		}
		if one.Dispatches == nil {
			return trace.Part{}, &NameError{name, "no row of the step has this name", t.names()}
		}
		parts = append(parts, one)
	}
	return Together(parts), nil
}

// Nameable returns an error if one of the comma-separated names can match no row of any step, whichever
// routes the dispatches take. For such a name, Named returns an error in every step.
func (x *Index) Nameable(names string) error {
	var rows []string
	// `also` lists valid names that are not names of rows: kinds of operators, kernels, labels without their
	// block, and layers.
	also := []string{"layer 0", "layers 0–1"}
	add := func(name string) {
		if name != "" && !slices.Contains(rows, name) {
			rows = append(rows, name)
		}
	}
	g := &x.Trace.Graph
	for i := range g.Dispatches {
		d := &g.Dispatches[i]
		o := &g.Ops[d.Op]
		also = append(also, o.Kind, Label(o, d))
		if o.Layer != nil {
			also = append(also, LayerName(*o.Layer))
		}
		if o.Layer != nil && o.Block != "" {
			add(o.Block)
		}
		add(x.Graph.Layers.Part(o))
		add(d.Named(o.Place()))
	}
	for i := range g.Kernels {
		also = append(also, g.Kernels[i].Name)
	}
	for name := range strings.SplitSeq(names, ",") {
		name = strings.TrimSpace(name)
		// Which layers are equal depends on the step, so any name that begins with "layer " or "layers " is
		// accepted.
		is := strings.HasPrefix(name, "layer ") || strings.HasPrefix(name, "layers ")
		for _, has := range slices.Concat(rows, also) {
			match, err := path.Match(name, has)
			if err != nil {
				return &NameError{name, err.Error(), ""}
			}
			is = is || match
		}
		if !is {
			return &NameError{name, "no row of any step has this name", strings.Join(rows, ", ")}
		}
	}
	return nil
}

// answers reports whether a name matches a row. The name may be that of the row, or one that all dispatches
// of the row share, such as the name of their kernel.
func (t *DispatchTree) answers(row int, name string) (is bool, err error) {
	r, first := &t.Grouped[row], t.Launch(&t.Grouped[row])
	if r.Joint {
		return false, nil // a joint row cannot be named; the rows that it joins can
	}
	has := []string{t.Called(row), r.Label}
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

// names returns the names of the rows that are initially visible.
func (t *DispatchTree) names() string {
	var names []string
	for _, i := range t.opened() {
		names = append(names, t.Called(i))
	}
	return strings.Join(names, ", ")
}

// Called returns the name of a row: with its block ("attn.q"), or for concurrent rows the joined names ("q +
// k + v at once").
func (t *DispatchTree) Called(row int) string { return t.NameOf(&t.Grouped[row]) }

// NameOf is like Called, but takes the row itself instead of its index.
func (t *DispatchTree) NameOf(r *DispatchRow) string {
	if r.Joint {
		return r.Label + AtOnce
	}
	if r.Parent < 0 || r.Group {
		return r.Label
	}
	if p := &t.Grouped[r.Parent]; p.Group && p.Depth > 0 {
		return p.Label + "." + r.Label
	}
	return r.Label
}

// ran returns the plans of the dispatches of a step.
func (x *Index) ran(s *trace.Step) map[trace.DispatchID]*trace.Plan {
	plans := make(map[trace.DispatchID]*trace.Plan, len(s.Dispatches))
	for i := range s.Dispatches {
		p := &x.Trace.Plans[s.Dispatches[i].Plan]
		plans[p.Dispatch] = p
	}
	return plans
}

// DispatchesOf returns the ids of the dispatches of a row, each id once and in ascending order.
func (t *DispatchTree) DispatchesOf(row int) []trace.DispatchID {
	return t.dispatches(&t.Grouped[row], nil)
}

// dispatches returns the ids of the dispatches of a row, each id once and in ascending order. If the set is
// not nil, only ids in this set are returned.
func (t *DispatchTree) dispatches(r *DispatchRow, of map[trace.DispatchID]*trace.Plan) []trace.DispatchID {
	var ids []trace.DispatchID
	for _, u := range r.Units {
		for _, i := range u {
			if id := t.Launches[i].ID; of == nil || of[id] != nil {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
