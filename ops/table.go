package ops

import (
	"slices"
	"strings"

	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
	"gpuscope/ops/kind"
)

// Kinds lists every kind of operator, by name: those on tensors, then those on SymInts.
var Kinds = slices.Concat(byName(basic.Kinds, kindsOfGated, kindsOfLinear, kindsOfEmbedding, []kind.Kind{
	kindRotary, kindRotaryHF, kindRotaryInterleaved, kindRMSNorm, kindSDPA, kindUpdateCache,
}), byName(basic.SymKinds))

// New puts an operator of a kind into the graph under a name, and returns its outputs. What does not fit the
// kind's arguments is an error in the builder that names the operator, the argument, its value and what is
// taken; then, and after any error before, New does nothing and returns nil.
func New(b *graph.Builder, kind, name string, args kind.Args) []graph.ValueID {
	k := KindOf(kind)
	if k == nil {
		b.Errorf("%s: there is no kind of operator %q", b.Scoped(name), kind)
		return nil
	}
	return k.Build(b, name, args)
}

// KindOf is the row of a kind; nil where there is none.
func KindOf(name string) *kind.Kind {
	for i := range Kinds {
		if Kinds[i].Name == name {
			return &Kinds[i]
		}
	}
	return nil
}

func byName(lists ...[]kind.Kind) []kind.Kind {
	all := slices.Concat(lists...)
	slices.SortFunc(all, func(a, b kind.Kind) int { return strings.Compare(a.Name, b.Name) })
	return all
}
