package timeline

import (
	"gpuscope/trace/analyze/timeline"
	"gpuscope/tui/widget"
)

const (
	factor = 4    // how much longer or shorter a zoom makes the drawn part
	least  = 1000 // shortest part that is drawn, in ns
	idle   = 5    // number of cells from which on idle time is an item that the cursor stops at
)

// bounds returns the first and the last instant of the drawn part.
func (p *Page) bounds(o *timeline.Overview) (from, to int64) {
	if p.part.To == 0 {
		return 0, max(o.End, 1)
	}
	return p.part.From, p.part.To
}

// show makes the part of the axis between two instants the drawn part. If this part would extend beyond the
// axis, show moves or shortens it.
func (p *Page) show(o *timeline.Overview, from, to int64) {
	length := max(to-from, least)
	if length >= o.End {
		p.part = part{}
		return
	}
	from = max(0, min(from, o.End-length))
	p.part = part{from, from + length}
}

// reveal moves the drawn part so that the cursor is in it.
func (p *Page) reveal() {
	o := p.of
	if o == nil || p.part.To == 0 {
		return
	}
	from, to := p.bounds(o)
	switch length := to - from; {
	case p.at.To <= from || p.at.From >= to:
		middle := p.at.From + min(p.at.To-p.at.From, length)/2
		p.show(o, middle-length/2, middle-length/2+length)
	case p.at.To-p.at.From >= length:
	case p.at.From < from:
		p.show(o, p.at.From, p.at.From+length)
	case p.at.To > to:
		p.show(o, p.at.To-length, p.at.To)
	default:
		p.show(o, from, to) // the axis may have become shorter
	}
}

// settle makes the item at the cursor visible, and draws the cursor in the middle of the visible part of
// the item.
func (p *Page) settle() {
	p.reveal()
	from, to := p.bounds(p.of)
	a, b := max(from, p.at.From), min(to, p.at.To)
	p.at.Spot = a + max(0, b-a)/2
}

// spot returns the instant at which the cursor is drawn: in its item and in the drawn part, if possible.
func (p *Page) spot(o *timeline.Overview) int64 {
	from, to := p.bounds(o)
	at := min(max(p.at.Spot, p.at.From), max(p.at.From, p.at.To-1))
	return min(max(at, from), to-1)
}

// zoom multiplies the length of the drawn part. The cursor stays in its place on the screen.
func (p *Page) zoom(by float64) {
	o := p.overview()
	if o == nil {
		return
	}
	from, to := p.bounds(o)
	length := int64(float64(to-from) * by)
	switch {
	case by > 1 && p.part.To == 0:
		p.host.Remark("the whole run is shown")
		return
	case by < 1 && length < least:
		p.host.Remark("cannot zoom in any further")
		return
	}
	at := p.spot(o)
	from = at - int64(float64(at-from)*by)
	p.show(o, from, from+length)
}

// move puts the cursor on an item and shows its step.
func (p *Page) move(to cursor) {
	p.at = to
	if to.Step != p.now.Step {
		p.now.Step = to.Step
		p.host.LookAt(to.Step)
	}
	p.settle()
}

// Move moves the cursor: up and down to another track, left and right to the next item that is at least one
// cell away. The page keys move the drawn part of the axis, and the cursor with it.
func (p *Page) Move(m widget.Motion) {
	o := p.overview()
	if o == nil || p.at.Step < 0 {
		return
	}
	from, to := p.bounds(o)
	pan := func(by int64) {
		at := max(0, min(p.spot(o)+by, o.End-1))
		if p.part.To != 0 {
			p.show(o, from+by, to+by)
		}
		p.point(o, p.at.Track, p.at.Lane, at, false)
	}
	switch m {
	case widget.Up:
		p.turn(o, -1)
	case widget.Down:
		p.turn(o, 1)
	case widget.Left:
		p.next(o, -1)
	case widget.Right:
		p.next(o, 1)
	case widget.PageUp:
		pan(from - to)
	case widget.PageDown:
		pan(to - from)
	case widget.HalfUp:
		pan((from - to) / 2)
	case widget.HalfDown:
		pan((to - from) / 2)
	case widget.Top:
		p.end(o, 1)
	case widget.Bottom:
		p.end(o, -1)
	}
}

