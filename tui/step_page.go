package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/trace"
	"gpuscope/trace/inspect"
	"gpuscope/trace/table"
	"gpuscope/tui/command"
	"gpuscope/tui/widget"
)

// stepPage is view 1: what was generated, what a step costs and where its wall time goes, and where in the
// run something happened.
type stepPage struct {
	basics
	steps listPage
	task  widget.Task[summaryBase, *stepFacts]
	host  host
	part  int      // of the GPU's track, that is drawn alone; -1: all of it is drawn
	now   snapshot // that was loaded last: what happened, and what is marked

	strip   *strip
	stripOf stripKey
	high    int // lines of the strip with its lanes, as last drawn

	// What takes its time to draw, as it was drawn last.
	tracks drawn[tracksKey]
	text   drawn[textKey]
}

// summaryBase is what the page is of: a step and what it is compared with, in a version of the data.
type summaryBase struct {
	summaryKey
	base int
}

// stepsKey is what the list of steps is of: the steps, and what they are compared with.
type stepsKey struct {
	index   *inspect.Index
	against *inspect.Base
}

// stepFacts are what takes the longer the more steps there are. A job gathers them; they do not change.
type stepFacts struct {
	s               snapshot
	sum             *inspect.StepSummary
	prefill, decode int
	costed          bool    // costs of a step were measured
	scale           float64 // ns at the top of the strip
	words           []word  // of the text around the step
	tracks          *inspect.Tracks
	pace            table.Line // how fast the run is
}

func newStepPage(h host, _ *widget.Log) View {
	p := &stepPage{host: h, steps: listOf("steps"), part: -1}
	p.steps.rows.PlainColumns = true
	p.steps.rows.GiveUp = []string{
		"timing", "cold", "submits", "polls", "gc_ms", "compiled", "bind_groups",
		"passes", "levels", "dispatches", "idle_ms", "gaps_ms",
	}
	return p
}

func (p *stepPage) actions() []command.Action {
	return []command.Action{{Name: "mark step"}, {Name: "zoom in", Off: p.undivided, Run: p.zoomIn}}
}

// move goes to another step, or while a part of the GPU's track is open up and down through the parts.
func (p *stepPage) move(m widget.Motion) {
	if by := p.stepsBy(m); by != 0 {
		p.host.ShowStep(by)
	}
}

// scrolls is one: the wheel goes to the next step.
func (p *stepPage) scrolls() int { return 1 }

func (p *stepPage) takes() inspect.Takes { return inspect.OneStep }

func (p *stepPage) load(j *widget.Jobs, s snapshot, _ int) {
	p.now = s
	if s.step < 0 || s.trace == nil {
		p.task.Clear(j)
		p.steps.rows.Unload(j)
		return
	}
	p.task.Want(j, summaryBase{summaryKey{s.version, s.step}, s.base},
		func(ctx context.Context) (*stepFacts, error) { return gather(ctx, s) }, nil)
	p.steps.rows.Load(j, stepsKey{s.index, s.against}, s, s.running,
		func(ctx context.Context) (*table.Table, error) {
			return p.steps.from.Of(ctx, s.index, inspect.Options{Base: s.against})
		})
	p.steps.rows.GoTo(s.step)
}

// gather looks at all steps.
func gather(ctx context.Context, s snapshot) (*stepFacts, error) {
	f := &stepFacts{s: s, sum: s.index.Summary(s.step), tracks: s.index.Tracks(s.step)}
	var decodes []float64
	all := 0.0
	for i := range s.trace.Steps {
		step := &s.trace.Steps[i]
		switch step.Phase {
		case "prefill":
			f.prefill++
		case "decode":
			f.decode++
		}
		f.costed = f.costed || len(step.Costs) > 0
		if all = max(all, wallNS(step)); step.Phase != "prefill" && !step.Cold {
			decodes = append(decodes, wallNS(step))
		}
	}
	// The scale is that of decode steps that were not cold, at most three times their median: a prefill, or
	// one step that was held up, would leave nothing of the others.
	if slices.Sort(decodes); len(decodes) > 0 {
		f.scale = min(decodes[len(decodes)-1], 3*decodes[len(decodes)/2])
	}
	if f.scale == 0 {
		f.scale = all
	}
	f.words = wordsAround(s)
	f.pace = s.index.Pace(s.step)
	return f, ctx.Err()
}

