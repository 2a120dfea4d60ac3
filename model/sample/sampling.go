package sample

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"gpuscope/ops/basic"
	"gpuscope/session"
	"gpuscope/trace"
)

// Sampling selects how a step picks its token. The zero value picks the token with the highest logit.
//
// The stages have the same order as in llama.cpp's default sampler chain. First the repeat penalty is applied
// to the tokens that occurred recently: positive logits are divided by the penalty, and all others are
// multiplied by the penalty. Then top-k keeps the TopK highest logits. Top-p keeps the most likely tokens
// whose probabilities together reach TopP. Min-p keeps the tokens that are at least MinP times as likely as
// the first token. The probabilities at each stage are those of the tokens that the previous stage kept, at
// temperature 1. Finally the remaining logits are divided by the temperature, and one token is drawn at
// random.
type Sampling struct {
	Temperature   float64 // 0: pick the token with the highest logit
	TopK          int     // 0: keep all tokens
	TopP          float64 // 1: keep all tokens
	MinP          float64 // 0: keep all tokens
	RepeatPenalty float64 // 1: no penalty
	// RepeatLastN is the number of tokens at the end of the text, including the prompt, to which the penalty
	// applies; -1 for all tokens.
	RepeatLastN int
	// The random number of a step depends only on Seed and on the position of the step. A step therefore
	// draws the same token if the user steps back and runs it again.
	Seed uint32
}

// Check returns an error if a setting is out of range. The error names the flag of the setting.
func (s *Sampling) Check() error {
	if *s == (Sampling{}) {
		return nil
	}
	for _, row := range []struct {
		flag  string
		value float64
		least float64
		most  float64
		want  string
	}{
		{"temp", s.Temperature, 0, math.MaxFloat64, "0 (always the most likely token) or more"},
		{"top-k", float64(s.TopK), 0, math.MaxInt, "0 (all tokens) or more"},
		{"top-p", s.TopP, 0, 1, "0 (only the most likely token) to 1 (all tokens)"},
		{"min-p", s.MinP, 0, 1, "0 (all tokens) to 1"},
		{"repeat-penalty", s.RepeatPenalty, 1, math.MaxFloat64, "1 (no penalty) or more"},
		{"repeat-last-n", float64(s.RepeatLastN), -1, math.MaxInt, "0 (no tokens) or more, or -1 for all tokens"},
	} {
		if !(row.value >= row.least && row.value <= row.most) { // refuses NaN too
			return session.Refusef("--%s %v: want %s", row.flag, row.value, row.want)
		}
	}
	return nil
}

// Penalises reports whether the repeat penalty changes logits, so that they depend on the tokens that
// occurred recently.
func (s *Sampling) Penalises() bool { return s.RepeatPenalty > 1 && s.RepeatLastN != 0 }

// Greedy reports whether the token is always the one with the highest logit.
func (s *Sampling) Greedy() bool { return s.Temperature == 0 && !s.Penalises() }

// keeps returns the maximum number of tokens among which the next token is drawn, or 0 for no maximum.
func (s *Sampling) keeps() int {
	if s.Temperature == 0 {
		return 1
	}
	return s.TopK
}

// Candidates returns how many of the highest logits a step reads back for sampling. If there is a repeat
// penalty or TopK is 0 or large, the step reads basic.MaxTopK logits. In the rare case that the drawn token
// might not be among these, the step reads all logits.
func (s *Sampling) Candidates() int {
	switch k := s.keeps(); {
	case s.Greedy():
		return 0
	case k > 0 && k < basic.MaxTopK && !s.Penalises():
		return k
	}
	return basic.MaxTopK
}

// Record returns the options in the format of a trace's steps. It returns nil for greedy sampling.
func (s *Sampling) Record() map[string]any {
	if s.Greedy() {
		return nil
	}
	all := map[string]any{"temperature": s.Temperature}
	if s.Temperature > 0 {
		all["top_k"], all["top_p"], all["min_p"] = float64(s.TopK), s.TopP, s.MinP
		all["seed"] = float64(s.Seed)
	}
	if s.Penalises() {
		all["repeat_penalty"], all["repeat_last_n"] = s.RepeatPenalty, float64(s.RepeatLastN)
	}
	return all
}

