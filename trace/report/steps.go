package report

import (
	"context"
	"fmt"
	"slices"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/table"
)

// msCell returns the cell of a time in a column of milliseconds.
func msCell(t trace.Time) table.Cell {
	ns, ok := t.NS()
	if !ok {
		return table.Missing()
	}
	return table.Number(float64(ns)/1e6, 2)
}

func init() {
	Register(Table{
		Name: "steps", Takes: WholeRun, Compares: true,
		Doc: "every step: phase, position, the parts of its wall time, counters",
		Of: func(ctx context.Context, x *analyze.Index, o analyze.Options) (*table.Table, error) {
			// BusyOf caches its result, so drawing a frame does not have to sum the repeats.
			for i := range x.Trace.Steps {
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
				x.BusyOf(&x.Trace.Steps[i])
			}
			return Steps(x, o.Selection, o.Baseline), nil
		},
	})
}

// Steps returns the table of the selected steps, including cold steps. An empty selection means all steps.
// If there is a baseline, each step is compared with it.
func Steps(x *analyze.Index, selection analyze.Selection, baseline *analyze.Baseline) *table.Table {
	rows, step := x.Rows, func(row int) int { return row }
	if selection.Steps != nil {
		step = func(row int) int { return selection.Steps[row] }
		rows = table.Flat(len(selection.Steps), func(row int) string { return x.Rows[step(row)].Key })
	}
	at := func(f func(*trace.Step) table.Cell) func(int) table.Cell {
		return func(row int) table.Cell { return f(&x.Trace.Steps[step(row)]) }
	}
	time := func(f func(*trace.Step) trace.Time) func(int) table.Cell {
		return at(func(s *trace.Step) table.Cell { return msCell(f(s)) })
	}
	busy := func(s *trace.Step) trace.Time {
		ns, _ := x.BusyOf(s)
		return ns
	}
	columns := []table.Column{
		{
			Name: "step", Title: "step", Unit: "step", Is: table.Exact, Right: true, Width: 80, Tree: true,
			Doc: "index of the step",
			Of:  at(func(s *trace.Step) table.Cell { return table.Count(s.Index) }),
		},
		{
			Name: "phase", Title: "phase", Width: 80,
			Doc: "prefill, decode or execute",
			Of:  at(func(s *trace.Step) table.Cell { return table.Text(s.Phase) }),
		},
		{
			Name: "position", Title: "pos", Unit: "position", Is: table.Exact, Right: true, Width: 80,
			Doc: "first position of the step",
			Of:  at(func(s *trace.Step) table.Cell { return table.Count(s.Position) }),
		},
		{
			Name: "tokens", Title: "in", Unit: "tokens", Is: table.Exact, Right: true, Width: 80,
			Doc: "number of input tokens",
			Of:  at(func(s *trace.Step) table.Cell { return table.Count(len(s.Tokens)) }),
		},
		{
			Name: "wall_ms", Title: "wall ms", Unit: "ms", Is: table.Measured, Right: true, Width: 80,
			Doc: "wall time of the step; includes the CPU and GPU times in the next columns",
			Of:  time(func(s *trace.Step) trace.Time { return s.CPU.TotalNS }),
		},
		{
			Name: "gpu_ms", Title: "Σgpu ms", Unit: "ms", Is: table.Measured, Right: true, Width: 80,
			Doc: "sum of the GPU times of all dispatches, each timed in isolation; medians if the step was repeated",
			Of:  time(busy),
		},
		{
			Name: "gaps_ms", Title: "span idle ms", Unit: "ms", Is: table.Measured, Right: true, Width: 80,
			Doc: "time during which the GPU is idle between dispatches: span minus Σgpu; not measured for repeats",
			Of: time(func(s *trace.Step) trace.Time {
				if analyze.Repeated(s) {
					return trace.Time{}
				}
				return analyze.Minus(analyze.GPUOf(s).SpanNS, analyze.GPUOf(s).BusyNS)
			}),
		},
		{
			Name: "idle_ms", Title: "idle ms", Unit: "ms", Is: table.Measured, Right: true, Width: 80,
			Doc: "time during which the GPU is idle before and after its span: wall minus span",
			Of: time(func(s *trace.Step) trace.Time {
				return analyze.Minus(s.CPU.TotalNS, analyze.GPUOf(s).SpanNS)
			}),
		},
		{
			Name: "resize_ms", Title: "resize ms", Unit: "ms", Is: table.Measured, Right: true, Width: 140,
			Doc: "CPU time for re-planning operators",
			Of:  time(func(s *trace.Step) trace.Time { return s.CPU.ResizeNS }),
		},
		{
			Name: "upload_ms", Title: "upload ms", Unit: "ms", Is: table.Measured, Right: true, Width: 140,
			Doc: "CPU time for writing params and inputs",
			Of:  time(func(s *trace.Step) trace.Time { return s.CPU.UploadNS }),
		},
		{
			Name: "encode_ms", Title: "encode ms", Unit: "ms", Is: table.Measured, Right: true, Width: 140,
			Doc: "CPU time for recording commands",
			Of:  time(func(s *trace.Step) trace.Time { return s.CPU.EncodeNS }),
		},
		{
			Name: "submit_ms", Title: "submit ms", Unit: "ms", Is: table.Measured, Right: true, Width: 140,
			Doc: "CPU time for handing commands to the driver",
			Of:  time(func(s *trace.Step) trace.Time { return s.CPU.SubmitNS }),
		},
		{
			Name: "wait_ms", Title: "wait ms", Unit: "ms", Is: table.Measured, Right: true, Width: 140,
			Doc: "time for waiting for the GPU and reading back",
			Of:  time(func(s *trace.Step) trace.Time { return s.CPU.WaitNS }),
		},
		{
			Name: "sample_ms", Title: "sample ms", Unit: "ms", Is: table.Measured, Right: true, Width: 140,
			Doc: "CPU time for choosing the output token",
			Of:  time(func(s *trace.Step) trace.Time { return s.CPU.SampleNS }),
		},
		{
			Name: "tokens_per_s", Title: "tok/s", Unit: "tokens/s", Is: table.Measured, Right: true,
			Width: 80,
			Doc:   "input tokens per second of wall time",
			Of: at(func(s *trace.Step) table.Cell {
				if rate := analyze.TokensPerS(s); rate > 0 {
					return table.Number(rate, 1)
				}
				return table.Missing()
			}),
		},
		{
			Name: "dispatches", Title: "disp", Unit: "dispatches", Is: table.Exact, Right: true, Width: 80,
			Doc: "number of dispatches that ran",
			Of:  at(func(s *trace.Step) table.Cell { return table.Count(len(s.Dispatches)) }),
		},
		{
			Name: "levels", Title: "levels", Unit: "levels", Is: table.Exact, Right: true, Width: 140,
			Doc: "number of levels: groups of dispatches between barriers",
			Of: func(row int) table.Cell {
				if n := len(x.LevelStarts(step(row))); n > 0 {
					return table.Count(n)
				}
				return table.Cell{}
			},
		},
		{
			Name: "passes", Title: "passes", Unit: "passes", Is: table.Exact, Right: true, Width: 140,
			Doc: "number of compute passes",
			Of:  at(func(s *trace.Step) table.Cell { return table.Count(s.CPU.Passes) }),
		},
		{
			Name: "submits", Title: "submits", Unit: "submits", Is: table.Exact, Right: true, Width: 200,
			Doc: "number of submit calls",
			Of:  at(func(s *trace.Step) table.Cell { return table.Count(s.CPU.Submits) }),
		},
		{
			Name: "writes", Title: "writes", Unit: "writes", Is: table.Exact, Right: true, Width: 140,
			Doc: "number of buffer writes",
			Of:  at(func(s *trace.Step) table.Cell { return table.Count(s.CPU.Writes) }),
		},
		{
			Name: "write_bytes", Title: "bytes", Unit: "bytes", Is: table.Exact, Right: true, Width: 140,
			Doc: "bytes written to buffers",
			Of:  at(func(s *trace.Step) table.Cell { return table.Count(s.CPU.WriteBytes) }),
		},
		{
			Name: "bind_groups", Title: "bind groups", Unit: "bind groups", Is: table.Exact, Right: true,
			Width: 200,
			Doc:   "number of bind groups created",
			Of:    at(func(s *trace.Step) table.Cell { return table.Count(s.CPU.BindGroups) }),
		},
		{
			Name: "polls", Title: "polls", Unit: "polls", Is: table.Exact, Right: true, Width: 200,
			Doc: "number of polls for the GPU's completion",
			Of:  at(func(s *trace.Step) table.Cell { return table.Count(s.CPU.Polls) }),
		},
		{
			Name: "gcs", Title: "gcs", Unit: "pauses", Is: table.Exact, Right: true, Width: 200,
			Doc: "number of pauses by Go's garbage collector in the step",
			Of:  at(func(s *trace.Step) table.Cell { return table.Count(s.CPU.GCs) }),
		},
		{
			Name: "gc_ms", Title: "gc ms", Unit: "ms", Is: table.Measured, Right: true, Width: 200,
			Doc: "total length of the garbage collector's pauses in the step",
			Of:  time(func(s *trace.Step) trace.Time { return s.CPU.GCNS }),
		},
		{
			Name: "compiled", Title: "compiled", Unit: "kernels", Is: table.Exact, Right: true, Width: 200,
			Doc: "number of pipelines compiled in the step",
			Of:  at(func(s *trace.Step) table.Cell { return table.Count(len(s.CPU.Compiled)) }),
		},
		{
			Name: "compile_ms", Title: "compile ms", Unit: "ms", Is: table.Measured, Right: true, Width: 200,
			Doc: "time for compiling pipelines",
			Of:  time(analyze.CompileTime),
		},
		{
			Name: "overlapped_ms", Title: "overlapped ms", Unit: "ms", Is: table.Measured, Right: true,
			Width: 200,
			Doc:   "CPU time between a submit and the start of waiting for the GPU",
			Of:    time(func(s *trace.Step) trace.Time { return s.CPU.OverlappedNS }),
		},
		{
			Name: "to_tick_ms", Title: "to tick ms", Unit: "ms", Is: table.Measured, Right: true, Width: 200,
			Doc: "time from the first submit to the GPU's first timestamp",
			Of: func(row int) table.Cell {
				w := x.Waiting(step(row))
				return msCell(w.ToTick)
			},
		},
		{
			Name: "to_done_ms", Title: "to done ms", Unit: "ms", Is: table.Measured, Right: true, Width: 200,
			Doc: "time from the GPU's last timestamp until the host saw that the GPU was done",
			Of: func(row int) table.Cell {
				w := x.Waiting(step(row))
				return msCell(w.ToDone)
			},
		},
		{
			Name: "timing", Title: "timing", Width: 80,
			Doc: "timing level of the step: off, step, block or dispatch",
			Of:  at(func(s *trace.Step) table.Cell { return table.Text(s.Timing) }),
		},
		{
			Name: "cold", Title: "cold", Width: 80,
			Doc: "cold: first step after idle time, with a compilation, or with the first use of a route; excluded from medians",
			Of: at(func(s *trace.Step) table.Cell {
				if s.Cold {
					return table.Text("cold")
				}
				return table.Cell{}
			}),
		},
		{
			Name: "token", Title: "out", Unit: "id", Is: table.Exact, Right: true, Width: 140,
			Doc: "id of the output token",
			Of: at(func(s *trace.Step) table.Cell {
				if s.Token == nil {
					return table.Cell{}
				}
				return table.Count(*s.Token)
			}),
		},
		{
			Name: "text", Title: "text", Width: 80,
			Doc: "text of the output token",
			Of: at(func(s *trace.Step) table.Cell {
				if s.Token == nil {
					return table.Cell{}
				}
				return table.Text(fmt.Sprintf("%q", s.Text))
			}),
		},
	}
	if baseline != nil {
		wall := slices.IndexFunc(columns, func(c table.Column) bool { return c.Name == "wall_ms" })
		columns = slices.Insert(columns, wall+1, stepDeltaColumn(analyze.NewStepBaseline(baseline), x, step))
	}
	t := table.New("steps", columns, rows)
	if selection.Steps != nil {
		t.Title = []table.Line{table.Title(SelectionPart(selection))}
	}
	if baseline != nil {
		t.Title = append(t.Title, table.Title(table.Say(1, "Δ against %s", baseline.Selection.Called())))
	}
	t.Notes = DroppedNotes(x)
	return t
}

// DroppedNotes returns a note below a table of a run if old steps were dropped from the recording.
func DroppedNotes(x *analyze.Index) []string {
	var notes []string
	if n := x.Trace.DroppedSteps; n > 0 {
		notes = append(notes,
			fmt.Sprintf("the %d oldest steps were dropped because the recording reached its memory "+
				"budget", n))
	}
	return notes
}
