package report_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/rates"
	"gpuscope/trace/report"
	"gpuscope/trace/report/outline"
	"gpuscope/trace/table"
	"gpuscope/trace/tracetest"
)

func TestScopesAreNamedByWordsAndNumbers(t *testing.T) {
	tr := tracetest.Run(1, 40, 7, 1, 1, 1)
	for i := range tr.Steps {
		tr.Steps[i].Index += 10 // a recorder dropped the first steps
		tr.Steps[i].Cold = i == 0 || i == 3
	}
	x := analyze.NewIndex(tr)
	for _, c := range []struct {
		word string
		want []int
		cold int
	}{
		{"last", []int{4}, 0},
		{"13", []int{3}, 0}, // a single step is selected even if it is cold
		{"s12", []int{2}, 0},
		{"10-12", []int{1, 2}, 1},
		{"s12-s999999999999", []int{2, 4}, 1},
		{"prefill", []int{1}, 1},
		{"decode", []int{2, 4}, 1},
		{"all", []int{1, 2, 4}, 2},
		{"13-13", []int{3}, 0}, // the only step in the range
	} {
		s, err := x.ParseSelection(c.word)
		if err != nil || !slices.Equal(s.Steps, c.want) || s.Cold != c.cold {
			t.Errorf("%s: %+v, %v; want %v and %d cold", c.word, s, err, c.want, c.cold)
		}
	}
	for _, word := range []string{"", "9", "15", "execute", "14-12", "0-9", "-3", "3-", "x", "1e3", "9999999999999999999"} {
		if s, err := x.ParseSelection(word); err == nil || !strings.Contains(err.Error(), "s10 to s14") {
			t.Errorf("%q: %+v, %v; want an error that says which steps there are", word, s, err)
		}
	}
	if _, err := analyze.NewIndex(tracetest.Run(1)).ParseSelection("last"); err == nil {
		t.Error("a trace without steps has a last step")
	}
}

// A median only includes steps in which the dispatch did the same work on the same route.
func TestMediansNeverMixWorkOrRoutes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		chunks := rapid.SliceOfN(rapid.SampledFrom([]int{1, 1, 1, 7, 40}), 2, 9).Draw(t, "chunks")
		tr := tracetest.Run(2, chunks...)
		for i := range tr.Steps {
			tr.Steps[i].Cold = false
		}
		x := analyze.NewIndex(tr)
		d, err := report.Dispatches(ctx, x, analyze.Options{
			Selection: x.All(), Grouping: analyze.Grouping(rapid.IntRange(0, 3).Draw(t, "fold")),
		})
		if err != nil {
			t.Fatal(err)
		}
		times := map[string][]int64{}
		work := func(id trace.DispatchID, p *trace.Plan, tokens int) string {
			return fmt.Sprint(id, p.Kernel, p.Route, tokens)
		}
		for i := range tr.Steps {
			for _, sd := range tr.Steps[i].Dispatches {
				p := &tr.Plans[sd.Plan]
				ns, _ := sd.GPUNS.NS()
				w := work(p.Dispatch, p, len(tr.Steps[i].Tokens))
				times[w] = append(times[w], ns)
			}
		}
		if len(d.Launches) != len(times) {
			t.Fatalf("%d launches for %d distinct works", len(d.Launches), len(times))
		}
		for _, l := range d.Launches {
			want := times[work(l.ID, l.Plan, l.Tokens)]
			if !slices.Equal(l.Samples, want) || l.Runs != len(want) || l.Time.N != len(want) {
				t.Fatalf("%s: samples %v in %d steps, want %v", x.Name(l.ID), l.Samples, l.Runs, want)
			}
		}
		keys := map[string]bool{}
		for _, r := range d.Rows {
			if keys[r.Key] {
				t.Fatalf("two rows have the key %s", r.Key)
			}
			keys[r.Key] = true
		}
		var share float64
		for _, r := range d.Grouped {
			if r.Depth == 0 {
				share += r.Share
			}
		}
		if share < 0.999999 || share > 1.000001 {
			t.Fatalf("the shares add up to %v", share)
		}
	})
}

