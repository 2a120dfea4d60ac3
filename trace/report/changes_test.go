package report_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/diff"
	"gpuscope/trace/report"
	"gpuscope/trace/tracetest"
)

// Δ is the difference of the figures next to it, for every grouping, for one step and for several.
func TestDeltaIsTheDifferenceOfTheFigures(t *testing.T) {
	x := analyze.NewIndex(tracetest.Llama(4, 30))
	selections := []string{"s3-12", "s13-22", "s5-20", "decode"}
	rapid.Check(t, func(r *rapid.T) {
		draw := func(what string) analyze.Selection {
			s, err := x.ParseSelection(rapid.SampledFrom(selections).Draw(r, what))
			if err != nil {
				r.Fatal(err)
			}
			return s
		}
		fold := analyze.Grouping(rapid.IntRange(0, 3).Draw(r, "fold"))
		now, baseline := draw("now"), draw("base")
		sums := func(s analyze.Selection, b *analyze.Baseline) map[string][2]float64 {
			tab, err := report.Dispatches(ctx, x, analyze.Options{Selection: s, Grouping: fold, Baseline: b})
			if err != nil {
				r.Fatal(err)
			}
			got := map[string][2]float64{}
			for i, row := range tab.Rows {
				delta := math.NaN()
				if c := tab.Cell(i, tab.Column("delta_us")); c.Has {
					delta = c.Number
				}
				got[row.Key] = [2]float64{tab.Cell(i, tab.Column("sum_us")).Number, delta}
			}
			return got
		}
		then := sums(baseline, nil)
		compared := 0
		for key, f := range sums(now, &analyze.Baseline{Index: x, Selection: baseline}) {
			b, there := then[key]
			if !there || math.IsNaN(f[1]) {
				continue
			}
			compared++
			if want := f[0] - b[0]; math.Abs(want-f[1]) > 1e-6 {
				r.Errorf("%s: %v against %v is %v, Δ says %v", key, f[0], b[0], want, f[1])
			}
		}
		if compared == 0 {
			r.Error("nothing was compared")
		}
	})
}

// A change is shown as the old and the new value. A dispatch that no longer runs has its own row.
func TestDeltaOfDecodeAgainstPrefill(t *testing.T) {
	x := analyze.NewIndex(tracetest.Llama(16, 5))
	tab := dispatched(x, 3, analyze.Options{Baseline: baseOf(x, 0)})
	got := map[string]string{}
	for i := range tab.Rows {
		got[tab.Cell(i, tab.Column("op")).Text] = tab.Cell(i, tab.Column("delta")).Text
	}
	for op, want := range map[string]string{
		"embed": "42→1", "q": "32→1024 r steel→bicol", "sdpa.split": "+", "rope_q": "672→16",
		"sdpa.qk": "-", "sdpa.softmax": "-",
	} {
		if got[op] != want {
			t.Errorf("%s: Δ %q, want %q", op, got[op], want)
		}
	}
	last := 0 // the last removed row: a layer of a row that is in the block of attention
	for i := range tab.Grouped {
		if tab.Grouped[i].Gone() {
			last = i
		}
	}
	row := tab.Rows[last].Parent
	if !tab.Grouped[row].Gone() || tab.Grouped[row].Count() != 16 {
		t.Errorf("the last removed row groups %d dispatches", tab.Grouped[row].Count())
	}
	if block := tab.Rows[row].Parent; tab.Grouped[block].Label != "attn" || tab.Grouped[block].Gone() {
		t.Errorf("it is in %s, want the block of attention", tab.Grouped[block].Label)
	}
	if one := &tab.Grouped[last]; !one.Gone() || one.Count() != 1 || one.Label != "L15" {
		t.Errorf("the last row in it is %s, with %d dispatches", one.Label, one.Count())
	}
	// A filter finds removed dispatches by their figures.
	find, err := tab.ParseFilter(ctx, fmt.Sprintf("#:=%d", tab.Launch(&tab.Grouped[last]).ID))
	if err != nil || !find.Match(tab.Table, last) {
		t.Errorf("a filter does not find the id of a removed dispatch: %v", err)
	}
	if grid := tab.Cell(row, tab.Column("grid")).Text; grid == "" || tab.Cell(row, tab.Column("us")).Text != "" {
		t.Errorf("a removed row has the grid %q", grid)
	}
	if n := len(tab.Launches); n != len(x.Trace.Steps[3].Dispatches) {
		t.Errorf("removed dispatches are counted: %d", n)
	}
}

