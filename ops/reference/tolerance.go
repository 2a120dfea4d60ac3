package reference

import (
	"fmt"
	"math"

	"gpuscope/engine/graph"
)

// Tolerance is the largest difference between a correct kernel's output and the reference. The tolerance of
// an element is the sum of the terms Rel, Row and Abs. The zero Tolerance accepts only equal numbers.
//
// Each operator derives its tolerance from its own arithmetic: from how often f32 rounding occurs while an
// element is computed, and from how large the rounded numbers are.
type Tolerance struct {
	Rel float64 // error relative to the size of the element
	Row float64 // error relative to the row's largest absolute value, for sums that can cancel out
	Abs float64 // absolute error, derived from the sizes of the inputs
	Why string
}

// Rounding is the largest relative error of rounding a number to the nearest f32. WGSL does not require
// rounding to the nearest, so the error of a kernel can be twice as large.
const Rounding = 0x1p-24

// vanishing is added to every tolerance, because a device may flush very small numbers to 0. Numbers below
// about this size do not have the full precision of f32.
const vanishing = 0x1p-120

// At returns the tolerance of an element with the reference value `want`. `row` is the largest absolute value
// in the element's row. If `want` is infinite, the tolerance is 0.
func (t *Tolerance) At(want, row float64) float64 {
	if t.Rel == 0 && t.Row == 0 && t.Abs == 0 || math.IsInf(want, 0) {
		return 0
	}
	return t.Rel*math.Abs(want) + t.Row*row + t.Abs + vanishing
}

// String returns the allowed error and its reason: "3.1e-06 of the row's largest element: 576 products summed
// in f32".
func (t *Tolerance) String() string {
	said := ""
	for _, part := range []struct {
		size float64
		of   string
	}{{t.Rel, " of the element"}, {t.Row, " of the row's largest element"}, {t.Abs, ""}} {
		if part.size == 0 {
			continue
		}
		if said != "" {
			said += " + "
		}
		said += fmt.Sprintf("%.2g%s", part.size, part.of)
	}
	if said == "" {
		said = "none"
	}
	return said + ": " + t.Why
}

// Exact is the tolerance of operators that do not round, because they return an operand or one of two fixed
// numbers. OneRounding is the tolerance of operators that do a single f32 operation.
var (
	Exact       = Tolerance{Why: "nothing is rounded"}
	OneRounding = Tolerance{Rel: 2 * Rounding, Why: "one rounding to f32"}
)

// Moves is embedded in operators that copy elements without computing anything. Its tolerance is zero.
type Moves struct{}

func (Moves) Tolerance(*Ref, graph.ValueID) Tolerance {
	return Tolerance{Why: "elements are copied unchanged"}
}

// SumRoundings returns the error of an f32 sum of n products, as a multiple of Rounding. Each rounding goes
// up or down at random, so the error grows only with the square root of n. The constant 8 allows for partial
// sums, which kernels add up at the end.
func SumRoundings(n int) float64 { return 8 + 4*math.Sqrt(float64(n)) }

// ULPs returns the relative error that corresponds to n units in the last place (ULP) of an f32. The WGSL
// specification gives the accuracy of built-in functions in ULP (section 15.7.4.1).
func ULPs(n float64) float64 { return 2 * n * Rounding }

// ExpTolerance is the tolerance of exp(x) in WGSL: 3 + 2 |x| ulp, for |x| up to 88. For larger |x|, exp(x) is
// outside the range of f32.
var ExpTolerance = Tolerance{
	Rel: ULPs(3 + 2*88), Why: "WGSL allows an error of 3 + 2 |x| ulp in exp(x), and |x| is at most 88",
}

// Largest returns the largest absolute value of a tensor. Numbers that are not finite are ignored.
func (r *Ref) Largest(v graph.ValueID) float64 { return Largest(r.Tensor(v).Data) }

// Largest returns the largest absolute value of data. Numbers that are not finite are ignored.
func Largest(data []float64) float64 {
	most := 0.0
	for _, x := range data {
		if size := math.Abs(x); size > most && !math.IsInf(size, 1) {
			most = size
		}
	}
	return most
}

// LongestRow returns the largest Euclidean length of a tensor's rows.
func (t Tensor) LongestRow() (most float64) {
	n, _ := t.Rows()
	for i := range n {
		most = max(most, Length(t.Row(i)))
	}
	return most
}

// Length returns the Euclidean length of a vector, or 0 if the length is not finite. A row with NaN or an
// infinity then has no influence on the tolerance of other rows.
func Length(x []float64) float64 {
	n := math.Sqrt(Dot(x, x))
	if math.IsNaN(n) || math.IsInf(n, 0) {
		return 0
	}
	return n
}
