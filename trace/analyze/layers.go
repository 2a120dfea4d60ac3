package analyze

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gpuscope/trace"
)

// layering says where the operators of a graph are: in a block of a layer, or outside of the layers. It uses
// nothing but Op.Layer and Op.Block.
type layering struct {
	// firstLayered is the first operator that is in a layer. Operators without a layer belong to the
	// prologue if they come before firstLayered, and to the epilogue if they come after it.
	firstLayered trace.OpID
	any          bool
}

func layersOf(g *trace.Graph) *layering {
	l := &layering{}
	for i := range g.Ops {
		if g.Ops[i].Layer != nil {
			l.firstLayered, l.any = trace.OpID(i), true
			break
		}
	}
	return l
}

// Part returns "prologue" or "epilogue" for an operator outside of the layers. Part returns "" for an
// operator inside a layer, and for every operator of a graph without layers.
func (l *layering) Part(o *trace.Op) string {
	switch {
	case o.Layer != nil || !l.any:
		return ""
	case o.ID < l.firstLayered:
		return "prologue"
	}
	return "epilogue"
}

// inBlock holds the elements of several equal layers that are in the same block. An element is an operator or
// a dispatch.
type inBlock[T any] struct {
	Block  string // "" if the elements are in no block
	Layers [][]T  // for each layer, its elements in order
	Places [][]T  // for each place in the block, the elements of all layers
}

// BlocksOf divides the elements of equal layers into blocks. The given function returns the name of an
// element's block.
func BlocksOf[T any](layers [][]T, block func(T) string) []inBlock[T] {
	var list []inBlock[T]
	for place, first := range layers[0] {
		name := block(first)
		at := slices.IndexFunc(list, func(in inBlock[T]) bool { return in.Block == name })
		if at < 0 {
			at = len(list)
			list = append(list, inBlock[T]{Block: name, Layers: make([][]T, len(layers))})
		}
		in := &list[at]
		members := make([]T, len(layers))
		for k := range layers {
			members[k] = layers[k][place]
			in.Layers[k] = append(in.Layers[k], members[k])
		}
		in.Places = append(in.Places, members)
	}
	return list
}

// Label returns a dispatch's name within its layer and block: "sdpa.split".
func Label(o *trace.Op, d *trace.Dispatch) string { return d.Named(o.ShortName()) }

// LayerName returns a short name for a layer, such as "L3". It is used where a row above already shows the
// operator.
func LayerName(n int) string { return fmt.Sprintf("L%d", n) }

// InLayer removes the layer prefix from a name: "layers.3.attn.q" becomes "attn.q".
func InLayer(name string, layer int) string {
	if _, rest, found := strings.Cut(name, "."+strconv.Itoa(layer)+"."); found {
		return rest
	}
	return name
}

// Name returns a dispatch's full name: "layers.3.attn.sdpa.split".
func (x *Index) Name(id trace.DispatchID) string {
	d := &x.Trace.Graph.Dispatches[id]
	return d.Named(x.Trace.Graph.Ops[d.Op].Name)
}

// Called returns the dispatch that has a given full name. The bool is false if there is none.
func (x *Index) Called(name string) (trace.DispatchID, bool) {
	for i := range x.Trace.Graph.Dispatches {
		if id := trace.DispatchID(i); x.Name(id) == name {
			return id, true
		}
	}
	return 0, false
}
