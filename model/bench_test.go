package model

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gpuscope/engine"
	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/fake"
	"gpuscope/engine/graph"
	"gpuscope/internal/wordingtest"
	"gpuscope/model/stepping"
	"gpuscope/session"
	"gpuscope/trace"
	"gpuscope/trace/bench"
)

// benched runs a benchmark of the tiny model on a fake device.
func benched(t *testing.T, o Options, b Benchmark, device fake.Options) (*bench.Result, *fake.Driver, error) {
	t.Helper()
	driver := &fake.Driver{All: []fake.Options{device}}
	o.Path, o.Driver = write(t, tiny().Bytes()), driver
	r, err := Bench(context.Background(), o, b, func(session.Event) {})
	return r, driver, err
}

// A test has a warm-up and then its repetitions, each of which starts from the cache depth. Each step is one
// step of the graph.
func TestBenchmarkRunsEachTestFromItsDepth(t *testing.T) {
	b := Benchmark{Prompts: []int{20, 0}, Decodes: []int{3}, Depths: []int{0, 9}, Repetitions: 2, Seed: 7}
	r, driver, err := benched(t, Options{MaxChunk: 8}, b, fake.Options{NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, test := range r.Tests {
		got = append(got, fmt.Sprintf("%s: %s of %d in %d steps, %d times, floor %t", test.Name, test.Mode,
			test.Tokens, test.Steps, len(test.WallNS), test.Floor != nil))
		if test.CPU.Total() <= 0 || test.CPU.EncodeNS <= 0 || test.CPU.OtherNS < 0 ||
			test.TokensPerS != bench.Rates(test.Tokens, test.WallNS) {
			t.Errorf("%s: %+v", test.Name, test)
		}
		if test.Phase == trace.Prefill { // one sample for each repetition
			want := bench.LatencyOf(bench.FirstToken, slices.Clone(test.WallNS))
			if !reflect.DeepEqual(test.Latency, want) || want.N != 2 {
				t.Errorf("%s: latency %+v, want %+v", test.Name, test.Latency, want)
			}
		} else { // two samples between three tokens
			checkInterToken(t, &test, 4)
		}
	}
	if want := []string{
		"pp20: stepped of 20 in 3 steps, 2 times, floor false",
		"tg3: stepped of 3 in 3 steps, 2 times, floor false",
		"pp20 @ d9: stepped of 20 in 3 steps, 2 times, floor false",
		"tg3 @ d9: stepped of 3 in 3 steps, 2 times, floor false",
	}; !slices.Equal(got, want) {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
	if r.Model.Dims["context"] != 29 || r.Timing != trace.TimingOff || r.Repetitions != 2 || r.Seed != 7 {
		t.Errorf("context %d, timing %s", r.Model.Dims["context"], r.Timing)
	}
	if n := driver.Opened[0].Live(); n.Buffers != 0 {
		t.Errorf("%d buffers are left", n.Buffers)
	}
}

// checkInterToken checks the latency of a decode test, which has n samples. n is too small for a p90.
func checkInterToken(t *testing.T, test *bench.Test, n int) {
	t.Helper()
	l := test.Latency
	if l == nil || l.Of != bench.InterToken || l.N != n || l.P90NS != 0 || l.P99NS != 0 ||
		l.P50NS <= 0 || l.P50NS > slices.Max(test.WallNS) {
		t.Errorf("%s %s %s: latency %+v, want %d samples", test.Name, test.Mode, test.Timing, l, n)
	}
}

// On a GPU the lower bounds follow from the ceilings and the plans. A decode step reads the weights of the
// file.
func TestBenchmarkIsHeldToTheFloor(t *testing.T) {
	b := Benchmark{Prompts: []int{8}, Decodes: []int{4}, Depths: []int{0}, Repetitions: 1}
	r, _, err := benched(t, Options{}, b, gpuOf("1.0"))
	if err != nil {
		t.Fatal(err)
	}
	c, prefill, decode := r.Device.Ceilings, r.Tests[0].Floor, r.Tests[1].Floor
	if c == nil || prefill == nil || decode == nil || prefill.Of != "flops" || decode.Of != "weights" {
		t.Fatalf("%v, %+v, %+v", c, prefill, decode)
	}
	if want := int64(float64(prefill.Amount) * 1e9 / c.FlopsPerS); prefill.NS != max(1, want) {
		t.Errorf("prefill %+v, want %d ns", prefill, want)
	}
	layer := 2*tinyDim*tinyHeads*tinyHeadDim + 2*tinyDim*tinyKVHeads*tinyHeadDim + 3*tinyDim*tinyFFN
	matrices := int64(tinyLayers*layer+tinyVocab*tinyDim) * 18 / 32
	if got := decode.Amount / 4; got < matrices || got > matrices*5/4 {
		t.Errorf("a decode step reads %d bytes of weights, its matrices have %d", got, matrices)
	}
}

// If a GPU was below its full clock when a benchmark began, its ceilings are measured again after the tests.
func TestBenchmarkIsHeldToTheBetterCeilings(t *testing.T) {
	golden := wordingtest.New(t)
	b := Benchmark{Prompts: []int{8}, Depths: []int{0}, Repetitions: 1}
	driver := &fake.Driver{All: []fake.Options{gpuOf("1.0")}}
	slow, said := int64(2), ""
	o := Options{Path: write(t, tiny().Bytes()), Driver: driver, Cache: t.TempDir()}
	r, err := Bench(context.Background(), o, b, func(e session.Event) {
		for _, dev := range driver.Opened {
			dev.Duration = func(kernel string, x, y, z uint32) int64 { return slow * 1e6 * int64(x) }
		}
		switch {
		case e.Log != nil && e.Log.Level == "warn":
			said = e.Log.Text
		case e.Progress != nil && e.Progress.Phase == "pp8":
			slow = 1
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	got, f := r.Device.Ceilings, r.Tests[0].Floor
	if want := int64(float64(f.Amount) * 1e9 / got.FlopsPerS); f.NS != max(1, want) {
		t.Errorf("%+v, want %d ns", f, want)
	}
	golden.Text("warning", said)
	kept := stepping.CachedCeilings(&r.Device, o.Cache)
	if kept == nil || kept.FlopsPerS != got.FlopsPerS {
		t.Errorf("kept %+v, want %+v", kept, got)
	}
}

// A slow route runs only as many operators as fit into one submit.
func TestSlowKernelsRunFewerAtATime(t *testing.T) {
	r := newRig(t, Options{Fuse: "off"}) // with fusion, the first layer's q is like no other
	r.dev.Duration = func(string, uint32, uint32, uint32) int64 { return 60e6 }
	alike := []graph.OpID{*r.opNamed("layers.0.attn.q"), *r.opNamed("layers.1.attn.q")}
	times, err := r.s.runner.Exec.TimeRoutes(context.Background(), alike, 1,
		func(l *graph.Live) error { return r.s.runner.Net.SetShape(l, 1, 0) })
	if err != nil || len(times) == 0 || times[0].Ops != 1 || times[0].NS != 60e6 {
		t.Errorf("%+v, %v", times, err)
	}
}

func TestBenchmarkThatDoesNotFitIsRefused(t *testing.T) {
	golden := wordingtest.New(t)
	ok := Benchmark{Prompts: []int{4}, Decodes: []int{2}, Depths: []int{0}, Repetitions: 1}
	with := func(change func(*Benchmark)) Benchmark {
		b := ok
		change(&b)
		return b
	}
	for name, c := range map[string]struct {
		o Options
		b Benchmark
	}{
		"past the model": {
			b: with(func(b *Benchmark) { b.Depths = []int{61} }),
		},
		"past the context": {
			Options{Context: 32}, with(func(b *Benchmark) { b.Decodes = []int{40} }),
		},
		"a negative prompt":  {b: with(func(b *Benchmark) { b.Prompts = []int{-1} })},
		"a prompt twice":     {b: with(func(b *Benchmark) { b.Prompts = []int{8, 4, 8} })},
		"no repetition":      {b: with(func(b *Benchmark) { b.Repetitions = 0 })},
		"a depth past all":   {b: with(func(b *Benchmark) { b.Depths = []int{1<<30 + 1} })},
		"nothing to measure": {b: with(func(b *Benchmark) { b.Prompts, b.Decodes = nil, []int{0} })},
		"too many tests": {
			b: with(func(b *Benchmark) {
				b.Depths = make([]int, 200)
				for i := range b.Depths {
					b.Depths[i] = i
				}
			}),
		},
	} {
		_, driver, err := benched(t, c.o, c.b, fake.Options{NoLog: true})
		if !errors.Is(err, session.ErrUsage) {
			t.Errorf("%s: %v", name, err)
		}
		golden.Error(name, err)
		if len(driver.Opened) > 0 {
			t.Errorf("%s: a device was opened", name)
		}
	}
}

// The error suggests options that need less memory only if there was too little memory.
func TestWhatDoesNotLoadSaysWhatTakesLess(t *testing.T) {
	golden := wordingtest.New(t)
	b := Benchmark{Decodes: []int{2}, Depths: []int{0}, Repetitions: 1}
	driver := &fake.Driver{All: []fake.Options{{NoLog: true}}}
	o := Options{Path: write(t, tiny().Bytes()), Driver: driver}
	full := false
	_, err := Bench(context.Background(), o, b, func(session.Event) {
		if len(driver.Opened) > 0 && !full {
			full = true
			driver.Opened[0].FailNth(fake.NewBuffer, 1, gpu.ErrOutOfMemory)
		}
	})
	if !errors.Is(err, gpu.ErrOutOfMemory) {
		t.Errorf("a full device: %v", err)
	}
	golden.Error("a full device", err)
	o.Shaders = filepath.Join(t.TempDir(), "none")
	_, err = Bench(context.Background(), o, b, func(session.Event) {})
	if system, ok := errors.AsType[*fs.PathError](err); !ok || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing folder: %v", err)
	} else {
		said := strings.ReplaceAll(err.Error(), system.Error(), "PATH ERROR")
		golden.Text("no such folder", strings.ReplaceAll(said, o.Shaders, "FOLDER"))
	}
}

// The results measured before a cancel are kept.
func TestBenchmarkThatIsStoppedHasWhatItMeasured(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	driver := &fake.Driver{All: []fake.Options{{NoLog: true}}}
	b := Benchmark{Prompts: []int{4}, Decodes: []int{5}, Depths: []int{0}, Repetitions: 3}
	r, err := Bench(ctx, Options{Path: write(t, tiny().Bytes()), Driver: driver}, b, func(e session.Event) {
		if e.Progress != nil && e.Progress.Phase == "tg5" && e.Progress.Done == 2 {
			stop()
		}
	})
	if !errors.Is(err, context.Canceled) || r == nil || len(r.Tests) != 1 || r.Tests[0].Name != "pp4" ||
		r.Stopped != "context canceled" {
		t.Errorf("%+v, %v", r, err)
	}
}

// Operators of the same kind are timed together, on each route. An operator that is not affected by the shape
// is timed once.
func TestBenchmarkTimesKernelsOnEachRoute(t *testing.T) {
	golden := wordingtest.New(t)
	driver := &fake.Driver{All: []fake.Options{gpuOf("1.0")}}
	scripted := func(session.Event) {
		for _, dev := range driver.Opened {
			dev.Duration = func(kernel string, x, y, z uint32) int64 {
				return 100*int64(x*y*z) + int64(len(kernel))
			}
		}
	}
	b := Benchmark{Prompts: []int{6}, Depths: []int{20, 0, 9}, Repetitions: 2, Kernels: true}
	o := Options{Path: write(t, tiny().Bytes()), Driver: driver}
	r, err := Bench(context.Background(), o, b, scripted)
	if err != nil {
		t.Fatal(err)
	}
	at := map[string][]string{}
	for _, k := range r.Kernels {
		ops := strings.Join(k.Ops, "+")
		at[ops] = append(at[ops], fmt.Sprintf("%d@%d", k.Tokens, k.Position))
		if k.N != 2 || k.NS <= 0 || len(k.Kernels) == 0 || k.Bytes <= 0 {
			t.Errorf("%+v", k)
		}
		if len(k.Kernels) == 1 && k.NS%100 != int64(len(k.Kernels[0]))%100 { // the duration of one dispatch
			t.Errorf("%s took %d ns", k.Kernels[0], k.NS)
		}
		if ops == "mlp.gate" &&
			(len(k.Layers) != tinyLayers || k.Count != tinyLayers || k.In != tinyDim || k.Out != tinyFFN) {
			t.Errorf("%+v", k)
		}
	}
	elsewhere := func(shape string) bool { return shape != "1@0" }
	if got := at["lm_head"]; len(got) == 0 || slices.ContainsFunc(got, elsewhere) {
		t.Errorf("the head, which always computes one row, was timed at %v", got)
	}
	if got := strings.Join(at["attn.rope+sdpa"], " "); !strings.Contains(got, "6@0") ||
		!strings.Contains(got, "1@9") || strings.Index(got, "1@20") < strings.Index(got, "1@9") {
		t.Errorf("attention was timed at %v", got)
	}
	planned := 0
	for _, c := range r.Crossovers {
		planned += len(c.Planned)
	}
	if planned == 0 || len(r.Tests) > 0 {
		t.Errorf("crossovers %+v", r.Crossovers)
	}
	small := b
	small.Decodes, small.Depths = []int{128}, []int{7}
	if _, _, err = benched(t, Options{Context: 8}, small, fake.Options{}); err != nil {
		t.Errorf("a context that no kernel needs is required: %v", err)
	}
	small.Depths = []int{8}
	_, _, err = benched(t, Options{Context: 8}, small, fake.Options{})
	if !errors.Is(err, session.ErrUsage) {
		t.Errorf("a token past the context: %v", err)
	}
	golden.Error("a token past the context", err)
	_, _, err = benched(t, Options{}, b, fake.Options{NoTimestamps: true})
	if !errors.Is(err, session.ErrUsage) {
		t.Errorf("without timestamps: %v", err)
	}
	golden.Error("without timestamps", err)
}

// Decoding is measured in each requested mode and, with tracing, at each timing level. The tests alternate:
// the first repetitions of all tests precede the second repetition of any test.
func TestBenchmarkMeasuresModesAndLevelsInTurns(t *testing.T) {
	golden := wordingtest.New(t)
	b := Benchmark{
		Prompts: []int{4}, Decodes: []int{3}, Depths: []int{0}, Repetitions: 2, Tracing: true,
		Modes: []string{bench.Stepped, bench.Pipelined},
	}
	r, driver, err := benched(t, Options{}, b, fake.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, test := range r.Tests {
		got = append(got, strings.TrimSpace(strings.Join([]string{test.Name, test.Mode, string(test.Timing)}, " ")))
		if len(test.WallNS) != 2 || test.CPU.Total() <= 0 || test.CPU.OtherNS < 0 {
			t.Errorf("%+v", test)
		}
		if test.Phase == trace.Decode {
			checkInterToken(t, &test, 4)
		}
		if _, traced := r.Tracing(&test); traced != (test.Timing != "" && test.Timing != trace.TimingOff) {
			t.Errorf("%s: the cost of timing is reported: %t", got[len(got)-1], traced)
		}
	}
	if want := []string{
		"pp4 stepped", "tg3 stepped off", "tg3 stepped step", "tg3 stepped block", "tg3 stepped dispatch",
		"tg3 pipelined off", "tg3 pipelined step",
	}; !slices.Equal(got, want) {
		t.Errorf("tests %q, want %q", got, want)
	}
	// The number of timestamps of a step shows which test the step belongs to.
	var turns []int
	for _, c := range driver.Opened[0].Log {
		switch {
		case c.Kind == fake.Begin && c.Label == "step":
			turns = append(turns, 0)
		case c.Kind == fake.Timestamp && len(turns) > 0:
			turns[len(turns)-1]++
		}
	}
	round := turns[len(turns)-18:]
	if !slices.Equal(round, turns[len(turns)-36:len(turns)-18]) || round[0] != 0 || round[3] == 0 ||
		round[6] <= round[3] || round[9] <= round[6] || round[12] != 0 {
		t.Errorf("timestamps of the steps of a round: %v, before it %v", round, turns[len(turns)-36:])
	}
	if !overlaps(driver.Opened[0].Log) {
		t.Error("nothing was pipelined")
	}
	_, _, err = benched(t, Options{}, b, fake.Options{NoTimestamps: true})
	if !errors.Is(err, session.ErrUsage) {
		t.Errorf("without timestamps: %v", err)
	}
	golden.Error("without timestamps", err)
}

// A test that cannot be pipelined is omitted, and not reported as pipelined.
func TestBenchmarkLeavesOutWhatCannotBePipelined(t *testing.T) {
	golden := wordingtest.New(t)
	b := Benchmark{
		Decodes: []int{3}, Depths: []int{0}, Repetitions: 1, Modes: []string{bench.Stepped, bench.Pipelined},
	}
	var said []string
	driver := &fake.Driver{All: []fake.Options{{NoLog: true}}}
	o := Options{Path: write(t, tiny().Bytes()), Driver: driver, Check: true}
	r, err := Bench(context.Background(), o, b, func(e session.Event) {
		if e.Log != nil && e.Log.Level == "warn" {
			said = append(said, e.Log.Text)
		}
	})
	if err != nil || len(r.Tests) != 1 || r.Tests[0].Mode != bench.Stepped || len(said) != 1 {
		t.Fatalf("%+v, %v, %q", r, err, said)
	}
	golden.Text("warning", said[0])
	b.Modes = []string{bench.Pipelined}
	for name, o := range map[string]Options{
		"timing level dispatch": {Timing: engine.TimingDispatch}, "--check": {Check: true},
	} {
		_, _, err := benched(t, o, b, fake.Options{})
		if !errors.Is(err, session.ErrUsage) {
			t.Errorf("only pipelined, with %s: %v", name, err)
		}
		golden.Error(name, err)
	}
	b.Tracing = true
	if _, _, err := benched(t, Options{Timing: engine.TimingDispatch}, b, fake.Options{}); err != nil {
		t.Errorf("with tracing, which sets the timing levels: %v", err)
	}
}
