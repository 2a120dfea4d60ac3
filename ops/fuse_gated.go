package ops

import (
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
	"gpuscope/ops/kind"
)

// fuseGated has a fusion rule for each row of basic.Gates whose activation is also an operator. In a gated
// MLP, act(gate) * up takes two dispatches: the activation and the product. A rule replaces them by one
// dispatch, whose kernel does the same arithmetic in the same order.
var fuseGated = func() (rules []graph.Fusion) {
	for i := range basic.Gates {
		if basic.Gates[i].UnaryOp != "" {
			rules = append(rules, fusionOf(&basic.Gates[i]))
		}
	}
	return rules
}()

// fusionOf returns the fusion rule for a row.
func fusionOf(r *basic.GatedRow) graph.Fusion {
	return graph.Fusion{
		Name: r.Kind, Doc: "one kernel computes " + r.Act.Kind + "(gate) * up for tensors of the same shape",
		Pattern: graph.Pattern{Kinds: []string{"mul"}, Of: []graph.Pattern{{Kinds: []string{r.UnaryOp}}}},
		Replace: func(b *graph.Builder, m *graph.Match) graph.Operator {
			act, product := m.Ops[0].(*basic.UnaryOp), m.Last().(*basic.BinaryOp)
			up := product.A
			if up == act.Y {
				up = product.B
			}
			if act.UnaryRow != r.Act || !sameAlways(b, act.X, up) {
				return nil
			}
			return b.Remake(m, func(name string) {
				KindOf(r.Kind).Build(b, name, kind.Args{"gate": act.X, "up": up})
			})
		},
	}
}

// sameAlways reports whether two operands have the same dims in every step, so that nothing is broadcast. It
// is true if both operands have the same smallest and largest dims, and one of two more conditions holds:
// both get their number of rows from the same tensor, or no dim that changes can have size 1.
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

// rowsOf returns the tensor that determines the number of rows of v. To find it, rowsOf goes back from v
// through each operator whose output always has as many rows as its input, or a fixed multiple of this
// number.
func rowsOf(b *graph.Builder, v graph.ValueID) graph.ValueID {
	for {
		switch o := b.Producer(v).(type) {
		case *basic.UnaryOp:
			v = o.X
		case *basic.GatedOp:
			v = o.Gate
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
		case *basic.LayerNormOp:
			v = o.X
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
		case interface{ RowsOf() graph.ValueID }:
			v = o.RowsOf()
		default:
			return v
		}
	}
}

// changing(b, v) returns the number of dims of v whose size can change from step to step.
func changing(b *graph.Builder, v graph.ValueID) (n int) {
	lowest := b.MinDims(v)
	for k, d := range b.MaxDims(v) {
		if d != lowest[k] {
			n++
		}
	}
	return n
}
