package program_test

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/gputest"
	"gpuscope/engine/graph"
	"gpuscope/internal/wordingtest"
	"gpuscope/model/checkpoint/pte"
	p "gpuscope/model/checkpoint/pte/ptetest"
	"gpuscope/model/checkpoint/pte/vulkan"
	"gpuscope/model/network"
	"gpuscope/model/program"
	"gpuscope/model/program/programtest"
)

// variant returns the program qwen3-tiny-4w with another graph and another output.
func variant(t *testing.T, output p.Table, change func(from *vulkan.Graph, g *p.Graph)) *pte.File {
	t.Helper()
	path := filepath.Join(sharedPrograms(t), "qwen3-tiny-4w.pte")
	data, err := programtest.Language(path, "step", output, change)
	if err != nil {
		t.Fatal(err)
	}
	f, err := pte.Parse(data, "variant.pte")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// expectLogits runs a network in chunks of these lengths and compares the logits of each step with those of
// qwen3-tiny-4w. plus(position) is added to each of those logits.
func expectLogits(t *testing.T, dev gpu.Device, n *network.Network, plus func(position int) float64) {
	t.Helper()
	original, err := pte.Open(filepath.Join(sharedPrograms(t), "qwen3-tiny-4w.pte"))
	if err != nil {
		t.Fatal(err)
	}
	defer original.Close()
	reference := buildLanguage(t, original, dev.Info().Limits, program.Step{Context: 128, MaxChunk: 16})
	var execs [2]*engine.Executor
	for i, n := range []*network.Network{reference, n} {
		if execs[i], err = engine.Load(dev, n.Graph, graph.LiveOptions{}, nil); err != nil {
			t.Fatal(err)
		}
		defer execs[i].Release()
	}
	position := 0
	for _, chunk := range []int{5, 1, 16, 1, 2} {
		var tokens []int
		for k := range chunk {
			tokens = append(tokens, (position+k)*37%1000)
		}
		want := logitsOf(t, execs[0], reference, position, tokens...)
		got := logitsOf(t, execs[1], n, position, tokens...)
		for k := range want {
			if w := float64(want[k]) + plus(position); !(math.Abs(float64(got[k])-w) <= 1e-3) {
				t.Fatalf("position %d, token %d: logit %v, want %v", position, k, got[k], w)
			}
		}
		position += chunk
	}
}

func TestPositionCanBeReadAsATensor(t *testing.T) {
	f := variant(t, p.Tensor(f32, 1, 1024), func(from *vulkan.Graph, g *p.Graph) {
		n := int32(len(g.Values))
		null := p.Table{0: p.One(1, p.Table{})}
		g.Values = append(g.Values, null, p.GraphTensor(inF32, -1, -1, 1), p.GraphInt(1),
			p.GraphTensor(inF32, -1, -1, 1, 1024))
		args := slices.Repeat([]int32{n}, 9)[:len(convertArguments)]
		args[0] = int32(from.Inputs[1])
		g.Operators = append(g.Operators,
			p.Operator(9000, "dim_order_ops._to_dim_order_copy.default", append(args, n+1)...),
			p.Operator(9001, "aten.add.Tensor", int32(from.Outputs[0]), n+1, n+2, n+3))
		g.Outputs = []uint32{uint32(n + 3)}
	})
	dev := gputest.Open(t)
	n := buildLanguage(t, f, dev.Info().Limits, program.Step{Context: 128, MaxChunk: 16})
	if n.PosTensor == graph.None {
		t.Fatal("no operator reads the position as a tensor")
	}
	expectLogits(t, dev, n, func(position int) float64 { return float64(position) })
}

// convertArguments are the names of the arguments of the operator that converts types.
var convertArguments = func() []string {
	op := vulkan.Operator{Name: "dim_order_ops._to_dim_order_copy.default"}
	for !op.Known() {
		op.Args = append(op.Args, 0)
	}
	names := op.Arguments()
	return names[:len(names)-1]
}()

func TestMatricesThatDoNotKeepFourBitsAreAWarning(t *testing.T) {
	golden := wordingtest.New(t)
	f := variant(t, p.Tensor(f32, 1, 1024), func(from *vulkan.Graph, g *p.Graph) {
		for i := range from.Operators {
			op := &from.Operators[i]
			if k := slices.Index(op.Arguments(), "group_size"); k >= 0 {
				g.Values[op.Args[k]] = p.GraphInt(12)
			}
		}
	})
	l, err := program.OpenLanguage(f, "")
	if err != nil || len(l.Warnings) != 1 {
		t.Fatalf("warnings %q, %v, want one", l.Warnings, err)
	}
	golden.Text("groups of 12", l.Warnings[0])
	f, err = pte.Open(filepath.Join(sharedPrograms(t), "qwen3-tiny-4w.pte"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if l, err = program.OpenLanguage(f, ""); err != nil || len(l.Warnings) > 0 {
		t.Errorf("warnings %q, %v, want none", l.Warnings, err)
	}
}

// A method may compute the logits of all tokens. Only those of the last one are needed.
func TestLogitsOfAllTokensAreComputedForTheLast(t *testing.T) {
	f := variant(t, bounded(f32, 1, 63, 1024), func(from *vulkan.Graph, g *p.Graph) {
		all := len(from.Operators)
		for i := all - 3; i < all; i++ { // select, norm, head
			args := from.Operators[i].Args
			dims := from.Values[args[len(args)-1]].(*vulkan.Tensor).Dims
			g.Values[args[len(args)-1]] = p.GraphTensor(inF32, -1, -1, 1, 63, uint32(dims[1]))
		}
		op := &from.Operators[all-3]
		if op.Name != "aten.select_copy.int" {
			t.Fatalf("operator %s, want the selection of the last row", op.Name)
		}
		g.Operators[all-3] = p.Operator(op.ID, "aten.alias_copy.default", int32(op.Args[0]),
			int32(op.Args[len(op.Args)-1]))
	})
	dev := gputest.Open(t)
	n := buildLanguage(t, f, dev.Info().Limits, program.Step{Context: 128, MaxChunk: 16})
	if dims := n.Graph.Value(n.Logits).MaxDims; !slices.Equal(dims, []int{1, 1, 1024}) {
		t.Errorf("logits %v", dims)
	}
	for i := range n.Graph.NumValues() {
		v := n.Graph.Value(graph.ValueID(i))
		if v.Role != graph.Constant && slices.Equal(v.MaxDims, []int{1, 16, 1024}) {
			t.Errorf("%s has the logits of all tokens", v.Name)
		}
	}
	expectLogits(t, dev, n, func(int) float64 { return 0 })
}