// The times of a heading at the baseline are the sums of those of its rows, also if some dispatches ran on
// only one side. The times of the rows without a heading add up to the total, and those of the layers are the
// times that a diff has.
func TestHeadingsAddUpAtTheBaseline(t *testing.T) {
	other := tracetest.Llama(16, 5) // of a graph in which some operators have other names
	for i := range other.Graph.Ops {
		switch o := &other.Graph.Ops[i]; o.Name {
		case "layers.0.mlp.down", "layers.1.mlp.down", "layers.3.attn.q", "lm_head":
			o.Name += "_proj"
		}
	}
	for name, c := range map[string]struct{ now, base *analyze.Index }{
		"routes": {analyze.NewIndex(tracetest.Llama(16, 5)), nil},
		"layers": {analyze.NewIndex(tracetest.Llama(4, 5)), analyze.NewIndex(tracetest.Llama(16, 5))},
		"names":  {analyze.NewIndex(other), analyze.NewIndex(tracetest.Llama(16, 5))},
	} {
		b := &analyze.Baseline{Index: c.base, Selection: analyze.Selection{}}
		if b.Index == nil {
			b.Index = c.now
		}
		b.Selection = b.Index.Step(0)
		for _, by := range analyze.GroupingNames() {
			fold, _ := analyze.ParseGrouping(by)
			tab := dispatched(c.now, len(c.now.Trace.Steps)-1, analyze.Options{Baseline: b, Grouping: fold})
			below := make([]float64, len(tab.Grouped))
			all := 0.0
			for i := range tab.Grouped {
				switch r := &tab.Grouped[i]; {
				case r.Joint:
				case r.Parent >= 0:
					below[r.Parent] += r.Delta.BaselineNS
				default:
					all += r.Delta.BaselineNS
				}
			}
			for i := range tab.Grouped {
				if r := &tab.Grouped[i]; r.Group && math.Abs(r.Delta.BaselineNS-below[i]) > 1e-6 {
					t.Errorf("%s by %s: %s took %v, its rows %v",
						name, by, r.Label, r.Delta.BaselineNS, below[i])
				}
			}
			if want := tab.Sum.Delta.BaselineNS; math.Abs(all-want) > 1e-6 {
				t.Errorf("%s by %s: the rows took %v, the total %v", name, by, all, want)
			}
			if fold != analyze.GroupLayer {
				continue
			}
			d, err := diff.Of(t.Context(), diff.Side{Index: b.Index, Selection: b.Selection},
				diff.Side{Index: c.now, Selection: tab.Selection})
			if err != nil {
				t.Fatal(err)
			}
			got, want := 0.0, 0.0
			for i := range tab.Grouped {
				if r := &tab.Grouped[i]; r.Group && r.Parent < 0 && strings.HasPrefix(r.Label, "layer") {
					got += r.Delta.BaselineNS
				}
			}
			layers := 0
			for _, g := range d.GroupsBy(diff.ByLayer) {
				if strings.HasPrefix(g.Name, "layer ") && g.Now > 0 {
					want += g.Times.Base.NS
					layers++
				}
			}
			if layers == 0 || math.Abs(got-want) > 1e-6 {
				t.Errorf("%s: %d layers took %v, in the diff %v", name, layers, got, want)
			}
		}
	}
}

