package engine

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/fake"
	"gpuscope/engine/gpu/gputest"
	"gpuscope/engine/graph"
	"gpuscope/engine/graph/graphtest"
)

// randomRun is a random graph on a device that runs steps with random inputs.
type randomRun struct {
	x      *Executor
	inputs []graph.ValueID
	pos    graph.ValueID
	drawn  uint32 // inputs so far
}

func newRandomRun(t *rapid.T, dev gpu.Device) *randomRun {
	g, inputs, pos := graphtest.RandomGraph(t, dev.Info().Limits)
	x, err := Load(dev, g, graph.LiveOptions{Order: graph.Order(rapid.IntRange(0, 1).Draw(t, "order"))}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &randomRun{x: x, inputs: inputs, pos: pos}
}

// input returns the input of a random step, which may need many submits, and a function that computes the
// value of everything after it.
func (r *randomRun) input(t *rapid.T) (in graph.StepInput, want func() map[graph.ValueID][]uint32) {
	if rapid.Bool().Draw(t, "many submits") {
		r.x.rates = rates{1e12, 1e12, 1}
	}
	// Some graphs accept inputs of two lengths; all graphs accept inputs of one length.
	n := rapid.OneOf(rapid.Just(1), rapid.IntRange(1, graphtest.Rows)).Draw(t, "rows")
	at := rapid.IntRange(1, graphtest.Rows).Draw(t, "pos")
	in = graph.StepInput{SymInts: []graph.SymIntValue{{Value: r.pos, Int: int64(at)}}, Read: r.x.g.Outputs()}
	data := map[graph.ValueID][]uint32{}
	for _, v := range r.inputs {
		data[v] = graphtest.Pattern(n, r.drawn+uint32(v)<<16)
		in.Inputs = append(
			in.Inputs,
			graph.InputData{Value: v, Dims: []int{n, graphtest.Width}, Data: graphtest.BytesOf(data[v])},
		)
	}
	r.drawn++
	return in, func() map[graph.ValueID][]uint32 {
		return graphtest.Evaluate(r.x.g, data, map[graph.ValueID]int{r.pos: at})
	}
}

// step runs a random step. goes is false if a cut by a SymInt left operands of different lengths.
func (r *randomRun) step(t *rapid.T, timing Timing) (want map[graph.ValueID][]uint32, goes bool) {
	in, values := r.input(t)
	if err := r.x.Step(context.Background(), &in, timing); err != nil {
		if _, refused := err.(*graph.OpError); refused {
			return nil, false
		}
		t.Fatal(err)
	}
	return values(), true
}

// onFake checks a property on fake devices that compute the test operators.
func onFake(t *testing.T, property func(*rapid.T, gpu.Device)) {
	graphtest.Draws(t, 100)
	rapid.Check(t, func(t *rapid.T) {
		dev := fake.New(fake.Options{NoLog: true})
		dev.OnDispatch = compute
		property(t, dev)
		if errs := dev.Misuse(); len(errs) > 0 {
			t.Fatal(errs)
		}
	})
}

// onDevice checks a property on this machine's device. Its seeds are fixed, so that failures are
// reproducible.
func onDevice(t *testing.T, property func(*rapid.T, gpu.Device)) {
	dev := gputest.Open(t)
	for seed := range 12 {
		rapid.Custom(func(t *rapid.T) int {
			property(t, dev)
			return 0
		}).Example(seed)
	}
}

// countdown is a context that is canceled after n calls of Err.
type countdown struct {
	context.Context
	n int
}

func (c *countdown) Err() error {
	if c.n--; c.n < 0 {
		return context.Canceled
	}
	return nil
}

// randomSteps runs random steps of a random graph on a device. Some are refused, canceled or fail; the
// others are compared with Evaluate. After fault(true) some call of the device fails, until fault(false).
// fault is nil if the device cannot fail.
func randomSteps(t *rapid.T, dev gpu.Device, fault func(on bool)) {
	r := newRandomRun(t, dev)
	x := r.x
	defer x.Release()
	x.SetCheck(rapid.Bool().Draw(t, "check"))
	rec := NewRecorder(x)
	for k := range rapid.IntRange(1, 5).Draw(t, "steps") {
		in, values := r.input(t)
		timing := Timing(rapid.IntRange(0, 2).Draw(t, "timing"))
		ctx := context.Background()
		broken := rapid.IntRange(0, 3).Draw(t, "broken")
		switch broken {
		case 1:
			in.SymInts = append(in.SymInts, graph.SymIntValue{Value: r.pos, Int: graphtest.Rows + 1})
		case 2:
			ctx = &countdown{ctx, rapid.IntRange(0, 4).Draw(t, "cancelled at")}
		case 3:
			if fault != nil {
				fault(true)
			}
		}
		err := x.Step(ctx, &in, timing)
		if fault != nil {
			fault(false)
		}
		if err != nil && broken == 0 {
			if _, refused := err.(*graph.OpError); refused {
				continue // a cut by a SymInt left operands of different lengths
			}
			t.Fatal(err)
		}
		if err == nil && broken == 1 {
			t.Fatal("a SymInt out of range was accepted")
		}
		if err != nil {
			if _, err := x.Output(x.g.Outputs()[0], nil); !errors.Is(err, ErrNotRead) {
				t.Fatalf("Output returned a value of a step that did not end: %v", err)
			}
			continue
		}
		want := values()
		for _, v := range x.g.Outputs() {
			got := make([]byte, 4*len(want[v])+4)
			size, err := x.Output(v, got)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want[v], graphtest.Words(got[:size])); d != "" {
				t.Fatalf("step %d, %d rows, pos %d: output %s (-want +got):\n%s", k, in.Inputs[0].Dims[0],
					in.SymInts[0].Int, x.g.Values[v].Name, d)
			}
		}
		_, s := rec.Step()
		checkPlans(t, x, rec, s)
	}
}

func TestStepsOfRandomGraphsGiveTheRightNumbers(t *testing.T) {
	graphtest.Draws(t, 500)
	rapid.Check(t, func(t *rapid.T) {
		dev := fake.New(fake.Options{NoLog: true})
		dev.OnDispatch = compute
		kinds := []fake.Kind{
			fake.Write, fake.Begin, fake.BeginPass, fake.EndPass, fake.Timestamp,
			fake.Resolve, fake.CopyOut, fake.Submit, fake.Wait, fake.ReadTimestamps,
		}
		randomSteps(t, dev, func(on bool) {
			if !on {
				for _, kind := range kinds {
					dev.FailNth(kind, math.MaxInt32, nil)
				}
				return
			}
			dev.FailNth(rapid.SampledFrom(kinds).Draw(t, "call"), rapid.IntRange(1, 5).Draw(t, "nth"),
				errors.New("injected"))
		})
	})
}

func TestRandomGraphsAreCorrectOnTheDevice(t *testing.T) {
	onDevice(t, func(t *rapid.T, dev gpu.Device) { randomSteps(t, dev, nil) })
}
