package inspect

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/table"
)

// Launch is a dispatch with what is computed of it, in a step, or in those steps of a scope in which it did
// the same work by the same route.
type Launch struct {
	Index    int // in order of submission
	ID       trace.DispatchID
	Dispatch *trace.Dispatch
	Op       *trace.Op
	Plan     *trace.Plan   // of several steps the last's
	Kernel   *trace.Kernel // nil where the trace does not describe it
	Tokens   int           // that went into the step
	Runs     int           // steps
	Step     int           // the last of them
	Time     Spread        // median of its repeats, or of its steps
	Samples  []int64       // ns, of the repeats or of the steps that were timed
	Level    int           // -1: not recorded; of several steps in the last
	Waste    Waste
	Limit    Limit
	Gap      *trace.NumericGap // of several steps the worst
	Delta    Delta

	Least, Most [3]int  // workgroups, where they differ from step to step
	Varies      bool    // what the live shape needs differs from step to step; Waste is the mean
	at          []int32 // the step of each sample; nil: they are repeats in one step
	bytes       float64 // modelled, of several steps the mean
	flops       float64
	streamed    float64 // modelled bytes of the whole step, which its bytes are part of
}

// name is a dispatch's whole name.
func (l *Launch) name() string { return dispatchName(l.Op, l.Dispatch) }

// launches computes every dispatch of a scope, in order of submission.
func (x *Index) launches(ctx context.Context, scope Scope) ([]Launch, error) {
	if step, one := scope.One(); one {
		return x.launchesOf(step), ctx.Err()
	}
	// work is what times in one median have in common.
	type work struct {
		id            trace.DispatchID
		kernel, route string
		tokens        int
	}
	var out []Launch
	index := map[work]int{}
	for _, step := range scope.Steps {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		s := &x.Trace.Steps[step]
		for i, l := range x.planned(step) {
			w := work{l.ID, l.Plan.Kernel, l.Plan.Route, l.Tokens}
			k, there := index[w]
			if !there {
				k = len(out)
				index[w] = k
				l.Least, l.Most = l.Plan.Workgroups, l.Plan.Workgroups
				out = append(out, l)
			} else {
				out[k].again(&l)
			}
			if time := timeOf(&s.Dispatches[i]); time.Measured() {
				out[k].Samples = append(out[k].Samples, int64(time.Median))
				out[k].at = append(out[k].at, int32(step))
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Launch) int { return a.Index - b.Index })
	for i := range out {
		l := &out[i]
		l.bytes, l.flops = l.bytes/float64(l.Runs), l.flops/float64(l.Runs)
		l.Waste = l.Waste.scaled(1, l.Runs)
		l.Time = spreadOf(slices.Clone(l.Samples))
		l.Limit = limitOf(&x.Trace.Device, l, l.Time, l.Index == 0)
	}
	return out, nil
}

// again adds the same work in another step.
func (l *Launch) again(m *Launch) {
	if product(m.Plan.Workgroups) < product(l.Least) {
		l.Least = m.Plan.Workgroups
	}
	if product(m.Plan.Workgroups) > product(l.Most) {
		l.Most = m.Plan.Workgroups
	}
	l.Varies = l.Varies || l.Plan.NeededGrid != m.Plan.NeededGrid
	l.Waste = l.Waste.plus(m.Waste)
	l.Plan, l.Level, l.Step = m.Plan, m.Level, m.Step
	l.Runs++
	l.bytes += m.bytes
	l.flops += m.flops
	l.Gap = worse(l.Gap, m.Gap)
}

// worse is the numeric gap that says more against a dispatch: one that is no number, else the larger. Nil is
// no gap.
func worse(a, b *trace.NumericGap) *trace.NumericGap {
	switch {
	case a == nil:
		return b
	case b == nil || math.IsNaN(a.SNRdB) || a.SNRdB <= b.SNRdB:
		return a
	}
	return b
}

// timedAlone says that each dispatch of a step has a time of its own, of the step or of repeats in place.
func timedAlone(s *trace.Step) bool {
	return s.Timing == "dispatch" || len(s.Dispatches) > 0 && len(s.Dispatches[0].Samples) > 0
}

// launchesOf computes every dispatch of a step, in order of submission.
func (x *Index) launchesOf(step int) []Launch {
	s := &x.Trace.Steps[step]
	out := x.planned(step)
	for i := range out {
		out[i].Time, out[i].Samples = timeOf(&s.Dispatches[i]), s.Dispatches[i].Samples
		if timedAlone(s) {
			out[i].Limit = limitOf(&x.Trace.Device, &out[i], out[i].Time, i == 0)
		}
	}
	return out
}

// planned are the dispatches of a step without their times.
func (x *Index) planned(step int) []Launch {
	t := x.Trace
	s := &t.Steps[step]
	starts, level, streamed := x.levelStarts(step), -1, x.streamed(s)
	out := make([]Launch, len(s.Dispatches))
	for i := range s.Dispatches {
		sd := &s.Dispatches[i]
		p := &t.Plans[sd.Plan]
		d, k := &t.Graph.Dispatches[p.Dispatch], x.graph.kernels[p.Kernel]
		if n, ok := starts[p.Dispatch]; ok {
			level = n
		}
		out[i] = Launch{
			Index: i, ID: d.ID, Dispatch: d, Op: &t.Graph.Ops[d.Op], Plan: p,
			Kernel: k, Tokens: len(s.Tokens), Runs: 1, Step: step, Level: level,
			Waste: WasteOf(p, k), Gap: sd.Gap, Least: p.Workgroups, Most: p.Workgroups,
			bytes: float64(p.Bytes), flops: float64(p.FLOPs), streamed: streamed,
		}
	}
	return out
}

// Live is the live shape of what a dispatch writes, and the position where it depends on one: "1×32
// @58".
func (x *Index) Live(l *Launch) string {
	step := l.Step
	g := &x.Trace.Graph
	outs := l.Dispatch.Writes
	for _, v := range l.Op.Outputs { // what people know, if this slot writes it; else its scratch
		if slices.Contains(outs, v) {
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
