package tui

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	tea "github.com/charmbracelet/bubbletea"

	"gpuscope/trace/table"
	"gpuscope/tui/command"
	"gpuscope/tui/tuitest"
	"gpuscope/tui/view"
	"gpuscope/tui/view/all"
	"gpuscope/tui/widget"
)

// rebind gives every action another key during a test.
func rebind(t *testing.T, key func(name string) string) {
	t.Cleanup(func() { command.Table = withViews() })
	for i := range command.Table {
		command.Table[i].Keys = []string{key(command.Table[i].Name)}
	}
}

// A key is defined in one place only: no sentence contains it literally.
func TestSentencesNameTheKeysOfTheTable(t *testing.T) {
	rebind(t, func(name string) string { return "<" + name + ">" })
	recorded := drive(t, 80, 24, llama, nil, Options{})
	recorded.sees("<token> token", "<help> help").app.fail(nil, errors.New("odd"))
	recorded.update(widget.LateMsg{})
	recorded.reads("notice")
	recorded.app.cancel()
	recorded.reads("bottom")
	drive(t, 80, 24, llama, &tuitest.Script{}, Options{}).reads("welcome")
}

// literalKey matches a sentence that names a key.
var literalKey = regexp.MustCompile(`(?i:\bpress) [^{% ]|(^|[ (;:,])(esc|Esc|ctrl\+c|tab|enter|[a-zA-Z,.]) ` +
	`(again|types|goes|shows|exports|lists|adds|dismisses|clears|closes|is pressed)\b|\((x|w|0|b|i|esc)\)`)

func TestNoSentenceHasALiteralKey(t *testing.T) {
	t.Parallel()
	var files []string
	for _, folder := range []string{"*.go", "*/*.go"} {
		list, err := filepath.Glob(folder)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, list...)
	}
	n := 0
	for _, name := range files {
		// plain mode has commands, not keys
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "plain/") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			if l, ok := node.(*ast.BasicLit); ok && l.Kind == token.STRING {
				s, _ := strconv.Unquote(l.Value)
				if n++; literalKey.MatchString(s) {
					t.Errorf("%s: %q names a key: use keyed", name, s)
				}
			}
			return true
		})
	}
	if n < 500 || !literalKey.MatchString("Press i and type") || !literalKey.MatchString("w lists them") {
		t.Errorf("%d strings, want at least 500 and a working literalKey", n)
	}
}

// idle is a view for tests.
type idle struct{ view.Basics }

func (idle) Load(*widget.Jobs, view.Snapshot, int) {}
func (idle) Title(int) []table.Segment             { return []table.Segment{{Text: "nothing to do"}} }

func (idle) Render(*widget.Theme, widget.Glyphs, int, int, bool) []string {
	return []string{" at rest"}
}

// In the palette an action ranks first if its exact name is typed, even if other names contain the text.
func TestPaletteRanksExactNamesFirst(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, llama, nil, Options{}).press("2")
	for _, act := range command.Here(d.app.inView(command.InViews, command.Anywhere), false) {
		if act.Name == "palette" {
			continue
		}
		p := d.press(":").typed(act.Name).app.dialog.(*command.Palette)
		if p.Found()[0] != act {
			t.Errorf("%s: the first is %s", act.Name, p.Found()[0].Name)
		}
		d.press("esc")
	}
	p := d.press(":").typed("Copy").app.dialog.(*command.Palette)
	if p.Found()[0].Name != "copy" {
		t.Errorf("Copy: the first is %s", p.Found()[0].Name)
	}
	d.press("esc")
	if p = d.press(":").typed("co").app.dialog.(*command.Palette); !strings.HasPrefix(p.Found()[1].Name,
		"co") {
		t.Errorf("co: the second is %s", p.Found()[1].Name)
	}
	d.press("esc")
	for _, word := range []string{"time", "prefill", "grid"} {
		p, others := d.press(":").typed(word).app.dialog.(*command.Palette), false
		for i, act := range p.Found() {
			has := strings.Contains(" "+strings.ToLower(act.Name+" "+act.Doc+" "+act.Also), " "+word)
			if others = others || !has; i == 0 && others || others && has {
				t.Errorf("%s: %s, %q is ranked wrongly", word, act.Name, act.Doc)
			}
		}
		d.press("esc")
	}
}

