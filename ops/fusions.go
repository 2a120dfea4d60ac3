package ops

import (
	"slices"

	"gpuscope/engine/graph"
)

// Fusions are the rules by which operators are fused, in the order in which they are tried. A rule is a row
// here and a file, fuse_NAME.go.
var Fusions = slices.Concat(
	[]graph.Fusion{fuseScaled, fuseResidual, fuseNormAdd, fuseLast},
	[]graph.Fusion{fuseRopeAttention, fuseRope, fuseQKNorm, fuseNormAttention},
	fuseGated, []graph.Fusion{fuseGateUp, fuseBeside, fuseAttention, fuseSpread},
	[]graph.Fusion{fuseNormSum, fuseNorm, fuseSpreadSum},
)
