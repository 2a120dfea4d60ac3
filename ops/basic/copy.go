package basic

import (
	"gpuscope/engine/graph"
	"gpuscope/ops/kind"
	"gpuscope/shaders"
)

// BlockCopy is the copy of blocks of rows between two dense tensors that differ in how far apart blocks and
// rows are: what slice, select, cat, update_cache and a view that cannot be an alias have in common
// (shaders/copy.wgsl). Counts and distances are in elements.
type BlockCopy struct {
	Blocks, Rows, Width        int
	srcStart, srcBlock, srcRow int
	DstStart, dstBlock, dstRow int
}

// CopyKernel is the kernel that moves vec elements at a time; everything in a blockCopy must then be a
// multiple of vec.
func CopyKernel(b *graph.Builder, vec int) *graph.Kernel {
	return kind.NewKernel(b, "copy", shaders.Constants{"Lanes": kind.ThreadLanes, "Vec": vec})
}

// Plan puts the copy into a slot.
func (c BlockCopy) Plan(p *graph.Planner, slot, vec int) {
	n := c.Blocks * c.Rows * c.Width
	l := p.Dispatch(slot, p.Vectors(n, vec, kind.ThreadLanes))
	l.Params.U32("n", n/vec).U32("width", c.Width/vec).U32("rows", c.Rows).
		U32("src_start", c.srcStart/vec).U32("src_block", c.srcBlock/vec).U32("src_row", c.srcRow/vec).
		U32("dst_start", c.DstStart/vec).U32("dst_block", c.dstBlock/vec).U32("dst_row", c.dstRow/vec)
	l.Bytes = 8 * int64(n)
}

// InnerVec is how many elements a copy moves at a time whose rows are what follows a dim of v: 4 where
// that is a multiple of 4 at all live shapes, else 1.
func InnerVec(b *graph.Builder, v graph.ValueID, axis int) int {
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
