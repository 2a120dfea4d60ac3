package engine

import (
	"math"
	"testing"
)

func TestPeriodOfATick(t *testing.T) {
	at := func(ms, widthMS float64, tick uint64) reading {
		return reading{
			tick: tick, before: int64((ms - widthMS/2) * 1e6),
			after: int64((ms + widthMS/2) * 1e6),
		}
	}
	for _, test := range []struct {
		name string
		a, b reading
		want float64
		sure bool
	}{
		{"ticks in ns, narrow", at(0, 0.1, 1000), at(5, 0.1, 5_010_000), 1, true},
		{"ticks of 52.08 ns", at(0, 0.1, 0), at(5, 0.1, 96_000), 52.083, true},
		{"ticks of 10 ns, wide: not to be taken for ns", at(1, 2, 0), at(6, 2, 500_000), 10, false},
		{"the same, later", at(1, 2, 0), at(81, 2, 8_000_000), 10, true},
	} {
		got, sure := period(test.a, test.b)
		if math.Abs(got-test.want) > 0.01*test.want || sure != test.sure {
			t.Errorf("%s: %v ns, sure: %v, want %v, %v", test.name, got, sure, test.want, test.sure)
		}
	}
	if got, sure := period(at(10, 20, 0), at(15, 20, 500_000)); sure {
		t.Errorf("readings wider than their distance give %v ns for sure", got)
	}
}
