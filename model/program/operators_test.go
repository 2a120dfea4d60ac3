package program_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"gpuscope/engine/gpu/gputest"
	"gpuscope/internal/npy"
	p "gpuscope/model/checkpoint/pte/ptetest"
	"gpuscope/model/program"
)

// The type numbers of int8 tensors.
const i8, inI8 = 1, 2

// of is an array of numbers with its dims.
type of struct {
	dims []int
	data []float64
}

func (a of) npy(t npy.Type) *npy.Array {
	out := &npy.Array{Type: t, Dims: a.dims}
	for _, v := range a.data {
		switch t {
		case npy.Float32:
			out.Data = binary.LittleEndian.AppendUint32(out.Data, math.Float32bits(float32(v)))
		case npy.Int64:
			out.Data = binary.LittleEndian.AppendUint64(out.Data, uint64(int64(v)))
		case npy.Int8, npy.Uint8, npy.Bool:
			out.Data = append(out.Data, byte(int8(v)))
		}
	}
	return out
}

func fromArray(a *npy.Array) of {
	out := of{dims: a.Dims}
	for i := 0; i < len(a.Data); i += a.Type.Size() {
		switch a.Type {
		case npy.Float32:
			out.data = append(out.data, float64(math.Float32frombits(binary.LittleEndian.Uint32(a.Data[i:]))))
		case npy.Int64:
			out.data = append(out.data, float64(int64(binary.LittleEndian.Uint64(a.Data[i:]))))
		default:
			out.data = append(out.data, float64(int8(a.Data[i])))
		}
	}
	return out
}

// counted returns an array with the elements 0, 1, 2, ...
func counted(dims ...int) of {
	n := 1
	for _, d := range dims {
		n *= d
	}
	a := of{dims: dims, data: make([]float64, n)}
	for i := range a.data {
		a.data[i] = float64(i)
	}
	return a
}

// tensor is an input or output of the method, with its largest dims.
type tensor struct {
	as   npy.Type
	most []int
}

// constantF32, constantI8 and constantU8 are arguments that are constants of these types.
type (
	constantF32 of
	constantI8  of
	constantU8  of
)

// argument is the index of an input that is an argument. list is a list of arguments.
type (
	argument int
	list     []any
)

// numbers of the types, in a method and in a delegate
var typeNumbers = map[npy.Type][2]int8{
	npy.Float32: {f32, inF32}, npy.Int64: {i64, inI32}, npy.Int8: {i8, inI8}, npy.Bool: {boolean, inBool},
	npy.Uint8: {0, 1},
}

// programOf returns a program with one operator.
func programOf(name string, args []any, inputs, outputs []tensor) (*p.Graph, []p.Table) {
	g := &p.Graph{}
	var values []p.Table
	dims := func(t tensor) (narrow []int32, wide []uint32) {
		for _, d := range t.most {
			narrow, wide = append(narrow, int32(d)), append(wide, uint32(d))
		}
		return narrow, wide
	}
	add := func(v p.Table) int32 {
		g.Values = append(g.Values, v)
		return int32(len(g.Values) - 1)
	}
	for i, t := range slices.Concat(inputs, outputs) {
		narrow, wide := dims(t)
		values = append(values, bounded(typeNumbers[t.as][0], narrow...))
		id := add(p.GraphTensor(typeNumbers[t.as][1], -1, int32(i), wide...))
		if i < len(inputs) {
			g.Inputs = append(g.Inputs, uint32(id))
		} else {
			g.Outputs = append(g.Outputs, uint32(id))
		}
	}
	constant := func(a of, t npy.Type) int32 {
		for len(g.Data)%16 != 0 {
			g.Data = append(g.Data, 0)
		}
		data := a.npy(t).Data
		g.Constants = append(g.Constants, p.Inline(uint64(len(g.Data)), uint64(len(data))))
		g.Data = append(g.Data, data...)
		_, wide := dims(tensor{most: a.dims})
		return add(p.GraphTensor(typeNumbers[t][1], int32(len(g.Constants)-1), -1, wide...))
	}
	var value func(v any) int32
	value = func(v any) int32 {
		switch v := v.(type) {
		case nil:
			return add(p.Table{0: p.One(1, p.Table{})})
		case argument:
			return int32(v)
		case int:
			return add(p.GraphInt(int64(v)))
		case float64:
			return add(p.Table{0: p.One(3, p.Table{0: v})})
		case bool:
			return add(p.Table{0: p.One(4, p.Table{0: v})})
		case []int64:
			return add(p.Table{0: p.One(6, p.Table{0: v})})
		case []float64:
			return add(p.Table{0: p.One(7, p.Table{0: v})})
		case string:
			return add(p.Table{0: p.One(10, p.Table{0: v})})
		case constantF32:
			return constant(of(v), npy.Float32)
		case constantI8:
			return constant(of(v), npy.Int8)
		case constantU8:
			return constant(of(v), npy.Uint8)
		case list:
			var ids []int32
			for _, e := range v {
				ids = append(ids, value(e))
			}
			return add(p.GraphList(ids...))
		}
		panic(fmt.Sprintf("no value of a graph for %T", v))
	}
	var ids []int32
	for _, v := range args {
		ids = append(ids, value(v))
	}
	out := int32(len(inputs))
	if len(outputs) > 1 {
		var all []int32
		for _, id := range g.Outputs {
			all = append(all, int32(id))
		}
		out = add(p.GraphList(all...))
	}
	g.Operators = []p.Table{p.Operator(0, name, append(ids, out)...)}
	return g, values
}

