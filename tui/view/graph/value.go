package graph

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
	"gpuscope/tui/command"
	"gpuscope/tui/view"
	"gpuscope/tui/widget"
)

// ValueRow describes the screen of a value, which commands open.
var ValueRow = view.Row{
	Name: "Value", Needs: command.Opened, Doc: "The elements of a tensor, read from the running model.",
	New: func(h view.Host, _ *widget.Log) view.View { return newValuePage(h, 0) },
}

// ValuePage shows an opened value: its statistics, its histogram and a window of its elements. It first
// requests the elements in the window from the model, then the statistics. To read a value, the model re-runs
// a step up to a dispatch.
type ValuePage struct {
	view.Basics
	host   view.Host
	jobs   *widget.Jobs
	value  trace.ValueID
	write  int // index in writes of the chosen dispatch; -1: the last dispatch that writes the value
	writes []analyze.Written
	find   widget.Task[writesKey, []analyze.Written]
	Row    int // row of the grid at the top of the window
	column int // column of the grid at the left of the window
	at     view.Snapshot

	heat     bool      // the page shows a heat map instead of the histogram and the grid
	compares bool      // the page shows the difference from the baseline
	stopped  *valueKey // value whose statistics and heat map the user chose not to read
	stats    widget.Task[valueKey, seen]
	page     widget.Task[windowKey, seen]
	heatTask widget.Task[heatKey, seen]
}

// valueKey identifies the contents to show: a value after a dispatch of a step.
type valueKey struct {
	step  int // step number as recorded in the trace
	value trace.ValueID
	after trace.DispatchID // -1: after the last dispatch that writes the value
	minus int              // number of the step whose value is subtracted; -1: none
}

// writesKey identifies the writes of a value in a step.
type writesKey struct {
	step  int
	value trace.ValueID
}

// windowKey identifies the visible window of a value, as a matrix with `width` elements in a row.
type windowKey struct {
	valueKey
	row, column, rows, columns, width int
}

// seen is the model's answer to a request for a value.
type seen struct {
	key   valueKey
	t     *session.Tensor
	scale widget.HeatScale // of the heat map
	err   error
}

func newValuePage(h view.Host, v trace.ValueID) *ValuePage {
	return &ValuePage{host: h, value: v, write: -1}
}

// OpenValue opens a value on top of the current view, at the step of a snapshot.
func OpenValue(h view.Host, v trace.ValueID, s view.Snapshot) {
	p := newValuePage(h, v)
	p.at = s
	h.Push(&ValueRow, p)
}

// why returns a text with the operators that may be re-planned when the shown value changes.
func (p *ValuePage) why() (view.Text, bool) {
	return view.WhatWakes(p.at, p.shownValue()), p.info() != nil
}

func (p *ValuePage) Actions() []command.Action {
	return []command.Action{
		{Name: "why", Run: func() {
			t, explains := p.why()
			view.Explain(p.host, nil, t, explains)
		}},
		{Name: "heat map", Off: p.unreadable, Now: func() string {
			if p.heat {
				return "numbers"
			}
			return ""
		}, Run: p.toggleHeat},
		{Name: "compare", Off: p.cannotCompare, Now: func() string {
			if p.compares {
				return "value"
			}
			return ""
		}, Run: p.toggleCompare},
		{Name: "export value", Off: p.cannotSave, Run: p.askSave},
	}
}

func (p *ValuePage) Detailed() bool { return true }

func (p *ValuePage) Takes() report.Takes { return report.OneStep }

// info returns the value's entry in the trace, or nil if there is none.
func (p *ValuePage) info() *trace.Value {
	if p.at.Trace == nil || int(p.value) >= len(p.at.Trace.Graph.Values) {
		return nil
	}
	return &p.at.Trace.Graph.Values[p.value]
}

