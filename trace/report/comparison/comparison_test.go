package comparison_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/diff"
	"gpuscope/trace/analyze/diff/expr"
	"gpuscope/trace/report/comparison"
	"gpuscope/trace/table"
	"gpuscope/trace/tracetest"
)

var ctx = context.Background()

// compare returns the diff of two runs. change may change the second.
func compare(t *testing.T, change func(*trace.Trace)) *diff.Diff {
	t.Helper()
	var sides [2]diff.Side
	for i := range sides {
		chunks := slices.Repeat([]int{1}, 25)
		chunks[0] = tracetest.PromptTokens
		tr := tracetest.Run(2, chunks...)
		if i == 1 && change != nil {
			change(tr)
		}
		x := analyze.NewIndex(tr)
		sides[i] = diff.Side{Index: x, Selection: x.Phase(trace.Decode), Name: "run.json"}
	}
	d, err := diff.Of(ctx, sides[0], sides[1])
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// slow makes the dispatches of a kernel slower by 40 %.
func slow(kernel string) func(*trace.Trace) {
	return func(tr *trace.Trace) {
		for i := range tr.Steps {
			for k := range tr.Steps[i].Dispatches {
				d := &tr.Steps[i].Dispatches[k]
				if ns, _ := d.GPUNS.NS(); tr.Plans[d.Plan].Kernel == kernel {
					d.GPUNS = trace.Measured(ns * 7 / 5)
				}
			}
		}
	}
}

func TestHeadlineNamesTheSlowKernel(t *testing.T) {
	if got := comparison.Headline(compare(t, slow("rms_norm"))); !strings.HasPrefix(got, "Slower: kernel rms_norm, +") {
		t.Error(got)
	}
	if got := comparison.Headline(compare(t, nil)); strings.Contains(got, "lower") {
		t.Error(got)
	}
}

// The table has only what differs, and with `all` every group and dispatch.
func TestTableHasWhatDiffers(t *testing.T) {
	d := compare(t, slow("rms_norm"))
	short, all := comparison.Of(d, false), comparison.Of(d, true)
	if want := len(d.Rows) + len(d.Groups); len(all.Rows) < want || len(short.Rows) >= want/2 {
		t.Errorf("%d rows, all %d; the diff has %d", len(short.Rows), len(all.Rows), want)
	}
	rows := map[string]int{}
	for i := range short.Rows {
		rows[short.Rows[i].Key] = i
	}
	row, ok := rows["kernel/rms_norm"]
	if !ok {
		t.Fatalf("no row for the slow kernel in %v", rows)
	}
	for name, want := range map[string]string{
		"status": "slower", "delta_percent": "+40 %", "dispatches": "5",
	} {
		if got := short.Cell(row, short.Column(name)).Text; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if c := short.Cell(rows["steps/decode.wall"], short.Column("delta_us")); c.Mark != analyze.MarkNone {
		t.Errorf("equal wall times: %+v", c)
	}
	if _, ok := rows["kernel/fd_split"]; ok {
		t.Error("a kernel that is the same has a row")
	}
}

func TestChangedPlansAreNamed(t *testing.T) {
	d := compare(t, func(tr *trace.Trace) {
		last := tr.Steps[len(tr.Steps)-1].Dispatches
		tr.Plans[last[3].Plan].Workgroups = [3]int{7, 1, 1}
		tr.Plans[last[4].Plan].Route = "other"
	})
	var changes []string
	for i := range d.Rows {
		if c := comparison.Change(&d.Rows[i]); c != "" {
			changes = append(changes, c)
		}
	}
	if want := []string{"grid 1 → 7", "route bicol → other"}; !slices.Equal(changes, want) {
		t.Errorf("%q, want %q", changes, want)
	}
}

func TestMarkdownEscapesNames(t *testing.T) {
	d := compare(t, slow("rms_norm"))
	d.Base.Name = "a|b*c\n<img>"
	c, err := expr.Parse("kernel:rms_norm>+10%")
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Eval(d)
	if err != nil || !r.Failed() {
		t.Fatalf("%+v %v", r, err)
	}
	var b bytes.Buffer
	if err := comparison.Markdown(ctx, &b, d, []expr.Result{r}, false); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"<img>", "b*c", "a|b", "_norm*"} {
		if strings.Contains(b.String(), bad) {
			t.Errorf("%q is not escaped:\n%s", bad, &b)
		}
	}
	if !strings.Contains(b.String(), "❌ kernel:rms\\_norm>+10%") || !strings.Contains(b.String(), "| --- |") {
		t.Errorf("no failed condition or no table:\n%s", &b)
	}
}

// A condition that cannot fail, because there are too few times, is marked and has its reason in the JSON.
func TestConditionsThatCannotFailSayWhy(t *testing.T) {
	d := compare(t, slow("rms_norm"))
	c, err := expr.Parse("prefill.p50>+5%")
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Eval(d)
	if err != nil {
		t.Fatal(err)
	}
	if got := comparison.JSONOf(d, []expr.Result{r}).Conditions[0]; got.Failed || got.Why == "" {
		t.Errorf("%+v", got)
	}
	var b bytes.Buffer
	if err := comparison.Markdown(ctx, &b, d, []expr.Result{r}, false); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "⚠️ prefill.p50>+5%") {
		t.Errorf("the condition is not marked:\n%s", &b)
	}
}

