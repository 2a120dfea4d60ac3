package kind

import (
	"fmt"
	"slices"
	"strings"

	"gpuscope/engine/graph"
	"gpuscope/ops/reference"
	"gpuscope/ops/weight"
	"gpuscope/shaders"
)

// Kind describes a kind of operator: its name, its arguments, and the function that adds it to a graph.
type Kind struct {
	Name string // the operator's name in ExecuTorch; also graph.Spec.Kind
	Doc  string // one sentence that says what the operator computes
	Args []Arg  // in ExecuTorch's order
	// Constructors names the Go functions that add this kind of operator. Their doc comments describe the
	// operator in full. The list is empty for kinds that only New or Kind.Build adds.
	Constructors []string
	// Routes lists the names of the alternative implementations. It is empty if there is only one.
	Routes []string
	// Add builds the operator from arguments that were already checked, and returns its outputs. An error is
	// recorded in the builder.
	Add func(c *Call) []graph.ValueID
}

// Arg describes an argument of a kind of operator.
type Arg struct {
	Name string
	Type ArgType
	// Default is the value of an argument that the caller does not pass. It has the Go type that the Arg
	// method of Call returns for this argument. If Default is nil, callers must pass the argument.
	Default any
}

// Args holds arguments by name. A tensor, State or SymInt is a graph.ValueID. An integer that can be read
// from a SymInt is an Int, an int, or the ValueID of the SymInt. A number can have the Go types int, int64,
// float32 and float64.
type Args map[string]any

// Each returns a list of kinds, one for each row of a table of similar operators.
func Each[T any](rows []T, kind func(row *T) Kind) []Kind {
	list := make([]Kind, len(rows))
	for i := range rows {
		list[i] = kind(&rows[i])
	}
	return list
}

// Build adds an operator of this kind to a graph and returns its outputs. If an argument does not fit the
// kind, Build records an error in the builder and returns nil. If the builder already has an error, Build
// does nothing and returns nil.
func (k *Kind) Build(b *graph.Builder, name string, given Args) []graph.ValueID {
	if b.Err() != nil {
		return nil
	}
	c := &Call{Builder: b, Kind: k, OpName: name, args: make(Args, len(k.Args))}
	for i := range k.Args {
		a := &k.Args[i]
		v, ok := given[a.Name]
		if id, isValue := v.(graph.ValueID); !ok || isValue && id == graph.None && a.Default != nil {
			v = a.Default
			if v == nil {
				return c.Fail("argument %s is missing, want %s", a.Name, a.Type)
			}
			c.args[a.Name] = v
			continue
		}
		taken, err := a.Type.take(b, v)
		if err != nil {
			return c.Fail("argument %s: %w", a.Name, err)
		}
		c.args[a.Name] = taken
	}
	for arg := range given {
		if !slices.ContainsFunc(k.Args, func(a Arg) bool { return a.Name == arg }) {
			return c.Fail("unknown argument %s, want one of %s", arg, k.argNames())
		}
	}
	out := k.Add(c)
	if b.Err() != nil {
		return nil
	}
	return out
}

// BuildOne is Build for a kind with one output. It returns graph.None after an error.
func (k *Kind) BuildOne(b *graph.Builder, name string, args Args) graph.ValueID {
	return First(k.Build(b, name, args))
}

// First returns the first of an operator's outputs. It returns graph.None if the list is empty, which is the
// case after an error.
func First(outputs []graph.ValueID) graph.ValueID {
	if len(outputs) > 0 {
		return outputs[0]
	}
	return graph.None
}

// BuildTwo is Build for a kind with two outputs. It returns graph.None for an output that the operator does
// not have. After an error it returns graph.None for both.
func (k *Kind) BuildTwo(b *graph.Builder, name string, args Args) (first, second graph.ValueID) {
	out := append(k.Build(b, name, args), graph.None, graph.None)
	return out[0], out[1]
}

func (k *Kind) argNames() string {
	var names []string
	for _, a := range k.Args {
		names = append(names, a.Name)
	}
	return strings.Join(names, ", ")
}

// Call is an operator under construction: the builder, and arguments that were already checked and converted.
type Call struct {
	*graph.Builder
	Kind   *Kind
	OpName string
	args   Args
}

// Fail records an error in the builder. The error names the operator. Fail returns nil.
func (c *Call) Fail(format string, args ...any) []graph.ValueID {
	c.Errorf("%s (%s): %w", c.Scoped(c.OpName), c.Kind.Name, fmt.Errorf(format, args...))
	return nil
}

// AddOp adds an operator to the graph. It returns the given outputs.
func (c *Call) AddOp(o reference.Referencer, outputs ...graph.ValueID) []graph.ValueID {
	if c.Err() == nil {
		c.Add(c.OpName, o)
	}
	return outputs
}

// Out declares an output tensor. The tensor's name is the operator's name followed by `suffix`.
func (c *Call) Out(suffix string, t graph.DType) graph.ValueID {
	return c.Builder.Tensor(c.OpName+suffix, t)
}

// Axis checks that axis is the index of a dim of v. It converts a negative index, which counts from the end,
// to a positive one. If v has no such dim, Axis records an error in the builder and returns false.
func (c *Call) Axis(v graph.ValueID, axis int) (int, bool) {
	rank := len(c.MaxDims(v))
	if axis < -rank || axis >= rank {
		c.Fail("dim %d is out of range: %s has rank %d", axis, c.Builder.Name(v), rank)
		return 0, false
	}
	if axis < 0 {
		axis += rank
	}
	return axis, true
}

// NewKernel expands a WGSL template with constants, and returns the resulting kernel.
func (c *Call) NewKernel(template string, constants shaders.Constants) *graph.Kernel {
	return NewKernel(c.Builder, template, constants)
}

// Temp declares scratch memory that is used only while the operator runs.
func (c *Call) Temp(name string, t graph.DType) graph.ValueID {
	return c.Scratch(c.OpName+"."+name, t)
}

// arg(c, name) returns an argument of the call. ArgType.take has already converted it to the Go type T.
func arg[T any](c *Call, name string) T {
	v, ok := c.args[name].(T)
	if !ok {
		c.Fail("this kind of operator has no argument %s of Go type %T", name, v)
	}
	return v
}

// The Arg methods return the argument with the given name. Callers must use the method for the type that Kind
// declares for this argument.

func (c *Call) ArgTensor(name string) graph.ValueID    { return arg[graph.ValueID](c, name) }
func (c *Call) ArgTensors(name string) []graph.ValueID { return arg[[]graph.ValueID](c, name) }
func (c *Call) ArgInt(name string) int                 { return arg[int](c, name) }
func (c *Call) ArgInts(name string) []int              { return arg[[]int](c, name) }
func (c *Call) ArgSym(name string) Int                 { return arg[Int](c, name) }
func (c *Call) ArgSyms(name string) []Int              { return arg[[]Int](c, name) }
func (c *Call) ArgFloat(name string) float64           { return arg[float64](c, name) }
func (c *Call) ArgMatrix(name string) weight.Matrix    { return arg[weight.Matrix](c, name) }
func (c *Call) ArgBool(name string) bool               { return arg[bool](c, name) }

// Names returns the names of the given kinds.
func Names(kinds []Kind) (names []string) {
	for i := range kinds {
		names = append(names, kinds[i].Name)
	}
	return names
}

// Required describes an argument that every call must pass.
func Required(name string, t ArgType) Arg { return Arg{Name: name, Type: t} }

// Optional describes an argument that has a default value.
func Optional(name string, t ArgType, byDefault any) Arg {
	return Arg{Name: name, Type: t, Default: byDefault}
}
