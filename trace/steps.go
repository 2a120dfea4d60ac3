package trace

import (
	"fmt"
	"strings"
)

// StepSummary is what a step cost and where its wall time went. Sums are 0 with Measured false where
// something was not measured.
type StepSummary struct {
	Step       *Step
	Wall       Time // CPU, whole
	Busy       Time // Σgpu: all dispatches
	Span       Time // GPU, first begin to last end
	Gaps       Time // Span - Busy
	Idle       Time // Wall - Span
	Dispatches int
	Levels     int  // 0: not recorded
	Timing     Time // modelled: what timing added to Busy, by the dispatch
	Work       Time // modelled: Busy - Timing
	Untimed    Time // wall of the same decode step with timing off, median
	Timed      Time // the same with timing
	Compiled   Time // compiling pipelines
	Floors     int  // dispatches that take no longer than an empty timed pass
	FloorBusy  Time // their part of Busy
	TokensPerS float64
	Verdict    string // what bounds the step, with the figure that says so; "" where that cannot be said
}

// minus is a - b where both were measured.
func (t Time) minus(u Time) Time {
	if !t.measured || !u.measured {
		return Time{}
	}
	return Measured(t.ns - u.ns)
}

func (t Time) plus(ns int64) Time { return Measured(t.ns + ns) }

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
		r.Gaps, r.Idle = r.Span.minus(r.Busy), r.Wall.minus(r.Span)
	}
	for _, c := range s.CPU.Compiled {
		if ns, ok := c.NS.NS(); ok {
			r.Compiled = r.Compiled.plus(ns)
		}
	}
	if s.Timing == "dispatch" {
		if per := t.Device.TimingNS(); per > 0 && r.Busy.measured {
			r.Timing = Measured(int64(per * float64(len(s.Dispatches))))
			r.Work = r.Busy.minus(r.Timing)
		}
		if o := t.Observer; o != nil && s.Phase == "decode" {
			r.Untimed, r.Timed = o.UntimedNS, o.TimedNS
		}
		for i := range s.Dispatches {
			d := &s.Dispatches[i]
			time := d.timeOf()
			if limitOf(&t.Device, &t.Plans[d.Plan], time, i == 0).Kind == FloorLimit {
				r.Floors++
				r.FloorBusy = r.FloorBusy.plus(int64(time.Median))
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
			r.Floors, ms(Measured(gaps+floor)), ms(r.Span))
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
	if r.Timing.measured {
		gpu += fmt.Sprintf(" = ~%s work + ~%s timing", ms(r.Work), ms(r.Timing))
	}
	parts = append(parts, gpu, "gaps "+ms(r.Gaps), "GPU idle "+ms(r.Idle))
	return strings.Join(parts, " │ ")
}

// ms writes a time in ms.
func ms(t Time) string {
	ns, ok := t.NS()
	if !ok {
		return Unmeasured
	}
	return fmt.Sprintf("%.2f ms", float64(ns)/1e6)
}

// msCell is a time in a column of ms.
func msCell(t Time) Cell {
	ns, ok := t.NS()
	if !ok {
		return Cell{Text: Unmeasured}
	}
	return number(float64(ns)/1e6, 2)
}

// Steps is the table of all steps.
func (x *Index) Steps() *Table {
	rows := make([]int, len(x.Trace.Steps))
	for i := range rows {
		rows[i] = i
	}
	at := func(f func(*Step) Cell) func(*int) Cell {
		return func(i *int) Cell { return f(&x.Trace.Steps[*i]) }
	}
	gpu := func(f func(*GPU) Time) func(*int) Cell {
		return at(func(s *Step) Cell {
			if s.GPU == nil {
				return Cell{Text: Unmeasured}
			}
			return msCell(f(s.GPU))
		})
	}
	summaries := make([]*StepSummary, len(rows)) // made once: several columns ask for each
	summary := func(f func(*StepSummary) Cell) func(*int) Cell {
		return func(i *int) Cell {
			if summaries[*i] == nil {
				summaries[*i] = x.Summary(*i)
			}
			return f(summaries[*i])
		}
	}
	t := newTable("steps", []column[int]{
		{
			Column{Name: "step", Title: "step", Unit: "step", Right: true, Width: 80, Tree: true},
			at(func(s *Step) Cell { return count(s.Index) }),
		},
		{Column{Name: "phase", Title: "phase", Width: 80}, at(func(s *Step) Cell { return text(s.Phase) })},
		{Column{
			Name: "position", Title: "pos", Unit: "position", Right: true, Width: 80,
			Doc: "first position of the step",
		}, at(func(s *Step) Cell { return count(s.Position) })},
		{Column{
			Name: "tokens", Title: "in", Unit: "tokens", Right: true, Width: 80,
			Doc: "tokens that went in",
		}, at(func(s *Step) Cell { return count(len(s.Tokens)) })},
		{
			Column{Name: "wall_ms", Title: "wall ms", Unit: "ms", Right: true, Width: 80},
			at(func(s *Step) Cell { return msCell(s.CPU.TotalNS) }),
		},
		{Column{
			Name: "gpu_ms", Title: "Σgpu ms", Unit: "ms", Right: true, Width: 80,
			Doc: "sum of the dispatches",
		}, gpu(func(g *GPU) Time { return g.BusyNS })},
		{
			Column{
				Name: "gaps_ms", Title: "gaps ms", Unit: "ms", Right: true, Width: 80,
				Doc: "GPU span without its dispatches",
			},
			summary(func(s *StepSummary) Cell { return msCell(s.Gaps) }),
		},
		{Column{
			Name: "idle_ms", Title: "idle ms", Unit: "ms", Right: true, Width: 80,
			Doc: "wall without the GPU span",
		}, summary(func(s *StepSummary) Cell { return msCell(s.Idle) })},
		{
			Column{Name: "resize_ms", Title: "resize ms", Unit: "ms", Right: true, Width: 140},
			at(func(s *Step) Cell { return msCell(s.CPU.ResizeNS) }),
		},
		{
			Column{Name: "upload_ms", Title: "upload ms", Unit: "ms", Right: true, Width: 140},
			at(func(s *Step) Cell { return msCell(s.CPU.UploadNS) }),
		},
		{
			Column{Name: "encode_ms", Title: "encode ms", Unit: "ms", Right: true, Width: 140},
			at(func(s *Step) Cell { return msCell(s.CPU.EncodeNS) }),
		},
		{
			Column{Name: "submit_ms", Title: "submit ms", Unit: "ms", Right: true, Width: 140},
			at(func(s *Step) Cell { return msCell(s.CPU.SubmitNS) }),
		},
		{
			Column{Name: "wait_ms", Title: "wait ms", Unit: "ms", Right: true, Width: 140},
			at(func(s *Step) Cell { return msCell(s.CPU.WaitNS) }),
		},
		{
			Column{Name: "tokens_per_s", Title: "tok/s", Unit: "tokens/s", Right: true, Width: 80},
			summary(func(s *StepSummary) Cell {
				if s.TokensPerS == 0 {
					return Cell{Text: Unmeasured}
				}
				return number(s.TokensPerS, 1)
			}),
		},
		{
			Column{Name: "dispatches", Title: "disp", Unit: "dispatches", Right: true, Width: 80},
			at(func(s *Step) Cell { return count(len(s.Dispatches)) }),
		},
		{Column{
			Name: "levels", Title: "levels", Unit: "levels", Right: true, Width: 140,
			Doc: "runs of dispatches between barriers",
		}, summary(func(s *StepSummary) Cell {
			if s.Levels == 0 {
				return Cell{}
			}
			return count(s.Levels)
		})},
		{
			Column{Name: "passes", Title: "passes", Unit: "passes", Right: true, Width: 140},
			at(func(s *Step) Cell { return count(s.CPU.Passes) }),
		},
		{
			Column{Name: "submits", Title: "submits", Unit: "submits", Right: true, Width: 200},
			at(func(s *Step) Cell { return count(s.CPU.Submits) }),
		},
		{
			Column{Name: "writes", Title: "writes", Unit: "writes", Right: true, Width: 140},
			at(func(s *Step) Cell { return count(s.CPU.Writes) }),
		},
		{
			Column{Name: "write_bytes", Title: "bytes", Unit: "bytes", Right: true, Width: 140},
			at(func(s *Step) Cell { return count(s.CPU.WriteBytes) }),
		},
		{
			Column{Name: "bind_groups", Title: "bind groups", Unit: "bind groups", Right: true, Width: 200},
			at(func(s *Step) Cell { return count(s.CPU.BindGroups) }),
		},
		{
			Column{Name: "polls", Title: "polls", Unit: "polls", Right: true, Width: 200},
			at(func(s *Step) Cell { return count(s.CPU.Polls) }),
		},
		{
			Column{Name: "gc_ms", Title: "gc ms", Unit: "ms", Right: true, Width: 200},
			at(func(s *Step) Cell { return msCell(s.CPU.GCNS) }),
		},
		{
			Column{Name: "compiled", Title: "compiled", Unit: "kernels", Right: true, Width: 200},
			at(func(s *Step) Cell { return count(len(s.CPU.Compiled)) }),
		},
		{
			Column{Name: "timing", Title: "timing", Width: 80},
			at(func(s *Step) Cell { return text(s.Timing) }),
		},
		{
			Column{
				Name: "cold", Title: "cold", Width: 80,
				Doc: "after idle, with a compile or the first use of a route: left out of medians",
			},
			at(func(s *Step) Cell {
				if s.Cold {
					return text("cold")
				}
				return Cell{}
			}),
		},
		{Column{Name: "token", Title: "out", Unit: "id", Right: true, Width: 140}, at(func(s *Step) Cell {
			if s.Token == nil {
				return Cell{}
			}
			return count(*s.Token)
		})},
		{Column{Name: "text", Title: "text", Width: 80}, at(func(s *Step) Cell {
			if s.Token == nil {
				return Cell{}
			}
			return text(fmt.Sprintf("%q", s.Text))
		})},
	}, rows, func(i *int) Row {
		return Row{Key: fmt.Sprintf("s%d", x.Trace.Steps[*i].Index), Parent: -1}
	})
	if n := x.Trace.DroppedSteps; n > 0 {
		t.Notes = append(t.Notes,
			fmt.Sprintf("the %d oldest steps were dropped: the recorder's byte budget was reached", n))
	}
	return t
}
