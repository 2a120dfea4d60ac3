package vision

import (
	"slices"

	"gpuscope/ops/kind"
)

// Kinds lists the kinds of operators in this package.
var Kinds = slices.Concat(kindsOfUpsamples, []kind.Kind{
	kindConvolution, kindMaxPool, kindAvgPool, kindSampler, kindPriors,
})
