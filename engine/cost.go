package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"gpuscope/engine/gpu"
	"gpuscope/trace"
)

// CostRounds is how often a set is left out where the caller does not say.
const CostRounds = 30

// MostCostRounds is how often a set may be left out.
const MostCostRounds = 1000

// warmUp is for how long a GPU runs whole steps before anything counts: one that was idle clocks up first.
const warmUp = 100 * time.Millisecond

// CostOptions bound what Costs does.
type CostOptions struct {
	Rounds int           // differences of each set; 0: CostRounds
	For    time.Duration // no round begins later, but for the first; 0: no bound
	// Progress, which may be nil, is told before each run of a set; its error ends the measuring as a cancel.
	Progress Progress
}

// Costs are what a step takes less without some of its dispatches.
type Costs struct {
	Whole trace.Whole  // with nothing left out; N is 0 where nothing was measured
	Sets  []trace.Cost // in the order asked for, without names; N is 0 where a set was not measured
}

// Costs runs the last step again and again: whole, without the first set of dispatches, whole, without the
// second, ... and begins anew for each round, so that a drift of clocks meets all sets alike, in another
// order: what comes back every so many runs must not meet the same sets each time. Without sets it runs the
// whole step, once a round. A run is timed by two timestamps and nothing else. A difference is that of a run
// without a set and the mean of the whole runs around it, up to four before and as many after.
//
// What a run without a set computes is garbage. The whole run behind it writes again what the step wrote:
// rows that were appended to State, and all values. So nothing is different afterwards, also after a cancel,
// which is heard between runs and keeps what was measured; State that an operator computes from its own
// former content is the exception, as in Replay. What the step told stays: its outputs and its record.
func (x *Executor) Costs(ctx context.Context, sets [][]trace.DispatchID, o CostOptions) (Costs, error) {
	m, err := x.newCostRun(sets, &o)
	if err != nil {
		return Costs{}, fmt.Errorf("cost: %w", err)
	}
	err = m.measure(ctx)
	x.lastEnd = time.Now()
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("cost: %w", err)
	}
	return m.costs(), err
}

// costRun is one measurement. What it needs is there before its first run.
type costRun struct {
	x      *Executor
	o      *CostOptions
	sets   [][]trace.DispatchID
	active []trace.DispatchID
	cuts   []int // of active: where a submit ends
	left   []bool
	kept   []trace.DispatchID
	whole  []int64     // ns
	walls  []int64     // of the same runs
	parts  [][]partRun // by set
	order  []int       // of the sets in a round: the first as they were asked for
	random *rand.Rand
	clock  []float64 // speed of the canary, before each round; after the last where time ended them
	log    stepLog
}

// partRun is a run without a set: what it took in ns, behind how many whole runs.
type partRun struct {
	ns    int64
	after int
}

// around is how many whole runs on either side of a run without a set it is compared with: two of them alone
// would bring as much noise as the run itself, and all of them what the clocks did meanwhile.
const around = 4

// gain is what a step took less in a run without a set.
func (m *costRun) gain(p partRun) int64 {
	n := min(around, p.after, len(m.whole)-p.after)
	sum := int64(0)
	for _, ns := range m.whole[p.after-n : p.after+n] {
		sum += ns
	}
	return sum/int64(2*n) - p.ns
}

func (x *Executor) newCostRun(sets [][]trace.DispatchID, o *CostOptions) (*costRun, error) {
	switch {
	case x.clock == nil:
		return nil, errors.New("this device has no timestamps")
	case !x.clock.scale.known():
		return nil, errors.New("the GPU's clock has no known period, so there are no times to compare")
	case !x.last.ran:
		return nil, ErrNoStep
	case o.Rounds < 0 || o.Rounds > MostCostRounds:
		return nil, fmt.Errorf("%d rounds, want 1 to %d", o.Rounds, MostCostRounds)
	}
	if o.Progress == nil {
		o.Progress = func(string, int, int) error { return nil }
	}
	o.Rounds = cmp.Or(o.Rounds, CostRounds)
	m := &costRun{x: x, o: o, active: slices.Clone(x.live.Active()), random: rand.New(rand.NewPCG(1, 2))}
	for i, set := range sets {
		set = slices.Compact(slices.Sorted(slices.Values(set)))
		if len(set) == 0 {
			return nil, fmt.Errorf("set %d has no dispatch", i)
		}
		for _, id := range set {
			if _, ran := slices.BinarySearch(m.active, id); !ran {
				return nil, fmt.Errorf("dispatch %d did not run in the last step", id)
			}
		}
		m.sets, m.order = append(m.sets, set), append(m.order, i)
		m.parts = append(m.parts, make([]partRun, 0, o.Rounds))
	}
	for at := 0; at < len(m.active); {
		at += x.shortRun(m.active[at:])
		m.cuts = append(m.cuts, at)
	}
	m.left = make([]bool, len(x.g.dispatches))
	m.kept = make([]trace.DispatchID, 0, len(m.active))
	runs := 1 + o.Rounds*max(1, len(sets))
	m.whole, m.walls = make([]int64, 0, runs), make([]int64, 0, runs)
	m.log = stepLog{timing: TimingStep, ticks: make([]uint64, 2)}
	return m, nil
}

