package analyze

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"gpuscope/internal/printable"
	"gpuscope/trace"
)

// Selection is the set of steps that a table covers. If it has several steps, the table shows medians. A
// table that adds up several steps uses Index.Routed first, so that all steps with the same number of
// tokens took the same routes. Cold steps are excluded, unless all steps are cold.
type Selection struct {
	Steps []int // indices into Trace.Steps, ascending
	Name  string
	Cold  int // number of excluded cold steps
	// AllCold reports that Steps holds cold steps, because there were no warm ones.
	AllCold bool
	// Rerouted is the number of steps that Index.Routed excluded. Their routes differ from those of the
	// last step with the same number of tokens. Like is the name of the last step of the selection. Unlike
	// is the name of the last step that Index.Routed excluded.
	Rerouted     int
	Like, Unlike string
	// SameTokens excluded a number of steps, Apart. Each of the others read a number of tokens, Tokens.
	Apart, Tokens int
	// Which is the name of the only warm step, such as "s1", if the selection is a phase that also has cold
	// steps. Otherwise it is empty. If the prompt was read in several chunks, Chunk says which one this step
	// read: "chunk 2 of 2".
	Which, Chunk string
}

// SelectionWords says in a help text what ParseSelection accepts.
const SelectionWords = "a step (17), a range (3-17), last, prefill, decode, execute or all"

// One returns the only step of the selection. It returns false if the selection has several steps or none.
func (s Selection) One() (step int, one bool) {
	if len(s.Steps) != 1 {
		return -1, false
	}
	return s.Steps[0], true
}

// Last returns the last step of the selection. Views that can show only one step show this step.
func (s Selection) Last() int { return s.Steps[len(s.Steps)-1] }

// Step returns a selection of one step. `step` is an index into Trace.Steps.
func (x *Index) Step(step int) Selection {
	return Selection{Steps: []int{step}, Name: fmt.Sprintf("s%d", x.Trace.Steps[step].Index)}
}

// All returns a selection of all warm steps.
func (x *Index) All() Selection {
	return x.several("all", 0, len(x.Trace.Steps))
}

// Phase returns a selection of the warm steps of a phase. If the phase has no steps, the selection is empty.
func (x *Index) Phase(phase trace.Phase) Selection {
	s := x.phases[phase].Selection(string(phase))
	if step, one := s.One(); one && s.Cold > 0 {
		s.Which = fmt.Sprintf("s%d", x.Trace.Steps[step].Index)
		if k, of := x.chunk(step); of > 1 {
			s.Chunk = fmt.Sprintf("chunk %d of %d", k, of)
		}
	}
	return s
}

// A prompt may be read in several chunks, one for each step. chunk returns the number of a step's chunk,
// counted from 1, and the number of chunks of the prompt.
func (x *Index) chunk(step int) (k, of int) {
	steps := x.Trace.Steps
	goesOn := func(i int) bool { // whether step i reads the next chunk of the prompt that step i-1 read
		return x.Trace.Engine == "" && i > 0 && i < len(steps) && steps[i].Phase == trace.Prefill &&
			steps[i-1].Phase == trace.Prefill &&
			steps[i].Position == steps[i-1].Position+len(steps[i-1].Tokens)
	}
	first, last := step, step
	for goesOn(first) {
		first--
	}
	for goesOn(last + 1) {
		last++
	}
	return step - first + 1, last - first + 1
}

// Range returns a selection of the warm steps with an index in the closed interval [from, to].
func (x *Index) Range(from, to int) Selection {
	steps := x.Trace.Steps
	if from == to {
		return x.Step(from)
	}
	name := fmt.Sprintf("s%d–s%d", steps[from].Index, steps[to].Index)
	return x.several(name, from, to+1)
}

// Called returns the full name of the selection, such as "decode" or "prefill s1, chunk 2 of 2".
func (s Selection) Called() string {
	name := s.Name
	if s.Which != "" {
		name += " " + s.Which
	}
	if s.Chunk != "" {
		name += ", " + s.Chunk
	}
	return name
}

