package tui

import (
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"gpuscope/tui/tuitest"
	"gpuscope/tui/view"
	"gpuscope/tui/view/curves"
	"gpuscope/tui/view/graph"
	"gpuscope/tui/view/step"
	"gpuscope/tui/widget"
)

// find returns the cell at which a text is on the screen, counted from the top left.
func (d *driver) find(text string) (x, y int) {
	d.t.Helper()
	for y, l := range strings.Split(d.screen(), "\n") {
		if before, _, ok := strings.Cut(l, text); ok {
			return widget.Width(before), y
		}
	}
	d.t.Fatalf("no %q in\n%s", text, d.screen())
	return 0, 0
}

// click clicks on a text the given number of times.
func (d *driver) click(text string, times int) *driver {
	d.t.Helper()
	x, y := d.find(text)
	for range times {
		d.at(x, y, tea.MouseButtonLeft)
	}
	return d
}

// The wheel scrolls the pane under the pointer, even if another pane has the focus, and does not move the
// focus.
func TestTheWheelScrollsThePaneUnderThePointer(t *testing.T) {
	t.Parallel()
	for _, size := range some(sizes) {
		d := drive(t, size[0], size[1], llama, nil, Options{}).press("2", "G", "tab")
		m := d.app.rects()
		list, detail := m[regionList], m[regionDetail]
		cursor, first := d.app.table().Cursor, d.app.detail.First
		d.at(list.X+1, list.Y+1, tea.MouseButtonWheelUp)
		if d.app.table().Cursor != cursor-view.WheelLines || d.app.detail.First != first {
			t.Errorf("%v: over the list the wheel moved its cursor to %d and the detail to %d", size,
				d.app.table().Cursor, d.app.detail.First)
		}
		d.app.detail.Load(make([]string, 200), nil)
		d.press("tab")
		cursor = d.app.table().Cursor
		d.at(detail.X+1, detail.Y, tea.MouseButtonWheelDown)
		if d.app.table().Cursor != cursor || d.app.detail.First != view.WheelLines || d.app.inDetail {
			t.Errorf("%v: over the detail the wheel moved the list to %d and the detail to %d", size,
				d.app.table().Cursor, d.app.detail.First)
		}
		d.at(1, 1, tea.MouseButtonWheelDown)
		if d.app.table().Cursor != cursor {
			t.Errorf("%v: over the tabs the wheel moved the list", size)
		}
		d.press("?").at(1, 6, tea.MouseButtonWheelDown)
		if d.app.over.text.First != view.WheelLines || d.app.table().Cursor != cursor {
			t.Errorf("%v: the wheel did not scroll the text over the view", size)
		}
	}
}

// One click selects a row. A second click on the same cell opens the row if it comes soon.
func TestADoubleClickOpens(t *testing.T) {
	clock := widget.Now
	at := clock()
	widget.Now = func() time.Time { return at }
	defer func() { widget.Now = clock }()
	d := drive(t, 80, 24, llama, nil, Options{}).press("2").sees("▾ layers")
	x, y := d.find("▾ layers")
	d.at(x, y, tea.MouseButtonLeft).sees("▾ layers")
	if !strings.Contains(d.row(), "layers") {
		t.Fatalf("a click selected %q", d.row())
	}
	at = at.Add(doubleClick + time.Millisecond)
	d.at(x, y, tea.MouseButtonLeft).sees("▾ layers") // too late
	d.at(x, y, tea.MouseButtonLeft).sees("▸ layers")
	d.at(x, y, tea.MouseButtonLeft).sees("▸ layers") // a third click starts a new double click
	d.at(x, y, tea.MouseButtonLeft).sees("▾ layers")
}

