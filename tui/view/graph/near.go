package graph

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
	"gpuscope/tui/command"
	"gpuscope/tui/view"
	"gpuscope/tui/widget"
)

// NearRow describes the neighbourhood, a screen that commands open.
var NearRow = view.Row{
	Name: "Neighbourhood", Needs: command.Opened, Doc: "An operator with its producers and consumers.",
	New: func(h view.Host, _ *widget.Log) view.View { return newNearPage(h, 0, false) },
}

// NearPage shows the neighbourhood of an operator. The operators that write its inputs are on the left, and
// the operators that read its outputs are on the right. The lines between them show the live shapes of the
// values.
type NearPage struct {
	view.Basics
	host   view.Host
	Op     trace.OpID
	former []trace.OpID // operators that were in the centre before
	Column int          // column of the cursor: 0 is the centre, negative columns are on the left
	Line   int          // line of the cursor in its column
	seek   int          // column to move to once it is loaded: -1 or 1; 0 for none
	at     view.Snapshot
	Task   widget.Task[nearKey, *nearness]
	first  int // index of the top line of the window
	page   int
}

// nearKey identifies the contents of a neighbourhood.
type nearKey struct {
	version, step, far int
	op                 trace.OpID
}

// nearness is a neighbourhood with the positions of its nodes on the screen.
type nearness struct {
	far    int // number of columns on each side
	Spots  map[int][]stand
	height int
	full   []int // widths of the columns in cells: a column of names, a column of edges, and so on
}

// stand is a node of the neighbourhood and its place on the screen. `Line` is the line of this node, and `of`
// is the line of the node that it is attached to. `last` means that it is the last node attached to that
// node.
type stand struct {
	analyze.Neighbour
	Line, of int
	last     bool
}

func newNearPage(h view.Host, op trace.OpID, consumers bool) *NearPage {
	p := &NearPage{host: h, Op: op, seek: -1}
	if consumers {
		p.seek = 1
	}
	return p
}

// These are widths in cells. edgeCells is the width of an edge with a shape, leastEdge that of the narrowest
// edge, and leastName that of the narrowest column of names. An edge has besideShape more cells than its
// shape, and a name has besideName more cells than its text.
const edgeCells, leastEdge, leastName, besideShape, besideName = 14, 9, 15, 6, 2

// nearFar returns how many columns of names fit on each side of the centre.
func nearFar(w int) int {
	if w >= 5*leastName+4*edgeCells {
		return 2
	}
	return 1
}

func (p *NearPage) Load(j *widget.Jobs, s view.Snapshot, w int) {
	p.at = s
	if s.Index == nil || int(p.Op) >= len(s.Trace.Graph.Ops) {
		p.Task.Clear(j)
		return
	}
	key := nearKey{s.Version, s.Step, nearFar(p.width()), p.Op}
	p.Task.Want(j, key, func(ctx context.Context) (*nearness, error) {
		n := &nearness{far: key.far, Spots: map[int][]stand{}}
		n.Spots[0] = []stand{{Neighbour: s.Index.Node(key.step, key.op), last: true}}
		for side := -1; side <= 1; side += 2 {
			around := report.Around(s.Index, key.step, key.op, key.far, side > 0)
			n.height = max(n.height, n.place(around, side, 0, 0))
		}
		n.height = max(n.height, 1)
		n.measure()
		return n, ctx.Err()
	}, p.placed)
}

// width returns the width of the list in cells.
func (p *NearPage) width() int {
	w, _ := p.host.Size()
	return w
}

func (p *NearPage) Actions() []command.Action {
	return []command.Action{
		{Name: "open"},
		{Name: "why", Run: func() {
			t, explains := p.why()
			view.Explain(p.host, nil, t, explains)
		}},
		{Name: "producers", Run: func() { p.near(false) }},
		{Name: "consumers", Run: func() { p.near(true) }},
	}
}

func (p *NearPage) Detailed() bool { return true }

func (p *NearPage) Takes() report.Takes { return report.OneStep }

// place arranges nodes one below the other, each on the same line as the first of its own neighbours. It
// returns the next free line.
func (n *nearness) place(list []analyze.Neighbour, column, line, of int) int {
	side := 1
	if column < 0 {
		side = -1
	}
	for i := range list {
		n.Spots[column] = append(n.Spots[column], stand{list[i], line, of, i == len(list)-1})
		line = max(line+1, n.place(list[i].Far, column+side, line, line))
	}
	return line
}

// placed moves the cursor to the requested column once the neighbourhood is loaded.
func (p *NearPage) placed(n *nearness) {
	if p.seek != 0 && len(n.Spots[p.seek]) > 0 {
		p.Column, p.Line = p.seek, n.Spots[p.seek][0].Line
	}
	p.seek = 0
	if p.spot() == nil {
		p.Column, p.Line = 0, 0
	}
}