type option struct {
	id        int
	logit     float64 // after the penalty
	penalised bool
}

// Sampler draws tokens. Its buffers are reused from step to step.
type Sampler struct {
	Sampling
	options []option
	recent  map[int]bool
}

// Draw picks the token for a position. `list` has the highest logits in descending order. `sum` is the sum of
// exp(logit - highest) over the whole vocabulary. `all` is true if the list contains every token of the
// vocabulary. If `ok` is false, a token outside the list might be drawn, and the caller must call Draw again
// with all tokens.
func (s *Sampler) Draw(list []trace.Candidate, sum float64, all bool, recent []int, position int) (token int,
	ok bool,
) {
	s.options = s.options[:0]
	for _, c := range list {
		s.options = append(s.options, option{id: c.ID, logit: c.Logit})
	}
	if s.Penalises() {
		s.penalise(recent)
	}
	left := s.options
	if k := s.keeps(); k > 0 && (all || k <= len(left)) {
		left = left[:min(k, len(left))]
		// A logit that is not in the list is at most as high as the lowest logit in the list. The penalty can
		// only make it lower.
		if last := left[len(left)-1]; !all && last.penalised && last.logit <= list[len(list)-1].Logit {
			return 0, false
		}
		all, sum = true, weigh(left, 1)
	} else if s.Penalises() || k > 0 && s.TopP < 1 { // computing the sum requires all tokens
		if !all {
			return 0, false
		}
		sum = weigh(left, 1)
	}
	if s.TopP < 1 {
		n, mass := 0, 0.0
		for ; n < len(left) && (n == 0 || mass < s.TopP*sum); n++ {
			mass += math.Exp(left[n].logit - left[0].logit)
		}
		all = all || mass >= s.TopP*sum
		left = left[:n]
	}
	if s.MinP > 0 {
		least := left[0].logit + math.Log(s.MinP)
		n := 1 + slices.IndexFunc(left[1:], func(o option) bool { return o.logit < least })
		if n > 0 {
			all, left = true, left[:n]
		}
	}
	if !all {
		return 0, false
	}
	return s.Pick(left, position), true
}

// penalise applies the repeat penalty to the tokens in `recent`.
func (s *Sampler) penalise(recent []int) {
	if s.recent == nil {
		s.recent = map[int]bool{}
	}
	clear(s.recent)
	for _, id := range recent {
		s.recent[id] = true
	}
	for i := range s.options {
		o := &s.options[i]
		if !s.recent[o.id] {
			continue
		}
		o.penalised = true
		if o.logit > 0 {
			o.logit /= s.RepeatPenalty
		} else {
			o.logit *= s.RepeatPenalty
		}
	}
	slices.SortFunc(s.options, func(a, b option) int {
		return cmp.Or(cmp.Compare(b.logit, a.logit), cmp.Compare(a.id, b.id))
	})
}

// weigh returns the sum of the weights of the options. The weight of an option is proportional to its
// probability at the given temperature. The first option has weight 1.
func weigh(list []option, temperature float64) (sum float64) {
	for _, o := range list {
		sum += math.Exp((o.logit - list[0].logit) / temperature)
	}
	return sum
}

// Pick draws one of the options, which must be in descending order. The random number depends only on the
// seed and the position.
func (s *Sampler) Pick(left []option, position int) int {
	if len(left) == 1 {
		return left[0].id
	}
	chance := rand.New(rand.NewPCG(uint64(s.Seed), uint64(position))).Float64()
	to := chance * weigh(left, s.Temperature)
	for _, o := range left {
		if to -= math.Exp((o.logit - left[0].logit) / s.Temperature); to < 0 {
			return o.id
		}
	}
	return left[0].id // reached only by rounding errors
}
