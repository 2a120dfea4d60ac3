package vulkan

import (
	"slices"
	"strings"
)

// Place is the layer and the block of an operator. The file does not state them.
type Place struct {
	Layer int    // -1 outside of layers
	Block string // "attn" or "mlp"; "" outside of layers
}

// Places finds the layers of a decoder-only transformer. The result is indexed like g.Operators. A layer
// begins with the norm that precedes the queries of its attention. Among several norms before the queries,
// this is the one whose input is also the residual. The block "attn" ends with the first add operator after
// the attention. The norm before the logits is outside of the layers.
func (g *Graph) Places() []Place {
	by := map[int]int{} // tensor -> operator that computes it
	uses := map[int]int{}
	for i := range g.Operators {
		for _, id := range g.Reads(&g.Operators[i]) {
			uses[id]++
		}
		for _, id := range g.Writes(&g.Operators[i]) {
			if _, ok := by[id]; !ok {
				by[id] = i
			}
		}
	}
	// norm returns the index of the norm that precedes a value, or -1. It goes back from operator to
	// operator along the first tensor argument. If `residual` is true, it skips norms whose input is not
	// also the residual.
	norm := func(id int, residual bool) int {
		for range g.Operators {
			i, ok := by[id]
			if !ok {
				break
			}
			op := &g.Operators[i]
			read := slices.DeleteFunc(g.Reads(op), func(id int) bool {
				t, ok := g.Values[id].(*Tensor)
				return !ok || t.Constant >= 0
			})
			if len(read) == 0 {
				break
			}
			id = read[0]
			if strings.Contains(op.Name, "norm") && (!residual || uses[id] > 1) {
				return i
			}
		}
		return -1
	}
	places := make([]Place, len(g.Operators))
	for i := range places {
		places[i].Layer = -1
	}
	end := -1
	if len(g.Outputs) > 0 {
		end = norm(g.Outputs[0], false)
	}
	if end < 0 {
		end = len(places)
	}
	layer := -1
	for i := range g.Operators[:end] {
		if g.Operators[i].Name != "sdpa_with_kv_cache.default" {
			continue
		}
		first := norm(g.Operators[i].Args[0], true)
		if first < 0 {
			continue
		}
		layer++
		sum := i + slices.IndexFunc(g.Operators[i:end], func(op Operator) bool {
			return op.Name == "aten.add.Tensor"
		})
		for k := first; k < end; k++ {
			places[k] = Place{layer, "mlp"}
			if k <= max(i, sum) {
				places[k].Block = "attn"
			}
		}
	}
	return places
}
