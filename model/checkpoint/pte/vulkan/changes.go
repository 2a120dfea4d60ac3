package vulkan

import (
	"slices"
	"strings"

	"gpuscope/model/checkpoint/pte"
)

// Change states whether the size of a dim changes from run to run.
type Change string

// The values of Change. If the shape of a tensor changes, the file may not state which dims change. The dims
// of the tensor are then Unknown.
const (
	Fixed   Change = "fixed"
	Dynamic Change = "dynamic"
	Unknown Change = "unknown"
)

// Changes determines which dims of a method's inputs and outputs can change from run to run. A program marks
// the tensors whose shape can change, but not their dims. Changes applies these rules to a dim:
//
//   - The dim is fixed if its maximum size is 1, or if its size depends only on weights or on the fixed
//     arguments of an operator.
//   - The dim is dynamic if an operator reads its live size (sym_size).
//   - The dim is dynamic if its tensor can change shape and all other dims of the tensor are fixed.
//   - The dim changes like another dim if an operator needs both dims to have equal sizes.
//
// If no rule applies, the change of the dim is unknown.
type Changes struct {
	m *pte.Method
	// equal is a union-find structure of dims with equal sizes. It maps a dim to its parent.
	equal map[dim]dim
	known map[dim]Change // maps a root of `equal` to its change, if the change is known
	// left is the number of operators that may still be examined. Without this limit, a small file could
	// cause a lot of work, because it can have many delegates that share the same bytes.
	left int
}

// dim identifies a dim of a value. graph is the index of a delegate's graph, or -1 for a value of the method.
type dim struct{ graph, value, dim int }

// ChangesOf determines the changes of a method. `graphs` holds the graph of each delegate of the method, or
// nil for a delegate of another backend.
func ChangesOf(m *pte.Method, graphs []*Graph) *Changes {
	c := &Changes{m: m, equal: map[dim]dim{}, known: map[dim]Change{}, left: 1 << 18}
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

// find returns the root of the set of dims that have the same size as d.
func (c *Changes) find(d dim) dim {
	for {
		next, ok := c.equal[d]
		if !ok {
			return d
		}
		if after, ok := c.equal[next]; ok {
			c.equal[d] = after // makes the path shorter for the next call
		}
		d = next
	}
}

// join records that two dims have equal sizes.
func (c *Changes) join(a, b dim) {
	a, b = c.find(a), c.find(b)
	if a == b {
		return
	}
	c.equal[b] = a
	c.mark(a, c.known[b])
}

// mark records the change of a dim. It does not replace Dynamic, because the file states directly that such a
// dim changes.
func (c *Changes) mark(d dim, change Change) {
	if d = c.find(d); change != "" && c.known[d] != Dynamic {
		c.known[d] = change
	}
}

// call records that each argument of a delegate call has the same dims as the input or output of the graph
// for which the argument is passed.
func (c *Changes) call(in *pte.Instruction, g *Graph) {
	if _, _, err := g.Split(in.Args); err != nil {
		return
	}
	for i, id := range slices.Concat(g.Inputs, g.Outputs) {
		outer, ok := c.m.Values[in.Args[i]].(*pte.Tensor)
		inner := g.Values[id].(*Tensor) // Parse has checked that inputs and outputs are tensors
		if !ok || len(outer.Sizes) != len(inner.Dims) {
			continue
		}
		for k := range inner.Dims {
			c.join(dim{-1, in.Args[i], k}, dim{in.Target, id, k})
		}
	}
}

// tensor marks a dim of t as dynamic if the shape of t can change and all other dims of t are known to be
// fixed. It does nothing if a dim of t is already known to be dynamic.
func (c *Changes) tensor(id int, t *pte.Tensor) {
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

// sameShape lists operators whose output has the same shape as their first argument. If the second argument
// also has this shape, its dims change like the dims of the output.
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

// onImages lists the operators that read and write images [batch, channels, ...]. It maps each to the Change
// of its channels dims. Fixed means that weights or fixed arguments determine the number of channels. Unknown
// means only that the output has as many channels as the input.
var onImages = map[string]Change{
	"convolution": Fixed, "conv_with_clamp": Fixed, "q8ta_conv2d": Fixed, "q8ta_conv2d_pw": Fixed,
	"q8ta_conv2d_dw": Fixed, "q8ta_conv2d_transposed": Fixed, "pixel_shuffle": Fixed,
	"q8ta_pixel_shuffle": Fixed, "native_group_norm": Fixed, "_native_batch_norm_legit_no_training": Fixed,
	"avg_pool2d": Unknown, "max_pool2d": Unknown, "max_pool2d_with_indices": Unknown,
	"upsample_nearest2d.vec": Unknown, "upsample_bilinear2d.vec": Unknown,
}

// graph applies the rules for operators to the graph of a delegate.
func (c *Changes) graph(number int, g *Graph) {
	shape := func(id int) []int {
		if t, ok := g.Values[id].(*Tensor); ok {
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
	fixed := func(id, from int) { // marks one dim and all dims after it as fixed
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
		case onImages[strings.TrimSuffix(kind, ".default")] != "":
			if list, ok := g.Values[out].(ValueList); ok && len(list) > 0 {
				out = list[0]
			}
			if len(shape(in)) < 3 || len(shape(out)) != len(shape(in)) {
				continue
			}
			if len(shape(in)) == 3 && strings.Contains(kind, "pixel_shuffle") {
				c.mark(at(in, 0), Fixed) // an image without a batch
				c.mark(at(out, 0), Fixed)
				continue
			}
			c.join(at(in, 0), at(out, 0))
			if onImages[strings.TrimSuffix(kind, ".default")] == Fixed {
				c.mark(at(in, 1), Fixed)
				c.mark(at(out, 1), Fixed)
			} else if len(shape(in)) == 4 {
				c.join(at(in, 1), at(out, 1))
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
			// The tensors have the shape [batch, tokens, heads, dim]. The model fixes heads and dim.
			list, _ := g.Values[out].(ValueList)
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
				len(shape(in)) == 4 { // the cos and sin tables have one row per token
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

// Of returns the change of each dim of a tensor of the method. `id` is the index of the tensor in
// Method.Values.
func (c *Changes) Of(id int, t *pte.Tensor) []Change {
	out := make([]Change, len(t.Sizes))
	for i, n := range t.Sizes {
		out[i] = Unknown
		switch known := c.known[c.find(dim{-1, id, i})]; {
		case t.Dynamism == pte.Static, n <= 1:
			out[i] = Fixed
		case known != "":
			out[i] = known
		}
	}
	return out
}

// Equal reports whether the file shows that dim k of a value and dim otherK of another value have equal sizes
// in every run. Values are indices into Method.Values.
func (c *Changes) Equal(value, k, otherValue, otherK int) bool {
	return c.find(dim{-1, value, k}) == c.find(dim{-1, otherValue, otherK})
}
