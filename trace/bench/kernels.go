package bench

import (
	"fmt"
	"slices"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/trace"
	"gpuscope/trace/table"
)

// Kernel is the measured time of equal operators on one route at one shape. The operators of the group ran in
// sequence.
type Kernel struct {
	Ops      []string `json:"ops"`              // names of the operators without the layer
	Layers   []int    `json:"layers,omitempty"` // layers of these operators; nil if they are in no layer
	Count    int      `json:"count"`            // number of operators in each sequence
	Kind     string   `json:"kind"`
	In       int      `json:"in,omitempty"` // matrix product: columns (In) and rows (Out) of the weights
	Out      int      `json:"out,omitempty"`
	Tokens   int      `json:"tokens"`
	Position int      `json:"position"`
	Route    string   `json:"route,omitempty"` // "" if the operators have only one route
	Planned  bool     `json:"planned,omitempty"`
	Kernels  []string `json:"kernels"`
	NS       int64    `json:"ns"` // median time of one operator in N runs; Q1NS, Q3NS: quartiles
	Q1NS     int64    `json:"q1_ns"`
	Q3NS     int64    `json:"q3_ns"`
	N        int      `json:"n"`
	Bytes    int64    `json:"bytes"` // modelled bytes of one operator; FLOPs: its modelled FLOPs
	FLOPs    int64    `json:"flops"`
}

// Crossover shows at which prompt lengths the fastest route and the planned route of a group of operators
// change. If ByPosition is set, the steps process a single token, and Crossover shows at which
// positions the routes change.
type Crossover struct {
	Ops        []string `json:"ops"`
	Layers     []int    `json:"layers,omitempty"`
	Kind       string   `json:"kind"`
	In         int      `json:"in,omitempty"`
	Out        int      `json:"out,omitempty"`
	ByPosition bool     `json:"by_position,omitempty"`
	Fastest    []Span   `json:"fastest"`
	Planned    []Span   `json:"planned"`
}

// Span is a range of measured prompt lengths, or of positions, in which the same routes are fastest or
// planned.
type Span struct {
	Routes []string `json:"routes"` // several if no route is significantly faster in the span
	From   int      `json:"from"`
	To     int      `json:"to"`
}

// check validates the numbers of a kernel.
func (k *Kernel) check() error {
	if k.Tokens < 1 || k.Position < 0 || k.N < 1 || k.NS < 0 || k.Count < 1 || k.Bytes < 0 || k.FLOPs < 0 {
		return fmt.Errorf("%s: `tokens`, `n` and `count` must be at least 1, and no other number may be negative",
			printable.Short(k.Kind, 40))
	}
	return nil
}

// subject returns a name for the operators of a kernel. It includes the layers, because operators with the
// same name and kind can differ between layers: by a sliding window, or by a fused addition.
func (k *Kernel) subject() string {
	words := []string{names(k.Ops), k.Kind}
	if k.In > 0 {
		words = append(words, table.Shape([]int{k.In, k.Out}))
	}
	if len(k.Layers) > 0 {
		words = append(words, "L"+printable.Ranges(k.Layers))
	}
	return strings.Join(words, " ")
}

// sameShape reports whether two kernels measure the same operators at the same shape. They may differ in the
// route.
func (k *Kernel) sameShape(l *Kernel) bool {
	return k.subject() == l.subject() && k.Tokens == l.Tokens && k.Position == l.Position
}

// fasterThan reports whether k is significantly faster than l: the upper quartile of k must be less than the
// lower quartile of l.
func (k *Kernel) fasterThan(l *Kernel) bool {
	return min(k.N, l.N) >= trace.FewestWithin && k.Q3NS < l.Q1NS
}

// fastest reports for each kernel whether no other route is significantly faster at its shape. This can be
// true for several routes at the same shape.
func (r *Result) fastest() []bool {
	best := make([]bool, len(r.Kernels))
	for i := range r.Kernels {
		faster := func(l Kernel) bool { return l.fasterThan(&r.Kernels[i]) }
		best[i] = !slices.ContainsFunc(r.shapeOf(i), faster)
	}
	return best
}

// shapeOf returns the kernels with the shape of kernel i: one for each route. They are neighbors in
// r.Kernels.
func (r *Result) shapeOf(i int) []Kernel {
	from, to := i, i+1
	for from > 0 && r.Kernels[from-1].sameShape(&r.Kernels[i]) {
		from--
	}
	for to < len(r.Kernels) && r.Kernels[to].sameShape(&r.Kernels[i]) {
		to++
	}
	return r.Kernels[from:to]
}

// FindCrossovers returns, for each group of operators, the ranges in which each route is the fastest one, and
// the ranges in which the plan chooses it. The ranges of prompt lengths (from position 0) come first, then
// those of the positions of a single token. A route remains the fastest until another route is significantly
// faster. Operators with only one route, or with only one measured length or position, are left out.
func (r *Result) FindCrossovers() []Crossover {
	return append(r.crossovers(false), r.crossovers(true)...)
}

