package report_test

import (
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
	"gpuscope/trace/tracetest"
)

func TestColumnsHaveNamesAndTitlesOfTheirOwn(t *testing.T) {
	t.Parallel()
	for _, tr := range []*trace.Trace{tracetest.Llama(1, 3), tracetest.Llama(5, 4)} {
		x := analyze.NewIndex(tr)
		for _, r := range append(report.Tables(), report.List) {
			selection, err := r.Selection(x, "")
			if err != nil {
				t.Fatal(err)
			}
			for _, fold := range []analyze.Grouping{analyze.GroupLayer, analyze.GroupKernel} {
				made, err := r.Of(ctx, x, analyze.Options{Selection: selection, Grouping: fold})
				if err != nil {
					t.Fatal(err)
				}
				seen := map[string]bool{}
				for _, c := range made.Columns {
					if c.Name == "" || c.Doc == "" {
						t.Errorf("table %s: column %q, titled %q, lacks a name or a doc", r.Name, c.Name,
							c.Title)
					}
					if seen["name "+c.Name] || c.Title != "" && seen["title "+c.Title] {
						t.Errorf("table %s: name %q or title %q is that of two columns", r.Name, c.Name,
							c.Title)
					}
					seen["name "+c.Name], seen["title "+c.Title] = true, true
				}
			}
		}
	}
}
