package experts

import (
	"context"
	"math"
	"slices"

	"gpuscope/trace"
	"gpuscope/trace/analyze"
)

// Kind is the kind of operator that chooses the experts of each token.
const Kind = "router"

// Router is how one router divided the tokens of the selected steps among its experts.
type Router struct {
	ID      trace.OpID
	Op      *trace.Op
	Experts int // number of experts
	Chosen  int // number of experts that each token uses
	Steps   int // number of selected steps in which the router ran
	// Modelled is set if a step did not record the choices. The numbers of that step are then those that are
	// expected if all experts are chosen equally often.
	Modelled bool
	// Tokens has the number of tokens of each expert. Tokens and Padded are sums over the steps.
	Tokens []float64
	// Padded has, for each expert, the number of tile rows that hold no token, summed over the dispatches.
	Padded []float64
	// Active is the number of experts with tokens. Largest is the number of tokens of the busiest expert,
	// divided by the mean of all experts. Both are means over the steps.
	Active, Largest float64
	Dispatches      []Dispatch // the dispatches whose work depends on the choice, in order of the graph
}

// Dispatch is a dispatch that multiplies tokens by the weights of the chosen experts. The numbers are sums
// over the selected steps.
type Dispatch struct {
	ID       trace.DispatchID
	Rows     int     // number of rows of a tile in the last step
	Filled   float64 // number of tile rows that hold a token
	Padded   float64 // number of tile rows that hold no token
	Launched int64   // number of launched workgroups
	Idle     float64 // workgroups that exit at once, because there is no tile for them
	NS       float64 // isolated time in ns, summed over the steps in which it was measured
	Timed    int     // number of steps in which NS was measured
	// PaddedNS is the part of NS that padding takes if all rows of a tile take equally long. It is modelled.
	PaddedNS float64
}

// Of returns the routers of a selection, in the order of the graph. It returns nil if the graph has none.
func Of(ctx context.Context, x *analyze.Index, selection analyze.Selection) ([]*Router, error) {
	s := steps{x: x, byOp: map[trace.OpID]*Router{}, places: map[trace.DispatchID]place{}}
	for i := range x.Trace.Graph.Ops {
		o := &x.Trace.Graph.Ops[i]
		n, k := attr(o, "experts"), attr(o, "k")
		if o.Kind != Kind || n < 1 || n > maxExperts || k < 1 || k > n {
			continue
		}
		r := &Router{
			ID: trace.OpID(i), Op: o, Experts: n, Chosen: k, Tokens: make([]float64, n),
			Padded: make([]float64, n),
		}
		s.list, s.byOp[r.ID] = append(s.list, r), r
	}
	if s.list == nil {
		return nil, nil
	}
	s.findDispatches()
	for _, step := range selection.Steps {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s.add(step)
	}
	for _, r := range s.list {
		r.Active /= float64(max(r.Steps, 1))
		r.Largest /= float64(max(r.Steps, 1))
	}
	return s.list, nil
}

// Has reports whether the graph of a trace has routers.
func Has(t *trace.Trace) bool {
	return slices.ContainsFunc(t.Graph.Ops, func(o trace.Op) bool { return o.Kind == Kind })
}

// maxExperts is the largest number of experts of a router. A file with more is damaged.
const maxExperts = 1 << 16

// attr returns an integer attribute of an operator, or 0.
func attr(o *trace.Op, name string) int {
	switch n := o.Attrs[name].(type) {
	case int:
		return n
	case float64:
		if n == math.Trunc(n) && math.Abs(n) < 1<<31 {
			return int(n)
		}
	}
	return 0
}

// Busiest returns the expert with the most tokens, and its tokens. The expert is -1 if no expert has tokens.
// It is also -1 if the numbers are modelled, because then all experts are equal.
func (r *Router) Busiest() (expert int, tokens float64) {
	expert = -1
	for e, n := range r.Tokens {
		if n > tokens && !r.Modelled {
			expert, tokens = e, n
		}
	}
	return expert, tokens
}

// Pairs returns the sum of Tokens: each token counts once for each expert that it uses.
func (r *Router) Pairs() (sum float64) {
	for _, n := range r.Tokens {
		sum += n
	}
	return sum
}

// Total returns the sum of the numbers of all dispatches.
func (r *Router) Total() Dispatch {
	var sum Dispatch
	for i := range r.Dispatches {
		d := &r.Dispatches[i]
		sum.Filled += d.Filled
		sum.Padded += d.Padded
		sum.Launched += d.Launched
		sum.Idle += d.Idle
		sum.NS += d.NS
		sum.PaddedNS += d.PaddedNS
		sum.Timed = max(sum.Timed, d.Timed)
	}
	return sum
}

// steps adds up the steps of a selection.
type steps struct {
	x      *analyze.Index
	list   []*Router
	byOp   map[trace.OpID]*Router
	places map[trace.DispatchID]place
}

// place is where the numbers of a dispatch are added up.
type place struct {
	router *Router
	index  int // index in router.Dispatches
}

// findDispatches finds the dispatches whose work depends on the choice of experts, and the router of each
// of them. The operator of the dispatch reads the output of this router.
func (s *steps) findDispatches() {
	g := &s.x.Trace.Graph
	follows := make([]bool, len(g.Dispatches))
	for i := range s.x.Trace.Plans {
		if p := &s.x.Trace.Plans[i]; p.Experts.Rows > 0 {
			follows[p.Dispatch] = true
		}
	}
	for id := range g.Dispatches {
		if !follows[id] {
			continue
		}
		for _, v := range g.Ops[g.Dispatches[id].Op].Inputs {
			for _, producer := range s.x.Producers(v) {
				r, d := s.byOp[producer], trace.DispatchID(id)
				if _, known := s.places[d]; r != nil && !known {
					s.places[d] = place{r, len(r.Dispatches)}
					r.Dispatches = append(r.Dispatches, Dispatch{ID: d})
				}
			}
		}
	}
}

