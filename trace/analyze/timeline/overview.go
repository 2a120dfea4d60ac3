package timeline

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sort"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
)

// Track is a row of a chart of the run. The tracks of the host come first.
type Track uint8

// The tracks of a chart, from top to bottom.
const (
	HostSteps     Track = iota // steps on the host
	HostPhases                 // phases of the host
	GPUSteps                   // steps on the GPU, from the first dispatch to the last
	GPULayers                  // consecutive dispatches of a layer, or of an operator outside of all layers
	GPUDispatches              // dispatches
	Tracks                     // number of tracks
)

// OnGPU reports whether the track shows times of the GPU.
func (t Track) OnGPU() bool { return t >= GPUSteps }

// MaxRows is the number of rows of the track GPUDispatches. Lanes beyond the last row are added to that row.
const MaxRows = 3

// maxNames is the number of different names by which times are summed. Names beyond it are summed together.
const maxNames = 1024

// Item is what a track shows from one instant to another: a slice, a series of slices, or a time about which
// nothing is known.
type Item struct {
	Track    Track
	Step     int    // index in Trace.Steps
	At       int    // GPUDispatches: index in Step.Dispatches; otherwise the number of the item in its step
	Lane     int    // row of the track: 0, or more for a dispatch that overlaps another one
	Name     string // phase, layer, block or kernel; "" if the item is Unmeasured
	From, To int64
	// NS is the measured time: for a step or a layer on the GPU, the sum over its dispatches. If the
	// dispatches were not timed, NS is the time of the whole item.
	NS     int64
	Slices int // number of dispatches in the item; 0 on the host
	// Unmeasured is set if it is not known what happened: the item is neither busy nor idle.
	Unmeasured bool
	// Assumed is set if the start was not measured. It is then assumed that the step starts at the end of the
	// previous step or, on the GPU, directly after the submit.
	Assumed bool

	group, kernel int
	summed        bool // the times of the items inside are already added to the track
}

// Pause is a time between two steps that is shortened because nothing of it was recorded.
type Pause struct {
	From, To int64 // on the shortened axis
	CutNS    int64 // by how much the pause is shortened
	Before   int   // index of the step that follows
}

// part is the measured time of one group on a row.
type part struct {
	NS          int64
	group       int32
	track, lane uint8
}

// Overview is a time axis with sums for each step, so that any part of a long run can be drawn fast (see
// Window). Its axis is that of a Timeline, with long pauses between steps shortened. All times are in ns from
// the start of the axis.
type Overview struct {
	Line   *Timeline
	End    int64 // last instant of all steps
	Pauses []Pause
	// Lanes is the number of rows that the track GPUDispatches needs: at least 1, at most MaxRows.
	Lanes int
	// Timed reports that at least one dispatch was timed while its step ran. GPUTimed reports that at least
	// one step was timed on the GPU.
	Timed, GPUTimed bool

	groups  names // layers, operators, blocks and phases
	kernels names
	layerOf []int // number in groups of each dispatch
	kernel  []int // number in kernels of each plan
	steps   []sums
}

// sums are the sums of a step.
type sums struct {
	shift      int64    // what to subtract from times on the Timeline
	from, to   [2]int64 // first and last instant on the host and on the GPU; from > to if there is nothing
	parts      []part   // by layer or phase
	kernels    []part   // by kernel
	unmeasured [Tracks]int64
	items      [Tracks]int32
	reached    int64 // last instant of this step and all earlier ones
	begins     int64 // first instant of this step and all later ones
}

// pauseOf and pauseAs: a pause longer than pauseOf times the median step is shortened to pauseAs times the
// median step.
const (
	pauseOf = 10
	pauseAs = 1
)

