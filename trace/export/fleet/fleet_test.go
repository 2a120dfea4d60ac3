package fleet_test

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"pgregory.net/rapid"

	"gpuscope/trace"
	"gpuscope/trace/export/fleet"
	"gpuscope/trace/tracetest"
)

// cell is a value of a table as text. null tells an empty text from a missing value.
type cell struct {
	text string
	null bool
}

// rows is a table as a program reads it from a file.
type rows struct {
	names []string
	cells [][]cell
	file  *parquet.File
}

func (r *rows) column(name string) (cells []cell) {
	at := slices.Index(r.names, name)
	for _, row := range r.cells {
		cells = append(cells, row[at])
	}
	return cells
}

type fails interface {
	Helper()
	Fatal(args ...any)
}

// tables writes a trace and reads both tables from the files.
func tables(t fails, tr *trace.Trace) (dispatches, steps *rows, run string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "fleet")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := fleet.Parquet(dir, tr); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "run=*", "part-0.parquet"))
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	_, run, _ = strings.Cut(filepath.Base(filepath.Dir(files[0])), "run=")
	return readRows(t, files[0]), readRows(t, files[1]), run
}

func readRows(t fails, path string) *rows {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	r := &rows{file: f}
	for _, c := range f.Schema().Columns() {
		r.names = append(r.names, c[0])
	}
	for _, g := range f.RowGroups() {
		in := g.Rows()
		batch := make([]parquet.Row, 100)
		for err == nil {
			var n int
			n, err = in.ReadRows(batch)
			for _, row := range batch[:n] {
				cells := make([]cell, len(row))
				for i, v := range row {
					cells[i] = cell{v.String(), v.IsNull()}
				}
				r.cells = append(r.cells, cells)
			}
		}
		if in.Close(); err != io.EOF {
			t.Fatal(err)
		}
		err = nil
	}
	return r
}

// The columns and their types are a promise to queries. If you add one, raise the minor version of
// fleet.Schema and extend testdata/columns.txt by hand. Other changes need a new major version.
func TestColumnsAreThoseOfTheSchemaVersion(t *testing.T) {
	t.Parallel()
	dispatches, steps, _ := tables(t, tracetest.Llama(1, 3))
	var b strings.Builder
	for _, r := range []*rows{dispatches, steps} {
		schema, _ := r.file.Lookup("gpuscope.schema")
		table, _ := r.file.Lookup("gpuscope.table")
		fmt.Fprintf(&b, "%s %s\n", schema, table)
		for _, f := range r.file.Schema().Fields() {
			null := "not null"
			if f.Optional() {
				null = "null"
			}
			fmt.Fprintf(&b, "%s %s %s\n", f.Name(), f.Type(), null)
		}
	}
	want, err := os.ReadFile(filepath.Join("testdata", "columns.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if got := b.String(); got != string(want) {
		t.Errorf("the columns differ from testdata/columns.txt:\n%s", got)
	}
}

// add adds a time to a sum. It returns the text of the cell that holds the time.
func add(sum *big.Int, measured trace.Time) cell {
	ns, ok := measured.NS()
	if !ok {
		return cell{"<null>", true}
	}
	sum.Add(sum, big.NewInt(ns))
	return cell{strconv.FormatInt(ns, 10), false}
}

// total returns the sum of the cells of a column that are not null.
func total(t fails, cells []cell) *big.Int {
	t.Helper()
	sum := new(big.Int)
	for _, c := range cells {
		if c.null {
			continue
		}
		n, err := strconv.ParseInt(c.text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum.Add(sum, big.NewInt(n))
	}
	return sum
}

func TestTimesAgreeWithTheTraceToTheNanosecond(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tr := tracetest.Random(t)
		dispatches, steps, run := tables(t, tr)
		gpu, walls := new(big.Int), new(big.Int)
		var durations, names, totals []cell
		for i := range tr.Steps {
			s := &tr.Steps[i]
			totals = append(totals, add(walls, s.CPU.TotalNS))
			for _, d := range s.Dispatches {
				durations = append(durations, add(gpu, d.GPUNS))
				of := &tr.Graph.Dispatches[tr.Plans[d.Plan].Dispatch]
				names = append(names, cell{of.Named(tr.Graph.Ops[of.Op].Name), false})
			}
		}
		for _, c := range []struct {
			in   *rows
			name string
			want []cell
			sum  *big.Int
		}{
			{dispatches, "dur_ns", durations, gpu},
			{dispatches, "name", names, nil},
			{steps, "total_ns", totals, walls},
		} {
			got := c.in.column(c.name)
			if len(got) != len(c.want) {
				t.Fatalf("%s has %d values, want %d", c.name, len(got), len(c.want))
			}
			for i := range got {
				if got[i].null != c.want[i].null || !got[i].null && got[i] != c.want[i] {
					t.Fatalf("%s in row %d is %v, want %v", c.name, i, got[i], c.want[i])
				}
			}
			if c.sum != nil && total(t, got).Cmp(c.sum) != 0 {
				t.Fatalf("the sum of %s is not %v", c.name, c.sum)
			}
		}
		for _, r := range []*rows{dispatches, steps} {
			for _, id := range r.column("run") {
				if id.text != run {
					t.Fatalf("a row of run %s is in the folder of %s", id.text, run)
				}
			}
		}
	})
}

