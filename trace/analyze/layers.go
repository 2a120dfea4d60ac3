package analyze

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gpuscope/trace"
)

// layering is where the operators of a graph stand: outside of the layers, or in a block of a layer. It comes
// from Op.Layer and Op.Block alone.
type layering struct {
	firstLayered trace.OpID // before it: prologue; outside and after it: epilogue
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

// Part is "prologue" or "epilogue" for an operator outside of the layers, "" for one inside or a graph
// without layers.
func (l *layering) Part(o *trace.Op) string {
	switch {
	case o.Layer != nil || !l.any:
		return ""
	case o.ID < l.firstLayered:
		return "prologue"
	}
	return "epilogue"
}

// inBlock is what equal layers have in one of their blocks.
type inBlock[T any] struct {
	Block  string // "" for what stands in none
	Layers [][]T  // by layer, then by place in the block
	Places [][]T  // by place, then by layer
}

// BlocksOf groups what equal layers have, place by place, by the block that it is of.
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

// Label is a dispatch's name within its layer and block: "sdpa.split".
func Label(o *trace.Op, d *trace.Dispatch) string { return d.Named(o.ShortName()) }

// LayerName is what a layer is called where the row above says what of it is meant.
func LayerName(n int) string { return fmt.Sprintf("L%d", n) }

// InLayer is the name of what stands in a layer, without the layer.
func InLayer(name string, layer int) string {
	if _, rest, found := strings.Cut(name, "."+strconv.Itoa(layer)+"."); found {
		return rest
	}
	return name
}

// Name is a dispatch's whole name: "layers.3.attn.sdpa.split".
func (x *Index) Name(id trace.DispatchID) string {
	d := &x.Trace.Graph.Dispatches[id]
	return d.Named(x.Trace.Graph.Ops[d.Op].Name)
}

// Called is the dispatch of a whole name, false if there is none.
func (x *Index) Called(name string) (trace.DispatchID, bool) {
	for i := range x.Trace.Graph.Dispatches {
		if id := trace.DispatchID(i); x.Name(id) == name {
			return id, true
		}
	}
	return 0, false
}
