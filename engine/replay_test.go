package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gpuscope/engine/gpu"
	"gpuscope/engine/gpu/fake"
	"gpuscope/engine/graph"
	"gpuscope/engine/graph/graphtest"
	"gpuscope/internal/wordingtest"
	"gpuscope/trace"
)

// allOutputs returns looks that read all outputs completely.
func allOutputs(x *Executor) []Look {
	looks := x.OutputLooks()
	for i := range looks {
		looks[i].Into = make([]byte, x.LiveSize(looks[i].Value))
	}
	return looks
}

// randomReplay runs a step of a random graph and reads every value in it. A value that shares memory is read
// while it is still there.
func randomReplay(t *rapid.T, dev gpu.Device) {
	r := newRandomRun(t, dev)
	x := r.x
	defer x.Release()
	for range 2 {
		want, goes := r.step(t, TimingOff)
		if !goes {
			return
		}
		looks := allOutputs(x)
		if err := x.Replay(context.Background(), looks...); err != nil {
			t.Fatal(err)
		}
		for _, l := range looks {
			if d := cmp.Diff(want[l.Value], graphtest.Words(l.Into)); d != "" {
				t.Fatalf("%s after dispatch %d (-want +got):\n%s", x.g.Values[l.Value].Name, l.After, d)
			}
		}
		for _, v := range x.g.Outputs() { // the step's outputs are still there
			got := make([]byte, x.LiveSize(v))
			if _, err := x.Output(v, got); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want[v], graphtest.Words(got)); d != "" {
				t.Fatalf("output %s after a replay:\n%s", x.g.Values[v].Name, d)
			}
		}
	}
}

func TestReplayReadsEveryValueWhileItIsThere(t *testing.T)       { onFake(t, randomReplay) }
func TestReplayReadsValuesBeforeTheyAreOverwritten(t *testing.T) { onDevice(t, randomReplay) }

func TestReplayLeavesTheRecordOfTheStepAlone(t *testing.T) {
	r := newRig(t, fake.Options{})
	rec := NewRecorder(r.x)
	r.mustStep(t, 7, 5)
	before := *rec.Snapshot()
	if err := r.x.Replay(context.Background(), allOutputs(r.x)...); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(before.step.ticks, r.x.last.ticks); d != "" || before.step.passes != r.x.last.passes ||
		before.step.submits != r.x.last.submits || before.step.total != r.x.last.total {
		t.Errorf("the step's log has changed: %+v", r.x.last)
	}
	r.mustStep(t, 7, 5)
	if n := r.x.live.Log().Passes(); n != 0 {
		t.Errorf("%d operators were planned again", n)
	}
}