// Short returns the shortest name of the selection, such as "chunk 2", "s1" or "decode".
func (s Selection) Short() string {
	chunk, _, _ := strings.Cut(s.Chunk, " of ")
	return cmp.Or(chunk, s.Which, s.Name)
}

// several returns a selection of the warm steps with an index in the half-open interval [from, to).
func (x *Index) several(name string, from, to int) Selection {
	var k StepGroup
	for i := from; i < to; i++ {
		k = k.With(i, x.Trace.Steps[i].Cold)
	}
	return k.Selection(name)
}

// With returns a group that has one step more than k.
func (k StepGroup) With(step int, cold bool) StepGroup {
	if cold {
		k.cold = append(k.cold, step)
	} else {
		k.warm = append(k.warm, step)
	}
	return k
}

// Selection returns a selection of the warm steps of the group, or of the cold steps if there are no warm
// steps.
func (k StepGroup) Selection(name string) Selection {
	if len(k.warm) == 0 {
		return Selection{Name: name, Steps: slices.Clip(k.cold), AllCold: len(k.cold) > 0}
	}
	return Selection{Name: name, Steps: slices.Clip(k.warm), Cold: len(k.cold)}
}

// Regridded reports whether a step is one of RegriddedSteps.
func (x *Index) Regridded(step int) bool {
	_, in := slices.BinarySearch(x.RegriddedSteps, step)
	return in
}

// Regrids names the steps of a selection that are in RegriddedSteps.
func (x *Index) Regrids(s Selection) string {
	var names []string
	rest := s.Steps
	for _, step := range x.RegriddedSteps {
		i, in := slices.BinarySearch(rest, step)
		if rest = rest[i:]; in {
			names = append(names, fmt.Sprintf("s%d", x.Trace.Steps[step].Index))
		}
	}
	if names == nil {
		return "selection: no grid changes"
	}
	return "selection: grids change in " + SomeOf(names)
}

// ParseSelection parses a selection: the number of a step with or without "s", a range of two numbers,
// "last", a phase, or "all". A number means Step.Index. If the trace has no such step, the error names the
// steps that it has.
func (x *Index) ParseSelection(word string) (Selection, error) {
	steps := x.Trace.Steps
	if len(steps) == 0 {
		return Selection{}, fmt.Errorf("the trace has no steps")
	}
	refuse := func(what string) (Selection, error) {
		return Selection{}, fmt.Errorf("%q: %s; the trace has steps s%d to s%d",
			printable.Short(word, 40), what, steps[0].Index, steps[len(steps)-1].Index)
	}
	switch {
	case word == "last":
		return x.Step(len(steps) - 1), nil
	case word == "all":
		return x.All(), nil
	case slices.Contains(trace.Phases, trace.Phase(word)):
		s := x.Phase(trace.Phase(word))
		if len(s.Steps) == 0 {
			return refuse("no step belongs to this phase")
		}
		return s, nil
	}
	first, second, isRange := strings.Cut(word, "-")
	from, err := stepNumber(first)
	to := from
	if err == nil && isRange {
		to, err = stepNumber(second)
	}
	if err != nil {
		return refuse("expected " + SelectionWords)
	}
	i := sort.Search(len(steps), func(i int) bool { return steps[i].Index >= from })
	j := sort.Search(len(steps), func(i int) bool { return steps[i].Index > to })
	switch {
	case i >= j && isRange:
		return refuse("no step is in this range")
	case i >= j:
		return refuse("no such step")
	case !isRange:
		return x.Step(i), nil
	}
	return x.Range(i, j-1), nil
}

func stepNumber(s string) (int, error) {
	return strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(s), "s"))
}

// Counted returns the name of the selection with the number of its steps, such as "decode n=26".
func (s Selection) Counted() string {
	if s.Rerouted+s.Apart > 0 {
		return fmt.Sprintf("%s n=%d of %d", s.Name, len(s.Steps), s.All())
	}
	return fmt.Sprintf("%s n=%d", s.Name, len(s.Steps))
}

// Chosen reports whether the selection was made from several steps. Excluded steps count too.
func (s Selection) Chosen() bool { return s.All() > 1 }

