package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/graph"
	"gpuscope/model/network"
	"gpuscope/model/run"
	"gpuscope/model/stepping"
	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/bench"
)

// Benchmark describes what to measure. Values of 0 in Prompts or Decodes are skipped.
type Benchmark struct {
	Prompts     []int // prompt lengths in tokens, for prefill tests
	Decodes     []int // numbers of tokens to generate; each step generates one token
	Depths      []int // numbers of cache positions to fill before a test starts
	Repetitions int
	Seed        uint64 // seed for the random token ids
	// Modes lists the modes in which tokens are generated. If it is empty, the only mode is bench.Stepped.
	Modes []string
	// Tracing requests that each decode test is measured at every timing level that its mode allows. Each
	// repetition runs all of these levels, one after the other.
	Tracing bool
	// Kernels requests measurements of isolated operators instead of whole steps. Each operator is measured
	// on each of its routes, at token counts up to the longest of Prompts and at each of Depths.
	Kernels bool
}

// Limits on the settings of a benchmark.
const (
	mostTests       = 256
	mostRepetitions = 1000
	mostBenchTokens = 1 << 30 // tokens of a test, or positions that are filled before the test
)

// warmTestFor is the minimum warm-up time of a test. The result omits the first repetition, and all later
// repetitions that end within this time. An idle GPU needs about 100 ms to reach its full clock speed.
const warmTestFor = 150 * time.Millisecond

// Check returns an error if a setting is out of range. The error names the flag of the setting.
func (b *Benchmark) Check() error {
	for _, row := range []struct {
		flag        string
		list        []int
		least, most int
	}{
		{"pp", b.Prompts, 0, mostBenchTokens},
		{"tg", b.Decodes, 0, mostBenchTokens},
		{"depth", b.Depths, 0, mostBenchTokens},
		{"repetitions", []int{b.Repetitions}, 1, mostRepetitions},
	} {
		for i, n := range row.list {
			if n < row.least || n > row.most {
				return session.Refusef("--%s %d: give a value from %d to %d",
					row.flag, n, row.least, row.most)
			}
			if slices.Contains(row.list[:i], n) { // the name of a test must be unique
				return session.Refusef("--%s %d is given twice; use -r to repeat a test",
					row.flag, n)
			}
		}
	}
	switch n := len(b.tests()); {
	case n == 0:
		return session.Refusef("nothing to measure: give at least one --depth, and at least one --pp or --tg")
	case n > mostTests:
		return session.Refusef("the flags request %d tests, but the maximum is %d. Give fewer values of --pp, --tg or --depth", n,
			mostTests)
	}
	return nil
}

// tests returns the tests in order of depth, with prefill before decode. If Kernels is set, no whole steps
// are measured. tests then returns only the largest shapes, from which the caller computes the size of the KV
// cache.
func (b *Benchmark) tests() []bench.Test {
	var list []bench.Test
	if b.Kernels {
		add := func(phase trace.Phase, tokens, depth int) {
			list = append(list, bench.Test{
				Name: bench.TestName(phase, tokens, depth), Phase: phase, Tokens: tokens, Depth: depth,
			})
		}
		for _, n := range b.Prompts {
			if n != 0 {
				add(trace.Prefill, n, 0)
			}
		}
		for _, depth := range b.Depths {
			add(trace.Decode, 1, depth)
		}
		return list
	}
	for _, depth := range b.Depths {
		for _, phase := range []struct {
			name   trace.Phase
			tokens []int
		}{{trace.Prefill, b.Prompts}, {trace.Decode, b.Decodes}} {
			for _, n := range phase.tokens {
				if n == 0 {
					continue
				}
				for _, how := range b.hows(phase.name) {
					list = append(list, bench.Test{
						Name: bench.TestName(phase.name, n, depth), Phase: phase.name, Mode: how.mode,
						Timing: how.timing, Tokens: n, Depth: depth,
					})
				}
			}
		}
	}
	return list
}

// check returns an error if bench.Pipelined is the only requested mode, and the options make this mode
// impossible.
func (b *Benchmark) check(o *Options) error {
	timing := o.Timing
	if b.Tracing {
		timing = engine.TimingOff // some of the tests are untimed
	}
	why := o.oneByOne(timing)
	if why == "" || b.Kernels || !slices.Equal(b.Modes, []string{bench.Pipelined}) {
		return nil
	}
	return session.Refusef("--mode pipelined: steps cannot overlap %s", why)
}

