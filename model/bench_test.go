package model

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gpuscope/engine/gpu/fake"
	"gpuscope/model/session"
	"gpuscope/trace/bench"
)

// benched is a benchmark of the tiny model on a fake device.
func benched(t *testing.T, o Options, b Benchmark, device fake.Options) (*bench.Result, *fake.Driver, error) {
	t.Helper()
	driver := &fake.Driver{All: []fake.Options{device}}
	o.Path, o.Driver = write(t, tiny().Bytes()), driver
	r, err := Bench(context.Background(), o, b, func(session.Event) {})
	return r, driver, err
}

// A test is warmed up, then repeated from where the cache is filled to; each step is one of the graph.
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
	}
	if want := []string{
		"pp20: stepped of 20 in 3 steps, 2 times, floor false",
		"tg3: stepped of 3 in 3 steps, 2 times, floor false",
		"pp20 @ d9: stepped of 20 in 3 steps, 2 times, floor false",
		"tg3 @ d9: stepped of 3 in 3 steps, 2 times, floor false",
	}; !slices.Equal(got, want) {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
	if r.Model.Dims["context"] != 29 || r.Timing != "off" || r.Repetitions != 2 || r.Seed != 7 {
		t.Errorf("context %d, timing %s", r.Model.Dims["context"], r.Timing)
	}
	if n := driver.Opened[0].Live(); n.Buffers != 0 {
		t.Errorf("%d buffers are left", n.Buffers)
	}
}

// On a GPU the shares follow from ceilings and plans: the weights of a decode step are those of the file.
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

func TestBenchmarkThatDoesNotFitIsRefused(t *testing.T) {
	ok := Benchmark{Prompts: []int{4}, Decodes: []int{2}, Depths: []int{0}, Repetitions: 1}
	with := func(change func(*Benchmark)) Benchmark {
		b := ok
		change(&b)
		return b
	}
	for want, c := range map[string]struct {
		o Options
		b Benchmark
	}{
		"pp4 @ d61 takes 65 positions, and the model was made for 64": {
			b: with(func(b *Benchmark) { b.Depths = []int{61} }),
		},
		"tg40 takes 40 positions, and the context holds 32": {
			Options{Context: 32}, with(func(b *Benchmark) { b.Decodes = []int{40} }),
		},
		"--pp -1":            {b: with(func(b *Benchmark) { b.Prompts = []int{-1} })},
		"--repetitions 0":    {b: with(func(b *Benchmark) { b.Repetitions = 0 })},
		"--depth 1073741825": {b: with(func(b *Benchmark) { b.Depths = []int{1<<30 + 1} })},
		"nothing to measure": {b: with(func(b *Benchmark) { b.Prompts, b.Decodes = nil, []int{0} })},
		"tests, want at most": {
			b: with(func(b *Benchmark) { b.Depths = make([]int, 200) }),
		},
	} {
		_, driver, err := benched(t, c.o, c.b, fake.Options{NoLog: true})
		if !errors.Is(err, session.ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
		if len(driver.Opened) > 0 {
			t.Errorf("%s: a device was opened", want)
		}
	}
}

// What was measured before a cancel stays.
func TestBenchmarkThatIsStoppedHasWhatItMeasured(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	driver := &fake.Driver{All: []fake.Options{{NoLog: true}}}
	b := Benchmark{Prompts: []int{4}, Decodes: []int{5}, Depths: []int{0}, Repetitions: 3}
	r, err := Bench(ctx, Options{Path: write(t, tiny().Bytes()), Driver: driver}, b, func(e session.Event) {
		if e.Progress != nil && e.Progress.Phase == "tg5" && e.Progress.Done == 2 {
			stop()
		}
	})
	if !errors.Is(err, context.Canceled) || r == nil || len(r.Tests) != 1 || r.Tests[0].Name != "pp4" {
		t.Errorf("%+v, %v", r, err)
	}
}