// A click on a chart moves its cursor. A click on the heading of a table sorts that table.
func TestAClickOnAChartSortsNoTable(t *testing.T) {
	t.Parallel()
	for _, size := range some(sizes) {
		d := drive(t, size[0], size[1], llama, nil, Options{}).press("5")
		page := d.app.view().(*curves.Page)
		list := d.app.rects()[regionList]
		if page.Rows.Line == 0 {
			continue // no room for the chart
		}
		c, r := page.Current()
		drawn := page.Part(c, r)
		d.at(list.X+widget.Axis+1, list.Y+2, tea.MouseButtonLeft)
		if at := page.Cursor(c); at != drawn.From || page.Rows.Wanted.Sort != "" {
			t.Errorf("%v: a click on the first column put the cursor at %d, sorted by %q", size, at,
				page.Rows.Wanted.Sort)
		}
		d.at(list.X+widget.Axis+page.W, list.Y+2, tea.MouseButtonLeft)
		if at := page.Cursor(c); at != drawn.To {
			t.Errorf("%v: a click on the last column put the cursor at %d, want %d", size, at, drawn.To)
		}
		row := page.Rows.Cursor
		x := 1
		for _, col := range page.Rows.Columns[:1] {
			x += col.Width + 1
		}
		d.at(list.X+x, list.Y+page.Rows.Line, tea.MouseButtonLeft)
		if want := page.Rows.Table.Columns[page.Rows.Columns[1].Col].Name; page.Rows.Wanted.Sort != want {
			t.Errorf("%v: a click on the header sorts by %q, want %q", size, page.Rows.Wanted.Sort, want)
		}
		d.press("g").at(list.X+3, list.Y+page.Rows.Line+3, tea.MouseButtonLeft)
		if page.Rows.Cursor != 2 {
			t.Errorf("%v: a click on the third row selected %d (was %d)", size, page.Rows.Cursor, row)
		}
	}
}

// In Step, a click on a column of the strip or on a row of the table shows that step.
func TestAClickOnTheStripShowsTheStep(t *testing.T) {
	t.Parallel()
	d := drive(t, 120, 40, llama, nil, Options{}).press("1")
	list, page := d.app.rects()[regionList], d.app.view().(*step.Page)
	d.at(widget.Axis+1, list.Y+page.Top+1, tea.MouseButtonLeft)
	if d.app.shown != 0 {
		t.Errorf("a click on the first column shows step %d", d.app.shown)
	}
	d.at(widget.Axis+2, list.Y+page.Top, tea.MouseButtonLeft)
	if d.app.shown != 1 {
		t.Errorf("a click on the second column shows step %d", d.app.shown)
	}
	d.at(3, list.Y+page.Steps.Rows.Line+1, tea.MouseButtonLeft)
	if d.app.shown != 0 {
		t.Errorf("a click on the first row shows step %d", d.app.shown)
	}
	d.at(widget.Axis+50, list.Y+page.Top+page.High+1, tea.MouseButtonLeft)
	d.at(1, list.Y+page.Top+1, tea.MouseButtonLeft)
	if d.app.shown != 0 {
		t.Errorf("a click beside the strip shows step %d", d.app.shown)
	}
}

func TestTheMouseChoosesInDialogs(t *testing.T) {
	t.Parallel()
	d := drive(t, 80, 24, llama, nil, Options{}).press("2", ":").typed("zoom")
	cursor := d.app.table().Cursor
	d.click("Shows only this pane", 1)
	if d.app.dialog == nil || d.app.table().Cursor != cursor {
		t.Fatal("one click ran the command or moved the list below the dialog")
	}
	d.at(0, 0, tea.MouseButtonLeft).click("Shows only this pane", 2).reads("title")

	d = live(t, 80, 24).press("2", "T").sees("dispatch")
	c := d.app.dialog.(*widget.Chooser)
	was := c.Cursor
	x, y := d.find(strings.Fields(c.Rows()[0])[0] + " ")
	d.at(x, y, tea.MouseButtonWheelUp)
	if c.Cursor != max(0, was-1) {
		t.Errorf("the wheel moved the cursor from %d to %d", was, c.Cursor)
	}
	d.at(x, y, tea.MouseButtonLeft)
	if c.Cursor != 0 {
		t.Errorf("a click on the first row selected %d", c.Cursor)
	}
}

