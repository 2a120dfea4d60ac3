package verify

import (
	"hash/fnv"
	"math"

	"gpuscope/ops/reference"
	"gpuscope/trace"
)

// Difference accumulates the differences between numbers and their reference values.
type Difference struct {
	n             int
	MaxAbs        float64
	noise, signal float64 // sums of the squared differences and of the squared reference values
}

// Add adds the difference of one pair of numbers and returns its absolute value. The difference of two equal
// infinities is 0, and so is the difference of two NaNs.
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

// drift summarizes the differences: the largest, their mean square, and the signal-to-noise ratio in dB.
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

// Sample selects elements of a value for comparison. The value consists of rows of Width elements.
type Sample struct {
	Width      int
	Rows, Cols []int            // indices of the chosen rows and columns; nil selects all
	Float      bool             // whether elements are f32, so that larger numbers are infinite
	From       int              // index in the value of the first element that is compared
	Column     func(at int) int // see graph.ValueInfo
}

// element converts an index in the compared slices to the index of the same element in the value.
func (v *Sample) element(i int) int {
	if v.Column != nil {
		return v.Column(v.From + i)
	}
	return v.From + i
}

// each calls f once for each chosen row, with the indices of the chosen elements of this row. n is the number
// of elements in all rows.
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

// expect returns what a device would store for a reference number: infinity if the number is too large for an
// f32.
func (v *Sample) expect(want float64) float64 {
	if v.Float && math.Abs(want) > math.MaxFloat32 {
		return float64(float32(want))
	}
	return want
}

// Error compares the device's results with those of a reference that had the same inputs. Each difference is
// expressed as a fraction of the operator's tolerance.
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

// Drift compares the device's results with those of the reference run, whose inputs came from earlier
// references.
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

// ChooseSample chooses rows and columns of a large output. The elements in both a chosen row and a chosen
// column are compared. `part` is the approximate fraction of elements to compare. About the same fraction of
// rows and of columns is chosen, but at least a few of each. The choice depends only on the arguments, covers
// the whole output evenly, and includes the first and the last row and column.
func ChooseSample(name string, rows, cols int, part float64) reference.Choice {
	const fewRows, fewCols = 4, 64
	if part >= 1 {
		return reference.Choice{}
	}
	r := max(int(math.Ceil(float64(rows)*math.Sqrt(part))), min(rows, fewRows))
	c := max(int(math.Ceil(part*float64(rows)*float64(cols)/float64(r))), min(cols, fewCols))
	return reference.Choice{Rows: Spread(name, rows, r), Cols: Spread(name, cols, min(c, cols))}
}

// Spread chooses k of the indices from 0 to n-1 and returns them in ascending order. If k is at least n, it
// returns nil, which means all indices. It divides the range into k sections of equal size and takes one
// index from each section, selected by a hash of `name` and of the number of the section. The first and the
// last index are always included.
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
