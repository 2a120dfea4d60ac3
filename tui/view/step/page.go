// Package step is the view Step: the generated text, the time of a step, and how the time was spent.
package step

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/experts"
	"gpuscope/trace/analyze/tracks"
	"gpuscope/trace/report"
	"gpuscope/trace/report/expertload"
	"gpuscope/trace/table"
	"gpuscope/tui/command"
	"gpuscope/tui/view"
	"gpuscope/tui/widget"
)

// Page is view 1. It shows the generated text, how a step spent its wall time, and the events of the run.
type Page struct {
	view.Basics
	Steps view.ListPage
	Task  widget.Task[summaryBase, *Facts]
	host  view.Host
	part  int           // index of the opened part of the GPU track; -1: the whole track is shown
	now   view.Snapshot // snapshot of the last Load, for its events and marks

	strip   *strip
	stripOf stripKey
	Top     int // first line of the strip as last drawn
	High    int // height of the strip with its lanes as last drawn, in lines

	// These fields cache drawn lines.
	tracks drawn[tracksKey]
	text   drawn[textKey]
}

// summaryBase identifies the contents of the page in one version of the data: the shown step, its baseline,
// and the selected steps, which what to fix first depends on.
type summaryBase struct {
	view.SummaryKey
	base  int
	scope string
}

// stepsKey identifies the list of steps: the trace and the baseline.
type stepsKey struct {
	index   *analyze.Index
	against *analyze.Baseline
}

// Facts holds facts about a step that take long to compute in a long run. A job computes these facts.
type Facts struct {
	s   view.Snapshot
	Sum *analyze.StepSummary

	prefill, decode, execute int // numbers of steps of each phase

	costed bool    // the costs of some step were measured
	scale  float64 // time at the top of the strip, in ns
	Words  []word  // the text around the step
	Tracks *tracks.Tracks
	pace   table.Line // the speed of the run or, if several steps are selected, of these

	routers []*experts.Router // the choices of experts in the step
	first   *view.Answer
}

// New returns the view Step.
func New(h view.Host) *Page {
	p := &Page{host: h, Steps: view.ListOf("steps"), part: -1}
	p.Steps.Rows.PlainColumns = true
	p.Steps.Rows.GiveUp = []string{
		"timing", "cold", "submits", "polls", "gc_ms", "compiled", "bind_groups",
		"passes", "levels", "dispatches", "idle_ms", "gaps_ms",
	}
	return p
}

func (p *Page) Actions() []command.Action {
	return []command.Action{
		{Name: "mark step"},
		{Name: "zoom in", Off: p.undivided, Run: p.zoomIn},
		{Name: "cost", Off: p.unknown, Run: func() {
			t := p.Task.Value.first.Tree
			view.Measure(p.host, p.now, session.Cost, &t.Index.Trace.Steps[p.now.Step], t.OpenParts())
		}},
	}
}

// unknown returns the reason that the costs of the step cannot be measured now, or "".
func (p *Page) unknown() string {
	if f := p.Task.Value; f == nil || f.first == nil || f.s.Step != p.now.Step {
		return "the step is still being computed"
	}
	return ""
}

// Move moves to another step. While a part of the GPU track is open, up and down move through the parts.
func (p *Page) Move(m widget.Motion) {
	if by := p.stepsBy(m); by != 0 {
		p.host.ShowStep(by)
	}
}

// Scrolls returns 1, because the wheel moves to the next step.
func (p *Page) Scrolls() int { return 1 }

func (p *Page) Takes() report.Takes { return report.OneStep }

// Sums returns true, because the page says what to fix first in the selected steps, and how fast they ran.
func (p *Page) Sums() bool { return true }

func (p *Page) Load(j *widget.Jobs, s view.Snapshot, _ int) {
	p.now = s
	if s.Step < 0 || s.Trace == nil {
		p.Task.Clear(j)
		p.Steps.Rows.Unload(j)
		return
	}
	base := summaryBase{view.SummaryKey{Version: s.Version, Step: s.Step}, s.Base, s.Named(report.AnySteps)}
	p.Task.Want(j, base, func(ctx context.Context) (*Facts, error) { return gather(ctx, s) }, nil)
	p.Steps.Rows.Load(j, stepsKey{s.Index, s.Against}, s, s.Running,
		func(ctx context.Context) (*table.Table, error) {
			return p.Steps.From.Of(ctx, s.Index, analyze.Options{Baseline: s.Against})
		})
	p.Steps.Rows.GoTo(s.Step)
}

