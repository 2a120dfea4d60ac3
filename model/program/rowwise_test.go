package program

import (
	"slices"
	"testing"

	"gpuscope/engine/graph"
	"gpuscope/model/checkpoint/pte/vulkan"
	"gpuscope/ops"
)

func TestRowWiseOperatorsAreKnown(t *testing.T) {
	for _, list := range []map[string][]string{rowWise, pointwise} {
		for name, args := range list {
			op := vulkan.Operator{Name: name}
			for len(op.Args) < 20 && !op.Known() {
				op.Args = append(op.Args, 0)
			}
			for _, arg := range args {
				if operators[name] == nil || !slices.Contains(op.Arguments(), arg) {
					t.Errorf("%s has no argument %s", name, arg)
				}
			}
		}
	}
	if !slices.ContainsFunc(ops.Fusions, func(f graph.Fusion) bool { return f.Name == lastRule }) {
		t.Errorf("no fusion rule has the name %s", lastRule)
	}
}
