package program_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/fake"
	"gpuscope/engine/gpu/gputest"
	"gpuscope/model/checkpoint/pte"
	p "gpuscope/model/checkpoint/pte/ptetest"
	"gpuscope/model/checkpoint/pte/vulkan"
)

// dtypes maps an element type to its numbers in a method and in a delegate.
var dtypes = map[pte.Type][2]int8{
	pte.Bool: {11, 0}, pte.Uint8: {0, 1}, pte.Int8: {1, 2}, pte.Int32: {3, 3}, pte.Float16: {5, 4},
	pte.Float32: {6, 5}, pte.Float64: {7, 6}, pte.Int64: {4, 7},
}

// rewritten is the graph of a real delegate as tables that a test can change and encode again.
type rewritten struct {
	graph   p.Graph
	outer   []p.Table // the method's values: inputs, then outputs
	tensors []int     // ids of tensors
}

// rewrite reads a program. It returns nil if the program does not begin with a delegate.
func rewrite(t *testing.T, path string) *rewritten {
	t.Helper()
	f, err := pte.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m := f.Methods[0]
	call := m.Chains[0].Instructions[0]
	if call.Op != pte.DelegateCall {
		return nil
	}
	g, err := vulkan.Parse(m.Delegates[call.Target].Data, f.Lookup)
	if err != nil {
		t.Fatal(err)
	}
	r := &rewritten{}
	for i := range g.Constants {
		data, err := g.Constants[i].Data.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		r.graph.Constants = append(r.graph.Constants, p.Inline(uint64(len(r.graph.Data)), uint64(len(data))))
		r.graph.Data = append(r.graph.Data, data...)
	}
	for id, v := range g.Values {
		if _, ok := v.(*vulkan.Tensor); ok {
			r.tensors = append(r.tensors, id)
		}
		r.graph.Values = append(r.graph.Values, valueTable(v))
	}
	for i := range g.Operators {
		op := &g.Operators[i]
		r.graph.Operators = append(r.graph.Operators, p.Operator(op.ID, op.Name, ids32(op.Args)...))
	}
	for i, outer := range call.Args {
		host := m.Values[outer].(*pte.Tensor)
		sizes := make([]int32, len(host.Sizes))
		for k, n := range host.Sizes {
			sizes[k] = int32(n)
		}
		table := p.Tensor(dtypes[host.Type][0], sizes...)
		table[8] = int8(host.Dynamism)
		r.outer = append(r.outer, table)
		if i < len(g.Inputs) {
			r.graph.Inputs = append(r.graph.Inputs, uint32(g.Inputs[i]))
		} else {
			r.graph.Outputs = append(r.graph.Outputs, uint32(g.Outputs[i-len(g.Inputs)]))
		}
	}
	return r
}

func ids32(ids []int) (list []int32) {
	for _, id := range ids {
		list = append(list, int32(id))
	}
	return list
}

// valueTable returns the table of a value of a graph.
func valueTable(v vulkan.Value) p.Table {
	switch v := v.(type) {
	case *vulkan.Tensor:
		dims := make([]uint32, len(v.Dims))
		for i, n := range v.Dims {
			dims[i] = uint32(n)
		}
		return p.GraphTensor(dtypes[v.Type][1], int32(v.Constant), -1, dims...)
	case vulkan.ValueList:
		return p.GraphList(ids32(v)...)
	case vulkan.SymInt:
		return p.GraphSymInt()
	case nil:
		return p.Table{0: p.One(1, p.Table{})}
	case int64:
		return p.GraphInt(v)
	case float64:
		return p.Table{0: p.One(3, p.Table{0: v})}
	case bool:
		return p.Table{0: p.One(4, p.Table{0: v})}
	case []int64:
		return p.Table{0: p.One(6, p.Table{0: v})}
	case []float64:
		return p.Table{0: p.One(7, p.Table{0: v})}
	case []bool:
		return p.Table{0: p.One(8, p.Table{0: v})}
	case string:
		return p.Table{0: p.One(10, p.Table{0: v})}
	}
	panic(fmt.Sprintf("%T", v))
}

// oddValues are arguments that an operator may not expect.
var oddValues = []vulkan.Value{
	nil, true, false, "", "tanh",
	vulkan.SymInt{},
	int64(0), int64(1), int64(-1), int64(2), int64(3), int64(7),
	int64(-7), int64(64), int64(1 << 20), int64(1 << 31), int64(1<<31 - 1), int64(-1 << 31), int64(1 << 40),
	int64(math.MaxInt64), int64(math.MinInt64), 0.0, -1.0, 0.5, 1e-30, 1e300, math.NaN(), math.Inf(1),
	[]int64{},
	[]int64{0},
	[]int64{1},
	[]int64{-1},
	[]int64{0, 0},
	[]int64{1, 1},
	[]int64{-1, -1},
	[]int64{1, 0},
	[]int64{2, 1, 0},
	[]int64{0, 1, 2, 3},
	[]int64{3, 2, 1, 0},
	[]int64{1 << 20, 1 << 20},
	[]int64{1 << 40},
	[]int64{math.MinInt64, math.MaxInt64},
	[]int64{0, 0, 0, 0, 0, 0, 0, 0, 0},
	[]float64{},
	[]float64{2, 2},
	[]float64{math.NaN(), 1e30},
	[]float64{-1, 0},
	[]bool{},
	[]bool{true, false},
	vulkan.ValueList{},
}

