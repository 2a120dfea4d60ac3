package timeline

import (
	"cmp"
	"slices"
	"sort"

	"gpuscope/trace/analyze"
)

// Cell is the part of a track that one cell of a chart shows: the slices in it, summed.
type Cell struct {
	BusyNS       int64 // time of the slices in the cell
	UnmeasuredNS int64 // time about which nothing is known
	Slices       int   // number of slices in the cell, also if only a part of a slice is in it
	// Group is the number of the layer, operator or phase with the largest part of BusyNS; GroupNS is this
	// part. Group is -1 if the cell is empty.
	Group   int
	GroupNS int64
}

// Row is a row of a chart.
type Row struct {
	Track Track
	Lane  int
	Cells []Cell
	// Items are those items that are long enough to be drawn with their name: at least two cells.
	Items []Item
}

// Window is a part of the axis, divided into cells. The sums over its cells are exact: no slice is lost or
// counted twice, however small it is.
type Window struct {
	From, To int64
	Rows     []Row
	Steps    int   // number of steps that are at least partly in the window
	Kernels  []Sum // time of the dispatches in the window by kernel, longest first

	o *Overview
	n int
	// `at` is the cell that the last call of CellOf returned, and `lo` and `hi` are its bounds.
	lo, hi int64
	at     int
	sums   [Tracks][]int64 // of the tracks that are summed: the times of each cell by group
}

// Sum is the time of one layer, operator, phase or kernel.
type Sum struct {
	Name string
	NS   int64
}

// Least is the number of cells that an item needs to be drawn with its name.
const Least = 2

// Window returns the part of the axis between two instants, divided into n cells. For a step that is
// completely inside one cell, it uses the sums. For all other steps, it reads the dispatches. So its time
// depends on the number of cells and of steps, not on the number of dispatches in the run.
func (o *Overview) Window(from, to int64, n int) *Window {
	n = max(1, n)
	to = max(to, from+1)
	w := &Window{From: from, To: to, o: o, n: n}
	for t := range Tracks {
		w.Rows = append(w.Rows, Row{Track: t})
	}
	for k := 1; k < o.Lanes; k++ {
		w.Rows = append(w.Rows, Row{Track: GPUDispatches, Lane: k})
	}
	for i := range w.Rows {
		w.Rows[i].Cells = make([]Cell, n)
	}
	for _, t := range []Track{HostPhases, GPULayers} {
		w.sums[t] = make([]int64, n*len(o.groups.list))
	}
	kernels := make([]int64, len(o.kernels.list))
	s, d := &Step{}, drawer{}
	first := sort.Search(len(o.steps), func(i int) bool { return o.steps[i].reached > from })
	for i := first; i < len(o.steps) && o.steps[i].begins < to; i++ {
		sum := &o.steps[i]
		begin, end, ok := o.Extent(i)
		if !ok || end <= from || begin >= to {
			continue
		}
		w.Steps++
		if c := w.CellOf(begin); begin >= from && end <= w.Bound(c+1) {
			w.whole(c, sum, kernels)
			continue
		}
		o.step(s, i, &d)
		o.each(s, func(it *Item) { w.item(it, kernels) })
	}
	w.finish(kernels)
	return w
}

// Bound returns the instant at which a cell begins.
func (w *Window) Bound(cell int) int64 {
	length, n := w.To-w.From, int64(w.n)
	return w.From + length/n*int64(cell) + length%n*int64(cell)/n
}

// CellOf returns the index of the cell that contains an instant. For an instant before the window it returns
// -1, and for an instant after the window it returns the number of cells.
func (w *Window) CellOf(at int64) int {
	switch {
	case at >= w.lo && at < w.hi:
		return w.at
	case at < w.From:
		return -1
	case at >= w.To:
		return w.n
	}
	c := int(float64(at-w.From) / float64(w.To-w.From) * float64(w.n))
	c = min(max(c, 0), w.n-1)
	for c > 0 && w.Bound(c) > at {
		c--
	}
	for c < w.n-1 && w.Bound(c+1) <= at {
		c++
	}
	w.at, w.lo, w.hi = c, w.Bound(c), w.Bound(c+1)
	return c
}

// row returns the index of a row.
func (w *Window) row(t Track, lane int) int {
	if lane == 0 {
		return int(t)
	}
	return min(int(Tracks)+lane-1, len(w.Rows)-1)
}

