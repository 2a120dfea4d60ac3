package arch

import (
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/ops"
	"gpuscope/ops/experts"
	"gpuscope/ops/weight"
)

// mixture is the feed-forward half of layers with a mixture of experts. An expert is a gated MLP. A router
// chooses some experts for each token and gives each of them a weight. The output is the weighted sum of
// their results.
type mixture struct {
	router         weight.Matrix // [experts, dim]
	factors        graph.ValueID // f32 [experts] or None: the weight of an expert is multiplied by its factor
	gate, up, down weight.Matrix // each contains the matrices of all experts, one after the other
	// The biases of router, gate, up and down, or None.
	routerBias, gateBias, upBias, downBias graph.ValueID
}

// experts adds the weights of a layer's experts to the graph.
func (m *Decoder) experts(layer int) *mixture {
	name, blk := m.Form.Names, m.Form.Names.Of(layer)
	f := &mixture{router: m.W.floatMatrix(blk+name.Router, m.Experts, m.Dim), factors: graph.None}
	f.routerBias, f.gateBias, f.upBias, f.downBias = graph.None, graph.None, graph.None, graph.None
	if m.Arch.ExpertBiases {
		f.routerBias = m.W.vector(blk+name.RouterBias, m.Experts)
		f.downBias = m.W.table(blk+name.ExpertDownBias, m.Experts, m.Dim)
	}
	if both := blk + name.ExpertGateUp; name.ExpertGateUp != "" && m.W.has(both) {
		each := m.ExpertFFN
		if m.Form.alternating {
			each = 1
		}
		all := m.W.stack(both, m.Experts, 2*m.ExpertFFN, m.Dim)
		f.gate, f.up = all.Alternate(each, 0), all.Alternate(each, 1)
		if m.Arch.ExpertBiases {
			bias := m.W.floats(blk+name.ExpertGateUpBias, m.Experts, 2*m.ExpertFFN)
			f.gateBias = m.W.alternate("gate", bias, each, 0)
			f.upBias = m.W.alternate("up", bias, each, 1)
		}
		f.down = m.W.stack(blk+name.ExpertDowns, m.Experts, m.Dim, m.ExpertFFN)
	} else {
		if m.Arch.ExpertBiases {
			f.gateBias = m.W.table(blk+name.ExpertGateBias, m.Experts, m.ExpertFFN)
			f.upBias = m.W.table(blk+name.ExpertUpBias, m.Experts, m.ExpertFFN)
		}
		f.gate = m.W.stack(blk+name.ExpertGate, m.Experts, m.ExpertFFN, m.Dim)
		f.up = m.W.stack(blk+name.ExpertUp, m.Experts, m.ExpertFFN, m.Dim)
		f.down = m.W.stack(blk+name.ExpertDown, m.Experts, m.Dim, m.ExpertFFN)
	}
	// The tensor ExpertFactors usually contains a factor for the weight that the router gives to each
	// expert. In GGUF files with NVFP4 matrices, it contains factors of the `down` matrices instead, and
	// f.down.Factor is set.
	if m.Arch.expertsBeside && f.down.Factor == nil {
		f.factors = m.W.vector(blk+name.ExpertFactors, m.Experts)
	}
	return f
}

func (f *mixture) forward(m *Decoder, _ int, _, h graph.ValueID) graph.ValueID {
	return f.apply(m, h, h)
}

// apply returns the sum of weight * down(act(gate(h)) * up(h)) over the chosen experts of each token.
// `routed`, f32 [1, S, dim], is the input of the router, which chooses the experts.
func (f *mixture) apply(m *Decoder, routed, h graph.ValueID) graph.ValueID {
	b := m.Builder
	logits := ops.Linear(b, "router", routed, f.router, f.routerBias)
	r := experts.Router(b, "route", logits, experts.RouterOptions{
		K: m.Chosen, Normalize: m.Normalize, Scale: 1, Bias: graph.None, Factors: f.factors,
	})
	m.expertCounts = append(m.expertCounts, r.Counts)
	gate := experts.LinearExperts(b, "gate", h, f.gate, f.gateBias, r)
	up := experts.LinearExperts(b, "up", h, f.up, f.upBias, r)
	h = m.Arch.Gate.join(b, m.Arch.Gate.Name, gate, up)
	h = experts.LinearExperts(b, "down", h, f.down, f.downBias, r)
	return experts.CombineExperts(b, "combine", h, r.Weights)
}

// mixed reports whether the layers have experts.
func (r *configReader) mixed(arch *Architecture) bool {
	switch key := r.form.Keys; {
	case !arch.expertsBeside:
		return arch.Experts
	case key.mixed != "":
		return r.bool(key.mixed)
	default:
		return r.intOr(key.experts, 0, 0, experts.MaxExperts) > 0
	}
}

// experts reads the configuration of the experts.
func (r *configReader) experts(c *Config) {
	key := r.form.Keys
	c.Experts = r.int(key.experts, 1, experts.MaxExperts)
	c.Chosen = r.int(key.chosen, 1, experts.MaxChosen)
	c.ExpertFFN = r.intOr(key.expertFfn, c.FFN[0], 1, MaxDim)
	if c.Normalize = c.Arch.normalized; key.normalize != "" {
		c.Normalize = r.bool(key.normalize)
	}
	if c.Arch.sharedExpert {
		c.SharedFFN = r.int(key.sharedFfn, 1, MaxDim)
	}
	if c.Chosen > c.Experts {
		r.errorf(key.chosen, "a token uses %d experts, but there are only %d", c.Chosen, c.Experts)
	}
	c.Dense = make([]bool, c.Layers)
	each := max(1, r.intOr(key.sparseEach, 1, 1, maxLayers))
	for i := range c.Dense {
		c.Dense[i] = (i+1)%each != 0
	}
	if r.has(key.dense) {
		layers, err := r.f.Ints(r.prefix + key.dense)
		r.fail(err)
		for _, i := range layers {
			if i < 0 || i >= c.Layers {
				r.errorf(key.dense, "the list has layer %d, but there are %d layers", i, c.Layers)
				return
			}
			c.Dense[i] = true
		}
	}
	if !slices.Contains(c.Dense, true) {
		c.Dense = nil
	}
}
