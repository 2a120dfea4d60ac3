package tui

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gpuscope/tui/lab"
	"gpuscope/tui/tuitest"
	"gpuscope/tui/widget"
)

// cells returns the cells of a column of the current table, from top to bottom.
func (d *driver) cells(column string) (list []string) {
	t := d.app.table()
	for _, row := range t.Rows {
		list = append(list, t.Table.Cell(row, t.Table.Column(column)).Text)
	}
	return list
}

// wantCells fails the test if a column of the current table has other cells.
func (d *driver) wantCells(column string, want ...string) {
	d.t.Helper()
	if got := d.cells(column); !slices.Equal(got, want) {
		d.t.Errorf("column %s has %q, want %q", column, got, want)
	}
}

// tried returns a driver that shows the list of three variants: a right one, one that is wrong, and one that
// does not compile. The newest is the first row.
func tried(t *testing.T, w, h int) *driver {
	d := editing(t, w, h)
	d.edits("// "+tuitest.Right).press("q", "e")
	d.replaces(tuitest.Right, "slips").press("q", "e")
	return d.edits(tuitest.Broken).press("q", "W")
}

// replaces changes the source of the kernel that was edited last and closes the editor.
func (d *driver) replaces(from, to string) *driver {
	d.t.Helper()
	path := texts(d.t, d.app.opts.Cache)[0]
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(strings.ReplaceAll(string(text), from, to)), 0o600)
	}
	if err != nil {
		d.t.Fatal(err)
	}
	d.update(lab.Edited{Kernel: strings.TrimSuffix(filepath.Base(path), ".wgsl"), Path: path})
	d.settle()
	return d
}

func TestVariantsAreListed(t *testing.T) {
	t.Parallel()
	for _, size := range some(sizes) {
		d := tried(t, size[0], size[1])
		d.wantCells("number", "3", "2", "1")
		d.wantCells("verdict", "✗ refused", "✗ wrong", "✓ faster")
		d.wantCells("saved_us", "", "18.0", "18.0")
		d.wantCells("error", "", "0.25", "0.25")
		d.wantCells("lines", "+2 -0", "+1 -0", "+1 -0")
		d.wantCells("change", "broken", "// slips", "// right")
		d.sees("Variants", "refused", "wrong", "faster", "// slips")
		d.press("q").misses("Variants")
	}
}

// A source that is tried again keeps its row.
func TestVariantTriedAgainKeepsItsRow(t *testing.T) {
	t.Parallel()
	d := editing(t, 120, 40)
	d.edits("// "+tuitest.Right).press("q", "e")
	d.replaces(tuitest.Right, "slips").press("q", "e")
	d.replaces("slips", tuitest.Right).press("q", "W")
	d.wantCells("number", "2", "1")
	d.wantCells("verdict", "✗ wrong", "✓ faster")
}

// A variant is used from the list, and then the original again. A wrong one needs a second key press, and one
// that does not compile is refused.
func TestVariantIsUsedFromTheList(t *testing.T) {
	t.Parallel()
	d := tried(t, 120, 40)
	kernel := d.cells("kernel")[0]
	d.press("U").sees("use kernel: ")
	if got := d.app.lab.InPlace(kernel); got != "" {
		t.Errorf("a source that does not compile is used: %s", got)
	}
	d.press("G", "U")
	if got := d.app.lab.InPlace(kernel); got != d.cells("name")[2] {
		t.Errorf("after U on the last row, %q is used, want %q", got, d.cells("name")[2])
	}
	d.wantCells("use", "", "", "in use")
	d.press("k", "U").sees("press U again")
	d.wantCells("use", "", "", "in use")
	d.press("U")
	d.wantCells("use", "", "in use", "")
	d.press("U")
	d.wantCells("use", "", "", "")
	if got := d.app.lab.InPlace(kernel); got != "" {
		t.Errorf("after the second U, %q is used", got)
	}
}

// enter shows the diff. Its first line is the verdict in color, and U uses the shown variant.
func TestDiffOfAVariant(t *testing.T) {
	t.Parallel()
	d := tried(t, 80, 24).press("G", "enter")
	pane := &d.app.over.text
	if !strings.HasPrefix(pane.Lines[0], "✓ faster") || pane.Marks[0][0].Paint != widget.Good {
		t.Errorf("the first line is %q with %v", pane.Lines[0], pane.Marks[0])
	}
	added := slices.Index(pane.Lines, "+ // "+tuitest.Right)
	if added < 0 || pane.Marks[added][0].Paint != widget.Good {
		t.Fatalf("the diff is %q", pane.Lines)
	}
	d.press("U")
	if d.app.over != nil {
		t.Error("the diff is still shown")
	}
	d.wantCells("use", "", "", "in use")
	path := texts(t, d.app.opts.Cache)[0]
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	kernel := strings.TrimSuffix(filepath.Base(path), ".wgsl")
	d.update(lab.Changed{Kernel: kernel, Text: string(text)}) // the watcher is slower than the user
	d.settle()
	if d.app.over != nil {
		t.Error("the newest variant was tried again")
	}
}

// The source of a variant is written to a file and opened in the editor. A source that was not tried is not
// overwritten.
func TestVariantIsWrittenAndEdited(t *testing.T) {
	t.Chdir(t.TempDir())
	d := tried(t, 120, 40)
	kernel := d.cells("kernel")[0]
	d.press("G", "W", "enter").sees("wrote ")
	written, err := os.ReadFile(kernel + ".wgsl")
	if err != nil || !strings.HasSuffix(string(written), "// "+tuitest.Right+"\n") {
		t.Errorf("the file has %q: %v", written, err)
	}
	d.press("e")
	path := texts(t, d.app.opts.Cache)[0]
	if now, err := os.ReadFile(path); err != nil || string(now) != string(written) {
		t.Errorf("the edited file has %q: %v", now, err)
	}
	d.update(lab.Changed{Kernel: kernel, Text: string(written)}) // the watcher noticed the change
	d.settle()
	if d.app.over != nil {
		t.Error("the variant was tried again")
	}
	const own = "not tried"
	if err := os.WriteFile(path, []byte(own), 0o600); err != nil {
		t.Fatal(err)
	}
	d.press("e").sees("✗ edit variant 1")
	if now, err := os.ReadFile(path); err != nil || string(now) != own {
		t.Errorf("the source that was not tried is now %q: %v", now, err)
	}
}

// The result of a trial covers neither a text that the user reads nor an input. Its verdict is a result
// then.
func TestTrialCoversNothingThatIsRead(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"?", "/", ":"} {
		d := editing(t, 120, 40).press(key)
		over := d.app.over
		d.edits("// " + tuitest.Right)
		if d.app.over != over || len(d.app.results) == 0 {
			t.Fatalf("after %s, the screen shows %v and the results %v", key, d.app.over, d.app.results)
		}
		r := d.app.results[len(d.app.results)-1]
		if !strings.Contains(r.text, "✓ faster") || r.paint != widget.Good {
			t.Errorf("after %s, the result is %q in paint %d", key, r.text, r.paint)
		}
		d.press("esc", "W").wantCells("verdict", "✓ faster")
	}
}

func TestNoVariantsSaysWhatToDo(t *testing.T) {
	t.Parallel()
	for _, d := range []*driver{live(t, 120, 40), drive(t, 120, 40, llama, nil, Options{})} {
		d.press("2", "W").reads("bottom")
	}
}
