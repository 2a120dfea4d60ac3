package timeline

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/trace/analyze/timeline"
	"gpuscope/tui/widget"
)

// gutter is the width of the names of the tracks, in cells.
const gutter = 12

// signs of the tracks.
const (
	signWork  = '▒'
	signWait  = '░'
	signLine  = '─'
	signPause = '/'
	signEdge  = '│'
)

// shares[n] is a bar that fills n eighths of a cell's height. The height shows the busy share of the time
// that the cell covers.
var shares = []rune(" ▁▂▃▄▅▆▇█")

var trackNames = [timeline.Tracks]string{"CPU step", "phase", "GPU step", "layer", "dispatch"}

// drawn caches the window of the last frame.
type drawn struct {
	of     *timeline.Overview
	part   part
	width  int
	window *timeline.Window
	// found[c] reports whether column c has a hit. It was computed from hitsOf.
	found  []bool
	hitsOf *hits
}

// windowOf returns the drawn part of the axis, divided into the cells of the screen.
func (p *Page) windowOf(o *timeline.Overview) *timeline.Window {
	d := &p.drawn
	if d.window == nil || d.of != o || d.part != p.part || d.width != p.width {
		from, to := p.bounds(o)
		*d = drawn{of: o, part: p.part, width: p.width, window: o.Window(from, to, p.width)}
	}
	return d.window
}

// line is a line of the axis: a sign and a paint for each cell.
type line struct {
	signs  []rune
	paints []widget.Paint
}

func newLine(n int) line {
	l := line{make([]rune, n), make([]widget.Paint, n)}
	for i := range l.signs {
		l.signs[i] = ' '
	}
	return l
}

// put writes a sign into a cell, if the cell exists.
func (l *line) put(c int, sign rune, p widget.Paint) {
	if c >= 0 && c < len(l.signs) {
		l.signs[c], l.paints[c] = sign, p
	}
}

// write writes a text into the cells from a up to b, if it fits and if each character needs one cell.
func (l *line) write(a, b int, text string, p widget.Paint) bool {
	text = printable.Clean(text)
	n := widget.Width(text)
	if n == 0 || n > b-a || n != len([]rune(text)) {
		return false
	}
	for i, r := range []rune(text) {
		l.put(a+i, r, p)
	}
	return true
}

// text returns the line as text with colors.
func (l *line) text(t *widget.Theme) string {
	var b strings.Builder
	for i := 0; i < len(l.signs); {
		k := i
		for k < len(l.signs) && l.paints[k] == l.paints[i] {
			k++
		}
		b.WriteString(t.Put(l.paints[i], string(l.signs[i:k])))
		i = k
	}
	return b.String()
}

// Render draws the ruler, the tracks and the facts about the cursor.
func (p *Page) Render(t *widget.Theme, _ widget.Glyphs, w, h int, _ bool) []string {
	o := p.overview()
	p.rows = nil
	if o == nil {
		return []string{"", t.Put(widget.Dim, "  Computing …")}
	}
	if o.End == 0 {
		return []string{"", t.Put(widget.Dim, "  No time was measured in this run, so nothing has a place on the axis.")}
	}
	p.width = max(8, w-gutter-1)
	window := p.windowOf(o)
	lines := []string{p.ruler(t, o, window)}
	p.rows = append(p.rows, -1)
	add := func(name, text string, row int) {
		lines = append(lines, name+text)
		p.rows = append(p.rows, row)
	}
	if lane, ok := p.marked(o, window); ok && h >= 12 {
		add(t.Put(widget.Dim, widget.Fit(" marked", gutter-1)+widget.MarkBar), lane.text(t), -1)
	}
	facts := p.facts(o)
	heights := heights(len(window.Rows), h-len(lines)-2-min(len(facts), 3), o.Timed)
	for i := range window.Rows {
		p.row(t, o, window, i, heights[i], add)
	}
	if found, ok := p.found(window); ok {
		add(t.Put(widget.Dim, widget.Fit(" found", gutter-1)+widget.MarkBar), found.text(t), -1)
	}
	at := p.cursorLine(o, window)
	add(widget.Blank(gutter-1)+t.Put(widget.Dim, widget.MarkBar), at.text(t), -1)
	for i, fact := range facts {
		paint := widget.Plain
		if i == 0 {
			paint = widget.Strong
		}
		for _, l := range wrapped(fact, w-2) {
			if len(lines) < h {
				lines = append(lines, t.Put(paint, " "+l))
			}
		}
	}
	return append(lines, p.sums(t, window, w, h-len(lines))...)
}

