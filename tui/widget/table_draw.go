package widget

import "strings"

// Cell returns the text of a cell, padded or cut to the width of its column. Names are cut in the middle,
// because names often differ at their ends.
func (p *TablePane) Cell(row int, c placed) string {
	cell := p.Table.Cell(row, c.Col)
	s := cell.Text
	switch col := &p.Table.Columns[c.Col]; {
	case !col.Tree && Width(s) > c.Width && cell.Short != "":
		s = cell.Short
	case col.Tree && !col.Right:
		branch := p.branch(row)
		if s = p.named(s, row); Width(branch)+Width(s) > c.Width && cell.Short != "" {
			s = p.named(cell.Short, row)
		}
		s = branch + cutPath(s, c.Width-Width(branch))
	case p.bars(c.Col):
		s = p.bar(row, c)
	case col.Right:
		return FitLeft(s, c.Width)
	case p.Table.Rows[row].Group: // the cell of a group row lists what the rows inside it contain
		s = cutList(s, c.Width, "")
	default:
		s = cutList(s, c.Width, " …")
	}
	return Fit(s, c.Width)
}

// bar draws the number of a cell as a bar relative to the largest number. Every positive number has a visible
// bar. A number that is negative or in a group row is written with its unit instead.
func (p *TablePane) bar(row int, c placed) string {
	cell := p.Table.Cell(row, c.Col)
	switch {
	case !cell.Has:
		return cell.Text
	case cell.Number < 0 || p.Table.Rows[row].Group:
		return cell.Text + p.Table.Columns[c.Col].Unit
	}
	parts := []string{"", "▏", "▎", "▍", "▍", "▋", "▊", "▉"}
	eighths := int(min(1, cell.Number/p.most[c.Col])*float64(8*c.Width) + 0.5)
	if cell.Number > 0 {
		eighths = max(1, eighths)
	}
	return strings.Repeat("█", eighths/8) + parts[eighths%8]
}

// Render draws the header and the rows in w by h cells.
func (p *TablePane) Render(t *Theme, w, h int, focused bool, empty string) []string {
	lines := make([]string, 0, h)
	if p.Table == nil || len(p.Rows) == 0 {
		lines = append(lines, "")
		for _, l := range WrapText(empty, w-2) {
			lines = append(lines, t.Put(Dim, " "+l))
		}
		return lines
	}
	p.Page = h - 1
	p.reveal()
	p.lay(w)
	lines = append(lines, p.header(t))
	var b strings.Builder
	for i := p.Top; i < min(len(p.Rows), p.Top+p.Page); i++ {
		b.Reset()
		p.row(&b, t, i, focused)
		lines = append(lines, b.String())
	}
	return lines
}

func (p *TablePane) header(t *Theme) string {
	var b strings.Builder
	b.WriteByte(' ')
	for i, c := range p.Columns {
		col := p.Table.Columns[c.Col]
		if p.letters != nil {
			b.WriteString(p.lettered(t, c))
			continue
		}
		title := p.over(c)
		if i == len(p.Columns)-1 {
			title = strings.TrimRight(title, " ")
		}
		if p.sorts(&col) { // the rows are sorted by this column
			b.WriteString(t.Put(Strong, title) + " ")
		} else {
			b.WriteString(t.Put(Dim, title) + " ")
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// over returns the heading of a column, padded to the column's width. Headings of numbers are right-aligned,
// and headings of bars are left-aligned.
func (p *TablePane) over(c placed) string {
	if p.Table.Columns[c.Col].Right && !p.bars(c.Col) {
		return FitLeft(p.heading(c.Col), c.Width)
	}
	return Fit(p.heading(c.Col), c.Width)
}

// lettered returns a heading with the column's sort letter highlighted, if the heading contains the letter.
func (p *TablePane) lettered(t *Theme, c placed) string {
	s, letter := p.over(c), p.letters[c.Col]
	i := strings.Index(strings.ToLower(s), letter)
	if i < 0 || letter == "" || i+len(letter) > len(s) {
		return t.Put(Dim, s+" ")
	}
	return t.Put(Dim, s[:i]) + t.Put(Selected, s[i:i+len(letter)]) + t.Put(Dim, s[i+len(letter):]+" ")
}

func (p *TablePane) row(b *strings.Builder, t *Theme, i int, focused bool) {
	row := p.Rows[i]
	all := Plain
	switch r := &p.Table.Rows[row]; {
	case p.stale, r.Quiet:
		all = Dim
	case r.Group:
		all = Strong
	}
	if i == p.Cursor {
		mark := MarkSelected
		if !focused {
			mark = "›"
		}
		all = Selected
		b.WriteString(t.Put(Selected, mark))
	} else if p.Marked[p.Table.Rows[row].Key] {
		b.WriteString(t.Put(Accent, markMarked))
	} else if p.Margin != nil {
		b.WriteString(t.Put(Dim, p.Margin(i)))
	} else {
		b.WriteByte(' ')
	}
	last := len(p.Columns) - 1
	for last > 0 && p.text(row, p.Columns[last].Col) == "" {
		last-- // so that the line does not end with spaces
	}
	for k, c := range p.Columns[:last+1] {
		col := &p.Table.Columns[c.Col]
		s := p.Cell(row, c)
		if k == last {
			s = strings.TrimRight(s, " ")
		}
		if all == Plain {
			b.WriteString(t.Put(cellPaint(col.Name, s), s))
		} else {
			b.WriteString(t.Put(all, s))
		}
		if k < last {
			b.WriteByte(' ')
		}
	}
}

// cellPaint returns the paint for a cell with the text s.
func cellPaint(column, s string) Paint {
	switch column {
	case "limit", "reason", "id", "kernel":
		return Dim
	case "cost_us", "delta_us", "delta_cost_us":
		if s = strings.TrimLeft(s, " "); strings.HasPrefix(s, "=") || strings.HasPrefix(s, "?") { // no number
			return Dim
		}
	case "lost_us":
		return Warn
	case "weight":
		return GraphA
	case "delta":
		return Accent
	}
	return Plain
}

// RowAt returns the index in Rows of the row that is drawn at a line of the view, or -1 if there is none.
func (p *TablePane) RowAt(line int) int {
	in := line - p.Line - 1
	if i := p.Top + in; in >= 0 && in < p.Page && i < len(p.Rows) {
		return i
	}
	return -1
}
