package tui

import (
	"bytes"
	"context"
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"

	"gpuscope/trace"
	_ "gpuscope/trace/export" // registers the formats that can only be written
	"gpuscope/trace/tracetest"
	"gpuscope/tui/tuitest"
	"gpuscope/tui/widget"
)

// The file contains the rows that are on the screen, in their order.
func TestExportedTableMatchesTheScreen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "rows.csv")
	x := start(t, context.Background(), opens(tuitest.Script{}), Options{Prompt: "once"})
	x.sees("step 0 prefill").press("s").sees("step 1 decode").press("2FFF/norm" + enter).sees("filter norm:")
	x.press("o").sees("sort by:").press("u").sees("µs↓")
	x.press("E").sees("table to .csv .json .md .txt: dispatches-s1.csv")
	x.press(path + enter).sees("wrote " + path)
	x.press("q")
	if err := x.ends(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) < 10 {
		t.Fatalf("%d rows", len(rows))
	}
	for i, r := range rows[1:] {
		if !strings.Contains(strings.Join(r, " "), "norm") {
			t.Errorf("row %d does not pass the filter: %q", i, r)
		}
	}
}

// A row whose members are partly hidden by the filter says so in the file, because its reader does not see
// the filter.
func TestExportedRowMarksSumsOfHiddenRows(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"a.csv", "a.json", "a.md", "a.txt"} {
		d := drive(t, 120, 40, llama, nil, Options{}).press("2", "/").typed("norm").press("enter")
		d.press("E").typed(name).press("enter").sees("wrote ")
		got, err := os.ReadFile(name)
		if err != nil || !strings.Contains(string(got), "all 3 rows, 1 here") {
			t.Errorf("%s: %v, %s", name, err, got)
		}
	}
	drive(t, 120, 40, llama, nil, Options{}).press("2", "E").typed("b.csv").press("enter").sees("wrote ")
	if got, err := os.ReadFile("b.csv"); err != nil || strings.Contains(string(got), "sums_of") {
		t.Errorf("without a filter: %v, %.300s", err, got)
	}
}

// The file name says which steps the table covers: the selection, the single step of a view, or neither.
func TestExportNameDescribesItsContent(t *testing.T) {
	t.Parallel()
	for view, want := range map[string]string{
		"2": "dispatches-decode.csv", "3": "resize-s23.csv", "4": "graph-decode.csv", "4a": "values-s23.csv",
		"5": "slope.csv",
	} {
		d := drive(t, 120, 40, llama, nil, Options{}).press("v").sees("showing all 23 warm decode steps")
		d.press(strings.Split(view, "")...).settle()
		d.press("E").sees(" .txt: " + want)
	}
}

// The question lists the formats, and it says which of them cannot be opened again. An export may be a
// folder.
func TestExportOffersEveryFormat(t *testing.T) {
	dir := t.TempDir()
	d := drive(t, 300, 40, llama, nil, Options{}).press("x", "ctrl+w")
	for _, e := range trace.Exports() {
		d.sees(e.Suffix)
	}
	path := filepath.Join(dir, "x.parquet")
	d.typed(path).sees("parquet (cannot be opened again)").press("enter").sees("wrote parquet (cannot be opened again) ")
	for _, table := range []string{"dispatches", "steps"} {
		if files, err := filepath.Glob(filepath.Join(path, table, "run=*", "*.parquet")); len(files) != 1 {
			t.Errorf("table %s has the files %q: %v", table, files, err)
		}
	}
	d.press("x").typed(path).press("enter").sees("exists")
	d.press("x").typed(filepath.Join(dir, "y.parquet.gz")).press("enter").sees("y.parquet.gz")
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("files %v, %v", left, err)
	}
}

// The size in the question is that of the format that the name chooses, and tab changes the format.
func TestExportShowsTheSizeOfItsFormat(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, tracetest.Llama(16, 60), nil, Options{}).press("x")
	d.sees("export to (tab: other formats): gpuscope-", ".json.gz").misses("about")
	d.typed("run.otlp.json").sees("export (about 1", " MB) to otlp (cannot be opened again): run.otlp.json")
	d.typed(".gz").sees("run.otlp.json.gz").misses("about")
	d.press("ctrl+w").typed("run.csv").press("tab").sees("run.dot").press("tab").sees("run.json").misses("run.json.")
}

// A second export of the same steps suggests a new name, so that the first file is kept.
func TestAnExportSuggestsANameThatIsFree(t *testing.T) {
	t.Chdir(t.TempDir())
	d := drive(t, 120, 40, llama, nil, Options{}).press("2")
	d.press("E").sees(": dispatches-s23.csv").press("enter").sees("wrote ")
	first, err := os.ReadFile("dispatches-s23.csv")
	if err != nil {
		t.Fatal(err)
	}
	d.press("/").typed("norm").press("enter", "E").sees(": dispatches-s23-2.csv").press("enter").sees("-2.csv: ")
	second, err := os.ReadFile("dispatches-s23-2.csv")
	if still, _ := os.ReadFile("dispatches-s23.csv"); err != nil || string(still) != string(first) ||
		string(second) == string(first) {
		t.Errorf("%v; first file unchanged: %v", err, string(still) == string(first))
	}
	d.press("E").sees(": dispatches-s23-3.csv")
}