// An edited kernel is not a new route. It is counted and named separately.
func TestAnotherTextOfAKernelIsNoRoute(t *testing.T) {
	tr := tracetest.Llama(16, 5)
	edited := map[trace.PlanID]trace.PlanID{}
	for i := range tr.Steps[3].Dispatches {
		d := &tr.Steps[3].Dispatches[i]
		p := tr.Plans[d.Plan]
		if tr.Graph.Ops[tr.Graph.Dispatches[p.Dispatch].Op].Name != "layers.2.attn.q" {
			continue
		}
		was := p.ID
		p.ID, p.Kernel = trace.PlanID(len(tr.Plans)), p.Kernel+"+3fa21b07"
		tr.Plans, d.Plan, edited[was] = append(tr.Plans, p), p.ID, p.ID
	}
	if len(edited) != 1 {
		t.Fatalf("plans %v", edited)
	}
	x := analyze.NewIndex(tr)
	for _, c := range []struct {
		at, baseline int
		title, delta string
	}{
		{3, 2, "Δ s2: 1 edited", "k own→3fa21b07"},
		{4, 3, "Δ s3: 1 edited", "k 3fa21b07→own"},
	} {
		tab := dispatched(x, c.at, analyze.Options{
			Baseline: baseOf(x, c.baseline),
			Grouping: analyze.GroupNone,
		})
		said := fmt.Sprint(tab.Title)
		if !strings.Contains(said, c.title) || strings.Contains(said, "route") {
			t.Errorf("step %d: %s", c.at, said)
		}
		found := 0
		for i := range tab.Rows {
			if l := &tab.Launches[i]; x.Name(l.ID) == "layers.2.attn.q" {
				found++
				if got := tab.Cell(i, tab.Column("delta")).Text; !strings.HasPrefix(got, c.delta) {
					t.Errorf("step %d: Δ %q, want %q", c.at, got, c.delta)
				}
			}
		}
		if found != 1 {
			t.Errorf("step %d: %d rows", c.at, found)
		}
	}
}

// All sparklines have the same scale, ±20 % of their median. A variation of 3 % stays in the middle.
func TestSparklinesHaveOneScale(t *testing.T) {
	x := analyze.NewIndex(tracetest.Llama(16, 5))
	tab := dispatched(x, 3, analyze.Options{})
	drawn := 0
	for i := range tab.Rows {
		r := &tab.Grouped[i]
		line := []rune(tab.Cell(i, tab.Column("spark")).Text)
		if len(line) == 0 {
			continue
		}
		drawn++
		for k, bar := range line {
			off := r.Each[k]/r.Time.Median - 1
			middle, near := bar == '▄' || bar == '▅', math.Abs(off) < 0.05
			if middle != near && math.Abs(math.Abs(off)-0.05) > 1e-9 {
				t.Errorf("%s: %+.1f%% is drawn as %c", r.Label, 100*off, bar)
			}
		}
	}
	if drawn == 0 {
		t.Error("nothing was drawn")
	}
}

// A prompt of the maximum length needs all workgroups of a static run. The title says so at every width, and
// so does each row.
func TestStaticStepWithoutWaste(t *testing.T) {
	tr := tracetest.Llama(4, 5)
	tr.Static = true
	for i := range tr.Plans {
		p := &tr.Plans[i]
		p.Workgroups = tr.Graph.Dispatches[p.Dispatch].MaxWorkgroups
		p.NeededGrid, p.NeededGroups = p.Workgroups, int64(p.Workgroups[0]*p.Workgroups[1]*p.Workgroups[2])
	}
	tab := dispatched(analyze.NewIndex(tr), 3, analyze.Options{})
	for w, want := range map[int]string{60: "STATIC", 80: "STATIC", 200: "STATIC: largest grids · 0 of "} {
		if short := tab.Title[1].Fit(w); !strings.HasPrefix(short, want) || !strings.Contains(short, " not needed") {
			t.Errorf("at width %d: %q", w, short)
		}
	}
	for i := range tab.Rows {
		if got := tab.Cell(i, tab.Column("over_wg")).Text; got != "0" {
			t.Fatalf("%s: %q workgroups not needed", tab.Rows[i].Key, got)
		}
	}
}

