package arch

import (
	"fmt"
	"math"

	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
)

// twoBranches is the feed-forward half of layers that run an MLP and a mixture of experts in parallel and
// add their outputs. Each branch has a norm before it and a norm after it. The router has a separate norm.
// Source: Gemma 4 (2026).
type twoBranches struct {
	mlp                                     *mlp
	experts                                 *mixture
	mlpPostNorm, expertNorm, expertPostNorm graph.ValueID
	routerNorm                              graph.ValueID
}

func (m *Decoder) twoBranches(layer int) *twoBranches {
	name, blk := m.Form.Names, m.Form.Names.Of(layer)
	return &twoBranches{
		mlp: m.mlp(layer), mlpPostNorm: m.W.norm(blk+name.MlpPostNorm, m.Dim),
		experts: m.experts(layer), expertNorm: m.W.norm(blk+name.ExpertNorm, m.Dim),
		expertPostNorm: m.W.norm(blk+name.ExpertPostNorm, m.Dim),
		routerNorm: m.W.changed(blk+name.RouterScale, m.Dim, func(x float32) float32 {
			return float32(float64(x) / math.Sqrt(float64(m.Dim)))
		}),
	}
}

// forward returns norm(mlp(h)) + norm(experts(norm(x))).
func (f *twoBranches) forward(m *Decoder, layer int, x, h graph.ValueID) graph.ValueID {
	y := m.norm("own_norm", f.mlp.forward(m, layer, x, h), f.mlpPostNorm)
	m.Scope(fmt.Sprintf("layers.%d.experts.", layer), layer, "experts")
	routed, h := m.norm("router_norm", x, f.routerNorm), m.norm("norm", x, f.expertNorm)
	h = m.norm("post_norm", f.experts.apply(m, routed, h), f.expertPostNorm)
	m.Scope(fmt.Sprintf("layers.%d.mlp.", layer), layer, "mlp")
	return basic.Add(m.Builder, "branches", y, h, 1)
}
