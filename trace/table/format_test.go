package table

import (
	"testing"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"
)

// What is measured without a look at its neighbours is as wide as it is with one.
func TestWidthIsThatOfTheScreen(t *testing.T) {
	parts := rapid.SampledFrom([]string{
		"a", "~", " ", "é", "ß", "µ", "Σ", "Δ", "×", "±", "·", "…", "–", "—", "•", "‹", "›", "→", "←", "↑", "↓", "≈",
		"≥", "≤", "▲", "▸", "▾", "◆", "✓", "✗", "│", "┃", "─", "▌", "█", "▏", "▒", "\x1b[0m", "\x1b[1;38;2;1;2;3m",
		"\x1b[2K", "\x1b]0;t\a", "\x1b", "\u0301", "\ufe0f", "\u200d", "日", "🙂", "\t", "\n", "\u00ad", "©", "⣿",
	})
	rapid.Check(t, func(t *rapid.T) {
		s := ""
		for _, part := range rapid.SliceOfN(parts, 0, 12).Draw(t, "parts") {
			s += part
		}
		if got, want := Width(s), ansi.StringWidth(s); got != want {
			t.Fatalf("%q takes %d cells, the screen gives it %d", s, got, want)
		}
	})
}

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

func TestATimeHasFourDigitsAndNoMoreDecimals(t *testing.T) {
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
