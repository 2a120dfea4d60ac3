package program_test

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/fake"
	"gpuscope/engine/gpu/gputest"
	"gpuscope/engine/graph"
	"gpuscope/internal/npy"
	"gpuscope/internal/wordingtest"
	"gpuscope/model/checkpoint/pte"
	p "gpuscope/model/checkpoint/pte/ptetest"
	"gpuscope/model/program"
)

// The type numbers of a method's tensors and of a delegate's tensors.
const (
	f32, i64, boolean = 6, 4, 11
	inF32, inI32      = 5, 3
	inBool            = 0
)

// parse returns a program whose method forward calls a delegate with the graph. values are the tensors of the
// method: the inputs of the delegate, then its outputs. Further instructions follow the call.
func parse(t testing.TB, g *p.Graph, values []p.Table, more ...p.Table) *pte.File {
	t.Helper()
	var args, inputs, outputs []int32
	for i := range values {
		args = append(args, int32(i))
		if i < len(g.Inputs) {
			inputs = append(inputs, int32(i))
		} else {
			outputs = append(outputs, int32(i))
		}
	}
	all := make([]p.Table, len(values))
	for i, v := range values {
		all[i] = p.Value(v)
	}
	m := p.Method("forward", all, inputs, outputs)
	m[6] = []p.Table{{0: "aten::add", 1: "out"}, {0: "aten::copy_"}}
	m[7] = []p.Table{p.Delegate("VulkanBackend", 0)}
	m[5] = []p.Table{p.Chain(append([]p.Table{p.Instruction(2, p.Table{0: int32(0), 1: args})}, more...)...)}
	file := p.Program{Segments: [][]byte{g.Bytes()}, Methods: []p.Table{m}}
	f, err := pte.Parse(file.Bytes(), "test.pte")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func build(f *pte.File) (*program.Method, error) {
	return program.Build(f, "forward", gpu.DefaultLimits(), program.Options{})
}

// bounded returns a tensor of the method whose shape can change from run to run.
func bounded(dtype int8, sizes ...int32) p.Table {
	t := p.Tensor(dtype, sizes...)
	t[8] = int8(1)
	return t
}

// sum returns a graph that adds its two inputs, with the given operators instead of the add.
func sum(operators ...p.Table) *p.Graph {
	if len(operators) == 0 {
		operators = []p.Table{p.Operator(7, "aten.add.Tensor", 0, 1, 2, 3)}
	}
	return &p.Graph{
		Values: []p.Table{
			p.GraphTensor(inF32, -1, 0, 8), p.GraphTensor(inF32, -1, 1, 8), p.GraphInt(1),
			p.GraphTensor(inF32, -1, 2, 8),
			{0: p.One(1, p.Table{})},
			p.GraphTensor(inF32, -1, 3, 8),
		},
		Operators: operators, Inputs: []uint32{0, 1}, Outputs: []uint32{3},
	}
}

var sumValues = []p.Table{bounded(f32, 8), bounded(f32, 8), bounded(f32, 8)}

func TestProgramsThatCannotRunAreRefused(t *testing.T) {
	golden := wordingtest.New(t)
	refuse := func(name string, f *pte.File, as any) {
		t.Helper()
		_, err := build(f)
		if err == nil || !errors.As(err, as) {
			t.Errorf("%s: %v, want %T", name, err, as)
			return
		}
		golden.Error(name, err)
	}
	var unknown *program.UnknownOperators
	refuse("unknown operators", parse(t, sum(p.Operator(0, "aten.new.default", 0, 3),
		p.Operator(1, "aten.newer.default", 0, 3), p.Operator(2, "aten.new.default", 0, 3),
		p.Operator(3, "aten.add.Tensor", 0, 1, 3)), sumValues), &unknown)
	want := []program.Count{{"aten.new.default", 2}, {"aten.add.Tensor", 1}, {"aten.newer.default", 1}}
	if unknown == nil || !slices.Equal(unknown.Operators, want) {
		t.Errorf("unknown operators %+v, want %+v", unknown, want)
	}
	var host *program.HostError
	refuse("host instructions", parse(t, sum(), sumValues, p.Instruction(1,
		p.Table{0: int32(0), 1: []int32{0, 1, 2}}), p.Instruction(4, p.Table{0: int32(0), 1: int32(0)})),
		&host)
	if host == nil || !slices.Equal(host.Instructions,
		[]program.Count{{"JumpFalseCall", 1}, {"aten::add.out", 1}}) {
		t.Errorf("host instructions %+v", host)
	}
	var op *program.OperatorError
	refuse("value before its operator", parse(t, sum(p.Operator(9, "aten.add.Tensor", 0, 5, 2, 3)),
		sumValues), &op)
	if op == nil || op.ID != 9 || op.Name != "aten.add.Tensor" {
		t.Errorf("operator error %+v", op)
	}
	refuse("none as tensor", parse(t, sum(p.Operator(1, "aten.add.Tensor", 0, 4, 2, 3)), sumValues), &op)
	refuse("tensor as number", parse(t, sum(p.Operator(1, "aten.add.Tensor", 0, 1, 1, 3)), sumValues), &op)
	refuse("number as output", parse(t, sum(p.Operator(1, "aten.add.Tensor", 0, 1, 2, 2)), sumValues), &op)

	fails := func(name string, f *pte.File) {
		t.Helper()
		_, err := build(f)
		golden.Error(name, err)
	}
	g := sum()
	g.Values[0] = p.GraphTensor(inI32, -1, 0, 8)
	fails("input of another type", parse(t, g, sumValues))
	g = sum()
	g.Outputs = []uint32{5}
	fails("output that nothing computes", parse(t, g, sumValues))
}

func array(v ...float32) *npy.Array {
	a := &npy.Array{Type: npy.Float32, Dims: []int{len(v)}}
	for _, f := range v {
		a.Data = binary.LittleEndian.AppendUint32(a.Data, math.Float32bits(f))
	}
	return a
}

func floats(a *npy.Array) (out []float32) {
	for i := 0; i < len(a.Data); i += 4 {
		out = append(out, math.Float32frombits(binary.LittleEndian.Uint32(a.Data[i:])))
	}
	return out
}

// load puts a program on a device.
func load(t testing.TB, dev gpu.Device, f *pte.File) *program.Program {
	t.Helper()
	m, err := program.Build(f, "forward", dev.Info().Limits, program.Options{})
	if err != nil {
		t.Fatal(err)
	}
	run, err := program.Load(dev, m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(run.Release)
	return run
}

func TestProgramRunsAtTheShapesOfItsInputs(t *testing.T) {
	run := load(t, gputest.Open(t), parse(t, sum(), sumValues))
	for _, n := range []int{8, 3, 1, 5, 8} {
		a := make([]float32, n)
		want := make([]float32, n)
		for i := range a {
			a[i], want[i] = float32(i), 2*float32(i)
		}
		out, err := run.Run(t.Context(), []*npy.Array{array(a...), array(a...)})
		if err != nil {
			t.Fatal(err)
		}
		if got := floats(out[0]); !slices.Equal(got, want) || !slices.Equal(out[0].Dims, []int{n}) {
			t.Errorf("%d elements: %v %v, want %v", n, out[0].Dims, got, want)
		}
	}
}

func TestInputsThatDoNotFitAreRefused(t *testing.T) {
	golden := wordingtest.New(t)
	run := load(t, fake.New(fake.Options{}), parse(t, sum(), sumValues))
	good := array(1, 2)
	for _, c := range []struct {
		name   string
		inputs []*npy.Array
		want   error
	}{
		{"too few", []*npy.Array{good}, program.ErrInput},
		{
			"another type",
			[]*npy.Array{good, {Type: npy.Int32, Dims: []int{2}, Data: make([]byte, 8)}},
			program.ErrInput,
		},
		{
			"another rank",
			[]*npy.Array{good, {Type: npy.Float32, Dims: []int{1, 2}, Data: good.Data}},
			program.ErrInput,
		},
		{
			"too few bytes",
			[]*npy.Array{good, {Type: npy.Float32, Dims: []int{3}, Data: good.Data}},
			program.ErrInput,
		},
		{"too large", []*npy.Array{good, array(make([]float32, 9)...)}, graph.ErrShape},
		{"empty", []*npy.Array{good, array()}, graph.ErrShape},
	} {
		_, err := run.Run(t.Context(), c.inputs)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		golden.Error(c.name, err)
	}
	if _, err := run.Run(t.Context(), []*npy.Array{good, good}); err != nil {
		t.Errorf("a run after refused runs: %v", err)
	}
}

// lookup returns a graph that reads rows of a table of 3 rows, and takes int64 indices.
func lookup() (*p.Graph, []p.Table) {
	g := &p.Graph{
		Values: []p.Table{
			p.GraphTensor(inF32, 0, -1, 3, 4), p.GraphTensor(inI32, -1, 0, 2), p.GraphInt(-1),
			{0: p.One(4, p.Table{0: false})},
			p.GraphTensor(inF32, -1, 1, 2, 4),
		},
		Operators: []p.Table{p.Operator(0, "aten.embedding.default", 0, 1, 2, 3, 3, 4)},
		Inputs:    []uint32{1}, Outputs: []uint32{4},
		Constants: []p.Table{p.Inline(0, 48)}, Data: make([]byte, 48),
	}
	return g, []p.Table{p.Tensor(i64, 2), p.Tensor(f32, 2, 4)}
}

func TestIntegersThatDoNotFitAreRefused(t *testing.T) {
	golden := wordingtest.New(t)
	g, values := lookup()
	run := load(t, fake.New(fake.Options{}), parse(t, g, values))
	for name, n := range map[string]int64{"too large": 1 << 40, "past the table": 3, "negative": -1} {
		a := &npy.Array{Type: npy.Int64, Dims: []int{2}, Data: make([]byte, 16)}
		binary.LittleEndian.PutUint64(a.Data[8:], uint64(n))
		_, err := run.Run(t.Context(), []*npy.Array{a})
		if !errors.Is(err, program.ErrInput) {
			t.Errorf("%s: %v, want ErrInput", name, err)
		}
		golden.Error(name, err)
	}
}

func TestBoolsAreConvertedAtTheEdges(t *testing.T) {
	g := sum(p.Operator(0, "aten.lt.Tensor", 0, 1, 3))
	g.Values[3] = p.GraphTensor(inBool, -1, 2, 8)
	run := load(t, gputest.Open(t), parse(t, g, []p.Table{
		bounded(f32, 8), bounded(f32, 8),
		bounded(boolean, 8),
	}))
	out, err := run.Run(t.Context(), []*npy.Array{array(1, 2, 3), array(3, 2, 4)})
	if err != nil {
		t.Fatal(err)
	}
	if out[0].Type != npy.Bool || !slices.Equal(out[0].Data, []byte{1, 0, 1}) {
		t.Errorf("got %+v", out[0])
	}
}

// wide returns an array of float64.
func wide(v ...float64) *npy.Array {
	a := &npy.Array{Type: npy.Float64, Dims: []int{len(v)}}
	for _, f := range v {
		a.Data = binary.LittleEndian.AppendUint64(a.Data, math.Float64bits(f))
	}
	return a
}

func TestWideNumbersAreNarrowedAndWidened(t *testing.T) {
	const f64 = 7
	tensor := bounded(f64, 8)
	run := load(t, gputest.Open(t), parse(t, sum(), []p.Table{tensor, tensor, tensor}))
	for _, c := range []struct{ a, b, want float64 }{
		{1.5, 2.25, 3.75},
		{-1e-300, 0, 0},
		{math.Inf(-1), 1, math.Inf(-1)},
		{math.MaxFloat32, 0, math.MaxFloat32},
	} {
		out, err := run.Run(t.Context(), []*npy.Array{wide(c.a), wide(c.b)})
		if err != nil {
			t.Fatal(err)
		}
		if got := math.Float64frombits(binary.LittleEndian.Uint64(out[0].Data)); out[0].Type != npy.Float64 ||
			got != c.want {
			t.Errorf("%v + %v = %v of %s, want %v", c.a, c.b, got, out[0].Type, c.want)
		}
	}
	_, err := run.Run(t.Context(), []*npy.Array{wide(1, 1e39), wide(0, 0)})
	if !errors.Is(err, program.ErrInput) {
		t.Errorf("1e39: %v, want ErrInput", err)
	}

	g := sum(p.Operator(0, "aten.alias_copy.default", 0, 3)) // of int32
	for _, id := range []int{0, 1, 3} {
		g.Values[id] = p.GraphTensor(inI32, -1, -1, 8)
	}
	tensor = bounded(i64, 8)
	run = load(t, gputest.Open(t), parse(t, g, []p.Table{tensor, tensor, tensor}))
	for _, n := range []int64{math.MinInt32, -1, math.MaxInt32} {
		out, err := run.Run(t.Context(), []*npy.Array{integers([]int{1}, n), integers([]int{1}, 0)})
		if err != nil {
			t.Fatal(err)
		}
		if got := int64(binary.LittleEndian.Uint64(out[0].Data)); out[0].Type != npy.Int64 || got != n {
			t.Errorf("%d comes back as %d of %s", n, got, out[0].Type)
		}
	}
	for _, n := range []int64{math.MinInt32 - 1, math.MaxInt32 + 1} {
		_, err := run.Run(t.Context(), []*npy.Array{integers([]int{1}, n), integers([]int{1}, 0)})
		if !errors.Is(err, program.ErrInput) {
			t.Errorf("%d: %v, want ErrInput", n, err)
		}
	}
}

func TestMutableBuffersWithEqualBytesAreSeparate(t *testing.T) {
	cache := p.GraphTensor(inF32, 0, -1, 1, 4, 1, 2)
	g := &p.Graph{
		Values: []p.Table{
			p.GraphTensor(inF32, -1, 0, 1, 1, 1, 2), cache, cache, p.GraphInt(0),
			{0: p.One(1, p.Table{})},
			p.GraphTensor(inF32, -1, 1, 1, 1, 1, 2),
		},
		Operators: []p.Table{
			p.Operator(0, "update_cache.default", 0, 1, 3, 4),
			p.Operator(1, "update_cache.default", 0, 2, 3, 4),
			p.Operator(2, "aten.neg.default", 0, 5),
		},
		Inputs: []uint32{0}, Outputs: []uint32{5},
		Constants: []p.Table{p.Inline(0, 32)}, Data: make([]byte, 32),
	}
	m, err := build(parse(t, g, []p.Table{p.Tensor(f32, 1, 1, 1, 2), p.Tensor(f32, 1, 1, 1, 2)}))
	if err != nil {
		t.Fatal(err)
	}
	first, second := m.Value(1), m.Value(2)
	if first == second || first == graph.None || m.Graph.Value(first).Role != graph.State ||
		m.Graph.Value(second).Role != graph.State {
		t.Errorf("the caches are values %d and %d, want two States", first, second)
	}
}

func TestNamesHaveTheNumbersOfTheFile(t *testing.T) {
	m, err := build(parse(t, sum(), sumValues))
	if err != nil {
		t.Fatal(err)
	}
	m.Graph.Operators(func(_ graph.OpID, name string, _ graph.Operator) bool {
		if name != "7.add" {
			t.Errorf("the operator's name is %s, want 7.add", name)
		}
		return true
	})
	if in := m.Graph.Value(m.Value(1)); in.Name != "%1" || in.Role != graph.Input || in.MaxDims[0] != 8 {
		t.Errorf("value 1 is %+v", in)
	}
}
