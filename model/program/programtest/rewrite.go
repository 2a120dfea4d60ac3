// Package programtest makes programs for tests: it copies a method of a program, and the test can change the
// graph of the delegate in the copy.
package programtest

import (
	"fmt"
	"slices"

	"gpuscope/model/checkpoint/pte"
	"gpuscope/model/checkpoint/pte/ptetest"
	"gpuscope/model/checkpoint/pte/vulkan"
)

// types lists the element types of a delegate's tensors, indexed by their number in files.
var types = []pte.Type{
	pte.Bool, pte.Uint8, pte.Int8, pte.Int32, pte.Float16, pte.Float32, pte.Float64, pte.Int64,
}

// Numbers of element types in files. Int64 is the number of int64 in a method, and GraphInt32 is the number
// of int32 in the graph of a delegate.
const (
	Int64      = 4
	GraphInt32 = 3
)

// Graph copies the graph of a Vulkan delegate into a form that tests can change and write. In the copy, all
// constants are stored inline.
func Graph(from *vulkan.Graph) (*ptetest.Graph, error) {
	g := &ptetest.Graph{}
	for _, v := range from.Values {
		g.Values = append(g.Values, value(v))
	}
	for i := range from.Operators {
		op := &from.Operators[i]
		g.Operators = append(g.Operators, ptetest.Operator(op.ID, op.Name, numbers[int32](op.Args)...))
	}
	g.Inputs, g.Outputs = numbers[uint32](from.Inputs), numbers[uint32](from.Outputs)
	for i := range from.Constants {
		data, err := from.Constants[i].Data.Bytes()
		if err != nil {
			return nil, err
		}
		for len(g.Data)%16 != 0 {
			g.Data = append(g.Data, 0)
		}
		g.Constants = append(g.Constants, ptetest.Inline(uint64(len(g.Data)), uint64(len(data))))
		g.Data = append(g.Data, data...)
	}
	return g, nil
}

func numbers[T int32 | uint32](ids []int) (out []T) {
	for _, id := range ids {
		out = append(out, T(id))
	}
	return out
}

func value(v vulkan.Value) ptetest.Table {
	table := func(kind uint8, v any) ptetest.Table {
		return ptetest.Table{0: ptetest.One(kind, ptetest.Table{0: v})}
	}
	switch v := v.(type) {
	case nil:
		return ptetest.Table{0: ptetest.One(1, ptetest.Table{})}
	case int64:
		return ptetest.GraphInt(v)
	case float64:
		return table(3, v)
	case bool:
		return table(4, v)
	case *vulkan.Tensor:
		dims := make([]uint32, len(v.Dims))
		for i, d := range v.Dims {
			dims[i] = uint32(d)
		}
		dtype := int8(slices.Index(types, v.Type))
		return ptetest.GraphTensor(dtype, int32(v.Constant), int32(v.Object), dims...)
	case []int64:
		return table(6, v)
	case []float64:
		return table(7, v)
	case []bool:
		return table(8, v)
	case vulkan.ValueList:
		return ptetest.GraphList(numbers[int32](v)...)
	case string:
		return table(10, v)
	case vulkan.SymInt:
		return ptetest.GraphSymInt()
	}
	panic(fmt.Sprintf("programtest: a graph cannot have the Go type %T", v))
}

// Language returns a program with one method, which is called `method`. It is a copy of the method
// "forward" of the program at `path`. The inputs of "forward" must be tokens int64 [1, S] and a position
// int64 [1]. The function `change` gets the original graph `from` of the delegate and its copy `g`, and
// modifies `g`. `output` is the output of the new method.
func Language(path, method string, output ptetest.Table, change func(from *vulkan.Graph, g *ptetest.Graph),
) ([]byte, error) {
	f, err := pte.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m, err := f.Method("forward")
	if err != nil {
		return nil, err
	}
	from, err := vulkan.Parse(m.Delegates[0].Data, f.Lookup)
	if err != nil {
		return nil, err
	}
	g, err := Graph(from)
	if err != nil {
		return nil, err
	}
	change(from, g)
	tokens := ptetest.Tensor(Int64, 1, int32(m.Values[m.Inputs[0]].(*pte.Tensor).Sizes[1]))
	tokens[8] = int8(1) // the shape is dynamic, with a bound
	table := ptetest.Method(method, []ptetest.Table{
		ptetest.Value(tokens), ptetest.Value(ptetest.Tensor(Int64, 1)), ptetest.Value(output),
	}, []int32{0, 1}, []int32{2})
	call := ptetest.Instruction(2, ptetest.Table{0: int32(0), 1: []int32{0, 1, 2}})
	table[5] = []ptetest.Table{ptetest.Chain(call)}
	table[7] = []ptetest.Table{ptetest.Delegate(vulkan.Backend, 0)}
	p := ptetest.Program{Segments: [][]byte{g.Bytes()}, Methods: []ptetest.Table{table}}
	return p.Bytes(), nil
}

// Greedy returns a copy of the program at `path` with one method, which is called `method`. The method
// `forward` of the original must compute logits. The copy computes only the token with the highest logit,
// int64 [1, 1].
func Greedy(path, method string) ([]byte, error) {
	return Language(path, method, ptetest.Tensor(Int64, 1, 1), func(_ *vulkan.Graph, g *ptetest.Graph) {
		n := int32(len(g.Values))
		token := ptetest.GraphTensor(GraphInt32, -1, -1, 1, 1)
		g.Values = append(g.Values, ptetest.GraphInt(-1), value(true), token)
		g.Operators = append(g.Operators,
			ptetest.Operator(9999, "aten.argmax.default", int32(g.Outputs[0]), n, n+1, n+2))
		g.Outputs = []uint32{uint32(n + 2)}
	})
}