// NewOverview computes the sums of all steps. It reads each recorded dispatch a few times, so it is called in
// the background. The error is that of the context.
func NewOverview(ctx context.Context, x *analyze.Index) (*Overview, error) {
	o := &Overview{
		Line: New(x), Lanes: 1, groups: newNames(), kernels: newNames(),
		steps: make([]sums, len(x.Trace.Steps)),
	}
	g := &x.Trace.Graph
	o.layerOf = make([]int, len(g.Dispatches))
	for i := range g.Dispatches {
		o.layerOf[i] = o.groups.number(layerOf(&g.Ops[g.Dispatches[i].Op]))
	}
	o.kernel = make([]int, len(x.Trace.Plans))
	for i := range o.kernel {
		o.kernel[i] = o.kernels.number(x.Trace.Plans[i].Kernel)
	}
	o.shorten()
	s, d := &Step{}, drawer{}
	byLayer, byKernel := &tally{}, &tally{}
	for i := range o.steps {
		if i%64 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		sum := &o.steps[i]
		sum.from, sum.to = [2]int64{math.MaxInt64, math.MaxInt64}, [2]int64{-1, -1}
		o.step(s, i, &d)
		o.each(s, func(it *Item) {
			side := 0
			if it.Track.OnGPU() {
				side = 1
				o.GPUTimed = o.GPUTimed || !it.Unmeasured
			}
			sum.from[side], sum.to[side] = min(sum.from[side], it.From), max(sum.to[side], it.To)
			if it.Unmeasured {
				sum.unmeasured[it.Track] += it.To - it.From
				return
			}
			sum.items[it.Track]++
			if it.summed {
				return
			}
			byLayer.add(part{it.To - it.From, int32(it.group), uint8(it.Track), uint8(it.Lane)})
			if it.Track == GPUDispatches {
				o.Timed = true
				o.Lanes = max(o.Lanes, it.Lane+1)
				byKernel.add(part{it.To - it.From, int32(it.kernel), 0, 0})
			}
		})
		sum.parts, sum.kernels = byLayer.take(), byKernel.take()
		o.End = max(o.End, sum.to[0], sum.to[1])
		sum.reached = o.End
	}
	begins := int64(math.MaxInt64)
	for i := len(o.steps) - 1; i >= 0; i-- {
		sum := &o.steps[i]
		begins = min(begins, sum.from[0], sum.from[1])
		sum.begins = begins
	}
	return o, nil
}

// step fills in a step and its slices like Timeline.step. Its lanes begin empty, so that the items of a step
// are the same, whichever steps were read before it.
func (o *Overview) step(s *Step, i int, d *drawer) {
	if d != nil {
		d.empty()
	}
	o.Line.step(s, i, d)
}

// layerOf returns the name under which the times of an operator are summed: its layer, or the operator if it
// is in no layer.
func layerOf(op *trace.Op) string {
	if op.Layer != nil {
		return analyze.LayerName(*op.Layer)
	}
	name, _, _ := strings.Cut(op.ShortName(), " ")
	return name
}

// tally adds up parts with the same row and group.
type tally struct {
	ns   [int(Tracks) * MaxRows * maxNames]int64
	used []int32 // indices of the elements of `ns` that are in use
}

func (t *tally) add(p part) {
	at := (int32(p.track)*MaxRows+int32(p.lane))*maxNames + p.group
	if p.NS <= 0 {
		return
	}
	if t.ns[at] == 0 {
		t.used = append(t.used, at)
	}
	t.ns[at] += p.NS
}

// take returns the sums and then clears them.
func (t *tally) take() []part {
	out := make([]part, len(t.used))
	for i, at := range t.used {
		row := at / maxNames
		out[i] = part{t.ns[at], at % maxNames, uint8(row / MaxRows), uint8(row % MaxRows)}
		t.ns[at] = 0
	}
	t.used = t.used[:0]
	return out
}

// names gives each different name a number: its index in `list`.
type names struct {
	list []string
	at   map[string]int
}

func newNames() names { return names{at: map[string]int{}} }

// number returns the number of a name.
func (n *names) number(s string) int {
	i, ok := n.at[s]
	switch {
	case ok:
		return i
	case len(n.list) == maxNames:
		return maxNames - 1
	case len(n.list) == maxNames-1:
		s = "other"
	}
	i = len(n.list)
	n.at[s], n.list = i, append(n.list, s)
	return i
}

