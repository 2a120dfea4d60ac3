package experts

import (
	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
)

// fuseGateUp replaces the products gate and up of the experts, and act(gate) * up, by one product. The matrix
// of an expert has the rows of gate, followed by those of up.
var fuseGateUp = graph.Fusion{
	Name: "experts_gate_up",
	Doc:  "one linear of the experts computes gate, up and act(gate) * up",
	Pattern: graph.Pattern{
		Kinds: basic.GatedKinds, Of: []graph.Pattern{{Kinds: LinearKinds}, {Kinds: LinearKinds}},
	},
	Replace: func(b *graph.Builder, m *graph.Match) graph.Operator {
		gate, up, joined := m.Ops[0].(*linear), m.Ops[1].(*linear), m.Last().(*basic.GatedOp)
		if gate.y != joined.Gate {
			gate, up = up, gate
		}
		w, ok := gate.w.Interleave(up.w, gate.rows())
		plain := func(o *linear) bool { return o.gated == nil && o.combine == nil }
		if !ok || gate.x != up.x || gate.experts != up.experts || gate.rows() != up.rows() || !plain(gate) ||
			!plain(up) || (gate.bias == graph.None) != (up.bias == graph.None) {
			return nil
		}
		fused := *gate
		fused.w, fused.y, fused.gated = w, joined.Y, joined.GatedRow
		if gate.bias != graph.None {
			if fused.bias, ok = interleaved(b, gate.bias, up.bias, gate.n, gate.rows()); !ok {
				return nil
			}
		}
		fused.parts = w.DeclareIn(b, fused.rows())
		fused.makeKernels(b)
		return &fused
	},
}

// interleaved declares a constant in which the n rows of gate and of up alternate. Each row has the given
// width. It returns false if gate and up are not constants.
func interleaved(b *graph.Builder, gate, up graph.ValueID, n, width int) (graph.ValueID, bool) {
	var both [2]graph.ValueInfo
	for i, v := range []graph.ValueID{gate, up} {
		info, ok := b.Value(v)
		if !ok || info.Role != graph.Constant || info.Load == nil {
			return graph.None, false
		}
		both[i] = info
	}
	name := both[0].Name + "+" + both[1].Name
	return b.Constant(name, graph.F32, []int{n, 2, width}, func() ([]byte, error) {
		first, err := both[0].Load()
		if err != nil {
			return nil, err
		}
		second, err := both[1].Load()
		if err != nil {
			return nil, err
		}
		row, data := 4*width, make([]byte, 0, 8*n*width)
		for i := range n {
			data = append(append(data, first[i*row:(i+1)*row]...), second[i*row:(i+1)*row]...)
		}
		return data, nil
	}), true
}

// fuseCombine makes the product `down` of the experts also add up the results of a token's experts. For a few
// tokens, the kernel of the product adds them up. For more tokens, a second dispatch of the product adds them
// up.
var fuseCombine = graph.Fusion{
	Name: "experts_combine",
	Doc:  "for a few tokens, the linear \"down\" of the experts also computes the weighted sum of the experts' results",
	Pattern: graph.Pattern{
		Kinds: []string{kindCombine.Name}, Of: []graph.Pattern{{Kinds: LinearKinds}},
	},
	Replace: func(b *graph.Builder, m *graph.Match) graph.Operator {
		product, sum := m.Ops[0].(*linear), m.Last().(*combine)
		if !product.eachSlot || len(product.parts) != 1 || product.combine != nil || product.gated != nil ||
			sum.x != product.y {
			return nil
		}
		fused := *product
		fused.combine, fused.y = sum, sum.y
		fused.products = b.Scratch(b.Name(sum.y)+".products", graph.F32)
		return fused.combining(b)
	},
}

// mostChoices is a limit for fuseRoute: a product chooses experts itself only if the model has at most this
// many experts in a layer. There is a limit because each workgroup of the product repeats the whole choice.
const mostChoices = 512

// fuseRoute makes a product choose the experts of one token itself, from the logits. The product then runs
// in parallel with the router. Later operators still need the results of the router.
var fuseRoute = graph.Fusion{
	Name:    "experts_route",
	Doc:     "for one token, the linear that computes gate and up chooses the experts itself and does not wait for the router",
	Pattern: graph.Pattern{Kinds: LinearKinds},
	Replace: func(b *graph.Builder, m *graph.Match) graph.Operator {
		product := m.Last().(*linear)
		r, ok := b.Producer(product.experts).(*router)
		if !ok || product.router != nil || product.eachSlot || len(product.parts) != 1 ||
			r.bias != graph.None || r.n > mostChoices || !product.routes.Has(routeGEMV) {
			return nil
		}
		fused := *product
		fused.router = r
		fused.makeKernels(b)
		return &fused
	},
}

// combining makes the kernels of a product that also adds up the results. It returns nil if a kernel needs
// more bindings than the device has.
func (o *linear) combining(b *graph.Builder) graph.Operator {
	o.makeKernels(b)
	for r, k := range o.kernels {
		if k != nil && len(o.bindings(r, &o.parts[0])) > int(b.Limits().MaxStorageBuffers) {
			return nil
		}
	}
	return o
}

// AddResidual returns an operator that computes y = residual + alpha * o, or nil if o is not a product that
// adds up the results of experts. y and residual must have the dims of the output of o.
func (o *linear) AddResidual(b *graph.Builder, residual graph.ValueID, alpha float32,
	y graph.ValueID,
) graph.Operator {
	if o.combine == nil || o.combine.residual != graph.None {
		return nil
	}
	fused, sum := *o, *o.combine
	sum.residual, sum.alpha, sum.y = residual, alpha, y
	sum.makeKernel(b)
	fused.combine, fused.y = &sum, y
	return fused.combining(b)
}
