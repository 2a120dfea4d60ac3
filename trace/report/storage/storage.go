package storage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/memory"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
	"gpuscope/trace/tree"
)

func init() {
	report.Register(report.Table{
		Name: "memory", Takes: report.OneStep, OfGraph: true,
		Doc: "device memory of the values of each role, and for each shared slot the largest value",
		Of: func(ctx context.Context, x *analyze.Index, o analyze.Options) (*table.Table, error) {
			return Memory(x, o.Selection), ctx.Err()
		},
	})
	report.Register(report.Table{
		Name: "tenants", Takes: report.OneStep, OfGraph: true,
		Doc: "values that use each memory slot, and the dispatches during which they use it",
		Of: func(ctx context.Context, x *analyze.Index, o analyze.Options) (*table.Table, error) {
			return Tenants(x, o.Selection), ctx.Err()
		},
	})
}

// Memory returns the table of device memory. It shows live bytes if the selection is one step.
func Memory(x *analyze.Index, selection analyze.Selection) *table.Table {
	step, one := selection.One()
	if !one {
		step = -1
	}
	t := memory.Of(x, step)
	var list []memory.Holding
	place := map[trace.Role]int{}
	for i := range t.Tenants {
		n := &t.Tenants[i]
		v := n.Value
		if v.Kind == "symint" || v.AliasOf != nil || n.Shares() || analyze.NotStored(v) != "" ||
			v.Bytes == 0 {
			continue
		}
		k, there := place[v.Role]
		if !there {
			k = len(list)
			place[v.Role] = k
			list = append(list, memory.Holding{Key: string(v.Role), Label: string(v.Role), Parent: -1})
		}
		list[k].Add(n, false)
	}
	slices.SortStableFunc(list, func(a, b memory.Holding) int {
		return cmp.Compare(b.Allocated, a.Allocated)
	})
	if len(t.Numbers) > 0 {
		shared := len(list)
		list = append(list, memory.Holding{Key: "slots", Label: "slots (large)", Parent: -1})
		for _, s := range t.Numbers {
			h := memory.Holding{
				Key: fmt.Sprintf("slot%d", s), Label: fmt.Sprintf("slot %d", s),
				Parent: shared,
			}
			for _, n := range t.Slots[s] {
				h.Add(n, true)
			}
			all := &list[shared]
			all.Values += h.Values
			all.Allocated += h.Allocated
			all.Live += h.Live
			if all.Largest == nil || h.Largest.Bytes > all.Largest.Bytes {
				all.Largest = h.Largest
			}
			list = append(list, h)
		}
	}
	var total int64
	rows := make([]tree.Row, len(list))
	for i := range list {
		rows[i] = tree.Row{Key: list[i].Key, Parent: list[i].Parent, Open: true}
		if list[i].Parent >= 0 {
			rows[i].Depth = 1
			continue
		}
		total += list[i].Allocated
	}
	of := table.ColumnsOf(list)
	bytes := func(n int64) table.Cell {
		return table.Cell{Text: table.Memory(n), Number: float64(n), Has: true}
	}
	made := table.New("memory", []table.Column{
		of.Text(80, "what", "memory",
			"role of values that have their own memory, or slot that intermediate and scratch values share",
			func(h *memory.Holding) string { return h.Label }).AsTree(),
		of.Int(80, "values", "values", "values", "number of values in this memory",
			func(h *memory.Holding) int64 { return int64(h.Values) }),
		of.Cell(80, table.Exact, "allocated", "allocated", "bytes",
			"size of the memory, which is allocated for the largest shapes",
			func(h *memory.Holding) table.Cell { return bytes(h.Allocated) }),
		of.Cell(80, table.Exact, "share", "%", "%", "share of all memory allocated for values",
			func(h *memory.Holding) table.Cell {
				if total == 0 {
					return table.Cell{}
				}
				return table.Number(100*float64(h.Allocated)/float64(total), 1)
			}),
		of.Cell(80, table.Exact, "live", "live", "bytes", "bytes that the values use at their shapes in this step",
			func(h *memory.Holding) table.Cell {
				if step < 0 {
					return table.Cell{}
				}
				return bytes(h.Live)
			}),
		of.Text(80, "largest", "size set by", "largest value in this memory; a slot has the size of this value",
			func(h *memory.Holding) string { return h.Largest.Name }),
		of.Cell(140, table.Exact, "forced", "its size", "bytes", "size of the value in column `size set by`",
			func(h *memory.Holding) table.Cell { return bytes(h.Largest.Bytes) }),
		of.Words(140, "when", "in use",
			"for a slot: first and last dispatch that use the value in column `size set by`",
			func(h *memory.Holding) table.Cell {
				if h.Peak == nil || h.Parent < 0 || h.Peak.First < 0 {
					return table.Cell{}
				}
				return table.Text(fmt.Sprintf("d%d–d%d", t.Order[h.Peak.First], t.Order[h.Peak.Last]))
			}),
	}, rows)
	made.Title = []table.Line{memoryTitle(x, t, step, total)}
	return made
}