// oneByOne returns why steps cannot overlap, for example "when --check is on". Callers put this reason at the
// end of a sentence. If steps can overlap, oneByOne returns "".
func (o *Options) oneByOne(timing engine.Timing) string {
	switch {
	case timing > engine.TimingStep:
		return "at timing level " + timing.String()
	case o.Check:
		return "when --check is on"
	}
	return ""
}

// A how is a pair: the mode and the timing level of a test. If the timing level is empty, the test runs at
// the level in the options.
type how struct {
	mode   string
	timing trace.Timing
}

// hows returns the combinations of mode and timing level in which each test of a phase runs.
func (b *Benchmark) hows(phase trace.Phase) []how {
	if phase == trace.Prefill || len(b.Modes) == 0 {
		return []how{{mode: bench.Stepped}}
	}
	var list []how
	for _, mode := range b.Modes {
		if !b.Tracing {
			list = append(list, how{mode: mode})
			continue
		}
		for _, level := range []engine.Timing{
			engine.TimingOff, engine.TimingStep, engine.TimingBlock, engine.TimingDispatch,
		} {
			if mode == bench.Stepped || level <= engine.TimingStep {
				list = append(list, how{mode, level.Level()})
			}
		}
	}
	return list
}

// Bench opens a model and runs the benchmark b on it. It starts no session and records no trace. Like Open,
// it passes progress and log lines to `emit`. If Bench stops early, it returns both the error and the results
// measured so far; the result is nil if there are none.
func Bench(ctx context.Context, o Options, b Benchmark, emit func(session.Event)) (*bench.Result, error) {
	if err := cmp.Or(b.Check(), b.check(&o)); err != nil {
		return nil, err
	}
	progress := stepping.Opening(ctx, emit)
	log := func(level, text string) { emit(session.Event{Log: &session.Log{Level: level, Text: text}}) }
	m, err := Read(o)
	if err != nil {
		return nil, err
	}
	m.warn(emit)
	tests := b.tests()
	r, err := m.loadFor(tests, progress, func(text string) { log("info", text) })
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	defer r.Release()
	run := benchRun{m: m, runner: r, b: &b, progress: progress, log: log, result: m.benchResult(r, &b)}
	err = run.ceilings(ctx)
	if err == nil && b.Tracing && !r.Timed() {
		err = session.Refusef("cannot measure the overhead of timing: this device has no timestamps")
	}
	if err == nil && b.Kernels {
		err = run.kernels(ctx)
	} else if err == nil {
		err = run.measure(ctx, tests)
	}
	if err == nil {
		err = run.ceilings(ctx)
	}
	if err != nil {
		run.result.Stopped = cmp.Or(context.Cause(ctx), err).Error()
	}
	if err = errors.Join(err, run.floors(), m.Close()); len(run.result.Tests)+len(run.result.Kernels) == 0 {
		return nil, err
	}
	return run.result, err
}

// loadFor loads the model onto its device. If the options do not set the context, the KV cache gets the
// size that the tests need.
func (m *Model) loadFor(tests []bench.Test, progress engine.Progress, log func(string)) (*run.Runner, error) {
	if err := m.hold(tests); err != nil {
		return nil, err
	}
	dev, n, err := m.deviceAndGraph(progress, log)
	if err != nil {
		return nil, err
	}
	r, err := m.load(dev, n, progress, log)
	if err != nil {
		dev.Release()
	}
	if errors.Is(err, gpu.ErrOutOfMemory) {
		err = fmt.Errorf("%w; the model needs %s. Use a smaller --depth, --context or --max-chunk",
			err, stepping.MemoryLine(n.Graph))
	}
	return r, err
}

