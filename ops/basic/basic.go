package basic

import (
	"slices"

	"gpuscope/ops/kind"
)

// Kinds lists the kinds of this package that work on tensors, symKinds those that work on SymInts.
var (
	Kinds = slices.Concat(kindsOfUnaries, kindsOfBinaries, kindsOfReductions, kindsOfGathers,
		[]kind.Kind{kindArgmax, kindCat, kindLayerNorm, kindSoftmax, kindTopK, kindView})
	SymKinds = slices.Concat(kindsOfSymBinaries, []kind.Kind{kindSymSize, kindSelectAsSymInt})
)

// member is the kind of a family's member.
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