// heights returns the height of each row, in lines. If the dispatches were timed, the dispatch row gets the
// first spare lines. If they were not, only the row of CPU phases gets spare lines.
func heights(rows, lines int, timed bool) []int {
	list := make([]int, rows)
	for i := range list {
		list[i] = 1
	}
	spare := lines - rows - 10 // lines for the lists below
	for _, want := range []struct{ row, most int }{
		{int(timeline.GPUDispatches), 3},
		{int(timeline.HostPhases), 2},
		{int(timeline.GPUDispatches), 5},
		{int(timeline.GPULayers), 2},
		{int(timeline.HostPhases), 3},
	} {
		for list[want.row] < want.most && spare > 0 && (timed || want.row == int(timeline.HostPhases)) {
			list[want.row]++
			spare--
		}
	}
	return list
}

// row draws a row of a track in the given number of lines.
func (p *Page) row(t *widget.Theme, o *timeline.Overview, w *timeline.Window, row, high int,
	add func(name, text string, row int),
) {
	r := &w.Rows[row]
	paint := widget.GraphB
	if r.Track.OnGPU() {
		paint = widget.GraphA
	}
	lines := make([]line, high)
	for i := range lines {
		lines[i] = newLine(p.width)
	}
	for c := range r.Cells {
		drawCell(w, r, c, lines, paint)
	}
	hits := p.search.now()
	for i := range r.Items {
		it := &r.Items[i]
		of := paint
		if r.Track == timeline.GPUDispatches && p.isHit(hits, it) {
			of = widget.Warn
		}
		if !p.at.Idle && same(it, &p.at.Item) {
			of = widget.Selected
		}
		p.item(w, it, lines, of)
	}
	for _, pause := range o.Pauses {
		p.pause(w, &pause, lines)
	}
	name, own := trackNames[r.Track], int(p.at.Track)+p.at.Lane == row
	if r.Lane > 0 {
		name = "and at once"
	}
	for i := range lines {
		label := " "
		if i == 0 {
			label = " " + name
			if own {
				label = widget.MarkSelected + name
			}
		}
		label = widget.Fit(label, gutter-1)
		if own {
			label = t.Put(widget.Selected, label)
		}
		add(label+t.Put(widget.Dim, widget.MarkBar), lines[i].text(t), row)
	}
}

// same reports whether two items are the same part of the same step.
func same(a, b *timeline.Item) bool {
	return a.Track == b.Track && a.Step == b.Step && a.At == b.At && a.Unmeasured == b.Unmeasured
}

// drawCell draws a cell as a bar whose height is the busy share of the time that the cell covers.
func drawCell(w *timeline.Window, r *timeline.Row, c int, lines []line, paint widget.Paint) {
	cell := &r.Cells[c]
	length := max(1, w.Bound(c+1)-w.Bound(c))
	busy := cell.BusyNS
	if r.Track == timeline.HostPhases {
		waits := w.Of(timeline.HostPhases, c, timeline.Wait)
		if busy -= waits; waits > 0 {
			for i := range lines {
				lines[i].put(c, signWait, paint)
			}
		}
	}
	if busy == 0 {
		if cell.UnmeasuredNS*2 >= length {
			lines[0].put(c, '–', widget.Dim)
		}
		return
	}
	high := float64(busy) / float64(length) * float64(8*len(lines))
	for i := range lines {
		eighths := int(math.Round(high)) - 8*(len(lines)-1-i)
		if i == len(lines)-1 {
			eighths = max(eighths, 1)
		}
		if eighths > 0 {
			lines[i].put(c, shares[min(8, eighths)], paint)
		}
	}
}