// key returns the key of the contents to show. If nothing can be shown, `why` is the reason.
func (p *ValuePage) key() (k valueKey, why string) {
	v := p.info()
	switch {
	case v == nil:
		return k, "No such value."
	case p.at.Recorded && !p.at.Trace.Device.None():
		return k, "A trace does not contain tensor values. Run the model to see them."
	case p.at.Lost:
		return k, "The engine crashed, so the values are lost."
	case v.Kind == "symint":
		return k, "A host integer, " + report.Bounds(p.at.Index, v) + "."
	case p.at.Trace.Device.None():
		return k, noNumbers
	}
	if why := analyze.NotStored(v); why != "" {
		return k, "Not in memory: " + why + "."
	}
	k = valueKey{step: -1, value: p.value, after: -1, minus: -1}
	if v.Role == trace.RoleConstant {
		return k, ""
	}
	if p.at.Step < 0 {
		return k, command.Keyed("The value has no numbers before the first step. Press {prompt} and type a prompt.")
	}
	k.step = p.at.Trace.Steps[p.at.Step].Index
	if p.write >= 0 && p.write < len(p.writes) {
		k.after = p.writes[p.write].Dispatch
		k.value = p.writes[p.write].Value
	}
	if p.compares {
		base, why := p.baseline()
		if why != "" {
			return k, "Cannot compare: " + why + "."
		}
		k.minus = p.at.Trace.Steps[base].Index
	}
	return k, ""
}

// unreadable returns the reason that the value cannot be read, or "".
func (p *ValuePage) unreadable() string {
	_, why := p.key()
	if why == "" {
		return ""
	}
	return strings.ToLower(why[:1]) + strings.TrimSuffix(why[1:], ".")
}

func (p *ValuePage) Load(j *widget.Jobs, s view.Snapshot, _ int) {
	p.at, p.jobs = s, j
	if s.Trace != nil && s.Step >= 0 {
		find := func(ctx context.Context) ([]analyze.Written, error) {
			return s.Index.Writes(s.Step, p.value), ctx.Err()
		}
		p.find.Want(j, writesKey{s.Trace.Steps[s.Step].Index, p.value}, find, func(list []analyze.Written) {
			p.writes, p.write = list, min(p.write, len(list)-1)
		})
	}
	key, why := p.key()
	if why != "" || s.Session == nil || s.Running { // keep the old contents on the screen, marked as stale
		p.stats.Drop(j)
		p.page.Drop(j)
		p.heatTask.Drop(j)
		return
	}
	rows, columns := p.window()
	_, width := p.shape()
	p.column = widget.Clamp(p.column, 0, max(0, width-columns))
	p.page.Want(j, windowKey{key, p.Row, p.column, rows, columns, width}, p.ask(key, session.LookAt{
		Offset: p.Row*width + p.column, Count: min(columns, width-p.column), Rows: rows, Stride: width,
	}), nil)
	// Read the visible window before the statistics and the heat map, which take long for a large value.
	stopped := p.stopped != nil && *p.stopped == key
	if got := p.page.Value; stopped || got.t == nil || got.key != key {
		return
	}
	if !p.heat {
		p.heatTask.Drop(j)
	} else {
		at := p.mapAt()
		p.heatTask.Want(j, heatKey{key, at}, p.ask(key, session.LookAt{Map: &at}), nil)
	}
	p.stats.Want(j, key, p.ask(key, session.LookAt{Statistics: true}), nil)
}

// Stop stops the reading of the statistics and the heat map. The window of elements stays on the screen.
func (p *ValuePage) Stop() bool {
	if p.stats.Cancel == nil && p.heatTask.Cancel == nil {
		return false
	}
	key, _ := p.key()
	p.stopped = &key
	p.stats.Drop(p.jobs)
	p.heatTask.Drop(p.jobs)
	return true
}

// ask returns a job that reads a value. If the value cannot be read, the result of the job holds the error,
// which the page shows.
func (p *ValuePage) ask(key valueKey, at session.LookAt) func(context.Context) (seen, error) {
	s, of := p.at.Session, p.lookAt(key)
	at.Value, at.Step, at.After, at.Baseline = of.Value, of.Step, of.After, of.Baseline
	return func(ctx context.Context) (seen, error) {
		r, err := s.Do(ctx, session.Command{Kind: session.Look, At: &at})
		if err == nil && r.Tensor == nil {
			err = errors.New("the engine returned no data")
		}
		s := seen{key: key, t: r.Tensor, err: err}
		if err == nil && at.Map != nil {
			if s.t.Map == nil {
				return seen{key: key, err: errors.New("the engine returned no heat map")}, nil
			}
			s.scale = widget.NewHeatScale(s.t.Map.Cells)
		}
		return s, nil
	}
}

