package basic

import (
	"math"
	"slices"

	"gpuscope/ops/reference"
)

// compares are the family of operators that compare two tensors with broadcasting, a row each. There is no
// type for true and false: y is 1 where it is so and 0 where it is not. A NaN is unlike everything, itself
// too, and neither less nor larger. All but the formula is as operators on two tensors have it.
var compares = []BinaryRow{
	compare("eq", "a equals b", "u == v", func(a, b float64) bool { return a == b }),
	compare("ge", "a is at least b", "u >= v", func(a, b float64) bool { return a >= b }),
	compare("gt", "a is larger than b", "u > v", func(a, b float64) bool { return a > b }),
	compare("le", "a is at most b", "u <= v", func(a, b float64) bool { return a <= b }),
	compare("lt", "a is less than b", "u < v", func(a, b float64) bool { return a < b }),
	compare("ne", "a does not equal b", "u != v", func(a, b float64) bool { return a != b }),
}

// compare is a row: when is the condition in WGSL, of two numbers, and holds in Go.
func compare(kind, doc, when string, holds func(a, b float64) bool) BinaryRow {
	ofNaN := "0.0"
	if holds(math.NaN(), math.NaN()) {
		ofNaN = "1.0"
	}
	return BinaryRow{
		Error: reference.Exact,
		Kind:  kind, doc: "y = 1 where " + doc + ", 0 elsewhere",
		wgsl:  "select(select($T(0.0), $T(1.0), " + when + "), $T(" + ofNaN + "), is_nan(u) | is_nan(v))",
		needs: isNaNWGSL,
		f: func(a, b, _ float64) float64 {
			if holds(a, b) {
				return 1
			}
			return 0
		},
		Also: slices.Concat(besideNaN,
			[][2]float64{{1, 1}, {-2, -2}, {0, math.Copysign(0, -1)}, {2, 1}, {1, 2}}),
	}
}
