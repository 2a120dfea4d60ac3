package ops

import (
	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
)

// fuseScaled makes the kernel of an embedding also multiply the rows by a number, in models that scale their
// embeddings.
var fuseScaled = graph.Fusion{
	Name: "scaled", Doc: "the kernel of an embedding also multiplies its rows by a number",
	Pattern: graph.Pattern{Kinds: []string{"mul"}, Of: []graph.Pattern{{Kinds: embeddingKinds}}},
	Replace: func(b *graph.Builder, m *graph.Match) graph.Operator {
		rows, scale := m.Ops[0].(*embedding), m.Last().(*basic.BinaryOp)
		factor := otherOperand(scale, rows.y)
		dims := b.MaxDims(factor)
		if rows.factor != graph.None || len(dims) != 1 || dims[0] != 1 || b.DType(factor) != graph.F32 ||
			len(rows.bindings(embeddingRows, &rows.parts[0])) >= int(b.Limits().MaxStorageBuffers) {
			return nil
		}
		fused := *rows
		fused.factor, fused.y = factor, scale.Y
		fused.makeKernels(b)
		return &fused
	},
}
