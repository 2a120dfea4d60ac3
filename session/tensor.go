package session

import "gpuscope/trace"

// MostNumbers is the maximum number of elements that one Look returns. The front end reads larger values in
// pages.
const MostNumbers = 1 << 14

// HistogramBins is the number of bins of a histogram.
const HistogramBins = 64

// LookAt selects what a Look reads: the value, the step, the dispatch after which the value is read, and the
// data to return. The engine runs the step again up to the dispatch After and then reads the requested data
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
	// Baseline selects the value to subtract. The numbers, statistics and heat map of the result then
	// describe the difference. The difference covers only the elements that the value has in both steps, so
	// each dim is the smaller of the two. If Statistics is set, the result also has a Difference.
	Baseline *BaselineAt `json:"baseline,omitempty"`
	// Map requests a heat map of the whole value, for which all elements are read.
	Map *MapAt `json:"map,omitempty"`
}

// BaselineAt selects the step and the dispatch at which a Look reads the baseline of a value.
type BaselineAt struct {
	Step int `json:"step"` // index of a step of the current text
	// After is the dispatch after which the value is read; nil means the last dispatch of the step that
	// writes the value.
	After *trace.DispatchID `json:"after,omitempty"`
}

// Difference compares a value with its baseline, over the elements that the value has in both steps. If one
// or both of two compared elements are not finite, they count in NotFinite, unless both are the same infinite
// number. MaxAbs, MeanAbs, Relative and Cosine cover only the elements that are finite in both.
type Difference struct {
	Elements  int `json:"elements"`             // number of compared elements
	Differ    int `json:"differ,omitempty"`     // number of unequal elements; a NaN equals nothing
	NotFinite int `json:"not_finite,omitempty"` // number of differences that are NaN or infinite
	// MaxAbs is the largest absolute difference. MaxAt is the index of its element in the Dims of the Tensor;
	// nil if no difference is above 0.
	MaxAbs  float64 `json:"max_abs,omitempty"`
	MaxAt   *int    `json:"max_at,omitempty"`
	MeanAbs float64 `json:"mean_abs,omitempty"`
	// Relative is the Euclidean norm of the difference, divided by that of the baseline; nil if the norm of
	// the baseline is 0. Cosine is the cosine of the angle between both values; nil if one of the norms is 0.
	Relative *float64 `json:"relative,omitempty"`
	Cosine   *float64 `json:"cosine,omitempty"`
}

// MapAt divides a value into the cells of a heat map. The value is treated as a matrix with Width elements in
// a row. A cell covers a block of Rows×Columns elements of the matrix; cells at the right and at the bottom
// may cover fewer. A heat map has at most MostNumbers cells.
type MapAt struct {
	Width   int `json:"width"`
	Rows    int `json:"rows"`
	Columns int `json:"columns"`
	// Elements limits the heat map to the first elements of the value, such as the rows of a KV cache that
	// are in use; 0 means all elements.
	Elements int `json:"elements,omitempty"`
}

// HeatMap shows where in a value the large elements are.
type HeatMap struct {
	Rows    int `json:"rows"`    // number of rows of cells
	Columns int `json:"columns"` // number of cells in a row
	// Cells holds one number for each cell, row by row: the largest absolute value of its elements. The
	// number is NaN if the cell contains a NaN, else infinite if the cell contains an infinite element.
	Cells []trace.Number `json:"cells,omitempty"`
}

// Tensor is the result of a Look.
type Tensor struct {
	Value trace.ValueID `json:"value"`
	// Step is the index of the step that was run again to read the value; nil for a constant.
	Step *int `json:"step,omitempty"`
	// After is the dispatch after which the value was read; nil if no dispatch writes the value.
	After *trace.DispatchID `json:"after,omitempty"`
	// DType is the type of the elements. For a weight matrix it is the storage format, and Numbers holds the
	// decoded weights.
	DType      string         `json:"dtype"`
	Dims       []int          `json:"dims,omitempty"` // live shape
	Offset     int            `json:"offset,omitempty"`
	Numbers    []trace.Number `json:"numbers,omitempty"`
	Statistics *Statistics    `json:"statistics,omitempty"`
	Map        *HeatMap       `json:"map,omitempty"`
	// Baseline describes the value that was subtracted, and Difference the result of the comparison. Both are
	// nil without a baseline.
	Baseline   *BaselineOf `json:"baseline,omitempty"`
	Difference *Difference `json:"difference,omitempty"`
}

// BaselineOf describes the value that a Look has subtracted.
type BaselineOf struct {
	Step  int               `json:"step"`
	After *trace.DispatchID `json:"after,omitempty"` // dispatch after which the value was read
	Dims  []int             `json:"dims,omitempty"`  // live shape of the whole value
	Whole []int             `json:"whole,omitempty"` // live shape of the whole value compared with it
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
