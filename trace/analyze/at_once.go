package analyze

import (
	"fmt"
	"slices"
	"strings"

	"gpuscope/internal/cells"
	"gpuscope/trace/tree"
)

// The dispatches of two rows run concurrently if there is no barrier between them. Then each row hides the
// time of the other. For example, skipping one of three parallel projections saves almost nothing, although
// skipping all three saves their full time. Therefore a cost measurement also skips concurrent rows together.
// In tables without headings, the cost of skipping them together has its own row, called a joint row.

// AtOnce is the end of a name that stands for several concurrent rows.
const AtOnce = " at once"

// joinedWidth is the maximum width in terminal cells of the joined names of concurrent rows.
const joinedWidth = 20

// AtOnce reports whether two rows run concurrently in every layer that they cover.
func (t *DispatchTree) AtOnce(a, b int) bool {
	r, s := &t.Grouped[a], &t.Grouped[b]
	if r.Group || s.Group || r.Gone() || s.Gone() || r.Parent != s.Parent || len(r.Units) != len(s.Units) {
		return false
	}
	for k := range r.Units {
		level := t.Launches[r.Units[k][0]].Level
		if level < 0 || level != t.Launches[s.Units[k][0]].Level {
			return false
		}
	}
	return true
}

// joint returns the sets of rows that run concurrently. It returns nil unless the grouping is by layer.
func (t *DispatchTree) joint() (sets [][]int) {
	if t.Grouping != GroupLayer {
		return nil
	}
	last := -1
	for i := range t.Grouped {
		switch {
		case !t.Single(i):
			continue
		case last >= 0 && t.AtOnce(last, i):
			sets[len(sets)-1] = append(sets[len(sets)-1], i)
		default:
			sets = append(sets, []int{i})
		}
		last = i
	}
	return slices.DeleteFunc(sets, func(set []int) bool { return len(set) < 2 })
}

// join returns one joint row for several concurrent rows, with a name such as "q + k + v".
func (t *DispatchTree) join(set []int) DispatchRow {
	first := &t.Grouped[set[0]]
	r := DispatchRow{
		Row:     tree.Row{Key: "at once " + first.Key, Parent: -1, Joint: true},
		Units:   make([][]int, len(first.Units)),
		Joins:   set,
		Outlier: -1,
	}
	var names []string
	for _, row := range set {
		names = append(names, t.Grouped[row].Label)
		for k, unit := range t.Grouped[row].Units {
			r.Units[k] = append(r.Units[k], unit...)
		}
	}
	if r.Label = strings.Join(names, " + "); cells.Width(r.Label) > joinedWidth {
		r.Label = fmt.Sprintf("%s + %d more", names[0], len(names)-1)
	}
	return r
}

// nameJoint sets the names of the joint rows for tables without headings. A joint row combines several
// rows. If the name of the first of these rows includes layers, the name of the joint row includes them too.
func (t *DispatchTree) nameJoint(rows []tree.Row) {
	for i := range t.Grouped {
		if r := &t.Grouped[i]; r.Joint {
			first := r.Joins[0]
			rows[i].Apart = strings.TrimSuffix(rows[first].Apart, t.Called(first)) + r.Label
		}
	}
}
