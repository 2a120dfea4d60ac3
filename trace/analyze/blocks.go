package analyze

import (
	"slices"

	"gpuscope/trace"
)

// BlockTimes holds the times of a step that was timed by blocks. The time of a set of dispatches is known
// only if the set consists of whole blocks.
type BlockTimes struct {
	blocks []trace.Block
	in     []int   // index of the block of each dispatch, in order of submission
	busyNS float64 // total time of all blocks in ns
}

// BlockTimes returns the block times of a selection. The selection must be one step that was timed by blocks.
// Otherwise BlockTimes returns nil.
func (x *Index) BlockTimes(selection Selection) *BlockTimes {
	step, one := selection.One()
	if !one || x.Trace.Steps[step].Timing != trace.TimingBlock {
		return nil
	}
	s := &x.Trace.Steps[step]
	busy, _ := GPUOf(s).BusyNS.NS()
	b := &BlockTimes{blocks: s.Blocks, busyNS: float64(busy)}
	for i := range s.Blocks {
		b.in = append(b.in, slices.Repeat([]int{i}, s.Blocks[i].Dispatches)...)
	}
	return b
}

// Of returns the time of each set of dispatches in ns, and the sum of these times. It also returns the sum's
// share of the time of all blocks. The bool is false if a set does not consist of whole blocks.
func (b *BlockTimes) Of(sets [][]int) (each []float64, sum, share float64, ok bool) {
	if b == nil {
		return nil, 0, 0, false
	}
	for _, set := range sets {
		ns, ok := b.sum(set)
		if !ok {
			return nil, 0, 0, false
		}
		each, sum = append(each, ns), sum+ns
	}
	if b.busyNS > 0 {
		share = sum / b.busyNS
	}
	return each, sum, share, len(sets) > 0
}

// sum returns the total time in ns of the blocks that the given dispatches form. The bool is false if
// the dispatches do not form whole blocks, or if a block has no time.
func (b *BlockTimes) sum(dispatches []int) (sum float64, ok bool) {
	others := map[int]int{} // for each block, how many of its dispatches are not in the set
	for _, i := range dispatches {
		if i >= len(b.in) {
			return 0, false
		}
		block := b.in[i]
		if _, there := others[block]; !there {
			others[block] = b.blocks[block].Dispatches
		}
		others[block]--
	}
	for block, n := range others {
		ns, timed := b.blocks[block].GPUNS.NS()
		if n > 0 || !timed {
			return 0, false
		}
		sum += float64(ns)
	}
	return sum, len(dispatches) > 0
}
