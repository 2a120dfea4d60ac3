package bench

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/trace"
	"gpuscope/trace/table"
)

// Formats lists the output formats of a result.
var Formats = []string{"md", "json", "csv"}

// Print prints a result in one of Formats.
func (r *Result) Print(ctx context.Context, w io.Writer, format string) error {
	switch format {
	case "json":
		return r.Write(w)
	case "csv":
		t := r.Table()
		t.Flat = true // without the tree's column depth, which looks like n_depth
		t.Columns = append(t.Columns, r.more()...)
		for _, a := range r.about() {
			t.Columns = append(t.Columns, table.ColumnsAt(func(int) *fact { return &a }).
				Text(0, a.name, "", "", func(f *fact) string { return f.is }))
		}
		return printAll(ctx, w, "csv", t)
	}
	return r.printMarkdown(ctx, w)
}

// more returns the columns that only CSV has. The Markdown tables have no room for them.
func (r *Result) more() []table.Column {
	if len(r.Kernels) > 0 {
		return []table.Column{
			table.ColumnsOf(r.Kernels).Int(0, "n", "", "runs", "",
				func(k *Kernel) int64 { return int64(k.N) }),
		}
	}
	of := table.ColumnsOf(r.Tests)
	columns := []table.Column{
		of.Int(0, "n_tokens", "", "tokens", "", func(t *Test) int64 { return int64(t.Tokens) }),
		of.Int(0, "n_depth", "", "positions", "", func(t *Test) int64 { return int64(t.Depth) }),
	}
	if slices.ContainsFunc(r.Tests, func(t Test) bool { return t.Latency != nil }) {
		columns = append(columns, latencyColumns(of)...)
	}
	if !r.traced() {
		return columns
	}
	end := func(name string, share func(*Overhead) float64) table.Column {
		return of.Cell(0, table.Measured, name, "", "%", "",
			func(t *Test) table.Cell {
				e, ok := r.Tracing(t)
				if !ok || !e.Known {
					return table.Cell{}
				}
				return table.Number(100*share(&e), 1)
			})
	}
	return append(columns, end("cost_low", func(e *Overhead) float64 { return e.Low }),
		end("cost_high", func(e *Overhead) float64 { return e.High }))
}

// fact is a fact about the whole result: a name and a value.
type fact struct{ name, is string }

// about returns facts about what was measured: the model, the device and the conditions.
func (r *Result) about() []fact {
	version := strings.TrimSpace(r.Producer.Version + " " + r.Producer.Commit)
	facts := []fact{
		{"model", r.Model.Name},
		{"quantization", r.Model.Quantization},
		{"device", r.Device.Name},
		{"backend", r.Device.Backend},
		{"driver", r.Device.Driver},
		{"version", version},
		{"created", r.Created},
		{"edited", strings.Join(r.Edited, ", ")},
		{"stopped", r.Stopped},
	}
	if len(r.Kernels) > 0 || r.traced() { // no timing level, or several
		return facts
	}
	return append(facts, fact{"timing", string(r.Timing)})
}

// printMarkdown prints the facts, tables and notes of the result as Markdown.
func (r *Result) printMarkdown(ctx context.Context, w io.Writer) error {
	var facts []string
	for _, a := range r.about() {
		if a.is != "" {
			facts = append(facts, a.name+" "+a.is)
		}
	}
	if _, err := fmt.Fprintf(w, "%s\n", printable.Clean(strings.Join(facts, " · "))); err != nil {
		return err
	}
	tables := []*table.Table{r.Table()}
	if t := r.latencyTable(); t != nil {
		tables = append(tables, t)
	}
	if len(r.Crossovers) > 0 {
		tables = append(tables, r.crossoverTable())
	}
	for _, t := range tables {
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
		if err := printAll(ctx, w, "md", t); err != nil {
			return err
		}
	}
	for _, n := range r.notes() {
		if _, err := fmt.Fprintf(w, "\n%s\n", printable.Clean(n)); err != nil {
			return err
		}
	}
	return nil
}

func printAll(ctx context.Context, w io.Writer, format string, t *table.Table) error {
	rows, err := t.Select(ctx, table.Selection{All: true})
	if err != nil {
		return err
	}
	return t.Print(ctx, w, format, rows, 0)
}

