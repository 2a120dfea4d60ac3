package basic

import (
	"gpuscope/engine/graph"
	"gpuscope/ops/kind"
	"gpuscope/shaders"
)

// BlockCopy describes a copy of blocks of rows from one dense tensor to another. The distances between
// blocks, and between rows, can differ in the two tensors. The kernel is shaders/copy.wgsl. slice, select,
// cat, update_cache and a view that cannot be an alias all use it. Width, starts and distances are in
// elements.
type BlockCopy struct {
	Blocks, Rows, Width        int
	srcStart, srcBlock, srcRow int
	DstStart, dstBlock, dstRow int
}

// CopyKernel returns the kernel for a BlockCopy that moves vec elements at a time. The width, starts and
// distances of the BlockCopy must be multiples of vec.
func CopyKernel(b *graph.Builder, vec int) *graph.Kernel {
	return kind.NewKernel(b, "copy", shaders.Constants{"Lanes": kind.ThreadLanes, "Vec": vec})
}

// Plan adds the dispatch that copies the blocks to a plan.
func (c BlockCopy) Plan(p *graph.Planner, slot, vec int) {
	n := c.Blocks * c.Rows * c.Width
	l := p.Dispatch(slot, p.Vectors(n, vec, kind.ThreadLanes))
	l.Params.U32("n", n/vec).U32("width", c.Width/vec).U32("rows", c.Rows).
		U32("src_start", c.srcStart/vec).U32("src_block", c.srcBlock/vec).U32("src_row", c.srcRow/vec).
		U32("dst_start", c.DstStart/vec).U32("dst_block", c.dstBlock/vec).U32("dst_row", c.dstRow/vec)
	l.Bytes = 8 * int64(n)
}

// InnerVec returns how many elements a copy can move at a time if each copied row consists of the dims of v
// after `axis`. The result is 4 if the number of elements of a row is a multiple of 4 in every step, else 1.
func InnerVec(b *graph.Builder, v graph.ValueID, axis int) int {
	lowest, highest := b.MinDims(v), b.MaxDims(v)
	n := 1
	for k := axis + 1; k < len(highest); k++ {
		// A dim that changes from step to step can be odd, so it does not count as a factor.
		if lowest[k] == highest[k] {
			n *= highest[k]
		}
	}
	if n%4 != 0 {
		return 1
	}
	return 4
}
