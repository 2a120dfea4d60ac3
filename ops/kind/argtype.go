package kind

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/internal/printable"
	"gpuscope/ops/weight"
)

// ArgType describes the values that an argument of an operator accepts.
type ArgType struct {
	Form   ArgForm
	DTypes []graph.DType // accepted element types of a tensor or State
	Format string        // name of the weight format of a matrix; empty for f32
}

// ArgForm is the kind of value that an argument needs, such as a tensor, an integer, a number or a matrix.
type ArgForm uint8

// The values of ArgForm.
const (
	TensorArg ArgForm = iota
	StateArg          // a State tensor, which the operator updates in place
	TensorsArg
	IntArg
	SymIntArg // a fixed integer, or a SymInt
	IntsArg
	SymIntsArg
	FloatArg
	BoolArg
	MatrixArg // constant weights in a format
	argForms
)

// The argument types that operators accept.
var (
	F32Tensor    = tensorOf(graph.F32)
	I32Tensor    = tensorOf(graph.I32)
	NumberTensor = tensorOf(graph.F32, graph.I32)
	WordTensor   = tensorOf(graph.F32, graph.I32, graph.U32) // any 32-bit type
	AnyTensor    = tensorOf(graph.F32, graph.I32, graph.U32, graph.F16, graph.I8, graph.Q4)
	WordTensors  = ArgType{Form: TensorsArg, DTypes: WordTensor.DTypes}
	CacheState   = ArgType{Form: StateArg, DTypes: []graph.DType{graph.F32, graph.F16}}
	WordState    = ArgType{Form: StateArg, DTypes: WordTensor.DTypes}
	F32State     = ArgType{Form: StateArg, DTypes: F32Tensor.DTypes}
	IntType      = ArgType{Form: IntArg}
	SymIntType   = ArgType{Form: SymIntArg}
	IntsType     = ArgType{Form: IntsArg}
	SymIntsType  = ArgType{Form: SymIntsArg}
	FloatType    = ArgType{Form: FloatArg}
	BoolType     = ArgType{Form: BoolArg}
	MatrixType   = ArgType{Form: MatrixArg} // weights in f32, or in Format if it is set
)

func tensorOf(dtypes ...graph.DType) ArgType { return ArgType{Form: TensorArg, DTypes: dtypes} }

// formNames are the texts for the forms in error messages and in the documentation.
var formNames = [argForms]string{
	TensorArg: "a tensor", StateArg: "State", TensorsArg: "tensors", IntArg: "an integer",
	SymIntArg: "an integer or SymInt", IntsArg: "integers", SymIntsArg: "integers or SymInts",
	FloatArg: "a number", BoolArg: "true or false", MatrixArg: "a matrix of weights",
}

// takers has one conversion function for each form. The function converts the value that a caller passes into
// the Go type that constructors expect for this form. If the value does not fit, the error contains the value
// and the accepted type.
var takers = [argForms]func(b *graph.Builder, t ArgType, v any) (any, error){
	TensorArg: takeTensor, StateArg: takeTensor, TensorsArg: takeEach[graph.ValueID](TensorArg, takeTensor),
	IntArg: takeInt, SymIntArg: takeSymInt, IntsArg: takeEach[int](IntArg, takeInt),
	SymIntsArg: takeEach[Int](SymIntArg, takeSymInt), FloatArg: takeFloat, BoolArg: takeBool,
	MatrixArg: takeMatrix,
}

// String returns the type in words: "a tensor of f32".
func (t ArgType) String() string {
	if t.Form == MatrixArg {
		return formNames[t.Form] + " in " + cmp.Or(t.Format, "f32")
	}
	if len(t.DTypes) == 0 {
		return formNames[t.Form]
	}
	return formNames[t.Form] + " of " + t.Elements()
}

// Elements lists the accepted element types in words: "f32, i32 or u32".
func (t ArgType) Elements() string {
	var names []string
	for _, d := range t.DTypes {
		names = append(names, d.String())
	}
	return printable.Choice(names)
}

// take(b, v) converts the argument v into the Go type that constructors expect.
func (t ArgType) take(b *graph.Builder, v any) (any, error) { return takers[t.Form](b, t, v) }

