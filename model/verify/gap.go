package verify

import (
	"hash/fnv"
	"math"

	"gpuscope/ops/reference"
	"gpuscope/trace"
)

// Difference is the distance of numbers from those of a reference as it adds up.
type Difference struct {
	n             int
	MaxAbs        float64
	noise, signal float64 // sums of squares
}

// Add compares a number. An infinity where the reference has one is no difference, nor is a NaN.
func (d *Difference) Add(got, want float64) (off float64) {
	if got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
		off = math.Abs(got - want)
	}
	d.n++
	if !(off <= d.MaxAbs) && !math.IsNaN(d.MaxAbs) {
		d.MaxAbs = off
	}
	d.noise += off * off
	if !math.IsNaN(want) && !math.IsInf(want, 0) {
		d.signal += want * want
	}
	return off
}

// drift is what was added up: largest and mean squared difference, and the signal over the noise in dB.
func (d *Difference) drift() trace.Drift {
	snr := math.Inf(1)
	if d.noise != 0 {
		snr = 10 * math.Log10(d.signal/d.noise)
	}
	return trace.Drift{
		MaxAbs: trace.Number(d.MaxAbs), MSE: trace.Number(d.noise / float64(max(d.n, 1))),
		SNRdB: trace.Number(snr),
	}
}

// Sample is a part of a value: rows of a width, of which the elements that were chosen are compared.
type Sample struct {
	Width      int
	Rows, Cols []int            // chosen; nil are all
	Float      bool             // f32 or narrower: what it has no room for is infinite
	From       int              // of the value's elements the first that is compared
	Column     func(at int) int // as graph.ValueInfo has it
}

// element is the index in the value's live dims of the i-th element that is compared.
func (v *Sample) element(i int) int {
	if v.Column != nil {
		return v.Column(v.From + i)
	}
	return v.From + i
}

// each calls f for the elements that are compared, row by row.
func (v *Sample) each(n int, f func(row []int)) {
	places := make([]int, 0, v.Width)
	one := func(row int) {
		places = places[:0]
		for c := range v.Width {
			if v.Cols == nil {
				places = append(places, row*v.Width+c)
			}
		}
		for _, c := range v.Cols {
			places = append(places, row*v.Width+c)
		}
		f(places)
	}
	if v.Rows == nil {
		for row := range n / v.Width {
			one(row)
		}
	}
	for _, row := range v.Rows {
		one(row)
	}
}

// expect is what a device can have of a number of the reference.
func (v *Sample) expect(want float64) float64 {
	if v.Float && math.Abs(want) > math.MaxFloat32 {
		return float64(float32(want))
	}
	return want
}

// Error holds what the device has to the reference on the same inputs, and to the tolerance of the operator.
func (v *Sample) Error(got, want []float64, t *reference.Tolerance) trace.NumericError {
	g := trace.NumericError{Reference: "float64", Tolerance: t.String(), Elements: len(got)}
	var d Difference
	farthest := -1.0
	v.each(len(got), func(row []int) {
		largest := 0.0
		for _, i := range row {
			if size := math.Abs(want[i]); size > largest && !math.IsInf(size, 0) {
				largest = size
			}
		}
		for _, i := range row {
			expected := v.expect(want[i])
			off := d.Add(got[i], expected)
			if math.IsNaN(got[i]) || math.IsInf(got[i], 0) {
				g.NotFinite++
			}
			share := 0.0
			switch most := t.At(expected, largest); {
			case off == 0:
			case math.IsNaN(off) || most == 0:
				share = math.Inf(1)
			default:
				share = off / most
			}
			at := v.element(i)
			if share > farthest || share == farthest && at < g.Element {
				farthest = share
				g.Share, g.Element = trace.Number(share), at
				g.Got, g.Want = trace.Number(got[i]), trace.Number(want[i])
			}
		}
	})
	all := d.drift()
	g.MaxAbs, g.MSE, g.SNRdB, g.Compared = all.MaxAbs, all.MSE, all.SNRdB, d.n
	return g
}

// Drift is how far what the device has is from the reference run.
func (v *Sample) Drift(got, want []float64) *trace.Drift {
	var d Difference
	v.each(len(got), func(row []int) {
		for _, i := range row {
			d.Add(got[i], v.expect(want[i]))
		}
	})
	all := d.drift()
	return &all
}

// ChooseSample takes a part of the elements of an output of rows and columns, as many of the rows as of the
// columns and a few of each at the least: always the same ones, spread over all, the first and the last among
// them.
func ChooseSample(name string, rows, cols int, part float64) reference.Choice {
	const fewRows, fewCols = 4, 64
	if part >= 1 {
		return reference.Choice{}
	}
	r := max(int(math.Ceil(float64(rows)*math.Sqrt(part))), min(rows, fewRows))
	c := max(int(math.Ceil(part*float64(rows)*float64(cols)/float64(r))), min(cols, fewCols))
	return reference.Choice{Rows: Spread(name, rows, r), Cols: Spread(name, cols, min(c, cols))}
}

// Spread are k of n places: one from each of k stretches, by a hash of the name and its number, the first
// place and the last among them. nil are all.
func Spread(name string, n, k int) []int {
	if k >= n {
		return nil
	}
	h := fnv.New64a()
	h.Write([]byte(name))
	z := h.Sum64()
	places := make([]int, k)
	for i := range places {
		from, to := i*n/k, (i+1)*n/k
		z = (z ^ z>>31) * 0x9e3779b97f4a7c15
		places[i] = from + int(z>>33%uint64(to-from))
	}
	places[0] = 0
	if k > 1 {
		places[k-1] = n - 1
	}
	return places
}
