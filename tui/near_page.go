package tui

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/trace"
	"gpuscope/trace/inspect"
	"gpuscope/trace/table"
	"gpuscope/tui/command"
	"gpuscope/tui/widget"
)

// nearRow is what the table of views would say of a neighbourhood.
var nearRow = viewRow{
	name: "Neighbourhood", needs: command.Opened, doc: "An operator between those that it reads from and those that read it.",
	new: func(h host, _ *widget.Log) View { return newNearPage(h, 0, false) },
}

// nearPage is the neighbourhood of an operator: who gives what it takes on its left, who takes what it gives
// on its right, with the live shapes on the edges.
type nearPage struct {
	basics
	host   host
	op     trace.OpID
	former []trace.OpID // centres before this one
	column int          // of the cursor: 0 is the operator, below it stands on the left
	line   int          // of the cursor in its column
	seek   int          // column to go to once it is there: -1, 1; 0: none
	at     snapshot
	task   widget.Task[nearKey, *nearness]
	first  int // line at the top of the window
	page   int
}

// nearKey is what a neighbourhood is of.
type nearKey struct {
	version, step, far int
	op                 trace.OpID
}

// nearness is a neighbourhood with its place on the screen.
type nearness struct {
	far    int // columns on each side
	spots  map[int][]stand
	height int
	full   []int // cells that the columns take, those of names and those of edges between them in turns
}

// stand is where a neighbour stands: its line, that of the one it belongs to, and whether more of that one's
// stand below.
type stand struct {
	inspect.Neighbour
	line, of int
	last     bool
}

func newNearPage(h host, op trace.OpID, consumers bool) *nearPage {
	p := &nearPage{host: h, op: op, seek: -1}
	if consumers {
		p.seek = 1
	}
	return p
}

// Cells of an edge with a shape on it, of the least that an edge takes, and of a column of short names; and
// those of an edge and of a name that are not for their text.
const edgeCells, leastEdge, leastName, besideShape, besideName = 14, 9, 15, 6, 2

// nearFar is how many steps there is room for on each side.
func nearFar(w int) int {
	if w >= 5*leastName+4*edgeCells {
		return 2
	}
	return 1
}

func (p *nearPage) load(j *widget.Jobs, s snapshot, w int) {
	p.at = s
	if s.index == nil || int(p.op) >= len(s.trace.Graph.Ops) {
		p.task.Clear(j)
		return
	}
	key := nearKey{s.version, s.step, nearFar(p.width()), p.op}
	p.task.Want(j, key, func(ctx context.Context) (*nearness, error) {
		n := &nearness{far: key.far, spots: map[int][]stand{}}
		n.spots[0] = []stand{{Neighbour: s.index.Node(key.step, key.op), last: true}}
		for side := -1; side <= 1; side += 2 {
			around := s.index.Around(key.step, key.op, key.far, side > 0)
			n.height = max(n.height, n.place(around, side, 0, 0))
		}
		n.height = max(n.height, 1)
		n.measure()
		return n, ctx.Err()
	}, p.placed)
}

// width is how many cells there are for the list.
func (p *nearPage) width() int {
	w, _ := p.host.Size()
	return w
}

func (p *nearPage) actions() []command.Action {
	return []command.Action{
		{Name: "open"},
		{Name: "why", Run: func() {
			t, explains := p.why()
			explain(p.host, nil, t, explains)
		}},
		{Name: "producers", Run: func() { p.near(false) }},
		{Name: "consumers", Run: func() { p.near(true) }},
	}
}

func (p *nearPage) detailed() bool { return true }

func (p *nearPage) takes() inspect.Takes { return inspect.OneStep }

// place puts neighbours one below the other, each beside the first of its own, and says where the next line
// is.
func (n *nearness) place(list []inspect.Neighbour, column, line, of int) int {
	side := 1
	if column < 0 {
		side = -1
	}
	for i := range list {
		n.spots[column] = append(n.spots[column], stand{list[i], line, of, i == len(list)-1})
		line = max(line+1, n.place(list[i].Far, column+side, line, line))
	}
	return line
}