// All returns the number of steps that the selection was made from, with the excluded ones.
func (s Selection) All() int { return len(s.Steps) + s.Cold + s.Rerouted + s.Apart }

// TokensRead returns the number of tokens that a step read. It is 0 if it is not known.
func TokensRead(s *trace.Step) int {
	return cmp.Or(len(s.Tokens), int(s.SymInts["seq"])) // a profile of another engine has only the number
}

// SameTokens narrows a selection and its baseline to steps that read one number of tokens, because times of
// different work cannot be added or compared. Of the numbers that occur on both sides, it is the one that
// most selected steps read. If none occurs on both, each side keeps the number of tokens of its last step.
func SameTokens(x *Index, s Selection, base *Index, b Selection) (Selection, Selection) {
	now, was := x.tokenCounts(s), base.tokenCounts(b)
	if len(now) <= 1 && len(was) <= 1 { // the usual case
		return s, b
	}
	if n := mostFrequent(now, was); n >= 0 {
		return x.reading(s, n), base.reading(b, n)
	}
	last := func(x *Index, s Selection) int { return TokensRead(&x.Trace.Steps[s.Last()]) }
	return x.reading(s, last(x, s)), base.reading(b, last(base, b))
}

// tokenCounts returns, for each number of tokens, how many steps read it.
func (x *Index) tokenCounts(s Selection) map[int]int {
	counts := make(map[int]int, 1)
	for _, step := range s.Steps {
		counts[TokensRead(&x.Trace.Steps[step])]++
	}
	return counts
}

// mostFrequent returns the number with the largest count, of those that `also` has, or -1 if it has none.
func mostFrequent(counts, also map[int]int) int {
	most := -1
	for n, k := range counts {
		if also[n] > 0 && (most < 0 || k > counts[most] || k == counts[most] && n > most) {
			most = n
		}
	}
	return most
}

// reading keeps the steps that read n tokens.
func (x *Index) reading(s Selection, n int) Selection {
	other := func(step int) bool { return TokensRead(&x.Trace.Steps[step]) != n }
	kept := slices.DeleteFunc(slices.Clone(s.Steps), other)
	s.Apart, s.Tokens, s.Steps = s.Apart+len(s.Steps)-len(kept), n, kept
	return s
}

// Routed returns the options for a table that adds up several steps. It applies Index.Routed to the selection
// and to the baseline and, if a user chose the baseline, first SameTokens.
func (o Options) Routed(x *Index) Options {
	if b := o.Baseline; b != nil {
		of := b.Selection
		if b.Chosen() {
			o.Selection, of = SameTokens(x, o.Selection, b.Index, of)
		}
		o.Baseline = &Baseline{b.Index, b.Index.Routed(of), b.Default}
	}
	o.Selection = x.Routed(o.Selection)
	return o
}

// Routed removes steps from a selection so that all steps with the same number of tokens took the same
// routes. For each number of tokens, it keeps the last step, and the earlier steps whose routes are the same
// as those of the last step. The reason is that a sum over different routes would describe no step that ever
// ran.
func (x *Index) Routed(s Selection) Selection {
	other := func(step int) bool { return x.routes[step] != x.routes[s.Last()] }
	if !slices.ContainsFunc(s.Steps, other) { // the usual case, which must be fast: it runs for each frame
		return s
	}
	steps := x.Trace.Steps
	like, unlike := map[int]int{}, -1 // like holds, for each number of tokens, the routes of the last step
	kept := make([]int, 0, len(s.Steps))
	for _, step := range slices.Backward(s.Steps) {
		tokens := TokensRead(&steps[step])
		last, there := like[tokens]
		if !there {
			last = x.routes[step]
			like[tokens] = last
		}
		if x.routes[step] == last {
			kept = append(kept, step)
		} else if unlike < 0 {
			unlike = step
		}
	}
	if n := len(s.Steps) - len(kept); n > 0 {
		slices.Reverse(kept)
		s.Steps, s.Rerouted, s.Like = kept, n, fmt.Sprintf("s%d", steps[s.Last()].Index)
		s.Unlike = fmt.Sprintf("s%d", steps[unlike].Index)
	}
	return s
}
