package session

import "gpuscope/trace"

// MostNumbers is the maximum number of elements that one Look returns. The front end reads larger values in
// pages.
const MostNumbers = 1 << 14

// HistogramBins is the number of bins of a histogram.
const HistogramBins = 64

// LookAt selects the value that a Look reads, the step and the dispatch after which the value is read, and
// what is returned. The engine runs the step again up to the dispatch After and then reads the requested data
// back. If the previous Look read the same value after the same dispatch, the step does not run again.
type LookAt struct {
	Value trace.ValueID `json:"value"`
	// Step is the index of a step of the current text; nil means the current step. Constants need no step.
	Step *int `json:"step,omitempty"`
	// After is the dispatch after which the value is read; nil means the last dispatch of the step that
	// writes the value.
	After *trace.DispatchID `json:"after,omitempty"`
	// Offset and Count select a page: Count elements, starting at element Offset, in row-major order. A page
	// may extend beyond the end of the value. To read a window of a matrix, set Rows to the number of pages,
	// and Stride to the number of elements between the starts of two pages. If Rows is 0, there is one page.
	Offset int `json:"offset,omitempty"`
	Count  int `json:"count,omitempty"`
	Rows   int `json:"rows,omitempty"`
	Stride int `json:"stride,omitempty"`
	// Statistics requests the statistics of the whole value, for which all elements are read.
	Statistics bool `json:"statistics,omitempty"`
}

// Tensor is the result of a Look.
type Tensor struct {
	Value trace.ValueID `json:"value"`
	// Step is the index of the step that was run again to read the value; nil for a constant.
	Step *int `json:"step,omitempty"`
	// After is the dispatch after which the value was read; nil if no dispatch writes the value.
	After *trace.DispatchID `json:"after,omitempty"`
	// DType is the type of the elements. For a weight matrix it is the storage format, from which Numbers
	// were decoded.
	DType      string         `json:"dtype"`
	Dims       []int          `json:"dims,omitempty"` // live shape
	Offset     int            `json:"offset,omitempty"`
	Numbers    []trace.Number `json:"numbers,omitempty"`
	Statistics *Statistics    `json:"statistics,omitempty"`
}

// Statistics describes all elements of a value. Min, Max, Mean and Std cover the finite elements, and are 0
// if there are none.
type Statistics struct {
	Elements int `json:"elements"`
	NaN      int `json:"nan,omitempty"`
	PosInf   int `json:"pos_inf,omitempty"`
	NegInf   int `json:"neg_inf,omitempty"`
	Zeros    int `json:"zeros,omitempty"`
	// FirstOdd is the index of the first element that is not finite; nil if all elements are finite.
	FirstOdd *int    `json:"first_odd,omitempty"`
	Min      float64 `json:"min,omitempty"`
	Max      float64 `json:"max,omitempty"`
	Mean     float64 `json:"mean,omitempty"`
	Std      float64 `json:"std,omitempty"` // population standard deviation
	// Histogram counts the finite elements in HistogramBins equal bins from Min to Max. Each bin includes
	// its lower end, and the last bin also includes its upper end. Histogram is nil if no element is
	// finite.
	Histogram []int `json:"histogram,omitempty"`
}

// Finite returns the number of finite elements.
func (s *Statistics) Finite() int { return s.Elements - s.NaN - s.PosInf - s.NegInf }
