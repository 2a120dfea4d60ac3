package program

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/x448/float16"

	"gpuscope/engine/graph"
	"gpuscope/internal/npy"
	"gpuscope/internal/printable"
	"gpuscope/model/checkpoint/pte"
	"gpuscope/model/checkpoint/pte/vulkan"
)

// Argument describes an input or an output of a method.
type Argument struct {
	Type pte.Type
	Dims []int // upper bounds
	// Changes is true for each dim whose size can change from run to run. All other dims always have the size
	// in Dims.
	Changes []bool
}

// String describes the argument: "f32 [1, ≤128, 64]".
func (a Argument) String() string {
	sizes := make([]string, len(a.Dims))
	for k, n := range a.Dims {
		sizes[k] = strconv.Itoa(n)
		if a.Changes[k] {
			sizes[k] = "≤" + sizes[k]
		}
	}
	return fmt.Sprintf("%s [%s]", a.Type, strings.Join(sizes, ", "))
}

// differs describes the first difference between `dims` and the argument, or returns "" if the argument
// accepts `dims`.
func (a Argument) differs(dims []int) string {
	if len(dims) != len(a.Dims) {
		return fmt.Sprintf("it has %d dims, want %d", len(dims), len(a.Dims))
	}
	for k, n := range dims {
		switch {
		case n == a.Dims[k]:
		case !a.Changes[k]:
			return fmt.Sprintf("dim %d is %d, want %d", k, n, a.Dims[k])
		case n < 1 || n > a.Dims[k]:
			return fmt.Sprintf("dim %d is %d, want 1 to %d", k, n, a.Dims[k])
		}
	}
	return ""
}

// Name returns the name of the method.
func (m *Method) Name() string { return m.method.Name }

// Inputs describes the inputs of the method.
func (m *Method) Inputs() []Argument { return m.arguments(m.method.Inputs) }

// Outputs describes the outputs of the method.
func (m *Method) Outputs() []Argument { return m.arguments(m.method.Outputs) }

func (m *Method) arguments(ids []int) []Argument {
	list := make([]Argument, len(ids))
	for i, id := range ids {
		if t, ok := m.method.Values[id].(*pte.Tensor); ok {
			list[i] = m.argument(id, t)
		}
	}
	return list
}

func (m *Method) argument(id int, t *pte.Tensor) Argument {
	a := Argument{Type: t.Type, Dims: t.Sizes, Changes: make([]bool, len(t.Sizes))}
	for k, change := range m.changes.Of(id, t) {
		a.Changes[k] = change != vulkan.Fixed
	}
	return a
}

// LiveDim states the size that a dim of an input has in a run.
type LiveDim struct {
	Input, Dim int
	Size       int
}

var liveDimText = regexp.MustCompile(`^(\d{1,9})\.(\d{1,9})=(\d{1,9})$`)

// ParseLiveDims parses sizes as a user types them: "0.1=7", or several separated by commas or spaces.
func ParseLiveDims(text string) ([]LiveDim, error) {
	var list []LiveDim
	for _, one := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		m := liveDimText.FindStringSubmatch(one)
		if m == nil {
			return nil, fmt.Errorf("%w: %s: want INPUT.DIM=N, such as 0.1=7", ErrInput,
				printable.Short(strconv.Quote(one), 40))
		}
		var n [3]int
		for i := range n {
			n[i], _ = strconv.Atoi(m[i+1]) // at most 9 digits
		}
		list = append(list, LiveDim{n[0], n[1], n[2]})
	}
	return list, nil
}

// LiveShapes returns the shape of each input of a run in which the user has chosen the sizes of some dims.
// If the user has chosen the size of a dim, the dims that have the same size in every run get this size
// too. All other dims get their upper bound. The error wraps ErrInput.
func (m *Method) LiveShapes(chosen []LiveDim) ([][]int, error) {
	inputs := m.Inputs()
	shapes := make([][]int, len(inputs))
	for i, a := range inputs {
		shapes[i] = slices.Clone(a.Dims)
	}
	for i, c := range chosen {
		for _, d := range chosen[:i] {
			if d.Input == c.Input && d.Dim == c.Dim && d.Size != c.Size {
				return nil, inputError(c.Input, "dim %d is given twice, as %d and as %d", c.Dim, d.Size,
					c.Size)
			}
		}
		if c.Input >= len(inputs) {
			return nil, fmt.Errorf("%w: %d.%d=%d: method %s has %d inputs, numbered from 0", ErrInput,
				c.Input, c.Dim, c.Size, m.Name(), len(inputs))
		}
		a := inputs[c.Input]
		switch {
		case c.Dim >= len(a.Dims):
			return nil, inputError(c.Input, "%s has no dim %d", a, c.Dim)
		case !a.Changes[c.Dim] && c.Size != a.Dims[c.Dim]:
			return nil, inputError(c.Input, "dim %d of %s cannot change", c.Dim, a)
		case c.Size < 1 || c.Size > a.Dims[c.Dim]:
			return nil, inputError(c.Input, "dim %d is %d, want 1 to %d", c.Dim, c.Size, a.Dims[c.Dim])
		}
		for i, id := range m.method.Inputs {
			for k := range shapes[i] {
				if m.changes.Equal(id, k, m.method.Inputs[c.Input], c.Dim) && c.Size <= inputs[i].Dims[k] {
					shapes[i][k] = c.Size
				}
			}
		}
	}
	for _, c := range chosen { // the size chosen for a dim takes precedence over that of an equal dim
		shapes[c.Input][c.Dim] = c.Size
	}
	return shapes, nil
}

