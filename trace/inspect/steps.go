package inspect

import (
	"fmt"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/table"
)

// StepSummary is what a step cost and where its wall time went. Sums are 0 with Measured false where
// something was not measured.
type StepSummary struct {
	Step       *trace.Step
	Wall       trace.Time // CPU, whole
	Busy       trace.Time // Σgpu: all dispatches
	Span       trace.Time // GPU, first begin to last end
	Gaps       trace.Time // Span - Busy
	Idle       trace.Time // Wall - Span
	Dispatches int
	Levels     int        // 0: not recorded
	Timing     trace.Time // modelled: what timing added to Busy, by the dispatch
	Work       trace.Time // modelled: Busy - Timing
	Untimed    trace.Time // wall of the same decode step with timing off, median
	Timed      trace.Time // the same with timing
	Compiled   trace.Time // compiling pipelines
	Floors     int        // dispatches that take no longer than an empty timed pass
	FloorBusy  trace.Time // their part of Busy
	TokensPerS float64
	Verdict    string // what bounds the step, with the figure that says so; "" where that cannot be said
}

// measured says whether there is a time at all.
func measured(t trace.Time) bool {
	_, ok := t.NS()
	return ok
}

// minus is a - b where both were measured.
func minus(t, u trace.Time) trace.Time {
	a, ok := t.NS()
	b, both := u.NS()
	if !ok || !both {
		return trace.Time{}
	}
	return trace.Measured(a - b)
}

// plus is a time with more added; what was not measured counts as nothing.
func plus(t trace.Time, ns int64) trace.Time {
	before, _ := t.NS()
	return trace.Measured(before + ns)
}

// Summary computes the summary of a step.
func (x *Index) Summary(step int) *StepSummary {
	t := x.Trace
	s := &t.Steps[step]
	r := &StepSummary{
		Step: s, Wall: s.CPU.TotalNS, Dispatches: len(s.Dispatches),
		Levels: len(x.levelStarts(step)),
	}
	if s.GPU != nil {
		r.Busy, r.Span = s.GPU.BusyNS, s.GPU.SpanNS
		r.Gaps, r.Idle = minus(r.Span, r.Busy), minus(r.Wall, r.Span)
	}
	for _, c := range s.CPU.Compiled {
		if ns, ok := c.NS.NS(); ok {
			r.Compiled = plus(r.Compiled, ns)
		}
	}
	if s.Timing == "dispatch" {
		if per := t.Device.TimingNS(); measured(r.Busy) && per > 0 {
			r.Timing = trace.Measured(int64(per * float64(len(s.Dispatches))))
			r.Work = minus(r.Busy, r.Timing)
		}
		if o := t.Observer; o != nil && s.Phase == "decode" {
			r.Untimed, r.Timed = o.UntimedNS, o.TimedNS
		}
		for i := range s.Dispatches {
			d := &s.Dispatches[i]
			time := timeOf(d)
			if limitOf(&t.Device, &t.Plans[d.Plan], time, i == 0).Kind == FloorLimit {
				r.Floors++
				r.FloorBusy = plus(r.FloorBusy, int64(time.Median))
			}
		}
	}
	if ns, ok := r.Wall.NS(); ok && ns > 0 && len(s.Tokens) > 0 {
		r.TokensPerS = float64(len(s.Tokens)) * 1e9 / float64(ns)
	}
	r.Verdict = r.verdict()
	return r
}

// verdict: where most of the wall time the GPU was idle, the CPU bounds the step; else, where most of the
// GPU's time went into dispatches at the floor or gaps between dispatches, latency does; else the GPU.
func (r *StepSummary) verdict() string {
	wall, ok1 := r.Wall.NS()
	span, ok2 := r.Span.NS()
	if !ok1 || !ok2 || wall <= 0 || span <= 0 {
		return ""
	}
	if 2*span < wall {
		return fmt.Sprintf("CPU-bound: the GPU is idle for %s of %s", ms(r.Idle), ms(r.Wall))
	}
	gaps, _ := r.Gaps.NS()
	floor, _ := r.FloorBusy.NS()
	if 2*(gaps+floor) > span {
		return fmt.Sprintf("latency-bound: %d dispatches at the floor and the gaps are %s of %s GPU span",
			r.Floors, ms(trace.Measured(gaps+floor)), ms(r.Span))
	}
	return fmt.Sprintf("GPU-bound: GPU span is %s of %s", ms(r.Span), ms(r.Wall))
}

