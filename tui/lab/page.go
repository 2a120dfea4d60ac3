package lab

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"gpuscope/session"
	"gpuscope/trace/analyze"
	"gpuscope/trace/report"
	"gpuscope/trace/table"
	"gpuscope/tui/command"
	"gpuscope/tui/sources"
	"gpuscope/tui/view"
	"gpuscope/tui/widget"
)

// Row describes the list of variants, a screen that a command opens.
var Row = view.Row{
	Name: "Variants", Needs: command.Opened,
	Doc: "The edited kernel sources that were tried, with verdicts, times, errors and differences from the original.",
	New: func(view.Host, *widget.Log) view.View { return newPage(nil) },
}

// Page lists the variants that were tried, newest first. The detail pane has the result and the diff of the
// selected variant.
type Page struct {
	view.ListPage
	lab *Lab
	at  view.Snapshot
}

func newPage(l *Lab) *Page {
	p := &Page{lab: l}
	p.Rows.PlainColumns, p.Rows.Soft, p.Rows.GiveUp = true, "change", []string{"kernel"}
	return p
}

// NoVariants returns the reason that there is no list of variants, or "" if there is one.
func (l *Lab) NoVariants() string {
	if len(l.list) > 0 {
		return ""
	}
	const none = "no edited source was tried; press {WGSL} on a dispatch to edit its kernel"
	return cmp.Or(l.host.NeedsDevice(), command.Keyed(none))
}

// ShowVariants opens the list of variants on top of the view. The variant that the screen shows is selected.
func (l *Lab) ShowVariants() {
	p := newPage(l)
	if l.shown() && l.subject.number > 0 {
		p.Rows.TurnTo(keyOf(l.subject))
	}
	l.host.CloseText()
	l.host.Push(&Row, p)
}

// line is a row of the list. It holds a copy of the variant, because jobs read it.
type line struct {
	variant
	of      *variant
	inUse   bool
	former  string // source of the kernel's previous variant or, for its first variant, of the original
	step    string // first line that differs from former
	change         // difference from the original
	verdict string
	paint   widget.Paint
}

// pageKey identifies the contents of the list.
type pageKey struct {
	version int
	index   *analyze.Index
	inUse   string
}

func keyOf(v *variant) string { return fmt.Sprintf("variant %d", v.number) }

func (p *Page) Load(j *widget.Jobs, s view.Snapshot, _ int) {
	p.at = s
	if p.lab == nil || s.Index == nil {
		p.Rows.Unload(j)
		return
	}
	lines := make([]line, 0, len(p.lab.list))
	former := map[string]string{}
	for _, v := range p.lab.list {
		used := v.tried != nil && v.tried.Name == p.lab.InPlace(v.kernel)
		lines = append(lines, line{
			variant: *v, of: v, inUse: used, former: cmp.Or(former[v.kernel], v.original),
		})
		former[v.kernel] = v.text
	}
	slices.Reverse(lines)
	key := pageKey{p.lab.version, s.Index, strings.Join(s.State.Edited, " ")}
	p.Rows.Load(j, key, s, s.Running, func(ctx context.Context) (*table.Table, error) {
		return variantTable(ctx, s.Index, lines)
	})
}