// crossovers returns the crossovers by position if `byPosition` is set, or else those by prompt length.
func (r *Result) crossovers(byPosition bool) []Crossover {
	var list []Crossover
	subject, best := "", r.fastest()
	for i := 0; i < len(r.Kernels); {
		shape := r.shapeOf(i)
		var fastest, planned []string
		for j := range shape {
			if best[i+j] {
				fastest = append(fastest, shape[j].Route)
			}
			if shape[j].Planned {
				planned = append(planned, shape[j].Route)
			}
		}
		i += len(shape)
		k := &shape[0]
		at, on := k.Tokens, k.Position == 0
		if byPosition {
			at, on = k.Position, k.Tokens == 1
		}
		if !on || k.Route == "" {
			continue
		}
		if k.subject() != subject {
			subject = k.subject()
			list = append(list, Crossover{
				Ops: k.Ops, Layers: k.Layers, Kind: k.Kind, In: k.In, Out: k.Out, ByPosition: byPosition,
			})
		}
		c := &list[len(list)-1]
		c.Fastest = along(c.Fastest, fastest, at)
		c.Planned = along(c.Planned, planned, at)
	}
	return slices.DeleteFunc(list, func(c Crossover) bool {
		return c.Fastest[0].From == c.Fastest[len(c.Fastest)-1].To
	})
}

// along adds a measured length or position `at` to the spans. `routes` are the fastest or planned routes
// there. If the last span has some of these routes, along extends the span to `at` and keeps only the shared
// routes. Otherwise a new span begins.
func along(spans []Span, routes []string, at int) []Span {
	if n := len(spans); n > 0 {
		last := &spans[n-1]
		left := slices.DeleteFunc(slices.Clone(last.Routes), func(s string) bool {
			return !slices.Contains(routes, s)
		})
		if len(left) > 0 {
			last.Routes, last.To = left, at
			return spans
		}
	}
	if len(routes) == 0 {
		return spans
	}
	return append(spans, Span{routes, at, at})
}

// limit returns the ceiling that the kernel would reach first, and the achieved share of this ceiling (1 is
// at the ceiling). Both are computed from the modelled work of the kernel. If the ceilings are not known,
// `of` is "".
func (r *Result) limit(k *Kernel) (of string, share float64) {
	c := r.Device.Ceilings
	if c == nil || k.NS == 0 {
		return "", 0
	}
	bytes := float64(k.Bytes)
	mem, fp := c.Roofs(bytes, float64(k.FLOPs), bytes*float64(k.Count))
	switch {
	case mem == 0 && fp == 0:
		return "", 0
	case mem >= fp:
		return "mem", mem / float64(k.NS)
	}
	return "fp", fp / float64(k.NS)
}

// names joins the distinct names of operators for display.
func names(ops []string) string { return strings.Join(ops, ", ") }

// chosen returns a text for each kernel. It says whether the plan chooses the route of the kernel, and
// whether this route is the fastest.
func (r *Result) chosen() []string {
	list, best := make([]string, len(r.Kernels)), r.fastest()
	for i := range r.Kernels {
		k := &r.Kernels[i]
		if k.Route == "" {
			continue
		}
		var words []string
		if k.Planned {
			words = append(words, "plan")
		}
		others := func(l Kernel) bool { return l.Route != k.Route && !k.fasterThan(&l) }
		switch {
		case !slices.ContainsFunc(r.shapeOf(i), others):
			words = append(words, "fastest")
		case best[i]:
			words = append(words, "=")
		}
		list[i] = strings.Join(words, ", ")
	}
	return list
}

