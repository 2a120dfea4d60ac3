package settings

import (
	"maps"
	"slices"

	"gpuscope/trace"
)

// ModelSize is a size in which two models differ.
type ModelSize struct {
	Name     string // layers, parameters, or a key of trace.Model.Dims
	Was, Now int64
}

// ModelSizes returns the sizes in which two models differ: the layers, then the dims by name. The number of
// parameters follows from these and is listed only if no other size differs. A size that one of the traces
// does not have is not compared, nor are the dims that the user of a model sets: context and max_chunk.
func ModelSizes(was, now *trace.Model) (list []ModelSize) {
	add := func(name string, a, b int64) {
		if a != b && a != 0 && b != 0 {
			list = append(list, ModelSize{name, a, b})
		}
	}
	add("layers", int64(was.Layers), int64(now.Layers))
	for _, name := range slices.Sorted(maps.Keys(was.Dims)) {
		if name != "context" && name != "max_chunk" {
			add(name, int64(was.Dims[name]), int64(now.Dims[name]))
		}
	}
	if list == nil {
		add("parameters", was.Parameters, now.Parameters)
	}
	return list
}
