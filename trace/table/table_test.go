package table

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// values returns a table with a column of numbers and a column of words.
func values(numbers []float64, words []string) *Table {
	return New("values", []Column{
		{Name: "n", Title: "n", Unit: "x", Is: Exact, Right: true, Width: 80, Of: func(row int) Cell {
			return Number(numbers[row], 1)
		}},
		{Name: "word", Title: "word", Width: 80, Of: func(row int) Cell {
			return Text(words[row%len(words)])
		}},
	}, Flat(len(numbers), func(row int) string { return string(rune('a' + row)) }))
}

func printed(t *testing.T, tab *Table, format string) string {
	t.Helper()
	rows, err := tab.Select(context.Background(), Selection{})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := tab.Print(context.Background(), &b, format, rows, 0); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestNonFiniteNumbersAreWordsInFiles(t *testing.T) {
	tab := values([]float64{1.5, math.NaN(), math.Inf(1), math.Inf(-1)}, []string{"w"})
	var got struct {
		Rows []struct {
			Key string
			N   any
		}
	}
	if err := json.Unmarshal([]byte(printed(t, tab, "json")), &got); err != nil {
		t.Fatal(err)
	}
	var list []any
	for _, r := range got.Rows {
		list = append(list, r.N)
	}
	if d := cmp.Diff([]any{1.5, "NaN", "Infinity", "-Infinity"}, list); d != "" {
		t.Error(d)
	}
	rows, err := csv.NewReader(strings.NewReader(printed(t, tab, "csv"))).ReadAll()
	if err != nil || rows[2][2] != "NaN" || rows[3][2] != "Infinity" || rows[4][2] != "-Infinity" {
		t.Error(rows, err)
	}
}

// Numbers that are not significant, and rows without a number, are sorted by another number.
func TestInsignificantNumbersAreSortedByAnother(t *testing.T) {
	cells := []Cell{
		{Then: 5},
		{Number: -4, Has: true, Then: 9},
		{Number: 3, Has: true, Mark: Zero, Then: 1},
		{Number: 7, Has: true},
		{Then: 6},
		{Number: -1, Has: true, Mark: Zero, Then: 2},
		{Number: 8, Has: true, Mark: Unknown, Then: 8},
		{Number: 9, Has: true},
	}
	numbers := New("n", []Column{{
		Name: "n", Unit: "us", Right: true, Of: func(row int) Cell { return cells[row] },
	}}, make([]Row, len(cells)))
	for i := range numbers.Rows {
		numbers.Rows[i].Parent = -1
	}
	for reverse, want := range map[bool][]int{
		true:  {7, 3, 5, 2, 1, 6, 4, 0},
		false: {1, 5, 2, 3, 7, 6, 4, 0},
	} {
		got, err := numbers.Select(context.Background(), Selection{Sort: "n", Reverse: reverse})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("reverse %v: rows %v, error %v, want %v", reverse, got, err, want)
		}
	}
}

func TestWhatIsNoNumberIsSortedLast(t *testing.T) {
	tab := values([]float64{2, math.NaN(), math.Inf(1), 1}, []string{"w"})
	for reverse, want := range map[bool][]int{false: {3, 0, 2, 1}, true: {2, 0, 3, 1}} {
		rows, err := tab.Select(context.Background(), Selection{Sort: "n", Reverse: reverse})
		if err != nil || !slices.Equal(rows, want) {
			t.Errorf("reverse %v: %v, %v; want %v", reverse, rows, err, want)
		}
	}
}

func TestTextOfAFileCannotCommandATerminal(t *testing.T) {
	evil := "a\x1b]52;c;ZXZpbA==\ab\nc\u202ed"
	tab := values([]float64{1, 2}, []string{evil, "x"})
	tab.Title = []Line{Title(Segment{Text: evil})}
	tab.Notes = []string{evil}
	for _, format := range []string{"text", "md"} {
		got := printed(t, tab, format)
		if strings.ContainsAny(got, "\x1b\a\u202e") || strings.Count(got, "\n") > 6 {
			t.Errorf("%s: %q", format, got)
		}
	}
	var rows struct{ Rows []struct{ Word string } }
	err := json.Unmarshal([]byte(printed(t, tab, "json")), &rows)
	if err != nil || rows.Rows[0].Word != evil {
		t.Errorf("JSON must contain the text unchanged: %q, %v", rows, err)
	}
}