func ones(dims ...int) of {
	a := counted(dims...)
	for i := range a.data {
		a.data[i] = 1
	}
	return a
}

// Operators give the right numbers at each live shape of their inputs.
func TestOperatorsRunAtLiveShapes(t *testing.T) {
	dev := gputest.Open(t)
	inf, nan := math.Inf(1), math.NaN()
	float := func(most ...int) tensor { return tensor{npy.Float32, most} }
	type run struct{ in, want []of }
	for _, test := range []struct {
		name            string
		args            []any
		inputs, outputs []tensor
		runs            []run
	}{
		{
			"aten.convolution.default",
			[]any{
				argument(0), constantF32(ones(2, 1, 2, 2)),
				constantF32{[]int{2}, []float64{0, 100}},
				[]int64{2, 2},
				[]int64{0, 0},
				[]int64{1, 1},
				false,
				[]int64{0, 0},
				2,
			},
			[]tensor{float(2, 2, 4, 4)},
			[]tensor{float(2, 2, 2, 2)},
			[]run{
				{
					[]of{counted(2, 2, 4, 4)},
					[]of{{[]int{2, 2, 2, 2}, []float64{
						10, 18, 42, 50, 174, 182, 206, 214, 138, 146, 170, 178, 302, 310, 334, 342,
					}}},
				},
				{[]of{counted(1, 2, 2, 3)}, []of{{[]int{1, 2, 1, 1}, []float64{8, 132}}}},
			},
		},
		{
			"et_vk.q8ta_conv2d_transposed.default", // the two kernels of each group have the same scales
			[]any{
				argument(0), 0.5, 3,
				constantI8{[]int{4, 4}, []float64{
					1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0,
				}},
				constantI8(ones(4)),
				constantF32{[]int{4}, []float64{1, 2, 0, 0}},
				0.5, 1, nil,
				[]int64{1, 1},
				[]int64{1, 1},
				[]int64{0, 0},
				[]int64{0, 0},
				[]int64{1, 1},
				2, "relu",
			},
			[]tensor{{npy.Int8, []int{1, 2, 2, 2}}},
			[]tensor{{npy.Int8, []int{1, 4, 2, 2}}},
			[]run{{
				[]of{{[]int{1, 2, 1, 2}, []float64{2, 4, 5, 43}}},
				[]of{{[]int{1, 4, 1, 2}, []float64{1, 2, 1, 5, 7, 121, 17, 127}}},
			}},
		},
		{
			"aten.max_pool2d_with_indices.default",
			[]any{argument(0), []int64{2, 2}, []int64{}, []int64{0, 0}, []int64{1, 1}, true},
			[]tensor{float(1, 3, 4)},
			[]tensor{float(1, 2, 2), {npy.Int64, []int{1, 2, 2}}},
			[]run{
				{[]of{counted(1, 3, 4)}, []of{
					{[]int{1, 2, 2}, []float64{5, 7, 9, 11}}, {[]int{1, 2, 2}, []float64{5, 7, 9, 11}},
				}},
				{[]of{{[]int{1, 1, 3}, []float64{nan, 2, -inf}}}, []of{
					{[]int{1, 1, 2}, []float64{nan, -inf}}, {[]int{1, 1, 2}, []float64{0, 2}},
				}},
			},
		},
		{
			"aten.upsample_nearest2d.vec",
			[]any{argument(0), nil, []float64{2, 1.5}},
			[]tensor{float(1, 1, 2, 4)},
			[]tensor{float(1, 1, 4, 6)},
			[]run{
				{[]of{counted(1, 1, 1, 2)}, []of{{[]int{1, 1, 2, 3}, []float64{0, 0, 1, 0, 0, 1}}}},
				{[]of{counted(1, 1, 2, 1)}, []of{{[]int{1, 1, 4, 1}, []float64{0, 0, 1, 1}}}},
			},
		},
		{
			"aten.pixel_shuffle.default",
			[]any{argument(0), 2},
			[]tensor{float(2, 4, 2, 3)},
			[]tensor{float(2, 1, 4, 6)},
			[]run{
				{[]of{counted(1, 4, 1, 2)}, []of{{[]int{1, 1, 2, 4}, []float64{0, 2, 1, 3, 4, 6, 5, 7}}}},
				{[]of{counted(2, 4, 1, 1)}, []of{{[]int{2, 1, 2, 2}, []float64{0, 1, 2, 3, 4, 5, 6, 7}}}},
			},
		},
		{
			"aten.pixel_shuffle.default",
			[]any{argument(0), 2},
			[]tensor{float(4, 2, 3)},
			[]tensor{float(1, 4, 6)},
			[]run{{[]of{counted(4, 1, 1)}, []of{{[]int{1, 2, 2}, []float64{0, 1, 2, 3}}}}},
		},
		{
			"aten.repeat.default",
			[]any{argument(0), []int64{2, 1, 3}},
			[]tensor{float(2, 4)},
			[]tensor{float(2, 2, 12)},
			[]run{{
				[]of{counted(1, 2)},
				[]of{{[]int{2, 1, 6}, []float64{0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1}}},
			}},
		},
		{
			"aten.constant_pad_nd.default",
			[]any{argument(0), []int64{1, 0, -1, 2}, 7},
			[]tensor{float(3, 4)},
			[]tensor{float(4, 5)},
			[]run{{[]of{counted(2, 2)}, []of{{[]int{3, 3}, []float64{7, 2, 3, 7, 7, 7, 7, 7, 7}}}}},
		},
		{
			"aten.where.self",
			[]any{argument(0), argument(1), argument(2)},
			[]tensor{{npy.Bool, []int{4}}, float(3, 4), float(1)},
			[]tensor{float(3, 4)},
			[]run{{
				[]of{{[]int{2}, []float64{1, 0}}, counted(2, 2), {[]int{1}, []float64{nan}}},
				[]of{{[]int{2, 2}, []float64{0, nan, 2, nan}}},
			}},
		},
		{
			"aten.gather.default",
			[]any{argument(0), 1, argument(1), false},
			[]tensor{float(2, 3), {npy.Int64, []int{2, 2}}},
			[]tensor{float(2, 2)},
			[]run{{
				[]of{counted(2, 3), {[]int{1, 2}, []float64{2, 1}}},
				[]of{{[]int{1, 2}, []float64{2, 1}}},
			}},
		},
		{
			"aten.index.Tensor",
			[]any{argument(0), list{nil, argument(1)}},
			[]tensor{float(1, 3, 2), {npy.Int64, []int{2, 2}}},
			[]tensor{float(1, 2, 2, 2)},
			[]run{{
				[]of{counted(1, 3, 2), {[]int{1, 2}, []float64{2, 0}}},
				[]of{{[]int{1, 1, 2, 2}, []float64{4, 5, 0, 1}}},
			}},
		},
		{
			"aten.cumsum.default",
			[]any{argument(0), 0, nil},
			[]tensor{{npy.Int64, []int{3, 2}}},
			[]tensor{{npy.Int64, []int{3, 2}}},
			[]run{{[]of{counted(2, 2)}, []of{{[]int{2, 2}, []float64{0, 1, 2, 4}}}}},
		},
		{
			"aten.topk.default",
			[]any{argument(0), 2, 0, false, true},
			[]tensor{float(3, 4)},
			[]tensor{float(2, 4), {npy.Int64, []int{2, 4}}},
			[]run{{
				[]of{{[]int{3, 2}, []float64{3, 1, -inf, 5, 2, 4}}},
				[]of{{[]int{2, 2}, []float64{-inf, 1, 2, 4}}, {[]int{2, 2}, []float64{1, 0, 2, 2}}},
			}},
		},
		{
			"aten._log_softmax.default",
			[]any{argument(0), 0, false},
			[]tensor{float(3, 4)},
			[]tensor{float(3, 4)},
			[]run{{
				[]of{{[]int{2, 1}, []float64{1000, 1000}}},
				[]of{{[]int{2, 1}, []float64{-math.Ln2, -math.Ln2}}},
			}},
		},
		{
			"aten.full_like.default",
			[]any{argument(0), 3, nil, nil, nil, nil, nil},
			[]tensor{float(3, 4)},
			[]tensor{{npy.Int64, []int{3, 4}}},
			[]run{{[]of{{[]int{2, 1}, []float64{inf, nan}}}, []of{{[]int{2, 1}, []float64{3, 3}}}}},
		},
		{
			"aten.add.Tensor", // 2^24 + 1 is not an f32
			[]any{argument(0), argument(1), -1},
			[]tensor{{npy.Int64, []int{3, 4}}, {npy.Bool, []int{4}}},
			[]tensor{{npy.Int64, []int{3, 4}}},
			[]run{{
				[]of{{[]int{2, 2}, []float64{1<<24 + 2, 5, -7, 0}}, {[]int{2}, []float64{1, 0}}},
				[]of{{[]int{2, 2}, []float64{1<<24 + 1, 5, -8, 0}}},
			}},
		},
		{
			"aten.lt.Tensor",
			[]any{argument(0), argument(1)},
			[]tensor{{npy.Int64, []int{4}}, {npy.Int64, []int{4}}},
			[]tensor{{npy.Bool, []int{4}}},
			[]run{{
				[]of{{[]int{2}, []float64{1 << 24, 3}}, {[]int{2}, []float64{1<<24 + 1, -3}}},
				[]of{{[]int{2}, []float64{1, 0}}},
			}},
		},
		{
			"aten.div.Tensor",
			[]any{argument(0), argument(1)},
			[]tensor{{npy.Int64, []int{4}}, float(4)},
			[]tensor{float(4)},
			[]run{{
				[]of{{[]int{2}, []float64{1, 3}}, {[]int{2}, []float64{2, -3}}},
				[]of{{[]int{2}, []float64{0.5, -1}}},
			}},
		},
		{
			"aten.clamp.default",
			[]any{argument(0), nil, 3},
			[]tensor{{npy.Int64, []int{4}}},
			[]tensor{{npy.Int64, []int{4}}},
			[]run{{[]of{{[]int{2}, []float64{1, 1 << 25}}}, []of{{[]int{2}, []float64{1, 3}}}}},
		},
		{
			"aten.abs.default",
			[]any{argument(0)},
			[]tensor{{npy.Int64, []int{4}}},
			[]tensor{{npy.Int64, []int{4}}},
			[]run{{[]of{{[]int{2}, []float64{-1<<24 - 1, 2}}}, []of{{[]int{2}, []float64{1<<24 + 1, 2}}}}},
		},
		{
			"aten.ge.Scalar",
			[]any{argument(0), 1},
			[]tensor{float(4)},
			[]tensor{{npy.Bool, []int{4}}},
			[]run{{[]of{{[]int{3}, []float64{0.5, 1, 2}}}, []of{{[]int{3}, []float64{0, 1, 1}}}}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			g, values := programOf(test.name, test.args, test.inputs, test.outputs)
			loaded := load(t, dev, parse(t, g, values))
			for _, r := range append(test.runs, test.runs[0]) {
				var in []*npy.Array
				for i, a := range r.in {
					in = append(in, a.npy(test.inputs[i].as))
				}
				out, err := loaded.Run(t.Context(), in)
				if err != nil {
					t.Fatalf("%v: %v", r.in, err)
				}
				for i, want := range r.want {
					got := fromArray(out[i])
					near := func(a, b float64) bool {
						return a == b || math.Abs(a-b) < 1e-5 || math.IsNaN(a) && math.IsNaN(b)
					}
					if !slices.Equal(got.dims, want.dims) || !slices.EqualFunc(got.data, want.data, near) {
						t.Errorf("%v: output %d is %v, want %v", r.in, i, got, want)
					}
				}
			}
		})
	}
}

