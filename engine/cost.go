package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/engine/measure"
	"gpuscope/trace"
)

// CostRounds is the default number of times that Costs skips each set of dispatches.
const CostRounds = 30

// MostCostRounds is the maximum number of times that Costs skips each set of dispatches.
const MostCostRounds = 1000

// warmUp is how long a GPU runs whole steps before the first measured run. An idle GPU needs this time to
// raise its clocks.
const warmUp = 100 * time.Millisecond

// CostOptions configures Costs.
type CostOptions struct {
	// Rounds is the number of times to skip each set of dispatches; 0 means CostRounds.
	Rounds int
	// For is the time limit of the measurement; 0 means no limit. Costs always starts a first round. On a
	// GPU, this round ends early if its next set is expected to end after the limit; on a software device,
	// it is completed. Costs does not start a later round that is expected to end after the limit.
	For time.Duration
	// Decided may be nil. Costs calls Decided after each group of consecutive rounds, with the costs so far.
	// If Decided returns true, the measurement ends.
	Decided func(Costs) bool
	// Progress may be nil. Costs calls Progress before each run that skips a set, with the completed
	// percentage of the measurement. If Progress returns an error, the measurement ends in the same way as
	// after a cancellation.
	Progress Progress
	// Samples may be nil. Otherwise it holds the samples of earlier Costs calls for the same step. Costs adds
	// the new samples to Samples and computes the costs from all of them.
	Samples *CostSamples
	// Empty is a kernel that binds one writable buffer and does nothing. While a set is skipped, Costs
	// dispatches Empty as a placeholder, so that the barriers between the levels of the step remain. If Empty
	// is nil, there are no placeholders, and the levels may overlap while a set is skipped. Costs does not
	// use Empty on a software device, which runs its dispatches one by one.
	Empty *graph.Kernel
}

// CostSamples holds the measured durations of repeated runs of one step. Some runs execute the whole step,
// and others skip a set of dispatches. The zero value holds no samples. The order of the samples has no
// meaning.
type CostSamples struct {
	whole, walls []int64            // GPU times (whole) and wall times (walls) of whole runs, ns
	clock        []float64          // speeds of the GPU clock, see costRun.clock
	gains        map[string][]int64 // ns saved by skipping a set; the key is trace.SetKey of the set
}

// Costs holds the measured time that a step saves when some of its dispatches are skipped.
type Costs struct {
	Whole trace.Whole  // the step with no dispatch skipped; N is 0 if it was not measured
	Sets  []trace.Cost // costs of the sets in the requested order, without names; N is 0 if not measured
}

// Costs measures how much time the last step saves when sets of its dispatches are skipped. Costs alternates
// between runs of the whole step and runs that skip a set: whole, without the first set, whole, without the
// second set, and so on. One pass over all sets is a round. Because every round visits all sets, a slow
// change of the clocks affects all sets equally. Each round visits the sets in a different order, so that a
// periodic disturbance does not always hit the same sets. On a GPU each set is skipped inARow times in a
// row. If the time runs out in the first round, the remaining sets have no samples. The next call with the
// same Samples measures them first. Without sets, Costs runs the whole step once per round. Each submit of a
// run is timed by only two timestamps. A sample is the mean duration of the whole runs near a run that skips
// a set, minus the duration of the latter. The mean is over up to eight whole runs before this run and as
// many after it. On a software device, the median replaces the mean.
//
// A run that skips a set computes wrong results. The whole runs after it write all results of the step again:
// all values, and the rows that were appended to State. When Costs returns, memory therefore has its original
// content, even after a cancellation. There is one exception, as in Replay: if an operator computes State
// from its previous content, the repeated runs change it. Costs checks for a cancellation between runs, and
// keeps the samples measured so far. The outputs and the record of the last step do not change.
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
	*m.o.Samples = m.samples()
	return m.costs(*m.o.Samples), err
}