// shorten computes by how much each step moves to the left because earlier pauses are shortened.
func (o *Overview) shorten() {
	lengths := make([]int64, 0, len(o.steps))
	for i := range o.Line.places {
		p := &o.Line.places[i]
		if n := max(p.hostEnd-p.host, 0); n > 0 {
			lengths = append(lengths, n)
		} else if p.onGPU {
			lengths = append(lengths, p.gpuEnd-p.gpu)
		}
	}
	if len(lengths) == 0 {
		return
	}
	slices.Sort(lengths)
	median := lengths[len(lengths)/2]
	end, shift := int64(0), int64(0)
	// next[i] is the first instant of step i and all later steps.
	next := make([]int64, len(o.steps)+1)
	next[len(o.steps)] = AxisEnd
	for i := len(o.steps) - 1; i >= 0; i-- {
		p := &o.Line.places[i]
		next[i] = min(next[i+1], p.host)
		if p.onGPU {
			next[i] = min(next[i], p.gpu)
		}
	}
	for i := range o.steps {
		p := &o.Line.places[i]
		if gap := next[i] - end; i > 0 && median > 0 && gap/pauseOf > median {
			keep := pauseAs * median
			o.Pauses = append(o.Pauses, Pause{end - shift, end - shift + keep, gap - keep, i})
			shift += gap - keep
		}
		o.steps[i].shift = shift
		end = max(end, p.hostEnd)
		if p.onGPU {
			end = max(end, p.gpuEnd)
		}
	}
}

// Real returns the time of an instant with all pauses at their full length, in ns from the start of the axis.
func (o *Overview) Real(at int64) int64 {
	n := sort.Search(len(o.Pauses), func(i int) bool { return o.Pauses[i].To > at })
	for _, p := range o.Pauses[:n] {
		at = analyze.Add(at, p.CutNS)
	}
	return at
}

// Extent returns the first and the last instant of a step, on the host and on the GPU. The bool is false if
// no time of the step was measured.
func (o *Overview) Extent(step int) (from, to int64, ok bool) {
	s := &o.steps[step]
	from, to = min(s.from[0], s.from[1]), max(s.to[0], s.to[1])
	return from, to, from <= to
}

// Items returns what a track shows of a step, in order.
func (o *Overview) Items(step int, track Track) (list []Item) {
	s := &Step{}
	d := &drawer{}
	if !track.OnGPU() {
		d = nil
	}
	o.step(s, step, d)
	list = make([]Item, 0, o.steps[step].items[track]+1)
	o.each(s, func(it *Item) {
		if it.Track == track {
			list = append(list, *it)
		}
	})
	byFrom := func(a, b Item) int { return cmp.Compare(a.From, b.From) }
	if !slices.IsSortedFunc(list, byFrom) {
		slices.SortStableFunc(list, byFrom)
	}
	return list
}

// Middles calls `do` for each dispatch of a step that is shown on the axis, with the instant in the middle
// of the dispatch. `at` is the index of the dispatch in Step.Dispatches.
func (o *Overview) Middles(step int, do func(at int, middle int64)) {
	s := &Step{}
	o.step(s, step, &drawer{})
	o.each(s, func(it *Item) {
		if it.Track == GPUDispatches && !it.Unmeasured {
			do(it.At, it.From+(it.To-it.From)/2)
		}
	})
}

// each calls `do` for each item of a step. The items of each track are in order. `do` must not keep the
// pointer.
func (o *Overview) each(s *Step, do func(*Item)) {
	shift := o.steps[s.At].shift
	it := Item{Step: s.At, Assumed: !s.Placed}
	hostEnd, phases := s.Start, 0
	for i := range s.Host {
		h := &s.Host[i]
		it.Track, it.At = HostSteps, 0
		if h.Kind == PhaseSlice {
			it.Track, it.At = HostPhases, phases
			phases++
		}
		it.Name, it.From, it.To, it.NS = h.Name, h.From-shift, h.To-shift, h.NS
		it.group = o.groups.number(h.Name)
		hostEnd = max(hostEnd, h.To)
		do(&it)
	}
	o.eachGPU(s, shift, hostEnd, do)
}

