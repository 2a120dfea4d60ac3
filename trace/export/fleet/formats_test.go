//go:build formats

package fleet_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/export/fleet"
	"gpuscope/trace/tracetest"
)

// machine returns a run on a machine. All its times are multiplied by slower, and those of one kernel also by
// kernelSlower. In every other decode step only the whole step was timed.
func machine(created, version string, slower float64, kernel string, kernelSlower float64) *trace.Trace {
	t := tracetest.Llama(2, 12)
	t.Created, t.Producer.Version = created, version
	t.Opening = []trace.Opening{{Phase: "load", NS: trace.Measured(int64(1e9 * slower))}}
	times := func(at *trace.Time, by float64) {
		if ns, ok := at.NS(); ok {
			*at = trace.Measured(int64(float64(ns) * by))
		}
	}
	for i := range t.Steps {
		s := &t.Steps[i]
		times(&s.CPU.TotalNS, slower)
		if s.GPU != nil {
			times(&s.GPU.SpanNS, slower)
		}
		whole := i%2 == 1
		if whole {
			s.Timing = trace.TimingStep
		}
		for k := range s.Dispatches {
			d := &s.Dispatches[k]
			times(&d.GPUNS, slower)
			if t.Plans[d.Plan].Kernel == kernel {
				times(&d.GPUNS, kernelSlower)
			}
			if whole {
				d.GPUNS, d.StartNS, d.Samples = trace.Time{}, trace.Time{}, nil
			}
		}
	}
	return t
}

// duckDB runs statements in a folder. It returns the rows of each of them.
func duckDB(t *testing.T, dir string, statements []string) [][]map[string]any {
	t.Helper()
	script, err := filepath.Abs(filepath.Join("..", "..", "..", "scripts", "formats", "duckdb.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	in, err := json.Marshal(statements)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", script)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(in)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &problems)
	}
	var results [][]map[string]any
	for line := range strings.Lines(out.String()) {
		var rows []map[string]any
		if err := json.Unmarshal([]byte(line), &rows); err != nil {
			t.Fatal(err)
		}
		results = append(results, rows)
	}
	if len(results) != len(statements) {
		t.Fatalf("%d results of %d statements", len(results), len(statements))
	}
	return results
}

// Each question of docs/reference/fleet.md is answered from the files of three runs: one of an old version,
// one of a new version with a slower kernel, and one of the new version on a slower machine.
func TestDuckDBAnswersTheQuestionsOfTheDoc(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "fleet.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	const kernel = "rms_norm"
	runs := []*trace.Trace{
		machine("2026-11-01T08:00:00Z", "0.1.0", 1, "", 1),
		machine("2026-11-02T08:00:00Z", "0.2.0", 1, kernel, 2),
		machine("2026-11-02T09:00:00+02:00", "0.2.0", 1.5, kernel, 2),
	}
	var dispatches, ns int64
	for i, run := range runs {
		out := filepath.Join(t.TempDir(), fmt.Sprint(i))
		if err := os.Mkdir(out, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := fleet.Parquet(out, run); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(filepath.Join(dir, "fleet"), os.DirFS(out)); err != nil {
			t.Fatal(err)
		}
		for i := range run.Steps {
			for _, d := range run.Steps[i].Dispatches {
				dispatches++
				n, _ := d.GPUNS.NS()
				ns += n
			}
		}
	}

	var statements, titles []string
	for _, m := range regexp.MustCompile("(?ms)^###? ([^\n]*)$|^```sql\n(.*?)```").
		FindAllStringSubmatch(string(page), -1) {
		switch {
		case m[1] != "":
			titles = append(titles, m[1])
		case strings.HasPrefix(m[2], "CREATE TEMPORARY"): // Spark's
		case strings.HasPrefix(m[2], "CREATE"):
			for s := range strings.SplitSeq(strings.TrimSpace(m[2]), ";\n") {
				statements = append(statements, s)
			}
		default:
			statements = append(statements, m[2])
		}
	}
	views := 2
	questions := statements[views:]
	if len(questions) < 8 {
		t.Fatalf("the page has %d questions", len(questions))
	}
	statements = append(statements,
		"SELECT count(*) AS n, sum(dur_ns) AS ns, count(DISTINCT run) AS runs FROM dispatches",
		"DESCRIBE dispatches", "DESCRIBE steps")
	results := duckDB(t, dir, statements)
	for i, rows := range results[views : views+len(questions)] {
		if len(rows) == 0 {
			t.Errorf("no answer to:\n%s", questions[i])
		}
		for _, row := range rows {
			for name, v := range row {
				if v == nil && name != "weight_format" {
					t.Errorf("%s is NULL in an answer to:\n%s", name, questions[i])
				}
			}
		}
	}
	answer := func(word string) []map[string]any {
		for i, q := range questions {
			if strings.Contains(q, word) {
				return results[views+i]
			}
		}
		t.Fatalf("no question has the word %s", word)
		return nil
	}

	tail := results[views+len(questions):]
	want := map[string]any{"n": fmt.Sprint(dispatches), "ns": fmt.Sprint(ns), "runs": "3"}
	if !maps.Equal(tail[0][0], want) {
		t.Errorf("all rows: %v, want %v", tail[0][0], want)
	}
	var slower []string
	for _, row := range answer("earlier_version") {
		slower = append(slower, fmt.Sprint(row["kernel"]))
	}
	if !slices.Contains(slower, kernel) {
		t.Errorf("the kernels that became slower are %q", slower)
	}
	deviates := answer("peers")
	if len(deviates) != 2 || deviates[0]["version"] != "0.2.0" || deviates[0]["percent"] != 20.0 ||
		deviates[1]["percent"] != -20.0 { // the median is between the two runs of the version
		t.Errorf("the machines that deviate are %v", deviates)
	}

	// Every column can be named without quotation marks.
	var plain []string
	for i, table := range []string{"dispatches", "steps"} {
		var names []string
		for _, c := range tail[1+i] {
			names = append(names, fmt.Sprint(c["column_name"]))
		}
		plain = append(plain, "SELECT "+strings.Join(names, ", ")+" FROM "+table+" WHERE run IS NULL")
	}
	duckDB(t, dir, append(slices.Clone(statements[:views]), plain...))
}
