package arch

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"gpuscope/engine/graph"
	"gpuscope/internal/printable"
	"gpuscope/model/quantize"
	"gpuscope/ops/weight"
)

// Weights adds the tensors of a checkpoint to a graph. It checks the shape of each tensor and records
// errors in the builder.
type Weights struct {
	b         *graph.Builder
	file      *Checkpoint
	form      *Spelling
	quantizer *quantize.Quantizer // nil if all weights keep their stored format
	used      map[*Tensor]bool
}

// NewWeights returns the Weights of a checkpoint for a graph. `quantizer` is nil if all weights keep their
// stored format.
func NewWeights(b *graph.Builder, file *Checkpoint, form *Spelling, quantizer *quantize.Quantizer) *Weights {
	return &Weights{b, file, form, quantizer, map[*Tensor]bool{}}
}

// tensor returns a tensor after checking its shape, or nil after an error.
func (w *Weights) tensor(name string, dims ...int) *Tensor {
	t, err := w.file.Tensor(name)
	switch {
	case w.b.Err() != nil:
	case err != nil:
		w.b.Errorf("%w", err)
	case int64(t.Size) > maxTensorBytes:
		w.b.Errorf("%s: tensor %s has %d bytes; the maximum is %d", w.file.Name(), name, t.Size,
			int64(maxTensorBytes))
	case !slices.Equal(t.Dims, dims):
		w.b.Errorf("%s: tensor %s has shape %s, but the configuration requires %s", w.file.Name(), name,
			printable.Dims(t.Dims), printable.Dims(dims))
	}
	if w.b.Err() != nil {
		return nil
	}
	w.used[t] = true
	return t
}

// notYet records the error that the type of tensor t is not supported. The error also lists the other
// unsupported types in the file.
func (w *Weights) notYet(t *Tensor) {
	var runs, also []string
	for _, f := range weight.Formats {
		if f.File != "" {
			runs = append(runs, f.File)
		}
	}
	for _, other := range w.file.Tensors() {
		name := other.Type
		if name != t.Type && !slices.Contains(runs, name) && !slices.Contains(also, name) {
			also = append(also, name)
		}
	}
	has := ""
	if len(also) > 0 {
		has = fmt.Sprintf(" (other unsupported types in the file: %s)", strings.Join(also, ", "))
	}
	w.b.Errorf("%s: not supported yet: tensor %s is stored as %s%s; this version supports the matrix types %s, and the vector types F32, F16, BF16",
		w.file.Name(), t.Name, t.Type, has, strings.Join(runs, ", "))
}

// use marks a tensor as used, so that refuseUnknown does not refuse it. The tensor may be missing in the
// file.
func (w *Weights) use(name string) {
	if t := w.file.ByName[name]; t != nil {
		w.used[t] = true
	}
}

func (w *Weights) has(name string) bool { return w.file.ByName[name] != nil }

// refuseUnknown records an error for each unused tensor that the model needs for correct results.
func (w *Weights) refuseUnknown() {
	for _, t := range w.file.Tensors() {
		if w.used[t] {
			continue
		}
		if err := w.file.refuse(t); err != nil {
			w.b.Errorf("%w", err)
		}
	}
}

// Runs reports whether this version supports the type of a tensor. The type of a vector must be F32, F16 or
// BF16. A matrix may also have a type that weight.Formats lists.
func Runs(t *Tensor) bool {
	if _, ok := quantize.Floats[t.Type]; ok {
		return true
	}
	_, ok := weight.FormatOf(t.Type)
	return ok && len(t.Dims) > 1
}

// Floats returns the elements of a vector.
func (t *Tensor) Floats() ([]float32, error) {
	data, err := t.Bytes()
	if err != nil {
		return nil, err
	}
	of := quantize.Floats[t.Type]
	list := make([]float32, t.Elements())
	for i := range list {
		list[i] = of.Float(data[i*of.Size:])
	}
	return list, nil
}

// floats returns a float tensor of a shape, or nil after an error.
func (w *Weights) floats(name string, dims ...int) *Tensor {
	t := w.tensor(name, dims...)
	if t != nil && quantize.Floats[t.Type].Size == 0 {
		w.notYet(t)
		return nil
	}
	return t
}

// vector adds an f32 constant of shape [n] to the graph.
func (w *Weights) vector(name string, n int) graph.ValueID { return w.changed(name, n, nil) }

// norm adds the weights of a norm to the graph, as an f32 constant of shape [n].
func (w *Weights) norm(name string, n int) graph.ValueID {
	if w.form.onePlus {
		return w.changed(name, n, func(x float32) float32 { return x + 1 })
	}
	return w.vector(name, n)
}