// wallNS is the wall time of a step, 0 where it was not measured.
func wallNS(s *trace.Step) float64 {
	ns, _ := s.CPU.TotalNS.NS()
	return float64(ns)
}

func (p *stepPage) title(int) []table.Part {
	f := p.task.Value
	if f == nil {
		return []table.Part{{Rank: 0, Text: "Step"}}
	}
	t := f.s.trace
	steps := widget.Plural(len(t.Steps), "step")
	if n := t.DroppedSteps; n > 0 { // out of the recorder's budget
		steps += fmt.Sprintf(" (%s older dropped)", widget.Count(n))
	}
	parts := []table.Part{table.Say(0, "%s: %d prefill ▒, %d decode █", steps, f.prefill, f.decode)}
	if base := f.s.against; base != nil {
		parts = append(parts, table.Say(2, "base %s", base.Scope.Called()), f.s.index.Other(base.Index))
	}
	if upto := f.s.state.Upto; upto != nil && f.s.live {
		parts = append(parts, table.Say(0, "s%d stands after dispatch %d: the rest of it has not run again",
			f.s.state.Step, *upto))
	}
	return parts
}

// about is the line over the page: how fast the run is, up to the step that is looked at.
func (p *stepPage) about(s snapshot) (table.Line, bool) {
	if f := p.task.Value; f != nil && f.s.named(p.takes()) == s.named(p.takes()) {
		return f.pace, true
	}
	return table.Line{}, true
}

// steps that a motion goes.
var steps = map[widget.Motion]int{
	widget.Left: -1, widget.Up: -1, widget.Right: 1, widget.Down: 1, widget.HalfUp: -5, widget.HalfDown: 5,
	widget.PageUp: -10, widget.PageDown: 10, widget.Top: -1 << 30,
	widget.Bottom: 1 << 30,
}

// stepsBy is how many steps a motion goes. While a part of the GPU's track is open, up and down go through
// the parts.
func (p *stepPage) stepsBy(m widget.Motion) int {
	if p.part >= 0 && (m == widget.Up || m == widget.Down) {
		if f := p.task.Value; f != nil {
			p.part = widget.Clamp(p.part+steps[m], 0, max(0, len(f.tracks.GPU)-1))
		}
		return 0
	}
	return steps[m]
}

// undivided says why no part of the GPU's track can be opened, nor closed; "" where one can.
func (p *stepPage) undivided() string {
	if f := p.task.Value; p.part < 0 && (f == nil || len(f.tracks.GPU) < 2) {
		return "the parts of this step were not timed: steps at timing level block or dispatch have some"
	}
	return ""
}

// zoomIn opens a part of the GPU's track, the longest first, or closes it.
func (p *stepPage) zoomIn() {
	if p.back() {
		return
	}
	p.part = 0
	gpu := p.task.Value.tracks.GPU
	for i := range gpu {
		if gpu[i].NS() > gpu[p.part].NS() {
			p.part = i
		}
	}
}

// back closes the part that is open, and says whether one was.
func (p *stepPage) back() bool {
	was := p.part >= 0
	p.part = -1
	return was
}

func (p *stepPage) copied() string { return p.steps.rows.RowText() }

// stripKey is what a strip is made of.
type stripKey struct {
	facts   *stepFacts
	events  *inspect.Event // the first of them
	n       int
	columns int
}

// stripIn is the strip on a page of w cells.
func (p *stepPage) stripIn(f *stepFacts, w int) *strip {
	key := stripKey{facts: f, n: len(p.now.events), columns: stripColumns(w)}
	if key.n > 0 {
		key.events = &p.now.events[0]
	}
	if p.strip == nil || p.stripOf != key {
		p.strip, p.stripOf = newStrip(f.s.trace.Steps, p.now.events, f.scale, key.columns), key
	}
	return p.strip
}

// tracksKey is what the lines of the tracks are made of.
type tracksKey struct {
	facts   *stepFacts
	theme   *widget.Theme
	part, w int
	figures bool
}

// textKey is what the lines of the text are made of.
type textKey struct {
	facts *stepFacts
	theme *widget.Theme
	w, h  int
}

// drawn are lines that are drawn anew only where what they show is another.
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