// Cell returns the signs with which a cell of a row is drawn in the given number of lines, from top to
// bottom.
func Cell(w *timeline.Window, r *timeline.Row, c, high int) (signs []rune) {
	lines := make([]line, high)
	for i := range lines {
		lines[i] = newLine(len(r.Cells))
	}
	drawCell(w, r, c, lines, widget.Plain)
	for i := range lines {
		signs = append(signs, lines[i].signs[c])
	}
	return signs
}

// item draws an item that is at least two cells long, with its name if it fits.
func (p *Page) item(w *timeline.Window, it *timeline.Item, lines []line, paint widget.Paint) {
	a, b := p.column(w, it.From), p.column(w, it.To)
	if b-a < 2 {
		return
	}
	fill := signWork
	switch {
	case it.Unmeasured:
		fill = '–'
		if paint != widget.Selected {
			paint = widget.Dim
		}
	case it.Track == timeline.HostPhases && it.Name == timeline.Wait:
		fill = signWait
	case it.Track == timeline.HostSteps || it.Track == timeline.GPUSteps:
		fill = signLine
	}
	for i := range lines {
		for c := max(0, a); c < min(b, p.width); c++ {
			sign := fill
			if it.Unmeasured && i > 0 {
				sign = ' '
			}
			lines[i].put(c, sign, paint)
		}
		if !it.Unmeasured {
			lines[i].put(a, signEdge, paint)
		}
	}
	begin := max(a+1, 0) // a name that begins to the left of the window stays visible
	labels, end := p.labels(it), min(b, p.width)
	const shortest = 4 // cells that the beginning of a name needs to be useful
	if end-begin >= shortest && !it.Unmeasured {
		labels = append(labels, widget.Cut(labels[len(labels)-1], end-begin))
	}
	for _, label := range labels {
		if lines[0].write(begin, end, label, paint) {
			break
		}
	}
}

// labels returns the texts inside an item, from the longest to the shortest.
func (p *Page) labels(it *timeline.Item) []string {
	step := fmt.Sprintf("s%d", p.now.Trace.Steps[it.Step].Index)
	switch {
	case it.Unmeasured && it.Track == timeline.GPUSteps:
		return []string{" " + step + " not measured ", " not measured "}
	case it.Unmeasured:
		return []string{" not timed one by one ", " not timed "}
	case it.Track == timeline.HostSteps || it.Track == timeline.GPUSteps:
		return []string{step + " " + it.Name + " " + duration(it.To-it.From), step + " " + it.Name, step}
	case it.Track == timeline.GPUDispatches:
		short := p.label(it)
		return []string{short + " " + duration(it.NS), short}
	}
	return []string{it.Name + " " + duration(it.NS), it.Name}
}

// label returns the short name of a dispatch.
func (p *Page) label(it *timeline.Item) string {
	id := p.dispatch(it)
	if id < 0 {
		return it.Name
	}
	d := &p.now.Trace.Graph.Dispatches[id]
	return d.Named(p.now.Trace.Graph.Ops[d.Op].ShortName())
}

// pause draws a pause over all lines of a row. On the axis, pauses are shorter than they were.
func (p *Page) pause(w *timeline.Window, pause *timeline.Pause, lines []line) {
	if pause.To <= w.From || pause.From >= w.To {
		return
	}
	a, b := p.column(w, pause.From), max(p.column(w, pause.To), p.column(w, pause.From)+1)
	for i := range lines {
		for c := max(0, a); c < min(b, p.width); c++ {
			lines[i].put(c, signPause, widget.Dim)
		}
	}
	lines[0].write(max(0, a+1), min(b, p.width)-1,
		" "+duration(pause.To-pause.From+pause.CutNS)+" ", widget.Dim)
}

// column returns the cell at whose left edge an instant is drawn.
func (p *Page) column(w *timeline.Window, at int64) int {
	c := float64(at-w.From) / float64(w.To-w.From) * float64(p.width)
	return int(math.Round(min(max(c, -1), float64(p.width)+1)))
}

