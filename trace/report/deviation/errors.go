package deviation

import (
	"context"
	"fmt"
	"slices"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/accuracy"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
	"gpuscope/trace/tree"
)

func init() {
	report.Register(report.Table{
		Name: "gaps", Takes: report.WholeRun,
		Doc: "numeric error of each dispatch, against a float64 reference on the same inputs and against a float64 run of the whole text",
		Of: func(ctx context.Context, x *analyze.Index, o analyze.Options) (*table.Table, error) {
			g, err := Of(ctx, x, o.Selection)
			if err != nil {
				return nil, err
			}
			return g.Table, nil
		},
	})
}

// Errors is the table of the dispatches that were compared with a reference, step by step.
type Errors struct {
	*table.Table
	*accuracy.Tree
}

// labelled returns the name of a row. A row is a step with its inputs, an operator's place in the graph, or a
// dispatch.
func (g *Errors) labelled(x *analyze.Index, r *accuracy.Row) string {
	if r.Label != "" {
		return r.Label
	}
	s := &x.Trace.Steps[r.Step]
	return fmt.Sprintf("s%d %s, %s at position %d", s.Index, s.Phase, table.Plural(len(s.Tokens), "token"),
		s.Position)
}

// Of returns the table of numeric errors of a selection. A selection without steps means the whole run.
func Of(ctx context.Context, x *analyze.Index, selection analyze.Selection) (*Errors, error) {
	held, err := accuracy.Of(ctx, x, selection)
	if err != nil {
		return nil, err
	}
	g := &Errors{Tree: held}
	g.Table = table.New("gaps", g.columns(x), table.Tree(g.Places, func(r *accuracy.Row) tree.Row {
		return r.Row
	}))
	g.Table.Title, g.Table.Notes, g.Table.From = g.title(x), g.notes(), g
	return g, nil
}

func (g *Errors) columns(x *analyze.Index) []table.Column {
	of := table.ColumnsOf(g.Places)
	// worst builds columns that show, for each row, the comparison with the largest error. The cells of rows
	// of steps are empty.
	worst := table.ColumnsAt(func(row int) *accuracy.Comparison { return g.Places[row].Worst() }).
		Where(func(h *accuracy.Comparison) bool { return h != nil })
	number := func(name, title, unit, doc string, width int, n func(*trace.NumericError) (float64, bool),
	) table.Column {
		return worst.Cell(width, table.Measured, name, title, unit, doc,
			func(h *accuracy.Comparison) table.Cell {
				v, ok := n(h.Error)
				if !ok || none(h.Error) {
					return table.Cell{}
				}
				text := fmt.Sprintf("%.3g", v)
				if unit == "dB" {
					text = report.Decibels(v)
				}
				return table.Cell{Text: text, Number: v, Has: true}
			})
	}
	always := func(n func(*trace.NumericError) trace.Number) func(*trace.NumericError) (float64, bool) {
		return func(g *trace.NumericError) (float64, bool) { return float64(n(g)), true }
	}
	run := func(n func(*trace.Drift) trace.Number) func(*trace.NumericError) (float64, bool) {
		return func(g *trace.NumericError) (float64, bool) {
			if g.Run == nil {
				return 0, false
			}
			return float64(n(g.Run)), true
		}
	}
	return []table.Column{
		of.Text(80, "dispatch", "dispatch",
			"dispatch; equal layers share one row, which shows the layer with the largest error",
			func(r *accuracy.Row) string { return g.labelled(x, r) }).AsTree(),
		of.Where(func(r *accuracy.Row) bool { return r.Worst() != nil }).Text(80, "said", "result",
			"ok: error within the tolerance; diverges: error over the tolerance; NaN or Inf: in the output; inherits: an input "+
				"comes from a dispatch that diverges, and the dispatch's own error is within the tolerance or unknown",
			said),
		worst.Cell(80, table.Measured, "share", "% of tol.", "%",
			"largest error of an element, as a percentage of the tolerance",
			func(h *accuracy.Comparison) table.Cell {
				if h.Error.Tolerance == "" || none(h.Error) {
					return table.Cell{}
				}
				v := 100 * float64(h.Error.Share)
				return table.Cell{Text: fmt.Sprintf("%.3g", v), Number: v, Has: true}
			}),
		number("max_abs", "max abs", "difference", "largest difference from the reference on the same inputs",
			80, always(func(g *trace.NumericError) trace.Number { return g.MaxAbs })),
		number("mse", "MSE", "difference",
			"mean squared difference from the reference on the same inputs", 140,
			always(func(g *trace.NumericError) trace.Number { return g.MSE })),
		number("snr_db", "SNR dB", "dB",
			"signal-to-noise ratio against the reference on the same inputs; ∞ if there is no difference", 80,
			always(func(g *trace.NumericError) trace.Number { return g.SNRdB })),
		number("run_max_abs", "run max abs", "difference",
			"largest difference from the reference run; includes errors inherited from earlier dispatches",
			80, run(func(d *trace.Drift) trace.Number { return d.MaxAbs })),
		number("run_mse", "run MSE", "difference", "mean squared difference from the reference run", 140,
			run(func(d *trace.Drift) trace.Number { return d.MSE })),
		number("run_snr_db", "run SNR dB", "dB", "signal-to-noise ratio against the reference run", 80,
			run(func(d *trace.Drift) trace.Number { return d.SNRdB })),
		worst.Text(140, "where", "largest error",
			"element with the largest error: its index, its value on the device, and the reference value",
			func(h *accuracy.Comparison) string { return farthest(x, h) }),
		worst.Cell(140, table.Exact, "compared", "compared", "elements",
			"number of compared elements; if only a sample was compared, also the number of all elements",
			func(h *accuracy.Comparison) table.Cell {
				c := table.Count(h.Error.Compared)
				if h.Error.Compared < h.Error.Elements {
					c.Text = fmt.Sprintf("%d of %d", h.Error.Compared, h.Error.Elements)
				}
				return c
			}),
		worst.Text(200, "tolerance", "tolerance",
			"largest allowed error of an element, and how it is derived",
			func(h *accuracy.Comparison) string { return h.Error.Tolerance }),
		worst.Int(table.Unseen, "step", "step", "step", "index of the step",
			func(h *accuracy.Comparison) int64 { return int64(x.Trace.Steps[h.Step].Index) }),
		worst.Int(table.Unseen, "id", "id", "id", "id of the dispatch",
			func(h *accuracy.Comparison) int64 { return int64(h.Dispatch) }),
	}
}

