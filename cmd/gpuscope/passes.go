package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"gpuscope/cmd/gpuscope/cli"
	"gpuscope/engine/graph"
	"gpuscope/internal/printable"
	"gpuscope/trace/table"
)

// passTable lists the passes that planned a graph: what each pass changed and how long it took.
func passTable(passes []graph.PassReport) *table.Table {
	of := table.ColumnsOf(passes)
	return table.New("passes", []table.Column{
		of.Text(80, "pass", "pass", "", func(p *graph.PassReport) string { return p.Name }),
		of.Cell(80, table.Measured, "ms", "ms", "ms", "",
			func(p *graph.PassReport) table.Cell { return table.Number(p.Took.Seconds()*1e3, 3) }),
		of.Text(80, "changed", "changed", "", changes),
		of.Text(80, "doc", "purpose", "", func(p *graph.PassReport) string { return p.Doc }),
	}, table.Flat(len(passes), func(i int) string { return passes[i].Name }))
}

// changes formats the counts before and after a pass.
func changes(p *graph.PassReport) string {
	var list []string
	for _, c := range p.Counts {
		list = append(list, fmt.Sprintf("%s %d → %d", c.What, c.Before, c.After))
	}
	list = append(list, p.Notes...)
	if len(list) == 0 {
		return table.Unmeasured
	}
	return strings.Join(list, ", ")
}

// printPasses prints a summary of the graph and the table of passes.
func (g *plannedGraph) printPasses(ctx context.Context, w io.Writer) error {
	var b bytes.Buffer
	g.printHead(&b)
	b.WriteByte('\n')
	if err := cli.PrintTable(ctx, &b, passTable(g.Passes)); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (g *plannedGraph) printPass(w io.Writer, name string) error {
	var b bytes.Buffer
	for i := range g.Passes {
		if r := &g.Passes[i]; r.Name == name {
			fmt.Fprintf(&b, "%s: %s\n", r.Name, r.Doc)
			for _, line := range r.Changes() {
				b.WriteString(printable.Clean(line) + "\n")
			}
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}