// shownValue returns the value whose contents are shown: the opened value, or another value in the same
// memory that the user chose.
func (p *ValuePage) shownValue() trace.ValueID {
	if p.write >= 0 && p.write < len(p.writes) {
		return p.writes[p.write].Value
	}
	return p.value
}

// shape returns the size of the grid of elements. The columns of the grid are the last dimension of the
// value. A value with a single row is wrapped into rows that fit the width of the screen.
func (p *ValuePage) shape() (rows, columns int) { return gridOf(p.dims(), p.fits()) }

func gridOf(dims []int, fits int) (rows, columns int) {
	n := numel(dims)
	columns = 1
	if len(dims) > 0 {
		columns = max(1, dims[len(dims)-1])
	}
	if n <= columns {
		columns = max(1, min(columns, fits))
	}
	return (n + columns - 1) / columns, columns
}

// numberCells and rowCells are the widths in cells of an element and of the name of a row. statLines is the
// number of lines above the histogram.
const numberCells, rowCells, statLines = 11, 14, 3

// chartLines returns the height of the histogram in a pane of h lines.
func chartLines(h int) int { return widget.Clamp(h/5, 2, 8) }

// fits returns how many columns of numbers fit on the screen.
func (p *ValuePage) fits() int {
	w, _ := p.host.Size()
	return max(1, (w-rowCells)/numberCells)
}

// window returns the maximum number of visible rows and columns of the grid.
func (p *ValuePage) window() (rows, columns int) {
	_, h := p.host.Size()
	rows = max(1, h-statLines-chartLines(h)-2)
	columns = p.fits()
	return min(rows, session.MostNumbers/columns), columns
}

func (p *ValuePage) Move(m widget.Motion) {
	rows, columns := p.window()
	height, _ := p.shape()
	switch {
	case m == widget.Top:
		p.Row, p.column = 0, 0
	case m == widget.Bottom:
		p.Row = height
	case p.heat:
		p.moveByCells(m)
	default:
		p.moveWindow(m, rows, columns)
	}
	p.keepInside()
}

// keepInside moves the window back into the value.
func (p *ValuePage) keepInside() {
	rows, columns := p.window()
	height, width := p.shape()
	if p.heat {
		if live, isCache := p.liveRows(); isCache {
			height = min(height, live+rows-1) // the heat map has only the rows in use
		}
	}
	p.Row = widget.Clamp(p.Row, 0, max(0, height-rows))
	p.column = widget.Clamp(p.column, 0, max(0, width-columns))
}

// moveWindow moves the window by rows, or by parts of its size.
func (p *ValuePage) moveWindow(m widget.Motion, rows, columns int) {
	switch m {
	case widget.Up:
		p.Row--
	case widget.Down:
		p.Row++
	case widget.HalfUp:
		p.Row -= max(1, rows/2)
	case widget.HalfDown:
		p.Row += max(1, rows/2)
	case widget.PageUp:
		p.Row -= rows
	case widget.PageDown:
		p.Row += rows
	case widget.Left:
		p.column -= max(1, columns/2)
	case widget.Right:
		p.column += max(1, columns/2)
	}
}

// Turn moves to the next dispatch of the step that writes the memory of the value, or to the previous such
// dispatch if `by` is negative.
func (p *ValuePage) Turn(by int) bool {
	if len(p.writes) == 0 {
		p.host.Remark("no dispatch of the step writes this value")
		return true
	}
	at := p.write
	if at < 0 { // start from the last dispatch that writes the value
		for i, w := range p.writes {
			if w.Value == p.value {
				at = i
			}
		}
	}
	to := widget.Clamp(at+by, 0, len(p.writes)-1)
	if to == at {
		p.host.Remark(map[bool]string{true: "this is the last", false: "this is the first"}[by > 0] +
			" dispatch that writes this memory in the step")
	}
	p.write, p.Row, p.column = to, 0, 0
	return true
}

func (p *ValuePage) Title(int) []table.Segment {
	v := p.info()
	if v == nil {
		return nil
	}
	if other := p.shownValue(); other != p.value {
		v = &p.at.Trace.Graph.Values[other]
	}
	dtype := v.DType
	if t := p.page.Value.t; t != nil && t.Value == v.ID {
		dtype = t.DType
	}
	parts := []table.Segment{
		{Rank: 0, Text: v.Name + p.minusWord()},
		{Rank: 1, Text: strings.TrimSpace(dtype + " " + report.Shape(p.at.Index, v.ID, p.dims()))},
	}
	if p.heat {
		parts = append(parts, p.drawn())
	}
	if v.ID != p.value {
		parts = append(parts, table.Say(0, "shares its memory with %s", p.info().Name))
	}
	return append(parts, table.Segment{Rank: 3, Text: string(v.Role)})
}

