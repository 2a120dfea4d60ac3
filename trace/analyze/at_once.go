package analyze

import (
	"fmt"
	"slices"
	"strings"

	"gpuscope/internal/cells"
	"gpuscope/trace/tree"
)

// Rows between whose dispatches no barrier stands run at once and hide each other: of three projections side
// by side each costs next to nothing, and all of them together cost what they take. So they are left out
// together as well, and where that was measured they have a row of their own among rows that left their
// headings.

// AtOnce ends the name of several rows that run at once, where nothing else says so.
const AtOnce = " at once"

// joinedWidth is how many cells the names of several rows may take.
const joinedWidth = 20

// AtOnce reports that two rows run at once, in every layer that they stand for.
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

// joint lists, of the fold by layer, the rows that run at once, set by set.
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

// join is rows that run at once as one: "q + k + v".
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

// nameJoint names rows that stand for several at once for where they stand outside of headings: with the
// layers where the first of them has those.
func (t *DispatchTree) nameJoint(rows []tree.Row) {
	for i := range t.Grouped {
		if r := &t.Grouped[i]; r.Joint {
			first := r.Joins[0]
			rows[i].Apart = strings.TrimSuffix(rows[first].Apart, t.Called(first)) + r.Label
		}
	}
}
