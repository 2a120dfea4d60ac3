package widget

import (
	"fmt"
	"strings"

	"gpuscope/trace/table"
)

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
	case p.heated(c.Col):
		return heatSigns[p.Table.HeatIn(row, c.Col)] + FitLeft(s, c.Width-1)
	case col.Right:
		return FitLeft(s, c.Width)
	case p.Table.Rows[row].Group: // the cell of a group row lists what the rows inside it contain
		s = cutList(s, c.Width, "")
	default:
		s = cutList(s, c.Width, " …")
	}
	return Fit(s, c.Width)
}

// bar draws the number of a cell as a bar, and after it the number with its unit. A full bar stands for the
// largest number of the column, headings included. Every positive number has a visible bar. A negative number
// has none.
func (p *TablePane) bar(row int, c placed) string {
	cell := p.Table.Cell(row, c.Col)
	said := cell.Text
	if cell.Has && cell.Mark == "" {
		unit := p.Table.Columns[c.Col].Unit
		if said += unit; Width(said) > barNumber { // no room for decimals
			said = fmt.Sprintf("%.0f%s", cell.Number, unit)
		}
	}
	room := min(c.Width-barNumber, max(2, c.Width-barNumber-1)) // a space after the bar, if it fits
	parts := []string{"", "▏", "▎", "▍", "▍", "▋", "▊", "▉"}
	eighths := int(min(1, max(0, cell.Number/p.most[c.Col]))*float64(8*room) + 0.5)
	if cell.Number > 0 {
		eighths = max(1, eighths)
	}
	bar := Fit(strings.Repeat("█", eighths/8)+parts[eighths%8], room)
	return bar + FitLeft(said, c.Width-room)
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
	rules := p.ruled()
	p.Page = max(1, h-1-len(rules))
	if p.Table.Total != nil && p.Page > 1 {
		h--
		p.Page--
	}
	p.reveal()
	p.lay(w)
	lines = append(lines, p.header(t))
	var b strings.Builder
	p.lineRows = p.lineRows[:0]
	for i := p.Top; i < len(p.Rows) && len(lines) < h; i++ {
		if label := rules[i]; label != "" && i > p.Top {
			rule := " ── " + label + " "
			lines = append(lines, t.Put(Dim, Cut(rule+strings.Repeat("─", max(0, w-Width(rule)-1)), w-1)))
			p.lineRows = append(p.lineRows, -1)
		}
		if len(lines) < h {
			b.Reset()
			p.row(&b, t, i, focused)
			lines, p.lineRows = append(lines, b.String()), append(p.lineRows, i)
		}
	}
	if p.Table.Total != nil {
		lines = append(lines, p.total(t))
	}
	return lines
}

// total draws the line with the sums of all rows.
func (p *TablePane) total(t *Theme) string {
	var b strings.Builder
	gap := 1 // cells since the last text
	for _, c := range p.Columns {
		col, cell := &p.Table.Columns[c.Col], p.Table.TotalCell(c.Col)
		text := cell.Text
		switch {
		case text == "":
			gap += c.Width + 1
			continue
		case Width(text) > c.Width && cell.Short != "":
			text = cell.Short
		}
		if col.Right {
			text = FitLeft(text, c.Width)
		} else {
			text = Fit(cutList(text, c.Width, ""), c.Width)
		}
		paint := Strong
		if direction := deltaPaint(col.Name, text); direction != Plain {
			paint = direction
		}
		b.WriteString(Blank(gap) + t.Put(paint, text))
		gap = 1
	}
	return b.String()
}

// ruled returns the rules between rows of different classes. The key is the index in Rows of the row below
// the rule, and the value is the name of the class of that row.
func (p *TablePane) ruled() map[int]string {
	if p.Class == nil {
		return nil
	}
	if p.rulesOf != p.Listings {
		p.rulesOf, p.rules = p.Listings, map[int]string{}
		last := ""
		for i, row := range p.Rows {
			class, _ := p.Class(row)
			if i > 0 && class != last {
				p.rules[i] = class
			}
			last = class
		}
	}
	return p.rules
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
	all, noise := Plain, false
	if p.Class != nil {
		_, noise = p.Class(row)
	}
	switch r := &p.Table.Rows[row]; {
	case p.stale, r.Quiet, noise:
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
		paint := all
		if direction := deltaPaint(col.Name, s); all == Plain {
			paint = cellPaint(col.Name, s)
		} else if all == Strong && direction != Plain {
			paint = direction
		}
		if col.Part != nil && all != Dim {
			if heat := p.Table.HeatIn(row, c.Col); heat != table.Cold {
				paint = heats[heat]
			}
		}
		b.WriteString(t.Put(paint, s))
		if k < last {
			b.WriteByte(' ')
		}
	}
}

// deltaPaint returns the paint for a difference from the baseline: Good if it is faster, Bad if it is
// slower. The sign in the text shows the same. deltaPaint returns Plain for a difference that is not
// significant, and for a column that does not hold differences.
func deltaPaint(column, s string) Paint {
	switch s = strings.TrimSpace(s); column {
	case "delta_us", "delta_cost_us", "delta_ms", "difference_us":
	case "delta": // 48→96 -12%
		if !strings.HasSuffix(s, "%") {
			return Plain
		}
		s = s[strings.LastIndexByte(s, ' ')+1:]
	default:
		return Plain
	}
	switch {
	case strings.HasPrefix(s, "-"):
		return Good
	case strings.HasPrefix(s, "+"):
		return Bad
	}
	return Plain
}

// cellPaint returns the paint for a cell with the text s.
func cellPaint(column, s string) Paint {
	if direction := deltaPaint(column, s); direction != Plain {
		return direction
	}
	switch column {
	case "limit", "reason", "id", "kernel":
		return Dim
	case "cost_us", "delta_us", "delta_cost_us":
		if s = strings.TrimLeft(s, " "); strings.HasPrefix(s, "=") || strings.HasPrefix(s, "?") { // no number
			return Dim
		}
	case "lost_us":
		return Warn
	case "verdict":
		return map[string]Paint{MarkOK: Good, MarkWarn: Warn, MarkFail: Bad}[strings.Fields(s + " -")[0]]
	case "weight":
		return GraphA
	case "delta":
		return Accent
	}
	return Plain
}

// RowAt returns the index in Rows of the row that is drawn at a line of the view, or -1 if there is none.
func (p *TablePane) RowAt(line int) int {
	if in := line - p.Line - 1; in >= 0 && in < len(p.lineRows) && p.lineRows[in] < len(p.Rows) {
		return p.lineRows[in]
	}
	return -1
}
