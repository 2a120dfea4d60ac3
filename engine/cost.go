package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/engine/measure"
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
	For    time.Duration // no round is begun that would end later, and of the first no set; 0: no bound
	// Progress, which may be nil, is told before each run of a set how many per cent are measured; its error
	// ends the measuring as a cancel.
	Progress Progress
	// Samples, which may be nil, are those of the same step so far: the new ones join them, and costs are of
	// all.
	Samples *CostSamples
	// Empty is a kernel that does nothing to the one buffer it may write. With it the levels of the step stay
	// apart without a set; nil, or on a software device, whose dispatches run one by one: they need not.
	Empty *graph.Kernel
}

// CostSamples is what runs of one step took, with and without sets. The zero value has none. Their order says
// nothing.
type CostSamples struct {
	whole, walls []int64 // ns; of other runs, as in costRun
	clock        []float64
	gains        map[string][]int64 // by trace.SetKey
}

// Costs are what a step takes less without some of its dispatches.
type Costs struct {
	Whole trace.Whole  // with nothing left out; N is 0 where nothing was measured
	Sets  []trace.Cost // in the order asked for, without names; N is 0 where a set was not measured
}

// Costs runs the last step again and again: whole, without the first set of dispatches, whole, without the
// second, ... and begins anew, so that a drift of clocks meets all sets alike, in another order each time:
// what comes back every so many runs must not meet the same sets. Each set is left out inARow times in a
// row, but not on a software device. Where there is no time for all sets those have none that are left, and
// are the first the next time. Without sets it runs the whole step, once a round. A run is timed by two
// timestamps and nothing else. A difference is that of a run without a set and the mean of the whole runs
// around it, up to eight before and as many after; on a software device their median.
//
// What a run without a set computes is garbage. The whole runs after it write again what the step wrote:
// rows that were appended to State, and all values. So nothing is different afterwards, also after a cancel,
// which is heard between runs and keeps what was measured; State that an operator computes from its own
// former content is the exception, as in Replay. What the step told stays: its outputs and its record.
func (x *Executor) Costs(ctx context.Context, sets [][]trace.DispatchID, o CostOptions) (Costs, error) {
	m, err := x.newCostRun(sets, &o)
	if err != nil {
		return Costs{}, fmt.Errorf("cost: %w", err)
	}
	defer m.release()
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
	sets   []absent
	active []trace.DispatchID
	cuts   []int // of active: where a submit ends
	left   []bool
	kept   []trace.DispatchID
	whole  []int64     // ns
	walls  []int64     // of the same runs
	parts  [][]partRun // by set
	order  []int       // of the sets in a round: in the first as asked for, those with fewer samples first
	random *rand.Rand
	// heldUp says that what else the machine does holds some runs up by as much as they take, and those
	// beside them, as on a software device: medians are taken there, where a mean would be of those runs, and
	// no two runs without a set stand in a row.
	heldUp bool
	clock  []float64 // speed of the canary, before each round; after the last where time ended them
	log    flight
	stayer *stayer // nil where barriers go as they may

	done    int           // runs without a set, of the whole step where there is none
	started time.Time     // the first of them
	within  time.Duration // of started they shall end, where o.For bounds them
}

// absent is a set of dispatches, and what has the barriers stay without them.
type absent struct {
	dispatches []trace.DispatchID
	stays      []stay
}

// partRun is a run without a set: what it took in ns, after how many whole runs.
type partRun struct {
	ns    int64
	after int
}

// around is how many whole runs on either side of a run without a set it is compared with: two of them alone
// would bring as much noise as the run itself, and all of them what the clocks did meanwhile.
const around = 8

// inARow is how often a set is left out in a row. On an H200 a step takes one of two times, 14 µs apart, by
// where its commands lie in the driver's memory, and a decode step moves on by a fifth of what they lie in:
// five runs meet all of it, where as many at random would meet the one half or the other by chance.
const inARow = 5

// gain is what a step took less in a run without a set.
func (m *costRun) gain(p partRun) int64 {
	n := min(around, p.after, len(m.whole)-p.after)
	near := m.whole[p.after-n : p.after+n]
	if m.heldUp {
		_, median, _ := trace.Quartiles(slices.Clone(near))
		return median - p.ns
	}
	sum := int64(0)
	for _, ns := range near {
		sum += ns
	}
	return sum/int64(2*n) - p.ns
}

