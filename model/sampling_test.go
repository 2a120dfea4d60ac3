package model

import (
	"cmp"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gpuscope/internal/wordingtest"
	"gpuscope/model/sample"
	"gpuscope/ops/basic"
	"gpuscope/session"
	"gpuscope/trace"
)

// plain returns Sampling at temperature 1 without any filter.
func plain() sample.Sampling { return sample.Sampling{Temperature: 1, TopP: 1, RepeatPenalty: 1} }

// ranked returns logits as candidates, best first, and the sum of exp(logit - best logit).
func ranked(logits []float64) (list []trace.Candidate, sum float64) {
	for id, x := range logits {
		list = append(list, trace.Candidate{ID: id, Logit: x})
	}
	slices.SortStableFunc(list, func(a, b trace.Candidate) int { return cmp.Compare(b.Logit, a.Logit) })
	for _, c := range list {
		sum += math.Exp(c.Logit - list[0].Logit)
	}
	return list, sum
}

func TestFiltersLeaveTheTokensThatTheyName(t *testing.T) {
	four := []float64{math.Log(.4), math.Log(.3), math.Log(.2), math.Log(.1)}
	for name, test := range map[string]struct {
		set    func(*sample.Sampling)
		logits []float64
		recent []int
		want   []int // tokens that can be drawn
	}{
		"no filter": {func(*sample.Sampling) {}, four, nil, []int{0, 1, 2, 3}},
		"greedy": {
			func(s *sample.Sampling) { s.Temperature = 0 },
			[]float64{3, 4, 3},
			nil,
			[]int{1},
		},
		"top-k of 2": {func(s *sample.Sampling) { s.TopK = 2 }, []float64{2, 4, 1, 3}, nil, []int{
			1,
			3,
		}},
		"top-p":             {func(s *sample.Sampling) { s.TopP = .65 }, four, nil, []int{0, 1}},
		"top-p of 0":        {func(s *sample.Sampling) { s.TopP = 0 }, four, nil, []int{0}},
		"min-p":             {func(s *sample.Sampling) { s.MinP = .45 }, four, nil, []int{0, 1, 2}},
		"top-p after top-k": {func(s *sample.Sampling) { s.TopK, s.TopP = 2, .55 }, four, nil, []int{0}},
		"the penalty comes before top-k": {
			func(s *sample.Sampling) { s.TopK, s.RepeatPenalty, s.RepeatLastN = 1, 1.5, 4 },
			[]float64{3, 2.5, -1},
			[]int{0},
			[]int{1},
		},
		"a penalty on a negative logit": {
			func(s *sample.Sampling) { s.Temperature, s.RepeatPenalty, s.RepeatLastN = 0, 1.5, 4 },
			[]float64{-1, -1.4, -3},
			[]int{0, 0},
			[]int{1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := sample.Sampler{Sampling: plain()}
			test.set(&s.Sampling)
			list, sum := ranked(test.logits)
			var got []int
			for position := range 200 {
				id, ok := s.Draw(list, sum, true, test.recent, position)
				if !ok {
					t.Fatal("all logits were reported as not enough")
				}
				if !slices.Contains(got, id) {
					got = append(got, id)
				}
			}
			if slices.Sort(got); !slices.Equal(got, test.want) {
				t.Errorf("drew %v, want %v", got, test.want)
			}
		})
	}
}

// Tokens are drawn with their probabilities, at any temperature.
func TestTokenFrequenciesMatchProbabilities(t *testing.T) {
	const n = 20000
	list, sum := ranked([]float64{1, 0.5, 0, -1, math.Inf(-1)})
	for _, temperature := range []float64{0.5, 1, 2} {
		s := sample.Sampler{Sampling: plain()}
		s.Temperature = temperature
		counts := make([]int, len(list))
		for position := range n {
			id, _ := s.Draw(list, sum, true, nil, position)
			counts[id]++
		}
		whole := 0.0
		for _, c := range list {
			whole += math.Exp(c.Logit / temperature)
		}
		for id, c := range list {
			want := math.Exp(c.Logit/temperature) / whole
			if got := float64(counts[id]) / n; math.Abs(got-want) > 4*math.Sqrt(want*(1-want)/n) {
				t.Errorf("temperature %v: token %d in %.4f of draws, want %.4f", temperature, id, got, want)
			}
		}
	}
}

