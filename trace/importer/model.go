package importer

import (
	"slices"
	"strconv"
	"strings"

	"gpuscope/trace"
	"gpuscope/trace/analyze/workclass"
)

// model is an index of the operators of the model that was profiled. Without a model it is empty.
type model struct {
	ops     []trace.Op
	classes []workclass.Class
	places  map[place]int    // operators by layer and role
	names   map[string]int   // operators by name
	ids     map[int]int      // operators by the id in the model file
	shapes  map[shape][]int  // matrices by shape
	norms   map[int][]int    // norms by the number of their weights
	kinds   map[string][]int // operators by kind, without a weight format
	added   map[int]bool     // operators whose output is the operand of an addition
	head    int              // size of a head of attention; 0 if unknown
}

// place is the layer and the role of an operator: 3 and "attn.q". The layer is -1 outside of layers.
type place struct {
	layer int
	role  string
}

// shape is the logical shape of a matrix: m results for each row of k numbers.
type shape struct{ m, k int }

func newModel(t *trace.Trace) *model {
	g := &t.Graph
	m := &model{
		ops: g.Ops, classes: workclass.Of(g), places: map[place]int{}, names: map[string]int{},
		ids: map[int]int{}, shapes: map[shape][]int{}, norms: map[int][]int{}, kinds: map[string][]int{},
		added: map[int]bool{}, head: t.Model.Dims["head_dim"],
	}
	makers := map[trace.ValueID]int{}
	for i := range g.Ops {
		o := &g.Ops[i]
		at := place{-1, o.Place()}
		if o.Layer != nil {
			at.layer = *o.Layer
		}
		if _, ok := m.places[at]; !ok {
			m.places[at] = i
		}
		m.names[o.Name] = i
		if o.SourceID != nil {
			m.ids[*o.SourceID] = i
		}
		m.kinds[o.Kind] = append(m.kinds[o.Kind], i)
		m.weights(g, i)
		for _, v := range o.Outputs {
			makers[v] = i
		}
		if o.Kind != "add" {
			continue
		}
		for _, v := range o.Inputs {
			if by, ok := makers[v]; ok {
				m.added[by] = true
			}
		}
	}
	return m
}

// weights adds operator i to the lists of operators by the shape of their weights.
func (m *model) weights(g *trace.Graph, i int) {
	o := &g.Ops[i]
	matrix, norm := strings.HasPrefix(o.Kind, "linear"), strings.Contains(o.Kind, "norm")
	for _, id := range o.Inputs {
		if id < 0 || int(id) >= len(g.Values) {
			continue
		}
		v := &g.Values[id]
		switch {
		case v.Role != trace.RoleConstant:
		case matrix && v.Matrix != nil:
			at := shape{v.Matrix.Rows, v.Matrix.Cols}
			m.shapes[at] = append(m.shapes[at], i)
			return
		case matrix && len(v.MaxDims) == 2:
			at := shape{v.MaxDims[0], v.MaxDims[1]}
			m.shapes[at] = append(m.shapes[at], i)
			return
		case norm && len(v.MaxDims) == 1:
			m.norms[v.MaxDims[0]] = append(m.norms[v.MaxDims[0]], i)
			return
		}
	}
}

// find returns the operator of a layer that has one of the given roles. It tries the roles in order.
func (m *model) find(layer int, roles ...string) (int, bool) {
	for _, role := range roles {
		if i, ok := m.places[place{layer, role}]; ok {
			return i, true
		}
	}
	return 0, false
}

// ofKinds returns the operators whose kind is one of the given kinds.
func (m *model) ofKinds(kinds ...string) (list []int) {
	for _, kind := range kinds {
		list = append(list, m.kinds[kind]...)
	}
	slices.Sort(list)
	return list
}

// layerIn finds the layer that a name of another engine contains, such as 3 in "model.layers.3.mlp.down_proj"
// and in "/model/layers.3/mlp/down_proj/MatMul", and the rest of the name after the layer.
func layerIn(name string) (layer int, rest string, ok bool) {
	for _, word := range []string{"layers", "layer", "blk", "h"} {
		at := 0
		for {
			i := strings.Index(name[at:], word)
			if i < 0 {
				break
			}
			from, end := at+i, at+i+len(word)
			at = end
			if from > 0 && !separator(name[from-1]) || end >= len(name) || !separator(name[end]) {
				continue
			}
			digits := end + 1
			for digits < len(name) && name[digits] >= '0' && name[digits] <= '9' {
				digits++
			}
			n, err := strconv.Atoi(name[end+1 : digits])
			if err == nil && n <= maxLayer {
				return n, strings.TrimLeft(name[digits:], "./_"), true
			}
		}
	}
	return 0, "", false
}

const maxLayer = 1 << 16 // layers with larger numbers are no layers

func separator(c byte) bool { return c == '.' || c == '/' || c == '_' }
