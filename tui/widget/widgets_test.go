package widget

import (
	"context"
	"fmt"
	"go/scanner"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"gpuscope/internal/printable"
	"gpuscope/trace/table"
)

func TestTextsFillTheirCells(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := printable.Clean(rapid.StringOf(rapid.RuneFrom([]rune("abc .é日本語🙂\t\n\x1b\u0301"))).Draw(t, "s"))
		w := rapid.IntRange(0, 20).Draw(t, "w")
		for name, got := range map[string]string{"fit": Fit(s, w), "fitLeft": FitLeft(s, w)} {
			if ansi.StringWidth(got) != w {
				t.Errorf("%s(%q, %d) = %q has %d cells", name, s, w, got, ansi.StringWidth(got))
			}
		}
		for name, got := range map[string]string{
			"cut": Cut(s, w), "cutMiddle": CutMiddle(s, w), "cutList": cutList(s, w, " …"),
			"cutPath": cutPath(s, w),
		} {
			if ansi.StringWidth(got) > w {
				t.Errorf("%s(%q, %d) = %q has %d cells", name, s, w, got, ansi.StringWidth(got))
			}
		}
		if strings.ContainsAny(s, "\x1b\n\t") {
			t.Errorf("printable left control characters in %q", s)
		}
	})
}

