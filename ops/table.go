package ops

import (
	"slices"
	"strings"
)

// Kinds lists every kind of operator, by name: those on tensors, then those on SymInts.
var Kinds = slices.Concat(byName(
	kindsOfUnaries, kindsOfBinaries, kindsOfGated, kindsOfReductions, kindsOfGathers, kindsOfLinear,
	kindsOfEmbedding,
	[]Kind{
		kindRotary, kindRotaryHF, kindRotaryInterleaved, kindArgmax, kindCat, kindLayerNorm, kindRMSNorm,
		kindSDPA, kindSoftmax, kindTopK, kindUpdateCache,
		kindView,
	},
), byName(
	kindsOfSymBinaries, []Kind{kindSymSize, kindSelectAsSymInt},
))

func byName(lists ...[]Kind) []Kind {
	all := slices.Concat(lists...)
	slices.SortFunc(all, func(a, b Kind) int { return strings.Compare(a.Name, b.Name) })
	return all
}
