package ops

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/engine/graph"
	"gpuscope/internal/wordingtest"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
	"gpuscope/ops/weight"
)

var allDTypes = []graph.DType{graph.F32, graph.I32, graph.U32, graph.F16, graph.I8, graph.Q4}

// drawArgs draws arguments of the types that a kind takes. Their shapes are random, but often the same. The
// name of every value that it declares contains the argument's name.
func drawArgs(t *rapid.T, b *graph.Builder, k *kind.Kind) kind.Args {
	args, usual := kind.Args{}, someDims(t, "dims")
	for _, a := range k.Args {
		if a.Default != nil && rapid.Bool().Draw(t, a.Name+" left out") {
			continue
		}
		args[a.Name] = drawArg(t, b, a.Name, a.Type, usual)
	}
	return args
}

func someDims(t *rapid.T, name string) []int {
	return rapid.SampledFrom([][]int{
		{}, {1}, {8}, {3, 8}, {8, 8}, {1, 3, 8}, {1, 3, 2, 8}, {1, 16, 2, 8}, {2, 32}, {2, 64}, {16},
	}).Draw(t, name)
}

func drawArg(t *rapid.T, b *graph.Builder, name string, typ kind.ArgType, usual []int) any {
	number := func() int { return rapid.SampledFrom([]int{-2, -1, 0, 1, 2, 3, 8, 70}).Draw(t, name) }
	dims := func() []int {
		if rapid.IntRange(0, 3).Draw(t, name+" is usual") > 0 {
			return usual
		}
		return someDims(t, name+" dims")
	}
	dtype := func() graph.DType { return rapid.SampledFrom(typ.DTypes).Draw(t, name+" type") }
	switch typ.Form {
	case kind.TensorArg:
		d := dims()
		return b.Input(name, dtype(), d, d)
	case kind.StateArg:
		return b.State(name, dtype(), dims())
	case kind.TensorsArg:
		var list []graph.ValueID
		for i := range rapid.IntRange(0, 3).Draw(t, name) {
			d := dims()
			list = append(list, b.Input(fmt.Sprint(name, i), dtype(), d, d))
		}
		return list
	case kind.IntArg:
		return number()
	case kind.SymIntArg:
		if rapid.Bool().Draw(t, name+" is a SymInt") {
			return b.SymInt(name, 0, 5, 1)
		}
		return number()
	case kind.IntsArg:
		return rapid.SliceOfN(rapid.IntRange(-3, 4), 0, 4).Draw(t, name)
	case kind.SymIntsArg:
		var list []kind.Int
		for range rapid.IntRange(0, 4).Draw(t, name) {
			list = append(list, kind.Fixed(number()))
		}
		return list
	case kind.FloatArg:
		return rapid.SampledFrom([]float64{0, 1e-5, 1, -2}).Draw(t, name)
	case kind.BoolArg:
		return rapid.Bool().Draw(t, name)
	case kind.MatrixArg:
		f := weight.Formats[slices.IndexFunc(weight.Formats,
			func(f weight.Format) bool { return f.Name == typ.Format })]
		return noiseMatrix(name, 16, rapid.SampledFrom([]int{8, 32, 64}).Draw(t, name), f)
	}
	t.Fatalf("no generator for arguments of type %s", typ)
	return nil
}

// Whatever the shapes, arguments of the right types either build an operator or are refused with an error
// that names it. The reference of a built operator returns results with the planned dims.
func TestArgumentsOfAKindAreBuiltOrRefused(t *testing.T) {
	built := map[string]bool{}
	for i := range Kinds {
		k := &Kinds[i]
		t.Run(k.Name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				b := tinyBuilder()
				b.Scope("layer3.", 3, "attn")
				args := drawArgs(t, b, k)
				if b.Err() != nil {
					t.Fatal(b.Err())
				}
				out := New(b, k.Name, "it", args)
				if err := b.Err(); err != nil {
					if !strings.Contains(err.Error(), "it") || out != nil {
						t.Fatalf("%v: does not name the operator, or returned outputs: %v", err, out)
					}
					return
				}
				built[k.Name] = true
				holdDims(t, b, out)
			})
		})
	}
	if len(built) < len(Kinds)/2 { // 20 draws of each, as with -short, build at least 63 of 87
		t.Errorf("of %d kinds only %d were built", len(Kinds), len(built))
	}
}

