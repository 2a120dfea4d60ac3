package diff

import (
	"fmt"
	"slices"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/noise"
)

// Measure is what a total measures.
type Measure string

// The measures of a step.
const (
	Wall Measure = "wall" // wall time of a step, on the clock of the host
	Span Measure = "gpu"  // from the first to the last GPU timestamp of a step
)

// Total is a time of whole steps: the median of several steps.
type Total struct {
	// Scope is "step" for the selected steps, or a phase for all warm steps of this phase.
	Scope   string
	Measure Measure
	Times   Times
	// Tokens is the number of tokens that each of the steps read, or 0 if it is not the same for all.
	Tokens int
	// Repeats reports that the times are those of untimed repeats of one step on each side (trace.Whole).
	// Such times are used if the recorded steps are too few or cannot be compared.
	Repeats bool
	// Timed reports that blocks or dispatches were timed in the steps, which makes a step longer. It is false
	// for steps that other engines timed.
	Timed bool
	// Why is the reason why the times cannot be compared. It is "" if they can be compared.
	Why string

	band float64
	pair noise.Pair
}

// Selected is the scope of the selected steps.
const Selected = "step"

// TokensPerS returns the rates of both sides in tokens per second, and false if they are not known. Only wall
// times have rates.
func (t *Total) TokensPerS() (base, now float64, ok bool) {
	if t.Measure != Wall || t.Tokens == 0 || !t.Times.Both() || t.Times.Base.NS <= 0 || t.Times.Now.NS <= 0 {
		return 0, 0, false
	}
	n := float64(t.Tokens) * 1e9
	return n / t.Times.Base.NS, n / t.Times.Now.NS, true
}

// Total returns the total of a scope and a measure, or nil.
func (d *Diff) Total(scope string, of Measure) *Total {
	i := slices.IndexFunc(d.Totals, func(t Total) bool { return t.Scope == scope && t.Measure == of })
	if i < 0 {
		return nil
	}
	return &d.Totals[i]
}

func (d *Diff) addTotals() {
	// The arguments are narrowed selections.
	add := func(scope string, base, now analyze.Selection) {
		for _, m := range []Measure{Wall, Span} {
			t, ok := d.total(scope, m, base, now)
			if !ok || t.Why != "" || min(t.Times.Base.N, t.Times.Now.N) < trace.FewestWithin {
				if again, known := d.repeats(scope, m, base, now); known {
					t, ok = again, true
				}
			}
			if ok {
				d.Totals = append(d.Totals, t)
			}
		}
	}
	add(Selected, d.Base.Selection, d.Now.Selection)
	for _, phase := range trace.Phases {
		base, now := d.Base, d.Now
		base.Selection, now.Selection = base.Index.Phase(phase), now.Index.Phase(phase)
		if len(base.Selection.Steps) > 0 && len(now.Selection.Steps) > 0 {
			base, now = Narrowed(base, now)
			add(string(phase), base.Selection, now.Selection)
		}
	}
}

// mode is how a step ran. Times of steps that ran differently are not compared: timing makes a step longer,
// and pipelined steps overlap.
type mode struct {
	timing    trace.Timing
	pipelined bool
}

// total computes one total. It compares only steps that ran in the same mode, and chooses the mode with the
// most steps on both sides. The bool is false if no step of one side has a time.
func (d *Diff) total(scope string, of Measure, base, now analyze.Selection) (Total, bool) {
	a, b := modes(d.Base.Index, base, of), modes(d.Now.Index, now, of)
	if len(a) == 0 || len(b) == 0 {
		return Total{}, false
	}
	t := Total{Scope: scope, Measure: of}
	var best *mode
	most := 0
	for _, timing := range []trace.Timing{
		trace.TimingOff, trace.TimingStep, trace.TimingBlock, trace.TimingDispatch,
	} {
		for _, pipelined := range []bool{true, false} {
			m := mode{timing, pipelined}
			if n := min(len(a[m]), len(b[m])); n > most {
				best, most = &m, n
			}
		}
	}
	if best == nil {
		t.Why = "the steps ran at different timing levels, or one side was pipelined"
		return t, true
	}
	left, right := a[*best], b[*best]
	t.Timed = best.timing.InDetail() && (d.Base.Index.Trace.Engine == "" || d.Now.Index.Trace.Engine == "")
	t.Tokens = tokensOf(d.Base.Index, left)
	if n := tokensOf(d.Now.Index, right); n != t.Tokens || n == 0 {
		if n != t.Tokens {
			t.Why = fmt.Sprintf("the steps read different numbers of tokens: %d and %d", t.Tokens, n)
		}
		t.Tokens = 0
	}
	var before, after noise.Series
	t.Times.Base, before = timesOf(d.Base.Index, left, of)
	t.Times.Now, after = timesOf(d.Now.Index, right, of)
	t.pair.Base, t.pair.Now = []noise.Series{before}, []noise.Series{after}
	t.pair.BaseNS, t.pair.NowNS = t.Times.Base.NS, t.Times.Now.NS
	t.Times.DeltaNS = t.Times.Now.NS - t.Times.Base.NS
	t.setBand(spanOf(d.Base.Index, left), spanOf(d.Now.Index, right))
	return t, true
}

// setBand sets the band of a total: the relative difference that is expected between two equal runs. The
// arguments are the GPU spans of the steps of both sides in ns, or 0 if they are not known.
func (t *Total) setBand(base, now float64) {
	t.band = noise.SpanBand
	if t.Measure == Wall {
		t.band = max(noise.WallBand(t.Times.Base.NS, base), noise.WallBand(t.Times.Now.NS, now))
	}
}

