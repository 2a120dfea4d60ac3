package join_test

import (
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
	s := &join.Side{Trace: t, Readers: func(trace.ValueID) []trace.OpID { return nil }}
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
	fused := join.Join(side("gate+up"), side("gate", "up"))
	if len(fused.Gone) > 0 || !slices.Equal(fused.Of[0], []int{0, 1}) {
		t.Errorf("%+v, want both parts beside the fused dispatch", fused)
	}
	ordered := join.Join(side("x", "gate+up"), side("gate", "y"))
	if !slices.Equal(ordered.Of[0], []int{0}) || !slices.Equal(ordered.Of[1], []int{1}) {
		t.Errorf("%+v, want the dispatches paired in order", ordered)
	}
}

// Each dispatch of the baseline is the counterpart of one dispatch or gone, and the way of joining is that of
// the other direction.
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
		seen := slices.Clone(there.Gone)
		for _, list := range there.Of {
			seen = append(seen, list...)
		}
		slices.Sort(seen)
		if len(seen) != len(b.Items) || len(slices.Compact(seen)) != len(b.Items) {
			t.Errorf("counterparts and gone: %v, want each of %d once", seen, len(b.Items))
		}
	})
}
