package vision

import "gpuscope/ops/kind"

// Kinds lists the kinds of operators in this package.
var Kinds = []kind.Kind{kindConvolution}
