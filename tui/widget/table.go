package widget

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"gpuscope/trace/table"
)

// TablePane shows a table.Table in a scrolling window with a cursor. It stores open rows and the sorted
// column by key and name, so that these stay the same when another step is shown. The pane shows a Listing,
// which a background job computes. The previous listing stays visible until the new listing is ready.
type TablePane struct {
	Listing         // the current listing
	Wanted   Choice // the choice that the next listing will apply
	WantedOf int    // incremented on every change of Wanted
	Listings int    // number of listings shown so far
	Job      Task[paneKey, Listing]
	stale    bool   // a slow job is computing another listing
	touched  bool   // the user has chosen a row, which stays selected when the rows change
	opening  string // key of the row that the user is opening
	chosen   rowName
	Cursor   int             // index into Rows
	Top      int             // index into Rows of the first visible row
	Key      string          // key of the row under the cursor
	lastGood string          // the last valid filter
	searched string          // the last filter, which NextMatch uses if no filter is set
	Marked   map[string]bool // marked rows by key
	letters  map[int]string  // letter of each column while a sort chord waits for one
	// KinOf returns a second identity of a row besides the key, or nil. If the key of the selected row no
	// longer exists, for example after a change of the grouping, the row with the same second identity is
	// selected. Identities must be comparable.
	KinOf    func(t *table.Table, row int) any
	SortKeys []SortKey // columns that users sort by most
	GiveUp   []string  // columns that are dropped first on a narrow screen
	Keep     []string  // columns for wide screens that are dropped last, beginning with the last in this list
	Soft     string    // text column that may become narrower than the others: elasticSoft cells wide
	// Spare reports whether to hide a column, on a screen of the given width, to make room for other
	// columns.
	Spare func(name string, screen int) bool
	// Guest reports whether to show a column, on a screen of the given width, only if every other column
	// fits, too.
	Guest func(name string, screen int) bool
	// Stays reports whether to keep a column of GiveUp at the moment.
	Stays  func(name string) bool
	Margin func(i int) string // one-cell marker before a row that is not selected
	// Class returns the name of the class that a row of Table belongs to, and whether to dim the row. A rule
	// with the name separates rows of different classes. Class may be nil.
	Class func(row int) (name string, dim bool)
	// Form identifies how the user looks at the table, such as the grouping. Until it changes, columns keep
	// their places. It must be comparable.
	Form any
	// PlainColumns keeps every column and measures widths only on the visible rows, for tables with cells
	// that take long to compute or with rows that change constantly.
	PlainColumns bool

	Screen   int      // width of the whole screen in cells, which determines the available columns
	Columns  []placed // columns of the current layout
	places   columnPlaces
	laidOut  int
	lineRows []int          // for each line below the header, the index into Rows of its row; -1 for a rule
	rules    map[int]string // class that begins at a row, by index into Rows; computed by ruled
	rulesOf  int            // value of Listings for which rules was computed
	Page     int            // number of rows in the window when it was last drawn
	Line     int            // line of the header in the view
}

// rowName identifies the row that the user chose, so that later listings select the same row. It holds the
// key of the row and its second identity (see KinOf). If a closed parent hides this row, the cursor is on
// the parent until the parent is opened.
type rowName struct {
	key string
	kin any
}

// paneKey identifies a listing by its data and by the version of the user's choice.
type paneKey struct {
	of     any
	choice int
}

// Load starts a background job that computes and then shows a table. `of` identifies the data of the table
// and must be comparable. The listing stores `at`, which identifies what the screen shows. If only the user's
// choice has changed, the job reuses the existing table. While a model runs, an outdated table is not marked
// as stale.
func (p *TablePane) Load(j *Jobs, of, at any, running bool,
	make func(context.Context) (*table.Table, error),
) {
	key, wanted, plain, good := paneKey{of, p.WantedOf}, p.Wanted, p.PlainColumns, p.lastGood
	form := p.Form
	var t *table.Table
	if p.Table != nil && p.of == of {
		t = p.headed
	}
	defer func() { p.stale = p.Job.Cancel != nil && j.Late() && !running }()
	p.Job.Want(j, key, func(ctx context.Context) (Listing, error) {
		if t == nil {
			var err error
			if t, err = make(ctx); err != nil {
				return Listing{}, err
			}
		}
		l, err := Listed(ctx, t, wanted, good, plain)
		l.of, l.At, l.form = of, at, form
		return l, err
	}, p.place)
}