// gather computes the facts from all steps.
func gather(ctx context.Context, s view.Snapshot) (*Facts, error) {
	f := &Facts{s: s, Sum: s.Index.Summary(s.Step), Tracks: tracks.Of(s.Index, s.Step)}
	var decodes []float64
	all := 0.0
	for i := range s.Trace.Steps {
		step := &s.Trace.Steps[i]
		switch step.Phase {
		case trace.Prefill:
			f.prefill++
		case trace.Decode:
			f.decode++
		case trace.Execute:
			f.execute++
		}
		f.costed = f.costed || len(step.Costs) > 0
		took := f.barNS(step)
		if all = max(all, took); step.Phase != trace.Prefill && !step.Cold {
			decodes = append(decodes, took)
		}
	}
	// The scale is the longest warm decode step, but at most three times the median: one long step must
	// not make the others too small to see.
	if slices.Sort(decodes); len(decodes) > 0 {
		f.scale = min(decodes[len(decodes)-1], 3*decodes[len(decodes)/2])
	}
	if f.scale == 0 {
		f.scale = all
	}
	f.Words = WordsAround(s)
	f.pace = report.Pace(s.Index, s.Of(report.AnySteps))
	var err error
	if f.first, err = view.AnswerOf(ctx, s, report.AnySteps); err != nil {
		return nil, err
	}
	f.routers, err = experts.Of(ctx, s.Index, s.Index.Step(s.Step))
	return f, err
}

// barNS returns the time in ns of a step in the strip: the wall time or, in the profile of another engine,
// the sum of the dispatches. It returns 0 if this time was not measured.
func (f *Facts) barNS(s *trace.Step) float64 {
	ns, _ := s.CPU.TotalNS.NS()
	if f.imported() {
		ns, _ = analyze.GPUOf(s).BusyNS.NS()
	}
	return float64(ns)
}

func (p *Page) Title(int) []table.Segment {
	f := p.Task.Value
	if f == nil {
		return []table.Segment{{Rank: 0, Text: "Step"}}
	}
	t := f.s.Trace
	steps := widget.Plural(len(t.Steps), "step")
	if n := t.DroppedSteps; n > 0 {
		steps += fmt.Sprintf(" (%s earlier not recorded)", widget.Count(n))
	}
	parts := []table.Segment{table.Say(0, "%s: %d prefill ▒, %d decode █", steps, f.prefill, f.decode)}
	parts[0].Short = widget.Plural(len(t.Steps), "step")
	if f.execute > 0 {
		parts[0].Text = steps + ", executions of the program █"
	}
	if f.imported() {
		parts[0].Text += " · columns show " + analyze.SumName
	}
	if base := f.s.Against; base != nil {
		parts = append(parts, table.Say(1, "baseline %s",
			report.BaselineName(base.Index.Routed(base.Selection))), report.OtherTrace(f.s.Index, base.Index))
	}
	if upto := f.s.State.Upto; upto != nil && f.s.Live {
		parts = append(parts, table.Say(0, "s%d is paused after dispatch %d",
			f.s.State.Step, *upto))
	}
	return slices.Concat(f.pace.Segments, parts)
}

// steps maps each motion to the number of steps it moves.
var steps = map[widget.Motion]int{
	widget.Left: -1, widget.Up: -1, widget.Right: 1, widget.Down: 1, widget.HalfUp: -5, widget.HalfDown: 5,
	widget.PageUp: -10, widget.PageDown: 10, widget.Top: -1 << 30,
	widget.Bottom: 1 << 30,
}

// stepsBy returns the number of steps that a motion moves. If a part of the GPU track is open, up and down
// move through the parts, and stepsBy returns 0.
func (p *Page) stepsBy(m widget.Motion) int {
	if p.part >= 0 && (m == widget.Up || m == widget.Down) {
		if f := p.Task.Value; f != nil {
			p.part = widget.Clamp(p.part+steps[m], 0, max(0, len(f.Tracks.GPU)-1))
		}
		return 0
	}
	return steps[m]
}

