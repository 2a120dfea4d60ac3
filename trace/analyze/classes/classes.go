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
	// NS is the GPU time of the class in a step, in ns: the sum of the medians of its dispatches, as in the
	// table of dispatches. Measured reports that all of these were timed.
	NS       float64
	Measured bool
	// Unnamed reports that the matrices of the side are in workclass.Other, because the profile was imported
	// without a model. The times of the classes of matrices are then not known, and that of workclass.Other
	// includes them. It is not set in other classes.
	Unnamed bool
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
// one of the two times was not measured, or if the matrices of only one side are in this class. The time of a
// class without dispatches is 0 unless Side.Unnamed is set.
func (r *Row) DifferenceNS() (ns float64, known bool) {
	now, known1 := r.Now.time()
	base, known2 := r.Base.time()
	return now - base, known1 && known2 && r.Now.Unnamed == r.Base.Unnamed
}

// Ratio returns the time at the selection divided by the time at the baseline.
func (r *Row) Ratio() (ratio float64, known bool) {
	now, known1 := r.Now.time()
	base, known2 := r.Base.time()
	if !known1 || !known2 || now <= 0 || base <= 0 || r.Now.Unnamed != r.Base.Unnamed {
		return 0, false
	}
	return now / base, true
}

func (s *Side) time() (ns float64, known bool) {
	return s.NS, s.Measured || s.Rows == 0 && !s.Unnamed
}

// Comparison has a row for each class of work that a selection or its baseline has, in the order of
// workclass.Classes.
type Comparison struct {
	Rows  []Row
	Total Row // of all classes; its class is ""
	// Selection and Baseline are the compared steps: those of Options.Routed. Baseline is nil if there is no
	// baseline.
	Selection analyze.Selection
	Baseline  *analyze.Baseline
}

// Of compares the classes of work of o.Selection with those of o.Baseline. o.Baseline may be nil.
func Of(ctx context.Context, x *analyze.Index, o analyze.Options) (*Comparison, error) {
	if o.Baseline == nil {
		// No step takes as long as the mean of steps of different numbers of tokens.
		o.Selection, _ = analyze.SameTokens(x, o.Selection, x, o.Selection)
	}
	o = o.Routed(x)
	now, err := sides(ctx, x, o.Selection)
	if err != nil {
		return nil, err
	}
	c := &Comparison{Selection: o.Selection, Baseline: o.Baseline}
	base := map[workclass.Class]*Side{}
	if c.Baseline != nil {
		if base, err = sides(ctx, o.Baseline.Index, o.Baseline.Selection); err != nil {
			return nil, err
		}
	}
	of := func(class workclass.Class) Row {
		return Row{Class: class, Now: sideOf(now, class), Base: sideOf(base, class)}
	}
	for _, class := range workclass.Classes {
		if now[class] != nil || base[class] != nil {
			c.Rows = append(c.Rows, of(class))
		}
	}
	c.Total = of(whole)
	return c, nil
}

// sideOf returns the side of a class, from those of all classes of a run.
func sideOf(all map[workclass.Class]*Side, class workclass.Class) Side {
	var of Side
	if s := all[class]; s != nil {
		of = *s
	}
	of.Unnamed = workclass.DependsOnNames(class) &&
		workclass.Unnamed(func(c workclass.Class) bool { return all[c] != nil })
	return of
}

// whole stands for all classes of a step.
const whole workclass.Class = ""

// sides returns the Side of each class in the steps of a selection.
func sides(ctx context.Context, x *analyze.Index, s analyze.Selection) (map[workclass.Class]*Side, error) {
	launches, err := x.Launches(ctx, s)
	if err != nil {
		return nil, err
	}
	of, all, last := workclass.Of(&x.Trace.Graph), map[workclass.Class]*Side{}, map[workclass.Class]int{}
	for i := range launches { // those of the last step come first
		l := &launches[i]
		for _, c := range []workclass.Class{of[l.Op.ID], whole} {
			if all[c] == nil {
				all[c], last[c] = &Side{Measured: true}, l.Step
			}
			a := all[c]
			if l.Step == last[c] {
				a.Rows++
			}
			a.NS += l.Time.Median * float64(l.Runs) / float64(len(s.Steps))
			a.Measured = a.Measured && l.Time.Measured()
			if j := l.Dispatch.Joined; j != "" && !slices.Contains(a.Joined, j) {
				a.Joined = append(a.Joined, j)
			}
		}
	}
	for _, side := range all {
		slices.Sort(side.Joined)
	}
	return all, nil
}