func TestGrowingGridIsShownAsARange(t *testing.T) {
	x := analyze.NewIndex(tracetest.Llama(1, 26)) // the attention's grid grows at step 23
	selection, err := x.ParseSelection("decode")
	if err != nil {
		t.Fatal(err)
	}
	d, err := report.Dispatches(ctx, x, analyze.Options{Selection: selection, Grouping: analyze.GroupNone})
	if err != nil {
		t.Fatal(err)
	}
	row := d.Row("d14")
	if got := d.Cell(row, d.Column("grid")).Text; got != "32–64" {
		t.Errorf("grid %q, want 32–64", got)
	}
	number := func(column string) float64 { return d.Cell(row, d.Column(column)).Number }
	if least, most := number("grid_min"), number("grid"); least != 32 || most != 64 {
		t.Errorf("the machine-readable grid is %g to %g, want 32 to 64", least, most)
	}
	for _, name := range []string{"needed", "over_wg"} {
		if got := d.Cell(row, d.Column(name)); got.Text != "" {
			t.Errorf("%s is %q although the steps differ", name, got.Text)
		}
	}
	if got := d.Title[1].String(); !strings.HasPrefix(got, "decode: medians of 25 steps") {
		t.Error(got)
	}
}

func TestSelectionOfOneWarmStepNamesExcludedSteps(t *testing.T) {
	tr := tracetest.Run(1, 40, 1, 1)
	tr.Steps[1].Cold = true
	x := analyze.NewIndex(tr)
	selection, err := x.ParseSelection("decode")
	if err != nil {
		t.Fatal(err)
	}
	d, err := report.Dispatches(ctx, x, analyze.Options{Selection: selection})
	if err != nil || !strings.Contains(d.Title[1].String(), "1 warm step of 2") {
		t.Error(d.Title, err)
	}
}

// Every text about a selection says how many steps it covers, and how many there are including cold ones.
func TestEveryTableTitleHasTheStepCount(t *testing.T) {
	tr := tracetest.Run(1, 5, 2, 1, 1)
	tr.Steps[0].Cold, tr.Steps[1].Cold, tr.Steps[2].Cold = true, false, true
	tr.Steps[1].Phase = trace.Prefill
	x := analyze.NewIndex(tr)
	for word, want := range map[string]string{
		"0-3": "s0–s3: medians of 2 warm steps of 4", "prefill": "prefill s1, chunk 2 of 2: 1 warm step of 2",
	} {
		selection, err := x.ParseSelection(word)
		if err != nil {
			t.Fatal(err)
		}
		if said := report.SelectionText(selection); word == "0-3" && said != "s0–s3: 2 warm steps of 4" {
			t.Errorf("selection %s is shown as %s", word, said)
		}
		for _, name := range []string{"dispatches", "graph", "steps", "blocks"} {
			made, err := report.TableNamed(name)
			if err != nil {
				t.Fatal(err)
			}
			tab, err := made.Of(ctx, x, analyze.Options{Selection: selection})
			if err != nil {
				t.Fatal(err)
			}
			said := ""
			for _, l := range tab.Title {
				said += l.String() + "\n"
			}
			if one := "chunk 2 of 2, 1 warm step of 2"; !strings.Contains(said, want) &&
				(name != "dispatches" || !strings.Contains(said, one)) {
				t.Errorf("%s of %s: %s", name, word, said)
			}
		}
	}
}

