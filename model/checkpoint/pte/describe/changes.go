package describe

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/model/checkpoint/pte"
	"gpuscope/model/checkpoint/pte/vulkan"
)

// changes says which dims of a method's inputs and outputs can change from run to run. A program marks the
// tensors whose shape can change, not the dims. A dim is
//
//   - fixed where its largest size is 1, or weights have it
//   - dynamic where an operator reads its live size (sym_size)
//   - dynamic where it is the only one of a changing tensor that is not known to be fixed
//   - what another is that an operator needs to be equal
//
// and otherwise unknown.
type changes struct {
	m     *pte.Method
	equal map[dim]dim // toward the dim that stands for all that are equal to it
	known map[dim]Change
	left  int // operators that may still be looked at: many delegates can have the same bytes
}

// dim is a dim of a value: of the method, with graph -1, or of a delegate's graph.
type dim struct{ graph, value, dim int }

func newChanges(m *pte.Method, graphs []*vulkan.Graph) *changes {
	c := &changes{m: m, equal: map[dim]dim{}, known: map[dim]Change{}, left: 1 << 18}
	for i, g := range graphs {
		if g != nil {
			c.graph(i, g)
		}
	}
	for _, chain := range m.Chains {
		for i := range chain.Instructions {
			in := &chain.Instructions[i]
			if in.Op == pte.DelegateCall && graphs[in.Target] != nil {
				c.call(in, graphs[in.Target])
			}
		}
	}
	for _, id := range slices.Concat(m.Inputs, m.Outputs) {
		if t, ok := m.Values[id].(*pte.Tensor); ok {
			c.tensor(id, t)
		}
	}
	return c
}

func (c *changes) find(d dim) dim {
	for {
		next, ok := c.equal[d]
		if !ok {
			return d
		}
		if after, ok := c.equal[next]; ok {
			c.equal[d] = after // a shorter way, next time
		}
		d = next
	}
}

func (c *changes) join(a, b dim) {
	a, b = c.find(a), c.find(b)
	if a == b {
		return
	}
	c.equal[b] = a
	c.mark(a, c.known[b])
}

// mark notes what is known of a dim. That it changes comes first: the file says so.
func (c *changes) mark(d dim, change Change) {
	if d = c.find(d); change != "" && c.known[d] != Dynamic {
		c.known[d] = change
	}
}

// call joins the values of a graph with those that a method gives it.
func (c *changes) call(in *pte.Instruction, g *vulkan.Graph) {
	if _, _, err := g.Split(in.Args); err != nil {
		return
	}
	for i, id := range slices.Concat(g.Inputs, g.Outputs) {
		outer, ok := c.m.Values[in.Args[i]].(*pte.Tensor)
		inner := g.Values[id].(*vulkan.Tensor) // as Parse has checked
		if !ok || len(outer.Sizes) != len(inner.Dims) {
			continue
		}
		for k := range inner.Dims {
			c.join(dim{-1, in.Args[i], k}, dim{in.Target, id, k})
		}
	}
}

// tensor settles what is known of a tensor of the method.
func (c *changes) tensor(id int, t *pte.Tensor) {
	var open []dim
	dynamic := false
	for i, n := range t.Sizes {
		d := dim{-1, id, i}
		switch {
		case c.known[c.find(d)] == Dynamic:
			dynamic = true
		case n > 1 && c.known[c.find(d)] == "":
			open = append(open, d)
		}
	}
	if t.Dynamism != pte.Static && !dynamic && len(open) == 1 {
		c.mark(open[0], Dynamic)
	}
}

// operators whose output has the shape of their first argument, and of the second where that has it too.
var sameShape = func() map[string]bool {
	names := map[string]bool{"et_vk.rms_norm.default": true}
	const plain = "add.Tensor sub.Tensor mul.Tensor div.Tensor minimum.default maximum.default abs.default " +
		"neg.default exp.default sqrt.default rsqrt.default sin.default cos.default tanh.default round.default " +
		"relu.default sigmoid.default hardswish.default gelu.default leaky_relu.default clamp.default " +
		"hardtanh.default clone.default alias_copy.default _softmax.default native_layer_norm.default"
	for _, name := range strings.Fields(plain) {
		names["aten."+name] = true
	}
	return names
}()

