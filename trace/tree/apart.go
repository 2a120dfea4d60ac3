package tree

// NameApart sets the names of rows for tables in which rows are not below their headings, such as sorted
// tables. Such a name includes the block ("attn.norm"). If layers differ, the name also includes the layers
// ("layers 1–15 attn.norm").
func NameApart(rows []Row, label func(row int) string) {
	layers := map[int]bool{} // headings above the blocks; there are several if layers differ
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
