package vision

import (
	"fmt"
	"slices"
	"sort"

	"gpuscope/engine/graph"
	"gpuscope/ops/kind"
	"gpuscope/shaders"
)

// largestStep is the largest stride, padding, dilation or kernel size.
const largestStep = 1 << 14

// window describes how a kernel moves over the two last dims of a tensor: over the height (index 0) and the
// width (index 1). A signal with one dim is an image of height 1.
type window struct {
	kernel, stride, padding, dilation [2]int
	// If ceil is true, the number of positions is rounded up, so the kernel may end after the padding.
	ceil bool
	// transposed is true for a transposed convolution: the window moves over the output. The output has
	// outputPadding more elements at the end.
	transposed    bool
	outputPadding [2]int
}

// sizes reads a list of sizes with one number for each of the last dims, or one number for all of them.
// `dims` is 1 or 2. The sizes of missing dims and of an empty list are those of `byDefault`.
func sizes(c *kind.Call, name string, dims, least int, byDefault [2]int) (out [2]int, ok bool) {
	list := c.ArgInts(name)
	out = byDefault
	for k := 2 - dims; k < 2 && len(list) > 0; k++ {
		out[k] = list[min(k-2+dims, len(list)-1)]
	}
	if len(list) > 1 && len(list) != dims || slices.Max(out[:]) > largestStep || slices.Min(out[:]) < least {
		c.Fail("%s is %v; want one number or %d numbers, each from %d to %d",
			name, list, dims, least, largestStep)
		return out, false
	}
	return out, true
}

// span returns how many elements a kernel covers, from the first that it reads to the last.
func (w *window) span(axis int) int { return w.dilation[axis]*(w.kernel[axis]-1) + 1 }

// out returns the size of an axis of the output if this axis of the input has size `in`. If the input is too
// small, the result can be less than 1.
func (w *window) out(in, axis int) int {
	stride, padding := w.stride[axis], w.padding[axis]
	if w.transposed {
		return (in-1)*stride - 2*padding + w.span(axis) + w.outputPadding[axis]
	}
	room := in + 2*padding - w.span(axis)
	if room < 0 && (!w.ceil || room <= -stride) {
		return 0
	}
	if !w.ceil {
		return room/stride + 1
	}
	n := (room+stride-1)/stride + 1
	if (n-1)*stride >= in+padding { // the last window would begin in the padding at the end
		n--
	}
	return n
}

// least returns the smallest size from lo to hi that an axis of the input can have without making the output
// empty. If every size makes it empty, least returns hi.
func (w *window) least(lo, hi, axis int) int {
	return lo + sort.Search(hi-lo, func(i int) bool { return w.out(lo+i, axis) > 0 })
}

// corners returns two corners: one with the largest x, and one with the smallest x for which the output is
// not empty. `dims` is the number of dims over which the window moves. `channels` is the number of channels
// that x must have, or 0 if it may have any.
func (w *window) corners(r *graph.Ranges, x graph.ValueID, dims, channels int) []graph.Corner {
	largest, smallest := slices.Clone(r.Max(x)), slices.Clone(r.Min(x))
	for k := len(largest) - dims; k < len(largest); k++ {
		smallest[k] = w.least(smallest[k], largest[k], k-len(largest)+2)
	}
	if channels > 0 {
		smallest[1], largest[1] = channels, channels
	}
	return []graph.Corner{{{Value: x, Dims: largest}}, {{Value: x, Dims: smallest}}}
}

// constants adds the constants with which kernels are expanded.
func (w *window) constants(c shaders.Constants) shaders.Constants {
	for name, of := range map[string][2]int{
		"Kernel": w.kernel, "Stride": w.stride, "Padding": w.padding, "Dilation": w.dilation,
	} {
		c[name+"H"], c[name+"W"] = of[0], of[1]
	}
	return c
}

// planes returns the number of planes of a tensor, and their height and width. The plane of a tensor with one
// dim after the channels has height 1. `flat` is true for such a tensor.
func planes(dims []int, flat bool) (n, h, w int) {
	rank := len(dims)
	h, w, n = 1, dims[rank-1], 1
	rest := dims[:rank-1]
	if !flat {
		h, rest = dims[rank-2], dims[:rank-2]
	}
	for _, d := range rest {
		n *= d
	}
	return n, h, w
}

func (w *window) String() string {
	return fmt.Sprintf("kernel %v, stride %v, padding %v, dilation %v", w.kernel, w.stride, w.padding,
		w.dilation)
}
