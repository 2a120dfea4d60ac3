package analyze

import (
	"slices"

	"gpuscope/trace"
)

// BlockTimes are the times of a step that was timed by blocks: of its dispatches only those are known that
// make up whole ones.
type BlockTimes struct {
	blocks []trace.Block
	in     []int   // the block of each dispatch, in order of submission
	busyNS float64 // of all of them
}

// BlockTimes is nil where the selection is no such step.
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

// Of are the times of several sets of the step's dispatches, their sum, and their part of all blocks; false
// where a set is not one block or several.
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

// sum is that of the blocks that some dispatches make up; false where they do not make up whole ones that
// were timed.
func (b *BlockTimes) sum(dispatches []int) (sum float64, ok bool) {
	others := map[int]int{} // by block, how many of its dispatches are not among these
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
