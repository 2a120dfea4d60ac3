package session

import "gpuscope/trace"

// MostNumbers is how many numbers of a value a Look tells at most. Who wants more asks page by page.
const MostNumbers = 1 << 14

// HistogramBins is how many bins a histogram has.
const HistogramBins = 64

// LookAt says which value is looked at, when, and what of it is wanted. What it costs is the step up to the
// dispatch, run again where nothing was looked at there just before, and the reading of what is wanted.
type LookAt struct {
	Value trace.ValueID `json:"value"`
	// Step is the index of a step that the text stands on; absent: the current one. Constants need none.
	Step *int `json:"step,omitempty"`
	// After is the dispatch after which the value is read; absent: the last of the step that writes it.
	After *trace.DispatchID `json:"after,omitempty"`
	// Offset and Count are a page of its elements, in row-major order. A page may go beyond the end. Rows is
	// how many such runs are wanted, each Stride elements after the one before: a window of a matrix. Where
	// it is 0 there is one.
	Offset int `json:"offset,omitempty"`
	Count  int `json:"count,omitempty"`
	Rows   int `json:"rows,omitempty"`
	Stride int `json:"stride,omitempty"`
	// Statistics are wanted, for which all elements are read.
	Statistics bool `json:"statistics,omitempty"`
}

// Tensor is what a Look saw of a value.
type Tensor struct {
	Value trace.ValueID `json:"value"`
	// Step is the index of the step that was run again; absent: the value is the same in all.
	Step *int `json:"step,omitempty"`
	// After is the dispatch after which it was read; absent: nothing writes it.
	After *trace.DispatchID `json:"after,omitempty"`
	// DType is the type of the elements; of a matrix the format whose numbers these are.
	DType      string         `json:"dtype"`
	Dims       []int          `json:"dims,omitempty"` // live
	Offset     int            `json:"offset,omitempty"`
	Numbers    []trace.Number `json:"numbers,omitempty"`
	Statistics *Statistics    `json:"statistics,omitempty"`
}

// Statistics are of all elements of a value. Those of the finite ones are 0 where there is none.
type Statistics struct {
	Elements int `json:"elements"`
	NaN      int `json:"nan,omitempty"`
	PosInf   int `json:"pos_inf,omitempty"`
	NegInf   int `json:"neg_inf,omitempty"`
	Zeros    int `json:"zeros,omitempty"`
	// FirstOdd is the first element that is no finite number; absent where all are.
	FirstOdd *int    `json:"first_odd,omitempty"`
	Min      float64 `json:"min,omitempty"`
	Max      float64 `json:"max,omitempty"`
	Mean     float64 `json:"mean,omitempty"`
	Std      float64 `json:"std,omitempty"` // of the population
	// Histogram counts the finite elements in HistogramBins equal parts of the range from Min to Max, each
	// with its lower end and the last with both. It is absent where there is no such element.
	Histogram []int `json:"histogram,omitempty"`
}

// Finite is how many elements are numbers.
func (s *Statistics) Finite() int { return s.Elements - s.NaN - s.PosInf - s.NegInf }