// oddDims are shapes that an operator may not expect.
var oddDims = [][]uint32{
	{},
	{0},
	{1},
	{2},
	{3},
	{8},
	{1 << 31},
	{1<<32 - 1},
	{1 << 16, 1 << 16},
	{1, 0},
	{0, 4},
	{1, 1},
	{2, 3},
	{8, 8},
	{1, 8, 8},
	{2, 2, 2},
	{1, 1, 1, 1},
	{1, 3, 8, 8},
	{1, 1, 1 << 20, 1},
	{2, 1, 3, 1, 2},
	{1, 1, 1, 1, 1, 1, 1, 1, 1},
	{1 << 12, 1 << 12, 1 << 12},
	{1 << 20, 1},
	{1, 1 << 20},
}

// change changes one to three arguments, shapes or types at random.
func (r *rewritten) change(random *rand.Rand) {
	g := &r.graph
	g.Values, g.Operators, r.outer = slices.Clone(g.Values), slices.Clone(g.Operators), slices.Clone(r.outer)
	for range 1 + random.IntN(3) {
		i := random.IntN(len(g.Operators))
		args := slices.Clone(g.Operators[i][2].([]int32))
		switch random.IntN(6) {
		case 0, 1: // another value
			g.Values = append(g.Values, valueTable(oddValues[random.IntN(len(oddValues))]))
			args[random.IntN(len(args))] = int32(len(g.Values) - 1)
		case 2: // a list of values, which may contain itself
			var list []int32
			for range random.IntN(4) {
				list = append(list, int32(random.IntN(len(g.Values)+1)))
			}
			g.Values = append(g.Values, p.GraphList(list...))
			args[random.IntN(len(args))] = int32(len(g.Values) - 1)
		case 3: // the argument of another operator
			args[random.IntN(len(args))] = int32(random.IntN(len(g.Values)))
		default:
			r.reshape(random, r.tensors[random.IntN(len(r.tensors))])
		}
		g.Operators[i] = p.Table{0: g.Operators[i][0], 1: g.Operators[i][1], 2: args}
	}
}

// reshape changes the shape or the type of a tensor, in the delegate and in the method.
func (r *rewritten) reshape(random *rand.Rand, id int) {
	old := r.graph.Values[id][0].(p.Union).Value
	tensor := p.Table{}
	for k, v := range old {
		tensor[k] = v
	}
	if random.IntN(4) == 0 {
		tensor[0] = int8(random.IntN(8))
	} else if dims := slices.Clone(old[1].([]uint32)); len(dims) > 0 && random.IntN(2) == 0 {
		dims[random.IntN(len(dims))] = []uint32{0, 1, 2, 7, 64, 1 << 16, 1 << 24}[random.IntN(7)]
		tensor[1] = dims
	} else {
		tensor[1] = oddDims[random.IntN(len(oddDims))]
	}
	r.graph.Values[id] = p.Table{0: p.One(5, tensor)}
	for i, port := range slices.Concat(r.graph.Inputs, r.graph.Outputs) {
		if port != uint32(id) {
			continue
		}
		var sizes []int32
		for _, n := range tensor[1].([]uint32) {
			sizes = append(sizes, int32(n))
		}
		for _, numbers := range dtypes {
			if numbers[1] == tensor[0].(int8) {
				dynamism := r.outer[i][8]
				r.outer[i] = p.Tensor(numbers[0], sizes...)
				r.outer[i][8] = dynamism
			}
		}
	}
}

// bytes returns a program with the graph.
func (r *rewritten) bytes() []byte {
	var args, inputs, outputs []int32
	var values []p.Table
	for i, v := range r.outer {
		args, values = append(args, int32(i)), append(values, p.Value(v))
		if i < len(r.graph.Inputs) {
			inputs = append(inputs, int32(i))
		} else {
			outputs = append(outputs, int32(i))
		}
	}
	m := p.Method("forward", values, inputs, outputs)
	m[7] = []p.Table{p.Delegate("VulkanBackend", 0)}
	m[5] = []p.Table{p.Chain(p.Instruction(2, p.Table{0: int32(0), 1: args}))}
	file := p.Program{Segments: [][]byte{r.graph.Bytes()}, Methods: []p.Table{m}}
	return file.Bytes()
}

// seed names a program that change made.
type seed struct {
	file string
	n    uint64
}

func (s seed) String() string { return fmt.Sprintf("%s with seed %d", s.file, s.n) }

// Operators with arguments, shapes and types that no exporter writes are refused or run.
func TestOddArgumentsAreRefusedOrRun(t *testing.T) {
	times := 30
	switch {
	case damageAll():
		times = 2000
	case testing.Short():
		times = 4
	}
	tryArguments(t, fake.New(fake.Options{NoLog: true}), 1, times)
}

func TestOddArgumentsRunOnAGPU(t *testing.T) {
	times, every := 4, 10
	switch {
	case damageAll():
		times = 100
	case testing.Short():
		times, every = 2, 40
	}
	tryArguments(t, gputest.Open(t), every, times)
}

// tryArguments changes each small program, and runs one of every so many that can be planned.
func tryArguments(t *testing.T, dev gpu.Device, every, times int) {
	t.Helper()
	dir := sharedPrograms(t)
	h := &hostileTest{TB: t, dev: dev, every: every, counts: map[outcome]int{}}
	for _, folder := range []string{"ops", "dynamic"} {
		paths, err := filepath.Glob(filepath.Join(dir, folder, "*.pte"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%d programs, %v", len(paths), err)
		}
		for _, path := range paths {
			if info, err := os.Stat(path); err != nil || info.Size() > 64<<10 {
				continue
			}
			original := rewrite(t, path)
			if original == nil {
				continue
			}
			for n := range times {
				s := seed{filepath.Base(path), uint64(n)}
				r := *original
				r.change(rand.New(rand.NewPCG(s.n, uint64(len(path)))))
				h.try(r.bytes(), s)
			}
		}
	}
	h.check()
}