// kernelTable returns a table with a row for each route at each shape.
func (r *Result) kernelTable() *table.Table {
	of := table.ColumnsOf(r.Kernels)
	count := func(name, title, doc string, number func(*Kernel) int) table.Column {
		return of.Cell(0, table.Exact, name, title, name, doc,
			func(k *Kernel) table.Cell {
				if n := number(k); n > 0 || name == "position" {
					return table.Count(n)
				}
				return table.Cell{}
			})
	}
	us := func(name, title, doc string, ns func(*Kernel) int64) table.Column {
		return of.Cell(0, table.Measured, name, title, "us", doc,
			func(k *Kernel) table.Cell { return table.Microseconds(float64(ns(k))/1e3, 2) })
	}
	rate := func(name, title, doc string, amount func(*Kernel) int64, scale float64) table.Column {
		return of.Cell(0, table.Modelled, name, title, strings.TrimPrefix(title, "~"), doc,
			func(k *Kernel) table.Cell {
				if amount(k) == 0 || k.NS == 0 {
					return table.Cell{}
				}
				return significant(float64(amount(k)) / float64(k.NS) / scale)
			})
	}
	return table.New("kernels", []table.Column{
		of.Text(0, "operators", "operators", "operators that do the same work, named without their layers",
			func(k *Kernel) string { return names(k.Ops) }),
		of.Text(0, "layers", "layers",
			"layers of these operators; operators with the same name in other layers do different work",
			func(k *Kernel) string { return printable.Ranges(k.Layers) }),
		count("count", "×", "number of these operators that one run executes in sequence",
			func(k *Kernel) int { return k.Count }),
		of.Text(0, "kind", "kind", "kind of operator", func(k *Kernel) string { return k.Kind }),
		count("in", "K", "columns of the weights", func(k *Kernel) int { return k.In }),
		count("out", "N", "rows of the weights", func(k *Kernel) int { return k.Out }),
		count("tokens", "M", "number of tokens", func(k *Kernel) int { return k.Tokens }),
		count("position", "pos", "position of the first token", func(k *Kernel) int { return k.Position }),
		of.Text(0, "route", "route", "route that the benchmark set for the operators",
			func(k *Kernel) string { return k.Route }),
		table.ColumnsOf(r.chosen()).Text(0, "chosen", "chosen",
			"plan: the plan chooses this route; fastest: it is significantly faster than all others; =: no other route is significantly faster",
			func(words *string) string { return *words }),
		us("us", "µs", "time of one operator: median of n runs", func(k *Kernel) int64 { return k.NS }),
		us("q1_us", "q1", "the lower quartile of the runs", func(k *Kernel) int64 { return k.Q1NS }),
		us("q3_us", "q3", "the upper quartile of the runs", func(k *Kernel) int64 { return k.Q3NS }),
		rate("gb_per_s", "~GB/s", "modelled bytes per second at the median time",
			func(k *Kernel) int64 { return k.Bytes }, 1),
		rate("tflop_per_s", "~TFLOP/s", "modelled FLOPs per second at the median time",
			func(k *Kernel) int64 { return k.FLOPs }, 1e3),
		of.Text(0, "limit", "limit",
			"ceiling that the operator would reach first: mem is the copy rate, fp is the FLOP rate",
			func(k *Kernel) string {
				name, _ := r.limit(k)
				return name
			}),
		of.Cell(0, table.Modelled, "share", "~% of it", "%",
			"rate that the operator reached, in percent of the ceiling in column \"limit\"; ? marks a value over 100: data was cached or the clock was higher",
			func(k *Kernel) table.Cell {
				name, share := r.limit(k)
				if name == "" {
					return table.Cell{}
				}
				return shareCell(share)
			}),
	}, table.Flat(len(r.Kernels), func(row int) string {
		k := &r.Kernels[row]
		return strings.TrimSpace(fmt.Sprintf("%s@%d,%d %s", k.subject(), k.Tokens, k.Position, k.Route))
	}))
}

// by returns what varies in a crossover, as a column title of the table of kernels: "pos" for the position,
// or "M" for the number of tokens.
func (c *Crossover) by() string {
	if c.ByPosition {
		return "pos"
	}
	return "M"
}

// crossoverTable returns the table of crossovers: the ranges of lengths or positions in which each route is
// the fastest or the planned one.
func (r *Result) crossoverTable() *table.Table {
	of := table.ColumnsOf(r.Crossovers)
	spans := func(list []Span) table.Cell {
		words := make([]string, len(list))
		for i, s := range list {
			routes := strings.Join(s.Routes, " or ")
			if words[i] = fmt.Sprintf("%s %d–%d", routes, s.From, s.To); s.From == s.To {
				words[i] = fmt.Sprintf("%s %d", routes, s.From)
			}
		}
		return table.Text(strings.Join(words, ", "))
	}
	return table.New("crossovers", []table.Column{
		of.Text(0, "operators", "operators", "operators that do the same work, named without their layers",
			func(c *Crossover) string { return names(c.Ops) }),
		of.Text(0, "layers", "layers", "layers of these operators",
			func(c *Crossover) string { return printable.Ranges(c.Layers) }),
		of.Words(0, "shape", "K × N", "columns and rows of the weights",
			func(c *Crossover) table.Cell {
				if c.In == 0 {
					return table.Cell{}
				}
				return table.Text(table.Shape([]int{c.In, c.Out}))
			}),
		of.Text(0, "by", "by", "what varies: M is the prompt length, pos is the position of a single token",
			func(c *Crossover) string { return c.by() }),
		of.Words(0, "fastest", "fastest route",
			"fastest routes, each with its range of M or pos; several if their times do not differ significantly",
			func(c *Crossover) table.Cell { return spans(c.Fastest) }),
		of.Words(0, "planned", "planned route", "routes that the plan chooses, each with its range of M or pos",
			func(c *Crossover) table.Cell { return spans(c.Planned) }),
	}, table.Flat(len(r.Crossovers), func(row int) string {
		c := &r.Crossovers[row]
		of := Kernel{Ops: c.Ops, Layers: c.Layers, Kind: c.Kind, In: c.In, Out: c.Out}
		return of.subject() + " by " + c.by()
	}))
}
