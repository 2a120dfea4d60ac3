package arch

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"

	"gpuscope/internal/printable"
	"gpuscope/ops/weight"
	"gpuscope/session"
	"gpuscope/trace"
)

// Quantizer turns matrices of floats into 4 bits as they are loaded, and keeps what that costs. A nil one
// leaves all as the files have it.
type Quantizer struct {
	group   int
	planned bool // there is a matrix to quantise
	mu      sync.Mutex
	// The pieces of one matrix: its arrays are packed one after another, and no more are kept.
	name   string
	pieces [][]byte
	Losses []loss
}

// quantized is the format of what was quantised.
const quantized = "q4gsw"

// loss is what quantising took from a matrix.
type loss struct {
	name   string
	From   string // its type
	Worst  float64
	signal float64 // sum of the weights' squares
	Noise  float64 // of what is left of them
	n      int
}

// groupSizes are those that Options.GroupSize may have.
var groupSizes = []int{32, 64, 128}

// NewQuantizer is for what Options say.
func NewQuantizer(to string, group int) (*Quantizer, error) {
	switch {
	case to == "" && group != 0:
		return nil, session.Refusef("--group-size %d: it goes with --quantize q4", group)
	case to == "":
		return nil, nil
	case to != "q4":
		return nil, session.Refusef("--quantize %q: want q4", to)
	case group == 0:
		group = groupSizes[0]
	case !slices.Contains(groupSizes, group):
		return nil, session.Refusef("--group-size %d: want %s", group, printable.Choice(groupSizes))
	}
	return &Quantizer{group: group}, nil
}

// takes says whether matrices of a type are quantised: those that nobody has quantised before.
func (q *Quantizer) takes(typ string) bool {
	_, floats := vectors[typ]
	return q != nil && floats
}

// matrix quantises one that is stored as floats of a type.
func (q *Quantizer) matrix(m weight.Matrix, typ string) (weight.Matrix, error) {
	if m.Cols%q.group != 0 {
		fits := slices.DeleteFunc(slices.Clone(groupSizes), func(n int) bool { return m.Cols%n != 0 })
		return m, session.Refusef("--group-size %d: tensor %s has rows of %d, which take groups of %s",
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
		q.name, q.pieces = "", nil // so that two are never held
		data, err := stored()
		if err != nil {
			return nil, err
		}
		pieces, lost := quantize(data[0], typ, m.Rows, m.Cols, q.group)
		lost.name = m.Name
		if math.IsNaN(lost.Noise) || math.IsInf(lost.Noise, 0) {
			return nil, fmt.Errorf("--quantize q4: tensor %s has weights that are not finite: run it as stored",
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

// Check refuses a model that has nothing to quantise.
func (q *Quantizer) Check(name string) error {
	if q == nil || q.planned {
		return nil
	}
	return session.Refusef("--quantize q4: %s has no matrix of F32, F16 or BF16: leave it out", name)
}

// Loaded gives back what only loading needs.
func (q *Quantizer) Loaded() {
	if q != nil {
		q.name, q.pieces = "", nil
	}
}

// quantize gives the pieces of q4gsw for rows of floats, on all processors.
func quantize(data []byte, typ string, rows, cols, group int) ([][]byte, loss) {
	element := vectors[typ]
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
					row[c] = element.float(data[(r*cols+c)*element.size:])
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

// Decibels is the ratio of signal to noise.
func (l *loss) Decibels() float64 {
	if l.Noise == 0 {
		return math.Inf(1)
	}
	return 10 * math.Log10(l.signal/l.Noise)
}

// Cost is what quantising took from all weights; nil where none have been quantised.
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

// String is what the weights became: "q4gsw in groups of 64". Once they are loaded it says what it cost.
func (q *Quantizer) String() string {
	text := fmt.Sprintf("%s in groups of %d", quantized, q.group)
	c := q.Cost()
	if c == nil {
		return text
	}
	return fmt.Sprintf("%s, %d matrices quantised from %s: SNR %.1f dB, MSE %.2g, at most %.2g off; worst %s: SNR %.1f dB",
		text, c.Matrices, strings.Join(c.From, ", "), c.SNRdB, c.MSE, c.MaxAbs, c.Worst, c.WorstSNRdB)
}
