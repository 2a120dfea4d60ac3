// Package classes adds up the times of a step by class of work, and compares them with those of another run
// or another engine.
package classes

import (
	"context"
	"slices"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/workclass"
)

// Side holds the dispatches and the time of a class of work in the steps of one run.
type Side struct {
	// Rows is the number of dispatches of the class in the last selected step that has dispatches of this
	// class.
	Rows int
	// Time has the statistics of the GPU time of the class in ns: one sample for each step in which all
	// dispatches of the class were timed.
	Time analyze.Stats
	// Joined lists how the rows of an imported profile were joined with the operators of the model. It is
	// empty for a run of gpuscope.
	Joined []trace.Joined
}

// Row is a class of work beside the same class of the baseline.
type Row struct {
	Class     workclass.Class
	Now, Base Side
}

// DifferenceNS returns the time at the selection minus the time at the baseline, in ns. `known` is false if
// one of the two times was not measured. The time of a class without dispatches is 0.
func (r *Row) DifferenceNS() (ns float64, known bool) {
	now, known1 := r.Now.median()
	base, known2 := r.Base.median()
	return now - base, known1 && known2
}

// Ratio returns the time at the selection divided by the time at the baseline.
func (r *Row) Ratio() (ratio float64, known bool) {
	now, known1 := r.Now.median()
	base, known2 := r.Base.median()
	if !known1 || !known2 || now <= 0 || base <= 0 {
		return 0, false
	}
	return now / base, true
}

func (s *Side) median() (ns float64, known bool) {
	if s.Rows == 0 {
		return 0, true
	}
	return s.Time.Median, s.Time.Measured()
}

// Comparison has a row for each class of work that a selection or its baseline has, in the order of
// workclass.Classes.
type Comparison struct {
	Rows  []Row
	Total Row // of all classes; its class is ""
	// Compared reports whether there is a baseline.
	Compared bool
}

// Of compares the classes of work of o.Selection with those of o.Baseline. o.Baseline may be nil.
func Of(ctx context.Context, x *analyze.Index, o analyze.Options) (*Comparison, error) {
	now, err := sides(ctx, x, o.Selection)
	if err != nil {
		return nil, err
	}
	c := &Comparison{Compared: o.Baseline != nil}
	base := map[workclass.Class]*Side{}
	if c.Compared {
		if base, err = sides(ctx, o.Baseline.Index, o.Baseline.Selection); err != nil {
			return nil, err
		}
	}
	of := func(class workclass.Class) Row {
		r := Row{Class: class}
		if s := now[class]; s != nil {
			r.Now = *s
		}
		if s := base[class]; s != nil {
			r.Base = *s
		}
		return r
	}
	for _, class := range workclass.Classes {
		if now[class] != nil || base[class] != nil {
			c.Rows = append(c.Rows, of(class))
		}
	}
	c.Total = of(whole)
	return c, nil
}

// whole stands for all classes of a step.
const whole workclass.Class = ""

// sides returns the Side of each class in the steps of a selection.
func sides(ctx context.Context, x *analyze.Index, s analyze.Selection) (map[workclass.Class]*Side, error) {
	t := x.Trace
	of, all := workclass.Of(&t.Graph), map[workclass.Class]*Side{}
	samples := map[workclass.Class][]float64{}
	type sum struct {
		ns       float64
		rows     int
		measured bool
	}
	for _, step := range s.Steps {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		sums := map[workclass.Class]*sum{}
		add := func(class workclass.Class, ns float64, measured bool) {
			if sums[class] == nil {
				sums[class] = &sum{measured: true}
			}
			a := sums[class]
			a.ns, a.rows, a.measured = a.ns+ns, a.rows+1, a.measured && measured
		}
		for i := range t.Steps[step].Dispatches {
			d := &t.Steps[step].Dispatches[i]
			dispatch := &t.Graph.Dispatches[t.Plans[d.Plan].Dispatch]
			class := of[dispatch.Op]
			ns, measured := analyze.MedianOf(d)
			add(class, ns, measured)
			add(whole, ns, measured)
			for _, c := range []workclass.Class{class, whole} {
				if all[c] == nil {
					all[c] = &Side{}
				}
				if dispatch.Joined != "" && !slices.Contains(all[c].Joined, dispatch.Joined) {
					all[c].Joined = append(all[c].Joined, dispatch.Joined)
				}
			}
		}
		for class, a := range sums {
			if all[class].Rows = a.rows; a.measured {
				samples[class] = append(samples[class], a.ns)
			}
		}
	}
	for class, side := range all {
		side.Time = analyze.StatsOf(samples[class])
		slices.Sort(side.Joined)
	}
	return all, nil
}