// cursorLine marks the place of the cursor, and how long its item is.
func (p *Page) cursorLine(o *timeline.Overview, w *timeline.Window) line {
	l := newLine(p.width)
	a, b := p.column(w, p.at.From), p.column(w, p.at.To)
	for c := max(0, a); c < min(b, p.width); c++ {
		l.put(c, signLine, widget.Selected)
	}
	l.put(min(max(0, w.CellOf(p.spot(o))), p.width-1), '▲', widget.Selected)
	return l
}

// marked draws the marked range of steps. It returns false if nothing is marked.
func (p *Page) marked(o *timeline.Overview, w *timeline.Window) (line, bool) {
	l := newLine(p.width)
	if p.now.From < 0 || p.now.To >= o.Steps() {
		return l, false
	}
	first, _, ok1 := o.Extent(p.now.From)
	_, last, ok2 := o.Extent(p.now.To)
	if !ok1 || !ok2 {
		return l, false
	}
	a, b := p.column(w, first), max(p.column(w, last), p.column(w, first)+1)
	for c := max(0, a); c < min(b, p.width); c++ {
		l.put(c, signLine, widget.Accent)
	}
	l.put(a, '├', widget.Accent)
	l.put(b-1, '┤', widget.Accent)
	steps := p.now.Trace.Steps
	label := fmt.Sprintf(" s%d–s%d ", steps[p.now.From].Index, steps[p.now.To].Index)
	if n := widget.Width(label); b-a > n+2 {
		l.write(max(0, a+(b-a-n)/2), min(b, p.width), label, widget.Accent)
	}
	return l, true
}

// found marks the cells with hits of the search. It returns false if nothing is searched for.
func (p *Page) found(w *timeline.Window) (line, bool) {
	l, h := newLine(p.width), p.search.now()
	if h == nil {
		return l, false
	}
	d := &p.drawn
	if d.found == nil || d.hitsOf != h {
		d.found, d.hitsOf = p.hitCells(w, h), h
	}
	for c, found := range d.found {
		if found {
			l.put(c, '•', widget.Warn)
		}
	}
	return l, true
}

// hitCells returns which cells have hits.
func (p *Page) hitCells(w *timeline.Window, h *hits) []bool {
	cells := make([]bool, p.width)
	for i, _ := slices.BinarySearch(h.at, w.From); i < len(h.at) && h.at[i] < w.To; {
		c := w.CellOf(h.at[i])
		cells[c] = true
		next, _ := slices.BinarySearch(h.at[i:], w.Bound(c+1))
		i += max(1, next)
	}
	return cells
}

// ruler draws the times of the axis.
func (p *Page) ruler(t *widget.Theme, o *timeline.Overview, w *timeline.Window) string {
	length := float64(w.To - w.From)
	end := o.Real(w.To)
	unit, name := 1e6, "ms"
	switch {
	case end >= 20e9:
		unit, name = 1e9, "s"
	case end < 20e6:
		unit, name = 1e3, "µs"
	}
	// The distance between two labels is 1, 2 or 5 times a power of ten.
	step := math.Pow(10, math.Floor(math.Log10(max(1, length/float64(p.width)))))
	label := func(at float64) string {
		decimals := max(0, int(math.Ceil(-math.Log10(step/unit)-1e-9)))
		return strconv.FormatFloat(at/unit, 'f', decimals, 64)
	}
	for k := 0; ; k++ {
		cells := step / length * float64(p.width)
		if cells >= float64(widget.Width(label(float64(end)))+4) || k > 60 {
			break
		}
		step *= []float64{2, 2.5, 2}[k%3]
	}
	l := newLine(p.width)
	free := 0
	for c := range p.width {
		from, to := float64(o.Real(w.Bound(c))), float64(o.Real(w.Bound(c+1)))
		tick := math.Ceil(from/step) * step
		if tick >= to || c < free {
			continue
		}
		l.put(c, signEdge, widget.Dim)
		if text := label(tick); l.write(c+1, p.width, text, widget.Dim) {
			free = c + widget.Width(text) + 2
		}
	}
	return t.Put(widget.Dim, widget.Fit(" time "+name, gutter)) + l.text(t)
}
