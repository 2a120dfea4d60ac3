package analyze

import (
	"testing"

	"pgregory.net/rapid"

	"gpuscope/trace"
	"gpuscope/trace/table"
)

func TestVariationOfSamples(t *testing.T) {
	for _, c := range []struct {
		ns   []int64
		want Stats
	}{
		{nil, Stats{}},
		{[]int64{7}, Stats{N: 1, Median: 7, Min: 7, Max: 7}},
		{[]int64{9, 1}, Stats{N: 2, Median: 5, Min: 1, Max: 9}},
		{[]int64{3, 1, 2}, Stats{N: 3, Median: 2, Min: 1, Max: 3}},
		{[]int64{40, 10, 30, 20}, Stats{N: 4, Median: 25, Min: 10, Max: 40, IQR: 15}},
		{[]int64{1, 2, 3, 4, 100}, Stats{N: 5, Median: 3, Min: 1, Max: 100, IQR: 2}},
	} {
		if got := StatsOf(c.ns); got != c.want {
			t.Errorf("%v: %+v, want %+v", c.ns, got, c.want)
		}
	}
}

func TestEqualRunsHaveNoOutlier(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ns := rapid.Int64Range(0, 1_000_000).Draw(t, "ns")
		samples := make([][]int64, rapid.IntRange(0, 20).Draw(t, "runs"))
		for i := range samples {
			samples[i] = make([]int64, rapid.IntRange(0, 8).Draw(t, "repeats"))
			for k := range samples[i] {
				samples[i][k] = ns + rapid.Int64Range(-32, 32).Draw(t, "noise")
			}
		}
		if i, _ := outlier(samples, 64); i >= 0 {
			t.Fatalf("%d of %v", i, samples)
		}
	})
}

func TestParamsAreDecodedByTheirType(t *testing.T) {
	block := []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0x80, 0x3f}
	for _, c := range []struct {
		p    trace.Param
		want string
	}{
		{trace.Param{Type: "u32"}, "4294967295"},
		{trace.Param{Type: "i32"}, "-1"},
		{trace.Param{Type: "f32", Offset: 4}, "1"},
		{trace.Param{Type: "u32", Offset: 5}, table.Unmeasured},
		{trace.Param{Type: "u32", Offset: -1}, table.Unmeasured},
	} {
		if got := decode(&c.p, block); got != c.want {
			t.Errorf("%+v: %s, want %s", c.p, got, c.want)
		}
	}
}