// measure takes the differences of all rounds, or of as many as there is time for.
func (m *costRun) measure(ctx context.Context) error {
	begin, through := time.Now(), context.WithoutCancel(ctx) // a whole run goes on to its end
	if err := m.warm(ctx); err != nil {
		return err
	}
	m.heed()
	if err := m.runWhole(through); err != nil {
		return err
	}
	sets := max(1, len(m.sets)) // of none at all there are whole runs
	started, done := time.Now(), 0
	for i := range m.o.Rounds * sets {
		if i >= sets && i%sets == 0 {
			m.heed()
			m.random.Shuffle(len(m.order), func(a, b int) { m.order[a], m.order[b] = m.order[b], m.order[a] })
			if m.o.For > 0 && time.Since(begin) >= m.o.For {
				break
			}
		}
		of := m.rounds(i, sets, m.o.For-started.Sub(begin), time.Since(started)) * sets
		if err := cmp.Or(m.o.Progress("measure costs", i, of), ctx.Err()); err != nil {
			return err
		}
		done++
		if len(m.sets) == 0 {
			if err := m.runWhole(through); err != nil {
				return err
			}
			continue
		}
		set := m.order[i%sets]
		part := partRun{after: len(m.whole)}
		var err error
		part.ns, err = m.run(ctx, m.sets[set])
		if err := cmp.Or(err, m.runWhole(through)); err != nil {
			return err
		}
		m.parts[set] = append(m.parts[set], part)
	}
	return m.o.Progress("measure costs", done, done)
}

// rounds is how many rounds there will be of so many sets: all, or as many as begin within the time there is
// for them at the pace of the runs so far.
func (m *costRun) rounds(runs, sets int, within, took time.Duration) int {
	if m.o.For == 0 || runs == 0 {
		return m.o.Rounds
	}
	fit := float64(within) / float64(max(took, 1)) * float64(runs) / float64(sets)
	return int(max(float64(runs/sets+1), min(math.Ceil(fit), float64(m.o.Rounds))))
}

// heed runs the canary, where there is one, between two runs: in neither of their times. What ails it ails
// the next run, which says so.
func (m *costRun) heed() {
	if speed, err := m.x.Canary(); err == nil && speed > 0 {
		m.clock = append(m.clock, speed)
	}
}

// warm runs the whole step on a GPU until it is at its clocks.
func (m *costRun) warm(ctx context.Context) error {
	begin, through := time.Now(), context.WithoutCancel(ctx)
	for m.x.dev.Info().Type != gpu.CPU && time.Since(begin) < warmUp {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := m.run(through, nil); err != nil {
			return err
		}
	}
	return nil
}

// runWhole runs the step with nothing left out, and keeps what that takes.
func (m *costRun) runWhole(ctx context.Context) error {
	begin := time.Now()
	ns, err := m.run(ctx, nil)
	if err == nil {
		m.whole = append(m.whole, ns)
		m.walls = append(m.walls, time.Since(begin).Nanoseconds())
	}
	return err
}

// run runs the step without a set and says how long that took the GPU. A step that is submitted in parts
// takes what its parts take: cuts are where they are for the whole step, and the time between them does not
// count.
func (m *costRun) run(ctx context.Context, without []trace.DispatchID) (ns int64, err error) {
	for _, id := range without {
		m.left[id] = true
	}
	defer func() {
		for _, id := range without {
			m.left[id] = false
		}
	}()
	from := 0
	for _, to := range m.cuts {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		m.kept = m.kept[:0]
		for _, id := range m.active[from:to] {
			if !m.left[id] {
				m.kept = append(m.kept, id)
			}
		}
		from = to
		if len(m.kept) == 0 {
			continue
		}
		if err := m.x.submit(&m.log, m.kept, 0, len(m.kept), nil); err != nil {
			return 0, err
		}
		if err := m.x.readTicks(&m.log); err != nil {
			return 0, err
		}
		part, _ := m.x.clock.scale.duration(m.log.ticks[0], m.log.ticks[1]).NS()
		ns += part
	}
	return ns, nil
}

// costs sum up what was measured.
func (m *costRun) costs() Costs {
	var c Costs
	for i, set := range m.sets {
		cost := trace.Cost{Dispatches: set, N: len(m.parts[i])}
		if cost.N > 0 {
			gains := make([]int64, cost.N)
			for k, p := range m.parts[i] {
				gains[k] = m.gain(p)
			}
			cost.Q1NS, _, cost.Q3NS = trace.Quartiles(gains)
			cost.NS = trace.Midmean(gains)
		}
		c.Sets = append(c.Sets, cost)
	}
	if n := len(m.whole); n > 0 { // which are put in order
		c.Whole.N = n
		c.Whole.Q1NS, c.Whole.NS, c.Whole.Q3NS = trace.Quartiles(m.whole)
		_, wall, _ := trace.Quartiles(m.walls)
		c.Whole.WallNS = trace.Measured(wall)
		if len(m.clock) > 0 {
			slices.Sort(m.clock)
			at := func(q float64) float64 { return trace.Quantile(m.clock, q) }
			c.Whole.CanaryQ1, c.Whole.Canary, c.Whole.CanaryQ3 = at(0.25), at(0.5), at(0.75)
		}
	}
	return c
}
