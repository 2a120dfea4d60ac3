package report_test

import (
	"strings"
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report/outline"
	"gpuscope/trace/tracetest"
)

// A step that was timed by blocks has times only in the rows of whole blocks.
func TestBlockTimesFillTheirRows(t *testing.T) {
	tr := tracetest.Llama(4, 3)
	s := &tr.Steps[2]
	s.Timing, s.Blocks = "block", nil
	name := func(i int) string {
		o := &tr.Graph.Ops[tr.Graph.Dispatches[tr.Plans[s.Dispatches[i].Plan].Dispatch].Op]
		if o.Layer == nil {
			return o.Name
		}
		return strings.TrimSuffix(o.Name, o.ShortName()) + o.Block
	}
	all, ns := int64(0), int64(1000)
	for i := range s.Dispatches {
		s.Dispatches[i] = trace.StepDispatch{Plan: s.Dispatches[i].Plan}
		if n := len(s.Blocks); n > 0 && s.Blocks[n-1].Name == name(i) {
			s.Blocks[n-1].Dispatches++
			continue
		}
		s.Blocks = append(s.Blocks, trace.Block{Name: name(i), Dispatches: 1, GPUNS: trace.Measured(ns)})
		all, ns = all+ns, ns+1000
	}
	s.GPU = &trace.GPU{BusyNS: trace.Measured(all), SpanNS: trace.Measured(all)}
	x := analyze.NewIndex(tr)
	d := dispatched(x, 2, analyze.Options{})
	sum := 0.0
	for i := range d.Grouped {
		r := &d.Grouped[i]
		if r.Depth == 0 {
			sum += r.SumNS
		}
		if r.Label == "norm" && r.Parent >= 0 && d.Grouped[r.Parent].Label == "mlp" && r.Summed {
			t.Errorf("a part of a block takes %v ns", r.SumNS)
		}
		if r.Label == "mlp" && (!r.Summed || len(r.Each) != 4 || r.Share <= 0) {
			t.Errorf("the block %s takes %v ns each, %v in total", r.Label, r.Each, r.SumNS)
		}
	}
	if int64(sum) != all {
		t.Errorf("the rows take %v ns, the blocks %d", sum, all)
	}
	d = dispatched(x, 2, analyze.Options{Baseline: baseOf(x, 1)})
	for i := range d.Grouped {
		if r := &d.Grouped[i]; r.Delta.Measured {
			t.Errorf("%s: the time of a block is compared with times of dispatches: %+v", r.Label, r.Delta)
		}
	}
	g, err := outline.Graph(ctx, x, analyze.Options{Selection: x.Step(2)})
	if err != nil {
		t.Fatal(err)
	}
	sum = 0
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Depth == 0 {
			sum += n.NS
		}
		if block := n.Label == "embed" || n.Label == "mlp"; n.Edge == "" && (block || n.Label == "gate ×4") &&
			(n.Measured != block || (n.NS > 0) != block || (n.Share > 0) != block) {
			t.Errorf("in Graph %s takes %v ns, share %v", n.Label, n.NS, n.Share)
		}
	}
	title := g.Title[0].String()
	if int64(sum) != all || !strings.Contains(title, "only whole blocks are timed") {
		t.Errorf("in Graph the rows take %v ns, the blocks %d; %q", sum, all, title)
	}
	if title := d.Title[1].String(); !strings.Contains(title, "timing level block: only whole blocks are timed") {
		t.Errorf("%q: want a time for embed, which is its own block", title)
	}
	if short := d.Title[1].Fit(60); !strings.Contains(short, "timing block") {
		t.Errorf("%q", short)
	}
	for i := range s.Dispatches { // repeats, with each dispatch timed in isolation
		s.Dispatches[i].Samples = []int64{500, 600}
	}
	x = analyze.NewIndex(tr)
	if g, err = outline.Graph(ctx, x, analyze.Options{Selection: x.Step(2)}); err != nil {
		t.Fatal(err)
	}
	if title := g.Title[0].String(); strings.Contains(title, "blocks") || !strings.Contains(title,
		"isolated ") {
		t.Errorf("title %q, want isolated times", title)
	}
}
