package fleet

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gpuscope/internal/wordingtest"
)

var page = filepath.Join("..", "..", "..", "docs", "reference", "fleet.md")

// described returns the columns of the two tables as Markdown.
func described() string {
	var b strings.Builder
	table := func(title string, columns []column) {
		fmt.Fprintf(&b, "\n### %s\n\n| column | type | NULL | |\n| --- | --- | --- | --- |\n", title)
		types := map[kind]string{
			text: "string", integer: "int64", float: "double", truth: "boolean",
			instant: "timestamp (µs, UTC)",
		}
		for _, c := range columns {
			null := ""
			if c.null {
				null = "yes"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", c.name, types[c.kind], null, c.doc)
		}
	}
	table("Both tables", slices.Concat(ofRun, ofStep))
	table("dispatches", dispatchColumns[len(ofRun)+len(ofStep):])
	table("steps", stepColumns[len(ofRun)+len(ofStep):])
	return b.String() + "\n"
}

func TestDocListsTheColumns(t *testing.T) {
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	parts := regexp.MustCompile(`(?s)^(.*<!-- columns: [^\n]* -->\n)(.*)(<!-- end of columns -->\n)$`).
		FindStringSubmatch(string(data))
	if parts == nil {
		t.Fatalf("%s does not end with the columns", page)
	}
	switch want := described(); {
	case parts[2] == want:
	case wordingtest.Updating():
		if err := os.WriteFile(page, []byte(parts[1]+want+parts[3]), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the columns in %s are not up to date; they should be:\n%s", page, want)
	}
}

// both are the functions in the page's questions. DuckDB and Spark SQL have all of them.
var both = []string{
	"abs", "avg", "coalesce", "count", "lag", "max", "median", "min", "percentile_cont", "round", "sum",
}

// Names of functions are in lower case and keywords in upper case, so that the test can tell them apart.
func TestQuestionsUseFunctionsOfBothDatabases(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	questions := 0
	for _, block := range regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(string(data), -1) {
		if strings.HasPrefix(block[1], "CREATE") {
			continue
		}
		questions++
		for _, f := range regexp.MustCompile(`([a-z_]\w*) ?\(`).FindAllStringSubmatch(block[1], -1) {
			if !slices.Contains(both, f[1]) {
				t.Errorf("question %d calls %s", questions, f[1])
			}
		}
	}
	if questions < 8 {
		t.Errorf("%d questions", questions)
	}
}