// undivided returns the reason that no part of the GPU track can be opened or closed, or "" if one can.
func (p *Page) undivided() string {
	if f := p.Task.Value; p.part < 0 && (f == nil || len(f.Tracks.GPU) < 2) {
		return "the parts of this step were not timed: run a step at timing level block or dispatch"
	}
	return ""
}

// zoomIn opens the longest part of the GPU track, or closes the open part.
func (p *Page) zoomIn() {
	if p.Back() {
		return
	}
	p.part = 0
	gpu := p.Task.Value.Tracks.GPU
	for i := range gpu {
		if gpu[i].NS() > gpu[p.part].NS() {
			p.part = i
		}
	}
}

// Back closes the open part, and reports whether one was open.
func (p *Page) Back() bool {
	was := p.part >= 0
	p.part = -1
	return was
}

func (p *Page) Copied() string { return p.Steps.Rows.RowText() }

// stripKey identifies the contents of a strip.
type stripKey struct {
	facts   *Facts
	events  *analyze.Event // first event
	n       int
	columns int
}

// stripIn returns the strip for a page of w cells, rebuilt if the data or the width has changed.
func (p *Page) stripIn(f *Facts, w int) *strip {
	key := stripKey{facts: f, n: len(p.now.Events), columns: stripColumns(w)}
	if key.n > 0 {
		key.events = &p.now.Events[0]
	}
	if p.strip == nil || p.stripOf != key {
		p.strip, p.stripOf = NewStrip(f.s.Trace.Steps, f.barNS, p.now.Events, f.scale, key.columns), key
	}
	return p.strip
}

// tracksKey identifies the drawn lines of the tracks.
type tracksKey struct {
	facts   *Facts
	theme   *widget.Theme
	part, w int
	figures bool
}

// textKey identifies the drawn lines of the text.
type textKey struct {
	facts *Facts
	theme *widget.Theme
	w, h  int
}

// drawn caches drawn lines. The lines are drawn again only if their key has changed.
type drawn[K comparable] struct {
	of    K
	lines []string
}

func (d *drawn[K]) with(of K, draw func() []string) []string {
	if d.lines == nil || d.of != of {
		d.of, d.lines = of, draw()
	}
	return slices.Clone(d.lines)
}

// tracksIn returns the lines of the tracks on a page of w cells.
func (p *Page) tracksIn(t *widget.Theme, f *Facts, w int, figures bool) []string {
	return p.tracks.with(tracksKey{f, t, p.part, w, figures}, func() []string {
		var part *tracks.Span
		if p.part >= 0 && p.part < len(f.Tracks.GPU) {
			part = &f.Tracks.GPU[p.part]
		}
		return Tracks(t, f.s.Index, f.s.Step, f.Tracks, part, w, figures)
	})
}

// stripColumns returns the width of the strip on a page of w cells, in columns.
func stripColumns(w int) int { return max(1, w-widget.Axis-2) }

// StepAt returns the first step in the strip's column at cell x, on a page of w cells. It returns false if no
// step is drawn at x.
func (p *Page) StepAt(x, w int) (step int, ok bool) {
	f := p.Task.Value
	if f == nil || x < widget.Axis+1 {
		return 0, false
	}
	step = (x - widget.Axis - 1) * p.stripIn(f, w).Per
	return step, step < len(f.s.Trace.Steps)
}

// PointAt shows the clicked step, in the strip or in the list.
func (p *Page) PointAt(x, y, w int) bool {
	step, ok := p.Steps.Rows.RowAt(y), false
	switch {
	case p.Task.Value == nil:
	case y >= p.Top && y < p.Top+p.High:
		step, ok = p.StepAt(x, w)
	case p.Steps.Rows.Line > 0 && step >= 0:
		ok = true
	}
	if ok {
		p.host.LookAt(step)
	}
	return ok
}

// listed is the number of lines that the list of steps needs.
const listed = 5

