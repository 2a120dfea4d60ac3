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

func TestMemoryIsWrittenInTheLargestUnit(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "0 B", 1023: "1023 B", 1024: "1 KiB", 128 << 20: "128 MiB",
		2<<30 - 1: "2.0 GiB", 1536: "1.5 KiB", 1<<64 - 1: "16 EiB",
	} {
		if got := Memory(n); got != want {
			t.Errorf("%d bytes: %q, want %q", n, got, want)
		}
	}
}