// notes returns sentences that explain the numbers in the tables.
func (r *Result) notes() []string {
	var notes []string
	if r.Stopped != "" {
		notes = append(notes, "Incomplete: the run was stopped ("+r.Stopped+").")
	}
	c := r.Device.Ceilings
	switch {
	case c != nil:
		notes = append(notes, fmt.Sprintf("Ceilings of this run: copy rate %s (largest working set), FLOP rate %s (f32).",
			table.Scaled(c.CopyAt(1<<62), "B/s"), table.Scaled(c.FlopsPerS, "FLOP/s")))
	case r.Device.Software():
		notes = append(notes, "Software device: it has no ceilings. Compare ratios only.")
	default:
		notes = append(notes, "No ceilings: this device has no timestamps, so GPU times cannot be measured.")
	}
	for i := range r.Tests {
		if t := &r.Tests[i]; t.Canary > 0 && t.Canary < 1-trace.ClockMoved {
			notes = append(notes,
				fmt.Sprintf("%s ran at %.2f times the warm clock speed: run it again.", t.Name, t.Canary))
		}
	}
	if slices.ContainsFunc(r.Tests, func(t Test) bool { return t.Floor != nil && t.Floor.Share > 1 }) {
		notes = append(notes, "Over 100 % (?) means that part of the weights was cached, or that the clock was higher than "+
			"when the ceilings were measured.")
	}
	if len(r.Tests) > 0 {
		notes = append(notes, fmt.Sprintf("t/s, min and max are the median, slowest and fastest of "+
			"%s after a warm-up. ms a step is the wall time of a step at the median rate. CPU is the mean host time "+
			"per step in µs. In stepped mode, each token is read before the next step begins; in pipelined mode, "+
			"after the next step begins.",
			table.Plural(r.Repetitions, "repetition")))
	}
	if r.latencyTable() != nil {
		notes = append(notes, fmt.Sprintf("The latency of a prefill is the time to its first token: from "+
			"the start of the prompt until the token is read. The latency of a decode is the time from reading one "+
			"token to reading the next. Percentiles are over the samples of all repetitions after the warm-up. A "+
			"percentile is given only if one of the samples is expected to exceed it: p50 from %d samples on, p90 "+
			"from %d, p99 from %d.", FewestFor(50), FewestFor(90), FewestFor(99)))
	}
	if r.traced() {
		notes = append(notes, "costs % is the extra time compared with the same repetition at timing level off: the "+
			"median, with its interval in parentheses. = means that it is not significant; ? means that it is not "+
			"known, because fewer than five repetitions were run.")
	}
	if len(r.Kernels) > 0 {
		notes = append(notes, fmt.Sprintf("µs, q1 and q3 are the median time of one operator and its quartiles in "+
			"%s, each of which executes equal operators in sequence. = means that no other route is significantly "+
			"faster. GB/s and TFLOP/s are modelled bytes and FLOPs per second at the median time. Over 100 %% (?) "+
			"means that data was cached, or, for fp, that the clock was higher than when the ceilings were measured.",
			table.Plural(r.Repetitions, "run")))
	}
	return notes
}

// Table returns the table of a result: a row for each test, or for each route of each kernel.
func (r *Result) Table() *table.Table {
	if len(r.Kernels) > 0 {
		return r.kernelTable()
	}
	return r.testTable()
}

