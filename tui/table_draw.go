package tui

import "strings"

// cell is a cell of exactly its column's width. Names are cut in their middle: they differ at their ends.
func (p *tablePane) cell(row int, c placed) string {
	cell := p.table.Cell(row, c.col)
	s := cell.Text
	switch col := &p.table.Columns[c.col]; {
	case !col.Tree && width(s) > c.width && cell.Short != "":
		s = cell.Short
	case col.Tree && !col.Right:
		branch := p.branch(row)
		if s = p.named(s, row); width(branch)+width(s) > c.width && cell.Short != "" {
			s = p.named(cell.Short, row)
		}
		s = branch + cutPath(s, c.width-width(branch))
	case p.bars(c.col):
		s = p.bar(row, c)
	case col.Right:
		return fitLeft(s, c.width)
	case p.table.Rows[row].Group: // it counts what stands in it
		s = cutList(s, c.width, "")
	default:
		s = cutList(s, c.width, " …")
	}
	return fit(s, c.width)
}

// bar draws the number of a cell as a part of the largest. What is more than nothing is to be seen. A number
// that has no bar, as it is under 0 or belongs to a heading, is written with its unit: the title may not have
// it.
func (p *tablePane) bar(row int, c placed) string {
	cell := p.table.Cell(row, c.col)
	switch {
	case !cell.Has:
		return cell.Text
	case cell.Number < 0 || p.table.Rows[row].Group:
		return cell.Text + p.table.Columns[c.col].Unit
	}
	parts := []string{"", "▏", "▎", "▍", "▍", "▋", "▊", "▉"}
	eighths := int(min(1, cell.Number/p.most[c.col])*float64(8*c.width) + 0.5)
	if cell.Number > 0 {
		eighths = max(1, eighths)
	}
	return strings.Repeat("█", eighths/8) + parts[eighths%8]
}

// render draws header and rows in w by h cells.
func (p *tablePane) render(t *theme, w, h int, focused bool, empty string) []string {
	lines := make([]string, 0, h)
	if p.table == nil || len(p.rows) == 0 {
		lines = append(lines, "")
		for _, l := range wrapText(empty, w-2) {
			lines = append(lines, t.put(dim, " "+l))
		}
		return lines
	}
	p.page = h - 1
	p.reveal()
	p.lay(w)
	lines = append(lines, p.header(t))
	var b strings.Builder
	for i := p.top; i < min(len(p.rows), p.top+p.page); i++ {
		b.Reset()
		p.row(&b, t, i, focused)
		lines = append(lines, b.String())
	}
	return lines
}

func (p *tablePane) header(t *theme) string {
	var b strings.Builder
	b.WriteByte(' ')
	for i, c := range p.columns {
		col := p.table.Columns[c.col]
		if p.letters != nil {
			b.WriteString(p.lettered(t, c))
			continue
		}
		title := p.over(c)
		if i == len(p.columns)-1 {
			title = strings.TrimRight(title, " ")
		}
		if p.sorts(&col) { // what the rows stand in order by
			b.WriteString(t.put(strong, title) + " ")
		} else {
			b.WriteString(t.put(dim, title) + " ")
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// over is the heading of a column in its width: over numbers to the right, over bars where they begin.
func (p *tablePane) over(c placed) string {
	if p.table.Columns[c.col].Right && !p.bars(c.col) {
		return fitLeft(p.heading(c.col), c.width)
	}
	return fit(p.heading(c.col), c.width)
}

// lettered is a header in which the letter that sorts by it stands out, where it has that letter.
func (p *tablePane) lettered(t *theme, c placed) string {
	s, letter := p.over(c), p.letters[c.col]
	i := strings.Index(strings.ToLower(s), letter)
	if i < 0 || letter == "" || i+len(letter) > len(s) {
		return t.put(dim, s+" ")
	}
	return t.put(dim, s[:i]) + t.put(selected, s[i:i+len(letter)]) + t.put(dim, s[i+len(letter):]+" ")
}

func (p *tablePane) row(b *strings.Builder, t *theme, i int, focused bool) {
	row := p.rows[i]
	all := plain
	switch r := &p.table.Rows[row]; {
	case p.stale, r.Quiet:
		all = dim
	case r.Group:
		all = strong
	}
	if i == p.cursor {
		mark := markSelected
		if !focused {
			mark = "›"
		}
		all = selected
		b.WriteString(t.put(selected, mark))
	} else if p.marked[p.table.Rows[row].Key] {
		b.WriteString(t.put(accent, markMarked))
	} else if p.margin != nil {
		b.WriteString(t.put(dim, p.margin(i)))
	} else {
		b.WriteByte(' ')
	}
	last := len(p.columns) - 1
	for last > 0 && p.text(row, p.columns[last].col) == "" {
		last-- // no blanks at the end of a line
	}
	for k, c := range p.columns[:last+1] {
		col := &p.table.Columns[c.col]
		s := p.cell(row, c)
		if k == last {
			s = strings.TrimRight(s, " ")
		}
		if all == plain {
			b.WriteString(t.put(cellPaint(col.Name, s), s))
		} else {
			b.WriteString(t.put(all, s))
		}
		if k < last {
			b.WriteByte(' ')
		}
	}
}

// cellPaint colours what a column already says.
func cellPaint(column, s string) paint {
	switch column {
	case "limit", "reason", "id", "kernel":
		return dim
	case "cost_us", "delta_us", "delta_cost_us":
		if s = strings.TrimLeft(s, " "); strings.HasPrefix(s, "=") || strings.HasPrefix(s, "?") { // no figure
			return dim
		}
	case "lost_us":
		return warn
	case "weight":
		return graphA
	case "delta":
		return accent
	}
	return plain
}

// rowAt is the row of the list that the window shows at a line of the view, -1 for none.
func (p *tablePane) rowAt(line int) int {
	in := line - p.line - 1
	if i := p.top + in; in >= 0 && in < p.page && i < len(p.rows) {
		return i
	}
	return -1
}
