package ops

import (
	"fmt"
	"slices"
	"strings"

	"gpuscope/engine/graph"
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
	// add puts the operator together from arguments that were checked, and returns its outputs. It leaves an
	// error in the builder.
	add func(c *call) []graph.ValueID
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

// eachKind is a kind for each row of a family.
func eachKind[T any](rows []T, kind func(row *T) Kind) []Kind {
	list := make([]Kind, len(rows))
	for i := range rows {
		list[i] = kind(&rows[i])
	}
	return list
}

// New puts an operator of a kind into the graph under a name, and returns its outputs. What does not fit the
// kind's arguments is an error in the builder that names the operator, the argument, its value and what is
// taken; then, and after any error before, New does nothing and returns nil.
func New(b *graph.Builder, kind, name string, args Args) []graph.ValueID {
	k := KindOf(kind)
	if k == nil {
		b.Errorf("%s: there is no kind of operator %q", b.Scoped(name), kind)
		return nil
	}
	return k.new(b, name, args)
}

// KindOf is the row of a kind; nil where there is none.
func KindOf(name string) *Kind {
	for i := range Kinds {
		if Kinds[i].Name == name {
			return &Kinds[i]
		}
	}
	return nil
}

func (k *Kind) new(b *graph.Builder, name string, given Args) []graph.ValueID {
	if b.Err() != nil {
		return nil
	}
	c := &call{Builder: b, kind: k, name: name, args: make(Args, len(k.Args))}
	for i := range k.Args {
		a := &k.Args[i]
		v, ok := given[a.Name]
		if id, isValue := v.(graph.ValueID); !ok || isValue && id == graph.None && a.Default != nil {
			v = a.Default
			if v == nil {
				return c.fail("argument %s is not given, want %s", a.Name, a.Type)
			}
			c.args[a.Name] = v
			continue
		}
		taken, err := a.Type.take(b, v)
		if err != nil {
			return c.fail("argument %s: %w", a.Name, err)
		}
		c.args[a.Name] = taken
	}
	for arg := range given {
		if !slices.ContainsFunc(k.Args, func(a Arg) bool { return a.Name == arg }) {
			return c.fail("there is no argument %s, only %s", arg, k.argNames())
		}
	}
	out := k.add(c)
	if b.Err() != nil {
		return nil
	}
	return out
}

// one is new for a kind of one output; graph.None after an error.
func (k *Kind) one(b *graph.Builder, name string, args Args) graph.ValueID {
	return oneOf(k.new(b, name, args))
}

// oneOf is the first of an operator's outputs; graph.None after an error.
func oneOf(outputs []graph.ValueID) graph.ValueID {
	if len(outputs) > 0 {
		return outputs[0]
	}
	return graph.None
}

// two is new for a kind of two outputs; graph.None after an error.
func (k *Kind) two(b *graph.Builder, name string, args Args) (first, second graph.ValueID) {
	if out := k.new(b, name, args); len(out) > 1 {
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

// call is one operator as it is being put together: the builder, and arguments that fit their types.
type call struct {
	*graph.Builder
	kind *Kind
	name string
	args Args
}

// fail leaves an error that names the operator in the builder.
func (c *call) fail(format string, args ...any) []graph.ValueID {
	c.Errorf("%s (%s): %w", c.Scoped(c.name), c.kind.Name, fmt.Errorf(format, args...))
	return nil
}

// adds puts an operator into the graph that gives these outputs.
func (c *call) adds(o Referencer, outputs ...graph.ValueID) []graph.ValueID {
	if c.Err() == nil {
		c.Add(c.name, o)
	}
	return outputs
}

// out declares an output that is named after the operator.
func (c *call) out(suffix string, t graph.DType) graph.ValueID {
	return c.Builder.Tensor(c.name+suffix, t)
}

// axis is a dim of a tensor; a negative one counts from the end. Where there is none it is an error.
func (c *call) axis(v graph.ValueID, axis int) (int, bool) {
	rank := len(c.MaxDims(v))
	if axis < -rank || axis >= rank {
		c.fail("dim %d of %s, which has rank %d", axis, c.Builder.Name(v), rank)
		return 0, false
	}
	if axis < 0 {
		axis += rank
	}
	return axis, true
}

// kernel is the kernel that a template and its constants make.
func (c *call) kernel(template string, constants shaders.Constants) *graph.Kernel {
	return kernel(c.Builder, template, constants)
}

// scratch declares memory that lives while the operator runs.
func (c *call) scratch(name string, t graph.DType) graph.ValueID {
	return c.Scratch(c.name+"."+name, t)
}

// arg is an argument in the form that its type has.
func arg[T any](c *call, name string) T {
	v, ok := c.args[name].(T)
	if !ok {
		c.fail("the kind has no argument %s of type %T", name, v)
	}
	return v
}

func (c *call) tensor(name string) graph.ValueID    { return arg[graph.ValueID](c, name) }
func (c *call) tensors(name string) []graph.ValueID { return arg[[]graph.ValueID](c, name) }
func (c *call) int(name string) int                 { return arg[int](c, name) }
func (c *call) ints(name string) []int              { return arg[[]int](c, name) }
func (c *call) sym(name string) Int                 { return arg[Int](c, name) }
func (c *call) syms(name string) []Int              { return arg[[]Int](c, name) }
func (c *call) float(name string) float64           { return arg[float64](c, name) }
func (c *call) matrix(name string) Matrix           { return arg[Matrix](c, name) }
func (c *call) bool(name string) bool               { return arg[bool](c, name) }

func kindNames(kinds []Kind) (names []string) {
	for i := range kinds {
		names = append(names, kinds[i].Name)
	}
	return names
}
