package rowchart

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/tracetest"
	"gpuscope/tui/widget"
)

func TestRowOfLayersHasAColumnForEach(t *testing.T) {
	x := analyze.NewIndex(tracetest.Llama(4, 6))
	tree, err := x.DispatchTree(context.Background(), analyze.Options{Selection: x.Step(5)})
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(tree.Grouped, func(r analyze.DispatchRow) bool {
		return !r.Group && len(r.Units) == 4
	})
	r := tree.Grouped[at]
	row := Row{Name: "a\x1b[2Jb", Each: r.Each}
	for _, unit := range r.Units {
		row.Units = append(row.Units, []trace.DispatchID{tree.Launches[unit[0]].ID})
	}
	c, err := of(context.Background(), x, tree.Selection, row)
	if err != nil || !slices.Equal(c.names, []string{"L0", "L1", "L2", "L3"}) || c.at != -1 {
		t.Fatalf("%+v, %v", c, err)
	}
	if strings.Contains(c.title, "\x1b") {
		t.Errorf("title %q", c.title)
	}
	for k, ns := range r.Each {
		if c.values[k] != ns/1e3 {
			t.Errorf("layer %d: %v µs, want %v ns", k, c.values[k], ns)
		}
	}
	// By the grid, the same row is shown over the steps of its phase.
	row.Column = "grid"
	c, err = of(context.Background(), x, tree.Selection, row)
	if err != nil || len(c.values) != 5 || c.names[c.at] != "s5" {
		t.Fatalf("%+v, %v", c, err)
	}
	sum := 0
	for _, unit := range r.Units {
		sum += int(analyze.Product(tree.Launches[unit[0]].Plan.Workgroups))
	}
	if c.values[c.at] != float64(sum) {
		t.Errorf("%v workgroups in s5, want %d", c.values[c.at], sum)
	}
}

func TestRowOfOneDispatchIsShownOverSteps(t *testing.T) {
	tr := tracetest.Llama(1, 6)
	s := &tr.Steps[3]
	s.Dispatches = slices.Clone(s.Dispatches)
	s.Dispatches[0].GPUNS, s.Dispatches[0].Samples = trace.Time{}, nil
	x := analyze.NewIndex(tr)
	row := Row{Name: "embed", Units: [][]trace.DispatchID{{tr.Plans[s.Dispatches[0].Plan].Dispatch}}}
	c, err := of(context.Background(), x, x.Step(5), row)
	if err != nil || len(c.values) != 5 || c.at != 4 || !math.IsNaN(c.values[2]) || !(c.values[3] > 0) {
		t.Fatalf("%+v, %v", c, err)
	}
	if c, err := of(context.Background(), x, x.Step(0), row); c != nil || err != nil {
		t.Errorf("the only step of its phase has a chart: %+v, %v", c, err)
	}
}

// If there are more values than cells, a cell has the largest of several. Names do not overlap.
func TestChartFitsItsRoom(t *testing.T) {
	th, err := widget.NewTheme("dark", "never", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	g, err := widget.NewGlyphs("block")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{3, 30, 200, 5000} {
		c := &chart{title: "row", unit: "µs", at: n - 1}
		for i := range n {
			c.names = append(c.names, "s"+strings.Repeat("1", 1+i%4))
			c.values = append(c.values, float64(i%7))
		}
		c.values[n/2] = 100
		p := Pane{}
		p.task.Value = c
		lines := p.Draw(th, g, 80, 12)
		if len(lines) != 12 {
			t.Fatalf("%d values: %d lines", n, len(lines))
		}
		for _, l := range lines {
			if ansi.StringWidth(l) > 80 {
				t.Errorf("%d values: %d cells in %q", n, ansi.StringWidth(l), l)
			}
		}
		full := strings.Count(lines[2], "█")
		want := map[int]int{3: 5, 30: 2, 200: 1, 5000: 1}[n]
		if full != want || !strings.Contains(lines[2], "100") {
			t.Errorf("%d values: the largest fills %d cells, want %d", n, full, want)
		}
		if !strings.Contains(lines[10], "▲") {
			t.Errorf("%d values: the shown step has no mark: %q", n, lines[10])
		}
		if p.Draw(th, g, 80, leastHeight-1) != nil {
			t.Errorf("%d values: a chart in %d lines", n, leastHeight-1)
		}
	}
}