// A program finds in the JSON what the table shows, and the guide lists every field.
func TestJSONHasEveryRow(t *testing.T) {
	d := compare(t, slow("rms_norm"))
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(comparison.JSONOf(d, nil)); err != nil {
		t.Fatal(err)
	}
	var got comparison.JSON
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Schema != comparison.Schema || got.Joined != "id" || !got.Significant ||
		len(got.Rows) != len(d.Rows) || len(got.Groups) != len(d.Groups) ||
		len(got.Totals) != len(d.Totals) || got.A.N != 24 {
		t.Errorf("%s", b.Bytes())
	}
	for i := range got.Rows {
		r, want := &got.Rows[i], &d.Rows[i]
		if r.Name != want.Name || r.Status != want.Status || *r.Delta != want.Times.DeltaNS ||
			r.B[0].Kernel != want.Now[0].Plan.Kernel {
			t.Errorf("row %d: %+v", i, r)
		}
	}
	guide, err := os.ReadFile("../../../docs/guide/diff.md")
	if err != nil {
		t.Fatal(err)
	}
	var check func(reflect.Type)
	check = func(of reflect.Type) {
		switch of.Kind() {
		case reflect.Pointer, reflect.Slice:
			check(of.Elem())
		case reflect.Struct:
			for i := range of.NumField() {
				f := of.Field(i)
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				if name != "" && !bytes.Contains(guide, []byte("`"+name+"`")) {
					t.Errorf("docs/guide/diff.md does not describe the field %s", name)
				}
				check(f.Type)
			}
		}
	}
	check(reflect.TypeFor[comparison.JSON]())
}

func TestTablePrintsAtEveryWidth(t *testing.T) {
	tab := comparison.Of(compare(t, slow("rms_norm")), true)
	rows, err := tab.Select(ctx, table.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	for _, width := range []int{40, 80, 110, 0} {
		var b bytes.Buffer
		if err := tab.Print(ctx, &b, "text", rows, width); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if n := table.Width(strings.TrimRight(line, "\n")); width > 0 && n > width {
				t.Errorf("width %d: %d cells: %s", width, n, line)
			}
		}
	}
}

// If steps are left out because of their routes, each format says how many steps it compares.
func TestEachFormatCountsTheComparedSteps(t *testing.T) {
	d := compare(t, func(tr *trace.Trace) { tracetest.Reroute(tr, 1, 2, 3, 4) })
	const want = "20 of 24 decode steps: same routes as s24"
	j := comparison.JSONOf(d, nil)
	if b := j.B; b.N != 20 || b.Of != 24 || b.Which != want || b.Steps != "decode" {
		t.Errorf("JSON: %+v", b)
	}
	if a := j.A; a.N != 24 || a.Of != 0 || a.Which != "all 24 warm decode steps" {
		t.Errorf("JSON of a side with all steps: %+v", a)
	}
	for _, total := range j.Totals {
		if total.Scope == "decode" && (total.AN != 24 || total.BN != 20) {
			t.Errorf("%s: %d and %d steps", total.Measure, total.AN, total.BN)
		}
	}
	if j.Isolated.BN != 20 {
		t.Errorf("isolated times of %d steps", j.Isolated.BN)
	}
	var b bytes.Buffer
	if err := comparison.Markdown(ctx, &b, d, nil, false); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"sentences": strings.Join(comparison.Sentences(d), "\n"), "markdown": b.String(),
	} {
		if !strings.Contains(text, "B: run.json, "+want) {
			t.Errorf("%s: %s", name, text)
		}
	}
}
