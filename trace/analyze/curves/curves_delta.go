package curves

import (
	"context"
	"math"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
	"gpuscope/trace/analyze/join"
)

// CurveBaseline is the time of a row at the baseline. It is the time of the fitted line at the last baseline
// step. If there are too few steps for a line, it is the median.
type CurveBaseline struct {
	At, NS  float64
	N       int     // number of baseline steps
	scatter float64 // interquartile range of distances from the line; 0 if not known
	// By is the time of the row at its last position minus its time at the baseline, in ns. It is 0 if the
	// row has no fitted line. Equal reports that this difference is not larger than the noise of the two
	// times.
	By    float64
	Equal bool
}

// compare sets the baseline time of each row. The baseline may be steps of the same run. Times of the whole
// step are compared only if they have the same timing level in the run and at the baseline. No times are
// compared if the GPU clock differed.
func (c *Curves) compare(ctx context.Context, b *analyze.Baseline) error {
	then := c
	if b.Index != c.Index {
		var err error
		if then, err = Of(ctx, b.Index, c.Along, nil); err != nil {
			return err
		}
	}
	c.Baseline, c.ClockMoved = b, b.ClockMoved(c.Index, c.Index.Phase(trace.Decode))
	if c.ClockMoved {
		return nil
	}
	c.OtherGraph = !join.SameDispatches(c.Index.Trace, b.Index.Trace)
	in := make(map[int]bool, len(b.Selection.Steps))
	for _, step := range b.Selection.Steps {
		in[step] = true
	}
	rows := make(map[string]*CurveRow, len(then.Rows))
	for i := range then.Rows {
		if i > 0 || then.Level == c.Level {
			rows[then.Rows[i].Name] = &then.Rows[i]
		}
	}
	for i := range c.Rows {
		r := &c.Rows[i]
		of := rows[r.Name]
		if of == nil || i > 0 && c.OtherGraph {
			continue
		}
		var xs, ys []float64
		for _, p := range of.Points {
			if in[p.Step] {
				xs, ys = append(xs, float64(p.At)), append(ys, p.NS)
			}
		}
		if r.Baseline = curveBaseline(xs, ys); r.Baseline == nil || r.Fit == nil {
			continue
		}
		if _, known := r.Fit.Time(r.Fit.Last); !known {
			r.Baseline = nil
			continue
		}
		r.compare(b.ResolutionNS(c.Index))
	}
	return nil
}

// compare sets By and Equal of the row's baseline. It reads all points of the row, so it is too slow to be
// called in each frame.
func (r *CurveRow) compare(resolutionNS float64) {
	xs, ys := r.places()
	now := r.Fit.scatter(xs, ys)
	then := r.Baseline.scatter
	if then == 0 {
		then = now // use the variation of this run, because that of a single step is not known
	}
	noise := 2*now/math.Sqrt(float64(r.Fit.N)) + 2*then/math.Sqrt(float64(r.Baseline.N))
	r.Baseline.By = r.Fit.At(r.Fit.Last) - r.Baseline.NS
	r.Baseline.Equal = math.Abs(r.Baseline.By) <= max(resolutionNS, noise)
}

func curveBaseline(xs, ys []float64) *CurveBaseline {
	if len(xs) == 0 {
		return nil
	}
	if f := FitLine(xs, ys); f != nil {
		if ns, known := f.Time(f.Last); known {
			return &CurveBaseline{At: f.Last, NS: ns, N: f.N, scatter: f.scatter(xs, ys)}
		}
	}
	s := analyze.StatsOf(ys)
	b := &CurveBaseline{At: analyze.StatsOf(xs).Median, NS: s.Median, N: len(ys)}
	if s.Known() {
		b.scatter = s.IQR
	}
	return b
}

// scatter returns the interquartile range of the distances of the points from the line, in ns.
func (f *Fit) scatter(xs, ys []float64) float64 {
	off := make([]float64, len(xs))
	for i := range xs {
		off[i] = ys[i] - f.At(xs[i])
	}
	return analyze.StatsOf(off).IQR
}

// places returns the row's points as two lists: the places xs and the times ys.
func (r *CurveRow) places() (xs, ys []float64) {
	xs, ys = make([]float64, len(r.Points)), make([]float64, len(r.Points))
	for i, p := range r.Points {
		xs[i], ys[i] = float64(p.At), p.NS
	}
	return xs, ys
}