// A column that has no room on the screen is shown while rows are sorted by it. The file contains it too.
func TestExportKeepsTheSortColumn(t *testing.T) {
	t.Chdir(t.TempDir())
	d := drive(t, 80, 24, llama, nil, Options{}).press("2").sees("Dispatches")
	d.app.table().SortBy("gb_per_s")
	d.press("E").typed("a.txt").press("enter").sees("wrote ")
	if got, err := os.ReadFile("a.txt"); err != nil || strings.Count(string(got), "GB/s~") < 2 {
		t.Errorf("%v: %s", err, got)
	}
}

func TestExportFormatFollowsTheFileName(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, want := range map[string]string{
		"a.csv": "key,depth,", "a.json": `{"table": "dispatches"`, "a.md": "| ", "a.txt": "by layer",
	} {
		drive(t, 120, 40, llama, nil, Options{}).press("2", "E").typed(name).press("enter").sees("wrote ")
		got, err := os.ReadFile(name)
		if err != nil || !strings.Contains(string(got), want) {
			t.Errorf("%s: %v, %.200s", name, err, got)
		}
	}
	for name, want := range map[string]string{
		"a.xls": ".csv, .json, .md, .txt", "a.csv": "exists; choose", "no/such/folder.csv": "no such file",
	} {
		d := drive(t, 120, 40, llama, nil, Options{}).press("2", "E").typed(name).press("enter").sees(want)
		if _, err := os.Stat(name); err == nil && name != "a.csv" {
			t.Errorf("%s was written", name)
		}
		d.press("esc").misses(want)
	}
}

// The user may click a tab while typing the file name. The export still writes the first table.
func TestExportSurvivesAChangeOfView(t *testing.T) {
	t.Chdir(t.TempDir())
	d := drive(t, 120, 40, llama, nil, Options{}).press("2", "E").typed("a.csv")
	x := strings.Index(strings.Split(d.screen(), "\n")[1], "0 Log")
	d.at(x, 1, tea.MouseButtonLeft).press("enter").sees("wrote ")
	if got, err := os.ReadFile("a.csv"); err != nil || !strings.Contains(string(got), "rms_norm") {
		t.Errorf("%v, %.200s", err, got)
	}
}

func TestTraceExportNeedsAKnownSuffix(t *testing.T) {
	t.Chdir(t.TempDir())
	drive(t, 120, 40, llama, nil, Options{}).press("x").typed("a.xls").press("enter").reads("notice")
	if _, err := os.Stat("a.xls"); err == nil {
		t.Error("a.xls was written")
	}
}

func TestASuggestionGivesWayToWhatIsTyped(t *testing.T) {
	t.Parallel()
	var l widget.InputLine
	for _, c := range []struct {
		keys []widget.Key
		want string
	}{
		{[]widget.Key{{Name: "a", Text: "a"}, {Name: "b", Text: "b"}}, "ab"},
		{[]widget.Key{{Name: "end", Text: ""}, {Name: "z", Text: "z"}}, "given.csvz"},
		{[]widget.Key{{Name: "backspace", Text: ""}, {Name: "z", Text: "z"}}, "given.csz"},
		{[]widget.Key{{Name: "ctrl+w", Text: ""}}, ""},
		{nil, "given.csv"},
	} {
		l.Suggest("given.csv")
		for _, k := range c.keys {
			l.Handle(k)
		}
		if l.Text() != c.want {
			t.Errorf("%v: %q, want %q", c.keys, l.Text(), c.want)
		}
	}
}

// With NoText, exports of the screen and of plain mode have no texts and no token ids.
func TestExportsHaveNoTextIfTold(t *testing.T) {
	t.Chdir(t.TempDir())
	d := drive(t, 120, 40, llama, nil, Options{NoText: true})
	d.press("x").typed("a.json").press("enter").sees("wrote ")
	var out bytes.Buffer
	if err := Run(context.Background(), opens(tuitest.Script{}), Options{
		Plain: true, NoText: true, Prompt: "once", Output: &out, Input: strings.NewReader("s\nx b.json\n"),
	}); err != nil {
		t.Fatal(err, out.String())
	}
	for _, path := range []string{"a.json", "b.json"} {
		got, err := trace.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := range got.Steps {
			s := &got.Steps[i]
			if !got.NoText || s.Text != "" || s.Token != nil || slices.Max(s.Tokens) != 0 {
				t.Errorf("%s: step %d has the tokens %v and the text %q", path, i, s.Tokens, s.Text)
			}
		}
	}
}