// HoldingLines describes the row of the memory table with the given key. For a slot, it lists the values that
// use the slot and when. For a role, it lists the largest values.
func HoldingLines(x *analyze.Index, step int, key string) []string {
	const most = 12
	t := memory.Of(x, step)
	if n, ok := strings.CutPrefix(key, "slot"); ok && n != "s" {
		slot, _ := strconv.Atoi(n)
		lines := []string{fmt.Sprintf("slot %d, values in order of use:", slot)}
		for i, n := range t.Slots[slot] {
			if i == most {
				return append(lines, fmt.Sprintf("and %d more", len(t.Slots[slot])-most))
			}
			when := "not in this step"
			switch {
			case n.FusedAway:
				when = "fused away in this step"
			case n.First >= 0:
				when = fmt.Sprintf("d%d–d%d", t.Order[n.First], t.Order[n.Last])
			}
			lines = append(lines, fmt.Sprintf("%s %s, %s", when, n.Value.Name, table.Memory(n.Value.Bytes)))
		}
		return lines
	}
	var list []*memory.Tenant
	for i := range t.Tenants {
		n := &t.Tenants[i]
		own := !n.Shares() && n.Value.AliasOf == nil && string(n.Value.Role) == key
		if own || n.Shares() && key == "slots" {
			list = append(list, n)
		}
	}
	slices.SortStableFunc(list, func(a, b *memory.Tenant) int {
		return cmp.Compare(b.Value.Bytes, a.Value.Bytes)
	})
	lines := []string{"the largest of " + table.Plural(len(list), "value") + ":"}
	if key == "slots" {
		lines = append([]string{largeSteps.Text}, lines...)
	}
	for _, n := range list[:min(len(list), most)] {
		lines = append(lines, fmt.Sprintf("%s %s, %s", table.Memory(n.Value.Bytes), n.Value.Name,
			report.Bounds(x, n.Value)))
	}
	return lines
}

// memoryTitle returns a title with the total allocated memory and the memory used by a step. The title also
// names the dispatch at which intermediate values need the most memory.
func memoryTitle(x *analyze.Index, t *memory.Tenancy, step int, total int64) table.Line {
	parts := []table.Segment{table.Say(1, "values %s", table.Memory(total))}
	if step >= 0 {
		m := x.Trace.Steps[step].Memory
		if m.AllocatedBytes > 0 {
			parts = append(parts,
				table.Say(4, "device memory %s, params included", table.Memory(m.AllocatedBytes)),
				table.Say(3, "live %s", table.Memory(m.LiveBytes)))
		}
	}
	change := make([]int64, len(t.Order)+1)
	for _, list := range t.Slots {
		for _, n := range list {
			if n.First >= 0 {
				change[n.First] += n.Live
				change[n.Last+1] -= n.Live
			}
		}
	}
	var now, most int64
	at := -1
	for i, c := range change {
		if now += c; now > most {
			most, at = now, i
		}
	}
	if at >= 0 && at < len(t.Order) {
		part := table.Say(2, "slots hold at most %s at the same time, during d%d %s", table.Memory(most),
			t.Order[at], x.Name(t.Order[at]))
		part.Short = fmt.Sprintf("slots hold at most %s", table.Memory(most))
		parts = append(parts, part)
	}
	return table.Title(parts...)
}

// largeSteps tells the user that the trace shows the slots of large steps. In small steps, the same graph may
// use other slots.
var largeSteps = table.Segment{
	Rank: 2, Text: "slot assignment of large steps; small steps may use other slots",
	Short: "slots of large steps",
}

// lifeCells is the width in cells of the drawing of a value's lifetime in a step.
const lifeCells = 40

