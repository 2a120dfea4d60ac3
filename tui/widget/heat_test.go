package widget

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestHeatLevelsDivideTheRangeEvenly(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 9))
	for range 200 {
		list := make([]float64, 1+random.IntN(300))
		spread := random.Float64() * 12
		high := 0.0
		for i := range list {
			list[i] = math.Exp(spread * random.NormFloat64())
			high = max(high, list[i])
		}
		list = append(list, 0, math.NaN(), math.Inf(1))
		s := NewHeatScale(list)
		if s.Max != high || s.Level(high) != HeatLevels-1 {
			t.Fatalf("the largest number is %v, the scale ends at %v, level %d", high, s.Max, s.Level(high))
		}
		ratio := s.Max / s.Least[HeatLevels-1]
		if ratio < math.Sqrt2-1e-9 || ratio > 10+1e-9 {
			t.Fatalf("the ratio of two levels is %v", ratio)
		}
		for level, least := range s.Least {
			if next := least * ratio; level+1 < HeatLevels && math.Abs(s.Least[level+1]/next-1) > 1e-9 {
				t.Fatalf("levels begin at %v", s.Least)
			}
			if got := s.Level(least * (1 + 1e-9)); got != level {
				t.Fatalf("%v has level %d, want %d", least, got, level)
			}
		}
		if s.Level(s.Least[0]/1e6) != 0 {
			t.Fatal("a number below the lowest level has another level")
		}
	}
	for _, list := range [][]float64{nil, {0}, {math.NaN(), math.Inf(1)}} {
		if s := NewHeatScale(list); s.Max != 0 {
			t.Errorf("%v: %+v", list, s)
		}
	}
}

func TestShadesOfAHeatMapAreDistinct(t *testing.T) {
	for _, set := range GlyphNames {
		g, _ := NewGlyphs(set)
		seen := map[string]bool{" ": true, "N": true, "I": true}
		for _, s := range g.Shades() {
			if s = g.Finish(s, 1); seen[s] || Width(s) != 1 {
				t.Errorf("%s: %q", set, s)
			}
			seen[s] = true
		}
		if len(seen) != 3+HeatLevels {
			t.Errorf("%s has %d shades", set, len(seen)-3)
		}
	}
}