// placed brings the cursor to where it was to go.
func (p *nearPage) placed(n *nearness) {
	if p.seek != 0 && len(n.spots[p.seek]) > 0 {
		p.column, p.line = p.seek, n.spots[p.seek][0].line
	}
	p.seek = 0
	if p.spot() == nil {
		p.column, p.line = 0, 0
	}
}

// spot is what the cursor is on, nil for nothing.
func (p *nearPage) spot() *stand {
	n := p.task.Value
	if n == nil {
		return nil
	}
	for i := range n.spots[p.column] {
		if s := &n.spots[p.column][i]; s.line == p.line {
			return s
		}
	}
	return nil
}

// Move goes along a column, or to the nearest in the next one.
func (p *nearPage) move(m widget.Motion) {
	n, here := p.task.Value, p.spot()
	if here == nil {
		return
	}
	column := n.spots[p.column]
	at := slices.IndexFunc(column, func(s stand) bool { return s.line == p.line })
	by := map[widget.Motion]int{
		widget.Up: -1, widget.Down: 1, widget.HalfUp: -5, widget.HalfDown: 5, widget.PageUp: -10,
		widget.PageDown: 10, widget.Top: -len(column),
		widget.Bottom: len(column),
	}
	switch m {
	case widget.Left, widget.Right:
		to := p.column + map[widget.Motion]int{widget.Left: -1, widget.Right: 1}[m]
		if len(n.spots[to]) == 0 {
			return
		}
		line := p.line
		if (to < p.column) == (p.column > 0) { // towards the operator
			line = here.of
		}
		p.column, p.line = to, nearest(n.spots[to], line)
	default:
		p.line = column[widget.Clamp(at+by[m], 0, len(column)-1)].line
	}
}

// nearest is the line of the spot that is nearest to a line.
func nearest(list []stand, line int) int {
	best := list[0].line
	for _, s := range list {
		if max(s.line-line, line-s.line) < max(best-line, line-best) {
			best = s.line
		}
	}
	return best
}

// open makes the operator under the cursor the one in the middle; of what is only a value, and of the middle
// itself, it opens the value.
func (p *nearPage) open() bool {
	s := p.spot()
	switch {
	case s == nil:
	case s.Op == nil:
		openValue(p.host, s.Value, p.at)
	case s.Op.ID == p.op:
		if len(s.Op.Outputs) > 0 {
			openValue(p.host, s.Op.Outputs[0], p.at)
		}
	default:
		p.goTo(s.Op.ID, 0)
	}
	return true
}

// goTo puts another operator into the middle.
func (p *nearPage) goTo(op trace.OpID, seek int) {
	p.former = append(p.former, p.op)
	p.op, p.column, p.line, p.seek, p.first = op, 0, 0, seek, 0
}

// back goes to the operator that was in the middle before.
func (p *nearPage) back() bool {
	n := len(p.former)
	if n == 0 {
		return false
	}
	p.op, p.column, p.line, p.first = p.former[n-1], 0, 0, 0
	p.former = p.former[:n-1]
	return true
}

// near goes on in that direction: from the operator under the cursor.
func (p *nearPage) near(consumers bool) {
	side := -1
	if consumers {
		side = 1
	}
	s, n := p.spot(), p.task.Value
	switch {
	case s == nil:
	case s.Op != nil && s.Op.ID != p.op:
		p.goTo(s.Op.ID, side)
	case s.Op == nil && p.column*side < 0: // back to the one that it stands beside
		p.move(map[int]widget.Motion{-1: widget.Left, 1: widget.Right}[side])
	case s.Op == nil:
		what := map[int]string{-1: "no other operator gives ", 1: "no other operator takes "}
		p.host.Remark(what[side] + printable.Clean(s.Label))
	case s.Op != nil && len(n.spots[side]) > 0:
		p.column, p.line = side, n.spots[side][0].line
	default:
		what := map[int]string{-1: "nothing gives what it takes", 1: "nothing takes what it gives"}
		p.host.Remark(what[side])
	}
}

