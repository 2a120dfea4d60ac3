// Package network describes the inputs and outputs of a language model's graph: the tokens and the
// position, the logits and the next token. Package model/arch builds such graphs from checkpoints. Package
// model/program builds them from ExecuTorch programs.
package network

import (
	"encoding/binary"

	"gpuscope/engine/graph"
	"gpuscope/model/sample"
)

// Network is the graph of a model, with the inputs and outputs of a step.
type Network struct {
	Graph  *graph.Graph
	Tokens graph.ValueID // i32 [1, S], S up to the largest chunk
	Pos    graph.ValueID // SymInt: position of the first token
	// PosTensor is the position as i32 [1], which some programs also read as a tensor; otherwise graph.None.
	PosTensor graph.ValueID
	Vocab     int // token ids are less than Vocab
	// Logits are the logits after the last token, f32 [1, 1, vocab]. They are None if the graph computes only
	// the next token (sample.Given).
	Logits graph.ValueID
	// ExpertCounts has an output for each router, in the order of the layers. It is i32 [experts]: how many
	// tokens of the step chose each expert.
	ExpertCounts []graph.ValueID
	sample.Picks
}

// Input returns the input of a step: tokens at a position.
func (n *Network) Input(position int, tokens []int) *graph.StepInput {
	in := &graph.StepInput{
		Inputs:  []graph.InputData{{Value: n.Tokens, Dims: []int{1, 0}}},
		SymInts: []graph.SymIntValue{{Value: n.Pos}},
	}
	if n.PosTensor != graph.None {
		in.Inputs = append(in.Inputs, graph.InputData{Value: n.PosTensor, Dims: []int{1}})
	}
	SetInput(in, position, tokens)
	return in
}

// SetInput changes an existing input to other tokens and another position. It reuses the buffers of the
// input.
func SetInput(in *graph.StepInput, position int, tokens []int) {
	SetTokens(in, tokens)
	in.Inputs[0].From = nil
	in.SymInts[0].Int = int64(position)
	if len(in.Inputs) > 1 {
		at := &in.Inputs[1]
		at.Data = binary.LittleEndian.AppendUint32(at.Data[:0], uint32(position))
		at.Host = append(at.Host[:0], int64(position))
	}
}

// SetTokens changes only the tokens of an existing input, and leaves the position as it is.
func SetTokens(in *graph.StepInput, tokens []int) {
	ids := &in.Inputs[0]
	ids.Dims[1], ids.Data, ids.Host = len(tokens), ids.Data[:0], ids.Host[:0]
	for _, t := range tokens {
		ids.Data = binary.LittleEndian.AppendUint32(ids.Data, uint32(t))
		ids.Host = append(ids.Host, int64(t))
	}
}