// hold sets the number of positions of the KV cache and the maximum number of tokens in a step, so that all
// tests fit.
func (m *Model) hold(tests []bench.Test) error {
	end := func(t bench.Test) int { return t.Depth + t.Tokens }
	most := slices.MaxFunc(tests, func(a, b bench.Test) int { return end(a) - end(b) })
	need := end(most)
	switch asked := m.options.Context; {
	case asked > 0 && need > asked:
		return session.Refusef(
			"test %s needs %d positions, but the context holds %d. Raise --context or leave out the test",
			most.Name, need, asked)
	case need > m.sizes.Context:
		return session.Refusef("test %s needs %d positions, but the model's maximum is %d", most.Name,
			need, m.sizes.Context)
	case asked > 0:
		return nil
	}
	var err error
	m.context, m.maxChunk, err = m.file.Bounds(max(need, m.options.MaxChunk), m.options.MaxChunk)
	return err
}

// benchResult returns a result without tests. It only describes the model, the device and the settings.
func (m *Model) benchResult(r *run.Runner, b *Benchmark) *bench.Result {
	timing := m.options.Timing
	if !r.Timed() {
		timing = engine.TimingOff
	}
	return &bench.Result{
		Schema: bench.Schema, Producer: m.options.Producer, Created: time.Now().UTC().Format(time.RFC3339),
		Command: m.options.Command, Device: r.Exec.Device(), Model: m.Info(), Timing: timing.Level(),
		Host: trace.Host{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU()},
		Seed: b.Seed, Repetitions: b.Repetitions, Edited: r.Edited(),
	}
}

// benchRun is the state of a benchmark of a loaded model.
type benchRun struct {
	m        *Model
	runner   *run.Runner
	b        *Benchmark
	progress engine.Progress
	log      func(level, text string)
	result   *bench.Result
	// ids has a random token id for each position of the context. Prompts consist of these ids, and so do the
	// tokens that fill the cache.
	ids    []int
	filled int // number of cache positions, from the first on, that are filled from ids
	// tokens has the instant at which each token of the last repetition was read, for decode tests.
	tokens []time.Time
}

// ceilings measures the ceilings of the device. It is called before and after the tests, and keeps the better
// value of each ceiling. Before the tests, the GPU clock may not have reached its full speed. The ceilings
// measured then may be too low, so that the tests would seem to be closer to the ceilings than they are.
func (r *benchRun) ceilings(ctx context.Context) error {
	d := &r.result.Device
	if !r.runner.Timed() || d.Software() {
		return nil
	}
	before := d.Ceilings
	var err error
	d.Ceilings, err = stepping.MeasureOn(ctx, r.runner.Dev, stepping.CeilingCache(r.m.options.Cache),
		before, r.progress,
		func(err error) { r.log("warn", err.Error()) })
	if err != nil {
		d.Ceilings = before
		return err
	}
	if before != nil && d.Ceilings.FlopsPerS > (1+trace.ClockMoved)*before.FlopsPerS {
		r.log("warn", fmt.Sprintf("when the ceilings were measured before the tests, the GPU clock ran at only %.2f times its full "+
			"speed; using the ceilings measured after the tests", before.FlopsPerS/d.Ceilings.FlopsPerS))
	}
	return nil
}

func (r *benchRun) measure(ctx context.Context, tests []bench.Test) error {
	random := rand.New(rand.NewPCG(r.b.Seed, 0))
	r.ids = make([]int, r.m.context)
	for i := range r.ids {
		r.ids[i] = random.IntN(r.m.sizes.Vocab)
	}
	for len(tests) > 0 {
		n := 1
		for n < len(tests) && tests[n].Name == tests[0].Name {
			n++
		}
		if err := r.turns(ctx, tests[:n]); err != nil {
			return fmt.Errorf("%s: %w", tests[0].Name, err)
		}
		tests = tests[n:]
	}
	return nil
}

