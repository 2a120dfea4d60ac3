package join_test

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/trace"
	"gpuscope/trace/analyze/join"
)

// side returns a side whose operators have one dispatch each. Names that are joined with "+" are those of an
// operator with these parts.
func side(names ...string) *join.Side {
	t := &trace.Trace{Engine: strings.Join(names, " ")}
	none := func(trace.ValueID) []trace.OpID { return nil }
	s := &join.Side{Trace: t, Readers: none, Writers: none}
	for i, name := range names {
		o := trace.Op{ID: trace.OpID(i), Name: name}
		if parts := strings.Split(name, "+"); len(parts) > 1 {
			o.Parts = parts
		}
		t.Graph.Ops = append(t.Graph.Ops, o)
		d := trace.Dispatch{ID: trace.DispatchID(i), Op: o.ID}
		t.Graph.Dispatches = append(t.Graph.Dispatches, d)
		s.Items = append(s.Items, join.Item{ID: d.ID, Kernel: name, Tokens: 1})
	}
	return s
}

// Both directions join in the same way. One part of a fused operator is no operator in common; all of its
// parts are.
func TestJoinDoesNotDependOnTheDirection(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b []string
		want join.How
	}{
		{[]string{"norm", "gate+up+silu", "down+add"}, []string{"gate", "gelu", "down"}, join.ByOrder},
		{[]string{"norm", "gate+up"}, []string{"norm", "gate", "up"}, join.ByOperator},
		{[]string{"gate+up"}, []string{"gate", "up"}, join.ByOperator},
		{[]string{"gate+up"}, []string{"gate"}, join.ByOrder},
		{[]string{"a", "b"}, []string{"c"}, join.ByOrder},
		{[]string{"a", "b"}, []string{"b", "c"}, join.ByOperator},
		{[]string{"a", "b"}, nil, join.ByOperator},
	} {
		a, b := side(c.a...), side(c.b...)
		if to, from := join.Join(a, b).How, join.Join(b, a).How; to != c.want || from != c.want {
			t.Errorf("%q and %q: %v and %v, want %v", c.a, c.b, to, from, c.want)
		}
	}
	fused, ordered := []join.Piece{{Now: []int{0}, Base: []int{0, 1}}}, []join.Piece{
		{Now: []int{0}, Base: []int{0}}, {Now: []int{1}, Base: []int{1}},
	}
	for _, c := range []struct {
		a, b []string
		want []join.Piece
	}{
		{[]string{"gate+up"}, []string{"gate", "up"}, fused},
		{[]string{"x", "gate+up"}, []string{"gate", "y"}, ordered},
	} {
		a, b := side(c.a...), side(c.b...)
		if to := join.Join(a, b); !reflect.DeepEqual(to.Pieces, c.want) {
			t.Errorf("%q and %q: %+v, want %+v", c.a, c.b, to.Pieces, c.want)
		}
		if from := join.Join(b, a); !reflect.DeepEqual(swapped(from.Pieces), c.want) {
			t.Errorf("%q and %q: %+v, want %+v with the sides swapped", c.b, c.a, from.Pieces, c.want)
		}
	}
}

// swapped returns the pieces as they are if the sides are swapped, apart from their order.
func swapped(pieces []join.Piece) (list []join.Piece) {
	for _, p := range pieces {
		list = append(list, join.Piece{Now: p.Base, Base: p.Now, Doers: p.Doers})
	}
	return list
}

// sorted returns the pieces in an order that does not depend on the direction.
func sorted(pieces []join.Piece) []join.Piece {
	return slices.SortedFunc(slices.Values(pieces), func(a, b join.Piece) int {
		return cmp.Or(slices.Compare(a.Now, b.Now), slices.Compare(a.Base, b.Base))
	})
}

