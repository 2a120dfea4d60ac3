// Package quantize quantizes the float matrices of model files to 4 bits while they are loaded.
package quantize

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"

	"gpuscope/internal/printable"
	"gpuscope/model/checkpoint/gguf"
	"gpuscope/ops/weight"
	"gpuscope/session"
	"gpuscope/trace"
)

// Quantizer quantizes float matrices to 4 bits while they are loaded and records the quantization error. A
// nil Quantizer leaves all matrices as stored in the files.
type Quantizer struct {
	group   int
	planned bool // at least one matrix is to be quantized
	mu      sync.Mutex
	// pieces caches the packed arrays of the matrix that was quantized last, and name is the name of this
	// matrix. It is enough to cache one matrix, because all arrays of a matrix are requested before those of
	// the next matrix.
	name   string
	pieces [][]byte
	Losses []loss
}

// Floats has an entry for each type of floats in model files. Size is the size of an element in bytes. Float
// converts an element to float32; the conversion is exact.
var Floats = map[string]struct {
	Size  int
	Float func(element []byte) float32
}{
	"F32":  {4, func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }},
	"F16":  {2, func(b []byte) float32 { return gguf.Float16(binary.LittleEndian.Uint16(b)) }},
	"BF16": {2, func(b []byte) float32 { return gguf.BFloat16(binary.LittleEndian.Uint16(b)) }},
}

// quantized is the format of quantized matrices.
const quantized = "q4gsw"

// loss is the quantization error of one matrix.
type loss struct {
	name   string
	From   string  // type in which the matrix was stored
	Worst  float64 // largest absolute error of a weight
	signal float64 // sum of the squared weights
	Noise  float64 // sum of the squared errors
	n      int
}

// groupSizes lists the valid values of Options.GroupSize.
var groupSizes = []int{32, 64, 128}

// New returns the quantizer for the options --quantize and --group-size, or nil if nothing is to
// be quantized.
func New(to string, group int) (*Quantizer, error) {
	switch {
	case to == "" && group != 0:
		return nil, session.Refusef("--group-size %d: only valid with --quantize q4", group)
	case to == "":
		return nil, nil
	case to != "q4":
		return nil, session.Refusef("--quantize %q: only q4 is supported", to)
	case group == 0:
		group = groupSizes[0]
	case !slices.Contains(groupSizes, group):
		return nil, session.Refusef("--group-size %d: want %s", group, printable.Choice(groupSizes))
	}
	return &Quantizer{group: group}, nil
}

// Takes reports whether the Quantizer quantizes matrices that the file stores with the type `typ`. It
// quantizes all float types. Matrices of other types are already quantized in the file.
func (q *Quantizer) Takes(typ string) bool {
	_, floats := Floats[typ]
	return q != nil && floats
}

// Matrix returns a copy of m that is quantized when its data is loaded. `typ` is the float type of m in the
// file.
func (q *Quantizer) Matrix(m weight.Matrix, typ string) (weight.Matrix, error) {
	if m.Cols%q.group != 0 {
		fits := slices.DeleteFunc(slices.Clone(groupSizes), func(n int) bool { return m.Cols%n != 0 })
		return m, session.Refusef("--group-size %d: the groups do not fit tensor %s, whose rows have %d elements; group sizes that fit: %s",
			q.group, m.Name, m.Cols, printable.Choice(fits))
	}
	q.planned = true
	stored := m.Data
	m.Format = weight.Q4GSW(q.group, weight.Q4Options{})
	m.Data = func() ([][]byte, error) {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.name == m.Name {
			return q.pieces, nil
		}
		q.name, q.pieces = "", nil // release the previous matrix before loading this one
		data, err := stored()
		if err != nil {
			return nil, err
		}
		pieces, lost := quantize(data[0], typ, m.Rows, m.Cols, q.group)
		lost.name = m.Name
		if math.IsNaN(lost.Noise) || math.IsInf(lost.Noise, 0) {
			return nil, fmt.Errorf("--quantize q4: tensor %s has weights that are NaN or Inf; run the model without --quantize",
				m.Name)
		}
		if !slices.ContainsFunc(q.Losses, func(l loss) bool { return l.name == m.Name }) {
			q.Losses = append(q.Losses, lost)
		}
		q.name, q.pieces = m.Name, pieces
		return pieces, nil
	}
	return m, nil
}

