package dot_test

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"gpuscope/trace"
	"gpuscope/trace/export/dot"
	"gpuscope/trace/tracetest"
)

var (
	quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	// statement is a line outside labels. All names are made of letters and numbers.
	statement = regexp.MustCompile(`^(digraph gpuscope \{|\}|rankdir=TB;|(node|edge) \[[\w=, Q]*\];` +
		`|subgraph cluster_\d+_\d+ \{|label=Q;|(op|v)\d+( -> op\d+)?( \[[\w=, Q]*\])?;)$`)
)

// check checks that a drawing is well-formed and returns how many boxes it has.
func check(t interface{ Fatalf(string, ...any) }, tr *trace.Trace) (boxes int) {
	var b bytes.Buffer
	if err := dot.Format.Write(&b, tr); err != nil {
		t.Fatalf("%v", err)
	}
	text := b.String()
	for _, label := range quoted.FindAllString(text, -1) {
		is, err := strconv.Unquote(label)
		if err != nil {
			t.Fatalf("label %s: %v", label, err)
		}
		for line := range strings.SplitSeq(is, "\n") {
			if utf8.RuneCountInString(line) > 120 || strings.ContainsFunc(line, unicode.IsControl) {
				t.Fatalf("line %q of a label", line)
			}
		}
	}
	open := 0
	for line := range strings.Lines(quoted.ReplaceAllString(text, "Q")) {
		if line = strings.TrimSpace(line); !statement.MatchString(line) {
			t.Fatalf("line %q", line)
		}
		open += strings.Count(line, "{") - strings.Count(line, "}")
		if strings.HasPrefix(line, "op") && !strings.Contains(line, "->") {
			boxes++
		}
	}
	if open != 0 {
		t.Fatalf("%d clusters are not closed", open)
	}
	return boxes
}

func TestAnyGraphIsWellFormed(t *testing.T) {
	t.Parallel()
	tr := tracetest.Hostile(tracetest.Llama(2, 3))
	for i := range tr.Graph.Ops {
		tr.Graph.Ops[i].Name += `\N"];}` + strings.Repeat("é", 500)
	}
	if boxes := check(t, tr); boxes != len(tr.Graph.Ops) {
		t.Errorf("%d boxes for %d operators", boxes, len(tr.Graph.Ops))
	}
	rapid.Check(t, func(t *rapid.T) {
		tr := tracetest.Random(t)
		if boxes := check(t, tr); boxes != len(tr.Graph.Ops) {
			t.Fatalf("%d boxes for %d operators", boxes, len(tr.Graph.Ops))
		}
	})
}
