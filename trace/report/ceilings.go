package report

import (
	"context"
	"fmt"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/table"
)

func init() {
	Register(Table{
		Name: "ceilings", Takes: NoSteps,
		Doc: "highest measured rates of the device; dispatches are compared with these rates",
		Of: func(_ context.Context, x *analyze.Index, _ analyze.Options) (*table.Table, error) {
			return CeilingTable(&x.Trace.Device), nil
		},
	})
}

// ceilingRow is one ceiling of a device.
type ceilingRow struct{ what, text string }

func ceilingRows(c *trace.Ceilings) []ceilingRow {
	var rows []ceilingRow
	if c == nil {
		return nil
	}
	for _, r := range c.CopyBytesPerS {
		rows = append(rows, ceilingRow{
			"copy, working set " + table.Memory(r.Bytes), table.Scaled(r.PerS, "B/s"),
		})
	}
	if c.FlopsPerS > 0 {
		rows = append(rows, ceilingRow{
			"multiply and add, f32", table.Scaled(c.FlopsPerS, "FLOP/s"),
		})
	}
	for _, t := range []struct {
		what string
		time trace.Time
	}{
		{"empty dispatch after a barrier", c.DispatchNS}, {"empty pass, timed", c.TimedPassNS},
	} {
		if ns, ok := t.time.NS(); ok {
			rows = append(rows, ceilingRow{t.what, fmt.Sprintf("%.1f µs", float64(ns)/1e3)})
		}
	}
	if n := c.FillWorkgroups; n > 0 {
		rows = append(rows, ceilingRow{"workgroups that fill the device", fmt.Sprint(n)})
	}
	return rows
}

// CeilingTable returns the table of a device's ceilings. If there are no ceilings, the table says so.
func CeilingTable(d *trace.Device) *table.Table {
	rows := ceilingRows(d.Ceilings)
	of := table.ColumnsOf(rows)
	t := table.New("ceilings", []table.Column{
		of.Text(80, "ceiling", "ceiling", "what was measured", func(r *ceilingRow) string { return r.what }),
		of.Text(80, "at_best", "at best",
			"best of several runs; for an empty dispatch and an empty pass, the median of the runs",
			func(r *ceilingRow) string { return r.text }).AlignRight(),
	}, table.Flat(len(rows), func(row int) string { return rows[row].what }))
	t.Title = []table.Line{table.Title(table.Segment{Text: d.Name})}
	switch {
	case d.Ceilings == nil:
		t.Notes = []string{"ceilings not measured: run gpuscope devices --measure"}
	case d.Software():
		t.Notes = []string{"software device: compare only ratios of times"}
	}
	return t
}

// CeilingFacts returns a device's ceilings as a few short lines.
func CeilingFacts(c *trace.Ceilings) []string {
	var copies, others string
	for i, r := range ceilingRows(c) {
		list := &others
		text := r.what + " " + r.text
		if i < len(c.CopyBytesPerS) {
			list, text = &copies, fmt.Sprintf("%s %s", table.Memory(c.CopyBytesPerS[i].Bytes), r.text)
		}
		if *list != "" {
			*list += ", "
		}
		*list += text
	}
	var lines []string
	if copies != "" {
		lines = append(lines, "copy rate for each working set: "+copies)
	}
	if others != "" {
		lines = append(lines, others)
	}
	return lines
}