func TestWideTextStaysInItsColumn(t *testing.T) {
	tab := New("t", []Column{
		{Name: "a", Title: "a", Width: 80, Of: func(row int) Cell {
			return Text([]string{"日本", "x"}[row])
		}},
		{Name: "b", Title: "b", Width: 80, Of: func(row int) Cell { return Text([]string{"1", "2"}[row]) }},
	}, Flat(2, func(int) string { return "k" }))
	if got := printed(t, tab, "text"); got != "a     b\n日本  1\nx     2\n" {
		t.Errorf("%q", got)
	}
}

// Fit drops the least important segments of a title first, keeps their order, and never exceeds the width.
func TestATitleLosesWhatMattersLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var line Line
		for i := range rapid.IntRange(1, 6).Draw(t, "parts") {
			line.Segments = append(line.Segments, Segment{
				Rank: rapid.IntRange(0, 4).Draw(t, "rank"),
				Text: strings.Repeat(string(rune('a'+i)), rapid.IntRange(1, 12).Draw(t, "length")),
				With: rapid.Bool().Draw(t, "with"),
			})
		}
		w := rapid.IntRange(0, 60).Draw(t, "w")
		got := line.Fit(w)
		if Width(got) > w {
			t.Fatalf("%q is wider than %d cells", got, w)
		}
		kept := func(p Segment) bool { return strings.Contains(got, p.Text) }
		at := -1
		for i, p := range line.Segments {
			if !kept(p) {
				continue
			}
			if place := strings.Index(got, p.Text); place <= at {
				t.Fatalf("%q: part %d is before an earlier part", got, i)
			} else {
				at = place
			}
			if i > 0 && p.With && !kept(line.Segments[i-1]) {
				t.Fatalf("%q has part %d without the part that it continues", got, i)
			}
		}
		for i, p := range line.Segments {
			least := !slices.ContainsFunc(line.Segments, func(q Segment) bool { return q.Rank < p.Rank })
			if least && i == 0 && Width(p.Text) <= w && !kept(p) {
				t.Fatalf("%q dropped %q, the most important part, which fits into %d cells", got, p.Text, w)
			}
		}
	})
}

func TestALineHoldsNothingThatATerminalObeys(t *testing.T) {
	line := Title(Say(0, "mlp\x1b[31m"), Segment{
		Rank: 1, Text: "long\x1b]52;c;aGk=\a name",
		Short: "b\x1b[2J",
	})
	for _, got := range []string{line.String(), line.Fit(80), line.Fit(14), line.Fit(4)} {
		if strings.ContainsAny(got, "\x1b\a") {
			t.Errorf("%q", got)
		}
	}
}

func TestDroppedSegmentTakesItsContinuationAlong(t *testing.T) {
	line := Line{Segments: []Segment{{Text: "a"}, {Text: "b"}, {Text: "c", With: true}}}
	if got := line.Fit(3); got != "a" {
		t.Errorf("%q: c continues b, but b was dropped", got)
	}
}

func TestAnErrorOutlivesWhatIsNiceToHave(t *testing.T) {
	line := Title(Segment{Rank: 0, Text: "326 dispatches"}, Segment{Rank: 6, Text: "over-dispatch 0, tail in 18"},
		Segment{Rank: 0, Text: "filter us:>x: not a number"}, Segment{Rank: 1, Text: "Δ s22: 16 grid"})
	for w, want := range map[int]string{
		200: "326 dispatches · over-dispatch 0, tail in 18 · filter us:>x: not a number · Δ s22: 16 grid",
		60:  "326 dispatches · filter us:>x: not a number · Δ s22: 16 grid",
		50:  "326 dispatches · filter us:>x: not a number",
	} {
		if got := line.Fit(w); got != want {
			t.Errorf("%d cells: %q, want %q", w, got, want)
		}
	}
}