// turns fills the cache and then measures several tests that differ only in mode and timing level. In each
// repetition it runs every test once, one after the other.
func (r *benchRun) turns(ctx context.Context, tests []bench.Test) error {
	first := tests[0]
	if err := r.fill(ctx, first.Depth); err != nil {
		return err
	}
	r.filled = first.Depth // the tests overwrite the later positions
	r.runner.ForgetStates(first.Depth)
	r.runner.PinState(first.Depth)
	splits, steps := make([]bench.Split, len(tests)), make([]int, len(tests))
	between := make([][]int64, len(tests)) // time between two tokens in ns
	begin, counted := time.Now(), 0
	for warm := true; counted < r.b.Repetitions; {
		for i := range tests {
			if err := r.progress(first.Name, counted*len(tests)+i, r.b.Repetitions*len(tests)); err != nil {
				return err
			}
			t := &tests[i]
			var of bench.Split
			r.tokens = r.tokens[:0]
			start := time.Now()
			n, err := r.repetition(ctx, t, &of)
			ns := time.Since(start).Nanoseconds()
			if err != nil {
				return err
			}
			if !warm {
				of.OtherNS = ns - of.Total()
				splits[i].Add(of)
				steps[i] += n
				t.WallNS = append(t.WallNS, ns)
				for k := 1; k < len(r.tokens); k++ {
					between[i] = append(between[i], r.tokens[k].Sub(r.tokens[k-1]).Nanoseconds())
				}
			}
		}
		if warm {
			tests = r.possible(tests)
		} else {
			counted++
		}
		warm = warm && !r.result.Device.Software() && time.Since(begin) < warmTestFor
	}
	canary := r.runner.ProbeClock()
	for i := range tests {
		t := &tests[i]
		t.Steps, t.CPU, t.Canary = steps[i]/counted, splits[i].Per(steps[i]), canary
		t.TokensPerS = bench.Rates(t.Tokens, t.WallNS)
		if t.Latency = bench.LatencyOf(bench.InterToken, between[i]); t.Phase == trace.Prefill {
			t.Latency = bench.LatencyOf(bench.FirstToken, slices.Clone(t.WallNS))
		}
	}
	r.result.Tests = append(r.result.Tests, tests...)
	return r.progress(first.Name, counted*len(tests), counted*len(tests))
}

// possible removes the pipelined tests whose steps cannot overlap, and logs why. Call it after the first
// step: only then is it known whether steps can overlap.
func (r *benchRun) possible(tests []bench.Test) []bench.Test {
	return slices.DeleteFunc(tests, func(t bench.Test) bool {
		no := t.Mode == bench.Pipelined && !r.runner.Exec.CanPrepare(r.timing(&t))
		if no {
			why := cmp.Or(r.m.options.oneByOne(r.timing(&t)), "because a step needs several submits")
			r.log("warn", t.Name+" was not measured pipelined: steps cannot overlap "+why)
		}
		return no
	})
}

// fill runs prefill steps until the first `depth` positions of the cache are filled.
func (r *benchRun) fill(ctx context.Context, depth int) error {
	for at := r.runner.NearestState(min(r.filled, depth)); at < depth; {
		if err := r.progress("fill the cache", at, depth); err != nil {
			return err
		}
		n := min(r.m.maxChunk, depth-at)
		if _, err := r.step(ctx, at, r.ids[at:at+n], false, engine.TimingOff, nil); err != nil {
			return err
		}
		at += n
		r.filled = at
	}
	return nil
}

// timing returns the timing level of a test.
func (r *benchRun) timing(t *bench.Test) engine.Timing {
	if t.Timing == "" {
		return r.m.options.Timing
	}
	level, _ := engine.ParseTiming(string(t.Timing)) // the name came from the engine, so it is valid
	return level
}

// repetition runs a test once and adds the host time of its steps to `split`. It returns the number of steps.
func (r *benchRun) repetition(ctx context.Context, t *bench.Test, split *bench.Split) (steps int, err error) {
	all := r.m.steps(t)
	if t.Phase == trace.Decode && r.runner.Exec.CanPrepare(r.timing(t)) {
		return len(all), r.generate(ctx, t, split)
	}
	token := r.ids[t.Depth]
	next := make([]int, 1)
	for i, s := range all {
		tokens := r.ids[s.position : s.position+s.tokens]
		if t.Phase == trace.Decode {
			next[0] = token
			tokens = next
		}
		gives := t.Phase == trace.Decode || i == len(all)-1
		if token, err = r.step(ctx, s.position, tokens, gives, r.timing(t), split); err != nil {
			return 0, err
		}
		if t.Phase == trace.Decode {
			r.tokens = append(r.tokens, time.Now())
		}
	}
	return len(all), nil
}

// generate runs the decode steps of a test. While a step runs on the device, the host prepares the next step.
func (r *benchRun) generate(ctx context.Context, t *bench.Test, split *bench.Split) error {
	g := run.Generation{
		Position: t.Depth, Token: r.ids[t.Depth], Steps: t.Tokens, Timing: r.timing(t),
		Pipelined: t.Mode == bench.Pipelined && r.runner.Pipelines(),
	}
	g.Gave = func(out run.Picked, _ stepping.Snapshot) (bool, error) {
		r.tokens = append(r.tokens, time.Now())
		if !out.Finite() {
			return false, noToken(g.Position, out, "")
		}
		r.count(split)
		return true, nil
	}
	return r.runner.Generate(ctx, &g)
}