// holdDims runs the reference of a graph and checks that its results have the planned dims.
func holdDims(t *rapid.T, b *graph.Builder, out []graph.ValueID) {
	g, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	point := step{}
	for _, v := range g.Inputs() {
		info := g.Value(v)
		if point[info.Name] = info.MaxDims; info.SymInt {
			point[info.Name] = []int{1}
		}
	}
	in := (&trial{}).input(t, g, point)
	live, err := graph.NewLive(g, graph.LiveOptions{})
	if err == nil {
		err = bring(live, in)
	}
	if err != nil {
		if !strings.Contains(err.Error(), "layer3.it") {
			t.Fatalf("%v: does not name the operator", err)
		}
		return
	}
	ref := reference.NewInterpreter(g)
	if err := ref.Step(in, nil); err != nil {
		t.Fatal(err)
	}
	for _, v := range out {
		if info := g.Value(v); !info.SymInt && !slices.Equal(ref.Tensor(v).Dims, live.Dims(v)) {
			t.Fatalf("%s: planned dims %v, the reference has %v", info.Name, live.Dims(v), ref.Tensor(v).Dims)
		}
	}
}

// For every tensor argument of every kind, a tensor of another type is an error when the operator is added.
// The error names the operator, the argument, the value, its type and the accepted types.
func TestTensorsOfOtherTypesAreRefused(t *testing.T) {
	for i := range Kinds {
		k := &Kinds[i]
		for _, a := range k.Args {
			if a.Type.Form != kind.TensorArg && a.Type.Form != kind.StateArg &&
				a.Type.Form != kind.TensorsArg {
				continue
			}
			for _, dtype := range allDTypes {
				if slices.Contains(a.Type.DTypes, dtype) {
					continue
				}
				t.Run(fmt.Sprintf("%s of %s %s", k.Name, dtype, a.Name), func(t *testing.T) {
					b := tinyBuilder()
					b.Scope("layer3.", 3, "attn")
					var args kind.Args
					rapid.Custom(func(t *rapid.T) bool { args = drawArgs(t, b, k); return true }).Example(1)
					wrong := b.Input("culprit", dtype, []int{8, 8}, []int{8, 8})
					if a.Type.Form == kind.StateArg {
						wrong = b.State("culprit of state", dtype, []int{1, 16, 2, 8})
					}
					args[a.Name] = any(wrong)
					if a.Type.Form == kind.TensorsArg {
						args[a.Name] = []graph.ValueID{wrong}
					}
					out := New(b, k.Name, "it", args)
					if b.Err() == nil || out != nil {
						t.Fatalf("the operator was built: %v", out)
					}
					for _, want := range []string{
						"layer3.it (" + k.Name + ")", "argument " + a.Name, "culprit",
						" is " + dtype.String(), "want " + a.Type.Elements(),
					} {
						if !strings.Contains(b.Err().Error(), want) {
							t.Errorf("%v: does not say %q", b.Err(), want)
						}
					}
				})
			}
		}
	}
}

