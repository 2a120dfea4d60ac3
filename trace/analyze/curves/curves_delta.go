package curves

import (
	"context"
	"math"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
)

// CurveBaseline is what a row of curves took at a baseline: by the line through the baseline's steps at the
// last of them, or where these are too few for one, their median.
type CurveBaseline struct {
	At, NS  float64
	N       int     // steps
	scatter float64 // of one of them, 0 where they are too few to tell
	// By is what the row takes more at its last position, and equal that this is within the scatter of both.
	// Where the row has no line by is not known.
	By    float64
	Equal bool
}

// compare gives rows what they took at a baseline, which may be steps of this run. Steps are compared where
// they were timed at one level, and where the clock was the same.
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
		if of == nil {
			continue
		}
		var xs, ys []float64
		for _, p := range of.Points {
			if in[p.Step] {
				xs, ys = append(xs, float64(p.At)), append(ys, p.NS)
			}
		}
		if r.Baseline = curveBaseline(xs, ys); r.Baseline != nil && r.Fit != nil {
			r.compare(b.ResolutionNS(c.Index))
		}
	}
	return nil
}

// compare sets what a row takes at its last position beside what it took at the baseline. It goes through all
// points of the row, which is too much for a cell that every frame draws.
func (r *CurveRow) compare(resolutionNS float64) {
	xs, ys := r.places()
	now := r.Fit.scatter(xs, ys)
	then := r.Baseline.scatter
	if then == 0 {
		then = now // of a single step: it scatters as others do
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
		return &CurveBaseline{At: f.Last, NS: f.At(f.Last), N: f.N, scatter: f.scatter(xs, ys)}
	}
	s := analyze.StatsOf(ys)
	b := &CurveBaseline{At: analyze.StatsOf(xs).Median, NS: s.Median, N: len(ys)}
	if s.Known() {
		b.scatter = s.IQR
	}
	return b
}

// scatter is the distance between the quartiles of what times are off the line.
func (f *Fit) scatter(xs, ys []float64) float64 {
	off := make([]float64, len(xs))
	for i := range xs {
		off[i] = ys[i] - f.At(xs[i])
	}
	return analyze.StatsOf(off).IQR
}

// places are the points of a row as two lists.
func (r *CurveRow) places() (xs, ys []float64) {
	xs, ys = make([]float64, len(r.Points)), make([]float64, len(r.Points))
	for i, p := range r.Points {
		xs[i], ys[i] = float64(p.At), p.NS
	}
	return xs, ys
}