// source describes where the shown contents come from, and reports whether they are out of date.
func (p *ValuePage) source() (from table.Line, stale bool) {
	from.Separator = ", "
	t := p.page.Value.t
	if t == nil {
		return from, false
	}
	add := func(text, short string) {
		from.Segments = append(from.Segments, table.Segment{Text: text, Short: short})
	}
	switch {
	case t.Baseline != nil && t.Step != nil:
		p.comparedWith(t, add)
	case t.Step == nil:
		add("as stored in the model file, the same in every step", "")
	default:
		add(fmt.Sprintf("from a re-run of step %d", *t.Step), fmt.Sprintf("step %d", *t.Step))
	}
	if t.After != nil {
		after := fmt.Sprintf("after d%d", *t.After)
		if int(*t.After) < len(p.at.Trace.Graph.Dispatches) {
			after += " " + p.at.Index.Name(*t.After)
		}
		add("read right "+after, after)
	}
	if n := len(p.writes); n > 1 && t.After != nil {
		i := slices.IndexFunc(p.writes, func(w analyze.Written) bool { return w.Dispatch == *t.After })
		if i >= 0 {
			write, keys := fmt.Sprintf("write %d of %d", i+1, n), command.Keyed(" ({previous event} {next event})")
			add(write+" to this memory"+keys, write+keys)
		}
	}
	key, _ := p.key()
	stale = p.page.Value.key != key
	return from, stale
}

func (p *ValuePage) Render(t *widget.Theme, g widget.Glyphs, w, h int, _ bool) []string {
	if _, why := p.key(); why != "" {
		lines := []string{""}
		for _, l := range widget.WrapText(why, w-4) {
			lines = append(lines, t.Put(widget.Dim, "  "+l))
		}
		return lines[:min(len(lines), h)]
	}
	if p.heat {
		lines := p.heading(t, w)[:p.headingLines()]
		return append(lines, p.drawHeat(t, g, w, h-len(lines))...)
	}
	lines := p.summary(t, g, w, chartLines(h))
	return append(lines, p.grid(t, w, h-len(lines))...)
}

// heading draws the source of the value and its statistics: statLines lines.
func (p *ValuePage) heading(t *widget.Theme, w int) []string {
	from, stale := p.source()
	where, style := " ", widget.Dim
	switch waiting := p.page.Cancel != nil; {
	case stale && p.at.Running:
		where, style = " values out of date until the model pauses: ", widget.Warn
	case stale:
		where, style = " values out of date, re-running the step: ", widget.Warn
	case len(from.Segments) == 0 && p.at.Running:
		where = " The value will be read when the model pauses."
	case len(from.Segments) == 0 && waiting:
		where = " Reading …"
	}
	where += from.Fit(w - widget.Width(where))
	lines := []string{t.Put(style, widget.Cut(where, w))}
	s, told := p.stats.Value, p.told()
	switch {
	case s.err != nil:
		lines = append(lines, t.Put(widget.Bad, widget.Cut(" "+widget.MarkFail+" "+printable.Clean(s.err.Error()), w)), "")
	case p.page.Value.err != nil: // the grid below shows this error
		lines = append(lines, "", "")
	case told == nil:
		lines = append(lines, t.Put(widget.Dim, " "+p.reading()), "")
	case p.stats.Value.t.Difference != nil:
		lines = append(lines, p.differences(t, p.stats.Value, w)...)
	default:
		parts := []table.Segment{
			table.Say(0, "min %s", widget.Number(told.Min)), table.Say(0, "max %s", widget.Number(told.Max)),
			table.Say(1, "mean %s", widget.Number(told.Mean)),
			table.Say(1, "std %s", widget.Number(told.Std)),
			table.Say(2, "zeros %s of %s", widget.Count(told.Zeros), widget.Count(told.Elements)),
		}
		if told.Finite() == 0 {
			parts = parts[4:]
		}
		if s.key != p.page.Value.key && p.page.Value.t != nil {
			parts = append([]table.Segment{{Rank: 0, Text: p.reading()}}, parts...)
		}
		lines = append(lines, " "+table.Title(parts...).Fit(w-2), p.odd(t, told, w))
	}
	return lines
}

