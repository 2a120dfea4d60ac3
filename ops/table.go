package ops

import (
	"slices"
	"strings"

	"gpuscope/engine/graph"
	"gpuscope/ops/basic"
	"gpuscope/ops/experts"
	"gpuscope/ops/kind"
	"gpuscope/ops/recurrent"
	"gpuscope/ops/vision"
)

// Kinds lists every kind of operator: first the kinds that work on tensors, then the kinds that work on
// SymInts, each sorted by name.
var Kinds = slices.Concat(byName(basic.Kinds, experts.Kinds, vision.Kinds, recurrent.Kinds, kindsOfLinear,
	kindsOfEmbedding, []kind.Kind{
		kindRotary, kindRotaryHF, kindRMSNorm, kindSDPA,
	}), byName(basic.SymKinds))

// New adds an operator of a kind to the graph under a name, and returns its outputs. If an argument does
// not fit the kind, New records an error in the builder and returns nil. The error names the operator, the
// argument, its value and the accepted type. If the builder already has an error, New does nothing and
// returns nil.
func New(b *graph.Builder, kind, name string, args kind.Args) []graph.ValueID {
	k := KindOf(kind)
	if k == nil {
		b.Errorf("%s: unknown kind of operator %q", b.Scoped(name), kind)
		return nil
	}
	return k.Build(b, name, args)
}

// KindOf returns the kind with the given name. It returns nil if there is no such kind.
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
