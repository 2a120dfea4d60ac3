package experts

import (
	"context"
	"fmt"

	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/experts"
	"gpuscope/trace/report"
	"gpuscope/trace/report/expertload"
	"gpuscope/trace/table"
	"gpuscope/trace/tree"
)

func init() {
	report.Register(report.Table{
		Name: "experts", Takes: report.AnySteps,
		Doc: "mixture of experts: how many tokens each router sent to each expert, padding of tiles, idle workgroups",
		Of: func(ctx context.Context, x *analyze.Index, o analyze.Options) (*table.Table, error) {
			routers, err := experts.Of(ctx, x, o.Selection)
			if err != nil {
				return nil, err
			}
			return Of(routers), nil
		},
	})
}

// row is a router or one of its experts. expert is -1 in the row of a router.
type row struct {
	*experts.Router
	total  experts.Dispatch // sum of the dispatches of the router
	expert int
	parent int
}

// name returns the name of the row: "L3 router" or "expert 17".
func (r *row) name() string {
	switch {
	case r.expert >= 0:
		return fmt.Sprintf("expert %d", r.expert)
	case r.Op.Layer != nil:
		return analyze.LayerName(*r.Op.Layer) + " " + r.Op.ShortName()
	}
	return r.Op.Name
}

// number returns a cell with a number of the row. The text begins with ~ if the number is modelled.
func (r *row) number(n float64, decimals int) table.Cell {
	c := table.Number(n, decimals)
	if r.Modelled {
		c.Text = "~" + c.Text
	}
	return c
}

// Routers is the table of the experts of routers.
type Routers struct {
	*table.Table
	rows []row
}

// Of returns the table of the experts of routers.
func Of(routers []*experts.Router) *table.Table {
	var list []row
	for _, r := range routers {
		parent := len(list)
		list = append(list, row{Router: r, total: r.Total(), expert: -1, parent: -1})
		if r.Modelled {
			continue // all experts are expected to be equal
		}
		for e := range r.Experts {
			list = append(list, row{Router: r, expert: e, parent: parent})
		}
	}
	t := table.New("experts", columns(list), table.Tree(list, func(r *row) tree.Row {
		if r.expert >= 0 {
			return tree.Row{Key: fmt.Sprintf("op%d.e%d", r.ID, r.expert), Parent: r.parent, Depth: 1}
		}
		return tree.Row{Key: fmt.Sprintf("op%d", r.ID), Parent: -1}
	}))
	t.Title, t.From = []table.Line{title(routers)}, &Routers{t, list}
	if len(routers) > 0 {
		t.Notes = []string{
			"Padding: tile rows without a token. All tokens of a tile belong to the same expert. " +
				"~padding µs is the isolated time of the dispatches times the share of padding.",
		}
	}
	return t
}

func columns(list []row) []table.Column {
	of := table.ColumnsOf(list)
	router := of.Where(func(r *row) bool { return r.expert < 0 && r.Steps > 0 })
	chosen := router.Where(func(r *row) bool { return r.expert < 0 && !r.Modelled && r.Steps > 0 })
	timed := router.Where(func(r *row) bool { return r.expert < 0 && r.total.Launched > 0 })
	time := func(ns func(*row) float64) func(*row) table.Cell {
		return func(r *row) table.Cell {
			if r.total.Timed == 0 {
				return table.Missing()
			}
			return table.Microseconds(ns(r)/1e3/float64(r.total.Timed), 1)
		}
	}
	return []table.Column{
		of.Text(80, "router", "router", "router of a layer, with its experts",
			func(r *row) string { return r.name() }).AsTree(),
		of.Cell(80, table.Exact, "tokens", "tokens", "tokens",
			"tokens of the expert; for a router, the sum over its experts, which counts each token once per chosen expert",
			func(r *row) table.Cell {
				if r.expert >= 0 {
					return table.Number(r.Tokens[r.expert], 0)
				}
				return r.number(r.Pairs(), 0)
			}),
		of.Cell(80, table.Exact, "share", "%", "%", "share of the router's tokens",
			func(r *row) table.Cell {
				if r.expert < 0 || r.Pairs() == 0 {
					return table.Cell{}
				}
				return table.Number(100*r.Tokens[r.expert]/r.Pairs(), 1)
			}).WithBars(),
		router.Cell(80, table.Exact, "active", "active", "experts",
			"number of experts that get at least one token in a step; for several steps the mean",
			func(r *row) table.Cell {
				c := r.number(r.Active, decimals(r.Active))
				c.Text += fmt.Sprintf(" of %d", r.Experts)
				return c
			}),
		chosen.Words(80, "busiest", "busiest", "expert with the most tokens, and its number of tokens",
			func(r *row) table.Cell {
				e, n := r.Busiest()
				if e < 0 {
					return table.Cell{}
				}
				return table.Text(fmt.Sprintf("#%d: %s", e, table.Integer(int64(n))))
			}),
		chosen.Cell(80, table.Exact, "imbalance", "max/mean", "ratio",
			"tokens of the busiest expert in a step, divided by the mean of all experts; for several steps the mean",
			func(r *row) table.Cell { return table.Number(r.Largest, 1) }),
		of.Cell(80, table.Exact, "padding", "padding", "rows",
			"tile rows without a token, summed over the dispatches, and their share of all tile rows",
			func(r *row) table.Cell {
				if r.expert >= 0 {
					return table.Number(r.Padded[r.expert], 0)
				}
				c := r.number(r.total.Padded, 0)
				if all := r.total.Padded + r.total.Filled; all > 0 {
					c.Text += fmt.Sprintf(" %.0f%%", 100*r.total.Padded/all)
				}
				return c
			}),
		timed.Cell(110, table.Exact, "idle_wg", "idle wg", "workgroups",
			"workgroups without work: the grid is sized for the router's worst choice of experts",
			func(r *row) table.Cell { return r.number(r.total.Idle, 0) }),
		timed.Cell(110, table.Measured, "us", "total", "µs",
			"isolated time of the dispatches that multiply by the weights of experts, in one step",
			time(func(r *row) float64 { return r.total.NS })),
		timed.Cell(80, table.Modelled, "padding_us", "~padding µs", "µs",
			"part of the total that padding takes, if all rows of a tile take equally long",
			time(func(r *row) float64 { return r.total.PaddedNS })),
		chosen.Words(110, "load", "load",
			"tokens of the experts in order, relative to the busiest expert; a dot is an expert without tokens",
			func(r *row) table.Cell { return table.Text(expertload.Strip(r.Tokens, 32)) }),
	}
}

