package ops

import (
	"errors"
	"fmt"
	"testing"

	"gpuscope/engine/graph"
	"gpuscope/internal/wordingtest"
	"gpuscope/ops/basic"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
	"gpuscope/ops/weight"
)

// smallLlama is a Llama with two layers. It uses every operator that a Llama needs, in one graph for prefill
// and decode.
func smallLlama(b *graph.Builder) {
	const (
		dim, heads, kvHeads, headDim, hidden = 64, 4, 2, 16, 96
		vocabulary, context, chunk           = 200, 48, 20
	)
	ids := b.Input("ids", graph.I32, []int{1, 1}, []int{1, chunk})
	pos := kind.Sym(b.SymInt("pos", 0, context-1, 0))
	n := kind.Sym(basic.SymSize(b, "n", ids, 1))
	table := q4Noise("embedding", vocabulary, dim, 32)
	matrix := func(name string, rows, cols int) weight.Matrix { return q4Noise(name, rows, cols, 32) }
	x := Embedding(b, "embed", table, ids)
	cos := basic.Slice(b, "cos", constant(b, "all_cos", context, headDim/2), 0, pos, n)
	sin := basic.Slice(b, "sin", constant(b, "all_sin", context, headDim/2), 0, pos, n)
	for i := range 2 {
		b.Scope(fmt.Sprintf("layers.%d.", i), i, "attention")
		w := func(name string) string { return fmt.Sprintf("layers.%d.%s", i, name) }
		y := RMSNorm(b, "norm1", x, constant(b, w("norm1.w"), dim), 1e-5)
		q := Linear(b, "q", y, matrix(w("q.w"), heads*headDim, dim), graph.None)
		k := Linear(b, "k", y, matrix(w("k.w"), kvHeads*headDim, dim), graph.None)
		v := Linear(b, "v", y, matrix(w("v.w"), kvHeads*headDim, dim), graph.None)
		q = basic.View(b, "q.heads", q, kind.Fixed(1), basic.Rest, kind.Fixed(heads), kind.Fixed(headDim))
		k = basic.View(b, "k.heads", k, kind.Fixed(1), basic.Rest, kind.Fixed(kvHeads), kind.Fixed(headDim))
		v = basic.View(b, "v.heads", v, kind.Fixed(1), basic.Rest, kind.Fixed(kvHeads), kind.Fixed(headDim))
		q, k = ApplyRotaryEmb(b, "rope", q, k, cos, sin)
		cacheK := b.State(w("cache_k"), graph.F32, []int{1, context, kvHeads, headDim})
		cacheV := b.State(w("cache_v"), graph.F32, []int{1, context, kvHeads, headDim})
		y = SDPA(b, "sdpa", q, k, v, cacheK, cacheV, pos, 0, 0, 0, graph.None)
		y = basic.View(b, "sdpa.flat", y, kind.Fixed(1), basic.Rest, kind.Fixed(heads*headDim))
		x = basic.Add(b, "add1", x, Linear(b, "o", y, matrix(w("o.w"), dim, heads*headDim), graph.None), 1)
		b.Scope(fmt.Sprintf("layers.%d.", i), i, "mlp")
		y = RMSNorm(b, "norm2", x, constant(b, w("norm2.w"), dim), 1e-5)
		gate := Linear(b, "gate", y, matrix(w("gate.w"), hidden, dim), graph.None)
		up := Linear(b, "up", y, matrix(w("up.w"), hidden, dim), graph.None)
		y = Linear(b, "down", basic.SiLUMul(b, "silu_mul", gate, up), matrix(w("down.w"), dim, hidden),
			graph.None)
		x = basic.Add(b, "add2", x, y, 1)
	}
	b.Scope("", -1, "")
	x = RMSNorm(b, "norm", basic.Select(b, "last", x, 1, -1), constant(b, "norm.w", dim), 1e-5)
	logits := Linear(b, "head", x, table, graph.None)
	b.Output(logits)
	b.Output(basic.Argmax(b, "token", logits, false))
}

