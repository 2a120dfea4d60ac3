package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/fake"
	"gpuscope/engine/graph/graphtest"
	"gpuscope/trace"
)

// each returns a set for every dispatch that ran.
func each(x *Executor) (sets [][]trace.DispatchID) {
	for _, id := range x.Live().Active() {
		sets = append(sets, []trace.DispatchID{id})
	}
	return sets
}

// scripted computes a dispatch's duration from its kernel and grid, so that few dispatches take equally long.
func scripted(kernel string, x, y, z uint32) int64 { return int64(1000*len(kernel)) + 32*int64(x*y*z) }

func TestCostOfASetIsItsDispatchesTime(t *testing.T) {
	for name, splits := range map[string]bool{"one submit": false, "many submits": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, fake.Options{})
			r.dev.Duration = scripted
			if splits {
				r.x.rates = rates{1e12, 1e12, 1}
			}
			r.mustStep(t, 7, 5)
			took, ok := r.x.DispatchNS()
			if !ok {
				t.Fatal("no times")
			}
			sets := append(each(r.x), r.x.Live().Active(), r.x.Live().Active()[1:3])
			want := Costs{}
			for i, set := range sets {
				c := trace.Cost{Dispatches: set, N: 3}
				for k, id := range r.x.Live().Active() {
					if i == k || i == len(took) || i > len(took) && (id == set[0] || id == set[1]) {
						c.NS += took[k]
					}
				}
				c.Q1NS, c.Q3NS = c.NS, c.NS
				want.Sets = append(want.Sets, c)
				if i == len(took) {
					want.Whole = trace.Whole{NS: c.NS, Q1NS: c.NS, Q3NS: c.NS, N: 1 + 3*len(sets)}
					want.Whole.OffNS = trace.Measured(0)
				}
			}
			got, err := r.x.Costs(context.Background(), sets, CostOptions{Rounds: 3})
			if err != nil {
				t.Fatal(err)
			}
			if ns, ok := got.Whole.WallNS.NS(); !ok || ns <= 0 {
				t.Errorf("a run takes %d ns of wall time", ns)
			}
			got.Whole.WallNS, got.Whole.WallOff = trace.Time{}, trace.Time{}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

// A cost is negative if a dispatch makes another one faster: without the first, the second takes longer.
func TestCostMayBeNegative(t *testing.T) {
	r := newRig(t, fake.Options{})
	hidden := false
	r.dev.Duration = func(kernel string, _, _, _ uint32) int64 {
		hidden = hidden || kernel == "many"
		if kernel == "spread" && !hidden {
			return 5000
		}
		return 100
	}
	r.dev.Fault = func(c fake.Call) error {
		hidden = hidden && c.Kind != fake.Begin
		return nil
	}
	r.mustStep(t, 7, 5)
	var many trace.DispatchID
	for _, d := range r.x.Graph().Describe().Dispatches {
		if d.Label == "map" {
			many = d.ID
		}
	}
	got, err := r.x.Costs(context.Background(), [][]trace.DispatchID{{many}}, CostOptions{Rounds: 2})
	if err != nil || got.Sets[0].NS != 100-4900 {
		t.Errorf("costs %+v, error %v, want %d", got.Sets, err, 100-4900)
	}
}

// Each set is skipped in five consecutive runs, in another order in each round. Whole runs follow each set.
// One more run after each round measures the wall time.
func TestRoundsSkipSetsBetweenWholeRuns(t *testing.T) {
	r := newRig(t, fake.Options{})
	r.mustStep(t, 7, 5)
	n := 0
	var runs []int // number of dispatches that each run skips
	active := r.x.Live().Active()
	r.dev.OnDispatch = func(d fake.Dispatch) { compute(d); n++ }
	r.dev.Fault = func(c fake.Call) error {
		if c.Kind == fake.Begin {
			runs, n = append(runs, len(active)-n), 0
		}
		return nil
	}
	sets := [][]trace.DispatchID{active[:1], active[2:4], active[:3], active[1:5]}
	const rows = 6
	m, err := r.x.newCostRun(sets, &CostOptions{Rounds: rows * inARow})
	if err != nil {
		t.Fatal(err)
	}
	m.heldUp = false
	if err := m.measure(context.Background()); err != nil {
		t.Fatal(err)
	}
	runs = append(runs[1:], len(active)-n)
	orders := map[string]bool{}
	row := runs[2:] // skips the first whole run and its run for the wall time
	for range rows {
		var without []int
		for range sets {
			set := row[0]
			if d := cmp.Diff([]int{set, set, set, set, set, 0, 0}, row[:7]); d != "" {
				t.Fatalf("a row of a round (-want +got):\n%s", d)
			}
			without, row = append(without, set), row[7:]
		}
		if row[0] != 0 {
			t.Fatalf("the run after a round skips %d dispatches", row[0])
		}
		row = row[1:]
		orders[fmt.Sprint(without)] = true
		if slices.Sort(without); !slices.Equal(without, []int{1, 2, 3, 4}) {
			t.Errorf("a round skips %v", without)
		}
	}
	if len(row) > 0 || len(orders) < 4 {
		t.Errorf("%d runs too many; %d rounds have the orders %v", len(row), rows, orders)
	}
}

// If there is not enough time for all sets, the first ones get a result. The next measurement starts with the
// others.
func TestUnmeasuredSetsComeFirstNextTime(t *testing.T) {
	r := newRig(t, fake.Options{})
	r.mustStep(t, 7, 5)
	active := r.x.Live().Active()
	sets := [][]trace.DispatchID{active[:1], active[1:2], active[2:3]}
	samples := &CostSamples{}
	for _, want := range [][]int{{inARow, 0, 0}, {inARow, inARow, 0}, {inARow, inARow, inARow}} {
		m, err := r.x.newCostRun(sets, &CostOptions{For: time.Nanosecond, Samples: samples})
		if err != nil {
			t.Fatal(err)
		}
		m.heldUp = false
		if err := m.measure(context.Background()); err != nil {
			t.Fatal(err)
		}
		var n []int
		*samples = m.samples()
		for _, c := range m.costs(*samples).Sets {
			n = append(n, c.N)
		}
		if d := cmp.Diff(want, n); d != "" {
			t.Errorf("rounds of each set (-want +got):\n%s", d)
		}
	}
}

// The measurement asks after each group of rounds whether it should end. It keeps the samples.
func TestDecidedCostsEndTheMeasurement(t *testing.T) {
	r := newRig(t, fake.Options{})
	r.mustStep(t, 7, 5)
	samples, asked := &CostSamples{}, []int{}
	o := CostOptions{Rounds: 100, Samples: samples, Decided: func(c Costs) bool {
		asked = append(asked, c.Sets[0].N)
		return c.Sets[0].N >= 3
	}}
	for _, want := range []int{3, 4} { // the second measurement ends after its first round
		got, err := r.x.Costs(context.Background(), each(r.x), o)
		if err != nil || got.Sets[0].N != want || got.Sets[len(got.Sets)-1].N != want {
			t.Fatalf("%+v, error %v, want %d rounds", got.Sets, err, want)
		}
	}
	if d := cmp.Diff([]int{1, 2, 3, 4}, asked); d != "" {
		t.Errorf("rounds when asked (-want +got)\n%s", d)
	}
}

// A round is started only if it can finish within the time limit.
func TestNoRoundIsBegunThatWouldEndLater(t *testing.T) {
	for within, want := range map[time.Duration]int{
		time.Second / 2: 0, 1050 * time.Millisecond: 0, 2900 * time.Millisecond: 0,
		3100 * time.Millisecond: 1, time.Hour: inARow,
	} {
		m := &costRun{
			o: &CostOptions{For: 2 * within, Rounds: CostRounds}, sets: make([]absent, 100), done: 50,
			started: time.Now().Add(-time.Second), within: within,
		}
		if got := max(0, m.next()); got != want {
			t.Errorf("50 of 100 sets took 1 of %v: %d rounds more, want %d", within, got, want)
		}
	}
}

// On a software device, other programs can delay several consecutive runs. There the runs of a set are not
// consecutive, and the cost is a median, so that delays do not change it.
func TestRunsThatAreHeldUpSayNothing(t *testing.T) {
	r := newRig(t, fake.Options{})
	held, random := int64(1), rand.New(rand.NewPCG(1, 2))
	r.dev.Duration = func(string, uint32, uint32, uint32) int64 { return 1000 * held }
	r.dev.Fault = func(c fake.Call) error {
		if c.Kind == fake.Begin {
			if held = 1; random.IntN(4) == 0 {
				held = 40
			}
		}
		return nil
	}
	r.mustStep(t, 7, 5)
	active := r.x.Live().Active()
	sets := [][]trace.DispatchID{active[:1], active[2:4], active[:3], active[1:5]}
	got, err := r.x.Costs(context.Background(), sets, CostOptions{Rounds: 20})
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range got.Sets {
		if want := int64(1000 * len(sets[i])); c.NS != want {
			t.Errorf("%d dispatches cost %d, want %d", len(sets[i]), c.NS, want)
		}
	}
}

// A run without a set is compared with equally many whole runs before and after it, so that the drift of a
// clock cancels out.
func TestAGainIsAgainstTheWholeRunsAround(t *testing.T) {
	m := &costRun{}
	for i := range int64(2*around + 3) {
		m.whole = append(m.whole, 100+10*i)
	}
	for after := 1; after < len(m.whole); after++ {
		now := int64(95 + 10*after) // halfway between its neighbors
		if got := m.gain(partRun{ns: now - 7, after: after}); got != 7 {
			t.Errorf("after %d whole runs: gain %d, want 7", after, got)
		}
	}
	m.whole[0] = 100000 // too far from the run below to count
	if got := m.gain(partRun{ns: 0, after: around + 1}); got != 105+10*around {
		t.Errorf("a whole run %d runs earlier counts: gain %d", around+1, got)
	}
}

func TestCostsOfAnEmptySetCoverTheStep(t *testing.T) {
	r := newRig(t, fake.Options{})
	r.mustStep(t, 7, 5)
	got, err := r.x.Costs(context.Background(), nil, CostOptions{Rounds: 4})
	if n := len(r.x.Live().Active()); err != nil || got.Whole.NS != int64(1000*n) || got.Whole.N != 5 {
		t.Errorf("%+v, error %v, want 5 runs of %d dispatches", got, err, n)
	}
}

func TestTimeEndsRoundsButNotTheFirst(t *testing.T) {
	r := newRig(t, fake.Options{})
	r.mustStep(t, 7, 5)
	sets := each(r.x)
	done, told := 0, 0
	progress := func(_ string, at, total int) error {
		if at < done || at > total || total != 100 {
			t.Errorf("%d of %d after %d", at, total, done)
		}
		done = at
		told++
		return nil
	}
	got, err := r.x.Costs(context.Background(), sets, CostOptions{For: 1, Progress: progress})
	if err != nil {
		t.Fatal(err)
	}
	if done != 100 || told != len(sets)+1 {
		t.Errorf("progress ended at %d percent after %d reports, want %d reports", done, told, len(sets)+1)
	}
	for _, c := range got.Sets {
		if c.N != 1 {
			t.Fatalf("%d differences of dispatch %d, want 1", c.N, c.Dispatches[0])
		}
	}
}

// A second measurement of the same step is added to the first, set by set: n grows, and the variation of the
// runs becomes known better.
func TestSamplesOfOneStepAreAddedUp(t *testing.T) {
	r := newRig(t, fake.Options{})
	took := int64(1000)
	r.dev.Duration = func(string, uint32, uint32, uint32) int64 { return took }
	r.mustStep(t, 7, 5)
	active := r.x.Live().Active()
	row, other, n := active[:1], active[2:4], int64(len(active))
	samples := &CostSamples{}
	measure := func(want Costs, rounds int, sets ...[]trace.DispatchID) {
		t.Helper()
		got, err := r.x.Costs(context.Background(), sets, CostOptions{Rounds: rounds, Samples: samples})
		if err != nil {
			t.Fatal(err)
		}
		got.Whole.WallNS, got.Whole.WallOff = trace.Time{}, trace.Time{}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
	}
	measure(Costs{
		trace.Whole{NS: 1000 * n, Q1NS: 1000 * n, Q3NS: 1000 * n, N: 2},
		[]trace.Cost{{Dispatches: row, NS: 1000, Q1NS: 1000, Q3NS: 1000, N: 1}},
	}, 1, row)
	measure(Costs{
		trace.Whole{NS: 1000 * n, Q1NS: 1000 * n, Q3NS: 1000 * n, N: 4},
		[]trace.Cost{{Dispatches: other, NS: 2000, Q1NS: 2000, Q3NS: 2000, N: 1}},
	}, 1, other)
	took = 3000
	measure(Costs{
		trace.Whole{NS: 3000 * n, Q1NS: 1000 * n, Q3NS: 3000 * n, N: 9, OffNS: trace.Measured(2000 * n)},
		[]trace.Cost{
			{Dispatches: other, NS: 6000, Q1NS: 4000, Q3NS: 6000, N: 3},
			{Dispatches: row, NS: 3000, Q1NS: 2000, Q3NS: 3000, N: 3},
		},
	}, 2, other, row)
}

// costsOfRandomGraph measures random sets of a random graph, is sometimes canceled, and checks that no value
// changed.
func costsOfRandomGraph(t *rapid.T, dev gpu.Device) {
	r := newRandomRun(t, dev)
	x := r.x
	defer x.Release()
	want, goes := r.step(t, TimingStep)
	if !goes {
		return
	}
	var sets [][]trace.DispatchID
	for range rapid.IntRange(1, 4).Draw(t, "sets") {
		sets = append(sets, rapid.SliceOfN(rapid.SampledFrom(x.Live().Active()), 1, 6).Draw(t, "set"))
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	o, stop, runs := CostOptions{Rounds: 2}, rapid.IntRange(0, 9).Draw(t, "stop after"), 0
	o.Progress = func(string, int, int) error {
		if runs++; runs == stop {
			cancel()
		}
		return nil
	}
	if _, err := x.Costs(ctx, sets, o); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	for _, v := range x.g.Outputs() { // compares the device's memory and the step's outputs
		now, told := make([]byte, x.LiveSize(v)), make([]byte, x.LiveSize(v))
		if err := x.ReadValue(v, now); err != nil {
			t.Fatal(err)
		}
		if _, err := x.Output(v, told); err != nil {
			t.Fatal(err)
		}
		for what, got := range map[string][]byte{"": now, ", as it was read": told} {
			if d := cmp.Diff(want[v], graphtest.Words(got)); d != "" {
				t.Fatalf("%s%s (-want +got):\n%s", x.g.Values[v].Name, what, d)
			}
		}
	}
}

func TestMeasuringCostsLeavesNoState(t *testing.T)       { onFake(t, costsOfRandomGraph) }
func TestMeasuringCostsLeavesNoDeviceState(t *testing.T) { onDevice(t, costsOfRandomGraph) }

func TestCancelKeepsTheCostsMeasuredSoFar(t *testing.T) {
	r := newRig(t, fake.Options{})
	r.mustStep(t, 7, 5)
	ctx, cancel := context.WithCancel(context.Background())
	n := len(r.x.Live().Active())
	runs := 0
	got, err := r.x.Costs(ctx, each(r.x), CostOptions{Progress: func(_ string, done, total int) error {
		if want := 100 * runs / (n * CostRounds); done != want || total != 100 {
			t.Errorf("%d of %d, want %d percent", done, total, want)
		}
		if runs++; runs == n+3 {
			cancel()
		}
		return nil
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	more := 0
	for i, c := range got.Sets {
		if c.N < 1 || c.N > 3 || c.NS != 1000 {
			t.Errorf("set %d: %d differences of %d ns", i, c.N, c.NS)
		}
		more += c.N - 1
	}
	if more != 2 {
		t.Errorf("%d runs in the second round, want 2", more)
	}
	if d := cmp.Diff(r.want(7, 5), r.output(t)); d != "" {
		t.Error(d)
	}
	r.mustStep(t, 7, 5)
}

func TestCostsThatCannotBeMeasuredAreRefused(t *testing.T) {
	ctx := context.Background()
	refused := func(r *rig, facts string, o CostOptions, sets ...[]trace.DispatchID) {
		t.Helper()
		before := r.dev.Count(fake.Submit)
		if _, err := r.x.Costs(ctx, sets, o); !graphtest.Mentions(err, facts) {
			t.Errorf("error %v, want %q", err, facts)
		}
		if n := r.dev.Count(fake.Submit); n != before {
			t.Errorf("%d submits", n-before)
		}
	}
	r := newRig(t, fake.Options{})
	refused(r, ErrNoStep.Error(), CostOptions{}, []trace.DispatchID{0})
	r.mustStep(t, 7, 5)
	refused(r, "dispatch 9999", CostOptions{}, []trace.DispatchID{9999})
	refused(r, "dispatch -1", CostOptions{}, []trace.DispatchID{-1})
	refused(r, "set 1", CostOptions{}, []trace.DispatchID{0}, nil)
	refused(r, "1001", CostOptions{Rounds: 1001}, []trace.DispatchID{0})
	without := newRig(t, fake.Options{NoTimestamps: true})
	if err := without.x.Step(ctx, without.input(7, 5), TimingOff); err != nil {
		t.Fatal(err)
	}
	refused(without, "timestamps", CostOptions{}, []trace.DispatchID{0})
}

func TestARunWithoutSomethingAllocatesNothing(t *testing.T) {
	r := newRig(t, fake.Options{NoLog: true})
	r.dev.OnDispatch = nil
	ctx := context.Background()
	if err := r.x.Step(ctx, r.input(7, 5), TimingStep); err != nil {
		t.Fatal(err)
	}
	m, err := r.x.newCostRun(each(r.x), &CostOptions{})
	if err != nil {
		t.Fatal(err)
	}
	run := func() {
		if _, err := m.run(ctx, &m.sets[1]); err != nil {
			t.Fatal(err)
		}
	}
	run()
	if n := testing.AllocsPerRun(100, run); n != 0 {
		t.Errorf("%v allocations a run", n)
	}
}
