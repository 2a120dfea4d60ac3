package report_test

import (
	"math"
	"strings"
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report/deviation"
	"gpuscope/trace/table"
	"gpuscope/trace/tracetest"
)

// held returns a trace with errors against references for all dispatches of two steps. They are within their
// tolerances, except those named in shares, in the first step.
func held(shares map[string]float64) *trace.Trace {
	tr := tracetest.Llama(2, 3)
	x := analyze.NewIndex(tr)
	for step := range 2 {
		for i := range tr.Steps[step].Dispatches {
			d := &tr.Steps[step].Dispatches[i]
			d.Error = &trace.NumericError{
				MaxAbs: 1e-6, SNRdB: 120, Reference: "float64", Tolerance: "1e-05: a reason", Share: 0.1,
				Compared: 10, Elements: 10, Run: &trace.Drift{MaxAbs: 2e-6, SNRdB: 110},
			}
			if share, there := shares[x.Name(tr.Plans[d.Plan].Dispatch)]; there && step == 0 {
				d.Error.Share = trace.Number(share)
			}
		}
	}
	return tr
}

func gapsOf(t *testing.T, tr *trace.Trace) *deviation.Errors {
	t.Helper()
	g, err := deviation.Of(ctx, analyze.NewIndex(tr), analyze.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// saidOf returns the verdicts of the rows with a name, in the order of the steps.
func saidOf(g *deviation.Errors, name string) string {
	var said []string
	for row := range g.Rows {
		if label := g.Cell(row, g.Column("dispatch")).Text; label == name {
			said = append(said, g.Cell(row, g.Column("said")).Text)
		}
	}
	return strings.Join(said, " ")
}

func TestWhatComesFromADivergenceInherits(t *testing.T) {
	for name, want := range map[string]string{
		"": "", "layers.0.mlp.gate": "diverges ok", "layers.0.attn.q": "ok ok", "layers.0.mlp.up": "ok ok",
		"layers.0.mlp.mul_gate": "inherits ok", "layers.1.attn.q": "inherits ok",
	} {
		g := gapsOf(t, held(map[string]float64{"layers.0.mlp.gate": 7}))
		if got := saidOf(g, name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if g.Diverge != 1 || g.First == nil || !strings.Contains(g.Title[1].String(), "layers.0.mlp.gate") {
			t.Fatalf("%d diverge: %v", g.Diverge, g.Title)
		}
	}
}

// If a reference is NaN or Inf on inputs from a divergence, that does not show a fault in the kernel. On
// other inputs a kernel that returns a number there diverges.
func TestAReferenceWithoutANumberBlamesTheFirst(t *testing.T) {
	for name, want := range map[string]string{
		"layers.0.mlp.gate": "diverges ok", "layers.0.mlp.sigmoid": "inherits ok", "layers.0.attn.q": "diverges ok",
	} {
		tr := held(map[string]float64{"layers.0.mlp.gate": 7, name: math.Inf(1)})
		x := analyze.NewIndex(tr)
		for i := range tr.Steps[0].Dispatches {
			if d := &tr.Steps[0].Dispatches[i]; x.Name(tr.Plans[d.Plan].Dispatch) == name {
				d.Error.Want = trace.Number(math.NaN())
			}
		}
		if got := saidOf(gapsOf(t, tr), name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// A dispatch that diverges on divergent inputs counts as diverging. All compared dispatches are counted.
func TestTheSumsAreThoseOfTheRows(t *testing.T) {
	tr := held(map[string]float64{"layers.0.mlp.gate": 7, "layers.1.attn.q": 9})
	g := gapsOf(t, tr)
	said := map[string]int{} // verdicts of single dispatches
	for row := range g.Rows {
		if row+1 == len(g.Rows) || g.Rows[row+1].Parent != row {
			said[g.Cell(row, g.Column("said")).Text]++
		}
	}
	all := len(tr.Steps[0].Dispatches) + len(tr.Steps[1].Dispatches)
	if g.Compared != all || g.Diverge != 2 || g.Diverge != said["diverges"] ||
		g.Inherit == 0 || g.Inherit != said["inherits"] {
		t.Errorf("%d of %d diverge, %d inherit; %d rows say %v", g.Diverge, g.Compared, g.Inherit, all, said)
	}
}

// State written by a divergent dispatch affects later steps too.
func TestADivergenceIsInheritedThroughTheCache(t *testing.T) {
	g := gapsOf(t, held(map[string]float64{"layers.0.attn.k": math.NaN()}))
	said := map[string]string{}
	for row := range g.Rows {
		said[g.Cell(row, g.Column("dispatch")).Text] += " " + g.Cell(row, g.Column("said")).Text
	}
	if g.Diverge != 1 || said["layers.0.attn.k"] != " diverges ok" ||
		said["layers.0.attn.o"] != " inherits inherits" {
		t.Errorf("%d diverge; k%s, o%s", g.Diverge, said["layers.0.attn.k"], said["layers.0.attn.o"])
	}
}

func TestFirstNonFiniteNumberIsNamed(t *testing.T) {
	tr := held(nil)
	for i := 5; i < 12; i++ {
		tr.Steps[0].Dispatches[i].Error.NotFinite = 3
	}
	g := gapsOf(t, tr)
	at := tr.Plans[tr.Steps[0].Dispatches[5].Plan].Dispatch
	title := g.Title[len(g.Title)-1].String()
	if head := g.Title[0].String(); !strings.Contains(head, "NaN") {
		t.Errorf("title of a step with NaN: %q", head)
	}
	if g.NotFinite == nil || g.NotFinite.Dispatch != at || g.Diverge != 0 ||
		!strings.Contains(title, "the weights") {
		t.Errorf("%+v: %s", g.NotFinite, title)
	}
}

func TestATraceWithoutGapsSaysSo(t *testing.T) {
	g := gapsOf(t, tracetest.Llama(2, 3))
	if rows, err := g.Select(ctx, table.Selection{}); err != nil || len(rows) > 0 || g.First != nil {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	if title := g.Title[0].String(); title != "nothing was compared with a reference" {
		t.Error(title)
	}
}

func TestNumbersThatDifferAreWrittenSo(t *testing.T) {
	for _, c := range []struct {
		got, want float32
		text      string
	}{
		{0.5, 0.25, "0.5, want 0.25"},
		{8.0259, 8.025901, "8.0259, want 8.025901"},
		{0.129872, 0.12987201, "0.12987199, want 0.12987201"},
	} {
		tr := held(nil)
		gap, value := tr.Steps[0].Dispatches[0].Error, trace.ValueID(0)
		gap.Value, gap.Got, gap.Want = &value, trace.Number(c.got), trace.Number(c.want)
		g := gapsOf(t, tr)
		if cell := g.Cell(1, g.Column("where")).Text; !strings.HasSuffix(cell, "[0]: "+c.text) {
			t.Errorf("%s\nwant %s", cell, c.text)
		}
	}
}