// variantTable returns the table of the lines.
func variantTable(ctx context.Context, x *analyze.Index, lines []line) (*table.Table, error) {
	rows := make([]table.Row, len(lines))
	for i := range lines {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		l := &lines[i]
		l.change = changeOf(l.original, l.text)
		l.step = changeOf(l.former, l.text).first
		l.verdict, l.paint = widget.MarkFail+" refused", widget.Bad
		if l.tried != nil {
			l.verdict, l.paint = command.TriedVerdict(x, l.tried)
		} else if l.err != nil {
			l.verdict = refusedLines(l.err)[0]
		}
		rows[i] = table.Row{Key: keyOf(&l.variant), Parent: -1}
	}
	of := table.ColumnsOf(lines)
	stepped := of.Where(func(l *line) bool { return l.tried != nil && l.tried.Whole != nil })
	isolated := of.Where(func(l *line) bool { return l.tried != nil && l.tried.Alone != nil })
	gauged := of.Where(func(l *line) bool { return l.tried != nil && l.tried.Gap != nil })
	us := func(ns int64, decimals int) table.Cell {
		return table.Microseconds(float64(ns)/1e3, decimals)
	}
	t := table.New("variants", []table.Column{
		of.Int(80, "number", "#", "", "number of the variant, in the order in which the sources were tried",
			func(l *line) int64 { return int64(l.number) }),
		of.Text(80, "kernel", "kernel", "name of the original kernel",
			func(l *line) string { return l.kernel }),
		of.Text(80, "verdict", "verdict",
			"whether the variant is right, and whether the step is significantly faster", shortVerdict),
		stepped.Cell(80, table.Measured, "saved_us", "saves", "us",
			"time that the variant saves in a step; negative if the step is longer",
			func(l *line) table.Cell { return savedCell(l.tried.Whole) }),
		stepped.Cell(110, table.Measured, "off_us", "±", "us", "error of the saved time",
			func(l *line) table.Cell { return us(l.tried.Whole.Within(), 1) }),
		stepped.Cell(200, table.Measured, "step_us", "step µs", "us", "time of the step with the variant",
			func(l *line) table.Cell { return us(l.tried.Whole.New.NS, 2) }),
		isolated.Cell(110, table.Measured, "isolated_us", "µs", "us",
			"time of the isolated dispatch with the variant",
			func(l *line) table.Cell { return us(l.tried.Alone.New.NS, 2) }),
		gauged.Cell(80, table.Measured, "error", "error", "",
			"largest error as a share of the tolerance; above 1 the variant is wrong",
			func(l *line) table.Cell { return table.Number(float64(l.tried.Gap.Share), 2) }),
		of.Text(80, "use", "use", "whether the session uses the variant", func(l *line) string {
			if l.inUse {
				return "in use"
			}
			return ""
		}),
		of.Text(80, "lines", "lines", "lines added to and removed from the original source",
			func(l *line) string { return fmt.Sprintf("+%d -%d", l.added, l.removed) }),
		of.Text(80, "change", "change", "first line that differs from the previous variant of the kernel",
			func(l *line) string { return l.step }),
		of.Text(140, "name", "name", "name of the variant in tables and traces", (*line).name),
	}, rows)
	t.Flat, t.From = true, lines
	return t, nil
}

// shortVerdict returns the sign and the word of a verdict.
func shortVerdict(l *line) string {
	sign, _, _ := strings.Cut(l.verdict, " ")
	word := "refused"
	if l.tried != nil {
		word = string(l.tried.Verdict())
	}
	return sign + " " + word
}

// savedCell returns the cell of a saved time, with a mark if it is not significant.
func savedCell(w *session.InTurns) table.Cell {
	c := table.Microseconds(float64(w.Gain.NS)/1e3, 1)
	if !w.Told() {
		c.Text, c.Mark = analyze.MarkNone, table.Zero
	}
	return c
}

// current returns the selected line, or nil if the list is empty.
func (p *Page) current() *line {
	if p.Rows.Table == nil || p.Rows.Current() < 0 {
		return nil
	}
	lines, _ := p.Rows.Table.From.([]line)
	return &lines[p.Rows.Current()]
}

func (p *Page) Actions() []command.Action {
	return append(p.ListPage.Actions(), []command.Action{
		{Name: "use kernel", Off: p.cannotUse, Run: p.use},
		{Name: "WGSL", Off: p.cannotEdit, Run: func() { p.lab.editVariant(p.current().of) }},
		{Name: "write variant", Run: p.write},
	}...)
}

func (p *Page) Takes() report.Takes { return report.NoSteps }

func (p *Page) Title(w int) []table.Segment {
	n := 0
	if p.lab != nil {
		n = len(p.lab.list)
	}
	own := p.Rows.Own(w)
	if c := p.Rows.Choice; c.Sort == "" && !c.Reverse && len(own) > 0 {
		own = own[:len(own)-1] // the order, which is not that of the graph
	}
	return append([]table.Segment{{Rank: 0, Text: table.Plural(n, "variant")}}, own...)
}

