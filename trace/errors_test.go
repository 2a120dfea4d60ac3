package trace

import (
	"math"
	"testing"
)

// NaN and Inf are not a multiple of a tolerance. The report says what the value is and what it should be.
func TestErrorsOverTheirToleranceAreReported(t *testing.T) {
	nan, inf := Number(math.NaN()), Number(math.Inf(1))
	for _, c := range []struct {
		gap  NumericError
		want string
	}{
		{NumericError{Share: 3, Got: 2, Want: 1.5}, "3 times its tolerance"},
		{NumericError{Share: inf, Got: 7, Want: 8}, "+Inf times its tolerance"},
		{NumericError{Share: inf, Got: nan, Want: 0.25, MaxAbs: nan}, "NaN, reference 0.25"},
		{NumericError{Share: inf, Got: -inf, Want: 1, MaxAbs: inf}, "-Inf, reference 1"},
	} {
		if got := c.gap.Over(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
