package tree_test

import (
	"slices"
	"testing"

	"gpuscope/trace/tree"
)

func TestNamesApartSayWhereARowIs(t *testing.T) {
	t.Parallel()
	type row struct {
		label  string
		parent int
		group  bool
	}
	for _, c := range []struct {
		name string
		rows []row
		want []string
	}{
		{"equal layers", []row{
			{"prologue", -1, true},
			{"embed", 0, false},
			{"layers 0–1", -1, true},
			{"attn", 2, true},
			{"q", 3, false},
			{"add", 2, false},
		}, []string{"", "embed", "", "", "attn.q", "add"}},
		{"different layers", []row{
			{"layer 0", -1, true},
			{"attn", 0, true},
			{"q", 1, false},
			{"layers 1–2", -1, true},
			{"attn", 3, true},
			{"q", 4, false},
		}, []string{"", "", "layer 0 attn.q", "", "", "layers 1–2 attn.q"}},
		{"different layers without blocks", []row{
			{"layer 0", -1, true},
			{"add", 0, false},
			{"mul", 0, false},
			{"layers 1–2", -1, true},
			{"add", 3, false},
			{"add", 3, false},
			{"add", -1, false},
		}, []string{"", "layer 0 add", "mul", "", "layers 1–2 add", "layers 1–2 add", ""}},
	} {
		rows := make([]tree.Row, len(c.rows))
		for i, r := range c.rows {
			rows[i] = tree.Row{Parent: r.parent, Group: r.group}
			if r.parent >= 0 {
				rows[i].Depth = rows[r.parent].Depth + 1
			}
		}
		tree.NameApart(rows, func(row int) string { return c.rows[row].label })
		got := make([]string, len(rows))
		for i := range rows {
			got[i] = rows[i].Apart
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: names %q, want %q", c.name, got, c.want)
		}
	}
}
