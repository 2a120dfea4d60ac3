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
	High    int // height of the strip with its lanes as last drawn, in lines

	// These fields cache drawn lines.
	tracks drawn[tracksKey]
	text   drawn[textKey]
}

// summaryBase identifies the contents of the page: a step and its baseline in one version of the data.
type summaryBase struct {
	view.SummaryKey
	base int
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
	pace   table.Line // the speed of the run

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

func (p *Page) Load(j *widget.Jobs, s view.Snapshot, _ int) {
	p.now = s
	if s.Step < 0 || s.Trace == nil {
		p.Task.Clear(j)
		p.Steps.Rows.Unload(j)
		return
	}
	p.Task.Want(j, summaryBase{view.SummaryKey{Version: s.Version, Step: s.Step}, s.Base},
		func(ctx context.Context) (*Facts, error) { return gather(ctx, s) }, nil)
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
	f.pace = report.Pace(s.Index, s.Step)
	var err error
	if f.first, err = view.AnswerOf(ctx, s, report.OneStep); err != nil {
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
	if f.execute > 0 {
		parts[0].Text = steps + ", executions of the program █"
	}
	if f.imported() {
		parts[0].Text += " · columns show " + analyze.SumName
	}
	if base := f.s.Against; base != nil {
		parts = append(parts, table.Say(2, "baseline %s", base.Selection.Called()),
			report.OtherTrace(f.s.Index,
				base.Index))
	}
	if upto := f.s.State.Upto; upto != nil && f.s.Live {
		parts = append(parts, table.Say(0, "s%d is paused after dispatch %d",
			f.s.State.Step, *upto))
	}
	return parts
}

// About returns the speed of the run up to the shown step.
func (p *Page) About(s view.Snapshot) (table.Line, bool) {
	if f := p.Task.Value; f != nil && f.s.Named(p.Takes()) == s.Named(p.Takes()) {
		return f.pace, true
	}
	return table.Line{}, true
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
	case y < p.High:
		step, ok = p.StepAt(x, w)
	case p.Steps.Rows.Line > 0 && step >= 0:
		ok = true
	}
	if ok {
		p.host.LookAt(step)
	}
	return ok
}

func (p *Page) Render(t *widget.Theme, g widget.Glyphs, w, h int, _ bool) []string {
	f := p.Task.Value
	p.High, p.Steps.Rows.Line = 0, 0
	if f == nil {
		return []string{"", t.Put(widget.Dim, "  Computing …")}
	}
	lines := p.run(t, g, f, p.stripIn(f, w), w, widget.Clamp((h-9)/3, 2, 8), h)
	p.High = len(lines)

	facts := p.facts(t, f, w, h, 0)
	high := widget.Clamp(h-len(lines)-len(facts), 1, max(2, h/5))
	text := func() []string { return f.Text(t, w, high) }
	lines = append(lines, p.text.with(textKey{f, t, w, high}, text)...)
	const listed = 5 // number of lines that the list of steps needs
	rest := h - len(lines) - len(facts)
	if rest >= listed && p.Steps.Rows.Table != nil {
		rest -= listed
	}
	if rest > 0 {
		facts = p.facts(t, f, w, h, rest)
	}
	lines = append(lines, facts...)
	if rest := h - len(lines); rest >= listed && p.Steps.Rows.Table != nil {
		lines = append(lines, "")
		p.Steps.Rows.Line = len(lines)
		lines = append(lines, p.Steps.Rows.Render(t, w, rest-1, true, "")...)
	}
	return lines
}

// facts returns the lines below the text. A low page also uses `blank` blank lines for facts.
func (p *Page) facts(t *widget.Theme, f *Facts, w, h, blank int) []string {
	facts := []string{widget.Cut(" "+f.Candidates(w-2), w)}
	if drawn := f.Drawn(); h >= 18 && drawn != nil {
		facts = append(facts, t.Put(widget.Dim, widget.Cut(" "+Packed(drawn, w-2, 1)[0], w)))
	}
	if h >= 16 {
		facts = append(facts, "")
	}
	facts = append(facts, t.Put(widget.Strong, " "+f.Split().Fit(w-2)))
	if !f.imported() { // a profile does not record when its dispatches ran
		facts = append(facts, p.tracksIn(t, f, w, h >= 16)...)
	}
	for _, line := range expertload.Strips(f.routers, widget.Clamp((h-20)/4, 1, 6), w-2) {
		facts = append(facts, t.Put(widget.GraphA, " "+line))
	}
	first := ""
	if f.first.Costed() || p.now.Running {
		first = f.first.Draw(t, p.now, w)
	}
	said := p.verdict(f)
	verdict := widget.WrapIndented(said, w-2)
	if h < 18 {
		if more := len(verdict) - 1; more <= blank {
			blank -= more
		} else {
			verdict = []string{Clauses(said, w-1)}
		}
	}
	few := max(1, h/10)
	counts := Packed(counted(f.Sum), w-2, few+blank)
	facts = append(facts, widget.Indent(counts)...)
	roomy := h >= 24 || h >= 18 && first == "" // the headline matters more than the cold start
	if cold := f.coldStart(); roomy && cold != nil {
		for _, l := range Packed(cold, w-2, 1+blank-max(0, len(counts)-few)) {
			facts = append(facts, t.Put(widget.Dim, " "+l))
		}
	}
	for _, l := range verdict {
		facts = append(facts, t.Put(widget.Strong, " "+l))
	}
	if first != "" {
		facts = append(facts, first)
	}
	return facts
}

// verdict returns the text that says what limits the step. Without costs, the text also says how to measure
// costs.
func (p *Page) verdict(f *Facts) string {
	said := widget.MarkClosed + " " + report.Verdict(f.Sum)
	switch {
	case !p.now.Live || p.now.Running || f.Sum.Planned:
		return said
	case f.Sum.FewSamples:
		return said + command.Keyed("; press {cost} to add samples and measure the cost of each row")
	case f.costed:
		return said
	}
	return said + command.Keyed("; press {cost} to measure the cost of each row")
}

// run returns the lines of the strip with its lanes. A page with few lines shows fewer lanes.
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

// Split returns the line that splits the time of the untimed step into CPU time before the GPU starts, GPU
// time, and CPU time after the GPU has ended.
func (f *Facts) Split() table.Line {
	u := &f.Sum.Untimed
	if f.imported() {
		return table.Title(append([]table.Segment{
			table.Say(0, "%s %s", analyze.SumName, table.Millis(f.Sum.Busy.NS())),
		}, report.StatedStep(f.Sum)...)...)
	}
	if !u.Known() && f.Sum.Planned {
		return table.Title(table.Say(0, "planned but not run: time unknown"))
	}
	if !u.Known() {
		run := ""
		if report.TrackRun(f.Tracks) != "" {
			run = ", the " + report.TrackRun(f.Tracks)
		}
		return table.Title(table.Say(0, "timed step %s%s; untimed step time unknown",
			table.Millis(f.Sum.Wall.NS()), run))
	}
	var long, short []string
	for _, part := range []struct {
		time            trace.Time
		what, shortWhat string
	}{
		{u.Before, "CPU before GPU", "CPU"},
		{u.GPU, "GPU", "GPU"},
		{u.After, "CPU after GPU", "after"},
	} {
		if ns, ok := part.time.NS(); ok {
			figure := table.MillisBare(ns, true)
			long, short = append(long, figure+" "+part.what), append(short, figure+" "+part.shortWhat)
		}
	}
	if cpu, ok := u.CPU().NS(); ok && len(long) == 1 { // the CPU time was not split into parts
		figure := []string{table.MillisBare(cpu, true) + " CPU"}
		long, short = append(figure, long...), append(figure, short...)
	}
	if !report.Divided(u) {
		long, short = nil, nil
	}
	sum := func(parts []string) string {
		return widget.Joined(" = ", "step "+table.Millis(u.Wall.NS()), strings.Join(parts, " + "))
	}
	parts := []table.Segment{{Rank: 0, Text: sum(long), Short: sum(short)}}
	if u.From != "" {
		parts = append(parts, table.Say(2, "untimed, %s", u.From))
	}
	if step := f.Sum.Step; inTimed(step) {
		timed := table.Segment{Rank: 1, Text: "times below include timing overhead"}
		if ns, ok := step.CPU.TotalNS.NS(); ok {
			timed.Text += ", " + table.MillisBare(ns, true)
		}
		parts = append(parts, timed)
	}
	return table.Title(parts...)
}

// coldStart returns how the time before the first token was spent, or nil if the trace does not contain this.
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