// nameAt and edgeAt are the places of a column's names, and of its edges, among all columns.
func (n *nearness) nameAt(column int) int { return 2 * (column + n.far) }

func (n *nearness) edgeAt(column int) int {
	if column < 0 {
		return n.nameAt(column) + 1
	}
	return n.nameAt(column) - 1
}

// measure finds what the columns take.
func (n *nearness) measure() {
	n.full = make([]int, 4*n.far+1)
	for column, list := range n.spots {
		for i := range list {
			s, name, edge := &list[i], n.nameAt(column), n.edgeAt(column)
			n.full[name] = max(n.full[name], besideName+widget.Width(s.label()+s.tail()))
			if column != 0 {
				n.full[edge] = max(n.full[edge], leastEdge, besideShape+widget.Width(s.shape()))
			}
		}
	}
}

// widths are the cells of the columns on a page of w cells. Where these are too few those give way first that
// have the most over the least that they should have; what is left all have in turns.
func (n *nearness) widths(w int) []int {
	widths := slices.Clone(n.full)
	left := w
	for _, cells := range widths {
		left -= cells
	}
	for ; left < 0; left++ {
		most, over := 0, math.MinInt
		for k, cells := range widths {
			switch {
			case k%2 == 0 && cells-leastName > over:
				most, over = k, cells-leastName
			case k%2 == 1 && cells > leastEdge && cells-leastEdge > over:
				most, over = k, cells-leastEdge
			}
		}
		widths[most] = max(1, widths[most]-1)
	}
	for k := 0; left > 0; k, left = (k+1)%len(widths), left-1 {
		widths[k]++
	}
	return widths
}

// pointAt puts the cursor on the neighbour that is there.
func (p *nearPage) pointAt(x, y, w int) bool {
	n := p.task.Value
	if n == nil || y < 1 || y > p.page {
		return false
	}
	line := p.first + y - 1
	for k, cells := range n.widths(w) {
		column := k/2 - n.far
		if x < cells && k%2 == 0 &&
			slices.ContainsFunc(n.spots[column], func(s stand) bool { return s.line == line }) {
			p.column, p.line = column, line
			return true
		}
		if x -= cells; x < 0 {
			break
		}
	}
	return false
}

func (p *nearPage) title(int) []table.Part {
	if p.at.trace == nil || int(p.op) >= len(p.at.trace.Graph.Ops) {
		return nil
	}
	o := &p.at.trace.Graph.Ops[p.op]
	parts := []table.Part{{Rank: 0, Text: o.Name}, {Rank: 2, Text: o.Kind}}
	if n := p.task.Value; n != nil {
		parts = append(parts, table.Say(3, "takes from %d, gives to %d", len(n.spots[-1]), len(n.spots[1])))
	}
	return parts
}

func (p *nearPage) render(t *widget.Theme, _ widget.Glyphs, w, h int, _ bool) []string {
	n := p.task.Value
	if n == nil {
		return []string{"", t.Put(widget.Dim, "  Computing …")}
	}
	widths := n.widths(w)
	grid := make([][]string, n.height)
	for i := range grid {
		grid[i] = make([]string, len(widths))
		for c, cells := range widths {
			grid[i][c] = widget.Blank(cells)
		}
	}
	for column, list := range n.spots {
		name, edge := n.nameAt(column), n.edgeAt(column)
		for i := range list {
			s := &list[i]
			grid[s.line][name] = p.name(t, s, widths[name], column == p.column && s.line == p.line)
			if column != 0 {
				drawEdge(t, grid, s, edge, column, widths[edge])
			}
		}
	}
	head := widget.Spread(" takes from", "gives to ", w)
	lines := []string{t.Put(widget.Dim, head)}
	p.page = max(1, h-1)
	p.first = widget.Clamp(widget.Clamp(p.first, p.line-p.page+1, p.line), 0, max(0, n.height-p.page))
	for _, cells := range grid[p.first:min(n.height, p.first+p.page)] {
		lines = append(lines, strings.TrimRight(widget.Cut(strings.Join(cells, ""), w), " "))
	}
	return lines
}

