package inspect

import (
	"fmt"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/table"
)

// Launch is one dispatch of a step with what is computed of it.
type Launch struct {
	Index    int // in order of submission
	ID       trace.DispatchID
	Dispatch *trace.Dispatch
	Op       *trace.Op
	Plan     *trace.Plan
	Kernel   *trace.Kernel // nil where the trace does not describe it
	Time     Spread        // median of its repeats
	Samples  []int64
	Level    int // -1: not recorded
	Waste    Waste
	Limit    Limit
	Gap      *trace.NumericGap
	Delta    Delta
}

// Waste is work that was launched and not needed, exact from the plan. Workgroups: Shape were launched beyond
// the live shape's need, Fold by folding a count into two dimensions. Lanes: Tail idle in workgroups that
// have work.
type Waste struct{ Shape, Fold, Tail int64 }

func product(v [3]int) int64 { return int64(v[0]) * int64(v[1]) * int64(v[2]) }

// WasteOf is the waste of a plan.
func WasteOf(p *trace.Plan) Waste {
	needed := product(p.NeededGrid)
	return Waste{Shape: product(p.Workgroups) - needed, Fold: needed - p.NeededGroups, Tail: p.IdleLanes}
}

// String is shape/fold/tail, or nothing where there is no waste.
func (w Waste) String() string {
	if w == (Waste{}) {
		return ""
	}
	return fmt.Sprintf("%d/%d/%d", w.Shape, w.Fold, w.Tail)
}

// floorFactor: a dispatch within this factor of a timed empty pass has no time of its own that could be
// judged.
const floorFactor = 1.3

// LimitKind says what keeps a dispatch from being faster.
type LimitKind int

// The kinds of limits.
const (
	NoLimit    LimitKind = iota // not measured, or nothing to compare with
	FirstLimit                  // the first dispatch of a step absorbs what came before
	FloorLimit                  // within 1.3 times of a timed empty pass
	FillLimit                   // fewer workgroups than fill the device
	MemLimit
	FPLimit
)

// Limit is how far a dispatch is from what the device can do. It is modelled from bytes, FLOPs and measured
// ceilings.
type Limit struct {
	Kind       LimitKind
	Workgroups int64   // of FillLimit
	Share      float64 // of the copy rate or the FLOP rate
	// BytesPerS and FlopsPerS are modelled work over the time without what timing adds; 0 where there is
	// none, or at the floor.
	BytesPerS, FlopsPerS float64
	LostNS               float64 // time over what the device could do it in; 0 where that cannot be said
}

// String is the short text of the limit column.
func (l Limit) String() string {
	switch l.Kind {
	case FirstLimit:
		return "first"
	case FloorLimit:
		return "≈floor"
	case FillLimit:
		return fmt.Sprintf("%d wg", l.Workgroups)
	case MemLimit, FPLimit:
		name := map[LimitKind]string{MemLimit: "mem", FPLimit: "fp"}[l.Kind]
		if l.Share > 1 {
			return fmt.Sprintf("%s %.0f%% cached?", name, 100*l.Share)
		}
		return fmt.Sprintf("%s %.0f%%", name, 100*l.Share)
	}
	return ""
}

// copyRate is the copy rate at a working set: the one measured at the smallest size that holds it, or at the
// largest size.
func copyRate(c *trace.Ceilings, bytes int64) float64 {
	var best trace.CopyRate
	for _, r := range c.CopyBytesPerS {
		fits, bestFits := r.Bytes >= bytes, best.Bytes >= bytes
		switch {
		case best.PerS == 0, fits && !bestFits, fits && bestFits && r.Bytes < best.Bytes, !fits &&
			!bestFits && r.Bytes > best.Bytes:
			best = r
		}
	}
	return best.PerS
}