func (r *Result) testTable() *table.Table {
	of := table.ColumnsOf(r.Tests)
	rate := func(name, title, doc string, speed func(*Range) float64) table.Column {
		return of.Cell(80, table.Measured, name, title, "tokens/s", doc,
			func(t *Test) table.Cell { return significant(speed(&t.TokensPerS)) })
	}
	host := func(name, title, doc string, ns func(*Split) int64) table.Column {
		return of.Cell(80, table.Measured, name, title, "us", doc,
			func(t *Test) table.Cell { return table.Microseconds(float64(ns(&t.CPU))/1e3, 1) })
	}
	columns := []table.Column{
		of.Text(80, "test", "test",
			"prefill (pp) or decode (tg), the number of tokens, and after @ the number of tokens already in the KV cache",
			func(t *Test) string { return t.Name }),
		of.Text(80, "mode", "mode",
			"stepped: each token is read before the next step begins; pipelined: each token is read after the next "+
				"step begins",
			func(t *Test) string { return t.Mode }),
		rate("tokens_per_s", "t/s", "median of the repetitions", func(s *Range) float64 { return s.Median }),
		rate("min", "min", "the slowest repetition", func(s *Range) float64 { return s.Min }),
		rate("max", "max", "the fastest repetition", func(s *Range) float64 { return s.Max }),
		of.Words(80, "floor", "floor",
			"what determines the shortest possible time: weights (reading them once per step at the copy rate) or "+
				"flops (computing them at the FLOP rate)",
			func(t *Test) table.Cell {
				if t.Floor == nil {
					return table.Cell{}
				}
				return table.Text(t.Floor.Of)
			}),
		of.Cell(80, table.Modelled, "share", "~% of it", "%",
			"shortest possible time divided by the median time: 100 is as fast as the ceiling allows; if over 100 (?), "+
				"weights were cached or the clock was higher",
			func(t *Test) table.Cell {
				if t.Floor == nil {
					return table.Cell{}
				}
				return shareCell(t.Floor.Share)
			}),
		of.Cell(80, table.Measured, "step_ms", "ms a step", "ms", "wall time of a step at the median rate",
			func(t *Test) table.Cell {
				ns := t.StepNS()
				return table.Cell{Text: table.MillisBare(int64(ns), true), Number: ns / 1e6, Has: true}
			}),
		host("prepare_us", "CPU: prepare", "resize and upload, per step",
			func(s *Split) int64 { return s.ResizeNS + s.UploadNS }),
		host("encode_us", "encode", "encode, per step", func(s *Split) int64 { return s.EncodeNS }),
		host("submit_us", "submit", "submit, per step", func(s *Split) int64 { return s.SubmitNS }),
		host("wait_us", "wait", "wait for the GPU, per step", func(s *Split) int64 { return s.WaitNS }),
		host("read_us", "read", "read the token, per step", func(s *Split) int64 { return s.ReadNS }),
		host("other_us", "other", "rest of the wall time, per step",
			func(s *Split) int64 { return s.OtherNS }),
	}
	if r.traced() {
		columns = slices.Insert(columns, 2,
			of.Text(80, "timing", "timing", "timing level at which the steps ran",
				func(t *Test) string { return string(cmp.Or(t.Timing, r.Timing)) }),
			of.Cell(80, table.Measured, "cost_percent", "costs %", "%",
				"extra time compared with the steps at timing level \"off\", in the same mode and repetition: median, and its error interval",
				func(t *Test) table.Cell {
					e, ok := r.Tracing(t)
					if !ok {
						return table.Cell{}
					}
					c := table.Number(100*e.Share, 1)
					switch {
					case !e.Known:
						c.Text = "?"
					case !e.Significant():
						c.Text = "="
					}
					c.Text += fmt.Sprintf(" (%.1f to %.1f)", 100*e.Low, 100*e.High)
					return c
				}))
	}
	return table.New("bench", columns, table.Flat(len(r.Tests), func(row int) string {
		t := &r.Tests[row]
		return strings.TrimSpace(strings.Join([]string{t.Name, t.Mode, string(t.Timing)}, " "))
	}))
}

// traced reports whether the overhead of timing was measured, in tests with a timing level of their own.
func (r *Result) traced() bool {
	return slices.ContainsFunc(r.Tests, func(t Test) bool { return t.Timing != "" })
}

// shareCell returns the cell for a share of a ceiling. A share over 100% is not plausible and is marked with
// "?".
func shareCell(share float64) table.Cell {
	c := table.Number(100*share, 1)
	if share > 1 {
		c.Text += "?"
	}
	return c
}

// significant returns the cell for a number, with about four significant digits.
func significant(v float64) table.Cell {
	decimals := 0
	for limit := 1000.0; v < limit && decimals < 6; limit /= 10 {
		decimals++
	}
	return table.Number(v, decimals)
}
