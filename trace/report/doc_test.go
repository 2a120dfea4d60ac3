package report_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"gpuscope/internal/wordingtest"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
	"gpuscope/trace/tracetest"
)

// tablesHead holds the first paragraphs of docs/reference/tables.md.
var tablesHead = []string{
	"# Tables",
	"Made from the tables of `trace/report` by `go test ./trace/report -run TablesDoc -update`. Do not edit.",
	"`gpuscope trace show FILE --table NAME` prints them; the screen shows the same. `--steps` takes " +
		analyze.SelectionWords + ". A table of several steps has medians. What dispatches did with another " +
		"number of tokens is in rows of its own, behind those of the last step. Steps on other routes than the " +
		"last with as many tokens are left out, of Dispatches and Graph and of their base, and cold steps unless " +
		"there are no others.",
	"A number is *exact* (counted, or known from the graph and its plans), *measured*, or *modelled* (then " +
		"it is marked `~`). What was not measured is `–`, and is absent from JSON and CSV. A number of " +
		"which little can be told has a mark before it, `=` or `?`; for filters and programs it is in the column " +
		"`NAME_mark`, which no screen shows.",
	"A filter finds the same operators in Graph and in Dispatches. Its words apply to the rows of " +
		"Dispatches with the same selection and grouping (`#4` is the dispatch 4, `us` the time of one " +
		"dispatch), and Graph shows the operators of the dispatches found. Words about columns that only " +
		"Graph has, such as `kind:linear` or `role:constant`, apply to the rows of Graph, and so do all words " +
		"for an operator without dispatches.",
	"As text no line is wider than `--width` (without it: than the terminal): columns of words are broken " +
		"into lines, and where that is not enough columns are left out, those of wide screens first. " +
		"Markdown, CSV and JSON are never cut.",
	"As JSON a table is an object: `table`, `title` (lines), `columns` (of each `name`, `title`, `unit`, " +
		"`is`, `doc`), `rows` (of each `key`, `depth`, and a field for each column that it has something " +
		"in) and `notes` (lines). A column with a unit has numbers; one that is not finite is `\"NaN\"`, " +
		"`\"Infinity\"` or `\"-Infinity\"`, as in a trace: a perfect match with the reference has a " +
		"`gap_db` of `\"Infinity\"`. CSV has the same fields, with the key and the depth first.",
}

// tableOf returns a table of its default steps.
func tableOf(t *testing.T, x *analyze.Index, kind report.Table) *table.Table {
	t.Helper()
	selection, err := kind.Selection(x, "")
	if err != nil {
		t.Fatal(err)
	}
	made, err := kind.Of(ctx, x, analyze.Options{Selection: selection})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// tablesDoc returns docs/reference/tables.md.
func tablesDoc(t *testing.T) string {
	var b strings.Builder
	write := func(text string) { b.WriteString(ansi.Wordwrap(text, 110, "") + "\n\n") }
	for _, text := range tablesHead {
		write(text)
	}
	x := analyze.NewIndex(tracetest.Llama(1, 3))
	for _, kind := range report.Tables() {
		made := tableOf(t, x, kind)
		write("## " + kind.Name)
		write(strings.ToUpper(kind.Doc[:1]) + kind.Doc[1:] + ". Takes " + kind.Takes.String() + ".")
		b.WriteString("| name | on the screen | unit | | what it is |\n| --- | --- | --- | --- | --- |\n")
		for _, c := range made.Columns {
			title := c.Title
			if title != "" {
				title = "`" + title + "`"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", c.Name, title, c.Unit, c.Is, c.Doc)
		}
		b.WriteString("\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func TestTablesDocIsFresh(t *testing.T) {
	const path = "../../docs/reference/tables.md"
	want := tablesDoc(t)
	if wordingtest.Updating() {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(path); err != nil || string(have) != want {
		t.Errorf("docs/reference/tables.md is outdated: go test ./trace/report -run TablesDoc -update (%v)",
			err)
	}
	for _, kind := range report.Tables() {
		x := analyze.NewIndex(tracetest.Llama(1, 3))
		made, err := kind.Of(ctx, x, analyze.Options{Selection: x.Step(1)})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range made.Columns {
			if c.Doc == "" || strings.HasSuffix(c.Doc, ".") || strings.Contains(c.Doc, "|") {
				t.Errorf("%s.%s is described as %q", kind.Name, c.Name, c.Doc)
			}
		}
	}
}

// A table without rows explains why.
func TestTablesWithoutRowsSayWhy(t *testing.T) {
	x := analyze.NewIndex(TimedWhole(tracetest.Run(2, 40, 1)))
	for _, kind := range report.Tables() {
		made := tableOf(t, x, kind)
		if len(made.Rows)+len(made.Title)+len(made.Notes) == 0 {
			t.Errorf("%s is empty without an explanation", kind.Name)
		}
	}
}