// decimals returns how many decimals a mean of counts needs.
func decimals(n float64) int {
	if n == float64(int64(n)) {
		return 0
	}
	return 1
}

// title sums up the choices of all routers.
func title(routers []*experts.Router) table.Line {
	if len(routers) == 0 {
		return table.Title(table.Say(0, "the model has no mixture of experts"))
	}
	var total experts.Dispatch
	busiest, most, mean := -1, 0.0, 0.0
	modelled := false
	for i, r := range routers {
		d := r.Total()
		total.Filled, total.Padded = total.Filled+d.Filled, total.Padded+d.Padded
		total.PaddedNS += d.PaddedNS / float64(max(1, d.Timed))
		total.Timed = max(total.Timed, d.Timed)
		modelled = modelled || r.Modelled
		if _, n := r.Busiest(); n > most {
			busiest, most, mean = i, n, r.Pairs()/float64(r.Experts)
		}
	}
	first := routers[0]
	parts := []table.Segment{
		table.Say(1, "%s, %d of %d experts for each token", table.Plural(len(routers), "router"),
			first.Chosen, first.Experts),
	}
	if modelled {
		parts = append(parts, table.Say(0, "modelled: all experts chosen equally often"))
	}
	if busiest >= 0 && mean > 0 {
		r := routers[busiest]
		e, _ := r.Busiest()
		parts = append(parts, table.Say(2, "busiest: expert %d of %s, %.1f× the mean", e,
			(&row{Router: r, expert: -1}).name(), most/mean))
	}
	if all := total.Filled + total.Padded; all > 0 {
		text := fmt.Sprintf("padding %.0f%% of the rows of tiles", 100*total.Padded/all)
		if total.Timed > 0 {
			text += fmt.Sprintf(", ~%s µs a step", table.Micros(total.PaddedNS/1e3, 0))
		}
		parts = append(parts, table.Say(1, "%s", text))
	}
	return table.Title(parts...)
}

// Label returns the name of a row.
func (t *Routers) Label(at int) string { return t.rows[at].name() }

// Lines describes the dispatches of the router in a row: their tiles, and what the padding costs.
func (t *Routers) Lines(x *analyze.Index, at int) []string {
	r := &t.rows[at]
	chosen := fmt.Sprintf("%s: %d of %d experts for each token", r.Op.Name, r.Chosen, r.Experts)
	lines := []string{chosen}
	if r.expert >= 0 {
		return append(lines, fmt.Sprintf("expert %d: %s of %s", r.expert,
			table.Integer(int64(r.Tokens[r.expert])), table.Plural(int64(r.Pairs()), "pair")))
	}
	for i := range r.Dispatches {
		d := &r.Dispatches[i]
		lines = append(lines, x.Name(d.ID))
		if all := d.Filled + d.Padded; d.Rows > 1 && all > 0 {
			lines = append(lines, fmt.Sprintf("  tiles of %d rows: padding %s of %s rows (%.0f%%)", d.Rows,
				r.number(d.Padded, 0).Text, r.number(all, 0).Text, 100*d.Padded/all))
		}
		lines = append(lines, fmt.Sprintf("  %s of %s exit at once", r.number(d.Idle, 0).Text,
			table.Plural(d.Launched, "workgroup")))
		if d.Timed > 0 {
			us, padded := d.NS/1e3/float64(d.Timed), d.PaddedNS/1e3/float64(d.Timed)
			lines = append(lines, fmt.Sprintf("  %s µs a step, ~%s of them for padding", table.Micros(us, 1),
				table.Micros(padded, 1)))
		}
	}
	return lines
}