func TestMatricesOfOtherFormatsAreRefused(t *testing.T) {
	golden := wordingtest.New(t)
	for _, c := range []struct {
		name, kind string
		weight     func(b *graph.Builder) any
	}{
		{"f16 weights in an f32 linear", "linear", func(b *graph.Builder) any {
			return b.Constant("w", graph.F16, []int{8, 8}, nil)
		}},
		{"a matrix of halves in an f32 linear", "linear", func(*graph.Builder) any {
			return noiseMatrix("w", 8, 8, weight.F16)
		}},
		{"floats in a linear of 4 bits", "linear_q4gsw", func(b *graph.Builder) any {
			return constant(b, "w", 8, 8)
		}},
		{"floats in a linear of 4 bits, as a matrix", "linear_q4gsw", func(*graph.Builder) any {
			return noiseMatrix("w", 8, 8, weight.F32)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := tinyBuilder()
			out := New(b, c.kind, "it", kind.Args{"x": in(b, "x", 3, 8), "weight": c.weight(b)})
			if out != nil {
				t.Errorf("the operator was built: %v", out)
			}
			golden.Error(c.name, b.Err())
		})
	}
}

func TestArgumentsByNameAreHeldToTheKind(t *testing.T) {
	golden := wordingtest.New(t)
	for _, c := range []struct {
		name, kind string
		args       func(b *graph.Builder) kind.Args
	}{
		{
			"an unknown kind", "roll", func(*graph.Builder) kind.Args { return nil },
		},
		{"an argument less", "rms_norm", func(b *graph.Builder) kind.Args {
			return kind.Args{"x": in(b, "x", 8), "eps": 1e-5}
		}},
		{"an argument more", "silu", func(b *graph.Builder) kind.Args {
			return kind.Args{"x": in(b, "x", 8), "inplace": true}
		}},
		{
			"a number for a tensor", "silu", func(*graph.Builder) kind.Args { return kind.Args{"x": 3} },
		},
		{"a SymInt for a tensor", "silu", func(b *graph.Builder) kind.Args {
			return kind.Args{"x": b.SymInt("pos", 0, 1, 0)}
		}},
		{"a tensor for a SymInt", "sym_add", func(b *graph.Builder) kind.Args {
			return kind.Args{"a": in(b, "x", 8), "b": 1}
		}},
		{
			"a value of nowhere", "silu", func(*graph.Builder) kind.Args {
				return kind.Args{"x": graph.ValueID(77)}
			},
		},
		{"an input for State", "update_cache", func(b *graph.Builder) kind.Args {
			return kind.Args{"value": in(b, "v", 1, 1, 1, 4), "cache": in(b, "c", 1, 4, 1, 4), "input_pos": 0}
		}},
		{"text for a number", "rms_norm", func(b *graph.Builder) kind.Args {
			return kind.Args{"x": in(b, "x", 8), "weight": in(b, "w", 8), "eps": "small"}
		}},
		{"a number that f32 does not have", "rms_norm", func(b *graph.Builder) kind.Args {
			return kind.Args{"x": in(b, "x", 8), "weight": in(b, "w", 8), "eps": 1e39}
		}},
		{"a list with a wrong element", "permute", func(b *graph.Builder) kind.Args {
			return kind.Args{"x": in(b, "x", 8), "dims": []any{0, true}}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := tinyBuilder()
			if out := New(b, c.kind, "it", c.args(b)); out != nil || b.Err() == nil {
				t.Fatalf("the operator was built: %v", out)
			}
			golden.Error(c.name, b.Err())
		})
	}
}

// A file reader passes integers as int64, lists as []any, and SymInts as values.
func TestArgumentsAreReadInEveryFileFormat(t *testing.T) {
	b := tinyBuilder()
	x := b.Input("x", graph.F32, []int{1, 8}, []int{3, 8})
	rows := New(b, "sym_size", "rows", kind.Args{"x": x, "dim": int64(0)})
	y := New(b, "view", "y", kind.Args{"x": x, "dims": []any{rows[0], int64(2), 4}})
	z := New(b, "cat", "z", kind.Args{"parts": []any{y[0], y[0]}, "dim": int64(-1)})
	n := New(b, "add", "n", kind.Args{"a": z[0], "b": z[0], "alpha": 2})
	b.Output(n[0])
	if _, err := b.Finish(); err != nil {
		t.Fatal(err)
	}
}
