package timeline

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/timeline"
	"gpuscope/trace/table"
	"gpuscope/tui/view"
	"gpuscope/tui/widget"
)

// search finds dispatches by name. A job looks through the whole run.
type search struct {
	text string
	job  widget.Task[searchKey, *hits]
}

type searchKey struct {
	over *timeline.Overview
	text string
}

// hits are what a search found.
type hits struct {
	plans []bool // of each plan: its dispatch matches
	steps []int  // of each step: number of dispatches that match
	total int
	text  string  // in lower case
	at    []int64 // places of the dispatches that match and have one, in order
}

// Filter lets the user type a search. It replaces no rows.
func (p *Page) Filter() *view.Filter {
	return &view.Filter{
		Text: p.search.text, Set: func(s string) { p.search.text = s },
		Label: "search", Hint: "attn.q, a kernel, or #37 (an id)",
	}
}

// load requests the hits of the text. It calls found when they are known.
func (q *search) load(j *widget.Jobs, x *analyze.Index, o *timeline.Overview, found func()) {
	if q.text == "" {
		q.job.Clear(j)
		return
	}
	was := q.job.Given.text
	text := q.text
	q.job.Want(j, searchKey{o, text}, func(ctx context.Context) (*hits, error) {
		return find(ctx, x, o, text)
	}, func(h *hits) {
		if h.total > 0 && was != q.text {
			found()
		}
	})
}

// now returns the hits, or nil if nothing is searched for.
func (q *search) now() *hits {
	if q.text == "" {
		return nil
	}
	return q.job.Value
}

// find looks for a text in the names of dispatches and kernels, or for the id of a dispatch after #.
func find(ctx context.Context, x *analyze.Index, o *timeline.Overview, text string) (*hits, error) {
	t := o.Line.Trace()
	h := &hits{
		plans: make([]bool, len(t.Plans)), steps: make([]int, len(t.Steps)), text: strings.ToLower(text),
	}
	matches := func(p *trace.Plan) bool {
		return strings.Contains(strings.ToLower(x.Name(p.Dispatch)), h.text) ||
			strings.Contains(strings.ToLower(p.Kernel), h.text)
	}
	if number, ok := strings.CutPrefix(h.text, "#"); ok {
		id, err := strconv.Atoi(number)
		matches = func(p *trace.Plan) bool { return err == nil && int(p.Dispatch) == id }
	}
	for i := range t.Plans {
		if i%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		h.plans[i] = matches(&t.Plans[i])
	}
	for i := range t.Steps {
		if i%64 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		for k := range t.Steps[i].Dispatches {
			if h.plans[t.Steps[i].Dispatches[k].Plan] {
				h.steps[i]++
			}
		}
		if h.total += h.steps[i]; h.steps[i] > 0 {
			o.Middles(i, func(at int, middle int64) {
				if h.plans[t.Steps[i].Dispatches[at].Plan] {
					h.at = append(h.at, middle)
				}
			})
		}
	}
	slices.Sort(h.at)
	return h, nil
}

// said describes the search for the title.
func (q *search) said() table.Segment {
	h := q.now()
	switch {
	case q.text == "":
		return table.Segment{}
	case h == nil:
		return table.Segment{Rank: 0, Text: "searching"}
	case h.total == 0:
		return table.Say(0, "%q: no dispatches", q.text)
	}
	return table.Say(0, "%q: %s", q.text, widget.Plural(h.total, "dispatch"))
}

// noSearch returns why there is no next hit, or "".
func (p *Page) noSearch() string {
	switch h := p.search.now(); {
	case p.search.text == "":
		return "nothing is searched for; press {search} to search"
	case h == nil || p.overview() == nil:
		return "the search is still running"
	case h.total == 0:
		return fmt.Sprintf("%q is in no name of a dispatch or a kernel", p.search.text)
	}
	return ""
}

// onHit reports whether a cursor is on a hit.
func (p *Page) onHit(c *cursor) bool { return !c.Idle && p.isHit(p.search.now(), &c.Item) }

// isHit reports whether an item is a dispatch, or a block, that the search found.
func (p *Page) isHit(h *hits, it *timeline.Item) bool {
	if h == nil || it.Unmeasured || it.Step >= len(h.steps) || h.steps[it.Step] == 0 {
		return false
	}
	s := &p.now.Trace.Steps[it.Step]
	return it.Track == timeline.GPUDispatches && it.At >= 0 && it.At < len(s.Dispatches) &&
		h.plans[s.Dispatches[it.At].Plan]
}

// hit goes to the next hit after the cursor, or to the previous one if `by` is negative.
func (p *Page) hit(by int) {
	o, h := p.overview(), p.search.now()
	if o == nil || h == nil {
		return
	}
	at := p.at.From + (p.at.To-p.at.From)/2
	timed := false
	for step := p.at.Step; step >= 0 && step < min(o.Steps(), len(h.steps)); step += by {
		if h.steps[step] == 0 {
			continue
		}
		list := p.lists.of(o, step, timeline.GPUDispatches)
		for k := range list {
			it := &list[k]
			if by < 0 {
				it = &list[len(list)-1-k]
			}
			timed = timed || !it.Unmeasured
			if !p.isHit(h, it) {
				continue
			}
			if by > 0 && it.From > at || by < 0 && it.To < at {
				p.move(cursor{Item: *it})
				return
			}
		}
	}
	switch {
	case !timed && !o.Timed:
		p.host.Remark("no dispatch was timed while its step ran, so hits have no place on the axis")
	case by > 0:
		p.host.Remark("no further hit after this one")
	default:
		p.host.Remark("no further hit before this one")
	}
}
