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

// Selection is the steps that a table covers: one step, or several whose times are summed up by their
// medians. All steps of a selection did the same work by the same routes. Cold steps are excluded, unless
// all are cold.
type Selection struct {
	Steps []int // indices into Trace.Steps, rising
	Name  string
	Cold  int // cold steps left out
	// AllCold reports that the steps are cold because there were no others.
	AllCold bool
	// Rerouted are the steps left out that took other routes than the step Like, of those left the last. The
	// last of them is Unlike.
	Rerouted     int
	Like, Unlike string
	// Which is the one step of a phase that has others, which are cold: "s1", and Chunk, of a prompt that was
	// read in several, which of these that is: "chunk 2 of 2".
	Which, Chunk string
}

// SelectionWords says what ParseScope reads, for a help text.
const SelectionWords = "a step (17), a range (3-17), last, prefill, decode, execute or all"

// One returns the step of a selection of one step.
func (s Selection) One() (step int, one bool) {
	if len(s.Steps) != 1 {
		return -1, false
	}
	return s.Steps[0], true
}

// Last is the last step of a selection, which is shown where one step is needed.
func (s Selection) Last() int { return s.Steps[len(s.Steps)-1] }

// Step is the selection of one step, an index into Trace.Steps.
func (x *Index) Step(step int) Selection {
	return Selection{Steps: []int{step}, Name: fmt.Sprintf("s%d", x.Trace.Steps[step].Index)}
}

// All is the selection of every step that is not cold.
func (x *Index) All() Selection {
	return x.several("all", 0, len(x.Trace.Steps))
}

// Phase selects the warm steps of a phase; it may have no steps.
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

// chunk is which step of its prompt a step is, from 1 on, and of how many.
func (x *Index) chunk(step int) (k, of int) {
	steps := x.Trace.Steps
	goesOn := func(i int) bool { // from the step before
		return i > 0 && i < len(steps) && steps[i].Phase == trace.Prefill &&
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

// Range is the selection of the steps from an index to another, both in it, that are not cold.
func (x *Index) Range(from, to int) Selection {
	steps := x.Trace.Steps
	if from == to {
		return x.Step(from)
	}
	name := fmt.Sprintf("s%d–s%d", steps[from].Index, steps[to].Index)
	return x.several(name, from, to+1)
}

// Called is the name of a selection in a list of several things.
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

// Short is a short name of a selection.
func (s Selection) Short() string {
	chunk, _, _ := strings.Cut(s.Chunk, " of ")
	return cmp.Or(chunk, s.Which, s.Name)
}

// several is a selection of the steps from one index to before another.
func (x *Index) several(name string, from, to int) Selection {
	var k StepGroup
	for i := from; i < to; i++ {
		k = k.With(i, x.Trace.Steps[i].Cold)
	}
	return k.Selection(name)
}

// With returns the group with one more step.
func (k StepGroup) With(step int, cold bool) StepGroup {
	if cold {
		k.cold = append(k.cold, step)
	} else {
		k.warm = append(k.warm, step)
	}
	return k
}

// Selection has the steps that are not cold, or if there are none those that are.
func (k StepGroup) Selection(name string) Selection {
	if len(k.warm) == 0 {
		return Selection{Name: name, Steps: slices.Clip(k.cold), AllCold: len(k.cold) > 0}
	}
	return Selection{Name: name, Steps: slices.Clip(k.warm), Cold: len(k.cold)}
}

// Regridded reports whether a step gave a dispatch another grid or route, or had one come or go.
func (x *Index) Regridded(step int) bool {
	_, in := slices.BinarySearch(x.RegriddedSteps, step)
	return in
}

// Regrids say which steps of a selection gave a dispatch another grid or route, or had one come or go.
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
		return "no grid changes in them"
	}
	return "grids change in " + SomeOf(names)
}

// ParseSelection reads the name of a selection: the number of a step with or without its s, a range of two of
// them, last, a phase, or all. Steps are named by Step.Index. What the trace has not is an error that says
// what it has.
func (x *Index) ParseSelection(word string) (Selection, error) {
	steps := x.Trace.Steps
	if len(steps) == 0 {
		return Selection{}, fmt.Errorf("the trace has no steps")
	}
	refuse := func(what string) (Selection, error) {
		return Selection{}, fmt.Errorf("%q: %s; the trace has s%d to s%d", printable.Short(word, 40), what,
			steps[0].Index, steps[len(steps)-1].Index)
	}
	switch {
	case word == "last":
		return x.Step(len(steps) - 1), nil
	case word == "all":
		return x.All(), nil
	case slices.Contains(trace.Phases, trace.Phase(word)):
		s := x.Phase(trace.Phase(word))
		if len(s.Steps) == 0 {
			return refuse("no step has that phase")
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
		return refuse("want " + SelectionWords)
	}
	i := sort.Search(len(steps), func(i int) bool { return steps[i].Index >= from })
	j := sort.Search(len(steps), func(i int) bool { return steps[i].Index > to })
	switch {
	case i >= j && isRange:
		return refuse("no step is in that range")
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

// Counted is the name of a selection with its number of steps.
func (s Selection) Counted() string {
	if s.Rerouted > 0 {
		return fmt.Sprintf("%s n=%d of %d", s.Name, len(s.Steps), len(s.Steps)+s.Cold+s.Rerouted)
	}
	return fmt.Sprintf("%s n=%d", s.Name, len(s.Steps))
}

// Chosen reports whether several steps were selected, counting excluded ones.
func (s Selection) Chosen() bool { return len(s.Steps)+s.Cold+s.Rerouted > 1 }

// Routed are options for a table that adds steps up: of its selection and of its baseline's those on the
// routes of their last.
func (o Options) Routed(x *Index) Options {
	o.Selection = x.Routed(o.Selection)
	if b := o.Baseline; b != nil {
		o.Baseline = &Baseline{b.Index, b.Index.Routed(b.Selection)}
	}
	return o
}

// Routed is a selection without the steps that took other routes than the last with as many tokens: what such
// steps take adds up to no step that there is.
func (x *Index) Routed(s Selection) Selection {
	other := func(step int) bool { return x.routes[step] != x.routes[s.Last()] }
	if !slices.ContainsFunc(s.Steps, other) { // as most often, in each frame
		return s
	}
	steps := x.Trace.Steps
	like, unlike := map[int]int{}, -1 // by the number of tokens, the step of the routes
	kept := make([]int, 0, len(s.Steps))
	for _, step := range slices.Backward(s.Steps) {
		tokens := len(steps[step].Tokens)
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
