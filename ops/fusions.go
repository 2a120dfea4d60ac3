package ops

import (
	"slices"

	"gpuscope/engine/graph"
	"gpuscope/ops/experts"
)

// Fusions lists all fusion rules, in the order in which the engine tries them. The rule NAME is in the file
// fuse_NAME.go.
var Fusions = slices.Concat(
	[]graph.Fusion{fuseSiLU, fuseScaled, fuseResidual, fuseNormAdd, fuseLast},
	[]graph.Fusion{fuseRopeAttention, fuseRope, fuseQKNorm, fuseNormAttention},
	fuseGated, experts.Fusions, []graph.Fusion{fuseExpertsResidual},
	[]graph.Fusion{fuseGateUp, fuseBeside, fuseAttention, fuseSpread},
	[]graph.Fusion{fuseNormSum, fuseNorm, fuseSpreadSum},
)