func TestImportantSegmentsAreShortenedNotDropped(t *testing.T) {
	line := Title(Segment{Rank: 0, Text: "wall 8.70 ms"},
		Segment{Rank: 0, With: true, Text: "(7.70 untimed, 9.05 timed, +18%)", Short: "(timing +18%)"},
		Segment{Rank: 1, Text: "326 dispatches"}, Segment{Rank: 0, Text: "Δ s22: 16 grid, 66 params"})
	for w, want := range map[int]string{
		100: "wall 8.70 ms (7.70 untimed, 9.05 timed, +18%) · 326 dispatches · Δ s22: 16 grid, 66 params",
		80:  "wall 8.70 ms (7.70 untimed, 9.05 timed, +18%) · Δ s22: 16 grid, 66 params",
		60:  "wall 8.70 ms (timing +18%) · Δ s22: 16 grid, 66 params",
		45:  "wall 8.70 ms (timing +18%) · Δ s22: 16 grid …",
		38:  "wall 8.70 ms (timing +18%) · Δ s22 …",
		33:  "wall 8.70 ms (timing +18%)",
		11:  "wall 8.70 …",
		10:  "wall …",
		5:   "wall…",
	} {
		if got := line.Fit(w); got != want {
			t.Errorf("%d cells: %q, want %q", w, got, want)
		}
	}
}

func TestSuffixGivesTheOutputFormat(t *testing.T) {
	for i, suffix := range Suffixes() {
		format, err := FormatOf("a.b" + strings.ToUpper(suffix))
		has := func(f outputFormat) bool { return f.name == format && f.suffix == suffix }
		if err != nil || !slices.ContainsFunc(outputFormats, has) {
			t.Errorf("%s is read as %q, %v", suffix, format, err)
		}
		if slices.Index(Suffixes(), suffix) != i {
			t.Errorf("two formats have the suffix %s", suffix)
		}
	}
	if _, err := FormatOf("a.xlsx"); err == nil || !strings.Contains(err.Error(), ".csv, .json, .md, .txt") {
		t.Error(err)
	}
}

// A cell of a group of many rows adds up all of them, which is slow. The table computes it once and keeps it,
// because every frame draws it. A table with other columns has its own cells.
func TestCellsOfLargeGroupsAreComputedOnce(t *testing.T) {
	rows := []Row{{Key: "all", Parent: -1}, {Key: "few", Parent: -1}}
	for range manyRows {
		rows = append(rows, Row{Parent: 0, Depth: 1})
	}
	made := make([]int, len(rows))
	tab := New("deep", []Column{{Name: "n", Of: func(row int) Cell {
		made[row]++
		return Count(row)
	}}}, rows)
	for range 3 {
		for row := range rows {
			if c := tab.Cell(row, 0); c.Number != float64(row) {
				t.Fatalf("row %d has the cell %v", row, c)
			}
		}
	}
	if made[0] != 1 || made[1] != 3 {
		t.Errorf("the cell of %d rows was computed %d times, of no rows %d times", manyRows, made[0], made[1])
	}
	other := tab.WithColumns([]Column{{Name: "word", Of: func(int) Cell { return Text("w") }}})
	if c := other.Cell(0, 0); c.Text != "w" {
		t.Errorf("with other columns the cell is %v", c)
	}
}

// A column without measurements is left out of text and Markdown, but written to CSV and JSON.
func TestColumnsWithoutMeasurementsAreNotPrinted(t *testing.T) {
	column := func(name string, of func(int) Cell) Column {
		return Column{Name: name, Title: name, Unit: "us", Right: true, Width: 80, Of: of}
	}
	tab := New("costs", []Column{
		{Name: "op", Title: "op", Width: 80, Of: func(r int) Cell { return Text(string(rune('a' + r))) }},
		column("cost", func(int) Cell { return Missing() }),
		column("alone", func(r int) Cell {
			if r == 0 {
				return Missing()
			}
			return Number(float64(r), 0)
		}),
	}, Flat(3, func(r int) string { return string(rune('a' + r)) }))
	for _, form := range []string{"text", "md"} {
		if s := printed(t, tab, form); strings.Contains(s, "cost") || !strings.Contains(s, Unmeasured) {
			t.Errorf("%s:\n%s", form, s)
		}
	}
	for _, form := range []string{"csv", "json"} {
		if s := printed(t, tab, form); !strings.Contains(s, "cost") {
			t.Errorf("%s has no cost column:\n%s", form, s)
		}
	}
}

func TestEmptyTitleLinesAreNotPrinted(t *testing.T) {
	a := func(int) string { return "a" }
	op := Column{Name: "op", Title: "op", Width: 80, Of: func(row int) Cell { return Text(a(row)) }}
	tab := New("rows", []Column{op}, Flat(1, a))
	tab.Title = []Line{Title(), Title(Say(0, "one row"))}
	if s := printed(t, tab, "text"); !strings.HasPrefix(s, "one row\n") {
		t.Errorf("%q", s)
	}
}