// Runs a prefill, decode steps and a second prefill, then all of them in reverse. One graph does all of it,
// and its results and caches match the reference.
func TestALlamaFollowsItsReference(t *testing.T) {
	c := &trial{
		name: "two layers", build: smallLlama, below: map[string]int{"ids": 200}, abs: 1e-3, rel: 1e-3,
		steps: []step{
			{"ids": {1, 17}, "pos": {0}},
			{"ids": {1, 1}, "pos": {17}},
			{"ids": {1, 1}, "pos": {18}},
			{"ids": {1, 7}, "pos": {19}},
			{"ids": {1, 1}, "pos": {26}},
			{"ids": {1, 20}, "pos": {27}},
			{"ids": {1, 1}, "pos": {47}},
		},
	}
	static, fixpoint := *c, *c
	static.name, static.static = "pinned to the largest grids", true
	fixpoint.name, fixpoint.order = "in the order of ExecuTorch's engine", graph.Fixpoint
	hold(t, c, &static, &fixpoint)
}

func TestInterpreterSaysWhatIsMissing(t *testing.T) {
	golden := wordingtest.New(t)
	step := func(b *graph.Builder, in func(g *graph.Graph) *graph.StepInput) error {
		g, err := b.Finish()
		if err != nil {
			t.Fatal(err)
		}
		return reference.NewInterpreter(g).Step(in(g), nil)
	}
	broken := errors.New("the file is gone")
	for _, c := range []struct {
		name string
		load func() ([]byte, error)
		data int
	}{
		{
			"weights that cannot be loaded", func() ([]byte, error) { return nil, broken }, 32,
		},
		{
			"weights that are too few", func() ([]byte, error) { return make([]byte, 12), nil }, 32,
		},
		{
			"an input that is too short", func() ([]byte, error) { return make([]byte, 16), nil }, 28,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := tinyBuilder()
			x := in(b, "x", 2, 4)
			b.Output(RMSNorm(b, "norm", x, b.Constant("w", graph.F32, []int{4}, c.load), 1e-5))
			err := step(b, func(*graph.Graph) *graph.StepInput {
				return &graph.StepInput{Inputs: []graph.InputData{{
					Value: x, Dims: []int{2, 4},
					Data: make([]byte, c.data),
				}}}
			})
			golden.Error(c.name, err)
		})
	}
	t.Run("an input that no step gave", func(t *testing.T) {
		b := tinyBuilder()
		b.Output(basic.SiLU(b, "y", in(b, "x", 2)))
		err := step(b, func(*graph.Graph) *graph.StepInput { return &graph.StepInput{} })
		golden.Error("an input that no step gave", err)
	})
}

// A visitor sees each operator's values as they are computed. It can replace them, and it can stop the step.
func TestInterpreterVisitsOperators(t *testing.T) {
	b := tinyBuilder()
	x := in(b, "x", 2)
	y := basic.Add(b, "twice", x, x, 1)
	z := basic.Add(b, "again", y, y, 1)
	b.Output(z)
	g, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	step := &graph.StepInput{Inputs: []graph.InputData{{
		Value: x, Dims: []int{2},
		Data: float32Bytes([]float32{1, 2}),
	}}}
	ref := reference.NewInterpreter(g)
	if err := ref.Step(step, func(id graph.OpID) error {
		if id == 0 {
			ref.SetTensor(y, reference.Tensor{Dims: []int{2}, Data: []float64{10, 20}})
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if got := ref.Tensor(z).Data; got[0] != 20 || got[1] != 40 {
		t.Errorf("got %v, want the result of the replaced values: [20 40]", got)
	}
	stop := errors.New("stop")
	if err := ref.Step(step, func(graph.OpID) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("got %v, want the visitor's error", err)
	}
}
