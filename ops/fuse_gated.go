package ops

import (
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
	"gpuscope/ops/kind"
)

// fuseGated are the rules, one for each of gatedOps, that make one dispatch of the two that join the branches
// of a gated MLP: act(gate) * up. The arithmetic is that of the two, in their order.
var fuseGated = func() (rules []graph.Fusion) {
	for i := range gatedOps {
		rules = append(rules, gatedOps[i].fusion())
	}
	return rules
}()

func (r *gatedRow) fusion() graph.Fusion {
	return graph.Fusion{
		Name: r.kind, Doc: "a product with the " + r.act.Kind + " of a tensor of its shape is one kernel",
		Pattern: graph.Pattern{Kinds: []string{"mul"}, Of: []graph.Pattern{{Kinds: []string{r.UnaryOp}}}},
		Replace: func(b *graph.Builder, m *graph.Match) graph.Operator {
			act, product := m.Ops[0].(*basic.UnaryOp), m.Last().(*basic.BinaryOp)
			up := product.A
			if up == act.Y {
				up = product.B
			}
			if act.UnaryRow != r.act || !sameAlways(b, act.X, up) {
				return nil
			}
			return b.Remake(m, func(name string) {
				KindOf(r.kind).Build(b, name, kind.Args{"gate": act.X, "up": up})
			})
		},
	}
}

// sameAlways says whether two tensors can only be of the same dims where an operator with broadcasting takes
// them: they have the same range, and their rows are those of one tensor, or no dim that changes is ever 1.
func sameAlways(b *graph.Builder, x, y graph.ValueID) bool {
	lowest, highest := b.MinDims(x), b.MaxDims(x)
	if !slices.Equal(lowest, b.MinDims(y)) || !slices.Equal(highest, b.MaxDims(y)) {
		return false
	}
	if rowsOf(b, x) == rowsOf(b, y) {
		return true
	}
	for k, d := range highest {
		if lowest[k] == 1 && d > 1 {
			return false
		}
	}
	return true
}

// rowsOf is the tensor that a tensor has its rows from, through operators that give as many as they get, or
// some times as many.
func rowsOf(b *graph.Builder, v graph.ValueID) graph.ValueID {
	for {
		switch o := b.Producer(v).(type) {
		case *basic.UnaryOp:
			v = o.X
		case *gatedOp:
			v = o.gate
		case *rmsNorm:
			if o.residual != graph.None {
				return v
			}
			if o.other != nil && v == o.other.y {
				o = o.other
			}
			v = o.x
		case *linear:
			if o.residual != graph.None || o.Last {
				return v
			}
			v = o.x
		case *basic.ViewOp:
			if changing(b, o.X) > 1 || changing(b, o.Y) > 1 {
				return v
			}
			v = o.X
		case rotation:
			if turned := o.parts(); v == turned.yq {
				v = turned.q
			} else {
				v = turned.k
			}
		case *sdpa:
			v = o.q
		default:
			return v
		}
	}
}

// changing is how many dims of a tensor change.
func changing(b *graph.Builder, v graph.ValueID) (n int) {
	lowest := b.MinDims(v)
	for k, d := range b.MaxDims(v) {
		if d != lowest[k] {
			n++
		}
	}
	return n
}