// said returns the text of the column "said": the worst outcome among the dispatches of the row.
func said(r *accuracy.Row) string {
	is := func(what func(*accuracy.Comparison) bool) bool { return slices.ContainsFunc(r.Comparisons, what) }
	switch {
	case is((*accuracy.Comparison).Diverges):
		return "diverges"
	case is(func(h *accuracy.Comparison) bool { return h.Error.NotFinite > 0 }):
		return "NaN or Inf"
	case is(func(h *accuracy.Comparison) bool { return h.Inherits }):
		return "inherits"
	case is(func(h *accuracy.Comparison) bool { return h.Error.Tolerance == "" }):
		return ""
	}
	return "ok"
}

// none reports whether no element could be compared, because none is finite.
func none(g *trace.NumericError) bool { return g.NotFinite > 0 && g.NotFinite >= g.Compared }

// farthest describes the worst element of a dispatch: its index, its value and the reference. It returns ""
// if an element is not finite, because the title names the first such element.
func farthest(x *analyze.Index, h *accuracy.Comparison) string {
	if h.Error.Value == nil || h.Error.Share == 0 && h.Error.MaxAbs == 0 || h.Error.NotFinite > 0 {
		return ""
	}
	got, want := distinct(float64(h.Error.Got), float64(h.Error.Want))
	value := &x.Trace.Graph.Values[*h.Error.Value]
	return fmt.Sprintf("%s[%d]: %s, want %s", value.Name, h.Error.Element, got, want)
}

// distinct formats two numbers with enough digits to tell them apart, from 6 to 9. Nine digits distinguish
// any two 32-bit floats.
func distinct(a, b float64) (string, string) {
	for digits := 6; ; digits++ {
		x, y := fmt.Sprintf("%.*g", digits, a), fmt.Sprintf("%.*g", digits, b)
		if x != y || digits == 9 {
			return x, y
		}
	}
}

// held returns the name of a dispatch with its step: "s0 dispatch 4, attn.q".
func held(x *analyze.Index, h *accuracy.Comparison) string {
	return fmt.Sprintf("s%d dispatch %d, %s", x.Trace.Steps[h.Step].Index, h.Dispatch, x.Name(h.Dispatch))
}

func (g *Errors) title(x *analyze.Index) []table.Line {
	if g.Compared == 0 {
		return []table.Line{table.Title(table.Say(0, "nothing was compared with a reference"))}
	}
	dispatches := table.Plural(g.Compared, "dispatch")
	var lines []table.Line
	switch h := g.First; {
	case h == nil && g.NotFinite != nil:
		lines = append(lines, table.Title(table.Say(0, "%s match their references, but some contain NaN or Inf",
			dispatches)))
	case h == nil:
		lines = append(lines, table.Title(table.Say(0, "%s compared, all within their tolerance",
			dispatches)))
	default:
		over := "" // stays empty if the element is NaN or Inf, which farthest already shows
		if h.Error.Got.Finite() {
			over = h.Error.Over()
		}
		lines = append(lines,
			table.Title(table.Say(0, "%d of %s diverge", g.Diverge, dispatches),
				table.Say(0, "%d inherit", g.Inherit)),
			table.Title(table.Say(0, "first divergence: %s", held(x, h)), table.Say(1, "%s", farthest(x, h)),
				table.Say(1, "%s", over),
				table.Say(2, "%s", h.Error.Tolerance)))
	}
	if h := g.NotFinite; h != nil {
		from := "the float64 reference on the same inputs has no NaN or Inf"
		if !h.Diverges() {
			from = "the float64 reference on the same inputs has them too, so the weights or the inputs are the cause"
		}
		lines = append(lines, table.Title(
			table.Say(0, "first NaN or Inf: %s", held(x, h)),
			table.Say(1, "%d of %d elements", h.Error.NotFinite, h.Error.Compared), table.Say(1, "%s", from)))
	}
	return lines
}

func (g *Errors) notes() (notes []string) {
	if g.Samples {
		notes = append(notes, "large operators: only a sample of the elements was compared, the same "+
			"sample in every run")
	}
	if g.Compared > 0 && !g.Runs {
		notes = append(notes, "not compared with a reference run: such a run would need too many "+
			"operations, or only some dispatches were selected")
	}
	return notes
}
