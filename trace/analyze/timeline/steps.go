package timeline

import (
	"cmp"
	"iter"
	"slices"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
)

// MaxLanes is the number of lanes of the GPU's queue. A slice that overlaps slices in all lanes is not
// drawn.
const MaxLanes = 16

// Steps returns the steps in order, beginning with the step of the given index. A Step and its slices may be
// used only until the next one is requested. The lanes of the first step that is requested begin empty.
func (t *Timeline) Steps(from int) iter.Seq[*Step] {
	return func(yield func(*Step) bool) {
		s := &Step{}
		d := drawer{}
		for i := max(0, from); i < len(t.places); i++ {
			t.step(s, i, &d)
			if !yield(s) {
				return
			}
		}
	}
}

// drawer holds, for each lane of the GPU's tracks, the instant up to which it is in use.
type drawer struct{ spans, queue []lane }

// empty forgets all earlier steps.
func (d *drawer) empty() { d.spans, d.queue = d.spans[:0], d.queue[:0] }

// lane is a track on which slices may not overlap.
type lane struct {
	used bool
	end  int64 // last instant in use
	last int   // index of the last slice in the list of the current step; -1 if it is of an earlier step
}

// step fills in a step and its slices. If d is nil, it leaves out the slices of the GPU.
func (t *Timeline) step(s *Step, i int, d *drawer) {
	p := &t.places[i]
	rec := &t.x.Trace.Steps[i]
	*s = Step{
		Step: rec, At: i, From: p.host, To: p.hostEnd, Start: p.host, Next: AxisEnd, Placed: p.placed,
		GPUPlaced: p.gpuPlaced, ShiftNS: p.moved, Host: s.Host[:0], GPU: s.GPU[:0],
	}
	if i+1 < len(t.places) {
		s.Next = t.places[i+1].host
	}
	if p.onGPU {
		s.From, s.To = min(s.From, p.gpu), max(s.To, p.gpuEnd)
	}
	s.Host = hostSlices(s.Host, rec, s.Start, s.Next-1)
	if d != nil {
		t.gpuSlices(s, p, rec, d)
	}
}

// gpuSlices fills in the slices of the GPU.
func (t *Timeline) gpuSlices(s *Step, p *place, rec *trace.Step, d *drawer) {
	if ns, ok := analyze.GPUOf(rec).SpanNS.NS(); ok {
		s.GPU = append(s.GPU, Slice{Kind: SpanSlice, Name: string(rec.Phase), From: p.after, NS: ns})
		startStep(d.spans)
		// A span ends before the next one begins, because both are on one track.
		put(s.GPU, 0, &d.spans, 1, min(p.gpuLimit-1, analyze.Add(p.after, ns)))
	}
	s.GPU = t.queueSlices(s.GPU, rec, p, d)
}

// hostSlices appends the step and its phases to a list. No slice extends beyond the limit.
func hostSlices(list []Slice, s *trace.Step, from, limit int64) []Slice {
	if total, ok := s.CPU.TotalNS.NS(); ok {
		to := max(from, min(analyze.Add(from, total), limit))
		list = append(list, Slice{Kind: StepSlice, Name: string(s.Phase), From: from, To: to, NS: total})
		limit = to - 1
	}
	for ph := range Phases(&s.CPU) {
		at := onAxis(analyze.Add(from, ph.At))
		if n := len(list); n > 0 && list[n-1].Kind == PhaseSlice {
			before := &list[n-1]
			before.To = max(before.From, min(before.To, at-1))
		}
		to := max(at, min(analyze.Add(at, ph.NS), limit))
		list = append(list, Slice{Kind: PhaseSlice, Name: ph.Name, From: at, To: to, NS: ph.NS})
	}
	return list
}

// queueSlices appends the blocks or the dispatches to a list.
func (t *Timeline) queueSlices(list []Slice, rec *trace.Step, p *place, d *drawer) []Slice {
	first := len(list)
	blocks, sorted := byBlock(rec), true
	p.eachPlace(rec, func(i int, from, ns int64) {
		s := Slice{Kind: DispatchSlice, From: onAxis(from), NS: ns, At: i}
		if blocks {
			s.Kind, s.Name = BlockSlice, rec.Blocks[i].Name
		} else {
			s.Name = t.x.Trace.Plans[rec.Dispatches[i].Plan].Kernel
		}
		sorted = sorted && (len(list) == first || list[len(list)-1].From <= s.From)
		list = append(list, s)
	})
	if !sorted {
		slices.SortStableFunc(list[first:], func(a, b Slice) int { return cmp.Compare(a.From, b.From) })
	}
	startStep(d.queue)
	for i := first; i < len(list); i++ {
		s := &list[i]
		end := min(analyze.Add(s.From, s.NS), AxisEnd)
		if end >= p.gpuLimit && end <= p.gpuLimit+1 && s.From < p.gpuLimit-1 {
			end = p.gpuLimit - 1 // the next step begins here
		}
		put(list, i, &d.queue, MaxLanes, end)
	}
	return list
}

// startStep begins a new step: put does not change the slices of earlier steps any more.
func startStep(lanes []lane) {
	for k := range lanes {
		lanes[k].last = -1
	}
}

// put chooses the lane of slice i of a list. The slice ends at the instant `end`. The caller must put the
// slices in the order of their starts.
func put(list []Slice, i int, lanes *[]lane, most int, end int64) {
	s := &list[i]
	s.To = s.From
	if end <= s.From {
		return
	}
	for k := range most {
		if k == len(*lanes) {
			*lanes = append(*lanes, lane{last: -1})
		}
		l := &(*lanes)[k]
		if l.used && l.end >= s.From {
			// If the last slice ends where this one begins, or 1 ns later because times were rounded, the
			// last slice is drawn shorter.
			if l.last < 0 || l.end > s.From+1 || list[l.last].From >= s.From-1 {
				continue
			}
			list[l.last].To = s.From - 1
		}
		s.To, s.Lane = end, k
		*l = lane{used: true, end: end, last: i}
		return
	}
}