func (p *Page) Render(t *widget.Theme, g widget.Glyphs, w, h int, _ bool) []string {
	f := p.Task.Value
	p.Top, p.High, p.Steps.Rows.Line = 0, 0, 0
	if f == nil {
		return []string{"", t.Put(widget.Dim, "  Computing …")}
	}
	lines := p.answers(t, f, w, h)
	if h >= 24 {
		lines = append(lines, "")
	}
	p.Top = len(lines)
	lines = append(lines, p.run(t, g, f, p.stripIn(f, w), w, widget.Clamp((h-15)/3, 2, 8), h)...)
	p.High = len(lines) - p.Top
	if h >= 24 {
		lines = append(lines, "")
	}
	lines = append(lines, p.facts(t, f, w, h, h-len(lines))...)
	if rest := h - len(lines); rest >= listed && p.Steps.Rows.Table != nil {
		lines = append(lines, "")
		p.Steps.Rows.Line = len(lines)
		lines = append(lines, p.Steps.Rows.Render(t, w, rest-1, true, "")...)
	}
	return lines
}

// answers returns the lines at the top of the page: the text, how long the step took, what limits it, what to
// fix first, and what to press next.
func (p *Page) answers(t *widget.Theme, f *Facts, w, h int) []string {
	const low = 14 // a page with fewer lines has one line for each answer
	high := 1
	if h >= low {
		high = widget.Clamp(h/6, 2, 8)
	}
	text := func() []string { return f.Text(t, w, high) }
	lines := p.text.with(textKey{f, t, w, high}, text)
	lines = append(lines, widget.Cut(" "+f.Candidates(w-2), w))
	if sampled := f.Drawn(); h >= 24 && sampled != nil {
		lines = append(lines, t.Put(widget.Dim, widget.Cut(" "+Packed(sampled, w-2, 1)[0], w)))
	}
	lines = append(lines, t.Put(widget.Strong, " "+f.Took().Fit(w-2)))
	said := p.verdict(f)
	verdict := widget.WrapIndented(said, w-2)
	if h < 18 {
		verdict = []string{Clauses(said, w-1)}
	}
	for _, l := range verdict {
		lines = append(lines, t.Put(widget.Strong, " "+l))
	}
	first := f.first.Draw(t, p.now, w)
	if first != "" {
		lines = append(lines, first)
	}
	if hint := p.host.Hint(); hint != "" && (h >= low || first == "") {
		lines = append(lines, t.Put(widget.Accent, " "+widget.Cut(hint, w-2)))
	}
	return lines
}

// facts returns the lines below the strip, at most `most` lines: the tracks, the experts, the counts and the
// cold start.
func (p *Page) facts(t *widget.Theme, f *Facts, w, h, most int) []string {
	var facts []string
	most = max(0, most)
	if !f.imported() { // a profile does not record when its dispatches ran
		facts = append(facts, p.tracksIn(t, f, w, h >= 18)...)
	}
	for _, line := range expertload.Strips(f.routers, widget.Clamp((h-20)/4, 1, 6), w-2) {
		facts = append(facts, t.Put(widget.GraphA, " "+line))
	}
	few := max(1, h/10)
	cold := Packed(f.coldStart(), w-2, widget.Clamp(most-len(facts)-few, 0, 2))
	if spare := most - len(facts) - len(cold) - few; spare < listed { // lines that would be blank
		few += max(0, spare)
	}
	if room := most - len(facts); room > 0 {
		facts = append(facts, widget.Indent(Packed(counted(f.Sum), w-2, min(room, few)))...)
	}
	for _, l := range cold {
		facts = append(facts, t.Put(widget.Dim, " "+l))
	}
	return facts[:min(len(facts), most)]
}

// verdict returns the text that says what limits the step.
func (p *Page) verdict(f *Facts) string {
	said := widget.MarkClosed + " " + report.Verdict(f.Sum)
	if p.now.Live && !p.now.Running && !f.Sum.Planned && f.Sum.FewSamples && f.first.Costed() {
		return said + command.Keyed("; press {cost} for more samples")
	}
	return said
}