// A norm that did not run on one side is done by the operators around it there, so their times are compared
// with a margin. The times of the whole graphs are compared without one.
func TestMovedWorkIsCounted(t *testing.T) {
	t.Parallel()
	// The value i is the output of operator i, and the only input of operator i+1.
	chain := func(times map[string]float64, names ...string) *join.Side {
		s := side(names...)
		for i := range s.Trace.Graph.Ops {
			o := &s.Trace.Graph.Ops[i]
			o.Outputs = []trace.ValueID{trace.ValueID(i)}
			if i > 0 {
				o.Inputs = []trace.ValueID{trace.ValueID(i - 1)}
			}
		}
		s.Readers = func(v trace.ValueID) []trace.OpID {
			return []trace.OpID{min(trace.OpID(v)+1, trace.OpID(len(names)-1))}
		}
		s.Writers = func(v trace.ValueID) []trace.OpID { return []trace.OpID{trace.OpID(v)} }
		s.Items = slices.DeleteFunc(s.Items, func(l join.Item) bool {
			return times[names[l.ID]] == 0
		})
		for i := range s.Items {
			s.Items[i].NS = times[names[s.Items[i].ID]]
		}
		return s
	}
	whole := chain(map[string]float64{"down": 20, "norm": 6, "q": 12, "o": 9}, "down", "norm", "view", "q", "o")
	// In `tiny`, q takes less time than the norm that it may do.
	tiny := chain(map[string]float64{"down": 21, "q": 4, "o": 9}, "down", "norm", "view", "q", "o")
	tiny.Trace.Engine = "another engine"
	pairs := join.Join(tiny, whole)
	if more, _ := pairs.Moved([]int{1}, []int{2}); more != 4 {
		t.Errorf("q of 4 ns may include %v ns", more)
	}
	fused := chain(map[string]float64{"down": 21, "q": 16, "o": 9}, "down", "norm", "view", "q", "o")
	fused.Trace.Engine = "another engine"
	for _, c := range []struct {
		now, base []int // of fused and of whole
		more      float64
		moreBase  float64
	}{
		{[]int{1}, []int{2}, 6, 0},    // q may do the norm
		{[]int{0}, []int{0}, 6, 0},    // so may down
		{[]int{2}, []int{3}, 0, 0},    // o has nothing to do with it
		{[]int{1}, []int{1, 2}, 0, 0}, // the norm is on both sides
		{nil, []int{1}, 0, 6},         // the norm alone is done elsewhere
		{[]int{0, 1, 2}, []int{0, 1, 2, 3}, 0, 0},
	} {
		there, back := join.Join(fused, whole), join.Join(whole, fused)
		more, moreBase := there.Moved(c.now, c.base)
		if more != c.more || moreBase != c.moreBase {
			t.Errorf("%v and %v: %v and %v, want %v and %v", c.now, c.base, more, moreBase, c.more,
				c.moreBase)
		}
		moreBase, more = back.Moved(c.base, c.now)
		if more != c.more || moreBase != c.moreBase {
			t.Errorf("swapped, %v and %v: %v and %v, want %v and %v", c.now, c.base, more, moreBase, c.more,
				c.moreBase)
		}
	}
}

// Each dispatch of both sides is in one piece, and both directions find the same pieces.
func TestJoinOfRandomGraphs(t *testing.T) {
	t.Parallel()
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{
		"a", "b", "c", "d", "a+b", "c+d", "a+c", "b+c+d", "e", "f",
	}), 1, 6, rapid.ID[string])
	rapid.Check(t, func(t *rapid.T) {
		a, b := side(names.Draw(t, "a")...), side(names.Draw(t, "b")...)
		there, back := join.Join(a, b), join.Join(b, a)
		if there.How != back.How {
			t.Errorf("%v there, %v back", there.How, back.How)
		}
		var now, base []int
		for _, p := range there.Pieces {
			now, base = append(now, p.Now...), append(base, p.Base...)
		}
		for _, c := range []struct{ list, want []int }{{now, indices(a)}, {base, indices(b)}} {
			if slices.Sort(c.list); !slices.Equal(c.list, c.want) {
				t.Errorf("pieces %+v: indices %v, want %v", there.Pieces, c.list, c.want)
			}
		}
		if x, y := sorted(there.Pieces), sorted(swapped(back.Pieces)); !reflect.DeepEqual(x, y) {
			t.Errorf("%+v there, %+v back", x, y)
		}
	})
}

func indices(s *join.Side) (list []int) {
	for i := range s.Items {
		list = append(list, i)
	}
	return list
}