// Tenants returns the table of the slots and of the values that use each slot one after the other.
func Tenants(x *analyze.Index, selection analyze.Selection) *table.Table {
	step, one := selection.One()
	if !one {
		step = -1
	}
	t := memory.Of(x, step)
	type row struct {
		slot   int
		tenant *memory.Tenant // nil for the row of the slot itself
		size   int64          // size of the slot
		n      int
	}
	var list []row
	var rows []tree.Row
	for _, s := range t.Numbers {
		parent := len(list)
		r := row{slot: s, n: len(t.Slots[s])}
		for _, n := range t.Slots[s] {
			r.size = max(r.size, n.Value.Bytes)
		}
		list = append(list, r)
		rows = append(rows, tree.Row{Key: fmt.Sprintf("slot%d", s), Parent: -1, Open: true, Group: true})
		for _, n := range t.Slots[s] {
			list = append(list, row{slot: s, tenant: n, size: r.size})
			rows = append(rows, tree.Row{Key: fmt.Sprintf("v%d", n.Value.ID), Parent: parent, Depth: 1})
		}
	}
	of := table.ColumnsOf(list)
	place := func(f func(*memory.Tenant) int) func(*row) table.Cell {
		return func(r *row) table.Cell {
			if r.tenant == nil || f(r.tenant) < 0 {
				return table.Cell{}
			}
			id := t.Order[f(r.tenant)]
			return table.Cell{Text: fmt.Sprintf("d%d", id), Number: float64(id), Has: true}
		}
	}
	made := table.New("tenants", []table.Column{
		of.Words(80, "what", "slot and value", "slot, and under it the values that use the slot",
			func(r *row) table.Cell {
				if r.tenant == nil {
					return table.Text(fmt.Sprintf("slot %d: %s, %s", r.slot, table.Memory(r.size),
						table.Plural(r.n, "value")))
				}
				return table.Text(r.tenant.Value.Name)
			}).AsTree(),
		of.Cell(140, table.Exact, "value", "#", "id", "id of the value",
			func(r *row) table.Cell {
				if r.tenant == nil {
					return table.Cell{}
				}
				return table.Count(int(r.tenant.Value.ID))
			}),
		of.Cell(80, table.Exact, "first", "from", "id", "first dispatch that uses the value",
			place(func(n *memory.Tenant) int { return n.First })),
		of.Cell(80, table.Exact, "last", "to", "id", "last dispatch that uses the value",
			place(func(n *memory.Tenant) int { return n.Last })),
		of.Cell(80, table.Exact, "bytes", "bytes", "bytes", "bytes of the value at its largest shape",
			func(r *row) table.Cell {
				if r.tenant == nil {
					return table.Cell{}
				}
				b := r.tenant.Value.Bytes
				return table.Cell{Text: table.Memory(b), Number: float64(b), Has: true}
			}),
		of.Cell(80, table.Exact, "fills", "fills %", "%",
			"share of the slot that the value needs; at 100, the value sets the slot's size",
			func(r *row) table.Cell {
				if r.tenant == nil || r.size == 0 {
					return table.Cell{}
				}
				return table.Number(100*float64(r.tenant.Value.Bytes)/float64(r.size), 0)
			}),
		of.Cell(80, table.Exact, "live", "live", "bytes",
			"bytes that the value uses at its shape in this step, or \"fused away\" if no kernel writes the value",
			func(r *row) table.Cell {
				if r.tenant == nil || step < 0 {
					return table.Cell{}
				}
				cell := table.Cell{
					Text: table.Memory(r.tenant.Live), Number: float64(r.tenant.Live),
					Has: true,
				}
				if r.tenant.FusedAway {
					cell.Text = memory.FusedAway
				}
				return cell
			}),
		of.Words(140, "life", "first to last dispatch of the step",
			"bar over the dispatches of the step: █ at dispatches during which the value uses the slot",
			func(r *row) table.Cell {
				if r.tenant == nil || r.tenant.First < 0 {
					return table.Cell{}
				}
				from := r.tenant.First * lifeCells / len(t.Order)
				to := max(from+1, (r.tenant.Last+1)*lifeCells/len(t.Order))
				return table.Text(strings.Repeat("·", from) + strings.Repeat("█", to-from) +
					strings.Repeat("·", lifeCells-to))
			}),
	}, rows)
	slots := table.Plural(len(t.Numbers), "slot")
	values := 0
	for _, l := range t.Slots {
		values += len(l)
	}
	made.Title = []table.Line{table.Title(
		table.Say(1, "%s share %s", table.Plural(values, "value"), slots),
		table.Say(3, "%s", table.Plural(len(t.Order), "dispatch")),
		largeSteps,
	)}
	return made
}
