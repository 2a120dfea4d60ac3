package widget

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"gpuscope/trace/table"
)

// TablePane shows a table.Table: a window of rows with a cursor, and nothing but the rows in the window is
// drawn. The table says what its columns are and which screen they are for; what is unfolded, sorted and
// filtered is kept here by name and key, so that it survives a change of step. What is shown is a listing,
// which a job makes; until it is there the one before stays.
type TablePane struct {
	Listing         // what is shown
	Wanted   Choice // what the next listing is to show
	WantedOf int    // rises with every change of wanted
	Listings int    // that were shown
	Job      Task[paneKey, Listing]
	stale    bool   // something else is wanted, and takes its time
	touched  bool   // somebody chose a row: it stays selected, whatever becomes of the rows
	opening  string // key of the row that a person opened and that is not open yet
	chosen   rowName
	Cursor   int             // index into rows
	Top      int             // first row in the window
	Key      string          // of the row under the cursor
	lastGood string          // the last filter that meant something
	searched string          // the last filter that there was, for those who clear it and go on
	Marked   map[string]bool // rows by key
	letters  map[int]string  // of columns, while one is to be chosen
	// KinOf says what a row is besides its key, nil for nothing: where the key is gone, as when rows fold in
	// another way, the row that is the same is selected. It is a comparable value.
	KinOf    func(t *table.Table, row int) any
	SortKeys []SortKey // columns that people sort by most
	GiveUp   []string  // columns that go first where the screen is narrow
	Keep     []string  // of those that only wide screens have: they go last, the last named first
	Soft     string    // the column of text that gives way before columns of the screen beside a detail go
	// Spare says of a column that on a screen of so many cells others say more.
	Spare func(name string, screen int) bool
	// Guest says of a column that on a screen of so many cells it is there where none has to give way for it.
	Guest func(name string, screen int) bool
	// Stays says of a column of giveUp that it does not go first now.
	Stays  func(name string) bool
	Margin func(i int) string // what stands before a row that is not selected: one cell
	// every column stays a column, and widths are taken from the rows in sight: cells are costly, or rows
	// come all the time
	PlainColumns bool

	Screen  int      // cells of the whole screen: it says which columns there are
	Columns []placed // as laid out for width
	laidOut int
	Page    int // rows in the window, as last drawn
	Line    int // of the view, that the header stands on
}

// rowName is what the row that a person chose is found again by, in whatever rows come: its key, and what it
// is beyond that, as kinOf says. Where the cursor stands on a row that it stands in, it is still the one.
type rowName struct {
	key string
	kin any
}

// paneKey is what a listing is of: what the view says, and the choice.
type paneKey struct {
	of     any
	choice int
}

// Load shows the table that make gives for of, a comparable value, once a job has made it; at goes with it.
// What was made for the same is not made again when only the choice is another. While a model runs a table
// that takes its time is not called stale.
func (p *TablePane) Load(j *Jobs, of, at any, running bool,
	make func(context.Context) (*table.Table, error),
) {
	key, wanted, plain, good := paneKey{of, p.WantedOf}, p.Wanted, p.PlainColumns, p.lastGood
	var t *table.Table
	if p.Table != nil && p.of == of {
		t = p.Table
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
		l.of, l.At = of, at
		return l, err
	}, p.place)
}

// Unload shows nothing.
func (p *TablePane) Unload(j *Jobs) {
	if p.Job.Clear(j); p.Table != nil {
		p.place(Listing{})
	}
}

// place shows a listing. The selected row stays selected, and stays where it is on the screen: by its key, or
// as the row that is the same by another name, or as the closed row that it stands in. Where it is gone the
// cursor stays at its height. Who never chose a row stays at the top. A filter that is new, or comes to other
// rows, and does not find the selected row itself selects the first that it finds, not what that stands in:
// keys answer for it.
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

// showOpened scrolls so that as many of the rows that were opened are seen as fit below their own.
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

// find is where the selected row stands in the rows, -1 for nowhere.
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
	for ; row >= 0; row = t.Rows[row].Parent { // it is hidden in one of these
		if i := slices.Index(p.Rows, row); i >= 0 {
			return i
		}
	}
	return -1
}

// Choose wants another choice of rows.
func (p *TablePane) Choose(c Choice) {
	p.Wanted = c
	p.WantedOf++
}

// GoTo puts the cursor on a row of the window's list, or the nearest there is.
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

// choseCurrent makes the row under the cursor the one that is found again.
func (p *TablePane) choseCurrent() {
	r := p.Current()
	if r < 0 {
		return
	}
	if p.chosen = (rowName{key: p.Key}); p.KinOf != nil {
		p.chosen.kin = p.KinOf(p.Table, r)
	}
}