// Unload empties the pane.
func (p *TablePane) Unload(j *Jobs) {
	if p.Job.Clear(j); p.Table != nil {
		p.place(Listing{})
	}
}

// place shows a listing. The selected row, or the closed parent that hides it, stays selected and keeps its
// position on the screen. If the selected row no longer exists, the cursor keeps its position. If the user
// never chose a row, the cursor is at the top. If the filter or the rows are new, the cursor moves to the
// first match, unless the selected row itself matches.
func (p *TablePane) place(l Listing) {
	height, was := p.Cursor-p.Top, p.good
	p.Listing = l
	p.Listings++
	p.laidOut = 0
	if l.Err == nil {
		p.lastGood = l.Choice.Typed
	}
	i := p.find()
	if i >= 0 && p.touched {
		p.Cursor = i
		p.Top = i - height
	}
	if p.set(p.Cursor); i < 0 || !p.touched {
		p.choseCurrent()
	}
	if (p.good != was || i < 0) && p.First >= 0 && !p.Choice.Filter.Match(p.Table, p.Current()) {
		p.GoTo(p.First)
	}
	if p.opening != "" && l.Choice.Open[p.opening] {
		p.showOpened()
	}
}

// showOpened scrolls to show as many of the newly opened rows as fit below their parent.
func (p *TablePane) showOpened() {
	opened := p.opening
	if p.opening = ""; opened != p.Key || p.Page == 0 || p.Cursor >= len(p.Rows) {
		return
	}
	depth := func(i int) int { return p.Table.Rows[p.Rows[i]].Depth }
	last := p.Cursor
	for last+1 < len(p.Rows) && depth(last+1) > depth(p.Cursor) {
		last++
	}
	p.Top = min(p.Cursor, max(p.Top, last-p.Page+1))
}

// find returns the index of the selected row in Rows, or -1.
func (p *TablePane) find() int {
	t := p.Table
	if t == nil || len(p.Rows) == 0 {
		return -1
	}
	was := p.chosen
	kin := func(r int) bool { return was.kin != nil && p.KinOf(t, r) == was.kin }
	deepest := -1
	for i, r := range p.Rows {
		if t.Rows[r].Key == was.key {
			return i
		}
		if (deepest < 0 || t.Rows[r].Depth >= t.Rows[p.Rows[deepest]].Depth) && kin(r) {
			deepest = i
		}
	}
	if deepest >= 0 {
		return deepest
	}
	row := slices.IndexFunc(t.Rows, func(r table.Row) bool { return r.Key == was.key })
	for r := 0; row < 0 && r < len(t.Rows); r++ {
		if kin(r) {
			row = r
		}
	}
	for ; row >= 0; row = t.Rows[row].Parent { // a closed parent hides the row
		if i := slices.Index(p.Rows, row); i >= 0 {
			return i
		}
	}
	return -1
}

// Choose makes c the user's choice of rows, order and filter for the next listing.
func (p *TablePane) Choose(c Choice) {
	p.Wanted = c
	p.WantedOf++
}

// GoTo moves the cursor to a row of the listing, or to the nearest existing row.
func (p *TablePane) GoTo(row int) {
	p.touched = true
	p.set(row)
	p.choseCurrent()
}

func (p *TablePane) set(row int) {
	p.Cursor = Clamp(row, 0, max(0, len(p.Rows)-1))
	if r := p.Current(); r >= 0 {
		p.Key = p.Table.Rows[r].Key
	}
	p.reveal()
}

// choseCurrent stores the row under the cursor as the row that the user chose.
func (p *TablePane) choseCurrent() {
	r := p.Current()
	if r < 0 {
		return
	}
	if p.chosen = (rowName{key: p.Key}); p.KinOf != nil {
		p.chosen.kin = p.KinOf(p.Table, r)
	}
}

// TurnTo selects the row with the given key, in this listing or in the next listing that has such a row.
func (p *TablePane) TurnTo(key string) {
	p.Key, p.chosen, p.touched = key, rowName{key: key}, true
	if p.Table == nil {
		return
	}
	if i := slices.IndexFunc(p.Rows, func(r int) bool { return p.Table.Rows[r].Key == key }); i >= 0 {
		p.GoTo(i)
	}
}