// told returns the statistics of the value, or nil if they are not known yet.
func (p *ValuePage) told() *session.Statistics {
	if t := p.stats.Value.t; t != nil {
		return t.Statistics
	}
	return nil
}

// summary draws the heading and the histogram. It always returns the same number of lines.
func (p *ValuePage) summary(t *widget.Theme, g widget.Glyphs, w, chart int) []string {
	lines, told := p.heading(t, w), p.told()
	if told == nil || len(told.Histogram) == 0 {
		return append(lines, make([]string, chart)...)
	}
	most := slices.Max(told.Histogram)
	values := make([]float64, len(told.Histogram))
	for i, n := range told.Histogram {
		values[i] = float64(n) / float64(most)
	}
	bins := min(len(values), w-2)
	for _, l := range g.ColumnChart(values[:bins], chart-1, func(int) bool { return false }) {
		lines = append(lines, " "+t.Put(widget.GraphA, strings.TrimRight(l, " ")))
	}
	low, high := widget.Number(told.Min), widget.Number(told.Max)
	axis := low + " " + strings.Repeat(widget.MarkRule, max(0, bins-widget.Width(low)-widget.Width(high)-2)) + " " + high
	line := table.Title(table.Segment{Rank: 0, Text: axis},
		table.Segment{Rank: 1, Text: "highest " + widget.Count(most), Short: "top " + widget.Count(most)})
	return append(lines, t.Put(widget.Dim, " "+line.Fit(w-2)))
}

// reading returns a text about the progress of reading the whole value.
func (p *ValuePage) reading() string {
	if key, _ := p.key(); p.stopped != nil && *p.stopped == key {
		return "reading was cancelled"
	}
	if g := p.at.Progress; strings.HasPrefix(g.Phase, "reading ") && g.Total > 0 && g.Done < g.Total {
		return fmt.Sprintf("reading the whole value: %d %%", 100*g.Done/g.Total)
	}
	return "reading the whole value …"
}

// odd returns the line with the number of NaN and infinite elements and the error against the reference.
func (p *ValuePage) odd(t *widget.Theme, s *session.Statistics, w int) string {
	gap := "not verified"
	got := p.page.Value.t
	if got != nil && got.After == nil {
		gap = "not computed by a dispatch"
	}
	if got != nil && got.After != nil && p.at.Step >= 0 {
		if i := p.at.Index.Find(p.at.Step, *got.After); i >= 0 {
			if n := p.at.Trace.Steps[p.at.Step].Dispatches[i].Error; n != nil {
				gap = fmt.Sprintf("SNR %.1f dB, max abs error %s (%s)", n.SNRdB,
					widget.Number(float64(n.MaxAbs)),
					n.Reference)
			}
		}
	}
	if s.Finite() == s.Elements {
		return t.Put(widget.Dim, widget.Cut(" NaN 0 · Inf 0 · "+printable.Clean(gap), w))
	}
	text := fmt.Sprintf(" %s NaN %s · Inf %s", widget.MarkWarn, widget.Count(s.NaN),
		widget.Count(s.PosInf+s.NegInf))
	if s.FirstOdd != nil {
		text += ", first at [" + strings.Join(indices(*s.FirstOdd, p.dims()), ", ") + "]"
	}
	return t.Put(widget.Warn, widget.Cut(text+" · "+printable.Clean(gap), w))
}

// indices returns the index of an element in each dimension.
func indices(at int, dims []int) []string {
	words := make([]string, len(dims))
	for i := len(dims) - 1; i >= 0; i-- {
		words[i] = strconv.Itoa(at % max(1, dims[i]))
		at /= max(1, dims[i])
	}
	return words
}

