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

// Kind is a row of Kinds: what an operator is called, what it takes, and how it is put into a graph.
type Kind struct {
	Name string // upstream's name: graph.Spec.Kind
	Doc  string // what it computes, in a sentence
	Args []Arg  // in upstream's order
	// Constructors are the Go functions that add it, whose doc comments say more; none for the members of a
	// family that go by Unary or Binary.
	Constructors []string
	// Routes are the ways of doing the work, where the live shape chooses between several.
	Routes []string
	// Add puts the operator together from arguments that were checked, and returns its outputs. It leaves an
	// error in the builder.
	Add func(c *Call) []graph.ValueID
}

// Arg is an argument of a kind.
type Arg struct {
	Name string
	Type ArgType
	// Default is the argument where none is given, of the form that call has it in; nil where one must be
	// given.
	Default any
}

// Args are arguments by name. A tensor, State or SymInt is an graph.ValueID; an integer that may follow a
// SymInt is an Int, an int, or the SymInt; numbers are of any Go type that holds them.
type Args map[string]any

// Each is a kind for each row of a family.
func Each[T any](rows []T, kind func(row *T) Kind) []Kind {
	list := make([]Kind, len(rows))
	for i := range rows {
		list[i] = kind(&rows[i])
	}
	return list
}

// Build adds an operator of this kind to a graph and returns its outputs. Arguments that do not fit the kind
// are an error in the builder; after any error Build does nothing and returns nil.
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
				return c.Fail("argument %s is not given, want %s", a.Name, a.Type)
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
			return c.Fail("there is no argument %s, only %s", arg, k.argNames())
		}
	}
	out := k.Add(c)
	if b.Err() != nil {
		return nil
	}
	return out
}

// BuildOne is new for a kind of one output; graph.None after an error.
func (k *Kind) BuildOne(b *graph.Builder, name string, args Args) graph.ValueID {
	return First(k.Build(b, name, args))
}

// First is the first of an operator's outputs; graph.None after an error.
func First(outputs []graph.ValueID) graph.ValueID {
	if len(outputs) > 0 {
		return outputs[0]
	}
	return graph.None
}

// BuildTwo is new for a kind of two outputs; graph.None after an error.
func (k *Kind) BuildTwo(b *graph.Builder, name string, args Args) (first, second graph.ValueID) {
	if out := k.Build(b, name, args); len(out) > 1 {
		return out[0], out[1]
	}
	return graph.None, graph.None
}

func (k *Kind) argNames() string {
	var names []string
	for _, a := range k.Args {
		names = append(names, a.Name)
	}
	return strings.Join(names, ", ")
}

// Call is one operator as it is being put together: the builder, and arguments that fit their types.
type Call struct {
	*graph.Builder
	Kind   *Kind
	OpName string
	args   Args
}

// Fail leaves an error that names the operator in the builder.
func (c *Call) Fail(format string, args ...any) []graph.ValueID {
	c.Errorf("%s (%s): %w", c.Scoped(c.OpName), c.Kind.Name, fmt.Errorf(format, args...))
	return nil
}

// AddOp puts an operator into the graph that gives these outputs.
func (c *Call) AddOp(o reference.Referencer, outputs ...graph.ValueID) []graph.ValueID {
	if c.Err() == nil {
		c.Add(c.OpName, o)
	}
	return outputs
}

// Out declares an output that is named after the operator.
func (c *Call) Out(suffix string, t graph.DType) graph.ValueID {
	return c.Builder.Tensor(c.OpName+suffix, t)
}

// Axis is a dim of a tensor; a negative one counts from the end. Where there is none it is an error.
func (c *Call) Axis(v graph.ValueID, axis int) (int, bool) {
	rank := len(c.MaxDims(v))
	if axis < -rank || axis >= rank {
		c.Fail("dim %d of %s, which has rank %d", axis, c.Builder.Name(v), rank)
		return 0, false
	}
	if axis < 0 {
		axis += rank
	}
	return axis, true
}

// NewKernel is the kernel that a template and its constants make.
func (c *Call) NewKernel(template string, constants shaders.Constants) *graph.Kernel {
	return NewKernel(c.Builder, template, constants)
}

// Temp declares memory that lives while the operator runs.
func (c *Call) Temp(name string, t graph.DType) graph.ValueID {
	return c.Scratch(c.OpName+"."+name, t)
}

// arg is an argument in the form that its type has.
func arg[T any](c *Call, name string) T {
	v, ok := c.args[name].(T)
	if !ok {
		c.Fail("the kind has no argument %s of type %T", name, v)
	}
	return v
}

// The Arg methods return an argument by name, as its type in the kind says.

func (c *Call) ArgTensor(name string) graph.ValueID { return arg[graph.ValueID](c, name) }

// The Arg methods return an argument by name, as its type in the kind says.

func (c *Call) ArgTensors(name string) []graph.ValueID { return arg[[]graph.ValueID](c, name) }
func (c *Call) ArgInt(name string) int                 { return arg[int](c, name) }
func (c *Call) ArgInts(name string) []int              { return arg[[]int](c, name) }
func (c *Call) ArgSym(name string) Int                 { return arg[Int](c, name) }
func (c *Call) ArgSyms(name string) []Int              { return arg[[]Int](c, name) }
func (c *Call) ArgFloat(name string) float64           { return arg[float64](c, name) }
func (c *Call) ArgMatrix(name string) weight.Matrix    { return arg[weight.Matrix](c, name) }
func (c *Call) ArgBool(name string) bool               { return arg[bool](c, name) }

// Names lists the names of kinds.
func Names(kinds []Kind) (names []string) {
	for i := range kinds {
		names = append(names, kinds[i].Name)
	}
	return names
}

// Required is an argument that every call must give.
func Required(name string, t ArgType) Arg { return Arg{Name: name, Type: t} }

// Optional is an argument that may be left out: then it is the default.
func Optional(name string, t ArgType, byDefault any) Arg {
	return Arg{Name: name, Type: t, Default: byDefault}
}