// A click selects an operator, a value or a neighbour. A double click opens it.
func TestTheMouseInTheGraph(t *testing.T) {
	t.Parallel()
	d := live(t, 120, 40).press("4", "j", "j", "j", "j", "j", "j", "j", "j", "j", "j", "j", "p")
	page := d.app.view().(*graph.NearPage)
	list := d.app.rects()[regionList]
	spot := page.Task.Value.Spots[-1][0]
	d.at(2, list.Y+1+spot.Line, tea.MouseButtonLeft)
	if page.Column != -1 || page.Line != spot.Line {
		t.Errorf("a click selected column %d line %d", page.Column, page.Line)
	}
	op := page.Op
	d.at(2, list.Y+1+spot.Line, tea.MouseButtonLeft)
	if spot.Op == nil || page.Op != spot.Op.ID || page.Op == op {
		t.Errorf("a double click put operator %d in the middle", page.Op)
	}

	d = opened(t, 80, 24, &tuitest.Script{}, "lm_head").press("enter", "G")
	x, y := d.find("out f32")
	d.at(x, y, tea.MouseButtonLeft).misses("Graph › Value")
	d.at(x, y, tea.MouseButtonLeft).sees("Graph › Value")
	value := d.app.view().(*graph.ValuePage)
	d.at(20, 12, tea.MouseButtonWheelDown)
	if value.Row == 0 {
		t.Error("the wheel does not scroll a value")
	}
}

func TestTheHelpSaysHowToSelectText(t *testing.T) {
	t.Parallel()
	d := drive(t, 80, 24, llama, nil, Options{}).press("2", "?").press("G")
	for range 20 {
		d.press("k")
	}
	if !strings.Contains(strings.ToLower(strings.Join(d.app.over.text.Lines, "\n")), "hold shift to select") {
		t.Error("the help does not say how text is selected while the mouse is on")
	}
}

// A key shows the timings of the screen itself over a view and hides them again.
func TestTheTimingsOfTheScreen(t *testing.T) {
	clock := widget.Now
	at := clock()
	widget.Now = func() time.Time { at = at.Add(time.Millisecond); return at }
	defer func() { widget.Now = clock }()
	for _, size := range some(sizes) {
		d := drive(t, size[0], size[1], llama, nil, Options{}).press("2").misses("messages/s")
		for range 200 {
			d.press("j")
		}
		d.press(`ctrl+\`).sees("messages/s", "frame ", "view ", "update ", "last 100 messages", `ctrl+\ hides this`)
		d.press(`ctrl+\`).misses("messages/s")
	}
}

// A click while the user types a line does not change the view or the row that the line is about.
func TestAClickLeavesWhatIsTyped(t *testing.T) {
	t.Chdir(t.TempDir())
	d := drive(t, 80, 24, llama, nil, Options{}).press("2", "E").at(2, 1, tea.MouseButtonLeft)
	d.settle()
	d.sees("[2 Dispatches]").reads("bottom").typed("mine.csv").press("enter").reads("notice")
	d.press("4", "/").typed("norm").at(10, 7, tea.MouseButtonLeft)
	d.settle()
	d.sees("[4 Graph]").reads("bottom")
}

// A program that was suspended enables the mouse again only if it was on.
func TestASuspendedProgramComesBackWithItsMouse(t *testing.T) {
	t.Parallel()
	d := drive(t, 80, 24, llama, nil, Options{})
	_, resumed := d.app.Update(resumedMsg{})
	if want := tea.EnableMouseCellMotion(); resumed == nil || resumed() != want {
		t.Errorf("the mouse is on, but resuming does not enable it in the terminal")
	}
	d.press("M")
	if _, resumed = d.app.Update(resumedMsg{}); resumed != nil {
		t.Errorf("the mouse is off, but resuming returns %T", resumed())
	}
}
