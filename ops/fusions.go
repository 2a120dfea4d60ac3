package ops

import (
	"slices"

	"gpuscope/engine"
)

// Fusions are the rules by which operators are fused, in the order in which they are tried. A rule is a row
// here and a file, fuse_NAME.go.
var Fusions = slices.Concat(
	[]engine.Fusion{fuseScaled, fuseResidual, fuseNormAdd, fuseLast},
	[]engine.Fusion{fuseRopeAttention, fuseRope, fuseQKNorm, fuseNormAttention},
	fuseGated, []engine.Fusion{fuseGateUp, fuseBeside, fuseAttention, fuseSpread},
	[]engine.Fusion{fuseNormSum, fuseNorm, fuseSpreadSum},
)