// The mark of a number that is not significant is a separate column in filters and in CSV. In text and
// Markdown the mark is part of the number's cell.
func TestMarksAreForPrograms(t *testing.T) {
	us := Column{Name: "us", Title: "µs", Unit: "us", Right: true, Width: 80, Of: func(row int) Cell {
		return []Cell{
			Number(3, 0),
			{Text: "= 2", Number: 2, Has: true, Mark: "="},
			{Text: "? 1", Number: 1, Has: true, Mark: "?"},
		}[row]
	}}
	rows := Flat(3, func(row int) string { return fmt.Sprint(row) })
	tab := New("t", []Column{us, Marks(us)}, rows)
	all := []int{0, 1, 2}
	for format, want := range map[string]string{
		"text": " µs\n  3\n= 2\n? 1\n",
		"md":   "| µs |\n| ---: |\n| 3 |\n| = 2 |\n| ? 1 |\n",
		"csv":  "key,depth,us,us_mark\n0,0,3,\n1,0,2,=\n2,0,1,?\n",
	} {
		var out bytes.Buffer
		if err := tab.Print(t.Context(), &out, format, all, 0); err != nil || out.String() != want {
			t.Errorf("%s: %v: %q, want %q", format, err, out.String(), want)
		}
	}
	f, err := tab.ParseFilter(t.Context(), "us_mark:==")
	if err != nil || f.Match(tab, 0) || !f.Match(tab, 1) || f.Match(tab, 2) {
		t.Errorf("the filter does not find the marks: %v", err)
	}
	_, err = tab.ParseFilter(t.Context(), "ms:>1")
	if err == nil || strings.Contains(err.Error(), "us_mark") {
		t.Errorf("%v", err)
	}
}

// Heat depends only on the part of the whole. A number that is not reliable has none.
func TestHeatHasTheSameStepsEverywhere(t *testing.T) {
	parts := []float64{0, 0.049, 0.05, 0.099, 0.1, 0.249, 0.25, 1, -1}
	mark := ""
	of := ColumnsOf(parts)
	tab := New("parts", []Column{
		of.WithHeat(of.Cell(80, Measured, "part", "part", "%", "", func(p *float64) Cell {
			return Cell{Text: "x", Number: *p, Has: true, Mark: mark}
		}), func(p *float64) float64 { return *p }),
		of.Cell(80, Measured, "same", "same", "%", "", func(p *float64) Cell { return Number(*p, 1) }),
	}, Flat(len(parts), func(row int) string { return string(rune('a' + row)) }))
	heats := func(col int) (list []Heat) {
		for row := range parts {
			list = append(list, tab.HeatIn(row, col))
		}
		return list
	}
	want := []Heat{Cold, Cold, Warm, Warm, Hot, Hot, Hottest, Hottest, Cold}
	if got := heats(0); !slices.Equal(got, want) {
		t.Errorf("heat %v, want %v", got, want)
	}
	cold := make([]Heat, len(parts))
	if got := heats(1); !slices.Equal(got, cold) {
		t.Errorf("a column without heat has %v", got)
	}
	if mark = Zero; !slices.Equal(heats(0), cold) {
		t.Errorf("numbers that are not significant have %v", heats(0))
	}
}

// The line with the sums is last, is as wide as its numbers, and is not a row of CSV.
func TestTotalIsPrintedAfterTheRows(t *testing.T) {
	tab := values([]float64{1, 2}, []string{"first", "second"})
	tab.Total = func(column string) Cell {
		if column == "n" {
			return Number(123456789, 1)
		}
		return Cell{}
	}
	lines := strings.Split(strings.TrimSpace(printed(t, tab, "text")), "\n")
	if last := lines[len(lines)-1]; len(lines) != 4 || last != "123456789.0" {
		t.Errorf("%q", lines)
	}
	if got := printed(t, tab, "md"); !strings.HasSuffix(got, "| 123456789.0 |  |\n") {
		t.Error(got)
	}
	if got := printed(t, tab, "csv"); strings.Contains(got, "123456789") {
		t.Error(got)
	}
	var got struct {
		Rows  []map[string]any
		Total map[string]any
	}
	if err := json.Unmarshal([]byte(printed(t, tab, "json")), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Rows) != 2 || got.Total["n"] != 123456789.0 || got.Total["key"] != "total" {
		t.Errorf("%+v", got)
	}
	if other := tab.WithColumns(tab.Columns[:1]); other.TotalCell(0).Number != 123456789 {
		t.Error("a table with other columns has no total")
	}
}