// limitOf judges a dispatch. The device must be a GPU with measured ceilings, and the dispatch timed alone.
func limitOf(d *trace.Device, p *trace.Plan, t Spread, first bool) Limit {
	var l Limit
	if !t.Measured() || d.Software() || d.Ceilings == nil {
		return l
	}
	if first {
		l.Kind = FirstLimit
		return l
	}
	c := d.Ceilings
	floor, measured := c.TimedPassNS.NS()
	if measured && t.Median <= floorFactor*float64(floor) {
		l.Kind = FloorLimit
		return l
	}
	timing := d.TimingNS()
	work := t.Median - timing
	if work <= 0 {
		return l
	}
	l.BytesPerS, l.FlopsPerS = float64(p.Bytes)*1e9/work, float64(p.FLOPs)*1e9/work
	best := float64(floor)
	mem, fp := 0.0, 0.0
	if rate := copyRate(c, p.Bytes); rate > 0 {
		mem = l.BytesPerS / rate
		best = max(best, timing+float64(p.Bytes)*1e9/rate)
	}
	if c.FlopsPerS > 0 {
		fp = l.FlopsPerS / c.FlopsPerS
		best = max(best, timing+float64(p.FLOPs)*1e9/c.FlopsPerS)
	}
	if best > 0 {
		l.LostNS = max(0, t.Median-best)
	}
	switch groups := product(p.Workgroups); {
	case groups < int64(c.FillWorkgroups):
		l.Kind, l.Workgroups = FillLimit, groups
	case mem > 0 && mem >= fp:
		l.Kind, l.Share = MemLimit, mem
	case fp > 0:
		l.Kind, l.Share = FPLimit, fp
	}
	return l
}

// launches computes every dispatch of a step, in order of submission.
func (x *Index) launches(step int) []Launch {
	t := x.Trace
	s := &t.Steps[step]
	starts, level := x.levelStarts(step), -1
	out := make([]Launch, len(s.Dispatches))
	for i := range s.Dispatches {
		sd := &s.Dispatches[i]
		p := &t.Plans[sd.Plan]
		d := &t.Graph.Dispatches[p.Dispatch]
		if n, ok := starts[p.Dispatch]; ok {
			level = n
		}
		out[i] = Launch{
			Index: i, ID: d.ID, Dispatch: d, Op: &t.Graph.Ops[d.Op], Plan: p, Kernel: x.kernels[p.Kernel],
			Time: timeOf(sd), Samples: sd.Samples, Level: level, Waste: WasteOf(p), Gap: sd.Gap,
		}
		if s.Timing == "dispatch" {
			out[i].Limit = limitOf(&t.Device, p, out[i].Time, i == 0)
		}
	}
	return out
}

// Live is the live shape of what a dispatch of a step writes, and the position where it depends on one: "1×32
// @58".
func (x *Index) Live(step int, l *Launch) string {
	g := &x.Trace.Graph
	outs := l.Dispatch.Writes
	for _, v := range l.Op.Outputs { // what people know, if this slot writes it; else its scratch
		if contains(outs, v) {
			outs = []trace.ValueID{v}
			break
		}
	}
	var shapes []string
	for _, v := range outs {
		if g.Values[v].Role == "state" && len(l.Op.Inputs) > 0 {
			v = l.Op.Inputs[0] // the rows that are appended
		}
		shapes = append(shapes, table.Shape(x.Dims(step, v)))
	}
	out := strings.Join(shapes, ", ")
	for _, v := range l.Op.Inputs {
		if g.Values[v].Kind == "symint" {
			if n, ok := x.SymInt(step, v); ok {
				out += fmt.Sprintf(" @%d", n)
			}
			break
		}
	}
	return out
}

func contains(list []trace.ValueID, v trace.ValueID) bool {
	for _, w := range list {
		if w == v {
			return true
		}
	}
	return false
}

// SymInt is the value of a SymInt at a step.
func (x *Index) SymInt(step int, v trace.ValueID) (int64, bool) {
	n, ok := x.Trace.Steps[step].SymInts[x.Trace.Graph.Values[v].Name]
	return n, ok
}

// microseconds writes ns as µs with no digit below the clock's quantum. A time under two quanta is ‹, one
// that was not measured –.
func microseconds(s Spread, quantumNS float64) table.Cell {
	if !s.Measured() {
		return table.Cell{Text: table.Unmeasured}
	}
	if quantumNS > 0 && s.Median < 2*quantumNS {
		return table.Cell{Text: "‹", Number: s.Median / 1e3, Has: true}
	}
	return table.Number(s.Median/1e3, table.DecimalsOfUS(quantumNS))
}