// tracksIn are the tracks on a page of w cells.
func (p *stepPage) tracksIn(t *widget.Theme, f *stepFacts, w int, figures bool) []string {
	return p.tracks.with(tracksKey{f, t, p.part, w, figures}, func() []string {
		var part *inspect.Span
		if p.part >= 0 && p.part < len(f.tracks.GPU) {
			part = &f.tracks.GPU[p.part]
		}
		return tracks(t, f.s.index, f.s.step, f.tracks, part, w, figures)
	})
}

// stripColumns are the columns of the strip on a page of w cells.
func stripColumns(w int) int { return max(1, w-widget.Axis-2) }

// stepAt is the step whose column in the strip is at a cell of a page of w cells.
func (p *stepPage) stepAt(x, w int) (step int, ok bool) {
	f := p.task.Value
	if f == nil || x < widget.Axis+1 {
		return 0, false
	}
	step = (x - widget.Axis - 1) * p.stripIn(f, w).per
	return step, step < len(f.s.trace.Steps)
}

// pointAt shows the step whose column of the strip, or whose row, is there.
func (p *stepPage) pointAt(x, y, w int) bool {
	step, ok := p.steps.rows.RowAt(y), false
	switch {
	case p.task.Value == nil:
	case y < p.high:
		step, ok = p.stepAt(x, w)
	case p.steps.rows.Line > 0 && step >= 0:
		ok = true
	}
	if ok {
		p.host.LookAt(step)
	}
	return ok
}

func (p *stepPage) render(t *widget.Theme, g widget.Glyphs, w, h int, _ bool) []string {
	f := p.task.Value
	p.high, p.steps.rows.Line = 0, 0
	if f == nil {
		return []string{"", t.Put(widget.Dim, "  Computing …")}
	}
	lines := p.run(t, g, f, p.stripIn(f, w), w, widget.Clamp((h-9)/3, 2, 8), h)
	p.high = len(lines)

	facts := p.facts(t, f, w, h, 0)
	high := widget.Clamp(h-len(lines)-len(facts), 1, max(2, h/5))
	text := func() []string { return f.text(t, w, high) }
	lines = append(lines, p.text.with(textKey{f, t, w, high}, text)...)
	const listed = 5 // lines that the list of steps needs
	rest := h - len(lines) - len(facts)
	if rest >= listed && p.steps.rows.Table != nil {
		rest -= listed
	}
	if rest > 0 {
		facts = p.facts(t, f, w, h, rest)
	}
	lines = append(lines, facts...)
	if rest := h - len(lines); rest >= listed && p.steps.rows.Table != nil {
		lines = append(lines, "")
		p.steps.rows.Line = len(lines)
		lines = append(lines, p.steps.rows.Render(t, w, rest-1, true, "")...)
	}
	return lines
}

// facts are what stands under the text. What does not fit in the lines that it has on a page of this height
// takes more of them where as many would be blank.
func (p *stepPage) facts(t *widget.Theme, f *stepFacts, w, h, blank int) []string {
	facts := []string{widget.Cut(" "+f.candidates(w-2), w)}
	if drawn := f.drawn(); h >= 18 && drawn != nil {
		facts = append(facts, t.Put(widget.Dim, widget.Cut(" "+packed(drawn, w-2, 1)[0], w)))
	}
	if h >= 16 {
		facts = append(facts, "")
	}
	facts = append(facts, t.Put(widget.Strong, " "+f.split().Fit(w-2)))
	facts = append(facts, p.tracksIn(t, f, w, h >= 16)...)
	said := p.verdict(f)
	verdict := widget.WrapIndented(said, w-2)
	if h < 18 {
		if more := len(verdict) - 1; more <= blank {
			blank -= more
		} else {
			verdict = []string{clauses(said, w-1)}
		}
	}
	few := max(1, h/10)
	counts := packed(counted(f.sum), w-2, few+blank)
	facts = append(facts, widget.Indent(counts)...)
	if cold := f.coldStart(); h >= 18 && cold != nil {
		for _, l := range packed(cold, w-2, 1+blank-max(0, len(counts)-few)) {
			facts = append(facts, t.Put(widget.Dim, " "+l))
		}
	}
	for _, l := range verdict {
		facts = append(facts, t.Put(widget.Strong, " "+l))
	}
	return facts
}