// name is a neighbour in its column, with the level that it runs at.
func (p *nearPage) name(t *widget.Theme, s *stand, w int, cursor bool) string {
	mark, style := " ", widget.Plain
	switch {
	case cursor:
		mark, style = widget.MarkSelected, widget.Selected
	case s.Op == nil:
		style = widget.Dim
	case s.Op.ID == p.op:
		style = widget.Strong
	}
	label := widget.CutMiddle(s.label(), max(1, w-besideName-widget.Width(s.tail())))
	return t.Put(style, mark+widget.Fit(label+s.tail(), w-1))
}

func (s *stand) label() string { return printable.Clean(s.Label) }

func (s *stand) shape() string { return printable.Clean(s.Edge) }

// tail is the level that it runs at.
func (s *stand) tail() string {
	if s.Level < 0 {
		return ""
	}
	return fmt.Sprintf(" L%d", s.Level)
}

// drawEdge draws the line from a neighbour to the one that it belongs to, in a column of edges; side is below
// 0 where that is on the right.
func drawEdge(t *widget.Theme, grid [][]string, s *stand, at, side, w int) {
	first := s.line == s.of
	shape := widget.CutMiddle(s.shape(), w-besideShape)
	line := widget.MarkRule + shape
	line += strings.Repeat(widget.MarkRule, max(0, w-3-widget.Width(line)))
	join := widget.MarkRule
	switch {
	case first && !s.last:
		join = "┬"
	case !first && s.last && side < 0:
		join = "┘"
	case !first && s.last:
		join = "└"
	case !first && side < 0:
		join = "┤"
	case !first:
		join = "├"
	}
	cell := " "
	switch {
	case side < 0 && first:
		cell += line + join + "→"
	case side < 0:
		cell += line + join + " "
	case first:
		cell = widget.MarkRule + join + line + "→"
	default:
		cell = " " + join + line + "→"
	}
	grid[s.line][at] = t.Put(widget.Dim, widget.Fit(cell, w))
	for i := s.line - 1; i > s.of && !first; i-- { // past what stands between it and the one before
		if strings.TrimSpace(grid[i][at]) != "" {
			break
		}
		bar := " " + widget.MarkBar + widget.Blank(w-2)
		if side < 0 {
			bar = widget.Blank(w-2) + widget.MarkBar + " "
		}
		grid[i][at] = t.Put(widget.Dim, bar)
	}
}

// detail is of what the cursor is on.
func (p *nearPage) detail() *detail {
	s, at := p.spot(), p.at
	switch {
	case s == nil || at.index == nil:
		return &detail{}
	case s.Op == nil:
		return &detail{fmt.Sprintf("v%d", s.Value), s.Label, func(ctx context.Context) ([]string, error) {
			lines := at.index.ValueLines(at.step, s.Value)
			return append(lines, numbersWhere(at.trace, at.recorded)), ctx.Err()
		}}
	}
	return &detail{fmt.Sprintf("op%d", s.Op.ID), s.Label, func(ctx context.Context) ([]string, error) {
		return at.index.OperatorLines(at.step, s.Op.ID), ctx.Err()
	}}
}

// why explains the operator under the cursor, or lists what the value there reaches.
func (p *nearPage) why() (text, bool) {
	s := p.spot()
	switch {
	case s == nil || p.at.step < 0:
		return text{}, false
	case s.Op == nil:
		return whatWakes(p.at, s.Value), true
	}
	return whyOperator(p.at, s.Op.ID, "")
}