// Seek selects the row with the identity `kin` (see KinOf), in this listing or in the next listing that has
// such a row.
func (p *TablePane) Seek(kin any) {
	if p.KinOf == nil {
		return
	}
	p.Key, p.chosen, p.touched = "", rowName{kin: kin}, true
	if i := p.find(); i >= 0 {
		p.set(i)
	}
}

// Chosen returns the second identity (see KinOf) of the row that the user chose, or nil if the user chose
// none.
func (p *TablePane) Chosen() any {
	if !p.touched {
		return nil
	}
	return p.chosen.kin
}

// Mark toggles the mark of the selected row.
func (p *TablePane) Mark() {
	if p.Current() < 0 {
		return
	}
	if p.Marked == nil {
		p.Marked = map[string]bool{}
	}
	if p.Marked[p.Key] {
		delete(p.Marked, p.Key)
	} else {
		p.Marked[p.Key] = true
	}
}

// NextMatch moves the cursor to the next row that matches the filter or, if no filter is set, the last
// filter. It skips rows that only contain a matching row. If NextMatch finds no row, it returns the reason,
// with command names in braces in place of keys.
func (p *TablePane) NextMatch(by int) string {
	typed := cmp.Or(p.Wanted.Typed, p.searched)
	if typed == "" {
		return "no filter is set; press {filter} to set one"
	}
	f := p.Choice.Filter
	if typed != p.good {
		var err error
		if f, err = p.Table.ParseFilter(context.Background(), typed); err != nil {
			return err.Error()
		}
	}
	for i, n := p.Cursor+by, 0; i >= 0 && i < len(p.Rows); i, n = i+by, n+1 {
		if n == measuredRows {
			return fmt.Sprintf("filter %s: no match in the next %s rows", typed, Count(n))
		}
		if f.Match(p.Table, p.Rows[i]) {
			p.GoTo(i)
			return ""
		}
	}
	return "filter " + typed + ": no more matches in this direction"
}

// reveal scrolls by the smallest amount that makes the cursor visible.
func (p *TablePane) reveal() {
	if p.Page > 0 {
		p.Top = Clamp(p.Top, p.Cursor-p.Page+1, p.Cursor)
		p.Top = Clamp(p.Top, 0, max(0, len(p.Rows)-p.Page))
	}
}

// Stands returns a text with the position of the cursor, the number of visible rows and the number of all
// rows.
func (p *TablePane) Stands() string {
	if p.Table == nil || len(p.Rows) == 0 {
		return ""
	}
	said := fmt.Sprintf("%s/%s rows", Count(p.Cursor+1), Count(len(p.Rows)))
	if p.all > len(p.Rows) {
		said += " of " + Count(p.all)
	}
	return said
}

// Current returns the index into Table.Rows of the selected row, or -1 if there is none.
func (p *TablePane) Current() int {
	if p.Cursor >= len(p.Rows) {
		return -1
	}
	return p.Rows[p.Cursor]
}

func (p *TablePane) Move(m Motion) {
	switch m {
	case Up:
		p.GoTo(p.Cursor - 1)
	case Down:
		p.GoTo(p.Cursor + 1)
	case PageUp:
		p.GoTo(p.Cursor - max(1, p.Page-1))
	case PageDown:
		p.GoTo(p.Cursor + max(1, p.Page-1))
	case HalfUp:
		p.GoTo(p.Cursor - max(1, p.Page/2))
	case HalfDown:
		p.GoTo(p.Cursor + max(1, p.Page/2))
	case Top:
		p.GoTo(0)
	case Bottom:
		p.GoTo(len(p.Rows) - 1)
	case Left:
		p.fold(false)
	case Right:
		p.fold(true)
	}
}

// Toggle opens or closes the selected row. It reports whether the row has children.
func (p *TablePane) Toggle() bool {
	r := p.Current()
	if r < 0 || !p.Table.Rows[r].Children {
		return false
	}
	p.setOpen(r, !p.IsOpen(r))
	return true
}