// end goes to the first item of the track, or to the last one if `by` is negative.
func (p *Page) end(o *timeline.Overview, by int) {
	step := 0
	if by < 0 {
		step = o.Steps() - 1
	}
	for ; step >= 0 && step < o.Steps(); step += by {
		if list := p.items(o, step); len(list) > 0 {
			if by > 0 {
				p.move(cursor{Item: list[0]})
			} else {
				p.move(cursor{Item: list[len(list)-1]})
			}
			return
		}
	}
}

// items returns the items of a step on the row of the cursor.
func (p *Page) items(o *timeline.Overview, step int) []timeline.Item {
	return p.itemsOf(o, step, p.at.Track, p.at.Lane)
}

func (p *Page) itemsOf(o *timeline.Overview, step int, t timeline.Track, lane int) []timeline.Item {
	list := p.lists.of(o, step, t)
	if t != timeline.GPUDispatches || o.Lanes == 1 {
		return list
	}
	var out []timeline.Item
	for _, it := range list {
		if it.Lane == lane {
			out = append(out, it)
		}
	}
	return out
}

// lists caches the items of recently used steps. It does not keep the items of all steps, because a step
// can have many items.
type lists struct {
	from  *timeline.Overview
	items map[listKey][]timeline.Item
}

type listKey struct {
	step  int
	track timeline.Track
}

const mostLists = 64 // number of lists that are kept

// of returns the items of a step on a track.
func (l *lists) of(o *timeline.Overview, step int, t timeline.Track) []timeline.Item {
	key := listKey{step, t}
	if list, ok := l.items[key]; ok && l.from == o {
		return list
	}
	if l.from != o || len(l.items) >= mostLists {
		l.from, l.items = o, map[listKey][]timeline.Item{}
	}
	list := o.Items(step, t)
	l.items[key] = list
	return list
}

// turn goes to the row below, or to the one above if `by` is negative.
func (p *Page) turn(o *timeline.Overview, by int) {
	row := int(p.at.Track) + p.at.Lane + by
	if row < 0 || row >= int(timeline.Tracks)-1+o.Lanes {
		return
	}
	t := min(timeline.Track(row), timeline.GPUDispatches)
	p.point(o, t, row-int(t), p.spot(o), true)
}

// point puts the cursor on a row, at the item that is drawn at an instant. Of several items in one cell it
// chooses the longest. If stay is set, it prefers an item of the shown step.
func (p *Page) point(o *timeline.Overview, t timeline.Track, lane int, at int64, stay bool) {
	cell := p.cell(o)
	var best timeline.Item
	score, found := int64(-1), false
	try := func(it *timeline.Item) {
		// The score of an item that overlaps the cell is the length of the overlap. The score of any other
		// item is negative: its distance from the cell. An item that is longer than a cell and contains
		// `at` wins.
		a, b := max(it.From, at-cell/2), min(it.To, at+cell/2+1)
		s := b - a
		if s > 0 && it.From <= at && at < it.To && it.To-it.From > cell {
			s = cell * 2
		}
		if !found || s > score {
			best, score, found = *it, s, true
		}
	}
	each := func(step int) {
		for _, it := range p.itemsOf(o, step, t, lane) {
			try(&it)
		}
	}
	if stay {
		each(p.now.Step)
	}
	if score <= 0 {
		first, last := o.Around(at-cell/2, at+cell/2+1)
		for step := max(0, first-1); step <= min(o.Steps()-1, last+1, first+64); step++ {
			each(step)
		}
	}
	if !found {
		p.at = cursor{Item: timeline.Item{
			Track: t, Lane: lane, Step: p.at.Step, From: p.at.From, To: p.at.To, Unmeasured: true,
		}, Spot: p.at.Spot}
		return
	}
	p.move(cursor{Item: best})
}

// cell returns the length of a cell, in ns.
func (p *Page) cell(o *timeline.Overview) int64 {
	from, to := p.bounds(o)
	return max(1, (to-from)/int64(p.width))
}