func (t ArgType) refuse(v any) error { return fmt.Errorf("%v has Go type %T, want %s", v, v, t) }

func takeTensor(b *graph.Builder, t ArgType, v any) (any, error) {
	id, ok := v.(graph.ValueID)
	if !ok {
		return nil, t.refuse(v)
	}
	info, ok := b.Value(id)
	switch {
	case !ok:
		return nil, fmt.Errorf("the graph has no value with id %d, want %s", id, t)
	case info.SymInt:
		return nil, fmt.Errorf("%s is a SymInt, want %s", info.Name, t)
	case !slices.Contains(t.DTypes, info.DType):
		return nil, fmt.Errorf("%s is %s, want %s", info.Name, info.DType, t.Elements())
	case t.Form == StateArg && info.Role != graph.State:
		return nil, fmt.Errorf("%s is %s, want %s", info.Name, info.Role, t)
	}
	return id, nil
}

// takeEach returns a conversion function for a list. It converts every element with the function `take`, as
// an argument of the given form.
func takeEach[T any](form ArgForm, take func(b *graph.Builder, t ArgType, v any) (any, error)) func(
	b *graph.Builder, t ArgType, v any) (any, error) {
	return func(b *graph.Builder, t ArgType, v any) (any, error) {
		var elements []any
		switch list := v.(type) {
		case []any:
			elements = list
		case []T:
			for _, e := range list {
				elements = append(elements, e)
			}
		default:
			return nil, t.refuse(v)
		}
		taken := make([]T, len(elements))
		for i, e := range elements {
			one, err := take(b, ArgType{Form: form, DTypes: t.DTypes}, e)
			if err != nil {
				return nil, fmt.Errorf("element %d: %w", i, err)
			}
			taken[i] = one.(T)
		}
		return taken, nil
	}
}

func takeInt(_ *graph.Builder, t ArgType, v any) (any, error) {
	switch n := v.(type) {
	case int:
		return n, nil
	case int64:
		return int(n), nil
	}
	return nil, t.refuse(v)
}

func takeSymInt(b *graph.Builder, t ArgType, v any) (any, error) {
	n, ok := v.(Int)
	if id, isValue := v.(graph.ValueID); isValue {
		n, ok = Sym(id), true
	}
	if ok && !n.IsSym {
		return n, nil
	}
	if !ok {
		fixed, err := takeInt(b, t, v)
		if err != nil {
			return nil, err
		}
		return Fixed(fixed.(int)), nil
	}
	switch info, known := b.Value(n.sym); {
	case !known:
		return nil, fmt.Errorf("the graph has no value with id %d, want %s", n.sym, t)
	case !info.SymInt:
		return nil, fmt.Errorf("%s is a tensor, want %s", info.Name, t)
	}
	return n, nil
}

func takeFloat(_ *graph.Builder, t ArgType, v any) (any, error) {
	var f float64
	switch n := v.(type) {
	case float64:
		f = n
	case float32:
		f = float64(n)
	case int:
		f = float64(n)
	case int64:
		f = float64(n)
	default:
		return nil, t.refuse(v)
	}
	if f32 := float64(float32(f)); math.IsNaN(f32) || math.IsInf(f32, 0) {
		return nil, fmt.Errorf("%v does not fit in f32, want a finite number", f)
	}
	return f, nil
}

func takeBool(_ *graph.Builder, t ArgType, v any) (any, error) {
	if is, ok := v.(bool); ok {
		return is, nil
	}
	return nil, t.refuse(v)
}

// takeMatrix accepts a weight.Matrix in the format of t. An f32 tensor of the graph is accepted as an f32
// matrix.
func takeMatrix(b *graph.Builder, t ArgType, v any) (any, error) {
	m, ok := v.(weight.Matrix)
	if id, isValue := v.(graph.ValueID); isValue {
		m, ok = weight.Dense(b, id), true
	}
	switch {
	case !ok:
		return nil, t.refuse(v)
	case m.Err != nil:
		return nil, m.Err
	case m.Format.Name != t.Format:
		return nil, fmt.Errorf("matrix %s has format %s, want %s", m.Name, cmp.Or(m.Format.Name, "f32"), t)
	}
	return m, nil
}
