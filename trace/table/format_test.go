package table

import "testing"

func TestNoDecimalsBelowTheQuantum(t *testing.T) {
	for quantum, want := range map[float64]int{
		0: 1, 1: 2, 10: 2, 32: 1, 83.3: 1, 100: 1, 101: 0, 1000: 0,
		65536: 0,
	} {
		if got := DecimalsOfUS(quantum); got != want {
			t.Errorf("quantum %v ns: %d decimals of a µs, want %d", quantum, got, want)
		}
	}
}