// eachGPU calls `do` for each item on the tracks of the GPU.
func (o *Overview) eachGPU(s *Step, shift, hostEnd int64, do func(*Item)) {
	list := s.GPU
	from, to, spanned := int64(0), int64(0), false
	if len(list) > 0 && list[0].Kind == SpanSlice {
		from, to, spanned = list[0].From-shift, list[0].To-shift, true
		list = list[1:]
	}
	blocks := byBlock(s.Step)
	placed := func(i int) bool {
		if blocks {
			return analyze.Measured(s.Blocks[i].StartNS)
		}
		return analyze.Measured(s.Dispatches[i].StartNS)
	}
	timed, busy := 0, int64(0)
	for i := range list {
		if l := &list[i]; placed(l.At) {
			if timed == 0 && !spanned {
				from, to = l.From-shift, l.To-shift
			}
			from, to = min(from, l.From-shift), max(to, l.To-shift)
			timed++
			busy = analyze.Add(busy, l.To-l.From)
		}
	}
	step := Item{
		Track: GPUSteps, Step: s.At, Name: string(s.Phase), group: o.groups.number(string(s.Phase)),
		From: from, To: to, NS: busy, Slices: len(s.Dispatches), Assumed: !s.GPUPlaced,
	}
	if timed == 0 {
		if step.NS = to - from; !spanned {
			step.From, step.To = analyze.Add(s.Start, Submitted(&s.CPU))-shift, hostEnd-shift
			if len(s.Dispatches) == 0 || step.From >= step.To {
				return
			}
			step.Name, step.Unmeasured = "", true
		}
		do(&step)
		step.Name, step.Unmeasured = "", true
		step.Track = GPULayers
		do(&step)
		step.Track = GPUDispatches
		do(&step)
		return
	}
	do(&step)
	expected := len(s.Dispatches)
	if blocks {
		expected = len(s.Blocks)
	}
	l := &lister{o: o, s: s, do: do, shift: shift, blocks: blocks, end: from, whole: timed == expected}
	l.layer.At = -1
	for i := range list {
		if placed(list[i].At) {
			l.slice(&list[i])
		}
	}
	l.unmeasured(to)
	l.finish()
}

// lister lists the blocks or the dispatches of a step.
type lister struct {
	o      *Overview
	s      *Step
	do     func(*Item)
	shift  int64
	blocks bool
	whole  bool  // every block or dispatch was timed, so the time between two of them is idle
	end    int64 // end of what was listed so far
	item   Item
	layer  Item // layer that is being listed; its At is -1 before the first one
	gaps   int
}

// unmeasured lists the time up to an instant as unmeasured, if the times of some dispatches are missing.
func (l *lister) unmeasured(until int64) {
	if !l.whole && until > l.end {
		l.gaps++
		gap := Item{
			Track: GPUDispatches, Step: l.s.At, At: -l.gaps, From: l.end, To: until, Unmeasured: true,
		}
		l.do(&gap)
	}
}

func (l *lister) slice(s *Slice) {
	it := &l.item // the callee may not keep it, so one is enough
	*it = Item{
		Track: GPUDispatches, Step: l.s.At, At: s.At, Lane: min(s.Lane, MaxRows-1), Name: s.Name,
		From: s.From - l.shift, To: s.To - l.shift, NS: s.NS, Slices: 1,
	}
	l.unmeasured(it.From)
	l.end = max(l.end, it.To)
	if l.blocks {
		it.Track, it.Lane, it.Slices = GPULayers, 0, l.s.Blocks[s.At].Dispatches
		it.Name = strings.Replace(it.Name, "layers.", "L", 1)
		it.group = l.o.groups.number(it.Name)
		l.do(it)
		it.Track, it.Name, it.Unmeasured = GPUDispatches, "", true
		l.do(it)
		return
	}
	id := l.s.Dispatches[s.At].Plan
	plan := &l.o.Line.x.Trace.Plans[id]
	it.group, it.kernel = l.o.layerOf[plan.Dispatch], l.o.kernel[id]
	if l.layer.At < 0 || l.layer.group != it.group {
		l.finish()
		l.layer = Item{
			Track: GPULayers, Step: l.s.At, At: l.layer.At + 1, Name: l.o.groups.list[it.group],
			group: it.group, From: it.From, summed: true,
		}
	}
	l.layer.To = max(l.layer.To, it.To)
	l.layer.NS, l.layer.Slices = analyze.Add(l.layer.NS, it.NS), l.layer.Slices+1
	l.do(it)
}

// finish lists the current layer.
func (l *lister) finish() {
	if l.layer.Slices > 0 {
		l.do(&l.layer)
	}
}

// Steps returns the number of steps.
func (o *Overview) Steps() int { return len(o.steps) }

// Around returns the first and the last step that may be shown between two instants. If there are none, first
// is the step that follows.
func (o *Overview) Around(from, to int64) (first, last int) {
	first = sort.Search(len(o.steps), func(i int) bool { return o.steps[i].reached > from })
	last = sort.Search(len(o.steps), func(i int) bool { return o.steps[i].begins >= to }) - 1
	return first, last
}