// graph learns from the operators of a delegate.
func (c *changes) graph(number int, g *vulkan.Graph) {
	shape := func(id int) []int {
		if t, ok := g.Values[id].(*vulkan.Tensor); ok {
			return t.Dims
		}
		return nil
	}
	at := func(id, i int) dim { return dim{number, id, i} }
	same := func(a, b int) {
		if slices.Equal(shape(a), shape(b)) {
			for i := range shape(a) {
				c.join(at(a, i), at(b, i))
			}
		}
	}
	fixed := func(id, from int) { // the dims from one on
		for i := from; i < len(shape(id)); i++ {
			c.mark(at(id, i), Fixed)
		}
	}
	if c.left -= len(g.Operators); c.left < 0 {
		return
	}
	for i := range g.Operators {
		op := &g.Operators[i]
		n := len(op.Args)
		if n < 2 || !op.Known() {
			continue
		}
		in, out := op.Args[0], op.Args[n-1]
		kind := strings.TrimPrefix(strings.TrimPrefix(op.Name, "aten."), "et_vk.")
		switch {
		case op.Name == "sym_size.int":
			if k, ok := g.Values[op.Args[1]].(int64); ok {
				if k < 0 {
					k += int64(len(shape(in)))
				}
				if k >= 0 && k < int64(len(shape(in))) {
					c.mark(at(in, int(k)), Dynamic)
				}
			}
		case sameShape[op.Name]:
			same(in, out)
			same(op.Args[1], out)
			if kind == "rms_norm.default" {
				fixed(in, len(shape(in))-1)
			}
		case strings.HasPrefix(kind, "linear"), strings.HasPrefix(kind, "q8ta_linear"):
			last := len(shape(in)) - 1
			fixed(in, last)
			fixed(out, len(shape(out))-1)
			for k := 0; k < last && len(shape(out)) == last+1; k++ {
				c.join(at(in, k), at(out, k))
			}
		case strings.HasPrefix(kind, "embedding_q4gsw"):
			fixed(out, len(shape(out))-1)
			indices := op.Args[3]
			for k := range shape(indices) {
				if len(shape(out)) == len(shape(indices))+1 {
					c.join(at(indices, k), at(out, k))
				}
			}
		case strings.HasPrefix(kind, "sdpa_with_kv_cache"), strings.HasPrefix(kind, "apply_rotary_emb"):
			// [batch, tokens, heads, dim] each; the other dims are those of the model
			list, _ := g.Values[out].(vulkan.ValueList)
			tokens := append([]int{op.Args[0], op.Args[1], out}, list...)
			if kind == "sdpa_with_kv_cache.default" {
				tokens = append(tokens, op.Args[2])
			}
			for _, id := range tokens {
				if len(shape(id)) != 4 || len(shape(in)) != 4 {
					continue
				}
				fixed(id, 2)
				c.join(at(in, 1), at(id, 1))
			}
			if kind == "apply_rotary_emb.default" &&
				len(shape(in)) == 4 { // a row of the tables for each token
				for _, id := range op.Args[2:4] {
					if len(shape(id)) == 2 {
						fixed(id, 1)
						c.join(at(in, 1), at(id, 0))
					}
				}
			}
		}
	}
}

// dims are those of a tensor of the method.
func (c *changes) dims(id int, t *pte.Tensor) []Dim {
	out := make([]Dim, len(t.Sizes))
	for i, n := range t.Sizes {
		out[i] = Dim{n, Unknown}
		switch known := c.known[c.find(dim{-1, id, i})]; {
		case t.Dynamism == pte.Static, n <= 1:
			out[i].Change = Fixed
		case known != "":
			out[i].Change = known
		}
	}
	return out
}

func (c *changes) port(id int) Port {
	m := c.m
	p := Port{Value: id}
	switch v := m.Values[id].(type) {
	case nil:
		p.Type, p.Literal = "None", "None"
	case *pte.Tensor:
		p.Type, p.Dims, p.Memory = v.Type.String(), c.dims(id, v), v.Memory.String()
		return p
	case int64:
		p.Type, p.Literal = "Int", strconv.FormatInt(v, 10)
	case float64:
		p.Type, p.Literal = "Double", floatText(v)
	case bool:
		p.Type, p.Literal = "Bool", strconv.FormatBool(v)
	case string:
		p.Type, p.Literal = "String", printable.Short(v, longest)
	case pte.IntList:
		p.Type, p.Literal = "IntList", listText(v, func(id int) string { return fmt.Sprint(m.Values[id]) })
	case []float64:
		p.Type, p.Literal = "DoubleList", listText(v, floatText)
	case []bool:
		p.Type, p.Literal = "BoolList", listText(v, strconv.FormatBool)
	case pte.TensorList:
		p.Type, p.Literal = "TensorList", listText(v, func(id int) string { return "%" + strconv.Itoa(id) })
	}
	if !m.Constant() {
		p.Literal = "" // it is computed, or given
	}
	return p
}