// keysDoc explains the keys of the list above its rows.
const keysDoc = "{open} diff · {use kernel} use it or the original · {WGSL} edit it · " +
	"{write variant} write it to a file"

func (p *Page) Render(t *widget.Theme, _ widget.Glyphs, w, h int, focused bool) []string {
	var lines []string
	if h > 8 {
		lines = append(lines, t.Put(widget.Dim, " "+widget.Cut(command.Keyed(keysDoc), w-2)))
	}
	p.Rows.Line = len(lines)
	return append(lines, p.Draw(t, w, h-len(lines), focused, "No edited source was tried yet.")...)
}

func (p *Page) Detailed() bool { return true }

// Detail returns the result and the diff of the selected variant.
func (p *Page) Detail() *view.Detail {
	l, x := p.current(), p.at.Index
	if l == nil || x == nil {
		return &view.Detail{}
	}
	return &view.Detail{
		Of:    fmt.Sprint(l.number, " ", p.lab.version),
		Title: fmt.Sprintf("%d: %s", l.number, l.name()),
		Lines: func(ctx context.Context) ([]string, error) {
			lines := []string{l.verdict, ""}
			lines = append(lines, l.change.lines...)
			if l.tried != nil {
				lines = append(append(lines, ""), command.TriedLines(x, l.tried)...)
			}
			return lines, ctx.Err()
		},
	}
}

// Open shows the diff of the selected variant over the list.
func (p *Page) Open() bool {
	l := p.current()
	if l == nil {
		return false
	}
	head := []string{l.verdict, fmt.Sprintf("%s against %s", l.name(), l.kernel), ""}
	marks := [][]widget.Stretch{{{To: len(l.verdict), Paint: l.paint}}, nil, nil}
	p.lab.subject, p.lab.shown = l.of, p.lab.host.Open(view.Page{
		Title: fmt.Sprintf("Variant %d: %d lines added, %d removed", l.number, l.added, l.removed),
		Lines: append(head, l.change.lines...), Marks: append(marks, l.marks...),
	})
	return true
}

// cannotUse returns the reason that the selected variant cannot be used, or "" if it can.
func (p *Page) cannotUse() string {
	l := p.current()
	switch {
	case l == nil:
		return "the list is empty"
	case p.lab.host.NeedsDevice() != "":
		return p.lab.host.NeedsDevice()
	case l.tried == nil:
		return "the source was refused"
	}
	return ""
}

// use switches between the selected variant and the original kernel.
func (p *Page) use() {
	l := p.current()
	if l.of.tried.Name == p.lab.InPlace(l.kernel) {
		p.lab.use(l.kernel, nil)
		return
	}
	p.lab.use(l.kernel, l.of)
}

func (p *Page) cannotEdit() string {
	if p.current() == nil {
		return "the list is empty"
	}
	return p.lab.host.NeedsDevice()
}

// write asks for a file and writes the source of the selected variant to it.
func (p *Page) write() {
	if l := p.current(); l != nil {
		label := fmt.Sprintf("write the source of variant %d to", l.number)
		p.lab.host.Write(label, l.kernel+session.KernelSuffix, []byte(l.text))
	}
}

// editVariant opens the source of a variant in the user's editor, in the file of its kernel. The file's
// present content must be the original source or a variant, so that nothing is lost.
func (l *Lab) editVariant(v *variant) {
	known := []string{v.original}
	for _, other := range l.list {
		if other.kernel == v.kernel {
			known = append(known, other.text)
		}
	}
	l.tried[v.kernel] = v // the watcher must not try it again
	dir := l.dir
	l.jobs.Start(func(context.Context) func() {
		path, err := sources.Replace(dir, v.kernel, v.text, known)
		return func() {
			if l.jobs.Open--; err != nil {
				l.host.Fail(fmt.Errorf("edit variant %d: %w", v.number, err))
				return
			}
			l.openEditor(v.kernel, path)
		}
	})
}
