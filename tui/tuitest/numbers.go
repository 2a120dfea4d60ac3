package tuitest

import (
	"math"
	"slices"

	"gpuscope/session"
	"gpuscope/trace"
)

// numbers returns simulated elements of a value: a sine wave, the same in every call. The element with index
// Script.NaN is NaN.
func (p *Session) numbers(at *session.LookAt) (*session.Tensor, error) {
	g := &p.recorded.Graph
	if at == nil || at.Value < 0 || int(at.Value) >= len(g.Values) {
		return nil, session.Refusef("look: no such value")
	}
	v := &g.Values[at.Value]
	out := &session.Tensor{
		Value: at.Value, DType: v.DType, Offset: at.Offset, After: at.After,
		Dims: v.MaxDims,
	}
	if v.Role != trace.RoleConstant {
		step := p.state.Step
		if at.Step != nil {
			step = *at.Step
		}
		at := -1
		for i := range p.path {
			if p.path[i].Index == step {
				at = i
			}
		}
		if at < 0 {
			return nil, session.Refusef("step %d cannot run again: it is not part of the current text", step)
		}
		out.Step, out.Dims = &step, p.dimsAt(v, step)
		if out.After == nil {
			out.After = p.writer(&p.path[at], v.ID)
		}
	}
	scale := 1.0
	if b := at.Baseline; b != nil {
		base := p.dimsAt(v, b.Step)
		out.Baseline = &session.BaselineOf{Step: b.Step, After: b.After, Dims: base, Whole: out.Dims}
		out.Dims = slices.Clone(out.Dims)
		for i := range out.Dims {
			out.Dims[i] = min(out.Dims[i], base[i])
		}
		scale = float64(*out.Step-b.Step) / 100
	}
	n := 1
	for _, d := range out.Dims {
		n *= d
	}
	number := func(i int) float64 {
		if p.script.NaN > 0 && i == p.script.NaN {
			return math.NaN()
		}
		return math.Sin(float64(i+int(v.ID))) * (1 + float64(i%7)/8) * scale
	}
	for row := range max(1, at.Rows) {
		for i := at.Offset + row*at.Stride; i < min(n, at.Offset+row*at.Stride+at.Count); i++ {
			out.Numbers = append(out.Numbers, trace.Number(number(i)))
		}
	}
	if at.Statistics {
		out.Statistics = statistics(n, number)
	}
	if at.Statistics && out.Baseline != nil {
		relative, cosine, most := math.Abs(scale), 0.99995, 0
		for i := range min(n, 50) {
			if math.Abs(number(i)) > math.Abs(number(most)) {
				most = i
			}
		}
		out.Difference = &session.Difference{
			Elements: n, Differ: n, NotFinite: out.Statistics.NaN, MaxAbs: math.Abs(number(most)),
			MaxAt: &most, MeanAbs: out.Statistics.Std / 2, Relative: &relative, Cosine: &cosine,
		}
	}
	if at.Map != nil {
		out.Map = p.heatMap(n, *at.Map, number)
	}
	return out, nil
}

// dimsAt returns the live shape of a value in a step of the text.
func (p *Session) dimsAt(v *trace.Value, step int) []int {
	dims := v.MaxDims
	for i := range p.path {
		if p.path[i].Index > step {
			break
		}
		for _, d := range p.path[i].Dims {
			if d.Value == v.ID {
				dims = d.Dims
			}
		}
	}
	return dims
}

// heatMap returns a heat map of n elements. Each cell shows the absolute value of its first element, or NaN
// if the cell contains the element Script.NaN.
func (p *Session) heatMap(n int, at session.MapAt, number func(int) float64) *session.HeatMap {
	if at.Elements > 0 {
		n = min(n, at.Elements)
	}
	m := &session.HeatMap{
		Rows:    ((n+at.Width-1)/at.Width + at.Rows - 1) / at.Rows,
		Columns: (at.Width + at.Columns - 1) / at.Columns,
	}
	for i := range m.Rows * m.Columns {
		first := i/m.Columns*at.Rows*at.Width + i%m.Columns*at.Columns
		m.Cells = append(m.Cells, trace.Number(math.Abs(number(min(first, n-1)))))
	}
	if odd := p.script.NaN; odd > 0 && odd < n {
		m.Cells[odd/at.Width/at.Rows*m.Columns+odd%at.Width/at.Columns] = trace.Number(math.NaN())
	}
	return m
}

// writer returns the last dispatch of a step that writes a value, or nil if there is none.
func (p *Session) writer(s *trace.Step, v trace.ValueID) *trace.DispatchID {
	var last *trace.DispatchID
	for i := range s.Dispatches {
		d := &p.recorded.Graph.Dispatches[p.recorded.Plans[s.Dispatches[i].Plan].Dispatch]
		for _, w := range d.Writes {
			if w == v {
				last = &d.ID
			}
		}
	}
	return last
}

// most is the maximum number of elements used for statistics, so that tests do not wait for a value as large
// as the vocabulary.
const most = 1 << 16

func statistics(n int, number func(int) float64) *session.Statistics {
	s := &session.Statistics{
		Elements: n, Min: math.Inf(1), Max: math.Inf(-1),
		Histogram: make([]int, session.HistogramBins),
	}
	var list []float64
	sum, squares := 0.0, 0.0
	for i := range min(n, most) {
		v := number(i)
		if math.IsNaN(v) {
			s.NaN++
			if s.FirstOdd == nil {
				s.FirstOdd = &i
			}
			continue
		}
		if v == 0 {
			s.Zeros++
		}
		s.Min, s.Max = min(s.Min, v), max(s.Max, v)
		sum, squares = sum+v, squares+v*v
		list = append(list, v)
	}
	count := float64(max(1, len(list)))
	s.Mean = sum / count
	s.Std = math.Sqrt(max(0, squares/count-s.Mean*s.Mean))
	if len(list) == 0 {
		s.Min, s.Max, s.Histogram = 0, 0, nil
	}
	for _, v := range list {
		bin := 0
		if s.Max > s.Min {
			bin = min(max(0, int((v-s.Min)/(s.Max-s.Min)*session.HistogramBins)), session.HistogramBins-1)
		}
		s.Histogram[bin]++
	}
	return s
}