func (x *Executor) newCostRun(sets [][]trace.DispatchID, o *CostOptions) (*costRun, error) {
	switch {
	case x.clock == nil:
		return nil, errors.New("this device has no timestamps")
	case !x.clock.Scale.Known():
		return nil, errors.New("the GPU's clock has no known period, so there are no times to compare")
	case !x.Stands():
		return nil, ErrNoStep
	case o.Rounds < 0 || o.Rounds > MostCostRounds:
		return nil, fmt.Errorf("%d rounds, want 1 to %d", o.Rounds, MostCostRounds)
	}
	if o.Progress == nil {
		o.Progress = func(string, int, int) error { return nil }
	}
	o.Rounds, o.Samples = cmp.Or(o.Rounds, CostRounds), cmp.Or(o.Samples, &CostSamples{})
	if o.Samples.gains == nil {
		o.Samples.gains = map[string][]int64{}
	}
	random := rand.New(rand.NewPCG(1, uint64(len(o.Samples.whole))))
	m := &costRun{x: x, o: o, active: slices.Clone(x.live.Active()), random: random}
	m.heldUp = x.dev.Info().Type == gpu.CPU
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
		m.sets, m.order = append(m.sets, absent{dispatches: set}), append(m.order, i)
		m.parts = append(m.parts, make([]partRun, 0, o.Rounds))
	}
	for at := 0; at < len(m.active); {
		at += x.shortRun(m.active[at:])
		m.cuts = append(m.cuts, at)
	}
	had := func(i int) int { return len(o.Samples.gains[trace.SetKey(m.sets[i].dispatches)]) }
	slices.SortStableFunc(m.order, func(a, b int) int { return cmp.Compare(had(a), had(b)) })
	m.left = make([]bool, len(x.g.Dispatches))
	m.kept = make([]trace.DispatchID, 0, len(m.active))
	runs := 1 + o.Rounds*max(1, len(sets)) // as many whole ones at the most
	m.whole, m.walls = make([]int64, 0, runs), make([]int64, 0, runs)
	m.log = x.timedFlight()
	if o.Empty == nil || m.heldUp {
		return m, nil
	}
	return m, m.findStays()
}

// findStays finds, for each set, the barriers that would go with it.
func (m *costRun) findStays() error {
	var err error
	if m.stayer, err = m.x.newStayer(m.o.Empty); err != nil {
		m.release()
		return err
	}
	m.log.stays = make([]measure.Metered, len(m.left))
	for i := range m.sets {
		set := &m.sets[i]
		m.leave(set, true)
		from := 0
		for _, to := range m.cuts {
			list, err := m.stayer.without(m.left, m.active[from:to])
			if err != nil {
				m.release()
				return err
			}
			set.stays, from = append(set.stays, list...), to
		}
		m.leave(set, false)
	}
	return nil
}

// release frees what was made for the measurement.
func (m *costRun) release() {
	if m.stayer != nil {
		m.stayer.Free()
	}
}

// leave leaves a set out of the runs to come, or takes it in again.
func (m *costRun) leave(set *absent, out bool) {
	for _, id := range set.dispatches {
		m.left[id] = out
	}
	for _, s := range set.stays {
		if m.log.stays[s.before] = (measure.Metered{}); out {
			m.log.stays[s.before] = s.empty
		}
	}
}

