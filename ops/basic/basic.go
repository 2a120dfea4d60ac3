package basic

import (
	"slices"

	"gpuscope/ops/kind"
)

// Kinds lists the kinds of operators in this package that work on tensors. SymKinds lists the kinds that work
// on SymInts.
var (
	Kinds = slices.Concat(kindsOfUnaries, kindsOfBinaries, kindsOfGates, kindsOfReductions, kindsOfGathers,
		kindsOfConversions, []kind.Kind{
			kindArgmax, kindBMM, kindCat, kindChooseQParams, kindCumSum, kindGather, kindIndexSelect,
			kindLayerNorm, kindPad, kindQuantizeAffine, kindRotaryInterleaved, kindScatter, kindSoftmax,
			kindTopK, kindUpdateCache, kindView, kindWhere,
		})
	SymKinds = slices.Concat(kindsOfSymBinaries, []kind.Kind{kindSymSize, kindSelectAsSymInt})
)

// member returns the kind with the given name. It returns nil if this package has no such kind.
func member(name string) *kind.Kind {
	for _, list := range [][]kind.Kind{Kinds, SymKinds} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}