// Line is `wall | Σgpu = work + timing | gaps | idle`.
func (r *StepSummary) Line() string {
	parts := []string{"wall " + ms(r.Wall)}
	if untimed, ok := r.Untimed.NS(); ok && untimed > 0 {
		timed, _ := r.Timed.NS()
		parts[0] = fmt.Sprintf("wall %s (%s untimed, %s timed, %+.0f%%)", ms(r.Wall), ms(r.Untimed),
			ms(r.Timed), 100*float64(timed-untimed)/float64(untimed))
	}
	gpu := "Σgpu " + ms(r.Busy)
	if measured(r.Timing) {
		gpu += fmt.Sprintf(" = ~%s work + ~%s timing", ms(r.Work), ms(r.Timing))
	}
	parts = append(parts, gpu, "gaps "+ms(r.Gaps), "GPU idle "+ms(r.Idle))
	return strings.Join(parts, " │ ")
}

// ms writes a time in ms.
func ms(t trace.Time) string {
	ns, ok := t.NS()
	if !ok {
		return table.Unmeasured
	}
	return fmt.Sprintf("%.2f ms", float64(ns)/1e6)
}

// msCell is a time in a column of ms.
func msCell(t trace.Time) table.Cell {
	ns, ok := t.NS()
	if !ok {
		return table.Cell{Text: table.Unmeasured}
	}
	return table.Number(float64(ns)/1e6, 2)
}

