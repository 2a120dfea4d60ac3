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
	"gpuscope/model/arch"
	"gpuscope/model/run"
	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/bench"
)

// Benchmark says what is measured of a model. A 0 in Prompts or Decodes stands for no test.
type Benchmark struct {
	Prompts     []int // tokens that are taken in
	Decodes     []int // tokens that are made, one a step
	Depths      []int // positions that are filled before
	Repetitions int
	Seed        uint64 // of the token ids
	// Modes are those in which tokens are made: bench.Stepped where it is empty.
	Modes []string
	// Tracing asks for tokens made at each timing level too, in turns.
	Tracing bool
	// Kernels asks for operators alone, on each route at lengths up to the longest of Prompts and at each of
	// Depths, and not for whole steps.
	Kernels bool
}

// Bounds of a benchmark.
const (
	mostTests       = 256
	mostRepetitions = 1000
	mostBenchTokens = 1 << 30 // of a test, and of what was filled before it
)

// warmTestFor is for how long a test runs at least before anything counts, and once in any case: an idle GPU
// takes some 100 ms to clock up.
const warmTestFor = 150 * time.Millisecond

// Check says which setting is out of its range, by the flag that has it.
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
				return session.Refusef("--%s %d: want %d to %d", row.flag, n, row.least, row.most)
			}
			if slices.Contains(row.list[:i], n) { // tests are known by their names
				return session.Refusef("--%s %d is given twice: give it once, and -r for more repetitions",
					row.flag, n)
			}
		}
	}
	switch n := len(b.tests()); {
	case n == 0:
		return session.Refusef("nothing to measure: give --pp or --tg, and --depth")
	case n > mostTests:
		return session.Refusef("%d tests, want at most %d: give fewer of --pp, --tg and --depth", n,
			mostTests)
	}
	return nil
}

// tests are what is measured, in the order of depths, prompts before decodes; of kernels the shapes that take
// the most room.
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

// check says why nothing can be measured with some options in the one mode that is asked for.
func (b *Benchmark) check(o *Options) error {
	timing := o.Timing
	if b.Tracing {
		timing = engine.TimingOff // and others
	}
	why := o.oneByOne(timing)
	if why == "" || b.Kernels || !slices.Equal(b.Modes, []string{bench.Pipelined}) {
		return nil
	}
	return session.Refusef("--mode pipelined: steps come one by one %s", why)
}

// oneByOne says which of the options keeps steps from beginning before those before them have ended, "" for
// none.
func (o *Options) oneByOne(timing engine.Timing) string {
	switch {
	case timing > engine.TimingStep:
		return "at timing level " + timing.String()
	case o.Check:
		return "with --check"
	}
	return ""
}

// how is a way in which a test runs; no timing is that of the options.
type how struct {
	mode   string
	timing trace.Timing
}

// hows are the ways in which the tests of a phase run.
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

// Bench opens a model and measures it, with no session around it and no trace. Progress and what is to be
// known meanwhile go to emit, as those of Open. Where it ends before its time it gives what it has measured
// so far, nil where that is nothing, and why.
func Bench(ctx context.Context, o Options, b Benchmark, emit func(session.Event)) (*bench.Result, error) {
	if err := cmp.Or(b.Check(), b.check(&o)); err != nil {
		return nil, err
	}
	progress := opening(ctx, emit)
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
		err = session.Refusef("what timing costs is not known: this device has no timestamps")
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

// loadFor puts the model on its device, with a cache that holds what the tests need where the options do not
// say how much.
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
		err = fmt.Errorf("%w; the model takes %s: a smaller --depth, --context or --max-chunk takes less",
			err, memoryLine(n.Graph))
	}
	return r, err
}

// hold settles how many positions the cache holds.
func (m *Model) hold(tests []bench.Test) error {
	end := func(t bench.Test) int { return t.Depth + t.Tokens }
	most := slices.MaxFunc(tests, func(a, b bench.Test) int { return end(a) - end(b) })
	need := end(most)
	switch asked := m.options.Context; {
	case asked > 0 && need > asked:
		return session.Refusef(
			"%s takes %d positions, and the context holds %d: raise --context, or leave the test out",
			most.Name, need, asked)
	case need > m.config.Context:
		return session.Refusef("%s takes %d positions, and the model was made for %d at most", most.Name,
			need, m.config.Context)
	case asked > 0:
		return nil
	}
	var err error
	m.context, m.maxChunk, err = m.config.Bounds(max(need, m.options.MaxChunk), m.options.MaxChunk)
	return err
}

// benchResult is what is known before anything was measured.
func (m *Model) benchResult(r *run.Runner, b *Benchmark) *bench.Result {
	timing := m.options.Timing
	if !r.Timed() {
		timing = engine.TimingOff
	}
	return &bench.Result{
		Schema: bench.Schema, Producer: m.options.Producer, Created: time.Now().UTC().Format(time.RFC3339),
		Command: m.options.Command, Device: r.Exec.Device(), Model: m.Info(), Timing: timing.Level(),
		Host: trace.Host{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU()},
		Seed: b.Seed, Repetitions: b.Repetitions, Edited: edited(r),
	}
}