// Check returns an error if quantization was requested but the model has no matrix that can be quantized.
func (q *Quantizer) Check(name string) error {
	if q == nil || q.planned {
		return nil
	}
	return session.Refusef("--quantize q4: no matrix in %s has type F32, F16 or BF16. Omit --quantize", name)
}

// Loaded is called after all weights have been loaded. It releases memory that is no longer needed.
func (q *Quantizer) Loaded() {
	if q != nil {
		q.name, q.pieces = "", nil
	}
}

// quantize converts a matrix of floats to q4gsw and returns its packed arrays: the 4-bit values and the
// scales. It uses all processors.
func quantize(data []byte, typ string, rows, cols, group int) ([][]byte, loss) {
	element := Floats[typ]
	pieces := [][]byte{make([]byte, rows*cols/2), make([]byte, 4*rows*cols/group)}
	workers := min(runtime.GOMAXPROCS(0), rows)
	lost := make([]loss, workers)
	var wait sync.WaitGroup
	for i := range workers {
		first, end := i*rows/workers, (i+1)*rows/workers
		wait.Go(func() {
			l, row := &lost[i], make([]float32, cols)
			for r := first; r < end; r++ {
				for c := range row {
					row[c] = element.Float(data[(r*cols+c)*element.Size:])
					l.signal += float64(row[c]) * float64(row[c])
				}
				worst, noise := weight.QuantizeQ4GSW(row, group, pieces[0][r*cols/2:][:cols/2],
					pieces[1][4*r*cols/group:][:4*cols/group])
				l.Worst, l.Noise = max(l.Worst, worst), l.Noise+noise
			}
		})
	}
	wait.Wait()
	all := loss{From: typ, n: rows * cols}
	for _, l := range lost {
		all.add(l)
	}
	return pieces, all
}

func (l *loss) add(other loss) {
	l.Worst = max(l.Worst, other.Worst)
	l.signal, l.Noise, l.n = l.signal+other.signal, l.Noise+other.Noise, l.n+other.n
}

// Decibels returns the signal-to-noise ratio in dB.
func (l *loss) Decibels() float64 {
	if l.Noise == 0 {
		return math.Inf(1)
	}
	return 10 * math.Log10(l.signal/l.Noise)
}

// Cost returns the quantization error of all matrices together, or nil if none has been quantized.
func (q *Quantizer) Cost() *trace.Quantized {
	if q == nil || len(q.Losses) == 0 {
		return nil
	}
	var all loss
	out := &trace.Quantized{Format: quantized, GroupSize: q.group, Matrices: len(q.Losses)}
	for _, l := range q.Losses {
		all.add(l)
		if !slices.Contains(out.From, l.From) {
			out.From = append(out.From, l.From)
		}
	}
	worst := slices.MinFunc(q.Losses, func(a, b loss) int { return cmp.Compare(a.Decibels(), b.Decibels()) })
	out.SNRdB, out.MSE = trace.Number(all.Decibels()), trace.Number(all.Noise/float64(all.n))
	out.MaxAbs = trace.Number(all.Worst)
	out.Worst, out.WorstSNRdB = worst.name, trace.Number(worst.Decibels())
	return out
}

// String describes the format of the weights: "q4gsw in groups of 64". Once the weights are loaded, it
// includes the quantization error.
func (q *Quantizer) String() string {
	text := fmt.Sprintf("%s in groups of %d", quantized, q.group)
	c := q.Cost()
	if c == nil {
		return text
	}
	return fmt.Sprintf("%s; quantized %d matrices stored as %s: SNR %.1f dB, MSE %.2g, max error %.2g; worst matrix: %s with SNR %.1f dB",
		text, c.Matrices, strings.Join(c.From, ", "), c.SNRdB, c.MSE, c.MaxAbs, c.Worst, c.WorstSNRdB)
}