// spot returns the node under the cursor, or nil if there is none.
func (p *NearPage) spot() *stand {
	n := p.Task.Value
	if n == nil {
		return nil
	}
	for i := range n.Spots[p.Column] {
		if s := &n.Spots[p.Column][i]; s.Line == p.Line {
			return s
		}
	}
	return nil
}

// Move moves the cursor along its column, or to the nearest node of the next column.
func (p *NearPage) Move(m widget.Motion) {
	n, here := p.Task.Value, p.spot()
	if here == nil {
		return
	}
	column := n.Spots[p.Column]
	at := slices.IndexFunc(column, func(s stand) bool { return s.Line == p.Line })
	by := map[widget.Motion]int{
		widget.Up: -1, widget.Down: 1, widget.HalfUp: -5, widget.HalfDown: 5, widget.PageUp: -10,
		widget.PageDown: 10, widget.Top: -len(column),
		widget.Bottom: len(column),
	}
	switch m {
	case widget.Left, widget.Right:
		to := p.Column + map[widget.Motion]int{widget.Left: -1, widget.Right: 1}[m]
		if len(n.Spots[to]) == 0 {
			return
		}
		line := p.Line
		if (to < p.Column) == (p.Column > 0) { // towards the centre
			line = here.of
		}
		p.Column, p.Line = to, nearest(n.Spots[to], line)
	default:
		p.Line = column[widget.Clamp(at+by[m], 0, len(column)-1)].Line
	}
}

// nearest returns the line of the node that is nearest to the given line.
func nearest(list []stand, line int) int {
	best := list[0].Line
	for _, s := range list {
		if max(s.Line-line, line-s.Line) < max(best-line, line-best) {
			best = s.Line
		}
	}
	return best
}

// Open moves the operator under the cursor to the centre. If the cursor is on a value, it opens the value;
// on the centre, it opens the centre's first output.
func (p *NearPage) Open() bool {
	s := p.spot()
	switch {
	case s == nil:
	case s.Op == nil:
		OpenValue(p.host, s.Value, p.at)
	case s.Op.ID == p.Op:
		if len(s.Op.Outputs) > 0 {
			OpenValue(p.host, s.Op.Outputs[0], p.at)
		}
	default:
		p.goTo(s.Op.ID, 0)
	}
	return true
}

// goTo moves another operator to the centre.
func (p *NearPage) goTo(op trace.OpID, seek int) {
	p.former = append(p.former, p.Op)
	p.Op, p.Column, p.Line, p.seek, p.first = op, 0, 0, seek, 0
}

// Back returns to the operator that was in the centre before.
func (p *NearPage) Back() bool {
	n := len(p.former)
	if n == 0 {
		return false
	}
	p.Op, p.Column, p.Line, p.first = p.former[n-1], 0, 0, 0
	p.former = p.former[:n-1]
	return true
}

// near is the action that moves to the producers or consumers of the node under the cursor.
func (p *NearPage) near(consumers bool) {
	side := -1
	if consumers {
		side = 1
	}
	s, n := p.spot(), p.Task.Value
	switch {
	case s == nil:
	case s.Op != nil && s.Op.ID != p.Op:
		p.goTo(s.Op.ID, side)
	case s.Op == nil && p.Column*side < 0: // go back to the node that the value is attached to
		p.Move(map[int]widget.Motion{-1: widget.Left, 1: widget.Right}[side])
	case s.Op == nil:
		what := map[int]string{-1: "no other operator writes ", 1: "no other operator reads "}
		p.host.Remark(what[side] + printable.Clean(s.Label))
	case s.Op != nil && len(n.Spots[side]) > 0:
		p.Column, p.Line = side, n.Spots[side][0].Line
	default:
		what := map[int]string{-1: "no operator writes this operator's inputs", 1: "no operator reads this operator's outputs"}
		p.host.Remark(what[side])
	}
}

// nameAt returns the index of a column's names in a list of widths such as nearness.full. edgeAt returns the
// index of the edges between this column and the centre.
func (n *nearness) nameAt(column int) int { return 2 * (column + n.far) }

func (n *nearness) edgeAt(column int) int {
	if column < 0 {
		return n.nameAt(column) + 1
	}
	return n.nameAt(column) - 1
}

// measure computes the full width of each column.
func (n *nearness) measure() {
	n.full = make([]int, 4*n.far+1)
	for column, list := range n.Spots {
		for i := range list {
			s, name, edge := &list[i], n.nameAt(column), n.edgeAt(column)
			n.full[name] = max(n.full[name], besideName+widget.Width(s.label()+s.tail()))
			if column != 0 {
				n.full[edge] = max(n.full[edge], leastEdge, besideShape+widget.Width(s.shape()))
			}
		}
	}
}

// widths returns the widths of the columns on a page of w cells. If the page is too narrow, the columns that
// exceed their minimum width the most shrink first. If the page is too wide, all columns grow equally.
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