// The help explains every sign that the views draw.
func TestEverySignOfTheViewsIsExplained(t *testing.T) {
	t.Parallel()
	var known strings.Builder
	for _, s := range command.Signs {
		known.WriteString(s[0])
	}
	const plain = "│─┐µ" // lines and frames, and the prefix of a unit
	pictures, err := filepath.Glob("testdata/TestViews/*.golden")
	if err != nil || len(pictures) < 20 {
		t.Fatalf("%d pictures, %v", len(pictures), err)
	}
	missing := map[rune]string{}
	for _, path := range pictures {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range string(text) {
			if r > unicode.MaxASCII && !unicode.IsLetter(r) &&
				!strings.ContainsRune(known.String()+plain, r) {
				missing[r] = path
			}
		}
	}
	for r, path := range missing {
		t.Errorf("%c in %s is not explained", r, path)
	}
}

// The palette finds a command by what users of other tools call it, and says if there is none.
func TestPaletteKnowsOtherWords(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, llama, nil, Options{}).press("2")
	for _, test := range []struct {
		typed string
		want  []string
	}{
		{"diff", []string{"baseline", "baseline trace"}},
		{"NaN", []string{"breakpoints", "verify step"}},
		{"perfetto", []string{"export"}},
		{"zoom out", nil},
		{"qqq", nil},
	} {
		var got []string
		for _, r := range d.press(":").typed(test.typed).app.dialog.(*command.Palette).Found() {
			got = append(got, r.Name)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.typed, got, test.want)
		}
		d.press("esc")
	}
}

// A view is defined by a file and a row. Its key, tab, help, palette entry and documentation follow from the
// row.
func TestAViewIsARow(t *testing.T) {
	rows := all.Views
	t.Cleanup(func() {
		all.Views = rows
		command.Table = withViews()
	})
	all.Views = append(rows[:len(rows):len(rows)],
		view.Row{
			Key: "9", Name: "Idle", Doc: "Nothing at all.",
			New: func(view.Host, *widget.Log) view.View { return idle{} },
		})
	command.Table = withViews()
	d := drive(t, 80, 24, llama, nil, Options{}).press("9")
	d.sees("[9 Idle]").reads("title", "list")
	d.misses("/ filter", "o sort")
	d.press("o", "F", "/", "w", "e", "j", "enter", "tab", "y", "z").reads("list")
	d.press("?").reads("overTitle")
	if !strings.Contains(KeysDoc(), "| `9` | Idle | Nothing at all. |") {
		t.Error("the view is not in the documentation")
	}
	d.press("esc", "`").sees("[2 Dispatches]").press(":").typed("idle").press("enter").sees("[9 Idle]")
}

// Any number of tabs leaves room for the shown step, and each tab can be clicked.
func TestTabsLeaveRoomForTheStep(t *testing.T) {
	rows := all.Views
	t.Cleanup(func() {
		all.Views = rows
		command.Table = withViews()
	})
	for _, key := range []string{"4", "5", "6", "7", "8", "9"} {
		if slices.ContainsFunc(rows, func(r view.Row) bool { return r.Key == key }) {
			continue
		}
		all.Views = append(all.Views[:len(all.Views):len(all.Views)],
			view.Row{
				Key: key, Name: "Idle" + key, Doc: "Nothing.",
				New: func(view.Host, *widget.Log) view.View { return idle{} },
			})
		command.Table = withViews()
		d := drive(t, 80, 24, llama, nil, Options{}).press("2").sees("[2 Dispatches]").reads("header")
		d.press(key).sees("[" + key + " Idle" + key + "]").press("2")
		tabs := strings.Split(d.screen(), "\n")[1]
		d.at(strings.Index(tabs, " "+key+" ")+1, 1, tea.MouseButtonLeft).sees("[" + key + " Idle")
		drive(t, 200, 60, llama, nil, Options{}).sees(" " + key + " Idle" + key).reads("header")
	}
}

// The detail shows the barriers and the fused operators that the engine recorded.
func TestDetailNamesBarriersAndFusedOperators(t *testing.T) {
	t.Parallel()
	tr := *llama
	tr.Graph.Ops = append(tr.Graph.Ops[:0:0], tr.Graph.Ops...)
	for i := range tr.Graph.Ops {
		tr.Graph.Ops[i].Parts = []string{"one", "two"}
	}
	d := drive(t, 200, 60, &tr, nil, Options{}).press("2", "F", "F", "F", "/").typed("mlp.down")
	d.reads("detail")
}