// add adds a step.
func (s *steps) add(step int) {
	of := &s.x.Trace.Steps[step]
	loads := map[trace.OpID]*load{}
	for i := range of.Experts {
		if r := s.byOp[of.Experts[i].Op]; r != nil {
			loads[r.ID] = recorded(r, of.Experts[i].Tokens)
		}
	}
	for _, r := range s.list {
		if loads[r.ID] == nil {
			loads[r.ID] = s.expected(r, step)
		}
		loads[r.ID].addTo(r)
	}
	for i := range of.Dispatches {
		run := &of.Dispatches[i]
		p := &s.x.Trace.Plans[run.Plan]
		at, ok := s.places[p.Dispatch]
		if !ok || p.Experts.Rows < 1 {
			continue
		}
		d, l, rows := &at.router.Dispatches[at.index], loads[at.router.ID], float64(p.Experts.Rows)
		tiles, padded := l.tiles(p.Experts.Rows, at.router.Padded)
		launched := analyze.Product(p.Workgroups)
		d.Rows = p.Experts.Rows
		d.Filled += tiles*rows - padded
		d.Padded += padded
		d.Launched += launched
		d.Idle += max(0, float64(launched)-tiles*float64(p.Experts.Groups))
		if ns, measured := analyze.MedianOf(run); measured {
			d.NS += ns
			d.Timed++
			if tiles > 0 {
				d.PaddedNS += ns * padded / (tiles * rows)
			}
		}
	}
}

// load is how many tokens of a step chose each expert.
type load struct {
	experts, chosen int   // as in Router
	counts          []int // tokens by expert; nil if the step did not record the choices

	// These fields are used if counts is nil.
	tokens int             // number of tokens of the step
	chance []float64       // chance[n] is the probability that an expert has n tokens
	byRows map[int]float64 // for each number of rows in a tile: expected number of tiles of an expert
}

func recorded(r *Router, pairs [][2]int) *load {
	l := &load{counts: make([]int, r.Experts), experts: r.Experts, chosen: r.Chosen}
	for _, pair := range pairs {
		if expert := pair[0]; expert < r.Experts {
			l.counts[expert] = pair[1]
		}
	}
	return l
}

// expected returns the load of a router in a step that did not record the choices. Each token chooses each
// expert with the probability chosen / experts.
func (s *steps) expected(r *Router, step int) *load {
	l := &load{experts: r.Experts, chosen: r.Chosen, byRows: map[int]float64{}}
	if len(r.Op.Outputs) > 0 {
		if dims := s.x.Dims(step, r.Op.Outputs[0]); len(dims) > 1 { // [1, tokens, chosen]
			l.tokens = dims[len(dims)-2]
		}
	}
	l.chance = binomial(l.tokens, float64(l.chosen)/float64(l.experts))
	return l
}

// binomial returns the probabilities of 0 to n successes in n independent trials that succeed with
// probability p, 0 < p <= 1.
func binomial(n int, p float64) []float64 {
	list := make([]float64, n+1)
	if p >= 1 {
		list[n] = 1
		return list
	}
	all, _ := math.Lgamma(float64(n + 1))
	for k := range list {
		a, _ := math.Lgamma(float64(k + 1))
		b, _ := math.Lgamma(float64(n - k + 1))
		list[k] = math.Exp(all - a - b + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
	}
	return list
}

// addTo adds the tokens of the step to those of a router.
func (l *load) addTo(r *Router) {
	if l.counts == nil && l.tokens == 0 {
		return // the router did not run
	}
	r.Steps++
	if l.counts == nil {
		r.Modelled = true
		for e := range r.Tokens {
			r.Tokens[e] += float64(l.tokens*l.chosen) / float64(l.experts)
		}
		r.Active += float64(l.experts) * (1 - l.chance[0])
		r.Largest++
		return
	}
	most, sum := 0, 0
	for e, n := range l.counts {
		r.Tokens[e] += float64(n)
		most, sum = max(most, n), sum+n
		if n > 0 {
			r.Active++
		}
	}
	if sum > 0 {
		r.Largest += float64(most) * float64(l.experts) / float64(sum)
	}
}

// tiles returns how many tiles all experts need in total if a tile has the given number of rows. It also
// returns how many rows of these tiles hold no token, and adds the number for each expert to byExpert.
func (l *load) tiles(rows int, byExpert []float64) (tiles, padded float64) {
	if l.counts == nil {
		each, ok := l.byRows[rows]
		if !ok {
			for n, chance := range l.chance {
				each += chance * float64((n+rows-1)/rows)
			}
			l.byRows[rows] = each
		}
		mean := float64(l.tokens*l.chosen) / float64(l.experts)
		for e := range byExpert {
			byExpert[e] += each*float64(rows) - mean
		}
		tiles = each * float64(l.experts)
		return tiles, tiles*float64(rows) - float64(l.tokens*l.chosen)
	}
	for e, n := range l.counts {
		need := (n + rows - 1) / rows
		tiles += float64(need)
		padded += float64(need*rows - n)
		byExpert[e] += float64(need*rows - n)
	}
	return tiles, padded
}