// The trace records that grids are pinned. The title begins with that and with what it costs.
func TestStaticLeadsTheTitle(t *testing.T) {
	tr := tracetest.Llama(4, 5)
	tr.Static = true
	for i := range tr.Plans {
		p := &tr.Plans[i]
		p.Workgroups = tr.Graph.Dispatches[p.Dispatch].MaxWorkgroups
	}
	x := analyze.NewIndex(tr)
	tab := dispatched(x, 3, analyze.Options{})
	over, launched := int64(0), int64(0)
	for i := range tab.Launches {
		over += tab.Launches[i].Waste.Groups()
		launched += tab.Launches[i].Waste.Launched
	}
	title := tab.Title[1].String()
	if want := "STATIC: largest grids · "; !strings.HasPrefix(title, want) {
		t.Errorf("%q does not begin with %q", title, want)
	}
	want := fmt.Sprintf("(%.1f%%) · the most in ", 100*float64(over)/float64(launched))
	if !strings.Contains(title, want) {
		t.Errorf("%q does not say %q", title, want)
	}
	costed := dispatched(costed(t, tr, 3), 3, analyze.Options{}).Title[1].String()
	_, most, _ := strings.Cut(title, " · the most in ")
	if most, _, _ = strings.Cut(most, " · "); !strings.Contains(costed, " · the most in "+most) {
		t.Errorf("want %s as the row that wastes most, also with costs: %s", most, costed)
	}
	for _, w := range []int{60, 80, 200} {
		short := tab.Title[1].Fit(w)
		if !strings.HasPrefix(short, "STATIC") || !strings.Contains(short, "%") {
			t.Errorf("at width %d: %q", w, short)
		}
	}
	sum := 0.0
	for i, r := range tab.Rows {
		if !r.Group && (r.Parent < 0 || tab.Rows[r.Parent].Group) {
			sum += tab.Cell(i, tab.Column("over_wg")).Number
		}
	}
	if int64(sum) != over {
		t.Errorf("the rows waste %v workgroups, the title says %d", sum, over)
	}
	baseline := baseOf(analyze.NewIndex(tracetest.Llama(4, 5)), 3)
	against := dispatched(x, 3, analyze.Options{Baseline: baseline}).Title[1].String()
	for _, w := range []int{60, 80, 120} {
		short := dispatched(x, 3, analyze.Options{Baseline: baseline}).Title[1].Fit(w)
		if !strings.Contains(short, "STATIC") || !strings.Contains(short, " not needed") ||
			!strings.Contains(short, " grid") {
			t.Errorf("at width %d: %q", w, short)
		}
	}
	if want := " (1.0× "; !strings.Contains(against, want) {
		t.Errorf("%q does not say %q", against, want)
	}
	// Runs that were timed by step have no sums, but both have a span.
	whole := func(static bool, ms int64) *analyze.Index {
		tr := tracetest.Llama(4, 5)
		tr.Static = static
		for i := range tr.Steps {
			s := &tr.Steps[i]
			s.Timing, s.GPU, s.CPU.TotalNS = "step", &trace.GPU{SpanNS: us(1000 * ms)}, us(1100*ms)
			for k := range s.Dispatches {
				s.Dispatches[k] = trace.StepDispatch{Plan: s.Dispatches[k].Plan}
			}
		}
		return analyze.NewIndex(tr)
	}
	baseline = baseOf(whole(false, 16), 3)
	against = dispatched(whole(true, 752), 3, analyze.Options{Baseline: baseline}).Title[1].String()
	if want := " 16.0 → 752 ms (47.0× "; !strings.Contains(against, want) {
		t.Errorf("%q does not say %q", against, want)
	}
	if dynamic := analyze.NewIndex(tracetest.Llama(4, 5)); dynamic.Static() {
		t.Error("a run that follows the live shape is reported as static")
	}
}

// No screen has room for a bar for each of a thousand layers, and what is drawn in every frame must be
// limited.
func TestASparklineOfManyLayersKeepsTheFarthest(t *testing.T) {
	tr := tracetest.Llama(300, 2)
	x := analyze.NewIndex(tr)
	tab := dispatched(x, 1, analyze.Options{})
	drawn := 0
	for i := range tab.Rows {
		if len(tab.Grouped[i].Each) < 300 || tab.Grouped[i].Group {
			continue
		}
		line, _, _ := strings.Cut(tab.Cell(i, tab.Column("spark")).Text, " ")
		if n := len([]rune(line)); n == 0 || n > 128 {
			t.Errorf("%s: %d bars", tab.Grouped[i].Label, n)
		}
		drawn++
	}
	if drawn == 0 {
		t.Error("no row has that many members")
	}
}

// The letters of a heading are never cut, on any screen. With some letters missing they would mean something
// else.
func TestDeltaLettersOfGroupsAreNeverCut(t *testing.T) {
	x := analyze.NewIndex(tracetest.Llama(4, 5))
	tab, n := dispatched(x, 1, analyze.Options{Baseline: baseOf(x, 0)}), 0
	for i, r := range tab.Grouped {
		want := r.Delta.PlanDiff.String()
		if !r.Group || len(want) < 2 {
			continue
		}
		if c := tab.Cell(i, tab.Column("delta")); c.Short != want {
			t.Errorf("%s: Δ %q is shortened to %q, want %q", r.Key, c.Text, c.Short, want)
		}
		n++
	}
	if n == 0 {
		t.Error("there are no headings")
	}
}