func TestReplayRefusesWhatItCannotShow(t *testing.T) {
	golden := wordingtest.New(t)
	r := newRig(t, fake.Options{})
	ctx := context.Background()
	if err := r.x.Replay(ctx, Look{Value: r.in}); !errors.Is(err, ErrNoStep) {
		t.Errorf("before the first step: %v", err)
	}
	if _, _, err := r.x.FirstNonFinite(ctx); !errors.Is(err, ErrNoStep) {
		t.Errorf("before the first step: %v", err)
	}
	r.mustStep(t, 1, 1) // so that r's second dispatch does not run
	named := func(name string) graph.ValueID {
		for i := range r.x.g.Values {
			if r.x.g.Values[i].Name == name {
				return graph.ValueID(i)
			}
		}
		t.Fatalf("no value %s", name)
		return graph.None
	}
	active := r.x.live.Active()
	last := active[len(active)-1]
	r.dev.ResetCounts()
	large := make([]byte, 2048)
	for name, l := range map[string]Look{
		"not yet written": {After: active[0], Value: r.of},
		"memory reused":   {After: last, Value: named("a.f0")},
		"not run":         {After: 4, Value: r.in},
		"not a tensor":    {After: 0, Value: r.n},
		"too many bytes":  {After: active[0], Value: named("a.f0"), Into: large},
		"value 999":       {After: 0, Value: 999},
		"value -1":        {After: 0, Value: graph.None},
		"dispatch 77":     {After: 77, Value: r.in},
	} {
		golden.Error(name, r.x.Replay(ctx, l))
	}
	if len(r.dev.Log) > 0 {
		t.Errorf("the device was called for refused looks: %v", r.dev.Log)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if err := r.x.Replay(cancelled, Look{After: last, Value: r.of}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled replay: %v", err)
	}
	if err := r.x.Replay(ctx); err != nil {
		t.Errorf("a replay without looks: %v", err)
	}
	got := make([]byte, 6) // not a whole number of words
	if err := r.x.Replay(ctx, Look{After: last, Value: r.of, Into: got}); err != nil ||
		binary.LittleEndian.Uint32(got) != r.want(1, 1)[0] {
		t.Errorf("the first bytes are % x, %v", got, err)
	}
}

// One operator of a chain of float operators computes NaN or Inf. The replay names this operator, although
// all later values are wrong too, and although another value has overwritten its memory at the end.
func TestFirstNonFiniteNamesWhereItCameUp(t *testing.T) {
	dev := fake.New(fake.Options{NoLog: true})
	b := graph.NewBuilder(dev.Info().Limits)
	y := b.Input("x", graph.F32, []int{1, graphtest.Width}, []int{graphtest.Rows, graphtest.Width})
	in := y
	for _, name := range []string{"y0", "y1", "y2", "y3", "y4", "y5"} {
		from, to := y, b.Tensor(name, graph.F32)
		b.Add(name, &graphtest.FuncOp{
			Declares: graph.Spec{
				Kind: "map", Inputs: []graph.ValueID{from}, Outputs: []graph.ValueID{to},
				Slots: []graph.Slot{{Uses: []graph.Use{graphtest.On(graphtest.UnaryKernel, from, to)}}},
			},
			Bounds: func(r *graph.Ranges) []graph.Corner { return r.Ends(from) },
			Plans: func(p *graph.Planner) error {
				p.SetDims(to, p.Dims(from)...)
				p.Dispatch(0, graphtest.Threads(p, p.Numel(from), 64)).Params.U32("p0", p.Numel(from))
				return nil
			},
		})
		y = to
	}
	b.Permuted(in+1+2, func(at int) int { return at + 100 }) // y2
	x, err := Load(dev, graphtest.Finish(t, b, y), graph.LiveOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Release()
	wrong, from := float32(1), math.MaxInt
	dev.OnDispatch = func(d fake.Dispatch) {
		copy(d.Bound[1].Bytes, d.Bound[0].Bytes[:4*3*graphtest.Width])
		if strings.HasPrefix(d.Group, "y") && int(d.Group[1]-'0') >= from {
			binary.LittleEndian.PutUint32(d.Bound[1].Bytes[4*17:], math.Float32bits(wrong))
		}
	}
	for _, test := range []struct {
		wrong float32
		from  int
		index int
	}{
		{1, 0, 0},
		{float32(math.NaN()), 0, 17},
		{float32(math.NaN()), 3, 17},
		{float32(math.Inf(-1)), 5, 17},
		{float32(math.Inf(1)), 2, 117},
	} {
		wrong, from = test.wrong, test.from
		data := make([]byte, 4*3*graphtest.Width)
		inputs := []graph.InputData{{Value: in, Dims: []int{3, graphtest.Width}, Data: data}}
		if err := x.Step(context.Background(), &graph.StepInput{Inputs: inputs}, TimingOff); err != nil {
			t.Fatal(err)
		}
		first, found, err := x.FirstNonFinite(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if test.wrong == 1 {
			if found {
				t.Errorf("all is finite, found %+v", first)
			}
			continue
		}
		want := NonFinite{
			trace.DispatchID(test.from), in + 1 + graph.ValueID(test.from), test.index, float64(test.wrong),
		}
		if !found || cmp.Diff(want, first, cmp.Comparer(func(a, b float64) bool {
			return a == b || a != a && b != b
		})) != "" {
			t.Errorf("found %+v, %v, want %+v", first, found, want)
		}
	}
}

func TestNonFiniteHalvesAreFound(t *testing.T) {
	for h, want := range map[uint16]float64{
		0x7c00: math.Inf(1), 0xfc00: math.Inf(-1), 0x7e01: math.NaN(), 0x7bff: 0,
	} {
		data := binary.LittleEndian.AppendUint16([]byte{0, 0x3c}, h)
		i, got, found := firstNonFinite(graph.F16, data, nil)
		if found != (want != 0) || found && (i != 1 || got != want && got == got) {
			t.Errorf("%#x: element %d is %v, found %v", h, i, got, found)
		}
	}
}