// benchRun measures a model that is on its device.
type benchRun struct {
	m        *Model
	runner   *run.Runner
	b        *Benchmark
	progress engine.Progress
	log      func(level, text string)
	result   *bench.Result
	ids      []int // of the text that fills the cache, and of prompts, by position
	filled   int   // positions of the cache that have it
}

// ceilings measures what the device does at best, before and after what is held to it: a GPU that was not at
// its clock yet would make all of that look better than it is. The better of both stands.
func (r *benchRun) ceilings(ctx context.Context) error {
	d := &r.result.Device
	if !r.runner.Timed() || d.Software() {
		return nil
	}
	before := d.Ceilings
	var err error
	d.Ceilings, err = measureCeilings(ctx, r.runner.Dev, ceilingCache(r.m.options.Cache), before, r.progress,
		func(err error) { r.log("warn", err.Error()) })
	if err != nil {
		d.Ceilings = before
		return err
	}
	if before != nil && d.Ceilings.FlopsPerS > (1+trace.ClockMoved)*before.FlopsPerS {
		r.log("warn", fmt.Sprintf("the GPU was at %.2f of its clock when its ceilings were measured before the "+
			"tests: those after them stand", before.FlopsPerS/d.Ceilings.FlopsPerS))
	}
	return nil
}

// measure runs the tests one after the other.
func (r *benchRun) measure(ctx context.Context, tests []bench.Test) error {
	random := rand.New(rand.NewPCG(r.b.Seed, 0))
	r.ids = make([]int, r.m.context)
	for i := range r.ids {
		r.ids[i] = random.IntN(r.m.config.Vocab)
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

// turns fills the cache and measures tests that differ in mode and timing alone, in turns.
func (r *benchRun) turns(ctx context.Context, tests []bench.Test) error {
	first := tests[0]
	if err := r.fill(ctx, first.Depth); err != nil {
		return err
	}
	r.filled = first.Depth // what follows it is overwritten
	splits, steps := make([]bench.Split, len(tests)), make([]int, len(tests))
	begin, counted := time.Now(), 0
	for warm := true; counted < r.b.Repetitions; {
		for i := range tests {
			if err := r.progress(first.Name, counted*len(tests)+i, r.b.Repetitions*len(tests)); err != nil {
				return err
			}
			t := &tests[i]
			var of bench.Split
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
	}
	r.result.Tests = append(r.result.Tests, tests...)
	return r.progress(first.Name, counted*len(tests), counted*len(tests))
}

// possible are the tests without those whose steps, as the one that ran last, do not run in their mode.
func (r *benchRun) possible(tests []bench.Test) []bench.Test {
	return slices.DeleteFunc(tests, func(t bench.Test) bool {
		no := t.Mode == bench.Pipelined && !r.runner.Exec.CanPrepare(r.timing(&t))
		if no {
			why := cmp.Or(r.m.options.oneByOne(r.timing(&t)), "where they take several submits")
			r.log("warn", t.Name+" was not measured pipelined: steps come one by one "+why)
		}
		return no
	})
}

// fill takes the text in up to a depth.
func (r *benchRun) fill(ctx context.Context, depth int) error {
	for at := min(r.filled, depth); at < depth; {
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

// timing is the level at which a test runs.
func (r *benchRun) timing(t *bench.Test) engine.Timing {
	if t.Timing == "" {
		return r.m.options.Timing
	}
	level, _ := engine.ParseTiming(string(t.Timing)) // a name that the engine gave
	return level
}

// repetition runs a test once, and adds what its steps took the host. It gives how many steps there were.
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
	}
	return len(all), nil
}

// generate makes the tokens of a test, each prepared while the one before is made.
func (r *benchRun) generate(ctx context.Context, t *bench.Test, split *bench.Split) error {
	g := run.Generation{
		Position: t.Depth, Token: r.ids[t.Depth], Steps: t.Tokens, Timing: r.timing(t),
		Pipelined: t.Mode == bench.Pipelined && r.runner.Pipelines(),
	}
	g.Gave = func(out run.Picked, _ run.Snapshot) (bool, error) {
		if !out.Finite() {
			return false, noToken(g.Position, out, "")
		}
		r.count(split)
		return true, nil
	}
	return r.runner.Generate(ctx, &g)
}

// noToken is why a step gives none.
func noToken(position int, out run.Picked, where string) error {
	return fmt.Errorf("the step at position %d gives no token: the highest of its logits is %v%s", position,
		out.Highest, where)
}

// count adds what the last step took the host.
func (r *benchRun) count(split *bench.Split) {
	if split != nil {
		split.Add(bench.SplitOf(r.runner.Exec.CPU()))
		split.ReadNS += r.runner.SampleNS
	}
}

// step runs one step, and adds what it took the host where that is wanted.
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

// benchStep is the tokens and the position of a step.
type benchStep struct{ tokens, position int }

// steps are those of a repetition.
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

// floors holds the tests to the ceilings.
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

// floor is the least time that a test could take by the ceiling of its phase; nil where that is not known.
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

// work is what steps do, as modelled: the bytes of constants that they read, each dispatch's once, and FLOPs.
// What reads a few rows of a table reads no more than it moves.
func benchWork(n *arch.Network, steps []benchStep) (weights, flops int64, err error) {
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
