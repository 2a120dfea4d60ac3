// Package network describes the inputs and outputs of a language model's graph: the tokens and the
// position, the logits and the next token. Package model/arch builds such graphs from checkpoints. Package
// model/program builds them from ExecuTorch programs.
package network

import (
	"encoding/binary"
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/model/sample"
)

// Network is the graph of a model, with the inputs and outputs of a step.
type Network struct {
	Graph  *graph.Graph
	Tokens graph.ValueID // i32 [1, S], where S is the number of tokens in the step
	Pos    graph.ValueID // SymInt: position of the first token
	// PosTensor is the position as a tensor, i32 [1], for programs that read such a tensor; otherwise
	// graph.None.
	PosTensor graph.ValueID
	Vocab     int // token ids are less than Vocab
	// Logits are the logits after the last token, f32 [1, 1, vocab]. The field is graph.None if the graph
	// computes the next token but no logits.
	Logits graph.ValueID
	// ExpertCounts has an output i32 [experts] for each router, in the order of the layers. Its elements are
	// the numbers of tokens of the step that were routed to each expert.
	ExpertCounts []graph.ValueID
	// Recurrent describes the State tensors of recurrent layers, which overwrite their state in each step.
	// It is nil if the graph has no such layers.
	Recurrent *Recurrent
	sample.Picks
}

// Recurrent is the State of recurrent layers, such as linear attention. In each step, these layers compute a
// state of fixed size from the previous state. Each State tensor has several slots, and each slot holds one
// state (see package recurrent). A step reads the old state from one slot and writes the new state to another
// slot.
type Recurrent struct {
	From, To graph.ValueID   // SymInts: the slots that the step reads and writes
	State    []graph.ValueID // State tensors, f32 [slots, ...]
	Slots    int
	Bytes    int64 // size of one slot of all State tensors
}

// SetSlots changes an existing input: its step then reads slot `from` and writes slot `to`.
func SetSlots(in *graph.StepInput, from, to int) {
	in.SymInts[1].Int, in.SymInts[2].Int = int64(from), int64(to)
}

// Slots returns the slots that a step with this input reads and writes.
func Slots(in *graph.StepInput) (from, to int) { return int(in.SymInts[1].Int), int(in.SymInts[2].Int) }

// IsRecurrent reports whether a value is one of the tensors in Recurrent.State.
func (n *Network) IsRecurrent(v graph.ValueID) bool {
	return n.Recurrent != nil && slices.Contains(n.Recurrent.State, v)
}

// Elements returns the range of elements that belong to a slot of a recurrent State tensor.
func (n *Network) Elements(state graph.ValueID, slot int) (from, to int) {
	size := 1
	for _, d := range n.Graph.Value(state).MaxDims[1:] {
		size *= d
	}
	return slot * size, (slot + 1) * size
}

// Input returns the input of a step: tokens at a position. In a graph with recurrent State, the step reads
// slot 0 and writes slot 1, unless SetSlots changes this.
func (n *Network) Input(position int, tokens []int) *graph.StepInput {
	in := &graph.StepInput{
		Inputs:  []graph.InputData{{Value: n.Tokens, Dims: []int{1, 0}}},
		SymInts: []graph.SymIntValue{{Value: n.Pos}},
	}
	if n.PosTensor != graph.None {
		in.Inputs = append(in.Inputs, graph.InputData{Value: n.PosTensor, Dims: []int{1}})
	}
	if n.Recurrent != nil {
		in.SymInts = append(in.SymInts, graph.SymIntValue{Value: n.Recurrent.From, Int: 0},
			graph.SymIntValue{Value: n.Recurrent.To, Int: 1})
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
