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

// Sampling says how a step picks its token. The zero value takes the highest logit.
//
// The order is that of llama.cpp's default chain. Tokens that the text had lately are penalised: a logit
// above 0 is divided by the penalty, another multiplied. Of all tokens the TopK highest stay, of these the
// likeliest that together have the probability TopP, of these those that are MinP times as likely as the
// first or more. Probabilities are those of what the step before left, at temperature 1. The temperature
// divides the logits of what is left, and one of these is drawn.
type Sampling struct {
	Temperature   float64 // 0: the highest
	TopK          int     // 0: all
	TopP          float64 // 1: all
	MinP          float64 // 0: all
	RepeatPenalty float64 // 1: none
	RepeatLastN   int     // tokens of the text, prompt included, that the penalty looks back over; -1: all
	// Seed and the position alone decide what is drawn: a step back and on gives the same token.
	Seed uint32
}

// Check says which setting is out of its range, by the flag that has it.
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
		{"temp", s.Temperature, 0, math.MaxFloat64, "0 (the highest logit) or more"},
		{"top-k", float64(s.TopK), 0, math.MaxInt, "0 (all tokens) or more"},
		{"top-p", s.TopP, 0, 1, "0 (the likeliest alone) to 1 (all tokens)"},
		{"min-p", s.MinP, 0, 1, "0 (all tokens) to 1"},
		{"repeat-penalty", s.RepeatPenalty, 1, math.MaxFloat64, "1 (none) or more"},
		{"repeat-last-n", float64(s.RepeatLastN), -1, math.MaxInt, "0 (none) or more, or -1 for all"},
	} {
		if !(row.value >= row.least && row.value <= row.most) { // a NaN is neither
			return session.Refusef("--%s %v: want %s", row.flag, row.value, row.want)
		}
	}
	return nil
}

// Penalises says whether logits depend on the text before them.
func (s *Sampling) Penalises() bool { return s.RepeatPenalty > 1 && s.RepeatLastN != 0 }

// Greedy says that the highest logit is the token, whatever else there is.
func (s *Sampling) Greedy() bool { return s.Temperature == 0 && !s.Penalises() }

// keeps is how many tokens there are at most to draw from; 0: that depends on the logits.
func (s *Sampling) keeps() int {
	if s.Temperature == 0 {
		return 1
	}
	return s.TopK
}

// Candidates is how many of the highest logits a step reads back for it. A penalty lets others come up, and
// what it needs without a bound is mostly among these too; where it is not all logits are read.
func (s *Sampling) Candidates() int {
	switch k := s.keeps(); {
	case s.Greedy():
		return 0
	case k > 0 && k < basic.MaxTopK && !s.Penalises():
		return k
	}
	return basic.MaxTopK
}

// Record is it as the steps of a trace have it, nil where the highest logit is the token.
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

// option is a token that may be drawn.
type option struct {
	id        int
	logit     float64 // after the penalty
	penalised bool
}

// Sampler draws tokens. Its buffers are used again from step to step.
type Sampler struct {
	Sampling
	options []option
	recent  map[int]bool
}

// Draw picks the token of a position from the highest logits, best first, whose exp(logit - highest) of the
// whole vocabulary add up to sum. all says that none are left out. It is false where tokens that were left
// out might be drawn: then it wants them all.
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
		// No other logit is over the lowest in the list, and a penalty has only made them less.
		if last := left[len(left)-1]; !all && last.penalised && last.logit <= list[len(list)-1].Logit {
			return 0, false
		}
		all, sum = true, weigh(left, 1)
	} else if s.Penalises() || k > 0 && s.TopP < 1 { // which sum counts is not known of a part
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

// penalise makes tokens that the text had lately less likely.
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

// weigh adds up how likely options are at a temperature, the first one 1.
func weigh(list []option, temperature float64) (sum float64) {
	for _, o := range list {
		sum += math.Exp((o.logit - list[0].logit) / temperature)
	}
	return sum
}

// Pick takes one of the options, which stand best first, by chance. What chance says depends on nothing but
// the seed and the position.
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
	return left[0].id // rounding has left a little of the sum
}
