package tracks

import (
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/timeline"
)

// Span is a part of the time of a step. From and To are in ns from the start of the step.
type Span struct {
	Name     string
	From, To int64
	// Busy holds the parts of the span in which the GPU worked, or nil if neither dispatches nor blocks were
	// timed.
	Busy []Span
	// Dispatches is the number of dispatches in the span. First is the index of the first of them in the
	// step.
	First, Dispatches int
}

// NS returns the length of the span in ns.
func (s *Span) NS() int64 { return s.To - s.From }

// Tracks is the content of the time axis of a step: the spans of the host (CPU) and those of the GPU.
type Tracks struct {
	End      int64 // end of the axis, in ns from the start of the step
	CPU, GPU []Span
	// Placed reports that the GPU spans are at measured times. If it is false, they start directly after the
	// submit.
	Placed bool
	// Runs is the number of runs of the step: the recorded run and its repeats. It is 0 if the step was not
	// repeated, or if the repeats timed only the whole step.
	Runs int
}

// Of returns the tracks of a recorded step. The CPU spans follow each other in the order of the phases of a
// step. A wait is one span, even if submits interrupted it. Phases that were not measured are left out.
func Of(x *analyze.Index, step int) *Tracks {
	s := &x.Trace.Steps[step]
	_, repeats := x.BusyOf(s)
	r := &Tracks{}
	if repeats > 0 && !analyze.TimedWhole(s) {
		r.Runs = repeats + 1
	}
	at := int64(0)
	for p := range timeline.Phases(&s.CPU) {
		at = analyze.Add(p.At, p.NS)
		r.CPU = append(r.CPU, Span{Name: p.Name, From: p.At, To: at})
	}
	total, _ := s.CPU.TotalNS.NS()
	r.End = max(at, total)
	gpuTrack(x, r, s)
	return r
}

// gpuTrack adds the GPU spans to the tracks. They start at the GPU's first tick or, if that tick is not
// known, after the submit.
func gpuTrack(x *analyze.Index, r *Tracks, s *trace.Step) {
	gpu := analyze.GPUOf(s)
	span, ok := gpu.SpanNS.NS()
	if !ok {
		return
	}
	from, _, placed := timeline.GPUStart(s)
	from, r.Placed = max(0, from), placed
	r.End = max(r.End, analyze.Add(from, span))
	start, _ := gpu.StartNS.NS()
	place := func(t trace.Time, ns trace.Time) (Span, bool) {
		begin, ok1 := t.NS()
		length, ok2 := ns.NS()
		begin = analyze.Add(begin, analyze.Add(from, -start))
		return Span{From: begin, To: analyze.Add(begin, length)}, ok1 && ok2
	}
	if len(s.Blocks) > 0 && s.Timing == trace.TimingBlock {
		first := 0
		for i := range s.Blocks {
			b := &s.Blocks[i]
			if p, ok := place(b.StartNS, b.GPUNS); ok {
				p.Name = strings.Replace(b.Name, "layers.", "L", 1)
				p.First, p.Dispatches = first, b.Dispatches
				p.Busy = []Span{p}
				r.GPU = append(r.GPU, p)
			}
			first += b.Dispatches
		}
	} else {
		for i := range s.Dispatches {
			p, ok := place(s.Dispatches[i].StartNS, s.Dispatches[i].GPUNS)
			if !ok {
				continue
			}
			name := blockOf(x, x.Trace.Plans[s.Dispatches[i].Plan].Dispatch)
			n := len(r.GPU)
			if n == 0 || r.GPU[n-1].Name != name {
				r.GPU = append(r.GPU, Span{Name: name, From: p.From, First: i})
				n++
			}
			last := &r.GPU[n-1]
			last.To, last.Dispatches = max(last.To, p.To), last.Dispatches+1
			last.Busy = append(last.Busy, p)
		}
	}
	if len(r.GPU) == 0 {
		r.GPU = []Span{{
			Name: "the step", From: from, To: analyze.Add(from, span),
			Dispatches: len(s.Dispatches),
		}}
	}
}

// blockOf returns the name of the part of the model to which a dispatch belongs: its layer, or its operator
// if it is in no layer.
func blockOf(x *analyze.Index, id trace.DispatchID) string {
	o := &x.Trace.Graph.Ops[x.Trace.Graph.Dispatches[id].Op]
	if o.Layer != nil {
		return analyze.LayerName(*o.Layer)
	}
	name, _, _ := strings.Cut(o.ShortName(), " ")
	return name
}

// Inside returns one span for each dispatch in a GPU span, in order. If the dispatches were not timed, Inside
// returns nil.
func Inside(x *analyze.Index, step int, part *Span) []Span {
	s := &x.Trace.Steps[step]
	list := make([]Span, 0, len(part.Busy))
	if part.Dispatches != len(part.Busy) || part.First+part.Dispatches > len(s.Dispatches) {
		return nil
	}
	for i, p := range part.Busy {
		d := &x.Trace.Graph.Dispatches[x.Trace.Plans[s.Dispatches[part.First+i].Plan].Dispatch]
		p.Name = analyze.Label(&x.Trace.Graph.Ops[d.Op], d)
		p.First, p.Dispatches, p.Busy = part.First+i, 1, []Span{p}
		list = append(list, p)
	}
	return list
}

// ColdStart returns everything that happens before the first token is known: the phases of opening the model,
// and the first step. The first step is left out if the trace does not have it. ColdStart returns nil if the
// trace has no phases of opening.
func ColdStart(x *analyze.Index) []trace.Opening {
	t := x.Trace
	if len(t.Opening) == 0 || len(t.Steps) == 0 || t.Steps[0].Index != 0 {
		return t.Opening
	}
	list := append([]trace.Opening(nil), t.Opening...)
	return append(list, trace.Opening{Phase: "first step", NS: t.Steps[0].CPU.TotalNS})
}
