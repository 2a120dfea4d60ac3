package tree

// NameApart sets the names of rows for tables in which rows are not below their headings, such as sorted
// tables. Such a name includes the block ("attn.norm"). If layers differ, the name also includes the layers
// ("layers 1–15 attn.norm"). The name of a row outside blocks includes its heading only if a row below
// another heading has the same name ("layer 0 add" and "layer 1 add").
func NameApart(rows []Row, label func(row int) string) {
	layers := map[int]bool{} // headings above the blocks; there are several if layers differ
	heading := map[string]int{}
	ambiguous := map[string]bool{} // labels of rows outside blocks, below several headings
	for i := range rows {
		p := rows[i].Parent
		switch {
		case p < 0:
		case rows[i].Group:
			layers[p] = true
		case rows[p].Group && rows[p].Depth == 0:
			name := label(i)
			if first, known := heading[name]; known && first != p {
				ambiguous[name] = true
			}
			heading[name] = p
		}
	}
	for i := range rows {
		p := rows[i].Parent
		if rows[i].Group || p < 0 || !rows[p].Group {
			continue
		}
		name := label(i)
		switch {
		case rows[p].Depth > 0:
			name = label(p) + "." + name
			if len(layers) > 1 {
				name = label(rows[p].Parent) + " " + name
			}
		case ambiguous[name]:
			name = label(p) + " " + name
		}
		rows[i].Apart = name
	}
}
