package widget

import (
	"context"
	"testing"

	"gpuscope/trace/table"
)

// Several rows can have the same name, here k of the first layer and k of the group of equal layers. A filter
// selects the row that covers the most dispatches.
func TestFilterSelectsTheLargestMatch(t *testing.T) {
	names := []string{"layer 0", "q", "k", "layers 1–2", "q", "L1", "L2", "k", "L1", "L2"}
	parents := []int{-1, 0, 0, -1, 3, 4, 4, 3, 7, 7}
	rows := make([]table.Row, len(names))
	for i, p := range parents {
		rows[i] = table.Row{Key: names[i], Parent: p, Group: p < 0}
		if p >= 0 {
			rows[i].Depth = rows[p].Depth + 1
			rows[p].Children, rows[p].Open = true, true
		}
	}
	full := map[int]string{2: "layers.0.attn.k", 8: "layers.1.attn.k", 9: "layers.2.attn.k"}
	of := table.New("dispatches", []table.Column{{
		Name: "op", Title: "op", Tree: true, Of: func(r int) table.Cell { return table.Cell{Text: names[r]} },
	}, {
		Name: "full", Width: table.Unseen, Of: func(r int) table.Cell { return table.Cell{Text: full[r]} },
	}}, rows)
	for filter, want := range map[string]int{"re:^k$": 7, "attn.k": 7, "0.attn.k": 2, "1.attn.k": 8} {
		l, err := Listed(context.Background(), of, Choice{Typed: filter}, "", true)
		if err != nil || l.First < 0 || l.Rows[l.First] != want {
			t.Errorf("%s: %+v, %v", filter, l, err)
		}
	}
}