// Sampling from the highest logits gives the same token as sampling from all, or reports that they are not
// enough.
func TestFewLogitsGiveWhatAllGive(t *testing.T) {
	enough := 0
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 300).Draw(t, "vocabulary")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "logits"), 0))
		logits := make([]float64, n)
		for i := range logits {
			logits[i] = float64(float32(random.NormFloat64() * 3))
		}
		s := sample.Sampler{Sampling: sample.Sampling{
			Temperature: rapid.SampledFrom([]float64{0, 0.5, 1}).Draw(t, "temperature"),
			TopK:        rapid.SampledFrom([]int{0, 1, 40, 64, 100}).Draw(t, "k"),
			TopP:        rapid.SampledFrom([]float64{0.5, 0.95, 1}).Draw(t, "p"),
			MinP:        rapid.SampledFrom([]float64{0, 0.05}).Draw(t, "min p"), RepeatLastN: 64,
			RepeatPenalty: rapid.SampledFrom([]float64{1, 1.1, 3}).Draw(t, "penalty"),
		}}
		recent := rapid.SliceOfN(rapid.IntRange(0, n-1), 0, 64).Draw(t, "recent")
		list, sum := ranked(logits)
		k := min(max(1, s.Candidates()), n)
		got, ok := s.Draw(list[:k], sum, k == n, recent, 7)
		if !ok {
			return
		}
		enough++
		if want, _ := s.Draw(list, sum, true, recent, 7); got != want {
			t.Fatalf("token %d of %d candidates, %d of all", got, k, want)
		}
	})
	if enough < 5 { // of 100 draws, or of 20 with the race detector
		t.Errorf("the highest logits were enough %d times", enough)
	}
}

// TopP is a share of what TopK keeps. If some of those logits were not read, the sampler cannot know where
// the share ends.
func TestShareAboveTheReadLogitsNeedsAll(t *testing.T) {
	const k = basic.MaxTopK + 36
	logits := make([]float64, 1000)
	for i := range logits {
		logits[i] = -float64(i) / 1e6
	}
	s := sample.Sampler{Sampling: plain()}
	s.TopK, s.TopP = k, .05 // 5 % of k candidates are 5 tokens; 5 % of all would be 50
	list, sum := ranked(logits)
	for position := range 20 {
		if id, ok := s.Draw(list[:basic.MaxTopK], sum, false, nil, position); ok {
			t.Fatalf("token %d from %d candidates, but %d share the probability", id, basic.MaxTopK, k)
		}
		if id, _ := s.Draw(list, sum, true, nil, position); id >= 6 {
			t.Fatalf("token %d, want one of the first 5 of %d", id, k)
		}
	}
}

func TestPenaltyThatReordersNeedsAllLogits(t *testing.T) {
	logits := make([]float64, 200)
	recent := make([]int, basic.MaxTopK)
	for i := range logits {
		logits[i] = 9 - float64(i)/100
	}
	for i := range recent {
		recent[i] = i
	}
	s := sample.Sampler{Sampling: sample.Sampling{RepeatPenalty: 2, RepeatLastN: 64}}
	list, sum := ranked(logits)
	if id, ok := s.Draw(list[:basic.MaxTopK], sum, false, recent, 0); ok {
		t.Errorf("token %d, although all read logits are penalised", id)
	}
	if id, _ := s.Draw(list, sum, true, recent, 0); id != basic.MaxTopK {
		t.Errorf("token %d, want the first that is not penalised, %d", id, basic.MaxTopK)
	}
}

func TestSettingsOutOfTheirRangeAreRefused(t *testing.T) {
	golden := wordingtest.New(t)
	for name, set := range map[string]func(*sample.Sampling){
		"a negative temperature":  func(s *sample.Sampling) { s.Temperature = -0.5 },
		"a temperature of NaN":    func(s *sample.Sampling) { s.Temperature = math.NaN() },
		"an infinite temperature": func(s *sample.Sampling) { s.Temperature = math.Inf(1) },
		"a negative k":            func(s *sample.Sampling) { s.TopK = -1 },
		"p over 1":                func(s *sample.Sampling) { s.TopP = 1.5 },
		"a negative p":            func(s *sample.Sampling) { s.MinP = -1 },
		"a penalty below 1":       func(s *sample.Sampling) { s.RepeatPenalty = 0.5 },
		"a negative length":       func(s *sample.Sampling) { s.RepeatLastN = -2 },
	} {
		s := plain()
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		set(&s)
		err := s.Check()
		if !errors.Is(err, session.ErrUsage) {
			t.Errorf("%s: %v", name, err)
		}
		golden.Error(name, err)
	}
}