// TurnTo selects the row of a key, in the rows there are or those to come.
func (p *TablePane) TurnTo(key string) {
	p.Key, p.chosen, p.touched = key, rowName{key: key}, true
	if p.Table == nil {
		return
	}
	if i := slices.IndexFunc(p.Rows, func(r int) bool { return p.Table.Rows[r].Key == key }); i >= 0 {
		p.GoTo(i)
	}
}

// Seek selects the row that is of a kin, in the rows to come.
func (p *TablePane) Seek(kin any) {
	if p.KinOf != nil {
		p.Key, p.chosen, p.touched = "", rowName{kin: kin}, true
	}
}

// Mark marks the selected row, or takes its mark away.
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

// NextMatch goes to the next row that the filter finds, the last filter where there is none now, and says why
// it does not, with the names of actions in braces for their keys. Rows that are there for what stands in
// them alone are passed over.
func (p *TablePane) NextMatch(by int) string {
	typed := cmp.Or(p.Wanted.Typed, p.searched)
	if typed == "" {
		return "no filter; {filter} sets one"
	}
	f, err := p.Table.ParseFilter(typed)
	if err != nil {
		return err.Error()
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

// reveal scrolls as little as shows the cursor.
func (p *TablePane) reveal() {
	if p.Page > 0 {
		p.Top = Clamp(p.Top, p.Cursor-p.Page+1, p.Cursor)
		p.Top = Clamp(p.Top, 0, max(0, len(p.Rows)-p.Page))
	}
}

// Stands says which of the rows the cursor is on, and of how many they are a part.
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

// Current is the index into table.Rows of the selected row, -1 where there is none.
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

// Toggle opens the selected row, or closes it. It says whether there was anything to open.
func (p *TablePane) Toggle() bool {
	r := p.Current()
	if r < 0 || !p.Table.Rows[r].Children {
		return false
	}
	p.setOpen(r, !p.IsOpen(r))
	return true
}

// fold opens or closes the selected row; closing a row that has nothing open goes to the row it stands in.
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

// SetFilter shows only the rows that match.
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

// SortBy orders by a column; the same column again turns the order round.
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

// roomyTitle is the width of a title from which on it has room for what sums are of, and in which order,
// beside the rest that must be there: what differs from the base comes before both.
const roomyTitle = 76

// Own are the parts of a title that say what a person chose to see: an error in the filter, what it leaves,
// the order. That rows stand as in the graph goes without saying. What a filter says leaves half of the line
// to others.
func (p *TablePane) Own(w int) []table.Segment {
	if p.Table == nil {
		return nil
	}
	said := []table.Segment{{Rank: 0, Text: CutMiddle(p.Found, w/2)}}
	if p.Err != nil {
		said[0].Rank = 2 // what is shown stays, and is less than what is wrong
		said = append([]table.Segment{{Rank: 0, Text: MarkFail + " filter: error below"}}, said...)
	}
	if p.partial {
		sums := table.Segment{Text: "n/m: sums of all rows", Short: "sums: all rows"}
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
		order.Rank = 3 // the header says it too
	case by != "" || p.Choice.Reverse:
		if order.Rank = 0; w < roomyTitle { // else nothing does, but for the rest there must be room
			order.Rank = 1
		}
	}
	return append(said, order)
}

// drawn says whether there was room for a column when rows were drawn last, maybe those of another table.
func (p *TablePane) drawn(name string) bool {
	col := p.Table.Column(name)
	return slices.ContainsFunc(p.Columns, func(c placed) bool { return c.Col == col })
}

// Alike is what all rows say.
func (p *TablePane) Alike(w int) []table.Segment {
	s := p.same(w)
	if s == "" {
		return nil
	}
	return []table.Segment{{Rank: 8, Text: "all rows " + s}}
}

// same says what the columns that stand in the title say: "wg 64".
func (p *TablePane) same(w int) string {
	var said []string
	for _, c := range p.uniform {
		if col := p.Table.Columns[c]; col.Width <= max(w, MainWidth) {
			said = append(said, Joined(" ", col.Title, p.Table.Cell(p.Rows[0], c).Text))
		}
	}
	return strings.Join(said, ", ")
}

// RowText is the selected row with all columns that the table has, by tabs.
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

// MainWidth is that of the screen which the views are drawn for.
const MainWidth = 80

// From sideWidth columns on the detail stands on the right, where it has room for its lines: the list gives
// up columns for it, and keeps those that name its rows.
const SideWidth = 110