// next moves the cursor to the next item of the row that is at least one cell away, or to the previous one
// if `by` is negative. It also stops at idle time that is several cells long.
func (p *Page) next(o *timeline.Overview, by int) {
	cell := p.cell(o)
	if p.at.Idle { // the idle time is before its item
		if list := p.items(o, p.at.Step); by > 0 {
			for i := range list {
				if list[i].At == p.at.At {
					p.move(cursor{Item: list[i]})
					return
				}
			}
		}
	}
	if by > 0 {
		p.right(o, cell)
	} else {
		p.left(o, cell)
	}
}

func (p *Page) right(o *timeline.Overview, cell int64) {
	limit := max(p.at.To, p.spot(o)+1)
	if p.at.To-p.at.From < cell {
		limit = max(limit, p.at.From+cell)
	}
	end := p.at.To // end of the items before the one that is found
	var found *timeline.Item
	for step := p.at.Step; step < o.Steps(); step++ {
		_, to, ok := o.Extent(step)
		if !ok || to < limit {
			continue
		}
		for _, it := range p.items(o, step) {
			switch {
			case found != nil && it.From-found.From >= cell:
				p.land(found, end, cell)
				return
			case found != nil:
				if it.To-it.From > found.To-found.From {
					found = &it
				}
			case it.From >= limit || it.Track == p.at.Track && it.Step > p.at.Step && it.To > limit:
				found = &it
				if it.From-end >= idle*cell {
					p.land(found, end, cell)
					return
				}
			default:
				end = max(end, it.To)
			}
		}
	}
	if found == nil {
		p.host.Remark("this is the end of the track")
		return
	}
	p.land(found, end, cell)
}

// land goes to an item or, if it begins several cells after the given instant, to the idle time before it.
func (p *Page) land(it *timeline.Item, end, cell int64) {
	c := cursor{Item: *it}
	if it.From-end >= idle*cell {
		c.Idle, c.From, c.To, c.Unmeasured = true, end, it.From, false
	}
	p.move(c)
}

func (p *Page) left(o *timeline.Overview, cell int64) {
	limit := min(p.at.From, p.spot(o))
	if p.at.To-p.at.From < cell {
		limit = min(limit, p.at.To-cell)
	}
	begin := p.at.From // begin of the items after the one that is found
	own := p.at.Item   // the item that begins there
	if p.at.Idle {
		begin = limit // already on the idle time
	}
	var found *timeline.Item
	for step := p.at.Step; step >= 0; step-- {
		from, _, ok := o.Extent(step)
		if !ok || from >= limit {
			continue
		}
		list := p.items(o, step)
		for i := len(list) - 1; i >= 0; i-- {
			it := list[i]
			switch {
			case found != nil && found.From-it.From >= cell:
				p.move(cursor{Item: *found})
				return
			case found != nil:
				if it.To-it.From > found.To-found.From {
					found = &it
				}
			case it.From < limit:
				if begin-it.To >= idle*cell {
					p.at.Item = own
					p.move(cursor{Item: idleBefore(own, it.To), Idle: true})
					return
				}
				found = &it
			default:
				if it.From < begin {
					begin, own = it.From, it
				}
			}
		}
	}
	if found == nil {
		p.host.Remark("this is the start of the track")
		return
	}
	p.move(cursor{Item: *found})
}

// idleBefore returns the idle time between an instant and an item.
func idleBefore(it timeline.Item, from int64) timeline.Item {
	it.From, it.To, it.Unmeasured = from, it.From, false
	return it
}

// PointAt moves the cursor to the item that is drawn at a cell.
func (p *Page) PointAt(x, y, _ int) bool {
	o := p.overview()
	if o == nil || y < 0 || y >= len(p.rows) || p.rows[y] < 0 || x < gutter || x >= gutter+p.width {
		return false
	}
	from, to := p.bounds(o)
	at := from + int64((float64(x-gutter)+0.5)/float64(p.width)*float64(to-from))
	t := min(timeline.Track(p.rows[y]), timeline.GPUDispatches)
	p.point(o, t, p.rows[y]-int(t), at, false)
	return true
}