// Steps is the table of all steps.
func (x *Index) Steps() *table.Table {
	rows := make([]table.Row, len(x.Trace.Steps))
	for i := range rows {
		rows[i] = table.Row{Key: fmt.Sprintf("s%d", x.Trace.Steps[i].Index), Parent: -1}
	}
	at := func(f func(*trace.Step) table.Cell) func(int) table.Cell {
		return func(i int) table.Cell { return f(&x.Trace.Steps[i]) }
	}
	gpu := func(f func(*trace.GPU) trace.Time) func(int) table.Cell {
		return at(func(s *trace.Step) table.Cell {
			if s.GPU == nil {
				return table.Cell{Text: table.Unmeasured}
			}
			return msCell(f(s.GPU))
		})
	}
	summaries := make([]*StepSummary, len(rows)) // made once: several columns ask for each
	summary := func(f func(*StepSummary) table.Cell) func(int) table.Cell {
		return func(i int) table.Cell {
			if summaries[i] == nil {
				summaries[i] = x.Summary(i)
			}
			return f(summaries[i])
		}
	}
	t := table.New("steps", []table.Column{
		{
			Name: "step", Title: "step", Unit: "step", Right: true, Width: 80, Tree: true,
			Of: at(func(s *trace.Step) table.Cell { return table.Count(s.Index) }),
		},
		{
			Name: "phase", Title: "phase", Width: 80,
			Of: at(func(s *trace.Step) table.Cell { return table.Text(s.Phase) }),
		},
		{
			Name: "position", Title: "pos", Unit: "position", Right: true, Width: 80,
			Doc: "first position of the step",
			Of:  at(func(s *trace.Step) table.Cell { return table.Count(s.Position) }),
		},
		{
			Name: "tokens", Title: "in", Unit: "tokens", Right: true, Width: 80,
			Doc: "tokens that went in",
			Of:  at(func(s *trace.Step) table.Cell { return table.Count(len(s.Tokens)) }),
		},
		{
			Name: "wall_ms", Title: "wall ms", Unit: "ms", Right: true, Width: 80,
			Of: at(func(s *trace.Step) table.Cell { return msCell(s.CPU.TotalNS) }),
		},
		{
			Name: "gpu_ms", Title: "Σgpu ms", Unit: "ms", Right: true, Width: 80,
			Doc: "sum of the dispatches",
			Of:  gpu(func(g *trace.GPU) trace.Time { return g.BusyNS }),
		},
		{
			Name: "gaps_ms", Title: "gaps ms", Unit: "ms", Right: true, Width: 80,
			Doc: "GPU span without its dispatches",
			Of:  summary(func(s *StepSummary) table.Cell { return msCell(s.Gaps) }),
		},
		{
			Name: "idle_ms", Title: "idle ms", Unit: "ms", Right: true, Width: 80,
			Doc: "wall without the GPU span",
			Of:  summary(func(s *StepSummary) table.Cell { return msCell(s.Idle) }),
		},
		{
			Name: "resize_ms", Title: "resize ms", Unit: "ms", Right: true, Width: 140,
			Of: at(func(s *trace.Step) table.Cell { return msCell(s.CPU.ResizeNS) }),
		},
		{
			Name: "upload_ms", Title: "upload ms", Unit: "ms", Right: true, Width: 140,
			Of: at(func(s *trace.Step) table.Cell { return msCell(s.CPU.UploadNS) }),
		},
		{
			Name: "encode_ms", Title: "encode ms", Unit: "ms", Right: true, Width: 140,
			Of: at(func(s *trace.Step) table.Cell { return msCell(s.CPU.EncodeNS) }),
		},
		{
			Name: "submit_ms", Title: "submit ms", Unit: "ms", Right: true, Width: 140,
			Of: at(func(s *trace.Step) table.Cell { return msCell(s.CPU.SubmitNS) }),
		},
		{
			Name: "wait_ms", Title: "wait ms", Unit: "ms", Right: true, Width: 140,
			Of: at(func(s *trace.Step) table.Cell { return msCell(s.CPU.WaitNS) }),
		},
		{
			Name: "tokens_per_s", Title: "tok/s", Unit: "tokens/s", Right: true, Width: 80,
			Of: summary(func(s *StepSummary) table.Cell {
				if s.TokensPerS == 0 {
					return table.Cell{Text: table.Unmeasured}
				}
				return table.Number(s.TokensPerS, 1)
			}),
		},
		{
			Name: "dispatches", Title: "disp", Unit: "dispatches", Right: true, Width: 80,
			Of: at(func(s *trace.Step) table.Cell { return table.Count(len(s.Dispatches)) }),
		},
		{
			Name: "levels", Title: "levels", Unit: "levels", Right: true, Width: 140,
			Doc: "runs of dispatches between barriers",
			Of: summary(func(s *StepSummary) table.Cell {
				if s.Levels == 0 {
					return table.Cell{}
				}
				return table.Count(s.Levels)
			}),
		},
		{
			Name: "passes", Title: "passes", Unit: "passes", Right: true, Width: 140,
			Of: at(func(s *trace.Step) table.Cell { return table.Count(s.CPU.Passes) }),
		},
		{
			Name: "submits", Title: "submits", Unit: "submits", Right: true, Width: 200,
			Of: at(func(s *trace.Step) table.Cell { return table.Count(s.CPU.Submits) }),
		},
		{
			Name: "writes", Title: "writes", Unit: "writes", Right: true, Width: 140,
			Of: at(func(s *trace.Step) table.Cell { return table.Count(s.CPU.Writes) }),
		},
		{
			Name: "write_bytes", Title: "bytes", Unit: "bytes", Right: true, Width: 140,
			Of: at(func(s *trace.Step) table.Cell { return table.Count(s.CPU.WriteBytes) }),
		},
		{
			Name: "bind_groups", Title: "bind groups", Unit: "bind groups", Right: true, Width: 200,
			Of: at(func(s *trace.Step) table.Cell { return table.Count(s.CPU.BindGroups) }),
		},
		{
			Name: "polls", Title: "polls", Unit: "polls", Right: true, Width: 200,
			Of: at(func(s *trace.Step) table.Cell { return table.Count(s.CPU.Polls) }),
		},
		{
			Name: "gc_ms", Title: "gc ms", Unit: "ms", Right: true, Width: 200,
			Of: at(func(s *trace.Step) table.Cell { return msCell(s.CPU.GCNS) }),
		},
		{
			Name: "compiled", Title: "compiled", Unit: "kernels", Right: true, Width: 200,
			Of: at(func(s *trace.Step) table.Cell { return table.Count(len(s.CPU.Compiled)) }),
		},
		{
			Name: "timing", Title: "timing", Width: 80,
			Of: at(func(s *trace.Step) table.Cell { return table.Text(s.Timing) }),
		},
		{
			Name: "cold", Title: "cold", Width: 80,
			Doc: "after idle, with a compile or the first use of a route: left out of medians",
			Of: at(func(s *trace.Step) table.Cell {
				if s.Cold {
					return table.Text("cold")
				}
				return table.Cell{}
			}),
		},
		{
			Name: "token", Title: "out", Unit: "id", Right: true, Width: 140,
			Of: at(func(s *trace.Step) table.Cell {
				if s.Token == nil {
					return table.Cell{}
				}
				return table.Count(*s.Token)
			}),
		},
		{
			Name: "text", Title: "text", Width: 80,
			Of: at(func(s *trace.Step) table.Cell {
				if s.Token == nil {
					return table.Cell{}
				}
				return table.Text(fmt.Sprintf("%q", s.Text))
			}),
		},
	}, rows)
	if n := x.Trace.DroppedSteps; n > 0 {
		t.Notes = append(t.Notes,
			fmt.Sprintf("the %d oldest steps were dropped: the recorder's byte budget was reached", n))
	}
	return t
}