// PointAt moves the cursor to the clicked node.
func (p *NearPage) PointAt(x, y, w int) bool {
	n := p.Task.Value
	if n == nil || y < 1 || y > p.page {
		return false
	}
	line := p.first + y - 1
	for k, cells := range n.widths(w) {
		column := k/2 - n.far
		if x < cells && k%2 == 0 &&
			slices.ContainsFunc(n.Spots[column], func(s stand) bool { return s.Line == line }) {
			p.Column, p.Line = column, line
			return true
		}
		if x -= cells; x < 0 {
			break
		}
	}
	return false
}

func (p *NearPage) Title(int) []table.Segment {
	if p.at.Trace == nil || int(p.Op) >= len(p.at.Trace.Graph.Ops) {
		return nil
	}
	o := &p.at.Trace.Graph.Ops[p.Op]
	parts := []table.Segment{{Rank: 0, Text: o.Name}, {Rank: 2, Text: o.Kind}}
	if n := p.Task.Value; n != nil {
		parts = append(parts, table.Say(3, "producers: %d, consumers: %d", len(n.Spots[-1]), len(n.Spots[1])))
	}
	return parts
}

func (p *NearPage) Render(t *widget.Theme, _ widget.Glyphs, w, h int, _ bool) []string {
	n := p.Task.Value
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
	for column, list := range n.Spots {
		name, edge := n.nameAt(column), n.edgeAt(column)
		for i := range list {
			s := &list[i]
			grid[s.Line][name] = p.name(t, s, widths[name], column == p.Column && s.Line == p.Line)
			if column != 0 {
				drawEdge(t, grid, s, edge, column, widths[edge])
			}
		}
	}
	head := widget.Spread(" reads from", "read by ", w)
	lines := []string{t.Put(widget.Dim, head)}
	p.page = max(1, h-1)
	p.first = widget.Clamp(widget.Clamp(p.first, p.Line-p.page+1, p.Line), 0, max(0, n.height-p.page))
	for _, cells := range grid[p.first:min(n.height, p.first+p.page)] {
		lines = append(lines, strings.TrimRight(widget.Cut(strings.Join(cells, ""), w), " "))
	}
	return lines
}

// name draws a node with the level at which it runs.
func (p *NearPage) name(t *widget.Theme, s *stand, w int, cursor bool) string {
	mark, style := " ", widget.Plain
	switch {
	case cursor:
		mark, style = widget.MarkSelected, widget.Selected
	case s.Op == nil:
		style = widget.Dim
	case s.Op.ID == p.Op:
		style = widget.Strong
	}
	label := widget.CutMiddle(s.label(), max(1, w-besideName-widget.Width(s.tail())))
	return t.Put(style, mark+widget.Fit(label+s.tail(), w-1))
}

func (s *stand) label() string { return printable.Clean(s.Label) }

func (s *stand) shape() string { return printable.Clean(s.Edge) }

// tail returns the end of a node's text: the level at which the node runs, such as " L3".
func (s *stand) tail() string {
	if s.Level < 0 {
		return ""
	}
	return fmt.Sprintf(" L%d", s.Level)
}

// drawEdge draws the line between a node and the node that it is attached to, in a column of edges. `side` is
// negative on the left of the centre.
func drawEdge(t *widget.Theme, grid [][]string, s *stand, at, side, w int) {
	first := s.Line == s.of
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
	grid[s.Line][at] = t.Put(widget.Dim, widget.Fit(cell, w))
	for i := s.Line - 1; i > s.of && !first; i-- { // continue the line past the nodes in between
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

// Detail describes the node under the cursor.
func (p *NearPage) Detail() *view.Detail {
	s, at := p.spot(), p.at
	switch {
	case s == nil || at.Index == nil:
		return &view.Detail{}
	case s.Op == nil:
		return &view.Detail{
			Of: fmt.Sprintf("v%d", s.Value), Title: s.Label,
			Lines: func(ctx context.Context) ([]string, error) {
				lines := report.ValueLines(at.Index, at.Step, s.Value)
				return append(lines, numbersWhere(at.Trace, at.Recorded)), ctx.Err()
			},
		}
	}
	return &view.Detail{
		Of: fmt.Sprintf("op%d", s.Op.ID), Title: s.Label,
		Lines: func(ctx context.Context) ([]string, error) {
			return report.OperatorLines(at.Index, at.Step, s.Op.ID), ctx.Err()
		},
	}
}

// why returns the text that explains the grid of the operator under the cursor. For a value, the text lists
// the operators that may be re-planned when the value changes.
func (p *NearPage) why() (view.Text, bool) {
	s := p.spot()
	switch {
	case s == nil || p.at.Step < 0:
		return view.Text{}, false
	case s.Op == nil:
		return view.WhatWakes(p.at, s.Value), true
	}
	return view.WhyOperator(p.at, s.Op.ID, "")
}