// noToken returns the error for a step that yields no token, because its highest logit is NaN or infinite.
func noToken(position int, out run.Picked, where string) error {
	return fmt.Errorf("the step at position %d produces no token: the highest logit is %v%s", position,
		out.Highest, where)
}

// count adds the host time of the last step to `split`.
func (r *benchRun) count(split *bench.Split) {
	if split != nil {
		split.Add(bench.SplitOf(r.runner.Exec.CPU()))
		split.ReadNS += r.runner.SampleNS
	}
}

// step runs one step. If `split` is not nil, it adds the host time of the step to `split`.
func (r *benchRun) step(ctx context.Context, position int, tokens []int, gives bool, timing engine.Timing,
	split *bench.Split,
) (token int, err error) {
	out, err := r.runner.Step(ctx, position, tokens, gives, nil, timing)
	if err != nil {
		return 0, err
	}
	if gives && !out.Finite() {
		return 0, noToken(position, out, r.runner.Blame(ctx))
	}
	r.count(split)
	return out.Token, nil
}

// benchStep is the shape of a step: how many tokens it processes, and at which position.
type benchStep struct{ tokens, position int }

// steps returns the steps of one repetition of a test.
func (m *Model) steps(t *bench.Test) []benchStep {
	each := m.maxChunk
	if t.Phase == trace.Decode {
		each = 1
	}
	var list []benchStep
	for n := 0; n < t.Tokens; n += each {
		list = append(list, benchStep{min(each, t.Tokens-n), t.Depth + n})
	}
	return list
}

// floors sets the floor of each test: the minimum time that it could take on this device.
func (r *benchRun) floors() error {
	for i := range r.result.Tests {
		t := &r.result.Tests[i]
		var err error
		if t.Floor, err = r.floor(t); err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
	}
	return nil
}

// floor returns the minimum time that a test could take on this device. The time follows from one ceiling of
// the device: from the memory bandwidth for decode, and from the FLOPS for prefill. floor returns nil if this
// ceiling is not known.
func (r *benchRun) floor(t *bench.Test) (*bench.Floor, error) {
	c := r.result.Device.Ceilings
	if c == nil {
		return nil, nil
	}
	weights, flops, err := benchWork(r.runner.Net, r.m.steps(t))
	if err != nil {
		return nil, err
	}
	mem, fp := c.Roofs(float64(weights), float64(flops), float64(weights/int64(t.Tokens)))
	f, ns := &bench.Floor{Of: "flops", Amount: flops}, fp
	if t.Phase == trace.Decode {
		f.Of, f.Amount, ns = "weights", weights, mem
	}
	if ns == 0 {
		return nil, nil
	}
	f.NS = max(1, int64(ns))
	_, median, _ := trace.Quartiles(slices.Clone(t.WallNS))
	f.Share = float64(f.NS) / float64(max(median, 1))
	return f, nil
}

// benchWork returns how many bytes of constants the steps read and how many FLOPs they execute, both as
// modelled by the kernels. Each dispatch adds the full sizes of the constants that it reads. But a dispatch
// may read only a few rows of a constant. The sum of a dispatch is therefore limited to its modelled memory
// traffic.
func benchWork(n *network.Network, steps []benchStep) (weights, flops int64, err error) {
	l, err := graph.NewLive(n.Graph, graph.LiveOptions{})
	if err != nil {
		return 0, 0, err
	}
	g := n.Graph.Describe()
	for _, s := range steps {
		if err := setShape(n, l, s); err != nil {
			return 0, 0, err
		}
		for _, id := range l.Active() {
			launch, _ := l.Launch(id)
			var constant int64
			for _, v := range g.Dispatches[id].Reads {
				if g.Values[v].Role == trace.RoleConstant {
					constant += g.Values[v].Bytes
				}
			}
			weights += min(constant, launch.Bytes)
			flops += launch.FLOPs
		}
	}
	return weights, flops, nil
}
