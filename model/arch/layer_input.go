package arch

import (
	"fmt"
	"math"

	"gpuscope/engine/graph"
	"gpuscope/ops"
	"gpuscope/ops/basic"
	"gpuscope/ops/kind"
	"gpuscope/ops/weight"
)

// layerInput adds a separate input to the residual stream after each layer. The input depends on the token
// and on the layer. Source: Gemma 3n (2025), where it is called per-layer embedding.
type layerInput struct {
	gate, proj weight.Matrix
	norm       graph.ValueID
}

// layerInputs computes the inputs of all layers from the embedding x of the tokens, f32 [1, S, dim]:
//
//	(norm(project(x) / sqrt(dim)) + embed(tokens) * sqrt(n)) / sqrt(2)
//
// where n is the number of elements of an input. norm normalizes each input separately. The result is f32 [1,
// S, layers, n], or None if the model has no such inputs.
func (m *Decoder) layerInputs(x graph.ValueID) graph.ValueID {
	n, name := m.LayerInput, m.Form.Names
	if n == 0 {
		return graph.None
	}
	b, all := m.Builder, m.Layers*n
	rows := func(name string, x graph.ValueID) graph.ValueID {
		return basic.View(b, name, x, kind.Fixed(1), basic.Rest, kind.Fixed(m.Layers), kind.Fixed(n))
	}
	m.Scope("inputs.", -1, "inputs")
	table := m.W.Matrix(name.InputEmbed, m.Vocab, all)
	project, norm := m.W.Matrix(name.InputFromEmbed, all, m.Dim), m.W.norm(name.InputNorm, n)
	own := rows("embed_rows", ops.Embedding(b, "embed", table, m.tokens))
	x = ops.Linear(b, "project", x, project, graph.None)
	x = m.times("project_scale", "input_scale", x, 1/math.Sqrt(float64(m.Dim)))
	x = m.norm("norm", rows("project_rows", x), norm)
	x = basic.Add(b, "add", x, own, float32(math.Sqrt(float64(n))))
	x = m.times("scale", "input_half", x, math.Sqrt(0.5))
	m.Scope("", -1, "")
	return x
}

func (m *Decoder) layerInput(layer int) *layerInput {
	if m.LayerInput == 0 {
		return nil
	}
	name, blk := m.Form.Names, m.Form.Names.Of(layer)
	return &layerInput{
		gate: m.W.Matrix(blk+name.InputGate, m.LayerInput, m.Dim),
		proj: m.W.Matrix(blk+name.InputProj, m.Dim, m.LayerInput),
		norm: m.W.norm(blk+name.InputPostNorm, m.Dim),
	}
}

// forward returns x + norm(proj(act(gate(x)) * input)), where input is the layer's input and act is the
// activation function of the architecture.
func (f *layerInput) forward(m *Decoder, layer int, x graph.ValueID) graph.ValueID {
	b := m.Builder
	m.Scope(fmt.Sprintf("layers.%d.input.", layer), layer, "input")
	input := m.lastOf("last", layer, basic.Select(b, "select", m.inputs, 2, layer))
	h := ops.Linear(b, "gate", x, f.gate, graph.None)
	h = m.Arch.Gate.join(b, m.Arch.Gate.Name, h, input)
	h = ops.Linear(b, "proj", h, f.proj, graph.None)
	return m.add(x, m.norm("norm", h, f.norm))
}
