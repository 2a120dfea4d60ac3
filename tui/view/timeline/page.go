// Package timeline is view 6: all recorded steps on one time axis, with tracks for the CPU and the GPU. The
// user zooms from the whole run to one dispatch.
package timeline

import (
	"context"
	"fmt"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/timeline"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
	"gpuscope/tui/command"
	"gpuscope/tui/view"
	"gpuscope/tui/widget"
)

// Page is the view. Its cursor is an item of a track, or the idle time before an item. The step of the cursor
// is the shown step of the program.
type Page struct {
	view.Basics
	host view.Host
	now  view.Snapshot
	job  widget.Task[*analyze.Index, *timeline.Overview]
	part part // the drawn part of the axis
	// width is the number of cells of the axis when it was last drawn.
	width int
	rows  []int // track row at each line of the view as last drawn, or -1
	at    cursor
	of    *timeline.Overview // what the cursor refers to
	seen  trace.DispatchID   // last dispatch that was selected in Dispatches; -1: none
	drawn drawn
	lists lists

	search search
}

// part is a part of the axis, in ns. If To is 0, it is the whole axis.
type part struct{ From, To int64 }

// cursor is the selected item. If Idle is set, the cursor is on the idle time before that item, and From and
// To are those of the idle time. Spot is the instant at which the cursor is drawn.
type cursor struct {
	timeline.Item
	Idle bool
	Spot int64
}

// New returns the view.
func New(h view.Host) *Page {
	at := cursor{Item: timeline.Item{Track: timeline.GPUSteps, Step: -1}}
	return &Page{host: h, seen: -1, width: 1, at: at}
}

// Cursor returns the item at the cursor, and whether the cursor is on the idle time before it.
func (p *Page) Cursor() (it timeline.Item, idle bool) { return p.at.Item, p.at.Idle }

// Takes returns AnySteps, so that the line below the tabs covers the selected steps.
func (p *Page) Takes() report.Takes { return report.AnySteps }

// Scrolls returns 1: the wheel goes to the next track.
func (p *Page) Scrolls() int { return 1 }

// Look returns the drawn part of the axis, which undo restores.
func (p *Page) Look() any { return p.part }

func (p *Page) Restore(look any) { p.part = look.(part) }

func (p *Page) Actions() []command.Action {
	return []command.Action{
		{Name: "mark step"},
		{Name: "go to", Now: p.goes, Run: func() { p.Open() }},
		{Name: "wider", Run: func() { p.zoom(factor) }},
		{Name: "closer", Run: func() { p.zoom(1.0 / factor) }},
		{Name: "search"},
		{Name: "next hit", Off: p.noSearch, Run: func() { p.hit(1) }},
		{Name: "previous hit", Off: p.noSearch, Run: func() { p.hit(-1) }},
		{Name: "why", Run: p.why},
		{Name: "WGSL"},
		{Name: "use kernel"},
		{Name: "variants"},
	}
}

func (p *Page) Load(j *widget.Jobs, s view.Snapshot, _ int) {
	p.now = s
	if s.Index == nil || s.Step < 0 {
		p.job.Clear(j)
		return
	}
	p.job.Want(j, s.Index, func(ctx context.Context) (*timeline.Overview, error) {
		return timeline.NewOverview(ctx, s.Index)
	}, nil)
	o := p.overview()
	if o == nil {
		return
	}
	p.search.load(j, p.job.Given, o, func() {
		if !p.onHit(&p.at) {
			p.hit(1)
		}
	})
	if p.at.Step != s.Step || p.of != o {
		p.follow(o, s.Step)
	}
	if id, ok := p.host.ChosenDispatch(); ok && id != p.seen {
		p.seen = id
		p.seek(o, id)
	}
}

// overview returns the axis of the shown data, or nil while a job computes it.
func (p *Page) overview() *timeline.Overview {
	o := p.job.Value
	if o == nil || p.now.Trace == nil || p.now.Step >= o.Steps() {
		return nil
	}
	return o
}

// follow moves the cursor to another step. In this step it selects, on the same row, the item with the same
// index as the item at the cursor, else an item with the same name, else the first item.
func (p *Page) follow(o *timeline.Overview, step int) {
	was := p.at
	list := p.itemsOf(o, step, was.Track, was.Lane)
	p.of = o
	p.at = cursor{Item: timeline.Item{Track: was.Track, Step: step}}
	if from, to, ok := o.Extent(step); ok {
		p.at.From, p.at.To = from, to
		p.at.Unmeasured = true
	}
	for i := range list {
		if i == 0 || list[i].At == was.At || list[i].Name == was.Name && list[i].Name != "" && i <= was.At {
			p.at.Item = list[i]
		}
		if list[i].At == was.At {
			break
		}
	}
	p.settle()
}

// seek moves the cursor to a dispatch of the shown step, if its time was measured.
func (p *Page) seek(o *timeline.Overview, id trace.DispatchID) {
	for _, it := range p.lists.of(o, p.now.Step, timeline.GPUDispatches) {
		if !it.Unmeasured && p.dispatch(&it) == id {
			p.at = cursor{Item: it}
			p.settle()
			return
		}
	}
}

