package table

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"gpuscope/internal/cells"
)

// This file formats numbers and other values as text for tables, titles and sentences.

// Width returns the number of screen cells that s occupies.
func Width(s string) int { return cells.Width(s) }

// Cut shortens s to at most w cells. An ellipsis marks the removed text.
func Cut(s string, w int) string {
	if w <= 0 {
		return ""
	}
	return cells.Cut(s, w, "…")
}

// Clauses returns as much of a sentence as fits in w cells. It cuts only after a colon, a semicolon, a comma
// or a period, because a number that lacks digits is a different number. If not even the first clause fits,
// it returns "".
func Clauses(s string, w int) string {
	if Width(s) <= w {
		return s
	}
	for i := len(s) - 1; i > 0; i-- {
		if s[i] == ' ' && strings.IndexByte(".,:;", s[i-1]) >= 0 && Width(s[:i-1]) <= w {
			return s[:i-1]
		}
	}
	return ""
}

// Integer formats a number with thousands separators.
func Integer[N ~int | ~int64](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	digits := strings.TrimPrefix(s, "-")
	if len(digits) <= 3 {
		return s
	}
	var b strings.Builder
	b.WriteString(s[:len(s)-len(digits)])
	for i, c := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// Plural returns a count and its noun in the singular or plural, such as "1 step" or "2 steps".
func Plural[N ~int | ~int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "ch") || strings.HasSuffix(noun, "s") {
		return Integer(n) + " " + noun + "es"
	}
	return Integer(n) + " " + noun + "s"
}

// Bytes formats an amount of moved data with a decimal prefix: "10.5 MB".
func Bytes(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.2f GB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%d B", n)
}

// Scaled formats a value with three digits, and its unit with a prefix: "4.24 TB/s", "6.31 GFLOP".
func Scaled(v float64, unit string) string {
	prefixes := []string{"", "k", "M", "G", "T", "P"}
	i := 0
	for ; v >= 999.5 && i < len(prefixes)-1; i++ {
		v /= 1000
	}
	return fmt.Sprintf("%s %s%s", Digits(v), prefixes[i], unit)
}

// Digits formats a value with three significant digits. Digits before the decimal point are all shown, even
// if there are more.
func Digits(v float64) string {
	return fmt.Sprintf("%.*f", max(0, 3-len(strconv.Itoa(int(math.Abs(v))))), v)
}

// Memory formats a memory size with a binary prefix and about three digits: "1.5 MiB".
func Memory[N uint64 | int64](n N) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	v, i := float64(n), 0
	for ; v >= 1024 && i < len(units)-1; i++ {
		v /= 1024
	}
	if i == 0 || v == float64(int64(v)) {
		return fmt.Sprintf("%.0f %s", v, units[i])
	}
	return fmt.Sprintf("%.1f %s", v, units[i])
}

// Shape formats dims as 1×32×64.
func Shape(dims []int) string {
	var b []byte
	for i, d := range dims {
		if i > 0 {
			b = append(b, "×"...)
		}
		b = strconv.AppendInt(b, int64(d), 10)
	}
	return string(b)
}

// Grid formats a workgroup count without trailing ones: 32 or 32×8. The zero grid means that the grid is
// unknown: the trace was imported from another engine's profile, and the profile contains no grids.
func Grid(g [3]int) string {
	switch {
	case g == [3]int{}:
		return "unknown"
	case g[2] != 1:
		return Shape(g[:])
	case g[1] != 1:
		return Shape(g[:2])
	}
	return Shape(g[:1])
}

// Millis formats a time in ns as milliseconds with the unit. It returns "–" if the time was not measured.
func Millis(ns int64, measured bool) string {
	s := MillisBare(ns, measured)
	if measured {
		s += " ms"
	}
	return s
}

// MillisBare formats a time like Millis but without the unit.
func MillisBare(ns int64, measured bool) string {
	if !measured {
		return Unmeasured
	}
	switch v := float64(ns) / 1e6; {
	case math.Abs(v) >= 100:
		return fmt.Sprintf("%.0f", v)
	case math.Abs(v) >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

// Micros formats a time in µs with at most the given number of decimals.
func Micros(us float64, decimals int) string {
	return fmt.Sprintf("%.*f", MicrosDecimals(us, decimals), us)
}

// MicrosDecimals returns how many decimals a time in µs should have. This is at most 1 if the time is 100 µs
// or longer, and 0 from 1,000 µs on, because more than four digits of a time are of no use.
func MicrosDecimals(us float64, decimals int) int {
	switch v := math.Abs(us); {
	case v >= 999.95:
		return 0
	case v >= 99.995:
		return min(decimals, 1)
	}
	return decimals
}

// DecimalsOfUS returns how many decimals of a time in µs are meaningful for a clock with the given timer
// resolution.
func DecimalsOfUS(quantumNS float64) int {
	if quantumNS <= 0 {
		return 1
	}
	return min(2, max(0, int(math.Floor(3-math.Log10(quantumNS)))))
}
