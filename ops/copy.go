package ops

import (
	"gpuscope/engine/graph"
	"gpuscope/shaders"
)

// blockCopy is the copy of blocks of rows between two dense tensors that differ in how far apart blocks and
// rows are: what slice, select, cat, update_cache and a view that cannot be an alias have in common
// (shaders/copy.wgsl). Counts and distances are in elements.
type blockCopy struct {
	blocks, rows, width        int
	srcStart, srcBlock, srcRow int
	dstStart, dstBlock, dstRow int
}

// copyKernel is the kernel that moves vec elements at a time; everything in a blockCopy must then be a
// multiple of vec.
func copyKernel(b *graph.Builder, vec int) *graph.Kernel {
	return kernel(b, "copy", shaders.Constants{"Lanes": threadLanes, "Vec": vec})
}

// plan puts the copy into a slot.
func (c blockCopy) plan(p *graph.Planner, slot, vec int) {
	n := c.blocks * c.rows * c.width
	l := p.Dispatch(slot, p.Vectors(n, vec, threadLanes))
	l.Params.U32("n", n/vec).U32("width", c.width/vec).U32("rows", c.rows).
		U32("src_start", c.srcStart/vec).U32("src_block", c.srcBlock/vec).U32("src_row", c.srcRow/vec).
		U32("dst_start", c.dstStart/vec).U32("dst_block", c.dstBlock/vec).U32("dst_row", c.dstRow/vec)
	l.Bytes = 8 * int64(n)
}

// innerVec is how many elements a copy moves at a time whose rows are what follows a dim of v: 4 where
// that is a multiple of 4 at all live shapes, else 1.
func innerVec(b *graph.Builder, v graph.ValueID, axis int) int {
	lowest, highest := b.MinDims(v), b.MaxDims(v)
	n := 1
	for k := axis + 1; k < len(highest); k++ {
		// A dim that changes from step to step may be odd in one of them.
		if lowest[k] == highest[k] {
			n *= highest[k]
		}
	}
	if n%4 != 0 {
		return 1
	}
	return 4
}
