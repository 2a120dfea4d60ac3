package experts

import (
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/ops/kind"
)

// Kinds lists the kinds of operators in this package.
var Kinds = slices.Concat([]kind.Kind{kindRouter, kindCombine}, kindsOfLinear)

// Fusions lists the fusion rules of this package, in the order in which the engine tries them.
var Fusions = []graph.Fusion{fuseGateUp, fuseRoute, fuseCombine}

// Routing is what a router computes: which experts process each token.
type Routing struct {
	Experts graph.ValueID // i32 [1, S, k]: the chosen experts of each token, the best first
	Weights graph.ValueID // f32 [1, S, k]: the weights of their results
	Counts  graph.ValueID // i32 [E]: number of tokens of each expert in this step
	// Sorted is i32 [E+1 + S*k]. A pair consists of a token and one of its experts. Sorted starts with one
	// number for each expert: the number of pairs of all lower experts. Then follow the number of all pairs,
	// and the pairs, sorted by expert. Pair p belongs to slot p%k of token p/k.
	Sorted graph.ValueID
}