// costRun is the measurement of one call of Costs. All memory and GPU objects that it needs are allocated
// before its first run.
type costRun struct {
	x      *Executor
	o      *CostOptions
	sets   []absent
	active []trace.DispatchID
	// cuts holds one index into `active` for each submit: the index after the last dispatch of the submit.
	cuts  []int
	left  []bool
	kept  []trace.DispatchID
	whole []int64     // GPU times of whole runs, ns
	walls []int64     // wall times of whole runs, ns
	parts [][]partRun // runs that skipped a set, by set
	// order is the order in which a round visits the sets. In the first round, sets with fewer earlier
	// samples come first; sets with equally many stay in the requested order.
	order  []int
	random *rand.Rand
	// heldUp is true on a software device. There, other load on the machine can make a run and its neighbors
	// take several times as long as usual. The measurement then uses medians, because these slow runs would
	// dominate a mean. The measurement also runs the whole step after each run that skips a set.
	heldUp bool
	// clock holds the speeds of the GPU clock measured by the clock probe: one before the first round, and
	// one after each group of consecutive rounds.
	clock  []float64
	log    flight
	stayer *stayer // nil if there are no placeholders (see CostOptions.Empty)

	done    int           // finished runs: those that skip a set, or whole runs if there are no sets
	started time.Time     // start of the first round
	within  time.Duration // time limit, counted from `started`; used only if o.For is set
}

// absent is a set of dispatches to skip, and the placeholder dispatches that keep barriers while the set is
// skipped.
type absent struct {
	dispatches []trace.DispatchID
	stays      []stay
}

// partRun is a run that skips a set. The field `ns` is the duration of the run. The field `after` is the
// number of whole runs that were measured before it.
type partRun struct {
	ns    int64
	after int
}

// A run that skips a set is compared with the whole runs near it: at most `around` whole runs before it and
// as many after it. A single whole run on each side would add as much noise as the run itself has. A
// comparison with all whole runs would add the effect of every clock change during the measurement.
const around = 8

// inARow is the number of consecutive times that a set is skipped. On an H200 a step takes one of two
// durations, 14 µs apart. The driver stores the commands of the step in command memory, and the duration
// depends on their position there. With each decode step, the position moves by a fifth of this memory. Five
// consecutive runs therefore cover all positions, while five runs at random moments could by chance all get
// positions with the same duration.
const inARow = 5

// gain returns how much shorter a run that skipped a set was than the whole runs around it, in ns.
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
		return nil, errors.New("the device does not support GPU timestamps")
	case !x.clock.Scale.Known():
		return nil, errors.New("the period of the GPU clock is unknown, so GPU times cannot be compared")
	case !x.Stands():
		return nil, ErrNoStep
	case o.Rounds < 0 || o.Rounds > MostCostRounds:
		return nil, fmt.Errorf("%d rounds requested, but 1 to %d are allowed", o.Rounds, MostCostRounds)
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
			return nil, fmt.Errorf("set %d is empty, but each set needs at least one dispatch", i)
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
	runs := 1 + o.Rounds*max(1, len(sets)) // maximum number of whole runs
	m.whole, m.walls = make([]int64, 0, runs), make([]int64, 0, runs)
	m.log = x.timedFlight()
	if o.Empty == nil || m.heldUp {
		return m, nil
	}
	return m, m.findStays()
}

// findStays finds, for each set, the barriers that would disappear when the set is skipped, and the
// placeholder dispatches that keep these barriers.
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

func (m *costRun) release() {
	if m.stayer != nil {
		m.stayer.Free()
	}
}

// leave marks the dispatches of a set as skipped if `out` is true, and removes the marks if `out` is false.
// The following runs skip the marked dispatches.
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

// measure runs rounds until the requested number of rounds is done, the time limit leaves no time for
// another round, or CostOptions.Decided returns true.
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
		if m.o.Decided != nil && m.o.Decided(m.costs(m.samples())) {
			break
		}
		m.random.Shuffle(len(m.order), func(a, b int) { m.order[a], m.order[b] = m.order[b], m.order[a] })
	}
	return m.o.Progress("measure costs", 100, 100)
}