// spanOf returns the median GPU span of steps in ns, or 0 if the span of a step is not known.
func spanOf(x *analyze.Index, steps []int) float64 {
	for _, step := range steps {
		if _, ok := timeOf(&x.Trace.Steps[step], Span); !ok {
			return 0
		}
	}
	t, _ := timesOf(x, steps, Span)
	return t.NS
}

// repeats compares, for each side, the untimed repeats of the last step that has repeats. The bool is false
// if a side has none, or if the two steps read different numbers of tokens.
func (d *Diff) repeats(scope string, of Measure, base, now analyze.Selection) (Total, bool) {
	t := Total{Scope: scope, Measure: of, Repeats: true}
	var tokens [2]int
	var ok [2]bool
	t.Times.Base, tokens[0], ok[0] = wholeOf(d.Base.Index, base, of)
	t.Times.Now, tokens[1], ok[1] = wholeOf(d.Now.Index, now, of)
	t.Tokens, t.Times.DeltaNS = tokens[1], t.Times.Now.NS-t.Times.Base.NS
	before, _, _ := wholeOf(d.Base.Index, base, Span)
	after, _, _ := wholeOf(d.Now.Index, now, Span)
	t.setBand(before.NS, after.NS)
	return t, ok[0] && ok[1] && tokens[0] == tokens[1]
}

// wholeOf returns the time of the untimed repeats of the last step that has repeats, and the step's number of
// tokens.
func wholeOf(x *analyze.Index, s analyze.Selection, of Measure) (t Time, tokens int, ok bool) {
	for _, step := range slices.Backward(s.Steps) {
		at := &x.Trace.Steps[step]
		w := at.Whole
		if w == nil || w.N < trace.FewestWithin {
			continue
		}
		ns, off := trace.Measured(w.NS), w.OffNS
		if of == Wall {
			ns, off = w.WallNS, w.WallOff
		}
		value, measured := ns.NS()
		e, known := off.NS()
		if measured && known && value > 0 {
			return Time{float64(value), w.N, true, float64(e), true}, analyze.TokensRead(at), true
		}
	}
	return Time{}, 0, false
}

// estimate returns the time in the form in which package noise compares it.
func (t *Time) estimate() noise.Estimate { return noise.Estimate{NS: t.NS, ErrorNS: t.ErrorNS, N: t.N} }

// modes groups the steps of a selection by the mode in which they ran. Steps without a time are left out.
func modes(x *analyze.Index, s analyze.Selection, of Measure) map[mode][]int {
	list := map[mode][]int{}
	for _, step := range s.Steps {
		at := &x.Trace.Steps[step]
		if _, ok := timeOf(at, of); ok {
			m := mode{at.Timing, at.Pipelined}
			list[m] = append(list[m], step)
		}
	}
	return list
}

func timeOf(s *trace.Step, of Measure) (int64, bool) {
	ns, ok := s.CPU.TotalNS.NS()
	if of == Span {
		if s.GPU == nil {
			return 0, false
		}
		ns, ok = s.GPU.SpanNS.NS()
	}
	return ns, ok && ns > 0
}

func timesOf(x *analyze.Index, steps []int, of Measure) (t Time, s noise.Series) {
	var all []int64
	for _, step := range steps {
		at := &x.Trace.Steps[step]
		ns, _ := timeOf(at, of)
		all = append(all, ns)
		s.NS, s.Keys = append(s.NS, float64(ns)), append(s.Keys, noise.Key(at))
	}
	slices.Sort(all)
	t = Time{NS: trace.Quantile(all, 0.5), N: len(all), Measured: true}
	t.withError(all, 1)
	return t, s
}

// tokensOf returns the number of tokens that each of the steps read, or 0 if it is not the same for all.
func tokensOf(x *analyze.Index, steps []int) int {
	n := analyze.TokensRead(&x.Trace.Steps[steps[0]])
	for _, step := range steps {
		if analyze.TokensRead(&x.Trace.Steps[step]) != n {
			return 0
		}
	}
	return n
}

// Step returns the total of the selected steps that shows best whether the step changed. This is usually
// the wall time. It is the GPU span if only the GPU span can be compared, or if only the GPU span differs
// significantly. Step returns nil if neither was measured on both sides.
func (d *Diff) Step() *Total {
	wall, span := d.Total(Selected, Wall), d.Total(Selected, Span)
	switch {
	case wall == nil, wall.Why != "" && span != nil && span.Why == "",
		!wall.Times.Significant && span != nil && span.Times.Significant:
		return span
	}
	return wall
}

// Dispatches returns the number of dispatches in the last compared step of each side.
func (d *Diff) Dispatches() (base, now int) {
	of := func(x *analyze.Index, s analyze.Selection) int {
		return len(x.Trace.Steps[s.Last()].Dispatches)
	}
	return of(d.Base.Index, d.BaseRows), of(d.Now.Index, d.NowRows)
}

// Most returns the operator with the largest significant difference in time. If deltaNS is negative, Most
// considers only operators that became faster. If deltaNS is positive, it considers only operators that
// became slower. If deltaNS is 0, it considers all operators. Most returns nil if there is no such operator.
func (d *Diff) Most(deltaNS float64) *Group {
	for _, g := range d.GroupsBy(ByOp) { // significant ones first, by size
		if g.Times.Significant && g.Times.DeltaNS*deltaNS >= 0 {
			return g
		}
	}
	return nil
}