// If a dispatch changed its route within a selection, the table only covers the steps on the routes of the
// last step. Rows of both routes would show layers that no step had.
func TestSelectionKeepsTheRoutesOfItsLastStep(t *testing.T) {
	tr := tracetest.Run(3, 40, 1, 1, 1, 1, 1)
	tracetest.Reroute(tr, 1, 2, 3)
	for i := 1; i < 4; i++ { // one dispatch less
		s := &tr.Steps[i]
		s.Dispatches = slices.Delete(s.Dispatches, 4, 5)
	}
	x := analyze.NewIndex(tr)
	selection := x.Range(1, 5)
	d, err := report.Dispatches(ctx, x, analyze.Options{Selection: selection})
	if err != nil {
		t.Fatal(err)
	}
	want := "s1–s5: medians of 2 of 5 steps: "
	if got := d.Title[1].String(); !strings.HasPrefix(got, want) {
		t.Error(got)
	}
	last, err := report.Dispatches(ctx, x, analyze.Options{Selection: x.Step(5)})
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Rows) != len(last.Rows) {
		t.Fatalf("%d rows, s5 has %d", len(d.Rows), len(last.Rows))
	}
	for i, r := range d.Rows {
		if r.Key != last.Rows[i].Key || d.Launch(&d.Grouped[i]).Level != last.Launch(&last.Grouped[i]).Level {
			t.Errorf("row %d is %s, in s5 %s", i, r.Key, last.Rows[i].Key)
		}
	}
	g, err := outline.Graph(ctx, x, analyze.Options{Selection: selection})
	if err != nil || len(g.Selection.Steps) != 2 ||
		!strings.Contains(g.Title[0].String(), " same routes as s5") {
		t.Errorf("%v, %v", g.Title, err)
	}
	baseline := &analyze.Baseline{Index: x, Selection: selection}
	d, err = report.Dispatches(ctx, x, analyze.Options{Selection: x.Step(5), Baseline: baseline})
	if err != nil || len(d.Baseline.Selection.Steps) != 2 || len(d.Gone) > 0 ||
		!strings.Contains(d.Title[1].String(), "Δ s1–s5 n=2 of 5: same plans") {
		t.Errorf("%v, %v, %d gone", d.Title, err, len(d.Gone))
	}
	d, err = report.Dispatches(ctx, x, analyze.Options{Selection: x.Range(1, 4)})
	if err != nil || len(d.Selection.Steps) != 1 ||
		!strings.Contains(d.Title[1].String(), " same routes as s4") {
		t.Errorf("%v, %v", d.Title, err)
	}
	d, err = report.Dispatches(ctx, x, analyze.Options{Selection: x.Range(1, 3)})
	if err != nil || d.Selection.Rerouted != 0 {
		t.Errorf("%v, %v: want all steps, as all are on the routes of s3", d.Title, err)
	}
}

// Dispatches that only ran with other work come after those of the last step. They have no level in that
// step, and the title does not count them, neither in the levels nor in what overlapped.
func TestOtherWorkComesAfterTheLastStepsWork(t *testing.T) {
	x := analyze.NewIndex(tracetest.Run(2, 40, 40, 1, 1))
	d, err := report.Dispatches(ctx, x, analyze.Options{
		Selection: x.Range(1, 3),
		Grouping:  analyze.GroupNone,
	})
	if err != nil {
		t.Fatal(err)
	}
	n := len(x.Trace.Steps[3].Dispatches)
	if len(d.Launches) <= n {
		t.Fatalf("%d dispatches, all of the last step", len(d.Launches))
	}
	for i, l := range d.Launches {
		if now := i < n; now != (l.Step == 3) || now != (l.Level >= 0) || now && l.Index != i {
			t.Errorf("place %d: %s of step %d, index %d, level %d", i, x.Name(l.ID), l.Step, l.Index, l.Level)
		}
	}
	levels := d.Launches[n-1].Level + 1
	title := d.Title[1].String()
	for _, want := range []string{
		fmt.Sprintf(" · %d dispatches, %d of them in %d levels · ", len(d.Launches), n, levels),
		fmt.Sprintf(" · dispatches that can overlap when untimed: %d", n-levels),
	} {
		if !strings.Contains(title, want) {
			t.Errorf("%q does not say %q", title, want)
		}
	}
}