// A cost of several dispatches together is the cost of none of them.
func TestOnlyCostsOfOneDispatchAreInItsRow(t *testing.T) {
	t.Parallel()
	tr := tracetest.Llama(1, 3)
	last := &tr.Steps[2]
	id := func(place int) trace.DispatchID { return tr.Plans[last.Dispatches[place].Plan].Dispatch }
	last.Costs = []trace.Cost{
		{Dispatches: []trace.DispatchID{id(4)}, NS: 700, N: 9, OffNS: trace.Measured(50)},
		{Dispatches: []trace.DispatchID{id(5), id(6)}, NS: 900, N: 9, OffNS: trace.Measured(60)},
	}
	dispatches, _, _ := tables(t, tr)
	first := len(dispatches.cells) - len(last.Dispatches) // rows are in the order of the steps
	for name, want := range map[string]string{"cost_ns": "700", "cost_error_ns": "50", "cost_rounds": "9"} {
		for i, c := range dispatches.column(name) {
			if known := i == first+4; c.null == known || known && c.text != want {
				t.Errorf("%s of row %d is %q (NULL %v)", name, i, c.text, c.null)
			}
		}
	}
}

// The two formats have the same columns and the same values.
func TestCSVHasTheRowsOfTheParquetTable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tr := tracetest.Random(t)
		dispatches, _, _ := tables(t, tr)
		var b bytes.Buffer
		if err := fleet.CSV(&b, tr); err != nil {
			t.Fatal(err)
		}
		got, err := csv.NewReader(&b).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got[0], dispatches.names) || len(got) != 1+len(dispatches.cells) {
			t.Fatalf("%d rows with the columns %q", len(got)-1, got[0])
		}
		for i, row := range dispatches.cells {
			for j, c := range row {
				want := strings.ReplaceAll(c.text, "\r\n", "\n") // as encoding/csv reads it
				switch {
				case c.null:
					want = ""
				case dispatches.names[j] == "created":
					us, _ := strconv.ParseInt(c.text, 10, 64)
					want = time.UnixMicro(us).UTC().Format(time.RFC3339Nano)
				}
				if got[i+1][j] != want {
					t.Fatalf("row %d has %s %q, want %q", i, dispatches.names[j], got[i+1][j], want)
				}
			}
		}
	})
}

func TestARunHasOneIdThatIsSafeAsAFileName(t *testing.T) {
	t.Parallel()
	id := func(t fails, tr *trace.Trace) string {
		_, _, run := tables(t, tr)
		return run
	}
	a := tracetest.Llama(1, 3)
	first := id(t, a)
	if !strings.HasPrefix(first, "r20261121T120000Z-") {
		t.Errorf("id %s", first)
	}
	var b bytes.Buffer
	if err := trace.Write(&b, a); err != nil {
		t.Fatal(err)
	}
	again, err := trace.Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	again.Steps, again.Device.Ceilings = again.Steps[:1], nil // as in an earlier export of the run
	if got := id(t, again); got != first {
		t.Errorf("id %s, and %s of the same run", first, got)
	}
	again.Opening = []trace.Opening{{Phase: "load", NS: trace.Measured(7)}}
	if got := id(t, again); got == first {
		t.Errorf("another run has the id %s too", got)
	}
	safe := regexp.MustCompile(`^r[0-9TZ]+-[0-9a-f]{12}$|^rundated-[0-9a-f]{12}$`)
	rapid.Check(t, func(t *rapid.T) {
		if got := id(t, tracetest.Random(t)); !safe.MatchString(got) {
			t.Fatalf("id %q", got)
		}
	})
}

// A trace without steps gives tables without rows, and a trace without times gives rows without times.
func TestTablesWithoutRowsOrTimesAreComplete(t *testing.T) {
	t.Parallel()
	tr := tracetest.Llama(1, 3)
	for i := range tr.Steps {
		for k := range tr.Steps[i].Dispatches {
			tr.Steps[i].Dispatches[k].GPUNS = trace.Time{}
		}
	}
	dispatches, _, _ := tables(t, tr)
	for _, c := range dispatches.column("dur_ns") {
		if !c.null {
			t.Fatalf("a time that was not measured is %s", c.text)
		}
	}
	columns := dispatches.names
	tr.Steps = nil
	dispatches, steps, _ := tables(t, tr)
	if len(dispatches.cells)+len(steps.cells) != 0 || !slices.Equal(dispatches.names, columns) {
		t.Errorf("%d rows, columns %q", len(dispatches.cells)+len(steps.cells), dispatches.names)
	}
}

func TestWriteErrorsAreReturned(t *testing.T) {
	t.Parallel()
	for _, left := range []int{0, 100, 5000} {
		if err := fleet.CSV(&full{left}, tracetest.Llama(1, 3)); err != errFull {
			t.Errorf("CSV on a disk of %d bytes: %v", left, err)
		}
	}
	if err := fleet.Parquet(filepath.Join(t.TempDir(), "a\x00b"), tracetest.Tiny()); err == nil {
		t.Error("no error for an impossible folder")
	}
}

var errFull = fmt.Errorf("disk full")

// full is a disk with little room.
type full struct{ left int }

func (f *full) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, errFull
	}
	return len(b), nil
}

func BenchmarkParquet(b *testing.B) {
	tr := tracetest.Llama(16, 400)
	n := 0
	for i := range tr.Steps {
		n += len(tr.Steps[i].Dispatches)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := fleet.Parquet(b.TempDir(), tr); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n), "rows")
}

func BenchmarkCSV(b *testing.B) {
	tr := tracetest.Llama(16, 400)
	b.ReportAllocs()
	for b.Loop() {
		if err := fleet.CSV(io.Discard, tr); err != nil {
			b.Fatal(err)
		}
	}
}
