package settings_test

import (
	"slices"
	"testing"

	"gpuscope/trace"
	"gpuscope/trace/analyze/diff/settings"
)

func TestModelSizesListsWhatDiffers(t *testing.T) {
	t.Parallel()
	model := func(layers int, parameters int64, dims map[string]int) *trace.Model {
		return &trace.Model{Name: "m", Layers: layers, Parameters: parameters, Dims: dims}
	}
	for _, c := range []struct {
		name     string
		was, now *trace.Model
		want     []settings.ModelSize
	}{
		{"equal", model(2, 9, map[string]int{"dim": 4}), model(2, 9, map[string]int{"dim": 4}), nil},
		{
			"layers and dims, in order",
			model(16, 9, map[string]int{"vocab": 7, "dim": 4}),
			model(4, 8, map[string]int{"vocab": 5, "dim": 2}),
			[]settings.ModelSize{{"layers", 16, 4}, {"dim", 4, 2}, {"vocab", 7, 5}},
		},
		{"parameters alone", model(2, 9, nil), model(2, 8, nil), []settings.ModelSize{{"parameters", 9, 8}}},
		{"unknown on one side", model(0, 0, map[string]int{"dim": 4}), model(2, 8, nil), nil},
		{
			"settings are no sizes",
			model(2, 9, map[string]int{"context": 8, "max_chunk": 4}),
			model(2, 9, map[string]int{"context": 4, "max_chunk": 2}), nil,
		},
	} {
		if got := settings.ModelSizes(c.was, c.now); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
