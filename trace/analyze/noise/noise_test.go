package noise

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The quantiles are those of tables of Student's distribution, for both tails together.
func TestStudentQuantiles(t *testing.T) {
	for _, c := range []struct {
		p    float64
		df   int
		want float64
	}{{0.05, 1, 12.706}, {0.05, 2, 4.303}, {0.01, 5, 4.032}, {0.05, 10, 2.228}, {0.001, 18, 3.922}} {
		if got := studentQuantile(c.p, c.df); math.Abs(got-c.want) > 0.001 {
			t.Errorf("p %g, df %d: %.4f, want %.3f", c.p, c.df, got, c.want)
		}
	}
	for df := 1; df <= maxDF; df++ {
		if q := studentQuantile(1e-6, df); math.Abs(studentTail(q, df)-1e-6) > 1e-8 {
			t.Errorf("df %d: the tail at the quantile is %g", df, studentTail(q, df))
		}
	}
}

func series(keys bool, ns ...float64) []Series {
	s := Series{NS: ns}
	for i := range ns {
		if keys {
			s.Keys = append(s.Keys, int64(i))
		}
	}
	return []Series{s}
}

func TestTrendAlongTheStepsIsNoNoise(t *testing.T) {
	var a, b []float64
	for i := range 40 {
		a = append(a, 10_000+float64(500*i))
		b = append(b, 1.2*a[i])
	}
	m := &Model{Band: OtherRun, Tests: 100}
	p := Pair{Base: series(true, a...), Now: series(true, b...), BaseNS: 20_000, NowNS: 24_000}
	if v := m.Judge(&p); !v.Significant {
		t.Errorf("20 %% at each step is not significant: %+v", v)
	}
	p.Base, p.Now = series(false, a...), series(false, b...)
	if v := m.Judge(&p); v.Significant {
		t.Errorf("20 %% of times that vary by a factor of three is significant: %+v", v)
	}
}

func TestOneSlowStepChangesNothing(t *testing.T) {
	a := slices.Repeat([]float64{10_000, 10_032}, 12)
	b := slices.Clone(a)
	b[5] *= 50
	m := &Model{Band: OtherRun, Tests: 100, ResolutionNS: 64}
	p := Pair{Base: series(true, a...), Now: series(true, b...), BaseNS: 10_016, NowNS: 12_500}
	if v := m.Judge(&p); !v.Significant || v.NoiseNS > 1500 {
		t.Errorf("%+v", v)
	}
}

func TestClockExplainsOneDirectionOnly(t *testing.T) {
	a := slices.Repeat([]float64{10_000}, 16)
	m := &Model{Band: OtherRun, Tests: 10, Clock: ClockShift(1, 0.8)}
	for _, c := range []struct {
		now  float64
		want bool
	}{{12_500, false}, {8000, true}, {15_000, true}} {
		p := Pair{Base: series(true, a...), BaseNS: 10_000, NowNS: c.now}
		p.Now = series(true, slices.Repeat([]float64{c.now}, 16)...)
		if v := m.Judge(&p); v.Significant != c.want {
			t.Errorf("10,000 to %g ns at a clock of 0.8: %+v", c.now, v)
		}
	}
}

// Rows of one kernel that differ from each other more than assumed widen the band of all rows.
func TestBandWidensWithRowsThatDiffer(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var rows []Pair
	for range 40 {
		f := math.Exp(0.1 * r.NormFloat64())
		rows = append(rows, Pair{
			Base: series(true, slices.Repeat([]float64{10_000}, 16)...), BaseNS: 10_000,
			Now: series(true, slices.Repeat([]float64{10_000 * f}, 16)...), NowNS: 10_000 * f, Kernel: "k",
		})
	}
	m := &Model{Band: OtherRun, Tests: 40, ResolutionNS: 64}
	before := m.RowBand(1)
	m.Learn(rows)
	if m.RowBand(1) < 0.3 || before > 0.1 || m.RowBand(16) > m.RowBand(1)/3 {
		t.Errorf("band %g before, %g after, %g of 16 rows", before, m.RowBand(1), m.RowBand(16))
	}
}

// Series of any length, order and keys give a verdict without a panic.
func FuzzJudge(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, uint8(2), uint8(1))
	f.Add([]byte{0, 0, 0, 0, 0, 0}, uint8(1), uint8(3))
	f.Fuzz(func(t *testing.T, data []byte, base, now uint8) {
		take := func(n uint8) (list []Series) {
			for range n % 5 {
				k := 0
				if len(data) > 0 {
					k = min(int(data[0])%16, len(data)-1)
					data = data[1:]
				}
				var s Series
				for _, b := range data[:k] {
					s.NS = append(s.NS, float64(b)*100)
					s.Keys = append(s.Keys, int64(b%8))
				}
				if data = data[k:]; k%3 == 0 {
					s.Keys = nil
				}
				list = append(list, s)
			}
			return list
		}
		p := Pair{Base: take(base), Now: take(now), BaseNS: float64(base) * 100, NowNS: float64(now) * 100}
		m := &Model{Band: OtherRun, Tests: 7, ResolutionNS: 64}
		m.Learn([]Pair{p, p, p})
		v := m.Judge(&p)
		q := Pair{Base: p.Now, Now: p.Base, BaseNS: p.NowNS, NowNS: p.BaseNS}
		w := m.Judge(&q)
		if v.DeltaNS != -w.DeltaNS || v.Significant != w.Significant || v.Significant && !v.Known {
			t.Errorf("%+v, swapped %+v", v, w)
		}
	})
}