// next returns n, the number of rounds to measure together. Instead of visiting the sets n times, the
// measurement visits them once and skips each set n times in a row. On a GPU n is at most inARow; on a
// software device n is at most 1. n is also limited by the requested rounds and by the remaining time, based
// on the average duration of a round so far.
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

// perRound returns how much a round adds to `done`: the number of sets, or 1 if there are no sets.
func (m *costRun) perRound() int { return max(1, len(m.sets)) }

// round skips one set after the other, each `times` times in a row. If there are no sets, it runs the whole
// step `times` times.
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

// late reports whether work that takes the given time would end after the time limit if it started now.
func (m *costRun) late(takes time.Duration) bool {
	return m.o.For > 0 && time.Since(m.started)+takes >= m.within
}

// tell calls Progress. It returns an error if Progress returned one or the measurement was canceled.
func (m *costRun) tell(ctx context.Context) error {
	return cmp.Or(m.o.Progress("measure costs", m.percent(), 100), ctx.Err())
}

// percent returns the progress in percent: the finished share of the requested rounds or the elapsed share of
// the time limit, whichever is larger. Both the requested rounds and the time limit are fixed, so the
// percentage never decreases. In the first round, the percentage cannot exceed the finished share of this
// round, because the round may take longer than the time limit.
func (m *costRun) percent() int {
	rounds := float64(m.done) / float64(m.perRound())
	share := rounds / float64(m.o.Rounds)
	if m.o.For > 0 {
		share = max(share, min(float64(time.Since(m.started))/float64(max(m.within, 1)), rounds))
	}
	return int(min(100*share, 99))
}

// leaveOut runs the step `times` times and skips a set in each of these runs. Then it runs the whole step:
// once, plus once for every three runs without the set.
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
	through := context.WithoutCancel(ctx) // the whole runs must restore all values even after a cancellation
	for range 1 + times/3 {
		if failed := m.runWhole(through); failed != nil {
			m.parts[set] = m.parts[set][:before]
			return cmp.Or(err, failed)
		}
	}
	return err
}

// heed measures the clock speed with the clock probe, if there is one. It is called between two timed runs,
// so the time of neither run includes the probe. Errors of the probe are ignored, because a broken device
// makes the next run fail anyway.
func (m *costRun) heed() {
	if speed, err := m.x.Canary(); err == nil && speed > 0 {
		m.clock = append(m.clock, speed)
	}
}

// warm runs the whole step repeatedly so that a GPU reaches its full clocks (see warmUp).
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

// runWhole runs the whole step and stores its GPU time.
func (m *costRun) runWhole(ctx context.Context) error {
	ns, err := m.run(ctx, nil)
	if err == nil {
		m.whole = append(m.whole, ns)
	}
	return err
}

// asItRuns runs the whole step, submitted piece by piece like a normal step, and stores its wall time. If
// there are no sets to skip, asItRuns also stores the GPU time. If there are sets, runWhole and leaveOut
// measure the GPU times instead. These two encode all dispatches before they submit, so that the GPU never
// waits for the host to encode.
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

// run executes the step without the dispatches of a set, or the whole step if the set is nil. It returns the
// GPU time in ns. The GPU time of a step with several submits is the sum over the submits and excludes the
// time between them. A run that skips a set is split into submits at the same dispatches as a whole run.
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

// samples returns the earlier samples together with the new ones.
func (m *costRun) samples() CostSamples {
	s := m.o.Samples
	all := CostSamples{
		whole: slices.Concat(s.whole, m.whole), walls: slices.Concat(s.walls, m.walls),
		clock: slices.Concat(s.clock, m.clock), gains: maps.Clone(s.gains),
	}
	for i, set := range m.sets {
		key := trace.SetKey(set.dispatches)
		gains := slices.Clone(all.gains[key])
		for _, p := range m.parts[i] {
			gains = append(gains, m.gain(p))
		}
		all.gains[key] = gains
	}
	return all
}

// costs returns the costs computed from samples.
func (m *costRun) costs(s CostSamples) Costs {
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