// grid draws the window of elements with the indices of its rows and columns.
func (p *ValuePage) grid(t *widget.Theme, w, h int) []string {
	got := p.page.Value
	switch {
	case got.err != nil:
		return failed(t, got.err, w, h)
	case got.t == nil:
		return nil
	}
	k := p.page.Given
	dims := got.t.Dims
	across := k.width
	live, isCache := p.at.Index.LiveRows(p.at.Step, got.t.Value)
	columns := min(k.columns, across-k.column)
	if columns <= 0 || len(got.t.Numbers) == 0 {
		return []string{t.Put(widget.Dim, " No elements at this shape.")}
	}
	var b strings.Builder
	b.WriteString(widget.Blank(rowCells))
	for c := range columns {
		b.WriteString(widget.FitLeft(strconv.Itoa(k.column+c), numberCells))
	}
	lines := []string{t.Put(widget.Dim, widget.Cut(b.String(), w))}
	for row := 0; row*columns < len(got.t.Numbers) && len(lines) < h-1; row++ {
		b.Reset()
		name := rowName((k.row+row)*across, across, dims)
		b.WriteString(t.Put(widget.Dim, widget.Fit(" "+widget.CutMiddle(name, rowCells-2), rowCells)))
		for _, n := range got.t.Numbers[row*columns : min(len(got.t.Numbers), (row+1)*columns)] {
			s := widget.FitLeft(widget.Number(float64(n)), numberCells)
			switch v := float64(n); {
			case math.IsNaN(v) || math.IsInf(v, 0):
				s = t.Put(widget.Bad, s)
			case v == 0, isCache && k.row+row >= live:
				s = t.Put(widget.Dim, s)
			}
			b.WriteString(s)
		}
		lines = append(lines, b.String())
	}
	if len(lines) < h {
		lines = append(lines, t.Put(widget.Dim, " "+p.foot(k, dims).Fit(w-2)))
	}
	return lines
}

// failed draws an error in a pane of h lines.
func failed(t *widget.Theme, err error, w, h int) []string {
	var lines []string
	for _, l := range widget.WrapText(widget.MarkFail+" "+err.Error(), w-2) {
		lines = append(lines, t.Put(widget.Bad, " "+l))
	}
	return lines[:min(len(lines), max(0, h))]
}

// rowName returns the label of a row of the grid, such as "[3]": the indices of the row's first element.
// `first` is the number of this element in the value, and `across` is the number of elements in the row.
func rowName(first, across int, dims []int) string {
	at := indices(first, dims)
	if n := len(at); n > 0 && dims[n-1] == across && numel(dims) > across {
		at = at[:n-1] // the label of a matrix row has no column index
	}
	return "[" + strings.Join(at, ",") + "]"
}

// numel returns the number of elements.
func numel(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// foot describes the position of a window in the value.
func (p *ValuePage) foot(k windowKey, dims []int) table.Line {
	height, across := ceilDiv(numel(dims), max(1, k.width)), k.width
	columns := min(k.columns, across-k.column)
	rows := min(k.rows, height-k.row)
	written := ""
	if live, isCache := p.at.Index.LiveRows(p.at.Step, k.value); isCache && live < height {
		written = fmt.Sprintf(" (rows 0–%s in use, others unused)", widget.Count(live-1))
	}
	return table.Line{Separator: ", ", Segments: []table.Segment{
		{Text: fmt.Sprintf("rows %s–%s of %s%s", widget.Count(k.row), widget.Count(k.row+rows-1),
			widget.Count(height), written)},
		{Text: fmt.Sprintf("columns %s–%s of %s", widget.Count(k.column), widget.Count(k.column+columns-1),
			widget.Count(across))},
	}}
}

func (p *ValuePage) Copied() string {
	got := p.page.Value.t
	if got == nil {
		return ""
	}
	k := p.page.Given
	columns := max(1, min(k.columns, k.width-k.column))
	var b strings.Builder
	for i, n := range got.Numbers {
		b.WriteString(strconv.FormatFloat(float64(n), 'g', -1, 64))
		if b.WriteByte('\t'); (i+1)%columns == 0 {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// Detail describes the value as recorded in the trace.
func (p *ValuePage) Detail() *view.Detail {
	v, s := p.info(), p.at
	if v == nil {
		return &view.Detail{}
	}
	id := p.shownValue()
	return &view.Detail{
		Of: fmt.Sprintf("v%d", id), Title: s.Trace.Graph.Values[id].Name,
		Lines: func(ctx context.Context) ([]string, error) {
			return report.ValueLines(s.Index, s.Step, id), ctx.Err()
		},
	}
}
