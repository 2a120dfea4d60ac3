package basic

import (
	"math"
	"slices"

	"gpuscope/ops/reference"
)

// compares lists the operators that compare two tensors with broadcasting. There is no boolean type: y is 1
// if the condition holds, and 0 if not. A NaN is not equal to any number or to itself, and it is neither less
// nor greater than a number. Apart from the formula, the rows are like those of Binaries.
var compares = []BinaryRow{
	compare("eq", "a equals b", "u == v", func(a, b float64) bool { return a == b }),
	compare("ge", "a is at least b", "u >= v", func(a, b float64) bool { return a >= b }),
	compare("gt", "a is larger than b", "u > v", func(a, b float64) bool { return a > b }),
	compare("le", "a is at most b", "u <= v", func(a, b float64) bool { return a <= b }),
	compare("lt", "a is less than b", "u < v", func(a, b float64) bool { return a < b }),
	compare("ne", "a does not equal b", "u != v", func(a, b float64) bool { return a != b }),
}

// compare returns the row of a comparison. `when` is the condition as a WGSL expression. `holds` is the same
// condition as a Go function.
func compare(kind, doc, when string, holds func(a, b float64) bool) BinaryRow {
	ofNaN := "0.0"
	if holds(math.NaN(), math.NaN()) {
		ofNaN = "1.0"
	}
	return BinaryRow{
		Error: reference.Exact,
		Kind:  kind, doc: "y = 1 if " + doc + ", else 0",
		ints: "select($T(0.0), $T(1.0), " + when + ")", truth: true,
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
