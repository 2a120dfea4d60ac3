package tui

import (
	"context"
	"strings"
	"testing"

	"gpuscope/trace/inspect"
	"gpuscope/trace/tracetest"
)

// The detail of a row that holds others names the members that stand out among its own dispatches, and none
// of another row's.
func TestDetailNamesTheOutliersOfItsRowAlone(t *testing.T) {
	tr := tracetest.Run(8, 1, 1)
	x := inspect.NewIndex(tr)
	for i := range tr.Steps[1].Dispatches {
		d := &tr.Steps[1].Dispatches[i]
		name := x.Name(tr.Plans[d.Plan].Dispatch)
		d.Samples = []int64{9984, 10_016, 9984, 10_016, 10_000}
		for k := range d.Samples {
			d.Samples[k] += int64(i%3) * 32
			if strings.Contains(name, "layers.5.mlp.down") {
				d.Samples[k] += 3000
			}
		}
	}
	p := drive(t, 120, 40, tr, nil, Options{}).press("2").app.view().(*dispatchPage)
	table := p.table()
	for key, want := range map[string]bool{
		"prologue": false, "layer0": true, "layer0/attn": false, "layer0/mlp": true,
	} {
		row := table.Row(key)
		if row < 0 {
			t.Fatalf("no row %s", key)
		}
		for i, r := range p.rows.rows {
			if r == row {
				p.rows.goTo(i)
			}
		}
		lines, err := p.detail().lines(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		said := strings.Join(lines, "\n")
		if strings.Contains(said, "outlier: layers.5.mlp.down") != want {
			t.Errorf("%s: outlier %v, want %v:\n%s", key, !want, want, said)
		}
	}
}