// run returns the lines of the chart of steps and of the lanes below it: cursor, events and marks. A page
// with few lines shows fewer lanes.
func (p *Page) run(t *widget.Theme, g widget.Glyphs, f *Facts, s *strip, w, chart, h int) []string {
	lines := s.Chart(t, g, chart)
	cursor, legend := "", s.Legend()
	for n := len(legend); n >= 0; n-- { // as much of the legend as fits
		var fits bool
		if cursor, fits = s.lane("", s.Cursor(f.s.Step, f.s.Base), strings.Join(legend[:n], "  "), w); fits {
			break
		}
	}
	lines = append(lines, t.Put(widget.Accent, cursor))
	words := printable.Clean(s.Said(f.s.Step))
	if len(p.now.Events) > 0 {
		signs := strings.Join(s.Signs, "")
		line, fits := s.lane("event", signs,
			words+command.Keyed("   {next event} next {previous event} back"), w)
		if !fits {
			line, fits = s.lane("event", signs, words, w)
		}
		const least = 12 // minimum width at which the words are useful, in cells
		if room := w - widget.Width(line) - 3; !fits && h < 18 && room >= least {
			line, _ = s.lane("event", signs, Clauses(words, room), w)
		}
		if lines = append(lines, line); !fits && h >= 18 {
			lines = append(lines, widget.Blank(widget.Axis+1)+Clauses(words, w-widget.Axis-1))
		}
	}
	if from, to := p.now.From, p.now.To; from >= 0 && to < len(s.steps) && h >= 14 {
		line, _ := s.lane("mark", s.Marked(from, to), "", w)
		lines = append(lines, line)
	}
	return lines
}

// Took returns a sentence about the time of the untimed step: the CPU time before the GPU starts, the GPU
// time, and the CPU time after the GPU has ended. A second sentence says that the times below are those of a
// timed run.
func (f *Facts) Took() table.Line {
	if f.imported() {
		return table.Title(append([]table.Segment{
			table.Say(0, "%s %s", analyze.SumName, table.Millis(f.Sum.Busy.NS())),
		}, report.StatedStep(f.Sum)...)...)
	}
	line := table.Line{Separator: " "}
	say := func(rank int, format string, args ...any) {
		line.Segments = append(line.Segments, table.Say(rank, format, args...))
	}
	what := "This token"
	switch step := f.Sum.Step; {
	case step.Phase == trace.Execute:
		what = "This execution"
	case step.Phase == trace.Prefill:
		what = fmt.Sprintf("Reading %s", widget.Plural(len(step.Tokens), "token"))
	}
	u, wall := &f.Sum.Untimed, report.Millis(f.Sum.Wall)
	switch {
	case f.Sum.Planned:
		say(0, "%s was planned but not run: its time is unknown.", what)
		return line
	case !u.Known():
		say(0, "%s took %s with timing.", what, wall)
		say(1, "Its time without timing is unknown.")
		return line
	case !analyze.Measured(u.Wall):
		say(0, "%s took %s on the GPU.", what, report.Millis(u.GPU))
	default:
		took := what + " took " + report.Millis(u.Wall)
		part := table.Segment{Text: took + f.split(u) + ".", Short: took + "."}
		if u.From != "" && f.split(u) == "" {
			part.Text = fmt.Sprintf("%s (median of %s).", took, widget.Plural(u.N, "untimed run"))
		}
		line.Segments = []table.Segment{part}
	}
	if inTimed(f.Sum.Step) && analyze.Measured(f.Sum.Wall) {
		line.Segments = append(line.Segments, table.Segment{
			Rank: 1, Text: "The times below are from the timed run, " + wall + ".",
			Short: "Below: timed, " + wall + ".",
		})
	}
	return line
}

// split returns the parts of the time of an untimed step, in ms, for a sentence. It returns "" if the parts
// are unknown.
func (f *Facts) split(u *analyze.Untimed) string {
	if !report.Divided(u) {
		return ""
	}
	before, ok1 := u.Before.NS()
	after, ok2 := u.After.NS()
	if ok1 && ok2 {
		return fmt.Sprintf(": CPU %s, GPU %s, CPU %s", table.MillisBare(before, true),
			table.MillisBare(u.GPU.NS()), table.MillisBare(after, true))
	}
	return fmt.Sprintf(": CPU %s, GPU %s", table.MillisBare(u.CPU().NS()), table.MillisBare(u.GPU.NS()))
}

// coldStart returns how the time before the first token was spent, or nil if the trace does not contain these
// times.
func (f *Facts) coldStart() []string {
	list := tracks.ColdStart(f.s.Index)
	if len(list) == 0 {
		return nil
	}
	total := int64(0)
	parts := make([]string, 0, len(list)+1)
	for _, o := range list {
		ns, ok := o.NS.NS()
		total += ns
		parts = append(parts, o.Phase+" "+table.MillisBare(ns, ok))
	}
	return append([]string{"cold start " + table.Millis(total, true)}, parts...)
}