// fold opens or closes the selected row. If the row to close is not open, fold moves the cursor to the row's
// parent.
func (p *TablePane) fold(open bool) {
	r := p.Current()
	if r < 0 {
		return
	}
	row := p.Table.Rows[r]
	switch {
	case row.Children && p.IsOpen(r) != open:
		p.setOpen(r, open)
	case !open && row.Parent >= 0:
		if i := slices.Index(p.Rows, row.Parent); i >= 0 {
			p.GoTo(i)
		}
	}
}

func (p *TablePane) setOpen(r int, open bool) {
	key := p.Table.Rows[r].Key
	if p.opening = ""; open {
		p.opening = key
	}
	p.Choose(p.Wanted.with(key, open))
}

// SetFilter shows only the rows that match the filter expression.
func (p *TablePane) SetFilter(s string) {
	c := p.Wanted
	if c.Typed == s {
		return
	}
	if c.Typed = s; s != "" {
		p.searched = s
	}
	p.Choose(c)
}

// SortBy sorts by a column. A second call with the same column reverses the order.
func (p *TablePane) SortBy(name string) {
	if name != "" && name == p.Wanted.Sort {
		p.Reverse()
		return
	}
	c := p.Wanted
	c.Sort, c.Reverse = name, p.Table != nil && p.Table.LargestFirst(name)
	p.Choose(c)
}

func (p *TablePane) Reverse() {
	c := p.Wanted
	c.Reverse = !c.Reverse
	p.Choose(c)
}

// roomyTitle is the minimum width, in cells, of a title that has room for everything. In a narrower title,
// the note about sums and the sort order have a lower priority.
const roomyTitle = 76

// Own returns the parts of a title that describe the user's choices: an error in the filter, the result of
// the filter, the marks and the sort order.
func (p *TablePane) Own(w int) []table.Segment {
	if p.Table == nil {
		return nil
	}
	said := []table.Segment{{Rank: 0, Text: CutMiddle(p.Found, w/2)}}
	if p.Err != nil {
		said[0].Rank = 2 // the filter's result has less priority than the error
		said = append([]table.Segment{{Rank: 0, Text: MarkFail + " filter: see the error below"}}, said...)
	}
	if p.partial {
		sums := table.Segment{Text: "n/m: sums cover all m rows", Short: "sums: all rows"}
		if w < roomyTitle {
			sums.Rank = 1
		}
		said = append(said, sums)
	}
	if n := len(p.Marked); n > 0 {
		said = append(said, table.Say(1, "%d marked", n))
	}
	order := table.Segment{Rank: 6, Text: "order " + p.order()}
	switch by := p.Choice.Sort; {
	case p.drawn(by):
		order.Rank = 3 // the header also shows the order
	case by != "" || p.Choice.Reverse:
		if order.Rank = 0; w < roomyTitle { // a narrow title may have no room for the order
			order.Rank = 1
		}
	}
	return append(said, order)
}

// drawn reports whether the column with this name was visible in the last frame.
func (p *TablePane) drawn(name string) bool {
	col := p.Table.Column(name)
	return slices.ContainsFunc(p.Columns, func(c placed) bool { return c.Col == col })
}

// Alike returns the part of a title that names the values that are the same in all rows.
func (p *TablePane) Alike(w int) []table.Segment {
	s := p.same(w)
	if s == "" {
		return nil
	}
	return []table.Segment{{Rank: 8, Text: "all rows " + s}}
}

// same formats the columns that have the same value in all rows: "wg 64".
func (p *TablePane) same(w int) string {
	var said []string
	for _, c := range p.uniform {
		if col := p.Table.Columns[c]; col.Width <= max(w, MainWidth) && !p.drawn(col.Name) {
			said = append(said, Joined(" ", col.Title, p.Table.Cell(p.Rows[0], c).Text))
		}
	}
	return strings.Join(said, ", ")
}

// RowText returns the selected row with all columns of the table, separated by tabs.
func (p *TablePane) RowText() string {
	r := p.Current()
	if r < 0 {
		return ""
	}
	cells := make([]string, len(p.Table.Columns))
	for c := range cells {
		cells[c] = p.Table.Cell(r, c).Text
	}
	return strings.Join(cells, "\t")
}

// MainWidth is the width of the screen, in cells, for which the views are designed.
const MainWidth = 80

// SideWidth is the minimum width, in cells, of a screen that shows the detail pane to the right of the
// list. On a narrower screen, the detail pane is below the list.
const SideWidth = 110
