package widget

import (
	"math"
	"slices"
)

// HeatLevels is the number of shades of a heat map.
const HeatLevels = 5

// HeatScale divides numbers above 0 into HeatLevels levels. From each level to the next, the numbers grow by
// the same factor: by √2 or more, so that noise is not drawn as contrast, and by 10 or less.
type HeatScale struct {
	Least [HeatLevels]float64 // the smallest number of each level; the lowest level also has smaller numbers
	Max   float64             // the largest finite number; 0 if no finite number is above 0
}

// NewHeatScale returns a scale for those of the given numbers that are finite and above 0. The smallest 5 %
// of them do not affect the levels: a few tiny numbers could otherwise leave few levels for all larger
// numbers.
func NewHeatScale[F ~float64](numbers []F) HeatScale {
	var list []float64
	for _, n := range numbers {
		if v := float64(n); v > 0 && !math.IsInf(v, 1) {
			list = append(list, v)
		}
	}
	var s HeatScale
	if len(list) == 0 {
		return s
	}
	slices.Sort(list)
	s.Max = list[len(list)-1]
	ratio := math.Exp((math.Log(s.Max) - math.Log(list[len(list)/20])) / HeatLevels)
	ratio = min(10, max(math.Sqrt2, ratio))
	for level := range s.Least {
		s.Least[level] = s.Max / math.Pow(ratio, float64(HeatLevels-level))
	}
	return s
}

// Level returns the level of a finite number above 0.
func (s *HeatScale) Level(v float64) int {
	level := 0
	for level+1 < HeatLevels && v >= s.Least[level+1] {
		level++
	}
	return level
}