// changed adds an f32 constant of shape [n] to the graph. If the function `change` is not nil, it is applied
// to each element of the file.
func (w *Weights) changed(name string, n int, change func(float32) float32) graph.ValueID {
	return w.constant(name, w.floats(name, n), func(list []float32) []float32 {
		if change != nil {
			for i, x := range list {
				list[i] = change(x)
			}
		}
		return list
	}, n)
}

// table adds an f32 constant of a shape to the graph.
func (w *Weights) table(name string, dims ...int) graph.ValueID {
	return w.constant(name, w.floats(name, dims...), func(list []float32) []float32 { return list }, dims...)
}

// taps adds the weights of a short convolution to the graph, as an f32 constant of shape [channels, taps].
// The tensor may also have the shape [channels, 1, taps], as in Hugging Face folders.
func (w *Weights) taps(name string, channels, taps int) graph.ValueID {
	stored := []int{channels, taps}
	if t := w.file.ByName[name]; t != nil && len(t.Dims) == 3 {
		stored = []int{channels, 1, taps}
	}
	same := func(list []float32) []float32 { return list }
	return w.constant(name, w.floats(name, stored...), same, channels, taps)
}

// alternate adds an f32 constant that contains every second group of `each` elements of tensor t. It begins
// with the first group if `which` is 0, and with the second group if `which` is 1. The name of the constant
// is the tensor's name plus `suffix`.
func (w *Weights) alternate(suffix string, t *Tensor, each, which int) graph.ValueID {
	if t == nil {
		return graph.None
	}
	return w.constant(t.Name+"."+suffix, t, func(list []float32) (some []float32) {
		for at := which * each; at < len(list); at += 2 * each {
			some = append(some, list[at:at+each]...)
		}
		return some
	}, t.Dims[0], t.Dims[1]/2)
}

// constant adds an f32 constant to the graph. The function `of` computes its elements from the elements of
// tensor t.
func (w *Weights) constant(name string, t *Tensor, of func([]float32) []float32, dims ...int) graph.ValueID {
	return w.b.Constant(name, graph.F32, dims, func() ([]byte, error) {
		list, err := t.Floats()
		if err != nil {
			return nil, err
		}
		data := make([]byte, 0, 4*Numel(dims))
		for _, x := range of(list) {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
		}
		return data, nil
	})
}

// Matrix returns the tensor called `name` as a matrix of `rows` rows and `cols` columns.
func (w *Weights) Matrix(name string, rows, cols int) weight.Matrix {
	t := w.tensor(name, rows, cols)
	if t == nil {
		return weight.Matrix{}
	}
	if !Runs(t) {
		w.notYet(t)
	}
	m := weight.Matrix{Name: name, Rows: rows, Cols: cols, Data: func() ([][]byte, error) {
		blocks, err := t.Bytes()
		return [][]byte{blocks}, err
	}}
	if factor := strings.TrimSuffix(name, ".weight") + ".scale"; t.Type == "NVFP4" && w.has(factor) {
		m.Factor = w.factors(factor, 1, rows)
	}
	return w.stored(t.Type, m)
}

// factors returns a function for the field Factor of a weight.Matrix. The matrix is a stack of n matrices of
// `rows` rows each. The tensor called `name` contains one factor for each of the n matrices.
func (w *Weights) factors(name string, n, rows int) func(row int) (float32, error) {
	t := w.floats(name, n)
	load := sync.OnceValues(func() ([]float32, error) { return t.Floats() })
	return func(row int) (float32, error) {
		list, err := load()
		if err != nil {
			return 0, err
		}
		return list[row/rows], nil
	}
}

// floatMatrix does the same as Matrix, but never quantizes.
func (w *Weights) floatMatrix(name string, rows, cols int) weight.Matrix {
	quantizer := w.quantizer
	w.quantizer = nil
	defer func() { w.quantizer = quantizer }()
	return w.Matrix(name, rows, cols)
}

// rowMatrix returns a matrix with a single row. The tensor may be a vector or a matrix of one row.
func (w *Weights) rowMatrix(name string, cols int) weight.Matrix {
	dims := []int{1, cols}
	if t := w.file.ByName[name]; t != nil && len(t.Dims) == 1 {
		dims = dims[1:]
	}
	t := w.floats(name, dims...)
	if t == nil {
		return weight.Matrix{}
	}
	m := weight.Matrix{Name: name, Rows: 1, Cols: cols, Data: func() ([][]byte, error) {
		data, err := t.Bytes()
		return [][]byte{data}, err
	}}
	m.Format, _ = weight.FormatOf(t.Type)
	return m
}

