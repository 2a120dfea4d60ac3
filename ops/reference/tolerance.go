package reference

import (
	"fmt"
	"math"

	"gpuscope/engine/graph"
)

// Tolerance is how far the elements of an output may be from the reference while the kernel does what it
// should: the sum of its terms, each of them of the element. The zero Tolerance takes equal numbers alone.
// An operator's is written beside its reference, from its arithmetic: how many roundings of f32 lie behind an
// element, and of what they are a part.
type Tolerance struct {
	Rel float64 // of the element's own size
	Row float64 // of the largest size in its row, the last dim: where terms cancel out
	Abs float64 // of no size of the output: what inputs bring
	Why string
}

// Rounding is what rounding to f32 moves a number by at most, as a part of it. WGSL leaves the direction
// open, so that a rounding may be twice that.
const Rounding = 0x1p-24

// vanishing is below what f32 holds with all its bits: a device may take it for 0.
const vanishing = 0x1p-120

// At is the tolerance of an element: its reference and the largest size in its row are known. Nothing is near
// an infinity.
func (t *Tolerance) At(want, row float64) float64 {
	if t.Rel == 0 && t.Row == 0 && t.Abs == 0 || math.IsInf(want, 0) {
		return 0
	}
	return t.Rel*math.Abs(want) + t.Row*row + t.Abs + vanishing
}

// String says what may differ and why: "3.1e-06 of the row's largest: 576 products summed in f32".
func (t *Tolerance) String() string {
	said := ""
	for _, part := range []struct {
		size float64
		of   string
	}{{t.Rel, " of the number"}, {t.Row, " of the row's largest"}, {t.Abs, ""}} {
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

// Exact is the tolerance of what is one of the operands, or one of two numbers; oneRounding of what is
// computed at once.
var (
	Exact       = Tolerance{Why: "nothing is rounded"}
	OneRounding = Tolerance{Rel: 2 * Rounding, Why: "one rounding to f32"}
)

// Moves is an operator that takes elements to other places and computes nothing.
type Moves struct{}

func (Moves) Tolerance(*Ref, graph.ValueID) Tolerance {
	return Tolerance{Why: "elements are moved as they are"}
}

// SumRoundings is how many roundings a sum of n products has after it: they go up and down, so that they add
// up as the square root of their number, and kernels sum in several parts.
func SumRoundings(n int) float64 { return 8 + 4*math.Sqrt(float64(n)) }

// ULPs are units in the last place, in which the specification of WGSL has its bounds (15.7.4.1, accuracy of
// built-in functions), as a part of a number.
func ULPs(n float64) float64 { return 2 * n * Rounding }

// ExpTolerance is what exp may be off, for results that f32 holds: 3 + 2 |x| ulp, |x| up to 88.
var ExpTolerance = Tolerance{
	Rel: ULPs(3 + 2*88), Why: "WGSL allows exp 3 + 2 |x| ulp, and |x| goes up to 88",
}

// Largest is the largest size of a tensor's numbers; what is not finite is passed over.
func (r *Ref) Largest(v graph.ValueID) float64 { return Largest(r.Tensor(v).Data) }

func Largest(data []float64) float64 {
	most := 0.0
	for _, x := range data {
		if size := math.Abs(x); size > most && !math.IsInf(size, 1) {
			most = size
		}
	}
	return most
}

// LongestRow is the greatest length of a tensor's rows.
func (t Tensor) LongestRow() (most float64) {
	n, _ := t.Rows()
	for i := range n {
		most = max(most, Length(t.Row(i)))
	}
	return most
}

// Length is that of a vector; of one that is not finite it is 0, so that it says nothing of others.
func Length(x []float64) float64 {
	n := math.Sqrt(Dot(x, x))
	if math.IsNaN(n) || math.IsInf(n, 0) {
		return 0
	}
	return n
}