// measure takes the differences of all rounds, or of as many as there is time for.
func (m *costRun) measure(ctx context.Context) error {
	begin := time.Now()
	if err := m.warm(ctx); err != nil {
		return err
	}
	m.heed()
	if len(m.sets) > 0 {
		if err := m.runWhole(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
	if err := m.asItRuns(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	m.started = time.Now()
	m.within = m.o.For - m.started.Sub(begin)
	for rounds := m.next(); rounds > 0; rounds = m.next() {
		if err := m.round(ctx, rounds); err != nil {
			return err
		}
		m.heed()
		if len(m.sets) > 0 {
			if err := m.asItRuns(context.WithoutCancel(ctx)); err != nil {
				return err
			}
		}
		m.random.Shuffle(len(m.order), func(a, b int) { m.order[a], m.order[b] = m.order[b], m.order[a] })
	}
	return m.o.Progress("measure costs", 100, 100)
}

// next is how many rounds are measured next, in a row of each set: no more than are asked for and there is
// time for at the pace so far.
func (m *costRun) next() int {
	left := m.o.Rounds - m.done/m.perRound()
	if m.o.For > 0 && m.done > 0 {
		took := time.Since(m.started)
		round := float64(took) / float64(m.done) * float64(m.perRound())
		left = min(left, int(float64(m.within-took)/max(round, 1)))
	}
	if m.heldUp {
		return min(1, left)
	}
	return min(inARow, left)
}

// perRound is how many runs are a round: one without each set, or the whole step where there is none.
func (m *costRun) perRound() int { return max(1, len(m.sets)) }

// round leaves each set out so many times in a row.
func (m *costRun) round(ctx context.Context, times int) error {
	if len(m.sets) == 0 {
		for range times {
			if err := m.tell(ctx); err != nil {
				return err
			}
			if err := m.asItRuns(context.WithoutCancel(ctx)); err != nil {
				return err
			}
			m.done++
		}
	}
	first := m.done == 0 && !m.heldUp
	for i, set := range m.order {
		if first && i > 0 && m.late(time.Since(m.started)/time.Duration(i)) {
			break
		}
		if err := m.leaveOut(ctx, set, times); err != nil {
			return err
		}
	}
	return nil
}

// late says that what takes so long would end after the time there is.
func (m *costRun) late(takes time.Duration) bool {
	return m.o.For > 0 && time.Since(m.started)+takes >= m.within
}

// tell says how far the measuring is, and whether it shall go on.
func (m *costRun) tell(ctx context.Context) error {
	return cmp.Or(m.o.Progress("measure costs", m.percent(), 100), ctx.Err())
}

// percent is how much of the measuring is done, of the rounds or of the time, by which ends it first. It
// never goes back: how many rounds there will be is known at the end. The first is measured whatever time it
// takes.
func (m *costRun) percent() int {
	rounds := float64(m.done) / float64(m.perRound())
	share := rounds / float64(m.o.Rounds)
	if m.o.For > 0 {
		share = max(share, min(float64(time.Since(m.started))/float64(max(m.within, 1)), rounds))
	}
	return int(min(100*share, 99))
}

// leaveOut runs the step without a set so many times, and then whole: once, and once more for each three.
func (m *costRun) leaveOut(ctx context.Context, set, times int) error {
	part, before := partRun{after: len(m.whole)}, len(m.parts[set])
	var err error
	for range times {
		if err = m.tell(ctx); err != nil {
			break
		}
		if part.ns, err = m.run(ctx, &m.sets[set]); err != nil {
			break
		}
		m.parts[set] = append(m.parts[set], part)
		m.done++
	}
	through := context.WithoutCancel(ctx) // what was written wrong is written again
	for range 1 + times/3 {
		if failed := m.runWhole(through); failed != nil {
			m.parts[set] = m.parts[set][:before]
			return cmp.Or(err, failed)
		}
	}
	return err
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

// runWhole runs the step with nothing left out, and keeps what that takes the GPU.
func (m *costRun) runWhole(ctx context.Context) error {
	ns, err := m.run(ctx, nil)
	if err == nil {
		m.whole = append(m.whole, ns)
	}
	return err
}

// asItRuns runs the whole step, submitted piece by piece as a step is, and keeps its wall time; without sets
// also what it takes the GPU. Runs that are compared are submitted at once: the GPU waits for no encoding.
func (m *costRun) asItRuns(ctx context.Context) error {
	m.log.pieces = true
	defer func() { m.log.pieces = false }()
	begin := time.Now()
	ns, err := m.run(ctx, nil)
	if err == nil {
		m.walls = append(m.walls, time.Since(begin).Nanoseconds())
		if len(m.sets) == 0 {
			m.whole = append(m.whole, ns)
		}
	}
	return err
}

// run runs the step without a set and says how long that took the GPU. A step that is submitted in parts
// takes what its parts take: cuts are where they are for the whole step, and the time between them does not
// count.
func (m *costRun) run(ctx context.Context, without *absent) (ns int64, err error) {
	if without != nil {
		m.leave(without, true)
		defer m.leave(without, false)
	}
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
		if err := m.x.submit(&m.log, m.kept, 0, len(m.kept), &graph.StepInput{}); err != nil {
			return 0, err
		}
		if err := m.x.readTicks(&m.log); err != nil {
			return 0, err
		}
		part, _ := m.x.clock.Scale.Duration(m.log.ticks[0], m.log.ticks[1]).NS()
		ns += part
	}
	return ns, nil
}

// costs sum up what was measured, now and before.
func (m *costRun) costs() Costs {
	s := m.o.Samples
	s.whole, s.walls = append(s.whole, m.whole...), append(s.walls, m.walls...)
	s.clock = append(s.clock, m.clock...)
	for i, set := range m.sets {
		for _, p := range m.parts[i] {
			key := trace.SetKey(set.dispatches)
			s.gains[key] = append(s.gains[key], m.gain(p))
		}
	}
	var c Costs
	for _, set := range m.sets {
		gains := s.gains[trace.SetKey(set.dispatches)]
		cost := trace.Cost{Dispatches: set.dispatches, N: len(gains)}
		if cost.N > 0 {
			if cost.Q1NS, cost.NS, cost.Q3NS = trace.Quartiles(gains); !m.heldUp {
				cost.NS = trace.TrimmedMean(gains)
			}
			cost.OffNS = trace.OffBy(gains, cost.NS)
		}
		c.Sets = append(c.Sets, cost)
	}
	if n := len(s.whole); n > 0 {
		c.Whole.N = n
		c.Whole.Q1NS, c.Whole.NS, c.Whole.Q3NS = trace.Quartiles(s.whole)
		c.Whole.OffNS = trace.OffBy(s.whole, c.Whole.NS)
		if len(s.walls) > 0 {
			_, wall, _ := trace.Quartiles(s.walls)
			c.Whole.WallNS, c.Whole.WallOff = trace.Measured(wall), trace.OffBy(s.walls, wall)
		}
		if len(s.clock) > 0 {
			slices.Sort(s.clock)
			at := func(q float64) float64 { return trace.Quantile(s.clock, q) }
			c.Whole.CanaryQ1, c.Whole.Canary, c.Whole.CanaryQ3 = at(0.25), at(0.5), at(0.75)
		}
	}
	return c
}
