package tui

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"gpuscope/trace/table"
)

// tablePane shows a table.Table: a window of rows with a cursor, and nothing but the rows in the window is
// drawn. The table says what its columns are and which screen they are for; what is unfolded, sorted and
// filtered is kept here by name and key, so that it survives a change of step. What is shown is a listing,
// which a job makes; until it is there the one before stays.
type tablePane struct {
	listing         // what is shown
	wanted   choice // what the next listing is to show
	wantedOf int    // rises with every change of wanted
	listings int    // that were shown
	job      task[paneKey, listing]
	stale    bool   // something else is wanted, and takes its time
	touched  bool   // somebody chose a row: it stays selected, whatever becomes of the rows
	opening  string // key of the row that a person opened and that is not open yet
	chosen   rowName
	cursor   int             // index into rows
	top      int             // first row in the window
	key      string          // of the row under the cursor
	lastGood string          // the last filter that meant something
	searched string          // the last filter that there was, for those who clear it and go on
	marked   map[string]bool // rows by key
	letters  map[int]string  // of columns, while one is to be chosen
	// kinOf says what a row is besides its key, nil for nothing: where the key is gone, as when rows fold in
	// another way, the row that is the same is selected. It is a comparable value.
	kinOf    func(t *table.Table, row int) any
	sortKeys []sortKey // columns that people sort by most
	giveUp   []string  // columns that go first where the screen is narrow
	keep     []string  // of those that only wide screens have: they go last, the last named first
	soft     string    // the column of text that gives way before columns of the screen beside a detail go
	// spare says of a column that on a screen of so many cells others say more.
	spare func(name string, screen int) bool
	// guest says of a column that on a screen of so many cells it is there where none has to give way for it.
	guest func(name string, screen int) bool
	// stays says of a column of giveUp that it does not go first now.
	stays  func(name string) bool
	margin func(i int) string // what stands before a row that is not selected: one cell
	// every column stays a column, and widths are taken from the rows in sight: cells are costly, or rows
	// come all the time
	plainColumns bool

	screen  int      // cells of the whole screen: it says which columns there are
	columns []placed // as laid out for width
	laidOut int
	page    int // rows in the window, as last drawn
	line    int // of the view, that the header stands on
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

// load shows the table that make gives for of, a comparable value, once a job has made it; at goes with it.
// What was made for the same is not made again when only the choice is another. While a model runs a table
// that takes its time is not called stale.
func (p *tablePane) load(j *jobs, of, at any, running bool,
	make func(context.Context) (*table.Table, error),
) {
	key, wanted, plain, good := paneKey{of, p.wantedOf}, p.wanted, p.plainColumns, p.lastGood
	var t *table.Table
	if p.table != nil && p.of == of {
		t = p.table
	}
	defer func() { p.stale = p.job.cancel != nil && j.late() && !running }()
	p.job.want(j, key, func(ctx context.Context) (listing, error) {
		if t == nil {
			var err error
			if t, err = make(ctx); err != nil {
				return listing{}, err
			}
		}
		l, err := list(ctx, t, wanted, good, plain)
		l.of, l.at = of, at
		return l, err
	}, p.place)
}

// unload shows nothing.
func (p *tablePane) unload(j *jobs) {
	if p.job.clear(j); p.table != nil {
		p.place(listing{})
	}
}

// place shows a listing. The selected row stays selected, and stays where it is on the screen: by its key, or
// as the row that is the same by another name, or as the closed row that it stands in. Where it is gone the
// cursor stays at its height. Who never chose a row stays at the top. A filter that is new, or comes to other
// rows, and does not find the selected row itself selects the first that it finds, not what that stands in:
// keys answer for it.
func (p *tablePane) place(l listing) {
	height, was := p.cursor-p.top, p.good
	p.listing = l
	p.listings++
	p.laidOut = 0
	if l.err == nil {
		p.lastGood = l.choice.filter
	}
	i := p.find()
	if i >= 0 && p.touched {
		p.cursor = i
		p.top = i - height
	}
	if p.set(p.cursor); i < 0 || !p.touched {
		p.choseCurrent()
	}
	if (p.good != was || i < 0) && p.first >= 0 && !p.choice.Filter.Match(p.table, p.current()) {
		p.goTo(p.first)
	}
	if p.opening != "" && l.choice.Open[p.opening] {
		p.showOpened()
	}
}

// showOpened scrolls so that as many of the rows that were opened are seen as fit below their own.
func (p *tablePane) showOpened() {
	opened := p.opening
	if p.opening = ""; opened != p.key || p.page == 0 || p.cursor >= len(p.rows) {
		return
	}
	depth := func(i int) int { return p.table.Rows[p.rows[i]].Depth }
	last := p.cursor
	for last+1 < len(p.rows) && depth(last+1) > depth(p.cursor) {
		last++
	}
	p.top = min(p.cursor, max(p.top, last-p.page+1))
}

// find is where the selected row stands in the rows, -1 for nowhere.
func (p *tablePane) find() int {
	t := p.table
	if t == nil || len(p.rows) == 0 {
		return -1
	}
	was := p.chosen
	kin := func(r int) bool { return was.kin != nil && p.kinOf(t, r) == was.kin }
	deepest := -1
	for i, r := range p.rows {
		if t.Rows[r].Key == was.key {
			return i
		}
		if (deepest < 0 || t.Rows[r].Depth >= t.Rows[p.rows[deepest]].Depth) && kin(r) {
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
		if i := slices.Index(p.rows, row); i >= 0 {
			return i
		}
	}
	return -1
}

// choose wants another choice of rows.
func (p *tablePane) choose(c choice) {
	p.wanted = c
	p.wantedOf++
}

// goTo puts the cursor on a row of the window's list, or the nearest there is.
func (p *tablePane) goTo(row int) {
	p.touched = true
	p.set(row)
	p.choseCurrent()
}

func (p *tablePane) set(row int) {
	p.cursor = clamp(row, 0, max(0, len(p.rows)-1))
	if r := p.current(); r >= 0 {
		p.key = p.table.Rows[r].Key
	}
	p.reveal()
}

// choseCurrent makes the row under the cursor the one that is found again.
func (p *tablePane) choseCurrent() {
	r := p.current()
	if r < 0 {
		return
	}
	if p.chosen = (rowName{key: p.key}); p.kinOf != nil {
		p.chosen.kin = p.kinOf(p.table, r)
	}
}

// turnTo selects the row of a key, in the rows there are or those to come.
func (p *tablePane) turnTo(key string) {
	p.key, p.chosen, p.touched = key, rowName{key: key}, true
	if p.table == nil {
		return
	}
	if i := slices.IndexFunc(p.rows, func(r int) bool { return p.table.Rows[r].Key == key }); i >= 0 {
		p.goTo(i)
	}
}

// seek selects the row that is of a kin, in the rows to come.
func (p *tablePane) seek(kin any) {
	if p.kinOf != nil {
		p.key, p.chosen, p.touched = "", rowName{kin: kin}, true
	}
}

// mark marks the selected row, or takes its mark away.
func (p *tablePane) mark() {
	if p.current() < 0 {
		return
	}
	if p.marked == nil {
		p.marked = map[string]bool{}
	}
	if p.marked[p.key] {
		delete(p.marked, p.key)
	} else {
		p.marked[p.key] = true
	}
}

// nextMatch goes to the next row that the filter finds, the last filter where there is none now, and says why
// it does not, with the names of actions in braces for their keys. Rows that are there for what stands in them alone are passed over.
func (p *tablePane) nextMatch(by int) string {
	typed := cmp.Or(p.wanted.filter, p.searched)
	if typed == "" {
		return "there is no filter; {filter} makes one"
	}
	f, err := p.table.ParseFilter(typed)
	if err != nil {
		return err.Error()
	}
	for i, n := p.cursor+by, 0; i >= 0 && i < len(p.rows); i, n = i+by, n+1 {
		if n == measuredRows {
			return fmt.Sprintf("filter %s: none of the next %s rows", typed, count(n))
		}
		if f.Match(p.table, p.rows[i]) {
			p.goTo(i)
			return ""
		}
	}
	return "filter " + typed + ": no more rows that way"
}

// reveal scrolls as little as shows the cursor.
func (p *tablePane) reveal() {
	if p.page > 0 {
		p.top = clamp(p.top, p.cursor-p.page+1, p.cursor)
		p.top = clamp(p.top, 0, max(0, len(p.rows)-p.page))
	}
}

// stands says which of the rows the cursor is on, and of how many they are a part.
func (p *tablePane) stands() string {
	if p.table == nil || len(p.rows) == 0 {
		return ""
	}
	said := fmt.Sprintf("%s/%s rows", count(p.cursor+1), count(len(p.rows)))
	if p.all > len(p.rows) {
		said += " of " + count(p.all)
	}
	return said
}

// current is the index into table.Rows of the selected row, -1 where there is none.
func (p *tablePane) current() int {
	if p.cursor >= len(p.rows) {
		return -1
	}
	return p.rows[p.cursor]
}

func (p *tablePane) move(m motion) {
	switch m {
	case up:
		p.goTo(p.cursor - 1)
	case down:
		p.goTo(p.cursor + 1)
	case pageUp:
		p.goTo(p.cursor - max(1, p.page-1))
	case pageDown:
		p.goTo(p.cursor + max(1, p.page-1))
	case halfUp:
		p.goTo(p.cursor - max(1, p.page/2))
	case halfDown:
		p.goTo(p.cursor + max(1, p.page/2))
	case top:
		p.goTo(0)
	case bottom:
		p.goTo(len(p.rows) - 1)
	case left:
		p.fold(false)
	case right:
		p.fold(true)
	}
}

// toggle opens the selected row, or closes it. It says whether there was anything to open.
func (p *tablePane) toggle() bool {
	r := p.current()
	if r < 0 || !p.table.Rows[r].Children {
		return false
	}
	p.setOpen(r, !p.isOpen(r))
	return true
}

// fold opens or closes the selected row; closing a row that has nothing open goes to the row it stands in.
func (p *tablePane) fold(open bool) {
	r := p.current()
	if r < 0 {
		return
	}
	row := p.table.Rows[r]
	switch {
	case row.Children && p.isOpen(r) != open:
		p.setOpen(r, open)
	case !open && row.Parent >= 0:
		if i := slices.Index(p.rows, row.Parent); i >= 0 {
			p.goTo(i)
		}
	}
}

func (p *tablePane) setOpen(r int, open bool) {
	key := p.table.Rows[r].Key
	if p.opening = ""; open {
		p.opening = key
	}
	p.choose(p.wanted.with(key, open))
}

// setFilter shows only the rows that match.
func (p *tablePane) setFilter(s string) {
	c := p.wanted
	if c.filter == s {
		return
	}
	if c.filter = s; s != "" {
		p.searched = s
	}
	p.choose(c)
}

// sortBy orders by a column; the same column again turns the order round.
func (p *tablePane) sortBy(name string) {
	if name != "" && name == p.wanted.Sort {
		p.reverse()
		return
	}
	c := p.wanted
	c.Sort, c.Reverse = name, p.table != nil && p.table.LargestFirst(name)
	p.choose(c)
}

func (p *tablePane) reverse() {
	c := p.wanted
	c.Reverse = !c.Reverse
	p.choose(c)
}

// roomyTitle is the width of a title from which on it has room for what sums are of, and in which order,
// beside the rest that must be there: what differs from the base comes before both.
const roomyTitle = 76

// own are the parts of a title that say what a person chose to see: an error in the filter, what it leaves,
// the order. That rows stand as in the graph goes without saying. What a filter says leaves half of the line
// to others.
func (p *tablePane) own(w int) []table.Part {
	if p.table == nil {
		return nil
	}
	said := []table.Part{{Rank: 0, Text: cutMiddle(p.found, w/2)}}
	if p.err != nil {
		said[0].Rank = 2 // what is shown stays, and is less than what is wrong
		said = append([]table.Part{{Rank: 0, Text: markFail + " filter: why is below"}}, said...)
	}
	if p.partial {
		sums := table.Part{Text: "n/m: sums of whole rows", Short: "sums: whole rows"}
		if w < roomyTitle {
			sums.Rank = 1
		}
		said = append(said, sums)
	}
	if n := len(p.marked); n > 0 {
		said = append(said, table.Say(1, "%d marked", n))
	}
	order := table.Part{Rank: 6, Text: "order " + p.order()}
	switch by := p.choice.Sort; {
	case p.drawn(by):
		order.Rank = 3 // the header says it too
	case by != "" || p.choice.Reverse:
		if order.Rank = 0; w < roomyTitle { // else nothing does, but for the rest there must be room
			order.Rank = 1
		}
	}
	return append(said, order)
}

// drawn says whether there was room for a column when rows were drawn last, maybe those of another table.
func (p *tablePane) drawn(name string) bool {
	col := p.table.Column(name)
	return slices.ContainsFunc(p.columns, func(c placed) bool { return c.col == col })
}

// alike is what all rows say.
func (p *tablePane) alike(w int) []table.Part {
	s := p.same(w)
	if s == "" {
		return nil
	}
	return []table.Part{{Rank: 8, Text: "all rows " + s}}
}

// same says what the columns that stand in the title say: "wg 64".
func (p *tablePane) same(w int) string {
	var said []string
	for _, c := range p.uniform {
		if col := p.table.Columns[c]; col.Width <= max(w, mainWidth) {
			said = append(said, joined(" ", col.Title, p.table.Cell(p.rows[0], c).Text))
		}
	}
	return strings.Join(said, ", ")
}

// rowText is the selected row with all columns that the table has, by tabs.
func (p *tablePane) rowText() string {
	r := p.current()
	if r < 0 {
		return ""
	}
	cells := make([]string, len(p.table.Columns))
	for c := range cells {
		cells[c] = p.table.Cell(r, c).Text
	}
	return strings.Join(cells, "\t")
}

// mainWidth is that of the screen which the views are drawn for.
const mainWidth = 80

// From sideWidth columns on the detail stands on the right, where it has room for its lines: the list gives up
// columns for it, and keeps those that name its rows.
const sideWidth = 110
