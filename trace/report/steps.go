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

// stepRow is a row of the table of steps.
type stepRow struct {
	*trace.Step
	at int // index in Trace.Steps
}

func init() {
	Register(Table{
		Name: "steps", Takes: WholeRun, Compares: true,
		Doc: "every step: its phase, its position, how its wall time was spent, and counters",
		Of: func(ctx context.Context, x *analyze.Index, o analyze.Options) (*table.Table, error) {
			// Call BusyOf once for each step. It caches its result, so drawing a frame does not have to sum
			// the repeats.
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
// If there is a baseline, each step is compared with it, narrowed by Index.Routed.
func Steps(x *analyze.Index, selection analyze.Selection, baseline *analyze.Baseline) *table.Table {
	rows, step := x.Rows, func(row int) int { return row }
	if selection.Steps != nil {
		step = func(row int) int { return selection.Steps[row] }
		rows = table.Flat(len(selection.Steps), func(row int) string { return x.Rows[step(row)].Key })
	}
	of := table.ColumnsAt(func(row int) *stepRow { return &stepRow{&x.Trace.Steps[step(row)], step(row)} })
	ms := func(width int, name, title, doc string, time func(*stepRow) trace.Time) table.Column {
		return of.Cell(width, table.Measured, name, title, "ms", doc,
			func(s *stepRow) table.Cell { return msCell(time(s)) })
	}
	blocks := table.Unseen
	for i := range x.Trace.Steps {
		if x.Trace.Steps[i].Timing == trace.TimingBlock {
			blocks = 80
			break
		}
	}
	// count returns a column of counts. Its cells are empty for the profile of another engine, which has no
	// counts.
	count := func(width int, name, title, unit, doc string, n func(*stepRow) int64) table.Column {
		return of.Cell(width, table.Exact, name, title, unit, doc, func(s *stepRow) table.Cell {
			if x.Trace.Engine != "" {
				return table.Cell{}
			}
			return table.Count(n(s))
		})
	}
	columns := []table.Column{
		of.Int(80, "step", "step", "step", "index of the step",
			func(s *stepRow) int64 { return int64(s.Index) }).AsTree(),
		of.Text(80, "phase", "phase", "prefill, decode or execute",
			func(s *stepRow) string { return string(s.Phase) }),
		count(80, "position", "pos", "position", "first position of the step",
			func(s *stepRow) int64 { return int64(s.Position) }),
		count(80, "tokens", "in", "tokens", "number of input tokens",
			func(s *stepRow) int64 { return int64(len(s.Tokens)) }),
		ms(80, "wall_ms", "wall ms",
			"wall time of the step; includes the CPU and GPU times in the next columns",
			func(s *stepRow) trace.Time { return s.CPU.TotalNS }),
		ms(80, "gpu_ms", "Σgpu ms",
			"sum of the GPU times of all dispatches, each timed in isolation; medians if the step was repeated",
			func(s *stepRow) trace.Time {
				ns, _ := x.BusyOf(s.Step)
				return ns
			}),
		ms(blocks, "blocks_ms", "Σblocks ms", "sum of the GPU times of all blocks, if blocks were timed",
			func(s *stepRow) trace.Time { return analyze.BlocksNS(s.Step) }),
		ms(80, "gaps_ms", "idle between ms",
			"idle time of the GPU between the step's first and last dispatch; not measured for repeats",
			func(s *stepRow) trace.Time {
				if analyze.Repeated(s.Step) {
					return trace.Time{}
				}
				return analyze.Minus(analyze.GPUOf(s.Step).SpanNS, analyze.GPUOf(s.Step).BusyNS)
			}),
		ms(80, "idle_ms", "idle outside ms",
			"idle time of the GPU before the step's first and after its last dispatch",
			func(s *stepRow) trace.Time {
				return analyze.Minus(s.CPU.TotalNS, analyze.GPUOf(s.Step).SpanNS)
			}),
		ms(140, "resize_ms", "resize ms", "CPU time for re-planning operators",
			func(s *stepRow) trace.Time { return s.CPU.ResizeNS }),
		ms(140, "upload_ms", "upload ms", "CPU time for writing params and inputs",
			func(s *stepRow) trace.Time { return s.CPU.UploadNS }),
		ms(140, "encode_ms", "encode ms", "CPU time for recording commands",
			func(s *stepRow) trace.Time { return s.CPU.EncodeNS }),
		ms(140, "submit_ms", "submit ms", "CPU time for handing commands to the driver",
			func(s *stepRow) trace.Time { return s.CPU.SubmitNS }),
		ms(140, "wait_ms", "wait ms", "time for waiting for the GPU and reading back its results",
			func(s *stepRow) trace.Time { return s.CPU.WaitNS }),
		ms(140, "sample_ms", "sample ms", "CPU time for choosing the output token",
			func(s *stepRow) trace.Time { return s.CPU.SampleNS }),
		of.Cell(80, table.Measured, "tokens_per_s", "tok/s", "tokens/s",
			"input tokens per second of wall time",
			func(s *stepRow) table.Cell {
				if rate := analyze.TokensPerS(s.Step); rate > 0 {
					return table.Number(rate, 1)
				}
				return table.Missing()
			}),
		of.Int(80, "dispatches", "disp", "dispatches", "number of dispatches that ran",
			func(s *stepRow) int64 { return int64(len(s.Dispatches)) }),
		of.Cell(140, table.Exact, "levels", "levels", "levels",
			"number of levels: groups of dispatches between barriers",
			func(s *stepRow) table.Cell {
				if n := len(x.LevelStarts(s.at)); n > 0 {
					return table.Count(n)
				}
				return table.Cell{}
			}),
		count(140, "passes", "passes", "passes", "number of compute passes",
			func(s *stepRow) int64 { return int64(s.CPU.Passes) }),
		count(200, "submits", "submits", "submits", "number of submit calls",
			func(s *stepRow) int64 { return int64(s.CPU.Submits) }),
		count(140, "writes", "writes", "writes", "number of buffer writes",
			func(s *stepRow) int64 { return int64(s.CPU.Writes) }),
		count(140, "write_bytes", "bytes", "bytes", "bytes written to buffers",
			func(s *stepRow) int64 { return s.CPU.WriteBytes }),
		count(200, "bind_groups", "bind groups", "bind groups", "number of bind groups created",
			func(s *stepRow) int64 { return int64(s.CPU.BindGroups) }),
		count(200, "polls", "polls", "polls", "how many times the host asked the GPU whether it was done",
			func(s *stepRow) int64 { return int64(s.CPU.Polls) }),
		count(200, "gcs", "GC pauses", "pauses", "number of pauses by Go's garbage collector in the step",
			func(s *stepRow) int64 { return int64(s.CPU.GCs) }),
		ms(200, "gc_ms", "GC ms", "total length of the garbage collector's pauses in the step",
			func(s *stepRow) trace.Time { return s.CPU.GCNS }),
		count(200, "compiled", "compiled", "kernels", "number of pipelines compiled in the step",
			func(s *stepRow) int64 { return int64(len(s.CPU.Compiled)) }),
		ms(200, "compile_ms", "compile ms", "time for compiling pipelines",
			func(s *stepRow) trace.Time { return analyze.CompileTime(s.Step) }),
		ms(200, "overlapped_ms", "CPU overlap ms",
			"CPU time after a submit during which the GPU already works, until the host waits for the GPU",
			func(s *stepRow) trace.Time { return s.CPU.OverlappedNS }),
		ms(200, "to_tick_ms", "GPU start ms", "delay from the first submit to the GPU's first timestamp",
			func(s *stepRow) trace.Time { return x.Waiting(s.at).ToTick }),
		ms(200, "to_done_ms", "GPU end ms",
			"delay from the GPU's last timestamp until the host saw that the GPU was done",
			func(s *stepRow) trace.Time { return x.Waiting(s.at).ToDone }),
		of.Text(80, "timing", "timing", "timing level of the step: off, step, block or dispatch",
			func(s *stepRow) string { return string(s.Timing) }),
		of.Words(80, "cold", "cold",
			"cold: the step is the first after idle time, uses a route or a kernel for the first time, or runs at a "+
				"lowered GPU clock; medians exclude cold steps",
			func(s *stepRow) table.Cell {
				if s.Cold {
					return table.Text("cold")
				}
				return table.Cell{}
			}),
		of.Cell(140, table.Exact, "token", "out", "id", "id of the output token",
			func(s *stepRow) table.Cell {
				if s.Token == nil {
					return table.Cell{}
				}
				return table.Count(*s.Token)
			}),
		of.Words(80, "text", "text", "text of the output token",
			func(s *stepRow) table.Cell {
				if s.Token == nil {
					return table.Cell{}
				}
				return table.Text(fmt.Sprintf("%q", s.Text))
			}),
	}
	if baseline != nil {
		b := *baseline
		b.Selection = b.Index.Routed(b.Selection)
		baseline = &b
		wall := slices.IndexFunc(columns, func(c table.Column) bool { return c.Name == "wall_ms" })
		columns = slices.Insert(columns, wall+1, stepDeltaColumn(analyze.NewStepBaseline(baseline), x, of))
	}
	t := table.New("steps", columns, rows)
	if selection.Steps != nil {
		t.Title = []table.Line{table.Title(SelectionPart(selection))}
	}
	if baseline != nil {
		t.Title = append(t.Title, table.Title(table.Say(1, "Δ against %s", BaselineName(baseline.Selection))))
	}
	t.Notes = DroppedNotes(x)
	return t
}

// DroppedNotes returns the notes for a table of a run: how many of the first steps of the run are not in
// the trace. It returns nil if all steps are in the trace.
func DroppedNotes(x *analyze.Index) []string {
	var notes []string
	if n := x.Trace.DroppedSteps; n > 0 {
		notes = append(notes,
			fmt.Sprintf("the recording lacks the first %s of the run", table.Plural(n, "step")))
	}
	return notes
}