// If only a few of many steps were timed, the title says how many the medians cover.
func TestSelectionHasTheStepCountOfTimes(t *testing.T) {
	tr := tracetest.Run(1, 40, 1, 1, 1)
	title := func() string {
		x := analyze.NewIndex(tr)
		selection, err := x.ParseSelection("decode")
		if err != nil {
			t.Fatal(err)
		}
		d, err := report.Dispatches(ctx, x, analyze.Options{Selection: selection})
		if err != nil {
			t.Fatal(err)
		}
		return d.Title[1].String()
	}
	if got := title(); strings.Contains(got, "of them timed") {
		t.Errorf("title %q of steps that were all timed", got)
	}
	s := &tr.Steps[1]
	s.Timing = trace.TimingStep
	for i := range s.Dispatches {
		s.Dispatches[i].GPUNS, s.Dispatches[i].Samples = trace.Time{}, nil
	}
	if got := title(); !strings.HasPrefix(got, "decode: 3 steps, 2 of them timed · ") {
		t.Errorf("title %q", got)
	}
}

// If a dispatch has several routes in a baseline, it is compared with the one that did the same work.
func TestAScopeIsComparedRouteByRoute(t *testing.T) {
	x := analyze.NewIndex(tracetest.Run(1, 40, 1, 1, 1, 1, 40))
	d, err := report.Dispatches(ctx, x, analyze.Options{
		Selection: x.Step(5), Grouping: analyze.GroupNone, Baseline: &analyze.Baseline{
			Index:     x,
			Selection: x.All(),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range d.Launches {
		if l.Delta.Route || l.Delta.New {
			t.Errorf("%s: %s against the same work", x.Name(l.ID), l.Delta.PlanDiff)
		}
	}
	if s := d.Baseline.Selection; len(d.Gone) > 0 || s.Apart != 4 || s.Tokens != 40 {
		t.Errorf("%d are gone, baseline %+v; want only the other prompt of 40 tokens", len(d.Gone), s)
	}
}

// If the steps of a baseline differ in length, as chunks of a prompt do, a removed dispatch is still listed
// once.
func TestRemovedDispatchesAreListedOnce(t *testing.T) {
	x := analyze.NewIndex(tracetest.Run(2, 40, 40, 24, 1))
	gone := func(from, to int) []int {
		d := dispatched(x, 3, analyze.Options{Baseline: &analyze.Baseline{Index: x, Selection: x.Range(from,
			to)}})
		var steps []int
		for _, l := range d.Gone {
			steps = append(steps, l.Step)
		}
		return steps
	}
	want := gone(2, 2)
	if got := gone(1, 2); len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("removed dispatches with all steps %v, with only the last step %v", got, want)
	}
}

func TestWhatTakesLongEndsWithItsContext(t *testing.T) {
	x := analyze.NewIndex(tracetest.Run(1, 1, 1))
	d := dispatched(x, 1, analyze.Options{Grouping: analyze.GroupNone})
	over, cancel := context.WithCancel(context.Background())
	cancel()
	for name, try := range map[string]func() error{
		"dispatches": func() error {
			_, err := report.Dispatches(over, x, analyze.Options{Selection: x.All()})
			return err
		},
		"one step": func() error {
			_, err := report.Dispatches(over, x, analyze.Options{Selection: x.Step(1)})
			return err
		},
		"resize":  func() error { _, err := report.Resized(over, x, 1); return err },
		"profile": func() error { _, err := rates.Of(over, x, analyze.Selection{}); return err },
		"select":  func() error { _, err := d.Select(over, table.Selection{}); return err },
		"sort":    func() error { _, err := d.Select(over, table.Selection{Sort: "us"}); return err },
		"text":    func() error { return d.Print(over, &strings.Builder{}, "text", []int{0, 1}, 0) },
		"json":    func() error { return d.Print(over, &strings.Builder{}, "json", []int{0, 1}, 0) },
		"csv":     func() error { return d.Print(over, &strings.Builder{}, "csv", []int{0, 1}, 0) },
		"md":      func() error { return d.Print(over, &strings.Builder{}, "md", []int{0, 1}, 0) },
	} {
		if err := try(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEveryTableAndColumnIsDocumented(t *testing.T) {
	x := analyze.NewIndex(tracetest.Llama(1, 3))
	for _, kind := range report.Tables() {
		if kind.Doc == "" || kind.Doc != strings.TrimSpace(kind.Doc) {
			t.Errorf("table %s has no description", kind.Name)
		}
		made := tableOf(t, x, kind)
		if made.Name != kind.Name {
			t.Errorf("table %s has the name %s", kind.Name, made.Name)
		}
		for _, c := range made.Columns {
			switch {
			case (c.Unit == "") != (c.Is == table.Words):
				t.Errorf("%s.%s: unit %q does not fit kind %q", kind.Name, c.Name, c.Unit, c.Is)
			case c.Is == table.Modelled && !strings.Contains(c.Title, "~"):
				t.Errorf("%s.%s is modelled but has no ~ in %q", kind.Name, c.Name, c.Title)
			case !slices.Contains([]int{80, 110, 140, 200, table.Unseen}, c.Width):
				t.Errorf("%s.%s has the screen width %d", kind.Name, c.Name, c.Width)
			}
			for row := range min(3, len(made.Rows)) {
				if cell := made.Cell(row, made.Column(c.Name)); cell.Has && c.Unit == "" {
					t.Errorf("%s.%s has the number %v but no unit", kind.Name, c.Name, cell.Number)
				}
			}
		}
	}
	if _, err := report.TableNamed("dispatchs"); err == nil || !strings.Contains(err.Error(), "dispatches") {
		t.Error(err)
	}
}

// A table of no steps is either made, or refused with an error that says it needs steps.
func TestTablesTakeOrRefuseNoSteps(t *testing.T) {
	whole := tracetest.Llama(1, 3)
	bare := *whole
	bare.Steps, bare.Events = nil, nil
	for _, tr := range []*trace.Trace{whole, &bare} {
		x := analyze.NewIndex(tr)
		var refuse []string
		for _, kind := range report.Tables() {
			made, err := kind.Of(ctx, x, analyze.Options{})
			switch {
			case err == nil:
				print(t, made)
			case errors.Is(err, report.ErrSelection):
				refuse = append(refuse, kind.Name)
			default:
				t.Errorf("%s: %v", kind.Name, err)
			}
		}
		want := []string{"blocks", "classes", "dispatches", "experts", "resize", "slots"}
		if !slices.Equal(refuse, want) {
			t.Errorf("trace of %d steps: an empty selection is refused by %q, want %q",
				len(tr.Steps), refuse, want)
		}
	}
}

// A selection that a table does not accept is refused. The error says what it accepts and what to name
// instead.
func TestATableSaysWhichStepsItTakes(t *testing.T) {
	tr := tracetest.Run(1, 40, 7, 1, 1, 1)
	tr.Steps[3].Cold = true
	x := analyze.NewIndex(tr)
	for _, c := range []struct{ table, word, want string }{
		{"tables", "0", ""},
		{"kernels", "decode", "kernels"},
		{"resize", "decode", " s4"},
	} {
		table := report.List
		if c.table != table.Name {
			var err error
			if table, err = report.TableNamed(c.table); err != nil {
				t.Fatal(err)
			}
		}
		if s, err := table.Selection(x, c.word); !errors.Is(err, report.ErrSelection) ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %s: %+v, %v; want %s", c.table, c.word, s, err, c.want)
		}
	}
}