// add adds a time to a cell. It adds the time of a dispatch also to the layer of the dispatch.
func (w *Window) add(row, c, group int, ns int64) {
	t := w.Rows[row].Track
	w.Rows[row].Cells[c].BusyNS += ns
	if t == GPUDispatches {
		t = GPULayers
		w.Rows[t].Cells[c].BusyNS += ns
	}
	if w.sums[t] != nil {
		w.sums[t][c*len(w.o.groups.list)+group] += ns
	}
}

// whole adds the sums of a step to the one cell that contains the whole step.
func (w *Window) whole(c int, sum *sums, kernels []int64) {
	for _, p := range sum.parts {
		w.add(w.row(Track(p.track), int(p.lane)), c, int(p.group), p.NS)
	}
	for t := range Tracks {
		w.Rows[t].Cells[c].Slices += int(sum.items[t])
		w.Rows[t].Cells[c].UnmeasuredNS += sum.unmeasured[t]
	}
	for _, p := range sum.kernels {
		kernels[p.group] += p.NS
	}
}

// item adds an item to the cells that it is in.
func (w *Window) item(it *Item, kernels []int64) {
	if it.To <= w.From || it.From >= w.To {
		return
	}
	r := w.row(it.Track, it.Lane)
	if float64(it.To-it.From)*float64(w.n) >= Least*float64(w.To-w.From) {
		w.Rows[r].Items = append(w.Rows[r].Items, *it)
	}
	from, to := max(it.From, w.From), min(it.To, w.To)
	if it.Track == GPUDispatches && !it.Unmeasured {
		kernels[it.kernel] += to - from
	}
	for c := w.CellOf(from); c < w.n && from < to; c++ {
		end := to
		if end > w.hi || c != w.at {
			end = min(to, w.Bound(c+1))
		}
		cell := &w.Rows[r].Cells[c]
		if it.Unmeasured {
			cell.UnmeasuredNS += end - from
		} else if cell.Slices++; !it.summed {
			w.add(r, c, it.group, end-from)
		}
		from = end
	}
}

// finish determines the largest group of each cell, and the order of the kernels.
func (w *Window) finish(kernels []int64) {
	groups := len(w.o.groups.list)
	for t, sums := range w.sums {
		for c := range w.Rows[t].Cells {
			cell := &w.Rows[t].Cells[c]
			if cell.Group = -1; sums == nil || cell.BusyNS == 0 {
				continue
			}
			for g, ns := range sums[c*groups : (c+1)*groups] {
				if ns > cell.GroupNS {
					cell.Group, cell.GroupNS = g, ns
				}
			}
		}
	}
	w.Kernels = sorted(kernels, &w.o.kernels)
}

// sorted returns the times that are not 0 with their names, longest first.
func sorted(of []int64, n *names) (list []Sum) {
	for i, ns := range of {
		if ns > 0 {
			list = append(list, Sum{n.list[i], ns})
		}
	}
	slices.SortStableFunc(list, func(a, b Sum) int { return cmp.Compare(b.NS, a.NS) })
	return list
}

// Sums adds up the times of the track HostPhases or GPULayers in the cells from `from` to `to` - 1. It
// returns one sum for each phase or layer, longest first.
func (w *Window) Sums(t Track, from, to int) []Sum {
	groups := len(w.o.groups.list)
	of := make([]int64, groups)
	for c := max(0, from); c < min(to, w.n); c++ {
		for g, ns := range w.sums[t][c*groups : (c+1)*groups] {
			of[g] = analyze.Add(of[g], ns)
		}
	}
	return sorted(of, &w.o.groups)
}

// Of returns the time of one phase or layer in a cell.
func (w *Window) Of(t Track, cell int, name string) int64 {
	g, ok := w.o.groups.at[name]
	if !ok {
		return 0
	}
	return w.sums[t][cell*len(w.o.groups.list)+g]
}

// Total returns the sum over all cells of a row: of the slices, and of the time about which nothing is known.
func (r *Row) Total() (busy, unmeasured int64) {
	for i := range r.Cells {
		busy += r.Cells[i].BusyNS
		unmeasured += r.Cells[i].UnmeasuredNS
	}
	return busy, unmeasured
}

// GroupName returns the name of the largest group of a cell, or "" if the cell is empty.
func (w *Window) GroupName(c *Cell) string {
	if c.Group < 0 {
		return ""
	}
	return w.o.groups.list[c.Group]
}
