package analyze

import "gpuscope/trace/tree"

// NameApart names rows for where they stand outside of their headings: with the block that they are in,
// "attn.norm", and with the layers where layers differ, "layers 1–15 attn.norm".
func NameApart(rows []tree.Row, label func(row int) string) {
	layers := map[int]bool{} // the headings that have blocks; several where layers differ
	for i := range rows {
		if rows[i].Group && rows[i].Parent >= 0 {
			layers[rows[i].Parent] = true
		}
	}
	for i := range rows {
		p := rows[i].Parent
		if rows[i].Group || p < 0 || !rows[p].Group {
			continue
		}
		name := label(i)
		if rows[p].Depth > 0 {
			name = label(p) + "." + name
			if len(layers) > 1 {
				name = label(rows[p].Parent) + " " + name
			}
		}
		rows[i].Apart = name
	}
}