func TestNamesAreCutWhereTheySayLeast(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{CutMiddle("linear_q4gsw_coop4_bicol", 13), "linear…_bicol"},
		// A list keeps whole parts, so that no number is cut in the middle.
		{cutList("48→96 r batch8→gemv · 1×7×384 → 1×1×384", 39, " …"), "48→96 r batch8→gemv · 1×7×384 → 1×1×384"},
		{cutList("48→96 r batch8→gemv · 1×7×384 → 1×1×384", 38, " …"), "48→96 r batch8→gemv · 1×7×384 …"},
		{cutList("48→96 r batch8→gemv · 1×7×384 → 1×1×384", 30, " …"), "48→96 r batch8→gemv …"},
		{cutList("48→96 r batch8→gemv · 1×7×384 → 1×1×384", 17, " …"), "48→96 r batch8→g…"},
		{cutList("3 dispatches, 2 ≈floor", 12, ""), "3 dispatches"},
		{cutList("attn.rope.q, k, attn.v_heads", 16, " …"), "attn.rope.q, k …"},
		{cutList("linear_q4gsw_coop4_bicol", 13, " …"), "linear…_bicol"},
		{cutPath("layers.0.attn.norm", 13), "….0.attn.norm"},
		{cutPath("linear_q4gsw_coop4_bicol", 13), "linear…_bicol"},
		{Cut("abcdef", 4), "abc…"},
		{Count(1234567), "1,234,567"},
		{Count(-1000), "-1,000"},
		{Plural(1, "pass"), "1 pass"},
		{Plural(2, "dispatch"), "2 dispatches"},
		{printable.Clean("a\nb\tc\x1b[31m"), "a⏎b⇥c·[31m"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

func TestAnInputLineEdits(t *testing.T) {
	for _, c := range []struct {
		name string
		keys []Key
		want string // with | for the cursor
	}{
		{"types", []Key{{"a", "a"}, {"space", " "}, {"q", "q"}}, "a q|"},
		{"pastes lines", []Key{{"", "a\r\nb"}}, "a\nb|"},
		{"drops control characters", []Key{{"", "a\x1b[31mb"}}, "a[31mb|"},
		{"goes home and inserts", []Key{{"", "bc"}, {"home", ""}, {"a", "a"}}, "a|bc"},
		{"deletes whole characters", []Key{{"", "ae\u0301"}, {"backspace", ""}}, "a|"},
		{"deletes ahead", []Key{{"", "日本"}, {"left", ""}, {"delete", ""}}, "日|"},
		{"deletes a word", []Key{{"", "one two"}, {"ctrl+w", ""}}, "one |"},
		{"deletes to the start", []Key{{"", "one two"}, {"left", ""}, {"ctrl+u", ""}}, "|o"},
		{"stays put at the ends", []Key{{"backspace", ""}, {"left", ""}, {"right", ""}, {"delete", ""}}, "|"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var l InputLine
			for _, k := range c.keys {
				l.Handle(k)
			}
			if got := l.before + "|" + l.after; got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestALongInputKeepsTheCursorInSight(t *testing.T) {
	var l InputLine
	l.Handle(Key{"", strings.Repeat("x", 100) + "END"})
	if got := l.Render(20); !strings.HasSuffix(got, "END▏") || ansi.StringWidth(got) != 20 {
		t.Errorf("%q", got)
	}
	g := Glyphs{"ascii"}
	if got := g.Finish(l.Render(20), 20); !strings.HasSuffix(got, "END|") {
		t.Errorf("in ASCII the cursor looks like a letter of the text: %q", got)
	}
}

func TestChartsDrawWhatTheyAreGiven(t *testing.T) {
	for set, want := range map[string][]string{
		"block":   {"█  ", "█▄▁"},
		"braille": {"⣿  ", "⣿⣤⣀"},
		"ascii":   {"#  ", "#:."},
	} {
		g, err := NewGlyphs(set)
		if err != nil {
			t.Fatal(err)
		}
		rows := g.ColumnChart([]float64{1, 0.25, 0.001}, 2, func(int) bool { return false })
		if got := []string{g.Finish(rows[0], 3), g.Finish(rows[1], 3)}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", set, got, want)
		}
	}
}

func TestLogKeepsWholeLinesUpToALimit(t *testing.T) {
	l := NewLog()
	l.Write([]byte("half "))
	l.Write([]byte("a line\r\nand\n\n"))
	lines, _ := l.Snapshot()
	if len(lines) != 2 || lines[0].Text != "half a line" || lines[1].Text != "and" {
		t.Fatalf("%+v", lines)
	}
	for range 3 * logLines {
		l.Add("info", "x")
	}
	if lines, _ := l.Snapshot(); len(lines) > logLines {
		t.Errorf("%d lines are kept, want at most %d", len(lines), logLines)
	}
}

// In ASCII each sign has one meaning. Open, closed and removed rows have different signs, and so do brackets,
// closed rows, new rows and larger numbers.
func TestASCIISignsAreDistinct(t *testing.T) {
	g := Glyphs{"ascii"}
	apart := []string{
		MarkSelected, markOpen, MarkClosed, markMarked, MarkOK, MarkFail, MarkWarn, "›", "+", "-", "~",
		"=", "%", "┌", "├", "└", "±", "…", "≈", "→", "≥", "≤", "↓", "↑", "×", "‹", "◆", "µ", "Σ", "Δ", "⏎", "&",
		"#", "▲", "▒", "▅", "│",
	}
	said := map[string]string{}
	for _, sign := range apart {
		if other, ok := said[g.Finish(sign, 3)]; ok {
			t.Errorf("%s and %s are both %q", sign, other, g.Finish(sign, 3))
		}
		said[g.Finish(sign, 3)] = sign
	}
}

// A sign that needs more letters in ASCII takes them from the blanks between columns, so that columns do not
// move, or from a name that is cut anyway. Other text becomes longer and is cut if there is no room.
func TestASCIIKeepsBlanksAndColumns(t *testing.T) {
	g := Glyphs{"ascii"}
	for from, to := range map[string]string{
		"818 → 1060 tok/s ± 1.7":        "818 -> 1060 tok/s +/- 1.7",
		"▸ layers 0–5 …":                "> layers 0-5 ..",
		"a … b …\x1b[0m":                "a .. b ..\x1b[0m",
		"linea…gemv  128":               "line..gemv  128",
		"7 …yers.0.attn   6":            "7 ..ers.0.attn   6",
		"≈floor    12":                  "~=floor   12",
		"q  2048→4   7   x":             "q  2048->4  7   x",
		"q    2048→4 7   x":             "q   2048->4 7   x",
		"cost    ±  ~save  x":           "cost   +/- ~save  x",
		"q  \x1b[1m32→–\x1b[0m  7":      "q  \x1b[1m32->-\x1b[0m 7",
		"grid –→256":                    "grid - ->256",
		"──→ add   x":                   "--> add   x",
		"45678901234567890123456789 → ": "45678901234567890123456789..",
	} {
		if got := g.Finish(from, 28); got != to {
			t.Errorf("%q is written %q, want %q", from, got, to)
		}
	}
}

// ASCII has a sign for every sign that the screens and tables write, except those that only other sets draw.
func TestASCIIHasASignForEveryOther(t *testing.T) {
	t.Parallel()
	g := Glyphs{"ascii"}
	for _, pattern := range []string{"../*.go", "../*/*.go", "../*/*/*.go", "../../trace/*/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
		}
		for _, file := range files {
			if base := filepath.Base(file); strings.HasSuffix(base, "_test.go") ||
				strings.Contains(file, "tracetest") ||
				slices.Contains([]string{"glyphs.go", "plot.go"}, base) {
				continue
			}
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var s scanner.Scanner
			set := token.NewFileSet()
			s.Init(set.AddFile(file, -1, len(source)), source, nil, 0)
			for {
				_, tok, literal := s.Scan()
				if tok == token.EOF {
					break
				}
				text, err := strconv.Unquote(literal)
				if err != nil || tok != token.STRING && tok != token.CHAR {
					continue
				}
				for _, r := range g.Finish(text, len(text)) {
					if r > 0x7e && r != '\u00a0' {
						t.Errorf("%s: ASCII has no sign for %q of %q", file, r, text)
					}
				}
			}
		}
	}
}

// shares returns a table with a column of bars.
func shares(numbers ...float64) *table.Table {
	rows := make([]table.Row, len(numbers))
	for i := range rows {
		rows[i] = table.Row{Key: fmt.Sprint(i), Parent: -1, Quiet: i == 1}
	}
	return table.New("shares", []table.Column{
		{
			Name: "name", Title: "name", Width: 80, Tree: true,
			Of: func(row int) table.Cell { return table.Text(fmt.Sprint("row", row)) },
		},
		{
			Name: "share", Title: "share", Unit: "%", Right: true, Bar: true, Width: 80,
			Of: func(row int) table.Cell { return table.Number(numbers[row], 1) },
		},
	}, rows)
}

func TestBarsShowTheLargestFirst(t *testing.T) {
	p := TablePane{Screen: 120}
	l, err := Listed(context.Background(), shares(50, 25, 0.1, 0, -3), Choice{}, "", false)
	if err != nil {
		t.Fatal(err)
	}
	p.place(l)
	lines := p.Render(plainTheme(t), 40, 10, true, "")
	for i, want := range []string{
		" name share", "▌row0 ██████ 50.0%", " row1 ███    25.0%", " row2 ▏       0.1%", " row3         0.0%",
		" row4        -3.0%",
	} {
		if got := strings.TrimRight(lines[i], " "); got != want {
			t.Errorf("line %d: %q, want %q", i, got, want)
		}
	}
	p.Choose(Choice{Selection: table.Selection{Sort: "share", Reverse: true}})
	l, _ = Listed(context.Background(), shares(50, 25), p.Wanted, "", false)
	if p.place(l); !strings.Contains(p.Render(plainTheme(t), 40, 10, true, "")[0], "share↓") {
		t.Error("the heading does not show that rows are sorted by share")
	}
}

// A rule separates rows of different classes. It takes a line, but no row.
func TestRulesSeparateClasses(t *testing.T) {
	p := TablePane{Screen: 120, Class: func(row int) (string, bool) {
		return []string{"large", "small"}[min(1, row/3)], row >= 3
	}}
	l, err := Listed(context.Background(), shares(9, 8, 7, 3, 2, 1), Choice{}, "", false)
	if err != nil {
		t.Fatal(err)
	}
	p.place(l)
	th := plainTheme(t)
	lines := p.Render(th, 30, 7, true, "")
	rows := make([]int, len(lines)-1)
	for i := range rows {
		rows[i] = p.RowAt(i + 1)
	}
	if len(lines) != 7 || !strings.HasPrefix(lines[4], " ── small ──") || Width(lines[4]) > 30 ||
		!slices.Equal(rows, []int{0, 1, 2, -1, 3, 4}) {
		t.Errorf("lines %q, rows %v", lines, rows)
	}
	p.Move(Bottom)
	if lines = p.Render(th, 30, 7, true, ""); !strings.Contains(lines[len(lines)-1], "row5") {
		t.Errorf("the last row is not visible: %q", lines)
	}
	for h := 2; h < 10; h++ {
		for range 6 {
			p.Move(Up)
			if lines = p.Render(th, 30, h, true, ""); len(lines) > h ||
				!strings.Contains(strings.Join(lines, "\n"), MarkSelected) {
				t.Errorf("%d lines of %d: the selected row is not visible: %q", len(lines), h, lines)
			}
		}
		p.Move(Bottom)
	}
}

func TestQuietRowsAreContext(t *testing.T) {
	th, err := NewTheme("dark", "true", io.Discard, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := TablePane{}
	l, _ := Listed(context.Background(), shares(2, 1, 3), Choice{}, "", false)
	p.place(l)
	lines := p.Render(th, 40, 10, true, "")
	if !strings.Contains(lines[2], th.Put(Dim, "row1")) || strings.Contains(lines[3], th.start[Dim]) {
		t.Errorf("%q", lines)
	}
	p.stale = true
	if line := p.Render(th, 40, 10, true, "")[3]; !strings.Contains(line, th.Put(Dim, "row2")) {
		t.Errorf("a stale row looks like a current row: %q", line)
	}
}

func plainTheme(t *testing.T) *Theme {
	th, err := NewTheme("dark", "never", io.Discard, nil)
	if err != nil {
		t.Fatal(err)
	}
	return th
}

// A menu takes as many lines as it needs. If there are too few, the last line counts what is missing.
func TestMenuCountsWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	c := Chord{label: "sort by"}
	for _, name := range []string{"cost", "save", "lost", "sum", "share", "graph order"} {
		c.choices = append(c.choices, choiceKey{key: name[:1], name: name})
	}
	for _, is := range []struct {
		w, h int
		want string
	}{
		{80, 3, " sort by: c cost  s save  l lost  s sum  s share  g graph order"},
		{63, 1, " sort by: c cost  s save  l lost  s sum  s share  … 1 more"},
		{63, 2, " sort by: c cost  s save  l lost  s sum  s share\n          g graph order"},
		{40, 1, " sort by: c cost  s save  … 4 more"},
		{30, 2, " sort by: c cost  s save\n          l lost  … 3 more"},
	} {
		lines := c.Lines(plainTheme(t), is.w, is.h)
		if got := strings.Join(lines, "\n"); got != is.want || Width(slices.MaxFunc(lines, byWidth)) > is.w {
			t.Errorf("in %d by %d cells: %q, want %q", is.w, is.h, got, is.want)
		}
	}
}

func byWidth(a, b string) int { return Width(a) - Width(b) }

// The canvas lets only colours through, and no other escape sequence.
func TestCanvasKeepsColoursAlone(t *testing.T) {
	t.Parallel()
	c := NewCanvas(1, Glyphs{})
	c.Draw(Rect{0, 0, 40, 1}, []string{"\x1b[1;31ma\x1b[0m\x1b[2J\x1b]0;b\x07c\r\nd\u202e"})
	if got, want := c.String(), "\x1b[1;31ma\x1b[0m·[2J·]0;b·c·⏎d·"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The name of a series is as far right as possible, without covering the first series or another name.
func TestNamesInAPlotCoverNoPoints(t *testing.T) {
	p := NewPlot(Glyphs{"ascii"}, 12, 2, Scale{Lo: 0, Hi: 11}, Scale{Lo: 0, Hi: 1})
	p.Label = func(float64) string { return "" }
	p.Position = p.Label
	p.Dot(8, 1)
	p.Back(11, 1)
	p.Name(1, "ab")
	p.Name(1, "cd")
	p.Name(1, "no room")
	p.Name(0, "ef")
	th, err := NewTheme("dark", "never", io.Discard, nil)
	if err != nil {
		t.Fatal(err)
	}
	lines := p.Render(th)
	for row, want := range []string{" cd  ab o  ·", "         ef"} {
		_, got, _ := strings.Cut(ansi.Strip(lines[row]), MarkBar)
		if got != want {
			t.Errorf("row %d: %q, want %q", row, got, want)
		}
	}
}

// A large part of the whole has a sign and a color, also in the selected row. Rows of less interest stay
// dimmed.
func TestHeatIsSeenWithAndWithoutColors(t *testing.T) {
	numbers := []float64{30, 30, 12, 7, 1}
	tab := shares(numbers...)
	share := &tab.Columns[1]
	share.Bar, share.Part = false, func(row int) float64 { return numbers[row] / 100 }
	for _, colors := range []string{"never", "true"} {
		th, err := NewTheme("dark", colors, io.Discard, nil)
		if err != nil {
			t.Fatal(err)
		}
		p := TablePane{}
		l, _ := Listed(context.Background(), tab, Choice{}, "", false)
		p.place(l)
		lines := p.Render(th, 40, 10, true, "")
		for row, want := range []struct {
			paint Paint
			text  string
		}{
			{HeatD, "█30.0"}, {Dim, "█30.0"}, {HeatC, "▒12.0"}, {HeatB, "░ 7.0"}, {Plain, "  1.0"},
		} {
			if !strings.HasSuffix(lines[row+1], " "+th.Put(want.paint, want.text)) {
				t.Errorf("colors %s, row %d: %q, want %q", colors, row, lines[row+1], want.text)
			}
		}
	}
}

// Columns keep their places while rows change: they become no narrower, and a column without content stays.
// They are laid out anew if the form of the list or its width changes.
func TestColumnsKeepTheirPlaces(t *testing.T) {
	tables := map[string]*table.Table{}
	for name, texts := range map[string][]string{"wide": {"100.25", "+"}, "narrow": {"7", ""}} {
		tab := shares(1, 2)
		tab.Columns[1].Bar = false
		tab.Columns[1].Of = func(row int) table.Cell {
			return table.Cell{Text: texts[0] + fmt.Sprint(row), Number: 1, Has: true}
		}
		tab.Columns = append(tab.Columns, table.Column{
			Name: "delta", Title: "D", Width: 80,
			Of: func(row int) table.Cell { return table.Text(strings.Repeat(texts[1], row)) },
		}, table.Column{
			Name: "last", Title: "last", Width: 80,
			Of: func(row int) table.Cell { return table.Text(fmt.Sprint("x", row)) },
		})
		tables[name] = tab
	}
	p := TablePane{Screen: 120}
	header := func(name string, w int) string {
		l, err := Listed(context.Background(), tables[name], Choice{}, "", false)
		if err != nil {
			t.Fatal(err)
		}
		l.form = p.Form
		p.place(l)
		return p.Render(plainTheme(t), w, 10, true, "")[0]
	}
	wide := header("wide", 40)
	if got := header("narrow", 40); got != wide || !strings.Contains(got, " D last") {
		t.Errorf("the columns moved: %q, before %q", got, wide)
	}
	if got := header("narrow", 41); got == wide || strings.Contains(got, "D") {
		t.Errorf("at another width, the columns stay: %q", got)
	}
	header("wide", 41)
	p.Form = "other"
	if got := header("narrow", 41); strings.Contains(got, "D") {
		t.Errorf("in another form, the columns stay: %q", got)
	}
}