// stack returns the matrices of all n experts, one after the other, as one matrix of n * rows rows. The files
// contain one tensor of shape [n, rows, cols], or n tensors if the name has a %d for the number of the
// expert. In some folders a tensor of floats has the shape [n, cols, rows].
func (w *Weights) stack(name string, n, rows, cols int) weight.Matrix {
	m := weight.Matrix{Name: name, Rows: n * rows, Cols: cols}
	var tensors []*Tensor
	if prefix, suffix, each := strings.Cut(name, "%d"); each {
		m.Name = prefix + "all" + suffix
		for i := range n {
			tensors = append(tensors, w.tensor(fmt.Sprintf(name, i), rows, cols))
		}
	} else if w.transposes(name) {
		return w.transposedStack(name, n, rows, cols)
	} else {
		tensors = []*Tensor{w.tensor(name, n, rows, cols)}
	}
	if w.b.Err() != nil {
		return weight.Matrix{}
	}
	for _, t := range tensors {
		if t.Type != tensors[0].Type {
			w.b.Errorf("%s: tensor %s is stored as %s, but %s is stored as %s; want the same type for all experts",
				w.file.Name(), t.Name, t.Type, tensors[0].Name, tensors[0].Type)
		}
	}
	if !Runs(tensors[0]) {
		w.notYet(tensors[0])
	}
	if factor := strings.TrimSuffix(name, ".weight") + ".scale"; tensors[0].Type == "NVFP4" && w.has(factor) {
		m.Factor = w.factors(factor, n, rows)
	}
	m.Data = func() ([][]byte, error) {
		if len(tensors) == 1 {
			data, err := tensors[0].Bytes()
			return [][]byte{data}, err
		}
		var all []byte
		for _, t := range tensors {
			data, err := t.Bytes()
			if err != nil {
				return nil, err
			}
			all = append(slices.Grow(all, n*len(data)-len(all)), data...)
		}
		return [][]byte{all}, nil
	}
	return w.stored(tensors[0].Type, m)
}

// alternating returns the two matrices that share a tensor. For each head, the tensor contains `size` rows of
// the first matrix and then `size` rows of the second.
func (w *Weights) alternating(name string, heads, size, cols int) (first, second weight.Matrix) {
	both := w.Matrix(name, 2*heads*size, cols)
	if w.b.Err() != nil {
		return first, second
	}
	return both.Alternate(size, 0), both.Alternate(size, 1)
}

// transposes reports whether the matrices of a stack of experts are stored transposed, as [columns, rows].
func (w *Weights) transposes(name string) bool {
	t := w.file.ByName[name]
	return w.form.transposed && t != nil && quantize.Floats[t.Type].Size > 0
}

// transposedStack does the same as stack, for a float tensor of shape [n, cols, rows].
func (w *Weights) transposedStack(name string, n, rows, cols int) weight.Matrix {
	t := w.tensor(name, n, cols, rows)
	if t == nil {
		return weight.Matrix{}
	}
	size := quantize.Floats[t.Type].Size
	m := weight.Matrix{Name: name, Rows: n * rows, Cols: cols}
	m.Data = func() ([][]byte, error) {
		data, err := t.Bytes()
		if err != nil {
			return nil, err
		}
		turned := make([]byte, len(data))
		for i := range n {
			from, to := data[i*rows*cols*size:], turned[i*rows*cols*size:]
			for row := range rows {
				for col := range cols {
					copy(to[(row*cols+col)*size:][:size], from[(col*rows+row)*size:])
				}
			}
		}
		return [][]byte{turned}, nil
	}
	return w.stored(t.Type, m)
}

// stored sets the format of m: the format of the stored type `typ`, or the quantized format if the user
// requested quantization.
func (w *Weights) stored(typ string, m weight.Matrix) weight.Matrix {
	m.Format, _ = weight.FormatOf(typ)
	if !w.quantizer.Takes(typ) {
		return m
	}
	m, err := w.quantizer.Matrix(m, typ)
	if err != nil {
		w.b.Errorf("%w", err)
	}
	return m
}

// rows describes the n rows of one matrix. If the matrix is not fused with others, `name` is the name of the
// tensor that contains it.
type rows struct {
	name string
	n    int
}

// matrices returns several matrices that multiply the same vector. If `fused` is true, a single tensor
// contains the rows of all matrices, and `all` is its name. Otherwise each matrix has its own tensor. The
// prefix is put before each tensor name.
func (w *Weights) matrices(fused bool, prefix, all string, cols int, parts ...rows) []weight.Matrix {
	list := make([]weight.Matrix, len(parts))
	if !fused {
		for i, p := range parts {
			list[i] = w.Matrix(prefix+p.name, p.n, cols)
		}
		return list
	}
	total := 0
	for _, p := range parts {
		total += p.n
	}
	whole := w.Matrix(prefix+all, total, cols)
	if w.b.Err() != nil {
		return list
	}
	first := 0
	for i, p := range parts {
		list[i] = whole.Part(first, p.n)
		first += p.n
	}
	return list
}
