package table

import (
	"fmt"
	"math"
	"strings"
)

// Bytes writes a size: "10.5 MB".
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

// Shape writes dims as 1×32×64.
func Shape(dims []int) string {
	var b strings.Builder
	for i, d := range dims {
		if i > 0 {
			b.WriteString("×")
		}
		fmt.Fprint(&b, d)
	}
	return b.String()
}

// Grid writes a workgroup count, without trailing ones: 32, 32×8.
func Grid(g [3]int) string {
	switch {
	case g[2] != 1:
		return Shape(g[:])
	case g[1] != 1:
		return Shape(g[:2])
	}
	return Shape(g[:1])
}

// DecimalsOfUS is how many decimals of a µs a clock can tell.
func DecimalsOfUS(quantumNS float64) int {
	if quantumNS <= 0 {
		return 1
	}
	return min(2, max(0, int(math.Floor(3-math.Log10(quantumNS)))))
}