// dispatch returns the dispatch of an item: the first one if it has several, -1 if it has none.
func (p *Page) dispatch(it *timeline.Item) trace.DispatchID {
	list := p.now.Trace.Steps[it.Step].Dispatches
	at := p.first(it)
	if at < 0 || at >= len(list) {
		return -1
	}
	return p.now.Trace.Plans[list[at].Plan].Dispatch
}

// first returns the index of the first dispatch of an item in its step, or -1 if it has none.
func (p *Page) first(it *timeline.Item) int {
	switch it.Track {
	case timeline.GPUDispatches:
		return max(0, it.At)
	case timeline.GPUSteps:
		return 0
	case timeline.GPULayers:
		s := &p.now.Trace.Steps[it.Step]
		if s.Timing == trace.TimingBlock && len(s.Blocks) > 0 {
			n := 0
			for i := range min(it.At, len(s.Blocks)) {
				n += s.Blocks[i].Dispatches
			}
			return n
		}
		for _, d := range p.lists.of(p.job.Value, it.Step, timeline.GPUDispatches) {
			if d.From >= it.From {
				return max(0, d.At)
			}
		}
	}
	return -1
}

// Launch returns the launch of the dispatch under the cursor, without its times. It returns nil if no
// dispatch is under the cursor.
func (p *Page) Launch() *analyze.Launch {
	if p.overview() == nil || p.at.Track != timeline.GPUDispatches || p.at.Idle || p.at.Unmeasured ||
		p.at.Step >= len(p.now.Trace.Steps) {
		return nil
	}
	t := p.now.Trace
	list := t.Steps[p.at.Step].Dispatches
	if p.at.At < 0 || p.at.At >= len(list) {
		return nil
	}
	plan := &t.Plans[list[p.at.At].Plan]
	d := &t.Graph.Dispatches[plan.Dispatch]
	return &analyze.Launch{
		Index: p.at.At, ID: d.ID, Dispatch: d, Op: &t.Graph.Ops[d.Op], Plan: plan,
		Kernel: p.now.Index.Kernel(plan.Kernel), Step: p.at.Step,
	}
}

// why explains the grid of the dispatch under the cursor.
func (p *Page) why() {
	l := p.Launch()
	if l == nil {
		p.host.Remark("why: go to a dispatch on the last track of the GPU")
		return
	}
	p.host.Show(view.WhyAt(p.now.Index, l.Step, l.ID, "", false))
}

func (p *Page) Copied() string {
	if o := p.overview(); o != nil {
		return strings.Join(p.facts(o), "\n")
	}
	return ""
}

// Title names the drawn part of the axis.
func (p *Page) Title(int) []table.Segment {
	o := p.overview()
	if o == nil {
		return []table.Segment{{Rank: 0, Text: "Timeline"}}
	}
	from, to := p.bounds(o)
	parts := []table.Segment{{
		Rank: 0, Text: fmt.Sprintf("the whole run: %s in %s", widget.Plural(o.Steps(), "step"),
			duration(o.Real(o.End))),
	}}
	if p.part != (part{}) {
		w := p.drawn.window
		parts[0].Text = fmt.Sprintf("%s of %s", duration(to-from), duration(o.Real(o.End)))
		if w != nil {
			parts[0].Text += ": " + widget.Plural(w.Steps, "step")
		}
	}
	parts = append(parts, p.search.said(), table.Segment{
		Rank: 2, Text: "one cell is " + duration((to-from)/int64(p.width)),
	})
	if n := len(o.Pauses); n > 0 {
		parts = append(parts, table.Segment{
			Rank: 1, Text: widget.Plural(n, "pause") + " between steps shortened",
			Short: widget.Plural(n, "pause") + " shortened",
		})
	}
	if !o.Line.Placed {
		parts = append(parts, table.Segment{
			Rank: 1, Text: "some starts were not measured: such a step follows the previous one",
			Short: "some starts not measured",
		})
	}
	return parts
}

// goes returns what enter does now.
func (p *Page) goes() string {
	o := p.overview()
	switch {
	case o == nil:
		return ""
	case p.fits(o):
		return "zoom in"
	}
	return "to Dispatches"
}

// fits reports whether enter zooms to the item at the cursor. It does not zoom to a timed dispatch, or to
// an item that already takes more than half of the drawn part.
func (p *Page) fits(o *timeline.Overview) bool {
	from, to := p.bounds(o)
	large := (p.at.To-p.at.From)*2 > to-from
	return !large && (p.at.Track != timeline.GPUDispatches || p.at.Idle || p.at.Unmeasured)
}

// Open zooms to the item at the cursor. If there is nothing to zoom to (see fits), Open shows the item's
// first dispatch in the view Dispatches instead.
func (p *Page) Open() bool {
	o := p.overview()
	if o == nil || p.at.Step != p.now.Step {
		return true
	}
	if p.fits(o) {
		margin := (p.at.To - p.at.From) / 20
		p.show(o, p.at.From-margin, p.at.To+margin)
		return true
	}
	id := p.dispatch(&p.at.Item)
	p.seen = id
	p.host.ShowDispatch(p.at.Step, id)
	return true
}

// Back shows the whole axis again, and reports whether only a part was shown.
func (p *Page) Back() bool {
	was := p.part != part{}
	p.part = part{}
	return was
}
