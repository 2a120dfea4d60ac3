package ops

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/ops/internal/shape"
	"gpuscope/ops/kind"
	"gpuscope/ops/reference"
)

// byRows reports whether a kind computes only the rows that are requested.
func byRows(kind string) bool {
	family, _, _ := strings.Cut(kind, "_")
	return slices.Contains([]string{
		"linear", "embedding", "sdpa", "rms", "layer", "softmax", "silu", "apply", "add", "pow", "exp",
	}, family)
}

// For every kind, the reference computes a part bit for bit as it computes the whole. The expensive kinds do
// not compute the rest.
func TestChosenElementsAreThoseOfTheWholeReference(t *testing.T) {
	for _, k := range Kinds {
		t.Run(k.Name, func(t *testing.T) {
			left := 0
			for seed := range 15 {
				left += holdChosen(t, &k, seed)
			}
			if byRows(k.Name) && left == 0 {
				t.Error("all elements were computed, although only some were requested")
			}
		})
	}
}

// holdChosen compares a part to the whole, and counts the elements that were not computed.
func holdChosen(t *testing.T, k *kind.Kind, seed int) (left int) {
	c := rapid.Custom(samples[k.Name]).Example(seed)
	g := finish(t, c)
	in := c.input(t, g, c.steps[0])
	whole, part := reference.NewInterpreter(g), reference.NewInterpreter(g)
	if err := whole.Step(in, nil); err != nil {
		t.Fatal(err)
	}
	choice := rapid.Custom(func(t *rapid.T) reference.Choice {
		return reference.Choice{Rows: drawSome(t, "rows"), Cols: drawSome(t, "cols")}
	}).Example(seed)
	for _, v := range g.Outputs() {
		part.Choose(v, choice)
	}
	if err := part.Step(in, nil); err != nil {
		t.Fatal(err)
	}
	for _, v := range g.Outputs() {
		got, want := part.Tensor(v), whole.Tensor(v)
		if !slices.Equal(got.Dims, want.Dims) {
			t.Fatalf("dims %v, in the whole %v", got.Dims, want.Dims)
		}
		for j, w := range want.Data {
			row, col := j/shape.Last(want.Dims), j%shape.Last(want.Dims)
			switch {
			case math.IsNaN(w) || got.Data[j] == w:
			case !math.IsNaN(got.Data[j]):
				t.Fatalf("row %d column %d is %v, in the whole %v", row, col, got.Data[j], w)
			case chosen(choice, row, col):
				t.Fatalf("row %d column %d was requested but not computed", row, col)
			default:
				left++
			}
		}
	}
	return left
}

// drawSome draws row or column numbers, some of which may not exist, or nil for all.
func drawSome(t *rapid.T, name string) []int {
	if rapid.IntRange(0, 3).Draw(t, "all "+name) == 0 {
		return nil
	}
	return rapid.SliceOfN(rapid.IntRange(0, 40), 0, 3).Draw(t, name)
}

func chosen(c reference.Choice, row, col int) bool {
	return (c.Rows == nil || slices.Contains(c.Rows, row)) && (c.Cols == nil || slices.Contains(c.Cols, col))
}