func TestGroupsOfNoColumnsAreRefused(t *testing.T) {
	g, values := programOf("et_vk.linear_q4gsw.default",
		[]any{argument(0), constantU8(ones(4, 4)), constantF32(ones(1, 4)), 0, nil},
		[]tensor{{npy.Float32, []int{2, 8}}}, []tensor{{npy.Float32, []int{2, 4}}})
	var op *program.OperatorError
	if _, err := build(parse(t, g, values)); !errors.As(err, &op) {
		t.Errorf("got %v, want an OperatorError", err)
	}
}

// Fills need no input: their elements are constants.
func TestFillsAreConstants(t *testing.T) {
	dev := gputest.Open(t)
	for _, test := range []struct {
		name string
		args []any
		out  tensor
		want []float64
	}{
		{
			"aten.full.default",
			[]any{[]int64{2}, 2.5, nil, nil, nil, nil},
			tensor{npy.Float32, []int{2}},
			[]float64{2.5, 2.5},
		},
		{
			"aten.ones.default",
			[]any{[]int64{2}, nil, nil, nil, nil},
			tensor{npy.Bool, []int{2}},
			[]float64{1, 1},
		},
		{
			"aten.scalar_tensor.default",
			[]any{-3, nil, nil, nil, nil},
			tensor{npy.Int64, []int{}},
			[]float64{-3},
		},
		{
			"aten.arange.start_step",
			[]any{1, 6, 2, nil, nil, nil, nil},
			tensor{npy.Int64, []int{3}},
			[]float64{1, 3, 5},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			g, values := programOf(test.name, test.args, nil, []tensor{test.out})
			out, err := load(t, dev, parse(t, g, values)).Run(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := fromArray(out[0]); !slices.Equal(got.data, test.want) {
				t.Errorf("got %v, want %v", got.data, test.want)
			}
		})
	}
}