// RandomInputs returns random inputs with these shapes. The same seed gives the same inputs. Floats are
// between -1 and 1. Indices are valid for their table. Integers that the method uses as positions or sizes
// are 0.
func (m *Method) RandomInputs(seed uint64, shapes [][]int) ([]*npy.Array, error) {
	rng := rand.New(rand.NewPCG(seed, 0))
	var inputs []*npy.Array
	for i, a := range m.Inputs() {
		e, ok := elements[a.Type]
		if !ok {
			return nil, inputError(i, "%w", &TypeError{a.Type})
		}
		array := &npy.Array{Type: e.numpy, Dims: shapes[i]}
		value := m.inputValue(m.method.Inputs[i])
		rows, position := 0, false
		if value != graph.None {
			rows, position = m.indices[value], m.sizes[value] != nil
		}
		for range graph.Numel(array.Dims) {
			array.Data = appendRandom(array.Data, e.numpy, rng, rows, position)
		}
		inputs = append(inputs, array)
	}
	return inputs, nil
}

// inputValue returns the value in the engine's graph for an input of the method, or graph.None if the
// delegate does not read the input.
func (m *Method) inputValue(outer int) graph.ValueID {
	for i, id := range m.source.Inputs {
		if m.call.Args[i] == outer {
			return m.Value(id)
		}
	}
	return graph.None
}

// appendRandom appends a random element. If `rows` is not 0, the element is an index into a table with this
// many rows. If `position` is true, the element is 0.
func appendRandom(data []byte, t npy.Type, rng *rand.Rand, rows int, position bool) []byte {
	f := 2*rng.Float64() - 1
	n := rng.IntN(17) - 8
	switch {
	case position:
		n = 0
	case rows > 0:
		n = rng.IntN(rows)
	}
	switch t {
	case npy.Float16:
		return binary.LittleEndian.AppendUint16(data, float16.Fromfloat32(float32(f)).Bits())
	case npy.Float32:
		return binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(f)))
	case npy.Float64:
		return binary.LittleEndian.AppendUint64(data, math.Float64bits(f))
	case npy.Int32:
		return binary.LittleEndian.AppendUint32(data, uint32(n))
	case npy.Int64:
		return binary.LittleEndian.AppendUint64(data, uint64(n))
	case npy.Bool:
		return append(data, byte(rng.IntN(2)))
	}
	if rows > 0 || position {
		return append(data, byte(n))
	}
	return append(data, byte(rng.IntN(256))) // int8 and uint8: all values
}

// ErrNoTensor is wrapped by the error for a test case with an input or output that is not a tensor.
var ErrNoTensor = errors.New("only tensors are supported")

// Arrays converts the inputs or the outputs of a test case of a .bpte file.
func Arrays(values []any) ([]*npy.Array, error) {
	var list []*npy.Array
	for i, v := range values {
		t, ok := v.(*pte.TestTensor)
		if !ok {
			return nil, fmt.Errorf("value %d of the test case is a %T: %w", i, v, ErrNoTensor)
		}
		e, ok := elements[t.Type]
		if !ok {
			return nil, fmt.Errorf("value %d of the test case: %w", i, &TypeError{t.Type})
		}
		data, err := t.Data.Bytes()
		if err != nil {
			return nil, err
		}
		size, ok := t.Type.Bytes(t.Sizes)
		if !ok || int64(len(data)) < size {
			return nil, fmt.Errorf("value %d of the test case has %d bytes, but shape %v of %s needs %d", i,
				len(data), t.Sizes, t.Type, size)
		}
		for k, d := range t.DimOrder {
			if int(d) != k {
				return nil, fmt.Errorf("value %d of the test case is not stored in row-major order", i)
			}
		}
		list = append(list, &npy.Array{Type: e.numpy, Dims: t.Sizes, Data: data[:size]})
	}
	return list, nil
}