// verdict says what bounds the step, and where no costs were measured yet how to find out what to fix.
func (p *stepPage) verdict(f *stepFacts) string {
	said := widget.MarkClosed + " " + f.sum.Verdict
	switch {
	case !p.now.live || p.now.running || f.sum.Planned:
		return said
	case f.sum.FewSamples:
		return said + command.Keyed("; {Dispatches}, then {cost}: more samples, and what each row costs")
	case f.costed:
		return said
	}
	return said + command.Keyed("; {Dispatches}, then {cost}: what each row costs")
}

// run draws the strip with its lanes, of which a low page has fewer.
func (p *stepPage) run(t *widget.Theme, g widget.Glyphs, f *stepFacts, s *strip, w, chart, h int) []string {
	lines := s.chart(t, g, chart)
	cursor, legend := "", s.legend()
	for n := len(legend); n >= 0; n-- { // as much of it as fits
		var fits bool
		if cursor, fits = s.lane("", s.cursor(f.s.step, f.s.base), strings.Join(legend[:n], "  "), w); fits {
			break
		}
	}
	lines = append(lines, t.Put(widget.Accent, cursor))
	words := printable.Clean(s.said(f.s.step))
	if len(p.now.events) > 0 {
		signs := strings.Join(s.signs, "")
		line, fits := s.lane("event", signs, words+command.Keyed("   {next event} next {event before} back"), w)
		if !fits {
			line, fits = s.lane("event", signs, words, w)
		}
		const least = 12 // cells that words say something in
		if room := w - widget.Width(line) - 3; !fits && h < 18 && room >= least {
			line, _ = s.lane("event", signs, clauses(words, room), w)
		}
		if lines = append(lines, line); !fits && h >= 18 {
			lines = append(lines, widget.Blank(widget.Axis+1)+clauses(words, w-widget.Axis-1))
		}
	}
	if from, to := p.now.from, p.now.to; from >= 0 && to < len(s.steps) && h >= 14 {
		line, _ := s.lane("mark", s.marked(from, to), "", w)
		lines = append(lines, line)
	}
	return lines
}

// split says what the step takes untimed: before, on and behind the GPU.
func (f *stepFacts) split() table.Line {
	u := &f.sum.Untimed
	if !u.Known() && f.sum.Planned {
		return table.Title(table.Say(0, "step: planned, not run; how long it takes is not known"))
	}
	if !u.Known() {
		run := ""
		if f.tracks.Of != "" {
			run = ", the " + f.tracks.Of
		}
		return table.Title(table.Say(0, "step: %s as timed%s; what it takes untimed was not measured",
			table.Millis(f.sum.Wall.NS()), run))
	}
	var long, short []string
	for _, part := range []struct {
		time            trace.Time
		what, shortWhat string
	}{{u.Before, "CPU before it", "CPU"}, {u.GPU, "GPU", "GPU"}, {u.After, "after it", "after"}} {
		if ns, ok := part.time.NS(); ok {
			figure := table.MillisBare(ns, true)
			long, short = append(long, figure+" "+part.what), append(short, figure+" "+part.shortWhat)
		}
	}
	if cpu, ok := u.CPU().NS(); ok && len(long) == 1 { // what of it came first was not measured
		figure := []string{table.MillisBare(cpu, true) + " CPU"}
		long, short = append(figure, long...), append(figure, short...)
	}
	sum := func(parts []string) string {
		return widget.Joined(" = ", "step "+table.Millis(u.Wall.NS()), strings.Join(parts, " + "))
	}
	parts := []table.Part{{Rank: 0, Text: sum(long), Short: sum(short)}}
	if u.From != "" {
		parts = append(parts, table.Say(2, "untimed, %s", u.From))
	}
	if step := f.sum.Step; inTimed(step) {
		timed := table.Part{Rank: 1, Text: "below as timed"}
		if ns, ok := step.CPU.TotalNS.NS(); ok {
			timed.Text += ", " + table.MillisBare(ns, true)
		}
		parts = append(parts, timed)
	}
	return table.Title(parts...)
}

// coldStart says where the time before the first token went, nil where the trace does not.
func (f *stepFacts) coldStart() []string {
	list := f.s.index.ColdStart()
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
