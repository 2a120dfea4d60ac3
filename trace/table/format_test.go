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

func TestTimesHaveFourDigits(t *testing.T) {
	for us, want := range map[float64]string{
		0.123: "0.12", 9.996: "10.00", 65.124: "65.12", 99.99: "99.99", 99.996: "100.0", 373.84: "373.8",
		999.96: "1000", 12345.67: "12346", -3352.6: "-3353",
	} {
		if got := Micros(us, 2); got != want {
			t.Errorf("%v µs: %q, want %q", us, got, want)
		}
	}
	if got := Micros(373.84, 0); got != "374" {
		t.Errorf("a clock of whole µs says %s", got)
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

func TestScaledKeepsThreeDigits(t *testing.T) {
	for v, want := range map[float64]string{
		0.383: "0.38 FLOP", 3.7: "3.70 FLOP", 370: "370 FLOP", 6.31e9: "6.31 GFLOP", 2.3974e13: "24.0 TFLOP",
		999.7: "1.00 kFLOP",
	} {
		if got := Scaled(v, "FLOP"); got != want {
			t.Errorf("%v is %q, want %q", v, got, want)
		}
	}
}
